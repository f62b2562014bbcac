//! The forms of keys and qualifiers: which spellings are one.

use crate::{
    evidence::DomainPattern,
    normalize::{
        MAX_KEY_CHARS, NORMALIZATION_VERSION, NormalizedKey, compose, normalize, parse_choice, parse_exact,
    },
    ratings::target_name,
    violation::{Invalid, bounded_line, bounded_text},
};

/// How a key or qualifier is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Any spelling of a phrase; see [`mod@crate::normalize`]. 1 to 512 characters.
    Phrase,
    /// A phrase, or nothing.
    PhraseOrNone,
    /// An id of the application; see [`parse_choice`]. 1 to 256 characters.
    Choice,
    /// A pattern of domains; see [`DomainPattern`].
    Domain,
    /// A text that is compared byte for byte: `A1` and `a1` are two. 1 to 256 characters.
    Exact,
    /// What an AI is asked for: as exact, but any spelling of a target that every namespace has is that target; see
    /// [`target_name`]. 1 to 256 characters.
    Target,
    /// One of these names.
    OneOf(&'static [&'static str]),
}

impl Form {
    /// The version of the normalisation that makes texts in this form; 0 where it is no phrase.
    pub const fn normalization_version(self) -> u32 {
        match self {
            Self::Phrase | Self::PhraseOrNone => NORMALIZATION_VERSION,
            Self::Choice | Self::Domain | Self::Exact | Self::Target | Self::OneOf(_) => 0,
        }
    }

    /// The text in this form: equal for all spellings that are one.
    pub fn parse(self, raw: &str) -> Result<String, Invalid> {
        match self {
            Self::Phrase => NormalizedKey::parse(raw).map(|key| key.as_str().to_owned()),
            Self::PhraseOrNone if raw.trim().is_empty() => Ok(String::new()),
            Self::PhraseOrNone => Self::Phrase.parse(raw),
            Self::Choice => parse_choice(raw),
            Self::Domain => DomainPattern::parse(raw).map(|pattern| pattern.to_string()),
            Self::Exact => parse_exact(raw),
            Self::Target => parse_exact(target_name(raw)),
            Self::OneOf(names) => {
                let sought = raw.trim().to_ascii_lowercase();
                let found = names.iter().find(|name| **name == sought);
                found
                    .map(|name| (*name).to_owned())
                    .ok_or_else(|| Invalid::new(format!("must be one of {}, is {raw:?}", names.join(", "))))
            }
        }
    }

    /// The beginning of texts in this form that `raw` is the beginning of; may be empty. Of a domain in other scripts only
    /// the whole is known in its form.
    pub fn prefix(self, raw: &str) -> Result<String, Invalid> {
        match self {
            Self::Phrase | Self::PhraseOrNone => Ok(normalize(&bounded_line(raw, 0, MAX_KEY_CHARS)?)),
            Self::Choice => bounded_text(&compose(raw), 0, 256),
            Self::Domain if raw.is_ascii() => Ok(bounded_text(raw, 0, MAX_KEY_CHARS)?.to_ascii_lowercase()),
            Self::Domain => self.parse(raw),
            Self::Exact | Self::Target | Self::OneOf(_) => bounded_text(raw, 0, MAX_KEY_CHARS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_in_the_form_of_what_it_begins() {
        for (form, beginning, expected) in [
            (Form::Phrase, " Set UP", "set up"),
            (Form::Choice, " Create_", "Create_"),
            (Form::Domain, "*.Exam", "*.exam"),
            (Form::Domain, "Example.", "example."),
            (Form::Domain, "bücher.example", "xn--bcher-kva.example"),
            (Form::Exact, "INTER", "INTER"),
            (Form::Exact, "", ""),
        ] {
            assert_eq!(form.prefix(beginning).as_deref(), Ok(expected), "{form:?}");
        }
    }

    #[test]
    fn a_form_says_which_spellings_are_one() {
        for (form, one, other, are_one) in [
            (Form::Phrase, "Set up  a CSA", "set up a csa ", true),
            (Form::Phrase, "cafe\u{301}", "CAF\u{c9}", true),
            (Form::Choice, " cafe\u{301}", "caf\u{e9}", true),
            (Form::Choice, "Caf\u{e9}", "caf\u{e9}", false),
            (Form::Choice, "a  b", "a b", false),
            (Form::Domain, "*.Example.ORG.", " *.example.org", true),
            (Form::Domain, "*.example.org", "example.org", false),
            (Form::Exact, " A1", "A1 ", true),
            (Form::Exact, "A1", "a1", false),
            (Form::Exact, "cafe\u{301}", "caf\u{e9}", false),
            (Form::Target, "summarize-daily", "SUMMARIZE_DAILY", true),
            (Form::Target, "triage", "TRIAGE", false),
            (Form::OneOf(&["human", "file"]), " Human", "human", true),
        ] {
            let (one, other) = (form.parse(one).unwrap(), form.parse(other).unwrap());
            assert_eq!(one == other, are_one, "{form:?}: {one} and {other}");
        }
    }

    #[test]
    fn a_text_in_its_form_stays_as_it_is() {
        for form in [Form::Phrase, Form::Choice, Form::Exact] {
            let text = form.parse(" Ｓｅｔ up\u{2003}a cafe\u{301}").unwrap();
            assert_eq!(form.parse(&text), Ok(text));
        }
    }

    #[test]
    fn invisible_characters_in_choices_are_refused_by_number() {
        for invisible in [
            '\u{200B}', '\u{200D}', '\u{FEFF}', '\u{202E}', '\u{AD}', '\u{FE0F}',
        ] {
            let refused = parse_choice(&format!("create{invisible}csa")).unwrap_err();
            let expected = format!(
                "must not contain invisible characters, has U+{:04X}",
                invisible as u32
            );
            assert_eq!(refused.0, expected);
        }
    }
}
