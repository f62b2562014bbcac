//! What people say is wrong, and what they propose to learn.

use crate::{
    ids::{Namespace, UserId},
    kinds::{Kind, parse_choice},
    normalize::NormalizedKey,
    personal_data,
    resource::{Learned, ResourceKey, ResourceValue},
    violation::{Invalid, Violations},
};

/// Who a correction is learned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// Everybody in the namespace.
    #[default]
    Global,
    /// The reporter alone.
    User,
}

/// The form of a correction. Forms that teach the same kind vote in the same contests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The wrong verb was chosen.
    Verb,
    /// A phrase means this verb.
    PhraseMapping,
    /// The wrong entity was chosen.
    Entity,
    /// A choice must never be offered.
    Prohibition,
}

impl Form {
    /// The kind of resource it teaches.
    pub fn kind(self) -> Kind {
        match self {
            Self::Verb | Self::PhraseMapping => Kind::InvocationPhrase,
            Self::Entity => Kind::EntityAlias,
            Self::Prohibition => Kind::Prohibition,
        }
    }

    /// The wire contract's field names for the input and the right choice, used in violations.
    fn fields(self) -> (&'static str, &'static str) {
        match self {
            Self::Verb | Self::Entity => ("original_input", "correct_choice"),
            Self::PhraseMapping => ("phrase", "verb"),
            Self::Prohibition => ("phrase", "forbidden_choice"),
        }
    }
}

/// A valid correction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Correction {
    /// The form it has.
    pub form: Form,
    /// What the user said, as written: the key before normalisation.
    pub input: String,
    /// `input` in normal form.
    pub key: NormalizedKey,
    /// What the system chose, if known.
    pub system_choice: Option<String>,
    /// What the input maps to; for a prohibition the forbidden choice.
    pub choice: String,
}

/// What a correction does to one contest: it proposes a value there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The contest.
    pub key: ResourceKey,
    /// The proposed value.
    pub value: ResourceValue,
    /// What the system chose, shown with the candidate.
    pub system_choice: Option<String>,
    /// Personal data was found in the key or value, and the scope is GLOBAL.
    pub personal_data: bool,
}

impl Correction {
    /// Parses the fields of a correction. An empty `system_choice` means none.
    pub fn parse(form: Form, input: &str, system_choice: &str, choice: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let (input_field, choice_field) = form.fields();
        let display = violations.check(input_field, ResourceValue::parse_display(input));
        let key = display
            .is_some()
            .then(|| violations.check(input_field, NormalizedKey::parse(input)))
            .flatten();
        let parsed_choice = violations.check(choice_field, parse_choice(choice));
        let system_choice = if system_choice.trim().is_empty() {
            Some(None)
        } else {
            violations
                .check("system_choice", parse_choice(system_choice))
                .map(Some)
        };
        if let (Some(Some(system)), Some(right)) = (&system_choice, &parsed_choice)
            && system == right
        {
            violations.add(
                choice_field,
                "must differ from system_choice: there is nothing to correct",
            );
        }
        let parsed = (|| {
            Some(Self {
                form,
                input: display?,
                key: key?,
                system_choice: system_choice?,
                choice: parsed_choice?,
            })
        })();
        violations.finish(parsed)
    }

    /// What it proposes in `namespace`, for everybody or for one user: its effects, each in a contest of its own.
    pub fn effects(&self, namespace: &Namespace, user: Option<UserId>) -> Vec<Proposal> {
        let kind = self.form.kind();
        let for_everybody = user.is_none();
        vec![Proposal {
            key: ResourceKey {
                namespace: namespace.clone(),
                kind,
                key: self.key.clone(),
                qualifier: if kind.rules().qualifier.is_some() {
                    self.choice.clone()
                } else {
                    String::new()
                },
                user,
            },
            value: ResourceValue::new(&*self.input, Learned::of(kind, self.choice.clone())),
            system_choice: self.system_choice.clone(),
            personal_data: for_everybody
                && (personal_data::found_in(&self.input) || personal_data::found_in(&self.choice)),
        }]
    }
}

/// The user a correction with that scope is learned for. USER scope without a reporter id is invalid.
pub fn scope_user(
    scope: Scope,
    reporter: Option<&crate::ids::ReporterId>,
) -> Result<Option<UserId>, Invalid> {
    match (scope, reporter) {
        (Scope::Global, _) => Ok(None),
        (Scope::User, Some(reporter)) => Ok(Some(reporter.into())),
        (Scope::User, None) => Err(Invalid::new("is required with scope USER")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_correction_and_a_phrase_mapping_of_one_phrase_share_a_contest() {
        let namespace = Namespace::parse("fund-admin").unwrap();
        let verb = Correction::parse(Form::Verb, " Set up a CSA", "create_csa", "create_isda").unwrap();
        let mapping = Correction::parse(Form::PhraseMapping, "set up a csa", "", "create_isda").unwrap();
        let (verb, mapping) = (verb.effects(&namespace, None), mapping.effects(&namespace, None));
        assert_eq!(verb[0].key, mapping[0].key);
        assert_eq!(verb[0].value.learned, mapping[0].value.learned);
    }

    #[test]
    fn every_invalid_field_is_named() {
        let wrong = Correction::parse(Form::Entity, " ", &"x".repeat(257), "")
            .unwrap_err()
            .into_vec();
        let fields: Vec<_> = wrong.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["original_input", "correct_choice", "system_choice"]);
        let same = Correction::parse(Form::Verb, "a", "x", "x").unwrap_err();
        assert!(same.to_string().contains("must differ"));
    }

    #[test]
    fn personal_data_matters_only_in_values_for_all_users() {
        let namespace = Namespace::parse("fund-admin").unwrap();
        let correction =
            Correction::parse(Form::PhraseMapping, "mail jane.doe@example.org", "", "send_mail").unwrap();
        assert!(correction.effects(&namespace, None)[0].personal_data);
        let jane = Some(UserId::parse("jane").unwrap());
        assert!(!correction.effects(&namespace, jane)[0].personal_data);
    }
}
