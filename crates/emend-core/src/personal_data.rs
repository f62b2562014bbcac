//! Finds and masks personal data in free text: e-mail addresses, phone numbers, card numbers (by the Luhn checksum, ISO/IEC
//! 7812-1) and IP addresses.
//!
//! It errs on the side of masking: anything that looks like a phone number is masked. It does not find names or postal
//! addresses.

use std::{borrow::Cow, net::IpAddr, ops::Range};

/// Maximum passes over a text. Nearly all texts need one pass that masks and one that finds nothing.
const ROUNDS: usize = 8;

/// Replaces each find with `[email]`, `[phone]`, `[card]` or `[ip]` until there are no more: masking one find can turn
/// the text beside it into another. If finds remain after that, the whole text becomes `[masked]`. Takes time linear in
/// the length of the text.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        // A mask itself never matches.
        let found = find(&masked);
        if found.is_empty() {
            return masked;
        }
        masked = Cow::Owned(replaced(&masked, found));
    }
    if found_in(&masked) {
        return Cow::Borrowed("[masked]");
    }
    masked
}

fn replaced(text: &str, found: Vec<(Range<usize>, &'static str)>) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for (range, label) in found {
        masked.push_str(&text[from..range.start]);
        masked.push_str(label);
        from = range.end;
    }
    masked.push_str(&text[from..]);
    masked
}

/// What finds are replaced by.
#[cfg(feature = "words")]
const MASKS: [&str; 5] = ["[email]", "[phone]", "[card]", "[ip]", "[masked]"];

/// The parts of a masked text between the masks.
#[cfg(feature = "words")]
pub(crate) fn unmasked_parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let next = MASKS
            .iter()
            .filter_map(|mask| Some((text.find(mask)?, mask.len())))
            .min();
        let (part, behind) = match next {
            Some((at, length)) => (&text[..at], Some(&text[at + length..])),
            None => (text, None),
        };
        rest = behind;
        Some(part)
    })
}

/// Whether the text contains personal data.
pub fn found_in(text: &str) -> bool {
    !find(text).is_empty()
}

/// The range of a find in the text, and its mask.
type Find = (Range<usize>, &'static str);

/// All finds, in order, not overlapping.
fn find(text: &str) -> Vec<Find> {
    let mut scan = Scan {
        text,
        token: 0,
        at: None,
        part: None,
        barren: 0,
    };
    let mut found: Vec<Find> = Vec::new();
    let mut position = 0;
    while position < text.len() {
        // The find before this position will be replaced by a mask.
        let behind_a_find = found.last().is_some_and(|(range, _)| range.end == position);
        let hit = scan
            .email(position)
            .or_else(|| scan.ip(position))
            .or_else(|| scan.number(position, behind_a_find));
        if let Some(hit) = hit {
            position = hit.0.end;
            found.push(hit);
        } else {
            position += next_boundary(&text[position..]);
        }
    }
    found
}

/// Looks for a find at one position after another. It remembers what it has scanned ahead, so that every text takes
/// linear time.
struct Scan<'a> {
    text: &'a str,
    /// End of the current token.
    token: usize,
    /// Position of the next `@`, or the end of the token if there is none, and whether that `@` may belong to an
    /// address. Stale once the scan has passed it.
    at: Option<(usize, bool)>,
    /// Position of the next character that an IP address may contain, or the end of the token if there is none. Stale
    /// once the scan has passed it.
    part: Option<usize>,
    /// No number begins before this position.
    barren: usize,
}

/// Distance to the next position where a find could begin: after a run of letters or digits, else one character.
fn next_boundary(rest: &str) -> usize {
    let run = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    if run > 0 {
        run
    } else {
        rest.chars().next().map_or(1, char::len_utf8)
    }
}

/// Upper bound on the length of an IP address with a port.
const LONGEST_IP: usize = 64;

impl Scan<'_> {
    /// The rest of the token from `position`; empty at white space.
    fn word(&mut self, position: usize) -> &str {
        if self.token <= position {
            let rest = &self.text[position..];
            self.token = position + rest.find(char::is_whitespace).unwrap_or(rest.len());
        }
        &self.text[position..self.token]
    }

    /// An e-mail address within the token: local part, `@`, and a domain with a dot.
    fn email(&mut self, position: usize) -> Option<Find> {
        if self.at.is_none_or(|(at, _)| at < position) {
            let word = self.word(position);
            let at = word.find('@');
            let at = (position + at.unwrap_or(word.len()), at.is_some());
            self.at = Some(at);
        }
        let (at, true) = self.at? else {
            return None;
        };
        let is_local = |c: char| c.is_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
        let is_domain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
        let local = &self.text[position..at];
        let start = local
            .rfind(|c| !is_local(c))
            .map_or(0, |i| i + local[i..].chars().next().map_or(1, char::len_utf8));
        let domain = &self.text[at + 1..self.token];
        let domain = &domain[..domain.find(|c| !is_domain(c)).unwrap_or(domain.len())];
        let domain = domain.trim_end_matches(['.', '-']);
        let dotted = domain.split('.').count() > 1 && domain.split('.').all(|label| !label.is_empty());
        if position + start < at && dotted {
            return Some((position + start..at + 1 + domain.len(), "[email]"));
        }
        // Nor can it be one when scanned from any later position.
        self.at = Some((at, false));
        None
    }

    /// An IP address that begins at the token's next possible character, with or without brackets, a port or
    /// punctuation around it.
    fn ip(&mut self, position: usize) -> Option<Find> {
        let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
        if self.part.is_none_or(|part| part < position) {
            let word = self.word(position);
            self.part = Some(position + word.find(is_part).unwrap_or(word.len()));
        }
        let start = self.part?;
        let run = self.text[start..self.token]
            .bytes()
            .take(LONGEST_IP + 1)
            .take_while(|byte| is_part(char::from(*byte)))
            .count();
        if run > LONGEST_IP {
            return None;
        }
        let candidate = self.text[start..start + run].trim_end_matches(['.', ':']);
        let parses = |text: &str| text.parse::<IpAddr>().is_ok_and(|ip| !ip.is_unspecified());
        let length = if parses(candidate) {
            candidate.len()
        } else {
            let host = candidate.rsplit_once(':').map(|(host, _port)| host)?;
            (parses(host) && host.contains('.')).then_some(host.len())?
        };
        Some((start..start + length, "[ip]"))
    }

    /// A card or phone number that begins here: groups of digits separated by up to two spaces, dots, hyphens, slashes
    /// or brackets. Groups with more digits than one number has are several numbers that cannot be told apart; they are
    /// masked together.
    fn number(&mut self, position: usize, behind_a_find: bool) -> Option<Find> {
        let text = self.text;
        let rest = &text[position..];
        let before = text[..position].chars().next_back();
        if position < self.barren
            || (!behind_a_find && before.is_some_and(|c| c.is_alphanumeric() || c == '.'))
            || !rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '('))
        {
            return None;
        }
        let (mut digits, mut end, mut groups, mut separators) = (String::new(), 0, 0, 0);
        let mut in_group = false;
        for (index, c) in rest.char_indices() {
            if c.is_ascii_digit() {
                if !in_group {
                    groups += 1;
                }
                in_group = true;
                separators = 0;
                digits.push(c);
                end = index + 1;
            } else if (c == '+' && index == 0)
                || (matches!(c, ' ' | '-' | '.' | '/' | '(' | ')') && separators < 2)
            {
                in_group = false;
                separators += 1;
            } else {
                break;
            }
        }
        if text[position + end..].starts_with(char::is_alphanumeric) {
            // Any number that begins inside this run would end here, too.
            self.barren = position + end;
            return None;
        }
        let range = position..position + end;
        if (13..=19).contains(&digits.len()) && luhn(&digits) {
            return Some((range, "[card]"));
        }
        let written_as_phone =
            rest.starts_with('+') || (digits.starts_with('0') && digits.len() >= 9) || groups >= 3;
        let is_date = digits.len() == 8 && groups == 3;
        ((8..=15).contains(&digits.len()) && written_as_phone && !is_date
            || digits.len() >= 10 && groups >= 2)
            .then_some((range, "[phone]"))
    }
}

/// Whether the Luhn checksum holds.
fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let digit = u32::from(digit - b'0');
            match (index % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled > 9 => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn personal_data_is_masked() {
        for (text, masked) in [
            ("mail jane.doe@example.org now", "mail [email] now"),
            ("<jane+tag@mail.example.co.uk>,", "<[email]>,"),
            ("call +49 30 901820 today", "call [phone] today"),
            ("(030) 901-820-11", "[phone]"),
            ("0151 23456789", "[phone]"),
            ("card 4111 1111 1111 1111.", "card [card]."),
            ("4111111111111111", "[card]"),
            ("from 192.168.0.17:8080", "from [ip]:8080"),
            ("[2001:db8::1]", "[[ip]]"),
            ("(030)901820,a@b.cd", "[phone],[email]"),
            // Too many groups for one number are several numbers.
            ("0151 234567 0151 234567 1", "[phone]"),
            ("1234 5678 9012 3456", "[phone]"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn other_text_is_not_masked() {
        for text in [
            "set up a CSA",
            "I was charged $1.50 twice",
            "transfer 1000000 euros",
            "version 4.2.1",
            "on 2026-11-21",
            "order 123456",
            "what @ time",
            "a@b",
            "isda 2002 vs 1992",
            "カードを手札に戻す",
            "1234 5678",
        ] {
            assert_eq!(mask(text), text);
            assert!(!found_in(text));
        }
    }

    /// Texts on which a naive scan is quadratic: every part is rescanned from each position before it, and after each
    /// find.
    #[test]
    fn long_texts_take_no_longer_than_others() {
        for piece in [
            "+12345678",
            "1 1 1 1",
            "a:",
            "z-",
            "a@b",
            "@",
            "0.",
            "(((",
            "1-2x",
            "٣٣ ",
        ] {
            let text = piece.repeat(100_000 / piece.len());
            let masked = mask(&text).into_owned();
            assert_eq!(mask(&masked), masked, "{piece}");
        }
        let phones = "+12345678".repeat(1_000);
        assert_eq!(mask(&phones), "[phone]".repeat(1_000));
    }

    proptest! {
        #[test]
        fn any_text_is_handled_and_masking_twice_changes_nothing(text in "\\PC{0,60}") {
            let once = mask(&text).into_owned();
            prop_assert_eq!(mask(&once).into_owned(), once);
        }

        #[test]
        fn number_like_text_is_handled(text in "[0-9+(). @:a-f-]{0,40}") {
            let once = mask(&text).into_owned();
            let _ = found_in(&once);
        }
    }
}
