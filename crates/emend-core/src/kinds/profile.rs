//! What one user knows and wants to learn, entry by entry. Decided by review: the user's own changes apply, and what a
//! generator suggests waits until the user accepts it.

use std::borrow::Cow;

use super::{Field, Form, KindRules, Learned, Qualifier, ReviewRules, Rule};
use crate::{
    normalize::MAX_KEY_CHARS,
    violation::{Invalid, bounded_line},
};

/// The key of how many years of experience a user has.
pub const EXPERIENCE_YEARS: &str = "experience_years";
/// The key of what a user is a specialist in.
pub const SPECIALTIES: &str = "specialties";
/// The key of the technologies that a user knows.
pub const KNOWN_TECHNOLOGIES: &str = "known_technologies";
/// The key of what a user wants to learn.
pub const LEARNING_GOALS: &str = "learning_goals";

/// The fields of a profile that have entries.
pub const LISTS: [&str; 3] = [SPECIALTIES, KNOWN_TECHNOLOGIES, LEARNING_GOALS];

/// The most years of experience.
pub const MAX_YEARS: u32 = 80;

/// One entry of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProfileEntry {
    /// How many years of experience the user has.
    Years(u32),
    /// An entry of a list, as the user writes it.
    Text(String),
}

impl ProfileEntry {
    /// Years of experience, 0 to 80.
    pub fn years(years: u32) -> Result<Self, Invalid> {
        if years > MAX_YEARS {
            return Err(Invalid::new(format!("must be 0 to {MAX_YEARS}, is {years}")));
        }
        Ok(Self::Years(years))
    }

    /// An entry of a list, 1 to 512 characters.
    pub fn text(text: &str) -> Result<Self, Invalid> {
        bounded_line(text, 1, MAX_KEY_CHARS).map(Self::Text)
    }

    /// `years:N`, or else an entry of a list.
    fn parse(choice: &str) -> Result<Self, Invalid> {
        match choice.trim().strip_prefix("years:") {
            None => Self::text(choice),
            Some(number) => number
                .parse()
                .map_err(|_| Invalid::new(format!("must be years:0 to years:{MAX_YEARS}, is {choice:?}")))
                .and_then(Self::years),
        }
    }
}

pub(super) const RULES: KindRules = KindRules {
    name: "profile",
    number: 10,
    summary: "What a user knows and wants to learn",
    short_name: "profile",
    aliases: &["profiles"],
    key: Form::OneOf(&[EXPERIENCE_YEARS, SPECIALTIES, KNOWN_TECHNOLOGIES, LEARNING_GOALS]),
    qualifier: Some(Qualifier {
        form: Form::PhraseOrNone,
        meaning: "the entry",
        field: Some("entry"),
        default: None,
    }),
    rule: Rule::Review(ReviewRules {
        rejection_closes_to_generators: true,
        of_users: true,
        numbered_with: None,
        numbered: |_, _| {},
    }),
    parse: |choice| ProfileEntry::parse(&choice).map(Learned::ProfileEntry),
    allows,
    is_answer: false,
    arrow: '∋',
};

fn allows(field: &str, entry: &str) -> Result<(), Invalid> {
    match (field == EXPERIENCE_YEARS, entry.is_empty()) {
        (true, false) => Err(Invalid::new("must have no entry: experience_years is a number")),
        (false, true) => Err(Invalid::new(format!("must have an entry: {field} is a list"))),
        _ => Ok(()),
    }
}

/// Checks that an entry is of its key's form; the error names the field of the value.
pub(super) fn check_key(field: &str, entry: &ProfileEntry) -> Result<(), (&'static str, Invalid)> {
    match (field == EXPERIENCE_YEARS, entry) {
        (true, ProfileEntry::Text(_)) => {
            let why = format!("must be absent: {EXPERIENCE_YEARS} is a number of years");
            Err(("entry", Invalid::new(why)))
        }
        (false, ProfileEntry::Years(_)) => {
            let why = format!("must be absent: {field} is a list of entries");
            Err(("years", Invalid::new(why)))
        }
        (true, ProfileEntry::Years(_)) | (false, ProfileEntry::Text(_)) => Ok(()),
    }
}

pub(super) fn fields(entry: &ProfileEntry) -> Vec<Field<'_>> {
    let (years, text) = match entry {
        ProfileEntry::Years(years) => (years.to_string(), ""),
        ProfileEntry::Text(text) => (String::new(), text.as_str()),
    };
    vec![
        Field::shown("entry", text),
        Field {
            name: "years",
            text: Cow::Owned(years),
            distinguishes: true,
        },
    ]
}

pub(super) fn maps_to(entry: &ProfileEntry) -> &str {
    match entry {
        ProfileEntry::Years(_) => "years",
        ProfileEntry::Text(text) => text,
    }
}

pub(super) fn describe(field: &str, entry: &ProfileEntry) -> String {
    match entry {
        ProfileEntry::Years(years) => format!("the profile has {years} years of experience"),
        ProfileEntry::Text(text) => format!("“{text}” is one of the profile's {field}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kinds::Kind, resource::ResourceKey};

    fn key(field: &str, entry: &str, user: &str) -> Result<ResourceKey, String> {
        let parsed = ResourceKey::parse("assistant", Some(Kind::Profile), field, entry, user);
        let key = parsed.map_err(|violations| violations.to_string())?;
        key.check_new().map_err(|(_, invalid)| invalid.0)?;
        Ok(key)
    }

    #[test]
    fn exactly_the_years_have_no_entry_and_every_entry_is_a_users() {
        assert!(key(EXPERIENCE_YEARS, "", "u1").is_ok());
        for list in LISTS {
            assert!(key(list, "Rust", "u1").is_ok(), "{list}");
            assert!(key(list, "", "u1").unwrap_err().contains("must have an entry"));
        }
        assert!(
            key(EXPERIENCE_YEARS, "ten", "u1")
                .unwrap_err()
                .contains("must have no entry")
        );
        assert!(key(SPECIALTIES, "Rust", "").unwrap_err().contains("is required"));
        assert!(
            key("hobbies", "Rust", "u1")
                .unwrap_err()
                .contains("must be one of")
        );
    }

    #[test]
    fn entries_that_differ_in_case_or_width_are_one() {
        let one = key(KNOWN_TECHNOLOGIES, "Ｒｕｓｔ", "u1").unwrap();
        assert_eq!(one, key(KNOWN_TECHNOLOGIES, " rust ", "u1").unwrap());
    }

    #[test]
    fn an_entry_is_of_the_form_of_its_key() {
        let (years, rust) = (ProfileEntry::Years(3), ProfileEntry::Text("Rust".into()));
        for (field, entry, wrong) in [
            (EXPERIENCE_YEARS, &years, None),
            (EXPERIENCE_YEARS, &rust, Some("entry")),
            (SPECIALTIES, &rust, None),
            (LEARNING_GOALS, &years, Some("years")),
        ] {
            let checked = check_key(field, entry);
            assert_eq!(checked.err().map(|(field, _)| field), wrong, "{field}");
        }
    }

    #[test]
    fn a_choice_says_years_or_an_entry() {
        let parse = |choice: &str| ProfileEntry::parse(choice);
        assert_eq!(parse("years:12"), Ok(ProfileEntry::Years(12)));
        assert_eq!(parse(" Rust "), Ok(ProfileEntry::Text("Rust".into())));
        assert!(parse("years:81").unwrap_err().0.contains("0 to 80"));
        assert!(parse("years:many").is_err());
        assert!(parse("").is_err());
    }
}
