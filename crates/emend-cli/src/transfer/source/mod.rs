//! How every file that a person gives to a command is read: where it comes from, its encoding, its lines and their numbers.
//!
//! Byte order marks are skipped. UTF-16 and UTF-32 end a file with their name. A line in a legacy encoding is a bad row that
//! names the encoding it looks like. Lines are counted here, beneath the formats, and have a bound.

pub mod csv;
mod encoding;
mod lines;

use std::{
    fmt,
    fs::File,
    io::{self, BufReader, Read as _},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

pub use lines::{Lines, MAX_LINE_BYTES, Utf8};

use super::RowError;
use crate::failure::{Failure, Result};

/// A file that can be read more than once.
#[derive(Debug)]
pub enum Source {
    /// A file of the person.
    File(PathBuf),
    /// Standard input can be read only once, so it is copied to a temporary file.
    Copied(NamedTempFile),
}

impl Source {
    /// Opens a file; `-` is standard input.
    pub fn open(file: &Path) -> Result<Self> {
        if is_standard_input(file) {
            let mut copy = NamedTempFile::new()?;
            io::copy(&mut io::stdin().lock(), &mut copy)?;
            return Ok(Self::Copied(copy));
        }
        match File::open(file).and_then(|file| file.metadata()) {
            Ok(found) if found.is_dir() => Err(unreadable(file, &"is a directory")),
            Ok(_) => Ok(Self::File(file.to_owned())),
            Err(error) => Err(unreadable(file, &error)),
        }
    }

    /// Reads it from its beginning.
    pub fn reader(&self) -> io::Result<BufReader<File>> {
        let path = match self {
            Self::File(path) => path,
            Self::Copied(copy) => copy.path(),
        };
        File::open(path).map(BufReader::new)
    }
}

/// As messages name it.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Copied(_) => f.write_str(STANDARD_INPUT),
        }
    }
}

const STANDARD_INPUT: &str = "standard input";

fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

fn unreadable(file: &Path, why: &dyn fmt::Display) -> Failure {
    if is_standard_input(file) {
        Failure::usage(format!("{STANDARD_INPUT}: {why}"))
    } else {
        Failure::usage(format!("{}: {why}", file.display()))
    }
}

/// Reads a file of at most so many bytes as one text; `-` is standard input.
pub fn text(file: &Path, most: u64) -> Result<String> {
    let read = if is_standard_input(file) {
        whole(io::stdin().lock(), most)
    } else {
        File::open(file).and_then(|open| whole(BufReader::new(open), most))
    };
    match read {
        Ok(Ok(text)) => Ok(text),
        Ok(Err((line, error))) => {
            let name = if is_standard_input(file) {
                STANDARD_INPUT.into()
            } else {
                file.to_string_lossy()
            };
            Err(Failure::usage(format!("{name}, line {line}: {error}")))
        }
        Err(error) => Err(unreadable(file, &error)),
    }
}

/// All of a text without its byte order mark, line ends as they are; or what is wrong with which line.
fn whole(mut from: impl io::BufRead, most: u64) -> io::Result<Result<String, (u64, RowError)>> {
    let mut bytes = Vec::new();
    from.by_ref()
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("has more than {most} bytes")));
    }
    if let Err(error) = encoding::check_beginning(&bytes) {
        return Ok(Err((1, error)));
    }
    while bytes.starts_with(encoding::BYTE_ORDER_MARK) {
        bytes.drain(..encoding::BYTE_ORDER_MARK.len());
    }
    Ok(String::from_utf8(bytes).map_err(|error| {
        let (good, bad) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = good.split(|byte| *byte == b'\n').count() as u64;
        let begins = good
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let ends = bad.iter().position(|byte| *byte == b'\n').unwrap_or(bad.len());
        let of_line = error.as_bytes().get(begins..good.len() + ends);
        (line, encoding::not_utf8(of_line.unwrap_or(bad)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let read = whole(bytes, 1_000).map_err(|error| error.to_string())?;
        read.map_err(|(line, error)| format!("line {line}: {error}"))
    }

    #[test]
    fn a_text_has_its_line_ends_and_no_byte_order_mark() {
        assert_eq!(read(b"\xEF\xBB\xBF\xEF\xBB\xBFa\r\nb\n"), Ok("a\r\nb\n".into()));
        assert_eq!(read(b"\xEF\xBB\xBF"), Ok(String::new()));
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_named_by_its_line_and_encoding() {
        for (bytes, says) in [
            (&b"\xFF\xFEa\0"[..], "line 1: the file is UTF-16"),
            (b"a\0b\0", "line 1: the file is UTF-16"),
            ("a: b\r\nc: 売買契約を解約する\n".as_bytes(), ""),
            (
                b"a\r\nb: \x83t\x83@\x83\x93\x83h\x82\xf0\x89\xf0\x96\xf1\x82\xb7\x82\xe9\n",
                "line 2: is not UTF-8, it looks like Shift_JIS",
            ),
            (&[b'a'; 1_001], "has more than 1000 bytes"),
        ] {
            match read(bytes) {
                Ok(_) => assert_eq!(says, ""),
                Err(error) => assert!(!says.is_empty() && error.contains(says), "{error}"),
            }
        }
    }

    #[test]
    fn a_directory_is_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let refused = Source::open(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("is a directory"), "{refused}");
    }
}
