//! The lines of a text file.

use std::io::{self, BufRead};

/// The lines with their numbers from 1, without line ends and byte order marks.
pub(super) fn lines(from: impl BufRead) -> impl Iterator<Item = (u64, io::Result<String>)> {
    (1..).zip(from.lines()).map(|(line, text)| {
        let text = text.map(|text| match text.strip_prefix('\u{FEFF}') {
            Some(rest) if line == 1 => rest.trim_start_matches('\u{FEFF}').to_owned(),
            _ => text,
        });
        (line, text)
    })
}
