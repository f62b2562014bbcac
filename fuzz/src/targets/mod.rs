//! The fuzz targets. To add one: a function over bytes here or in a crate's `fuzzing` module, a row in [`TARGETS`], and
//! seeds in [`seeds`](crate::seeds).

mod edge;
mod headers;
mod requests;
mod stored;
mod stream;
mod text;
mod transfer;

use crate::mutate::Shape;

/// A parser of untrusted input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also its directory in the corpus.
    pub name: &'static str,
    /// Reads one input; panics if a property is violated. Returns how many bytes it produced from the input and passed
    /// on, if that is more than the input.
    pub read: fn(&[u8]) -> usize,
    /// The form of its inputs.
    pub shape: Shape,
    /// How much memory it may hold at once.
    pub memory: Memory,
    /// Maximum length of generated inputs.
    pub max_bytes: usize,
}

/// How much memory reading may take: an amount per byte of input, plus a fixed amount.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes per byte of input.
    pub per_byte: u64,
    /// Bytes regardless of the input.
    pub base: u64,
}

impl Memory {
    /// The limit for an input of `bytes` bytes.
    pub fn allowed(self, bytes: usize) -> u64 {
        self.base + self.per_byte * bytes as u64
    }
}

const KIB: u64 = 1024;
/// A protobuf message after a byte that selects its method.
const REQUEST: Shape = Shape::Protobuf { selectors: 1 };
const MESSAGE: Shape = Shape::Protobuf { selectors: 0 };

/// All targets.
pub const TARGETS: &[Target] = &[
    // An element of a repeated field takes two bytes on the wire and its whole struct in memory, twice while the list
    // grows, so decoding may take hundreds of times the size of the message.
    target("feedback_requests", requests::feedback, REQUEST, 800, 64 * KIB),
    target("learning_requests", requests::learning, REQUEST, 800, 64 * KIB),
    target("search_requests", requests::search, MESSAGE, 800, 256 * KIB),
    target("events", requests::events, MESSAGE, 60, 64 * KIB),
    target("import_stream", requests::import_stream, MESSAGE, 800, 64 * KIB),
    target("page_tokens", requests::page_tokens, Shape::Bytes, 40, 16 * KIB),
    target("feedback_rows", stored::feedback_rows, Shape::Bytes, 60, 64 * KIB),
    target("learning_rows", stored::learning_rows, Shape::Bytes, 60, 64 * KIB),
    target("values", stored::values, MESSAGE, 60, 16 * KIB),
    target("disk_copy", stored::disk_copy, Shape::Bytes, 60, 256 * KIB),
    // Decodes each message twice, as the generated type and as its twin: what a list of empty elements takes, twice.
    target("stream_messages", stream::messages, MESSAGE, 1_600, 64 * KIB),
    target("stream", stream::stream, MESSAGE, 400, 512 * KIB),
    target("normalisation", text::normalisation, Shape::Text, 120, 16 * KIB),
    Target {
        // The services mask texts of at most 2,000 characters.
        max_bytes: 2 * 1024,
        ..target("personal_data", text::personal_data, Shape::Text, 60, 16 * KIB)
    },
    Target {
        // Some thousand characters are enough: the renderer is linear in its texts, each of which may have 256 KiB.
        max_bytes: 8 * 1024,
        ..target("examples", text::examples, Shape::Text, 60, 16 * KIB)
    },
    target("headers", headers::headers, Shape::Text, 40, 16 * KIB),
    target("addresses", headers::addresses, Shape::Text, 60, 64 * KIB),
    target("statuses", headers::statuses, MESSAGE, 200, 64 * KIB),
    target("import_csv", transfer::csv, Shape::Text, 60, 256 * KIB),
    target("import_jsonl", transfer::jsonl, Shape::Text, 100, 256 * KIB),
    target("import_yaml", transfer::yaml, Shape::Text, 200, 512 * KIB),
    target("ubi_jsonl", transfer::ubi_jsonl, Shape::Text, 100, 256 * KIB),
    target("ubi_csv", transfer::ubi_csv, Shape::Text, 100, 256 * KIB),
    target("trust_files", transfer::trust_files, Shape::Text, 200, 512 * KIB),
    target("prompt_files", transfer::prompt_files, Shape::Text, 200, 64 * KIB),
    Target {
        // Each text is written for each engine many times over.
        max_bytes: 2 * 1024,
        ..target("edge_queries", edge::queries, Shape::Text, 2_000, 256 * KIB)
    },
    target("tool_calls", transfer::tool_calls, Shape::Text, 100, 64 * KIB),
];

const fn target(
    name: &'static str,
    read: fn(&[u8]) -> usize,
    shape: Shape,
    per_byte: u64,
    base: u64,
) -> Target {
    Target {
        name,
        read,
        shape,
        memory: Memory { per_byte, base },
        max_bytes: 16 * 1024,
    }
}

/// The target with this name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The input as text, with invalid UTF-8 replaced.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
