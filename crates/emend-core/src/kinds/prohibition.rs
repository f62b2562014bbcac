//! A choice that must never be offered for a phrase. Decided by votes; the choice is the key's qualifier, so there are
//! no rivals.

use super::{Field, Form, KindRules, Learned, Qualifier, Rule};
use crate::roles::RiskLevel;

pub(super) const RULES: KindRules = KindRules {
    name: "prohibition",
    number: 3,
    summary: "A choice that must never be offered for a phrase",
    short_name: "prohibition",
    aliases: &["prohibit"],
    key: Form::Phrase,
    qualifier: Some(Qualifier {
        form: Form::Choice,
        meaning: "the forbidden choice",
        field: Some("forbidden_choice"),
        default: None,
    }),
    rule: Rule::Votes {
        default_risk: RiskLevel::Medium,
    },
    parse: |choice| Ok(Learned::Forbidden(choice)),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '↛',
};

pub(super) fn fields(choice: &str) -> Vec<Field<'_>> {
    vec![Field::distinguishing("forbidden_choice", choice)]
}

pub(super) fn maps_to(choice: &str) -> &str {
    choice
}

pub(super) fn describe(phrase: &str, choice: &str) -> String {
    format!("“{choice}” is never offered for “{phrase}”")
}
