//! Papers that a paper cites or that cite it, as Semantic Scholar and OpenAlex know them, and how near they are to it.

pub mod open_alex;
pub mod paper;
pub mod scorer;
pub mod semantic_scholar;
pub mod sources;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but what stands for itself everywhere in an address.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The same, but for what divides a path.
const IN_PATH: &AsciiSet = &IN_QUERY.remove(b'/').remove(b':');

/// As it is written in a query.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, IN_QUERY).to_string()
}

/// As it is written in a path, whose parts stay parts.
fn encoded_path(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}
