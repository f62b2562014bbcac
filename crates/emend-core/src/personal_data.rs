//! Finds and masks personal data in free text: e-mail addresses, phone numbers, card numbers (by the Luhn checksum, ISO/IEC
//! 7812-1), the Japanese Individual Number (My Number, by its check digit) and IP addresses.
//!
//! It errs on the side of masking: anything that looks like a phone number is masked, unless it is known as a date, a time, a range,
//! a part number or a book's or product's number. It does not find names or postal addresses.
//!
//! Japanese is written without spaces, so only ASCII letters and digits make a number part of a longer word. Full-width
//! characters and other hyphens count as the ASCII characters they stand for.

mod check_digits;
mod dates;
mod ordinary;

use std::{borrow::Cow, net::IpAddr, ops::Range};

use self::{
    check_digits::{is_card, is_my_number},
    dates::are_dates,
    ordinary::{Surroundings, are_mixed_ranges, is_ordinary},
};

/// Maximum passes over a text. Nearly all texts need one pass that masks and one that finds nothing.
const ROUNDS: usize = 8;

/// Replaces each find with `[email]`, `[phone]`, `[card]`, `[my-number]` or `[ip]` until there are no more: masking one find can turn
/// the text beside it into another. If finds remain after that, the whole text becomes `[masked]`. Takes time linear in
/// the length of the text. The text is borrowed only if nothing is masked.
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
        return Cow::Owned("[masked]".to_owned());
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
const MASKS: [&str; 6] = ["[email]", "[phone]", "[card]", "[my-number]", "[ip]", "[masked]"];

/// The parts of a masked text between the masks.
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
    match folded(text) {
        Cow::Borrowed(text) => find_folded(text),
        Cow::Owned(folded) => {
            let mut found = find_folded(&folded);
            let mut indices = folded.char_indices().zip(text.char_indices()).peekable();
            let mut original = |index: usize| {
                while indices.next_if(|((folded, _), _)| *folded < index).is_some() {}
                indices.peek().map_or(text.len(), |(_, (original, _))| *original)
            };
            for (range, _) in &mut found {
                *range = original(range.start)..original(range.end);
            }
            found
        }
    }
}

/// The text with ASCII characters for those that stand for them, each character for one.
fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut before = None;
    let fold = |c: char| {
        let ascii = match c {
            // Full-width forms, in the order of ASCII.
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xff01 + u32::from('!')).unwrap_or(c),
            // The ideographic space.
            '\u{3000}' => ' ',
            // Hyphens, dashes, minus signs, and the katakana long vowel marks typed in their place. Elsewhere than in a
            // number they are what they are.
            '\u{2010}'..='\u{2015}'
            | '\u{2043}'
            | '\u{2212}'
            | '\u{fe58}'
            | '\u{fe63}'
            | '\u{30fc}'
            | '\u{ff70}'
                if before.is_some_and(|before: char| before.is_ascii_digit() || before == ')') =>
            {
                '-'
            }
            _ => c,
        };
        before = Some(ascii);
        ascii
    };
    let folded: String = text.chars().map(fold).collect();
    if folded == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(folded)
    }
}

/// Whether a character belongs to Chinese, Japanese or Korean text, where an address or a number may directly follow a
/// word and a word may directly follow it.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{20000}'..='\u{3ffff}')
}

/// How many bytes at the end of a text can be a Japanese name: kanji, without kana, with which sentences lead over to what
/// follows, and no more of them than a name has.
fn name_before(text: &str) -> usize {
    let is_kanji = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '々');
    let kanji = text.trim_end_matches(is_kanji).len();
    let name = &text[kanji..];
    if name.chars().count() <= LONGEST_NAME {
        name.len()
    } else {
        0
    }
}

fn find_folded(text: &str) -> Vec<Find> {
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

/// Distance to the next position where a find could begin: after a run of letters or digits, all of them ASCII or none,
/// else one character.
fn next_boundary(rest: &str) -> usize {
    let ascii = rest.starts_with(|c: char| c.is_ascii());
    let run = rest
        .find(|c: char| !c.is_alphanumeric() || c.is_ascii() != ascii)
        .unwrap_or(rest.len());
    if run > 0 {
        run
    } else {
        rest.chars().next().map_or(1, char::len_utf8)
    }
}

/// Characters of a Japanese name, of the family and the person together.
const LONGEST_NAME: usize = 6;

/// Digits of the shortest telephone number that is found. Other numbers have more.
const FEWEST_DIGITS: usize = 8;

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
        let is_dotted =
            |domain: &str| domain.contains('.') && domain.split('.').all(|label| !label.is_empty());
        // Words right before and after an address are not part of it, unless it is itself written that way, or a name in kanji
        // begins it.
        let start = match local[start..].char_indices().rfind(|(_, c)| is_cjk(*c)) {
            Some((i, c)) if start + i + c.len_utf8() < local.len() => {
                let behind = start + i + c.len_utf8();
                behind - name_before(&local[start..behind])
            }
            _ => start,
        };
        let before_words = domain[..domain.find(is_cjk).unwrap_or(domain.len())].trim_end_matches(['.', '-']);
        let domain = if is_dotted(before_words) {
            before_words
        } else {
            domain
        };
        if position + start < at && is_dotted(domain) {
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

    /// A card, phone or individual number that begins here: groups of digits separated by up to two spaces, dots, hyphens, slashes
    /// or brackets. Groups with more digits than one number has are several numbers that cannot be told apart; they are
    /// masked together.
    fn number(&mut self, position: usize, behind_a_find: bool) -> Option<Find> {
        let text = self.text;
        let rest = &text[position..];
        let mut before = text[..position].chars().rev();
        let in_word = match before.next() {
            // After a CJK word, a dot ends a sentence.
            Some('.') => !before.next().is_some_and(is_cjk),
            before => before.is_some_and(|c| c.is_ascii_alphanumeric()),
        };
        if position < self.barren
            || (!behind_a_find && in_word)
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
        if text[position + end..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
            // Any number that begins inside this run would end here, too.
            self.barren = position + end;
            return None;
        }
        if digits.len() < FEWEST_DIGITS {
            return None;
        }
        let (range, run) = (position..position + end, &rest[..end]);
        let is_date = digits.len() == 8 && groups == 3 || are_dates(run, &text[..position]);
        if !is_date && is_card(&digits, groups) && !are_mixed_ranges(run) {
            return Some((range, "[card]"));
        }
        if !is_date && is_my_number(run) {
            return Some((range, "[my-number]"));
        }
        let surroundings = Surroundings {
            before: &text[..position],
            behind: &text[range.end..],
        };
        if is_date || is_ordinary(run, surroundings) {
            // The rest of it is no number either.
            self.barren = range.end;
            return None;
        }
        let written_as_phone =
            rest.starts_with('+') || (digits.starts_with('0') && digits.len() >= 9) || groups >= 3;
        ((FEWEST_DIGITS..=15).contains(&digits.len()) && written_as_phone
            || digits.len() >= 10 && groups >= 2)
            .then_some((range, "[phone]"))
    }
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
    fn personal_data_is_masked_in_text_without_spaces() {
        for (text, masked) in [
            ("電話は090-1234-5678です", "電話は[phone]です"),
            ("電話は 090-1234-5678です", "電話は [phone]です"),
            ("電話は(03)1234-5678です", "電話は[phone]です"),
            ("電話は+81-90-1234-5678です", "電話は[phone]です"),
            ("電話は09012345678。", "電話は[phone]。"),
            ("電話です．０３（１２３４）５６７８まで", "電話です．[phone]まで"),
            ("カード番号は4111111111111111です", "カード番号は[card]です"),
            (
                "カードは４１１１　１１１１　１１１１　１１１１です",
                "カードは[card]です",
            ),
            ("０９０-１２３４-５６７８", "[phone]"),
            ("＋８１ー９０ー１２３４ー５６７８", "[phone]"),
            ("電話０９０－１２３４－５６７８です", "電話[phone]です"),
            ("090\u{2212}1234\u{2212}5678", "[phone]"),
            ("tel. 090\u{2010}1234\u{2011}5678", "tel. [phone]"),
            ("連絡先はana@example.orgです", "連絡先は[email]です"),
            (
                "メール：ａｎａ＠ｅｘａｍｐｌｅ．ｏｒｇです。",
                "メール：[email]です。",
            ),
            ("ana@example.org．次", "[email]．次"),
            ("宛先は花子@例え.jp", "[email]"),
            ("田中ana@example.com", "[email]"),
            ("宛先は田中ana@example.com", "宛先は[email]"),
            (
                "株式会社営業部連絡先ana@example.com",
                "株式会社営業部連絡先[email]",
            ),
            ("宛先 田中.ana@example.comです", "宛先 [email]です"),
            ("jörg@müller.de", "[email]"),
            ("ana@mail.例え", "[email]"),
            ("サーバー10.0.0.1から", "サーバー[ip]から"),
            ("第3版は１０．０．０．１から", "第3版は[ip]から"),
            (
                "090-1234-5678、ana@example.orgか10.0.0.1へ090-1234-5678",
                "[phone]、[email]か[ip]へ[phone]",
            ),
            ("번호는010-1234-5678입니다", "번호는[phone]입니다"),
            ("me—ana@example.org", "me—[email]"),
        ] {
            assert_eq!(mask(text), masked);
            assert!(found_in(text));
        }
    }

    #[test]
    fn giving_up_masks_everything() {
        let masked = mask(&"10.0.0.1:".repeat(40)).into_owned();
        assert_eq!(masked, "[masked]");
        assert!(matches!(mask(&"10.0.0.1:".repeat(40)), Cow::Owned(_)));
        assert!(matches!(mask("電話は１１０"), Cow::Borrowed(_)));
    }

    #[test]
    fn other_text_is_not_masked() {
        for text in [
            "set up a CSA",
            "I was charged $1.50 twice",
            "transfer 1000000 euros",
            "version 4.2.1",
            "order 123456",
            "what @ time",
            "a@b",
            "isda 2002 vs 1992",
            "カードを手札に戻す",
            "1234 5678",
            "価格は1000000円です",
            "2026年11月21日",
            "２０２６−１１−２１まで",
            "サーバー4台、ユーザー12345678人",
            "注文番号はAB0901234567です",
            "第１．２．３版",
            "何か＠時間",
            "ISBN 978-4-10-101001-4",
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
            "は",
            "は1",
            "はa",
            "は.",
            "は@",
            "はa@b",
            "はa@b.cは",
            "ー０",
            "０ー",
            "＋１２３４５６７８",
            "は１２３４５６７８ａ",
            "は１：",
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
        fn japanese_text_is_handled(text in "[0-9０-９+＋（().．　 @＠:：a-cａはー−-]{0,40}") {
            let once = mask(&text).into_owned();
            prop_assert_eq!(found_in(&text), once != text);
            prop_assert_eq!(mask(&once).into_owned(), once);
        }

        #[test]
        fn number_like_text_is_handled(text in "[0-9+(). @:a-f-]{0,40}") {
            let once = mask(&text).into_owned();
            let _ = found_in(&once);
        }
    }
}
