//! A phrase and the verb it invokes. Decided by votes; the verbs proposed for one phrase are rivals.

use super::{Field, Form, KindRules, Learned, Rule};
use crate::roles::RiskLevel;

pub(super) const RULES: KindRules = KindRules {
    name: "invocation_phrase",
    number: 1,
    summary: "A phrase and the verb it invokes",
    short_name: "phrase",
    aliases: &["verb", "invocation-phrase", "phrase_mapping", "verb_correction"],
    key: Form::Phrase,
    qualifier: None,
    rule: Rule::Votes {
        default_risk: RiskLevel::Medium,
    },
    parse: |choice| Ok(Learned::Verb(choice)),
    allows: |_, _| Ok(()),
    is_answer: true,
    arrow: '→',
};

pub(super) fn fields(verb: &str) -> Vec<Field<'_>> {
    vec![Field::distinguishing("verb", verb)]
}

pub(super) fn maps_to(verb: &str) -> &str {
    verb
}

pub(super) fn describe(input: &str, verb: &str) -> String {
    format!("“{input}” means the verb “{verb}”")
}
