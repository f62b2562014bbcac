//! Mutates inputs so that they stay interesting: bytes and text at random positions, protobuf messages by field.

mod protobuf;

use rand::{Rng as _, RngExt as _, rngs::StdRng};

use crate::corpus::Kept;

/// The form of a target's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any bytes.
    Bytes,
    /// Text, mostly.
    Text,
    /// A protobuf message after some bytes that select what it is.
    Protobuf {
        /// How many bytes precede the message.
        selectors: usize,
    },
}

/// Texts that are known to cause trouble.
const WORDS: &[&str] = &[
    "",
    " ",
    "\0",
    "\n",
    "\r\n",
    "\u{85}",
    "\u{feff}",
    "\u{200b}",
    "\u{fdfa}",
    "\u{301}",
    "\u{345}",
    "\u{130}",
    "\u{1d173}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{10ffff}",
    "ｶﾞ",
    "ß",
    "jane.doe@example.org",
    "+49 30 901820",
    "4111 1111 1111 1111",
    "192.168.0.17:8080",
    "[2001:db8::1]",
    "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "fund-admin",
    "phrase",
    "entity",
    "prohibition",
    "null",
    "~",
    "&a ",
    "*a",
    "<<: ",
    "!!binary ",
    "- ",
    "? ",
    "| ",
    "---\n",
    "{",
    "[",
    "\"",
    "'",
    ",",
    ":",
    "\\u0000",
    "\\ud800",
    "1e999",
    "-9223372036854775808",
    "99999999",
    "%00",
    "%ff",
    "@",
    "?",
    "//",
    "://",
];

/// Numbers at which behaviour changes.
const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    7,
    16,
    63,
    64,
    127,
    128,
    255,
    256,
    512,
    1_000,
    1_024,
    4_096,
    65_535,
    65_536,
    999_999_999,
    1_000_000_000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
    // The last second of the year 9999, and the one after it.
    253_402_300_799,
    253_402_300_800,
    // The maximum seconds of a protobuf duration.
    315_576_000_000,
];

/// A mutated input of the corpus; occasionally a new one.
pub fn one_of(rng: &mut StdRng, corpus: &[Kept], shape: Shape, max_bytes: usize) -> Vec<u8> {
    let of = |rng: &mut StdRng| match corpus.len() {
        0 => Vec::new(),
        count => corpus[rng.random_range(0..count)].bytes.clone(),
    };
    let mut input = if rng.random_ratio(1, 50) {
        random_bytes(rng, 64)
    } else {
        of(rng)
    };
    let other = of(rng);
    change(rng, &mut input, &other, shape, max_bytes);
    input
}

/// Applies one to four changes to an input, which may take parts from `other`.
pub fn change(rng: &mut StdRng, input: &mut Vec<u8>, other: &[u8], shape: Shape, max_bytes: usize) {
    for _ in 0..rng.random_range(1..=4) {
        match shape {
            Shape::Protobuf { selectors } if rng.random_ratio(4, 5) => {
                let of = |input: &[u8]| input.get(selectors..).unwrap_or_default().to_vec();
                let message = protobuf::changed(rng, &of(input), &of(other));
                input.truncate(selectors);
                input.extend(message);
                if selectors > 0 && rng.random_ratio(1, 20) {
                    change_bytes(rng, &mut input[..1]);
                }
            }
            Shape::Text => change_text(rng, input, other),
            Shape::Bytes | Shape::Protobuf { .. } => change_anything(rng, input, other),
        }
    }
    input.truncate(max_bytes);
}

/// A number at or next to a boundary.
fn number(rng: &mut StdRng) -> u64 {
    let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
    match rng.random_range(0..4) {
        0 => number.wrapping_add(1),
        1 => number.wrapping_neg(),
        _ => number,
    }
}

fn word(rng: &mut StdRng) -> &'static str {
    WORDS[rng.random_range(0..WORDS.len())]
}

fn random_bytes(rng: &mut StdRng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; rng.random_range(0..=most)];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// A position in `length`, the end included.
fn place(rng: &mut StdRng, length: usize) -> usize {
    rng.random_range(0..=length)
}

/// Flips bits or overwrites bytes in place.
fn change_bytes(rng: &mut StdRng, bytes: &mut [u8]) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.random_range(0..bytes.len());
    match rng.random_range(0..4) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = bytes[at].wrapping_add(1),
        2 => bytes[at] = rng.random(),
        _ => {
            let number = number(rng).to_le_bytes();
            let width = [1, 2, 4, 8][rng.random_range(0..4)];
            for (byte, new) in bytes[at..].iter_mut().zip(&number[..width]) {
                *byte = *new;
            }
        }
    }
}

fn change_anything(rng: &mut StdRng, input: &mut Vec<u8>, other: &[u8]) {
    match rng.random_range(0..6) {
        0..=2 => change_bytes(rng, input),
        3 => {
            let at = place(rng, input.len());
            input.splice(at..at, random_bytes(rng, 16));
        }
        4 => change_text(rng, input, other),
        _ => {
            let at = place(rng, input.len());
            let from = place(rng, other.len());
            input.splice(at.., other[from..].iter().copied());
        }
    }
}

/// Changes that leave most of the text readable.
fn change_text(rng: &mut StdRng, input: &mut Vec<u8>, other: &[u8]) {
    let at = place(rng, input.len());
    let to = (at + rng.random_range(0..32)).min(input.len());
    match rng.random_range(0..8) {
        0 => {
            input.drain(at..to);
        }
        1 => {
            let again = input[at..to].to_vec();
            input.splice(at..at, again);
        }
        2 => {
            // Long enough to expose code that is quadratic in its input.
            let times = [8, 64, 512][rng.random_range(0..3)];
            let again = input[at..to].repeat(times);
            input.splice(at..at, again);
        }
        3 => {
            let again = word(rng).repeat([1, 1, 1, 3, 40, 600][rng.random_range(0..6)]);
            input.splice(at..at, again.into_bytes());
        }
        4 => {
            let from = place(rng, other.len());
            let until = (from + rng.random_range(0..64)).min(other.len());
            input.splice(at..to, other[from..until].iter().copied());
        }
        5 => {
            let digits = number(rng).to_string();
            input.splice(at..to, digits.into_bytes());
        }
        6 => input.truncate(at),
        _ => {
            input.splice(at..to, word(rng).bytes());
        }
    }
}
