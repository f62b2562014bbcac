//! Normalisation version 1: one normal form for all spellings of a phrase.
//!
//! NFKC case-folding (Unicode Standard, section 3.13, `NFKC_Casefold`), then white space folded to single spaces and
//! trimmed; the result is in NFC. The services and the client run the same function, so that a look-up key equals the
//! learned key byte for byte. The Unicode tables come with the pinned `icu_normalizer` and `icu_casemap` crates; the
//! test vectors guard against changes. A change in results requires a new version number.

use std::{borrow::Cow, fmt, sync::Arc};

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizer;

use crate::violation::{Invalid, bounded_prose, bounded_text, check_hidden, has_hidden};

/// The version of [`normalize`], stored with every key.
pub const NORMALIZATION_VERSION: u32 = 1;

/// Maximum length of a phrase in characters, before and after normalisation.
pub const MAX_KEY_CHARS: usize = 512;

/// A phrase in normal form: never empty, at most [`MAX_KEY_CHARS`] characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NormalizedKey(Arc<str>);

impl NormalizedKey {
    /// Normalises a phrase. Invalid if it is empty or longer than 512 characters before or after normalisation, or contains
    /// control characters other than white space, or what people do not see and normalisation leaves.
    pub fn parse(raw: &str) -> Result<Self, Invalid> {
        bounded_prose(raw, 1, MAX_KEY_CHARS)?;
        // Of the phrase as it is: nodes look it up so.
        let key = normalize(raw);
        let length = key.chars().count();
        if length == 0 {
            return Err(Invalid::new("is empty after normalisation"));
        }
        if length > MAX_KEY_CHARS {
            return Err(Invalid::new(format!(
                "must be at most {MAX_KEY_CHARS} characters after normalisation, has {length}"
            )));
        }
        check_hidden(&key)?;
        Ok(Self(key.into()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<NormalizedKey> for Arc<str> {
    fn from(key: NormalizedKey) -> Self {
        key.0
    }
}

impl fmt::Display for NormalizedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NormalizedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NormalizedKey({:?})", &self.0)
    }
}

/// The normal form of a phrase. Idempotent.
pub fn normalize(raw: &str) -> String {
    if raw.is_ascii() {
        return fold_white_space(&raw.to_ascii_lowercase());
    }
    let nfkc = ComposingNormalizer::new_nfkc();
    let case = CaseMapper::new();
    let mut text: Cow<'_, str> = Cow::Borrowed(raw);
    // Folding can leave NFKC, and removing ignorable characters can bring together characters that compose, so repeat
    // until nothing changes. Two rounds suffice for all but contrived text.
    for _ in 0..8 {
        let kept: String = text.chars().filter(|&c| !is_default_ignorable(c)).collect();
        let composed = nfkc.normalize(&kept);
        let folded = case.fold_string(&composed);
        let next = nfkc.normalize(&folded).into_owned();
        if next == *text {
            break;
        }
        text = Cow::Owned(next);
    }
    fold_white_space(&text)
}

fn fold_white_space(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// Normalization Form C: one encoding for texts that are equal to a reader (Unicode Standard Annex #15).
pub fn compose(raw: &str) -> Cow<'_, str> {
    if raw.is_ascii() {
        return Cow::Borrowed(raw);
    }
    ComposingNormalizer::new_nfc().normalize(raw)
}

/// `Default_Ignorable_Code_Point` (Unicode `DerivedCoreProperties`): invisible, so it must not distinguish two phrases.
pub(crate) fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// A verb or entity id: 1 to 256 characters, trimmed and in NFC, without invisible characters, so that what looks alike is
/// one choice. Case and width are kept.
pub fn parse_choice(raw: &str) -> Result<String, Invalid> {
    let text = bounded_text(&compose(raw), 1, 256)?;
    // Also none that a script or an emoji needs: two choices must not look alike.
    match text.chars().find(|&c| is_default_ignorable(c)) {
        None => Ok(text),
        Some(invisible) => Err(has_hidden(invisible)),
    }
}

/// Maximum length of an exact text in characters.
const MAX_EXACT_CHARS: usize = 256;

/// A text that is compared byte for byte: `A1` and `a1` are two. 1 to 256 characters.
pub fn parse_exact(raw: &str) -> Result<String, Invalid> {
    bounded_text(raw, 1, MAX_EXACT_CHARS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vectors_of_version_1() {
        for (raw, key) in [
            ("  Set up a CSA ", "set up a csa"),
            ("set up a csa", "set up a csa"),
            ("Ｓｅｔ　ｕｐ　ａ　ＣＳＡ", "set up a csa"),
            ("Straße", "strasse"),
            ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
            ("ﬁle", "file"),
            ("e\u{301}", "é"),
            ("İ", "i\u{307}"),
            ("ｶﾞ", "ガ"),
            ("①②", "12"),
            ("soft\u{AD}hyphen", "softhyphen"),
            ("a\u{200B}b", "ab"),
            ("tab\tand\u{3000}wide\u{A0}spaces\n", "tab and wide spaces"),
            ("カードを手札に戻す", "カードを手札に戻す"),
        ] {
            assert_eq!(normalize(raw), key, "{raw:?}");
        }
    }

    #[test]
    fn text_that_normalises_to_nothing_is_invalid() {
        for raw in ["", "   ", "\u{200B}", "\u{3164}\u{FEFF}"] {
            assert!(NormalizedKey::parse(raw).is_err(), "{raw:?}");
        }
    }

    #[test]
    fn a_key_hides_nothing() {
        for raw in [
            "set\u{202E} up",
            "set up\u{E0041}\u{E007F}",
            "\u{FEFF}s\u{200D}et\u{FE0F} up",
        ] {
            assert_eq!(NormalizedKey::parse(raw).unwrap().as_str(), "set up", "{raw:?}");
        }
        // Normalisation leaves it, and so does a node that looks it up.
        let refused = NormalizedKey::parse("set\u{FFF9} up").unwrap_err();
        assert_eq!(refused.0, "must not contain invisible characters, has U+FFF9");
    }

    #[test]
    fn the_bound_holds_before_and_after() {
        assert!(NormalizedKey::parse(&"x".repeat(512)).is_ok());
        assert!(NormalizedKey::parse(&"x".repeat(513)).is_err());
        // One character that normalises to eighteen.
        assert!(NormalizedKey::parse(&"\u{FDFA}".repeat(40)).is_err());
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(raw in "\\PC{0,40}") {
            let once = normalize(&raw);
            prop_assert_eq!(normalize(&once), once);
        }

        #[test]
        fn case_of_ascii_never_matters(raw in "[a-zA-Z0-9 ]{0,40}") {
            prop_assert_eq!(normalize(&raw), normalize(&raw.to_uppercase()));
        }

        #[test]
        fn the_ascii_fast_path_equals_the_general_path(raw in "[ -~]{0,40}") {
            // A full-width digit forces the general path.
            let long = normalize(&format!("{raw} １"));
            let short = normalize(&format!("{raw} 1"));
            prop_assert_eq!(long, short);
        }
    }
}
