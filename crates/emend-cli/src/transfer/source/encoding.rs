//! Which encoding a file has that is not UTF-8, so that its reader is told what to do about it.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use super::RowError;

/// What editors put before UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// What files of Western Europe are in.
const WESTERN: &str = "windows-1252";

/// Refuses a file that begins as one in UTF-16 or UTF-32 does: with its byte order mark, or with every other byte zero.
pub(super) fn check_beginning(bytes: &[u8]) -> Result<(), RowError> {
    let name = match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => "UTF-32",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16",
        &[a, 0, b, 0, ..] | &[0, a, 0, b, ..] if a != 0 && b != 0 => "UTF-16",
        _ => return Ok(()),
    };
    Err(RowError::row(format!("the file is {name}; save it as UTF-8")).of_the_file())
}

/// Bytes that are not UTF-8, and what they look like.
pub(super) fn not_utf8(bytes: &[u8]) -> RowError {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    // A few words alone look like one of many encodings of single bytes. Where none of Western Europe fits, Japanese is meant first.
    let western = detector.guess(None, Utf8Detection::Deny);
    let encoding = if western.is_single_byte() && western.name() != WESTERN {
        detector.guess(Some(b"jp"), Utf8Detection::Deny)
    } else {
        western
    };
    RowError::row(format!(
        "is not UTF-8, it looks like {}; save the file as UTF-8",
        encoding.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_utf_8_is_named() {
        for (bytes, name) in [
            (&b"caf\xE9, coffee"[..], "windows-1252"),
            (b"K\xFCndigung,M\xFCnchen", "windows-1252"),
            (
                b"\x83t\x83@\x83\x93\x83h\x82\xf0\x89\xf0\x96\xf1\x82\xb7\x82\xe9,redeem",
                "Shift_JIS",
            ),
            (b"\x83\x8a\x81[\x83_\x81[, \x8a\xe7", "Shift_JIS"),
            (
                b"\xa5\xd5\xa5\xa1\xa5\xf3\xa5\xc9\xa4\xf2\xb2\xf2\xcc\xf3",
                "EUC-JP",
            ),
        ] {
            let said = not_utf8(bytes).to_string();
            assert!(said.contains(&format!("looks like {name};")), "{said}");
        }
    }

    #[test]
    fn only_a_file_that_begins_as_utf_16_or_utf_32_does_is_called_so() {
        for (bytes, name) in [
            (&b"\xFF\xFEp\0"[..], "UTF-16"),
            (b"\xFE\xFF\0p", "UTF-16"),
            (b"p\0h\0", "UTF-16"),
            (b"\0p\0h", "UTF-16"),
            (b"\xFF\xFE\0\0", "UTF-32"),
        ] {
            let error = check_beginning(bytes).unwrap_err();
            assert!(error.to_string().contains(name) && error.ends_file(), "{error}");
        }
        for bytes in [&b""[..], b"\xFF", b"a\0bc", b"\xEF\xBB\xBFa", "場所".as_bytes()] {
            assert!(check_beginning(bytes).is_ok(), "{bytes:?}");
        }
    }
}
