//! Tells ranges, part numbers and the numbers of books from telephone numbers.

use super::{check_digits::is_product, dates::groups};

/// The text on both sides of a run of groups of digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) before: &'a str,
    pub(super) behind: &'a str,
}

/// Words that announce a telephone number, also with a hyphen between.
const ANNOUNCES: [&str; 9] = [
    "tel",
    "telephone",
    "phone",
    "fax",
    "mobile",
    "cell",
    "call",
    "number",
    "no",
];

/// Characters that join the parts of a part number.
const JOINS: [char; 3] = ['-', '/', '_'];

/// Whether a run of groups of digits is something ordinary: ranges, a part number, or the number of a book. What begins with
/// `+` or a bracket is a telephone number.
pub(super) fn is_ordinary(run: &str, surroundings: Surroundings<'_>) -> bool {
    if !run.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let groups = groups(run);
    surroundings.join_letters() || is_pair(&groups) || are_ranges(&groups) || is_book(run)
}

impl Surroundings<'_> {
    /// Whether letters are joined to the run before or behind it, as in `AB-123-4567-89` and `123-4567-89-B`.
    fn join_letters(self) -> bool {
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let joins_before = self.before.strip_suffix(JOINS).is_some_and(|before| {
            let start = before
                .rfind(|c: char| !c.is_ascii_alphanumeric())
                .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
            let word = &before[start..];
            word.contains(is_letter) && !ANNOUNCES.iter().any(|known| known.eq_ignore_ascii_case(word))
        });
        let joins_behind = self
            .behind
            .strip_prefix(JOINS)
            .is_some_and(|behind| behind.starts_with(is_letter));
        joins_before || joins_behind
    }
}

/// Whether they are two numbers with a hyphen between: a range, or a part number. Telephone numbers of two groups begin with 0,
/// or have a space between.
fn is_pair(groups: &[(&str, &str)]) -> bool {
    matches!(groups, [(one, "-"), (_, _)] if !one.starts_with('0'))
}

/// Whether they are ranges, each from a number to a greater one, with spaces between.
fn are_ranges(groups: &[(&str, &str)]) -> bool {
    let is_range = |range: &[(&str, &str)]| match range {
        [(one, "-"), (other, behind)] => {
            let ascends = (one.len(), one) < (other.len(), other);
            ascends && !one.starts_with('0') && matches!(*behind, "" | " ")
        }
        _ => false,
    };
    groups.chunks(2).all(is_range)
}

/// Whether it is an ISBN of 13 digits.
fn is_book(run: &str) -> bool {
    let digits: String = run.chars().filter(char::is_ascii_digit).collect();
    (digits.starts_with("978") || digits.starts_with("979")) && is_product(&digits)
}

#[cfg(test)]
mod tests {
    use crate::personal_data::mask;

    #[test]
    fn ranges_and_part_numbers_are_not_masked() {
        for text in [
            "10000-20000",
            "価格は100000-250000円",
            "１００００−２００００円",
            "10000–20000 yen",
            "100-200 300-400",
            "pages 1000-1010 2000-2020",
            "90915-10003",
            "部品90915-10003の在庫",
            "AB-123-4567-89",
            "sm-1234-5678-90",
            "型番AB-123-4567-89です",
            "X1/2345/678/90",
            "AB_123-4567-89",
            "123-4567-89-B",
            "R2-0901-2345-67",
            "978-4-10-101001-4",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn telephone_numbers_beside_words_are_masked() {
        for (text, masked) in [
            ("tel-090-1234-5678", "tel-[phone]"),
            ("TEL/090-1234-5678", "TEL/[phone]"),
            ("No-123-456-7890", "No-[phone]"),
            ("電話-090-1234-5678", "電話-[phone]"),
            ("090-12345678", "[phone]"),
            ("12345 67890", "[phone]"),
            ("123-456-7890", "[phone]"),
            ("400-300 200-100", "[phone]"),
            ("AB-+49 30 901820", "AB-[phone]"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }
}
