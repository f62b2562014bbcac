//! The values of resources.

use emend_core::{
    ClaimState, DomainRule, DomainRuleValue, EdgeLabel, Example, FeedbackId, FewShotSet, Invalid, Kind,
    Learned, NearLookup, NearMethod, RatedId, ResourceValue, Synonym, Violations,
    evidence::{Finding, RuleCause},
    kinds::ReasonCode,
    normalize::parse_choice,
};
use emend_proto::common::v1::{self as pb, resource_value::Value};

use super::numbers::{
    self, decision_number, edge_relation, finding_number, level_number, relation_number, trust_level,
};
use crate::{outputs, search};

/// The kind that a value is of.
pub(crate) fn kind_of(value: &Value) -> Kind {
    match value {
        Value::InvocationPhrase(_) => Kind::InvocationPhrase,
        Value::EntityAlias(_) => Kind::EntityAlias,
        Value::Prohibition(_) => Kind::Prohibition,
        Value::Synonym(_) => Kind::Synonym,
        Value::DomainRule(_) => Kind::DomainRule,
        Value::FewShotSet(_) => Kind::FewShotSet,
        Value::ClaimState(_) => Kind::ClaimState,
        Value::EdgeLabel(_) => Kind::EdgeLabel,
        Value::Prompt(_) => Kind::Prompt,
        Value::Profile(_) => Kind::Profile,
        Value::SearchTuning(_) => Kind::SearchTuning,
        Value::NearLookup(_) => Kind::NearLookup,
    }
}

/// What a value says was learned. Violations name the field within the value's message.
pub fn learned(value: &Value) -> Result<Learned, Violations> {
    let mut violations = Violations::new();
    let learned = match value {
        Value::InvocationPhrase(pb::InvocationPhraseValue { verb }) => {
            violations.check("verb", parse_choice(verb)).map(Learned::Verb)
        }
        Value::EntityAlias(pb::EntityAliasValue { entity_id }) => violations
            .check("entity_id", parse_choice(entity_id))
            .map(Learned::Entity),
        Value::Prohibition(pb::ProhibitionValue { forbidden_choice }) => violations
            .check("forbidden_choice", parse_choice(forbidden_choice))
            .map(Learned::Forbidden),
        Value::Synonym(pb::SynonymValue {
            relation,
            representative,
        }) => {
            let relation = violations.check("relation", numbers::relation(*relation));
            let representative =
                violations.check("representative", ResourceValue::parse_display(representative));
            relation.zip(representative).map(|(relation, representative)| {
                Learned::Synonym(Synonym {
                    relation,
                    representative,
                })
            })
        }
        Value::DomainRule(pb::DomainRuleValue {
            decision,
            level,
            cause,
            cause_id,
        }) => {
            let decision = violations.check("decision", numbers::decision(*decision));
            let level = violations.check("level", trust_level(*level));
            let cause = violations.part("", rule_cause(*cause, cause_id));
            decision
                .zip(level)
                .zip(cause)
                .and_then(|((decision, level), cause)| {
                    let rule = violations.check("level", DomainRule::new(decision, level))?;
                    Some(Learned::DomainRule(DomainRuleValue { rule, cause }))
                })
        }
        Value::FewShotSet(pb::FewShotSetValue { language, good, bad }) => {
            let language = violations.check("language", numbers::language(*language));
            let good = examples(&mut violations, "good", good);
            let bad = examples(&mut violations, "bad", bad);
            let set = (|| {
                Some(FewShotSet {
                    language: language?,
                    good: good?,
                    bad: bad?,
                })
            })();
            set.map(Learned::FewShotSet)
        }
        Value::ClaimState(pb::ClaimStateValue {
            decision,
            reason_code,
        }) => {
            let code = violations.check("reason_code", ReasonCode::parse(reason_code));
            let state = match pb::ClaimDecision::try_from(*decision) {
                Ok(pb::ClaimDecision::Rejected) => code.map(|code| Some(ClaimState::Rejected(code))),
                Ok(other @ (pb::ClaimDecision::Restored | pb::ClaimDecision::Cleared)) => {
                    if code.is_some_and(|code| code.is_some()) {
                        violations.add("reason_code", "must be empty with this decision");
                    }
                    Some((other == pb::ClaimDecision::Restored).then_some(ClaimState::Restored))
                }
                Ok(pb::ClaimDecision::Unspecified) => {
                    violations.add("decision", "is required");
                    None
                }
                Err(_) => {
                    violations.add("decision", format!("is not a known decision: {decision}"));
                    None
                }
            };
            state.map(Learned::ClaimState)
        }
        Value::EdgeLabel(pb::EdgeLabelValue { relation, cleared }) => {
            let label = match (cleared, relation) {
                (true, 0) => Ok(None),
                (true, _) => Err(Invalid::new("must be empty where cleared is set")),
                (false, relation) => edge_relation(*relation).and_then(EdgeLabel::new).map(Some),
            };
            violations.check("relation", label).map(Learned::EdgeLabel)
        }
        Value::Prompt(message) => violations.part("", outputs::prompt(message)).map(Learned::Prompt),
        Value::Profile(message) => violations
            .part("", outputs::profile_entry(message))
            .map(Learned::ProfileEntry),
        Value::SearchTuning(message) => violations
            .part("", search::tuning(message))
            .map(Learned::SearchTuning),
        Value::NearLookup(message) => violations.part("", near(message)).map(Learned::NearLookup),
    };
    violations.finish(learned)
}

/// The message of what was learned.
pub fn value(learned: &Learned) -> Value {
    match learned.clone() {
        Learned::Verb(verb) => Value::InvocationPhrase(pb::InvocationPhraseValue { verb }),
        Learned::Entity(entity_id) => Value::EntityAlias(pb::EntityAliasValue { entity_id }),
        Learned::Forbidden(forbidden_choice) => Value::Prohibition(pb::ProhibitionValue { forbidden_choice }),
        Learned::Synonym(Synonym {
            relation,
            representative,
        }) => Value::Synonym(pb::SynonymValue {
            relation: relation_number(relation).into(),
            representative,
        }),
        Learned::DomainRule(DomainRuleValue { rule, cause }) => Value::DomainRule(pb::DomainRuleValue {
            decision: decision_number(rule.decision()).into(),
            level: level_number(rule.level()).into(),
            cause: finding_number(cause.as_ref().map(|cause| cause.found)).into(),
            cause_id: cause.map(|cause| cause.claim_id).unwrap_or_default(),
        }),
        Learned::FewShotSet(FewShotSet { language, good, bad }) => Value::FewShotSet(pb::FewShotSetValue {
            language: language.number(),
            good: good.into_iter().map(example).collect(),
            bad: bad.into_iter().map(example).collect(),
        }),
        Learned::ClaimState(state) => Value::ClaimState(pb::ClaimStateValue {
            decision: match &state {
                Some(ClaimState::Rejected(_)) => pb::ClaimDecision::Rejected,
                Some(ClaimState::Restored) => pb::ClaimDecision::Restored,
                None => pb::ClaimDecision::Cleared,
            }
            .into(),
            reason_code: state.map_or_else(String::new, |state| state.reason_code().to_owned()),
        }),
        Learned::EdgeLabel(label) => Value::EdgeLabel(pb::EdgeLabelValue {
            relation: label.map_or(0, |label| label.relation().number()),
            cleared: label.is_none(),
        }),
        Learned::Prompt(prompt) => Value::Prompt(outputs::prompt_message(&prompt)),
        Learned::ProfileEntry(entry) => Value::Profile(outputs::profile_message(entry)),
        Learned::SearchTuning(tuning) => {
            let message = tuning.map_or_else(search::cleared, |set| search::tuning_message(set.tuning()));
            Value::SearchTuning(message.into())
        }
        Learned::NearLookup(near) => Value::NearLookup(near_message(near.as_ref())),
    }
}

/// How near answers are given. `None`: what was set is cleared.
fn near(message: &pb::NearLookupValue) -> Result<Option<NearLookup>, Violations> {
    let mut violations = Violations::new();
    if message.cleared {
        if *message != near_message(None) {
            violations.add("cleared", "must be the only field where it is set");
        }
        return violations.finish(Some(None));
    }
    let method = violations.check("method", near_method(message.method));
    let near = NearLookup::new(message.min_confidence, method, &message.vectors);
    let near = violations.part("", near);
    violations.finish(near.map(Some))
}

fn near_method(number: i32) -> Result<NearMethod, Invalid> {
    match pb::NearMethod::try_from(number) {
        Ok(pb::NearMethod::Unspecified | pb::NearMethod::Lexical) => Ok(NearMethod::Lexical),
        Ok(pb::NearMethod::Off) => Ok(NearMethod::Off),
        Err(_) => Err(Invalid::new(format!("is not a known method: {number}"))),
    }
}

fn near_message(near: Option<&NearLookup>) -> pb::NearLookupValue {
    let Some(near) = near else {
        return pb::NearLookupValue {
            cleared: true,
            ..pb::NearLookupValue::default()
        };
    };
    pb::NearLookupValue {
        min_confidence: Some(near.min_confidence()),
        method: match near.method() {
            NearMethod::Lexical => pb::NearMethod::Lexical,
            NearMethod::Off => pb::NearMethod::Off,
        }
        .into(),
        vectors: near.vectors().to_owned(),
        cleared: false,
    }
}

fn examples(
    violations: &mut Violations,
    field: &str,
    messages: &[pb::FewShotExample],
) -> Option<Vec<Example>> {
    let mut examples = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let id = FeedbackId::parse(&message.feedback_id);
        let output = FeedbackId::parse(&message.output_id);
        examples.push(Example {
            feedback: violations.check(&format!("{field}[{index}].feedback_id"), id)?,
            rated: RatedId(
                violations
                    .check(&format!("{field}[{index}].output_id"), output)?
                    .0,
            ),
            input: message.input.clone(),
            output: message.output.clone(),
            corrected: message.corrected.clone(),
            issues: message.issues.clone(),
        });
    }
    Some(examples)
}

fn example(example: Example) -> pb::FewShotExample {
    pb::FewShotExample {
        feedback_id: example.feedback.to_string(),
        output_id: example.rated.0.to_string(),
        input: example.input,
        output: example.output,
        corrected: example.corrected,
        issues: example.issues,
    }
}

/// Why the system decided; `None` for UNSPECIFIED.
fn rule_cause(number: i32, claim_id: &str) -> Result<Option<RuleCause>, Violations> {
    let mut violations = Violations::new();
    let mut all = Finding::ALL.into_iter();
    let found = all.find(|found| i32::from(finding_number(Some(*found))) == number);
    let mut cause = None;
    match found {
        Some(found) => cause = violations.check("cause_id", RuleCause::parse(found, claim_id)),
        None if number != 0 => violations.add("cause", format!("is not a known cause: {number}")),
        None if !claim_id.is_empty() => violations.add("cause_id", "must be empty without a cause"),
        None => {}
    }
    violations.finish(Some(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_names_kinds_and_fields_as_their_rows_do() {
        for kind in Kind::ALL {
            let learned = [
                "choice",
                "block",
                "rejected:SPAM",
                "refutes",
                "top_k=5",
                "method=off",
            ]
            .into_iter()
            .find_map(|choice| Learned::of(kind, choice.to_owned()).ok())
            .unwrap_or_else(|| Learned::FewShotSet(FewShotSet::default()));
            let value = value(&learned);
            assert_eq!(kind_of(&value), kind);
            let wire = pb::ResourceKind::try_from(kind.number()).unwrap();
            let name = wire.as_str_name().trim_start_matches("RESOURCE_KIND_");
            assert_eq!(name.to_lowercase(), kind.name());
        }
    }

    #[test]
    fn a_rule_of_the_system_says_why() {
        for found in Finding::ALL {
            for claim_id in ["", "claim:1"] {
                let value = DomainRuleValue {
                    rule: DomainRule::parse("block").unwrap(),
                    cause: RuleCause::parse(found, claim_id).ok(),
                };
                let caused = Learned::DomainRule(value);
                assert_eq!(learned(&super::value(&caused)), Ok(caused));
            }
        }
        for (cause, cause_id, field) in [(0, "claim:1", "cause_id"), (9, "", "cause")] {
            let message = pb::DomainRuleValue {
                decision: pb::DomainDecision::Block.into(),
                cause,
                cause_id: cause_id.to_owned(),
                ..pb::DomainRuleValue::default()
            };
            let refused = learned(&Value::DomainRule(message)).unwrap_err().into_vec();
            assert_eq!(refused[0].field, field);
        }
    }
}
