//! The policy that a form says.

use emend_core::{Kind, kinds::Rule};
use emend_proto::learning::v1::{Policy, ReviewPolicy, RulingPolicy, WindowPolicy, policy};
use tonic::Status;

use super::fields::{
    COUNTINGS, LANGUAGES, REVIEWERS, REVIEWERS_NEEDED, RISKS, ROLES, SWITCH, is_approved, paths,
};
use crate::{form::Fields, typed};

/// The number of the choice that was made.
pub(super) fn choice(fields: &Fields, field: &'static str, choices: &[(i32, &str)]) -> Result<i32, Status> {
    let chosen = choices.iter().find(|(_, name)| *name == fields.get(field));
    let names = || {
        choices
            .iter()
            .map(|(_, name)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let chosen = chosen.ok_or_else(|| {
        Status::from(emend_base::Error::invalid(
            field,
            format!("must be one of {}", names()),
        ))
    })?;
    Ok(chosen.0)
}

/// The policy that a form says, and which of its fields the form has.
pub(super) fn changed(kind: Kind, fields: &Fields) -> Result<(Policy, Vec<&'static str>), Status> {
    if fields.has("frozen") {
        let policy = Policy {
            frozen: fields.get("frozen") == "true",
            ..Policy::default()
        };
        return Ok((policy, vec!["frozen"]));
    }
    let mut policy = match kind.rules().rule {
        Rule::Votes { .. } => Policy {
            risk_level: choice(fields, "risk_level", &RISKS)?,
            counting: choice(fields, "counting", &COUNTINGS)?,
            threshold: typed::number(fields, "threshold")?,
            half_life: typed::span(fields, "half_life")?,
            max_derived_voters: typed::number(fields, "max_derived_voters")?,
            max_counted_feedback: typed::number(fields, "max_counted_feedback")?,
            ..Policy::default()
        },
        _ => Policy {
            rule: Some(rule(kind, fields)?),
            ..Policy::default()
        },
    };
    if is_approved(kind) {
        policy.reviewers_needed = choice(fields, REVIEWERS_NEEDED, &REVIEWERS)?;
    }
    policy.max_resources = typed::number(fields, "max_resources")?;
    policy.max_value_bytes = typed::number(fields, "max_value_bytes")?;
    Ok((policy, paths(kind)))
}

fn rule(kind: Kind, fields: &Fields) -> Result<policy::Rule, Status> {
    Ok(match kind.rules().rule {
        Rule::Window(_) => policy::Rule::Window(WindowPolicy {
            good: typed::number(fields, "window.good")?,
            bad: typed::number(fields, "window.bad")?,
            max_text_chars: typed::number(fields, "window.max_text_chars")?,
            language: choice(fields, "window.language", &LANGUAGES)?,
        }),
        Rule::Review(_) => policy::Rule::Review(ReviewPolicy {
            min_bad: typed::number(fields, "review.min_bad")?,
            automatic: choice(fields, "review.automatic", &SWITCH)? == 1,
        }),
        Rule::Ruling(_) | Rule::Votes { .. } => policy::Rule::Ruling(RulingPolicy {
            entitled_role: choice(fields, "ruling.entitled_role", &ROLES)?,
        }),
    })
}

#[cfg(test)]
mod tests {
    use emend_proto::{
        common::v1::{Language as PromptLanguage, RiskLevel},
        learning::v1::{Counting, EntitledRole},
    };

    use super::{
        super::fields::{Input, fields},
        *,
    };
    use crate::text::Language;

    /// What the form of this policy sends when nobody changed anything.
    fn sent(kind: Kind, policy: &Policy) -> Fields {
        let fields = fields(Language::English, kind, policy);
        fields.into_iter().fold(Fields::default(), |sent, field| {
            let value = match field.input {
                Input::Choices(choices) => {
                    let chosen = choices.into_iter().find(|choice| choice.is_chosen);
                    chosen.expect("one is chosen").value
                }
                Input::Number { value, .. } => value.to_string(),
                Input::Span(span) => span,
            };
            sent.with(field.path, &value)
        })
    }

    #[test]
    fn a_form_that_nobody_changed_says_the_policy_it_was_made_of() {
        let votes = Policy {
            risk_level: RiskLevel::High as i32,
            counting: Counting::Occurrences as i32,
            threshold: 5,
            half_life: Some(prost_types::Duration {
                seconds: 90 * 86_400,
                nanos: 0,
            }),
            max_derived_voters: 2,
            max_counted_feedback: 500,
            reviewers_needed: 2,
            max_resources: 7,
            max_value_bytes: 8,
            ..Policy::default()
        };
        let with = |rule| Policy {
            rule: Some(rule),
            max_resources: 7,
            max_value_bytes: 8,
            ..Policy::default()
        };
        let window = with(policy::Rule::Window(WindowPolicy {
            good: 1,
            bad: 2,
            max_text_chars: 300,
            language: PromptLanguage::Ja as i32,
        }));
        let approved = |rule| Policy {
            reviewers_needed: 1,
            ..with(rule)
        };
        let review = approved(policy::Rule::Review(ReviewPolicy {
            min_bad: 4,
            automatic: true,
        }));
        let ruling = approved(policy::Rule::Ruling(RulingPolicy {
            entitled_role: EntitledRole::Admin as i32,
        }));
        for (kind, policy) in [
            (Kind::InvocationPhrase, votes),
            (Kind::FewShotSet, window),
            (Kind::Prompt, review),
            (Kind::DomainRule, ruling),
        ] {
            let (again, named) = changed(kind, &sent(kind, &policy)).unwrap();
            assert_eq!((again, named), (policy, paths(kind)), "{kind:?}");
        }
    }

    #[test]
    fn the_switch_changes_nothing_else() {
        let frozen = Fields::parse(b"frozen=true&threshold=5");
        let (policy, paths) = changed(Kind::InvocationPhrase, &frozen).unwrap();
        assert!(policy.frozen);
        assert_eq!((policy.threshold, paths), (0, vec!["frozen"]));
    }

    #[test]
    fn what_is_no_number_names_its_field() {
        let form = Fields::parse(b"risk_level=medium&counting=voters&threshold=many");
        let status = changed(Kind::InvocationPhrase, &form).unwrap_err();
        let explained = emend_base::status::Explained::from(&status);
        assert_eq!(explained.field_violations[0].field, "threshold");
    }
}
