//! Tells ranges, part numbers and the numbers of books from telephone numbers.

use super::{check_digits::is_product, dates::groups};

/// The text on both sides of a run of groups of digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) before: &'a str,
    pub(super) behind: &'a str,
}

/// Words that announce a telephone number, also with a hyphen between.
const ANNOUNCES: [&str; 12] = [
    "tel",
    "telephone",
    "phone",
    "fax",
    "mobile",
    "cell",
    "call",
    "number",
    "no",
    "電話",
    "携帯",
    "番号",
];

/// Words that announce a part number, directly before it. A dot behind another word ends a sentence.
const ANNOUNCES_PART: [&str; 14] = [
    "part no",
    "part no.",
    "part-no",
    "part-no.",
    "part number",
    "p/n",
    "sku",
    "model",
    "model no",
    "model no.",
    "model number",
    "品番",
    "型番",
    "部品番号",
];

/// What may stand between the word and a telephone number, and between the word and a part number.
const BEFORE_TELEPHONE: [char; 8] = [' ', ':', '.', '#', '-', '/', '_', 'は'];
const BEFORE_PART: [char; 7] = [' ', ':', '#', '-', '/', '_', 'は'];

/// Characters that join the parts of a part number.
const JOINS: [char; 3] = ['-', '/', '_'];

/// Whether a run of groups of digits is something ordinary: ranges, a part number, or the number of a book. What begins with
/// `+` or a bracket is a telephone number.
pub(super) fn is_ordinary(run: &str, surroundings: Surroundings<'_>) -> bool {
    if !run.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let groups = groups(run);
    surroundings.join_letters()
        || surroundings.announce(&ANNOUNCES_PART, &BEFORE_PART) && is_part_number(&groups)
        || is_pair(&groups)
        || (are_ranges(&groups) || is_range_of_decimals(&groups))
            && !(run.contains('.') && surroundings.announce(&ANNOUNCES, &BEFORE_TELEPHONE))
        || is_book(run)
}

/// Whether a run of groups of digits is ranges, each from a number to a greater one, whose separators differ: a card's number is
/// not written so, even where the checksum of cards holds. Four groups of four digits are a card's, whatever is between them.
pub(super) fn are_mixed_ranges(run: &str) -> bool {
    let groups = groups(run);
    let mut separators = groups
        .iter()
        .map(|(_, separator)| *separator)
        .take(groups.len() - 1);
    let first = separators.next();
    let differ = separators.any(|separator| Some(separator) != first);
    let is_of_cards = groups.len() == 4 && groups.iter().all(|(digits, _)| digits.len() == 4);
    differ && !is_of_cards && run.starts_with(|c: char| c.is_ascii_digit()) && are_ranges(&groups)
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

    /// Whether one of these words stands directly before the run, as in `part no. 12345-678-90` and `品番：12-3456-7890`.
    fn announce(self, words: &[&str], between: &[char]) -> bool {
        let before = self.before.trim_end_matches(between);
        words.iter().any(|word| {
            let at = before.len().checked_sub(word.len());
            let Some((rest, last)) = at.and_then(|at| before.split_at_checked(at)) else {
                return false;
            };
            // Latin words are words of their own.
            let is_whole = !word.is_ascii() || !rest.ends_with(|c: char| c.is_ascii_alphanumeric());
            is_whole && last.eq_ignore_ascii_case(word)
        })
    }
}

/// Whether they are the three groups of a part number, with hyphens between. A telephone number of Japan begins with 0 and ends in
/// four digits, or in three after four and three (0120-444-444).
fn is_part_number(groups: &[(&str, &str)]) -> bool {
    let [(one, "-"), (_, "-"), (three, _)] = groups else {
        return false;
    };
    !(one.starts_with('0') && (three.len() == 4 || one.len() == 4 && three.len() == 3))
}

/// Whether they are two numbers with a hyphen between: a range, or a part number. Telephone numbers of two groups begin with 0,
/// or have a space between.
fn is_pair(groups: &[(&str, &str)]) -> bool {
    matches!(groups, [(one, "-"), (_, _)] if !one.starts_with('0'))
}

/// Whether they are ranges, each from a number to a greater one, with spaces between.
fn are_ranges(groups: &[(&str, &str)]) -> bool {
    let mut rest = groups;
    while !rest.is_empty() {
        let (length, ascends) = match rest {
            [one, other, third, fourth, ..] if one.1 == "." => {
                let range = decimals([one, other, third, fourth]);
                (4, range.is_some_and(|[from, to]| from < to))
            }
            [(one, "-"), (other, _), ..] => {
                let ascends = (one.len(), one) < (other.len(), other);
                (2, ascends && !one.starts_with('0'))
            }
            _ => return false,
        };
        let behind = rest[length - 1].1;
        if !ascends || !matches!(behind, "" | " ") {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

/// Whether they are two decimals with a hyphen between, whichever of them is greater.
fn is_range_of_decimals(groups: &[(&str, &str)]) -> bool {
    matches!(groups, [one, two, three, four] if decimals([one, two, three, four]).is_some())
}

/// A decimal that can be compared: how long it is before the point, the digits there, and those behind.
type Decimal<'a> = (usize, &'a str, &'a str);

/// Two decimals with a hyphen between them. Before the point stands no 0 beside other digits, as in telephone numbers.
fn decimals<'a>([one, two, three, four]: [&(&'a str, &'a str); 4]) -> Option<[Decimal<'a>; 2]> {
    let decimal = |whole: &'a str, part: &'a str| {
        (whole == "0" || !whole.starts_with('0')).then_some((whole.len(), whole, part))
    };
    // A telephone number with dots has as many digits in two groups by chance alone.
    let is_range =
        one.1 == "." && matches!(two.1, "-" | " -" | "- ") && three.1 == "." && two.0.len() == four.0.len();
    if !is_range {
        return None;
    }
    Some([decimal(one.0, two.0)?, decimal(three.0, four.0)?])
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
            "12.50-15.75",
            "15.75-12.50",
            "0.123-0.456",
            "0.123〜0.456",
            "20000.50-30000.50",
            "20000.50–30000.50円",
            "20000.50 – 30000.50",
            "20000.50- 30000.50",
            "20000.50～30000.50",
            "価格は１２．５０－１５．７５です",
            "12.50-15.75 20.50-30.75",
            "12.50-15.75 100-200",
            // The checksum of cards holds for this.
            "20000.50-30000.53",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn part_numbers_that_a_word_announces_are_not_masked() {
        for text in [
            "part no. 12345-678-90",
            "Part-No. 12345-678-90",
            "the part number 12345-678-90",
            "品番 12-3456-7890",
            "品番は12-3456-7890です",
            "型番：4901-234-567",
            "部品番号　１２３－４５６－７８９",
            "P/N 0986-4942-15",
            "Ｐ／Ｎ：０９８６－４９４２－１５",
            "SKU 123-456-789",
            "sku#123-456-789",
            "model 12345-678-90",
            "Model No. 12345-678-90",
        ] {
            assert_eq!(mask(text), text);
        }
        for (text, masked) in [
            ("tel 123-456-7890", "tel [phone]"),
            ("no. 123-456-7890", "no. [phone]"),
            ("counterpart no. 123-456-7890", "counterpart no. [phone]"),
            ("supermodel 123-456-7890", "supermodel [phone]"),
            ("model, tel 123-456-7890", "model, tel [phone]"),
            ("番号 12-3456-7890", "番号 [phone]"),
            ("品番 090-1234-5678", "品番 [phone]"),
            ("P/N 03-1234-5678", "P/N [phone]"),
            ("品番 0120-444-444", "品番 [phone]"),
            ("I like this model. 555-123-4567", "I like this model. [phone]"),
            ("model +81-90-1234-5678", "model [phone]"),
            ("SKU 123-456-789-012", "SKU [phone]"),
            ("model 123 456-7890", "model [phone]"),
            ("SKU 41111-111111-11111", "SKU [card]"),
            ("品番 1234-5678-9018", "品番 [my-number]"),
        ] {
            assert_eq!(mask(text), masked);
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
            ("03-1234-5678", "[phone]"),
            ("090.1234.5678", "[phone]"),
            ("+81.3.1234.5678", "[phone]"),
            ("+12.50-15.75", "[phone]"),
            ("(12.50-15.75", "[phone]"),
            ("06.12-34.56", "[phone]"),
            ("tel: 12.34-56.78", "tel: [phone]"),
            ("電話は56.78-12.34", "電話は[phone]"),
            ("No-12.34-56.78", "No-[phone]"),
            ("123.456-7890", "[phone]"),
            ("12.34.56.78", "[ip]"),
            ("4111-1111-1111-1111", "[card]"),
            ("4111 1111 1111 1111", "[card]"),
            ("4111.1111-1111.1111", "[card]"),
            ("4111-1111 1111-1111", "[card]"),
            ("4001-9192 5753-7193", "[card]"),
            ("1.800-555.1234", "[phone]"),
            ("49.30-901.820", "[phone]"),
            ("81.90-1234.5678", "[phone]"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }
}
