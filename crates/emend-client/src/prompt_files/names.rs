//! Names of files for targets.

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

/// The end of every name.
const EXTENSION: &str = ".md";
/// The longest name without its end, in bytes: with what a temporary file adds, file systems take it.
const LONGEST: usize = 200;
/// Stands before the hash in a shortened name. No other name has it: a percent sign is followed by two digits.
const SHORTENED: &str = "%~";
/// How much of a target's name a shortened name begins with, in bytes.
const BEGINNING: usize = 120;

/// The name of a target's file. Letters and digits of any script, `_`, `-` and dots that don't come first stand for
/// themselves, every other byte is written as a percent sign and two digits. A name of more than 200 bytes is cut and ends with
/// a hash; its file says the target ([`Header::target`](super::Header::target)). Targets that differ only in case have files
/// that differ only in case.
pub fn file_name(target: &str) -> String {
    let mut name = escaped(target);
    if name.len() > LONGEST {
        let ends = target.char_indices().map(|(end, _)| escaped(&target[..end]));
        name = ends
            .take_while(|name| name.len() <= BEGINNING)
            .last()
            .unwrap_or_default();
        // Writing to a String can't fail.
        let _ = write!(name, "{SHORTENED}{:016x}", xxh3_64(target.as_bytes()));
    }
    name + EXTENSION
}

/// Whether a target's file may have this name.
pub fn is_file_name(name: &str) -> bool {
    target_of(name).is_some() || is_shortened(name)
}

/// The target whose file has this name; `None` if it is no such name, or a shortened one.
pub fn target_of(name: &str) -> Option<String> {
    let target = unescaped(name.strip_suffix(EXTENSION)?)?;
    (!target.is_empty() && file_name(&target) == name).then_some(target)
}

/// Whether a name is cut, so that only the file says its target.
pub(super) fn is_shortened(name: &str) -> bool {
    let stem = name.strip_suffix(EXTENSION);
    let parts = stem.and_then(|stem| stem.rsplit_once(SHORTENED));
    parts.is_some_and(|(beginning, hash)| {
        let is_digit = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
        let is_whole = unescaped(beginning).is_some_and(|target| escaped(&target) == beginning);
        is_whole && hash.len() == 16 && hash.bytes().all(is_digit)
    })
}

fn escaped(target: &str) -> String {
    let mut name = String::with_capacity(target.len());
    for (at, c) in target.char_indices() {
        if c.is_alphanumeric() || matches!(c, '_' | '-') || (c == '.' && at > 0) {
            name.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a String can't fail.
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    name
}

fn unescaped(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first == b'%' {
            let digits = std::str::from_utf8(more.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = more.get(2..)?;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_target_that_is_no_file_name_is_escaped() {
        for (target, name) in [
            ("SUMMARIZE_DAILY", "SUMMARIZE_DAILY.md"),
            ("mail.reply-short", "mail.reply-short.md"),
            ("../etc/passwd", "%2E.%2Fetc%2Fpasswd.md"),
            (".hidden", "%2Ehidden.md"),
            ("50% off", "50%25%20off.md"),
            ("日報 要約", "日報%20要約.md"),
            ("a\u{301}", "a%CC%81.md"),
            ("x.md", "x.md.md"),
        ] {
            assert_eq!(file_name(target), name);
            assert_eq!(target_of(name).as_deref(), Some(target));
        }
    }

    #[test]
    fn other_names_are_no_targets() {
        for name in [
            "", ".md", "a.txt", "a", "a b.md", "%41.md", "%2f.md", "%2.md", "%FF.md", ".a.md", "a/b.md",
            "%+1.md",
        ] {
            assert!(!is_file_name(name), "{name}");
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_stays_distinct() {
        let long = |last: &str| "日報/".repeat(60) + last;
        let (one, other) = (file_name(&long("a")), file_name(&long("b")));
        assert_ne!(one, other);
        for name in [&one, &other] {
            assert!(
                name.len() <= LONGEST && is_shortened(name) && is_file_name(name),
                "{name}"
            );
            assert_eq!(target_of(name), None);
        }
    }

    proptest! {
        #[test]
        fn every_target_has_a_safe_name_of_its_own(target in "\\PC{1,256}", other in "[.%/a日 ]{1,6}") {
            for target in [target, other] {
                let name = file_name(&target);
                prop_assert!(name.len() <= LONGEST + EXTENSION.len());
                prop_assert!(!name.starts_with('.') && !name.contains(['/', '\\', '\0', '\n']));
                prop_assert!(is_file_name(&name));
                prop_assert!(is_shortened(&name) || target_of(&name) == Some(target));
            }
        }
    }
}
