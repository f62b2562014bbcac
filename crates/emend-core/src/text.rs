//! Which characters of a text people do not see, and what is done about them.
//!
//! Tag characters, bidirectional controls, zero-width spaces and the like change how a text is shown or carry what nobody
//! reads but programs do. Ids, names and choices with one are refused ([`crate::violation::bounded_text`]); from free text
//! they are removed ([`clean`]); whatever is shown to people is shown with escapes in their place ([`escaped`]). All three
//! follow one rule, [`first_hidden`].
//!
//! Hidden are the characters that Unicode calls default ignorable or format characters (but those that begin a number or
//! an abbreviation and are seen), and noncharacters. Some of them stay where a script or an emoji needs them:
//! * U+200C and U+200D between letters that join, and beside the sign of a consonant without vowel;
//! * U+200D between the parts of an emoji;
//! * U+FE0E and U+FE0F after a character that has an emoji form, and in a keycap;
//! * U+FE00 to U+FE02 and U+E0100 to U+E01EF after a han character, U+FE00 after letters of Myanmar and Phags-pa, and
//!   Mongolian's own selectors after its letters;
//! * the tags of the three flags that Unicode recommends: England, Scotland and Wales.
//!
//! One alone stays, so that a run of them cannot spell a message.

use std::{borrow::Cow, fmt::Write as _};

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{
        DefaultIgnorableCodePoint, Emoji, EmojiModifier, ExtendedPictographic, GeneralCategory,
        IndicSyllabicCategory, JoiningType, NoncharacterCodePoint, PrependedConcatenationMark, Script,
        UnifiedIdeograph,
    },
};

const ZERO_WIDTH_NON_JOINER: char = '\u{200C}';
const ZERO_WIDTH_JOINER: char = '\u{200D}';
const TEXT_FORM: char = '\u{FE0E}';
const EMOJI_FORM: char = '\u{FE0F}';
const KEYCAP: char = '\u{20E3}';
const BLACK_FLAG: char = '\u{1F3F4}';

/// The tags of the flags that Unicode recommends for interchange (Unicode Technical Standard #51, `RGI_Emoji_Tag_Sequence`),
/// each to its end: gbeng, gbsct and gbwls.
const FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// The first character that people do not see and nothing needs, if there is one. Control characters are not among them.
pub fn first_hidden(text: &str) -> Option<char> {
    if text.is_ascii() {
        return None;
    }
    let mut hidden = Scan::new(text).filter(|part| part.is_hidden);
    hidden.next().and_then(|part| part.text.chars().next())
}

/// The first control character, if there is one: those of C0 and C1, and the separators of lines and paragraphs.
pub fn first_control(text: &str) -> Option<char> {
    text.chars().find(|&c| is_control(c))
}

/// The text without what people do not see. Line feeds, carriage returns and tabs stay; other separators of lines become
/// line feeds, and other control characters go. Idempotent; nothing is hidden in the result.
pub fn clean(text: &str) -> Cow<'_, str> {
    let is_clean = |c: char| c == '\n' || c == '\r' || c == '\t' || !is_control(c);
    if text.chars().all(is_clean) && first_hidden(text).is_none() {
        return Cow::Borrowed(text);
    }
    // Without the control characters first: nothing is needed across one that goes.
    let plain: String = text
        .chars()
        .map(|c| match c {
            '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
            _ => c,
        })
        .filter(|&c| is_clean(c))
        .collect();
    let seen = Scan::new(&plain).filter(|part| !part.is_hidden);
    Cow::Owned(seen.map(|part| part.text).collect())
}

/// The same on one line: ends of lines and tabs become single spaces.
pub fn clean_line(text: &str) -> Cow<'_, str> {
    let clean = clean(text);
    if !clean.contains(['\n', '\r', '\t']) {
        return clean;
    }
    let parts = clean.split(['\n', '\r', '\t']).filter(|part| !part.is_empty());
    Cow::Owned(parts.collect::<Vec<_>>().join(" "))
}

/// The text as it is shown to people: hidden and control characters as escapes such as `\u{202E}`. Line feeds and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_as(text, |shown, c| {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\\u{{{:04X}}}", u32::from(c));
    })
}

/// The same with other escapes.
pub fn escaped_as(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let is_shown = |c: char| matches!(c, '\n' | '\t') || !is_control(c);
    let mut shown = Cow::Borrowed(text);
    // What was needed beside a character is not needed beside its escape, so again, until nothing is left.
    while !shown.chars().all(is_shown) || first_hidden(&shown).is_some() {
        shown = Cow::Owned(with_escapes(&shown, is_shown, &escape));
    }
    shown
}

fn with_escapes(text: &str, is_shown: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for part in Scan::new(text) {
        for c in part.text.chars() {
            if part.is_hidden || !is_shown(c) {
                escape(&mut shown, c);
            } else {
                shown.push(c);
            }
        }
    }
    shown
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A piece of a text, which is seen or hidden as a whole: a character, or the tags of a flag.
struct Part<'t> {
    text: &'t str,
    is_hidden: bool,
}

/// Goes through a text. What stays depends on what stayed before it, so that a text without what is hidden has nothing that
/// is hidden.
struct Scan<'t> {
    rest: &'t str,
    /// The last character that stayed.
    before: Option<char>,
    /// The same, marks left aside that joining looks through.
    joined: Option<char>,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            before: None,
            joined: None,
        }
    }

    /// How many bytes a character takes that stays here, with what belongs to it; `None`: it is hidden.
    fn seen(&self, c: char) -> Option<usize> {
        let one = Some(c.len_utf8());
        if !may_be_hidden(c) {
            return one;
        }
        let before = self.before?;
        let following = self.rest.get(c.len_utf8()..).unwrap_or_default();
        let next = following.chars().find(|&next| !is_always_hidden(next));
        let is_needed = match c {
            ZERO_WIDTH_NON_JOINER => self.joins_letters(next, false) || joins_syllables(before, next),
            ZERO_WIDTH_JOINER => {
                self.joins_letters(next, true) || joins_syllables(before, next) || joins_emoji(before, next)
            }
            TEXT_FORM | EMOJI_FORM if before.is_ascii() => {
                is::<Emoji>(before) && next == Some(KEYCAP) && c == EMOJI_FORM
            }
            TEXT_FORM | EMOJI_FORM => is::<Emoji>(before),
            '\u{FE00}' => {
                is::<UnifiedIdeograph>(before) || matches!(script(before), Script::Myanmar | Script::PhagsPa)
            }
            '\u{FE01}' | '\u{FE02}' | '\u{E0100}'..='\u{E01EF}' => is::<UnifiedIdeograph>(before),
            '\u{180B}'..='\u{180F}' => script(before) == Script::Mongolian && !is_selector(before),
            '\u{E0020}'..='\u{E007E}' if before == BLACK_FLAG => {
                return FLAGS
                    .iter()
                    .find(|flag| self.rest.starts_with(**flag))
                    .map(|flag| flag.len());
            }
            _ => false,
        };
        one.filter(|_| is_needed)
    }

    /// Whether a joiner or non-joiner changes the form of the letter before it.
    fn joins_letters(&self, next: Option<char>, joins: bool) -> bool {
        let Some(letter) = self.joined else { return false };
        match (joining(letter), joins) {
            (JoiningType::DualJoining | JoiningType::LeftJoining, true) => true,
            // Between words that are written as one, also after letters that do not join.
            (JoiningType::DualJoining | JoiningType::LeftJoining | JoiningType::RightJoining, false) => next
                .is_some_and(|next| {
                    matches!(
                        joining(next),
                        JoiningType::DualJoining | JoiningType::LeftJoining | JoiningType::RightJoining
                    )
                }),
            _ => false,
        }
    }
}

impl<'t> Iterator for Scan<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        let c = self.rest.chars().next()?;
        let seen = self.seen(c);
        let (text, rest) = self.rest.split_at(seen.unwrap_or(c.len_utf8()));
        self.rest = rest;
        if seen.is_some() {
            self.before = text.chars().next_back();
            if joining(c) != JoiningType::Transparent {
                self.joined = self.before;
            }
        }
        Some(Part {
            text,
            is_hidden: seen.is_none(),
        })
    }
}

/// Whether a character is hidden unless something needs it.
fn may_be_hidden(c: char) -> bool {
    !c.is_ascii()
        && (is::<DefaultIgnorableCodePoint>(c)
            || is::<NoncharacterCodePoint>(c)
            || CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::Format
                && !is::<PrependedConcatenationMark>(c))
}

/// Whether nothing ever needs it.
fn is_always_hidden(c: char) -> bool {
    let is_needed_somewhere = matches!(c,
        ZERO_WIDTH_NON_JOINER | ZERO_WIDTH_JOINER | '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE02}' | TEXT_FORM
        | EMOJI_FORM | '\u{E0020}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}');
    may_be_hidden(c) && !is_needed_somewhere
}

/// Whether a joiner stands after the sign of a consonant without vowel, or before it: of many scripts of India and its
/// neighbours (The Unicode Standard, chapter 12).
fn joins_syllables(before: char, next: Option<char>) -> bool {
    let syllabic = |c| CodePointMapData::<IndicSyllabicCategory>::new().get(c);
    let is_sign = |c| {
        matches!(
            syllabic(c),
            IndicSyllabicCategory::Virama
                | IndicSyllabicCategory::InvisibleStacker
                | IndicSyllabicCategory::PureKiller
        )
    };
    let takes_a_sign = matches!(
        syllabic(before),
        IndicSyllabicCategory::Consonant | IndicSyllabicCategory::Nukta
    );
    let is_shift = |c| syllabic(c) == IndicSyllabicCategory::RegisterShifter;
    is_sign(before) || takes_a_sign && next.is_some_and(|next| is_sign(next) || is_shift(next))
}

/// Whether a joiner stands between two parts of an emoji (Unicode Standard Annex #29, rule GB11).
fn joins_emoji(before: char, next: Option<char>) -> bool {
    let is_part = is::<ExtendedPictographic>(before) || is::<EmojiModifier>(before) || before == EMOJI_FORM;
    is_part && next.is_some_and(is::<ExtendedPictographic>)
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{180B}'..='\u{180F}')
}

fn is<P: icu_properties::props::BinaryProperty>(c: char) -> bool {
    CodePointSetData::new::<P>().contains(c)
}

fn joining(c: char) -> JoiningType {
    CodePointMapData::<JoiningType>::new().get(c)
}

fn script(c: char) -> Script {
    CodePointMapData::<Script>::new().get(c)
}

/// Cuts a text to its first `max` characters.
pub fn cut(text: &mut String, max: usize) {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::normalize::normalize;

    #[test]
    fn what_is_not_seen_goes_and_what_scripts_and_emoji_need_stays() {
        let wales = format!("{BLACK_FLAG}{}", FLAGS[2]);
        for (case, text, cleaned) in [
            ("Persian", "می\u{200C}خواهم", "می\u{200C}خواهم"),
            (
                "Persian after a letter that does not join",
                "کار\u{200C}ها",
                "کار\u{200C}ها",
            ),
            ("Persian with a vowel's mark", "مُ\u{200C}ه", "مُ\u{200C}ه"),
            ("an initial form alone", "۱۴۴۵ ه\u{200D}.", "۱۴۴۵ ه\u{200D}."),
            ("Hindi", "क्\u{200D}ष क्\u{200C}ष", "क्\u{200D}ष क्\u{200C}ष"),
            ("Bengali", "র\u{200D}্যাব", "র\u{200D}্যাব"),
            ("Malayalam", "അവന്\u{200D}", "അവന്\u{200D}"),
            ("Sinhala", "ශ්\u{200D}රී", "ශ්\u{200D}රී"),
            ("Mongolian", "ᠠ\u{180B}ᠨ\u{180E}ᠠ", "ᠠ\u{180B}ᠨ\u{180E}ᠠ"),
            ("a han character's form", "葛\u{E0100}飾", "葛\u{E0100}飾"),
            ("Arabic signs of numbers", "\u{0600}١٢", "\u{0600}١٢"),
            ("an emoji of parts", "👩\u{200D}🔬", "👩\u{200D}🔬"),
            ("one with a tone", "👩🏽\u{200D}🔬", "👩🏽\u{200D}🔬"),
            ("one with a form", "❤\u{FE0F}\u{200D}🔥", "❤\u{FE0F}\u{200D}🔥"),
            ("a keycap", "1\u{FE0F}\u{20E3}", "1\u{FE0F}\u{20E3}"),
            ("a sign as text", "™\u{FE0E}", "™\u{FE0E}"),
            ("a flag", &wales, &wales),
            ("lines", "a\r\n\tb\n", "a\r\n\tb\n"),
            ("tags", "pay\u{E0069}\u{E0067}\u{E006E}", "pay"),
            ("tags after a flag", "🏴\u{E0061}\u{E0062}\u{E007F}", "🏴"),
            ("a language tag", "\u{E0001}\u{E0065}\u{E006E}a", "a"),
            (
                "direction",
                "a\u{202E}b\u{2066}c\u{2069}d\u{200E}\u{200F}\u{061C}e",
                "abcde",
            ),
            ("nothing wide", "a\u{200B}\u{2060}\u{FEFF}\u{AD}\u{34F}b", "ab"),
            ("fillers", "\u{3164}\u{FFA0}\u{115F}\u{1160}a", "a"),
            ("annotation", "\u{FFF9}漢\u{FFFA}かん\u{FFFB}", "漢かん"),
            ("a noncharacter", "a\u{FDD0}b", "ab"),
            ("joiners of Latin", "pay\u{200D}pal\u{200C}", "paypal"),
            ("a joiner first", "\u{200D}ه", "ه"),
            ("joiners in a row", "می\u{200C}\u{200C}خ", "می\u{200C}خ"),
            ("a selector alone", "a\u{FE0F}b1\u{FE0F}", "ab1"),
            ("selectors in a row", "😀\u{FE0F}\u{FE01}\u{E0123}", "😀\u{FE0F}"),
            ("a form of what has none", "a\u{E0100}", "a"),
            ("a joiner with one part", "👩\u{200D}a", "👩a"),
            ("controls", "a\0b\u{7}c\u{1B}[31m\u{9B}d\u{7F}", "abc[31md"),
            ("separators of lines", "a\u{2028}b\u{2029}c\u{85}d", "a\nb\nc\nd"),
        ] {
            assert_eq!(clean(text), cleaned, "{case}");
            let is_hidden = text != cleaned;
            let found = first_hidden(text).is_some() || first_control(text).is_some();
            assert!(found || !is_hidden, "{case}");
            assert_eq!(
                escaped(text) == text.replace('\r', r"\u{000D}"),
                !is_hidden,
                "{case}"
            );
        }
    }

    #[test]
    fn on_one_line_ends_of_lines_are_spaces() {
        for (text, line) in [
            ("a\r\nb\tc", "a b c"),
            ("a\u{2028}b\n", "a b"),
            ("a  b", "a  b"),
            ("\u{202E}a", "a"),
        ] {
            assert_eq!(clean_line(text), line);
        }
    }

    #[test]
    fn what_is_not_seen_is_shown_as_an_escape() {
        for (text, shown) in [
            ("a\u{202E}b", r"a\u{202E}b"),
            ("a\u{E0041}\u{7}", r"a\u{E0041}\u{0007}"),
            ("می\u{200C}خ a\u{200C}b", "می\u{200C}خ a\\u{200C}b"),
            ("葛\u{200B}\u{E0100}", r"葛\u{200B}\u{E0100}"),
            ("a\n\tb", "a\n\tb"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }

    /// Texts of letters of several scripts, emoji, and everything that may be hidden between them.
    fn texts() -> impl Strategy<Value = String> {
        let characters = prop::sample::select(
            "aé1# \n\r\t\0\u{85}\u{2028}یکरক্खണ്ᠠ葛👩🏽🔬❤🏴🇩\u{20E3}\u{200B}\u{200C}\u{200D}\u{200E}\u{202E}\u{2066}\u{FEFF}\
             \u{AD}\u{61C}\u{180B}\u{180E}\u{FE00}\u{FE0E}\u{FE0F}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E007F}\u{E0100}\
             \u{FFF9}\u{3164}\u{64B}\u{FDD0}"
                .chars()
                .collect::<Vec<_>>(),
        );
        let own = prop::collection::vec(characters, 0..12).prop_map(String::from_iter);
        prop_oneof![own, any::<String>()]
    }

    proptest! {
        #[test]
        fn a_clean_text_stays_as_it_is_and_hides_nothing(text in texts()) {
            let once = clean(&text).into_owned();
            prop_assert_eq!(first_hidden(&once), None);
            prop_assert!(once.chars().all(|c| "\n\r\t".contains(c) || !is_control(c)));
            prop_assert_eq!(clean(&once), &*once);
            let line = clean_line(&text).into_owned();
            prop_assert_eq!(first_hidden(&line), None);
            prop_assert_eq!(first_control(&line), None);
            prop_assert_eq!(clean_line(&line), &*line);
        }

        #[test]
        fn what_is_shown_hides_nothing(text in texts()) {
            let shown = escaped(&text).into_owned();
            prop_assert_eq!(first_hidden(&shown), None);
            prop_assert!(shown.chars().all(|c| "\n\t".contains(c) || !is_control(c)));
        }

        #[test]
        fn a_phrase_has_the_same_key_when_it_is_clean(text in texts()) {
            // Control characters are refused, and so are keys in which something is hidden still.
            let raw: String = text.chars().filter(|&c| c.is_whitespace() || !is_control(c)).collect();
            let key = normalize(&raw);
            if first_hidden(&key).is_none() {
                prop_assert_eq!(normalize(&clean_line(&raw)), key);
            }
        }
    }
}
