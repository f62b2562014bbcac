//! The lines of a file, one at a time and with their true numbers.

use std::{
    cell::RefCell,
    io::{self, BufRead, Chain, Cursor, Read},
    rc::Rc,
};

use super::{
    RowError,
    encoding::{BYTE_ORDER_MARK, check_beginning, not_utf8},
};

/// The bytes of a line at most: those of a request.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// Lines that end with a line feed, which a carriage return may come before.
#[derive(Debug)]
pub struct Lines<R> {
    from: Chain<Cursor<Vec<u8>>, R>,
    /// Why nothing can be read, until it was said.
    wrong: Option<RowError>,
    is_at_end: bool,
    number: u64,
    line: Vec<u8>,
}

/// A line with its number from 1, or why it can't be read. What [ends the file](RowError::ends_file) is the last.
pub(super) type Numbered<T> = Option<(u64, Result<T, RowError>)>;

impl<R: BufRead> Lines<R> {
    /// The lines of a file behind its byte order mark. Concatenated files may have several.
    pub fn of(mut from: R) -> Self {
        let mut beginning = Vec::with_capacity(8);
        let mut wrong = None;
        loop {
            let missing = 4_u64.saturating_sub(beginning.len() as u64);
            if let Err(error) = from.by_ref().take(missing).read_to_end(&mut beginning) {
                wrong = Some(ends_with(&error));
            }
            if wrong.is_some() || !beginning.starts_with(BYTE_ORDER_MARK) {
                break;
            }
            beginning.drain(..BYTE_ORDER_MARK.len());
        }
        Self {
            wrong: wrong.or_else(|| check_beginning(&beginning).err()),
            from: Cursor::new(beginning).chain(from),
            is_at_end: false,
            number: 0,
            line: Vec::new(),
        }
    }

    /// The next line as text, without its end.
    pub fn next_text(&mut self) -> Numbered<&str> {
        let (number, line) = self.next_bytes()?;
        let text = line.and_then(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            std::str::from_utf8(line).map_err(|_| not_utf8(line))
        });
        Some((number, text))
    }

    /// The next line as it is, with its end.
    pub(super) fn next_bytes(&mut self) -> Numbered<&[u8]> {
        if self.is_at_end {
            return None;
        }
        self.number += 1;
        let read = match self.wrong.take() {
            Some(wrong) => Err(wrong),
            None => self.read().map_err(|error| ends_with(&error)),
        };
        match read {
            Ok(0) => {
                self.is_at_end = true;
                None
            }
            Ok(read) if read > MAX_LINE_BYTES => {
                let why = format!("is longer than {} MiB, the maximum", MAX_LINE_BYTES >> 20);
                Some((self.number, Err(RowError::row(why))))
            }
            Ok(_) => Some((self.number, Ok(&self.line))),
            Err(error) => {
                self.is_at_end = true;
                Some((self.number, Err(error)))
            }
        }
    }

    /// Reads a line of this many bytes. What is beyond the bound is not kept.
    fn read(&mut self) -> io::Result<usize> {
        self.line.clear();
        let most = MAX_LINE_BYTES as u64 + 1;
        let read = self.from.by_ref().take(most).read_until(b'\n', &mut self.line)?;
        if read > MAX_LINE_BYTES && self.line.last() != Some(&b'\n') {
            self.from.skip_until(b'\n')?;
        }
        Ok(read)
    }
}

fn ends_with(error: &io::Error) -> RowError {
    RowError::row(error.to_string()).of_the_file()
}

/// The same lines as a stream of UTF-8, which ends with an error at the first line that can't be read.
#[derive(Debug)]
pub struct Utf8<R> {
    lines: Lines<R>,
    line: Cursor<Vec<u8>>,
    wrong: Wrong,
}

/// What ended a stream, for whoever is only told that it ended.
pub(crate) type Wrong = Rc<RefCell<Option<(u64, RowError)>>>;

impl<R: BufRead> Utf8<R> {
    /// The stream, and what will have ended it.
    pub(crate) fn of(from: R) -> (Self, Wrong) {
        let wrong = Wrong::default();
        let stream = Self {
            lines: Lines::of(from),
            line: Cursor::default(),
            wrong: Rc::clone(&wrong),
        };
        (stream, wrong)
    }
}

impl<R: BufRead> Read for Utf8<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.line.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some((number, line)) = self.lines.next_bytes() else {
                return Ok(0);
            };
            let checked = line.and_then(|line| match std::str::from_utf8(line) {
                Ok(_) => Ok(line.to_vec()),
                Err(_) => Err(not_utf8(line)),
            });
            match checked {
                Ok(line) => self.line = Cursor::new(line),
                Err(error) => {
                    let ended = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
                    self.wrong.replace(Some((number, error.of_the_file())));
                    return Err(ended);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(from: impl BufRead) -> Vec<(u64, Result<String, RowError>)> {
        let mut lines = Lines::of(from);
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next_text() {
            all.push((number, line.map(str::to_owned)));
        }
        all
    }

    #[test]
    fn lines_have_their_numbers_and_neither_ends_nor_byte_order_marks() {
        let text = "\u{FEFF}\u{FEFF}a\r\n\r\nb\n c ";
        for buffer in [1, 3, 100] {
            let lines = all(io::BufReader::with_capacity(buffer, text.as_bytes()));
            let expected = [(1, "a"), (2, ""), (3, "b"), (4, " c ")];
            assert_eq!(
                lines,
                expected.map(|(number, line)| (number, Ok(line.to_owned())))
            );
        }
        assert_eq!(all(&b""[..]), []);
        assert_eq!(all(BYTE_ORDER_MARK), []);
    }

    #[test]
    fn a_line_that_can_not_be_read_is_bad_and_the_next_is_read() {
        let long = [b"a\n", &vec![b'x'; 2 * MAX_LINE_BYTES][..], b"\nb\n\xE9\nc"].concat();
        let lines = all(&long[..]);
        let bad: Vec<_> = lines
            .iter()
            .filter(|(_, line)| line.is_err())
            .map(|(number, _)| *number)
            .collect();
        assert_eq!((lines.len(), bad), (5, vec![2, 4]), "{lines:?}");
        let exact = [&vec![b'x'; MAX_LINE_BYTES - 1][..], b"\ny"].concat();
        assert!(all(&exact[..]).iter().all(|(_, line)| line.is_ok()));
    }

    #[test]
    fn a_file_in_utf_16_ends_with_its_first_line() {
        let lines = all(&b"\xFF\xFEa\0\n\0b\0\n\0"[..]);
        assert!(
            matches!(&lines[..], [(1, Err(error))] if error.ends_file()),
            "{lines:?}"
        );
    }

    #[test]
    fn a_stream_ends_at_the_line_that_can_not_be_read() {
        let (mut stream, wrong) = Utf8::of(&b"\xEF\xBB\xBFa\r\nb\n\xE9\nc\n"[..]);
        let mut read = Vec::new();
        assert!(stream.read_to_end(&mut read).is_err());
        assert_eq!(read, b"a\r\nb\n");
        assert!(matches!(&*wrong.borrow(), Some((3, error)) if error.ends_file()));
    }
}
