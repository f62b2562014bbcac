//! What can be learned. A new kind is one module here, one row in [`Kind::rules`], its proto message and its tests.

mod entity_alias;
mod invocation_phrase;
mod prohibition;

use std::fmt;

use crate::{
    normalize::{compose, is_default_ignorable},
    policy::RiskLevel,
    violation::{Invalid, bounded_text},
};

/// What a resource is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A phrase and the verb it invokes.
    InvocationPhrase,
    /// A name people use and the entity it means.
    EntityAlias,
    /// A choice that must never be offered for a phrase.
    Prohibition,
}

/// How a kind behaves; one row per kind.
#[derive(Debug, Clone, Copy)]
pub struct KindRules {
    /// Stable name, used in files, on command lines and in messages.
    pub name: &'static str,
    /// The number in `emend.common.v1.ResourceKind`, also used in databases and digests.
    pub number: i32,
    /// The risk level if no policy sets one.
    pub default_risk: RiskLevel,
    /// What the qualifier is, if keys of this kind need one.
    pub qualifier: Option<&'static str>,
    /// Completes a message to the reporter: what "{input}" now means.
    pub describe: fn(input: &str, maps_to: &str) -> String,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::InvocationPhrase, Self::EntityAlias, Self::Prohibition];

    /// How this kind behaves.
    pub const fn rules(self) -> &'static KindRules {
        match self {
            Self::InvocationPhrase => &invocation_phrase::RULES,
            Self::EntityAlias => &entity_alias::RULES,
            Self::Prohibition => &prohibition::RULES,
        }
    }

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        self.rules().number
    }

    /// The stable name, for example `invocation_phrase`.
    pub const fn name(self) -> &'static str {
        self.rules().name
    }

    /// The kind with this number, if this version knows it.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Parses the stable name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
                Invalid::new(format!("must be one of {}", names.join(", ")))
            })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A verb or entity id: 1 to 256 characters, trimmed and in NFC, without invisible characters, so that what looks alike is
/// one choice. Case and width are kept.
pub fn parse_choice(raw: &str) -> Result<String, Invalid> {
    let text = bounded_text(&compose(raw), 1, 256)?;
    match text.chars().find(|&c| is_default_ignorable(c)) {
        None => Ok(text),
        Some(invisible) => Err(Invalid::new(format!(
            "must not contain invisible characters, has U+{:04X}",
            invisible as u32
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_that_look_alike_are_one() {
        assert_eq!(parse_choice(" cafe\u{301} "), parse_choice("caf\u{e9}"));
        assert_ne!(parse_choice("Caf\u{e9}"), parse_choice("caf\u{e9}"));
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

    #[test]
    fn names_and_numbers_of_kinds_are_unique() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind.number()), Some(kind));
            assert_eq!(Kind::parse(kind.name()), Ok(kind));
        }
        assert_eq!(Kind::from_number(0), None);
        assert!(Kind::parse("verbs").unwrap_err().0.contains("entity_alias"));
    }
}
