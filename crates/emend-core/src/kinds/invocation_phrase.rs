//! A phrase and the verb it invokes. Decided by votes; the verbs proposed for one phrase are rivals.

use super::{Field, Form, KindRules, Learned, Rule, any_key};
use crate::{policy::RiskLevel, violation::Invalid};

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
    allows: any_key,
    is_answer: true,
    arrow: '→',
};

pub(super) fn learned(verb: String) -> Result<Learned, Invalid> {
    Ok(Learned::Verb(verb))
}

pub(super) fn fields(verb: &str) -> Vec<Field<'_>> {
    vec![Field::distinguishing("verb", verb)]
}

pub(super) fn maps_to(verb: &str) -> &str {
    verb
}

pub(super) fn describe(input: &str, verb: &str) -> String {
    format!("“{input}” means the verb “{verb}”")
}
