//! Between the messages of each kind and what they mean: corrections, and the values of resources. One exhaustive match each
//! way; a kind or form that is missing in one does not compile.

use emend_core::{
    Correction, DomainDecision, DomainRule, Invalid, Kind, Learned, Relation, ResourceValue, Synonym,
    TrustLevel, Violations,
    correction::{Assertion, Form},
    kinds::parse_choice,
};
use emend_proto::common::v1::{self as pb, correction::Correction as Oneof, resource_value::Value};

/// The kind that a value is of.
pub(crate) fn kind_of(value: &Value) -> Kind {
    match value {
        Value::InvocationPhrase(_) => Kind::InvocationPhrase,
        Value::EntityAlias(_) => Kind::EntityAlias,
        Value::Prohibition(_) => Kind::Prohibition,
        Value::Synonym(_) => Kind::Synonym,
        Value::DomainRule(_) => Kind::DomainRule,
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
            let relation = violations.check("relation", self::relation(*relation));
            let representative =
                violations.check("representative", ResourceValue::parse_display(representative));
            relation.zip(representative).map(|(relation, representative)| {
                Learned::Synonym(Synonym {
                    relation,
                    representative,
                })
            })
        }
        Value::DomainRule(pb::DomainRuleValue { decision, level }) => {
            let decision = violations.check("decision", self::decision(*decision));
            let level = violations.check("level", trust_level(*level));
            decision.zip(level).and_then(|(decision, level)| {
                let rule = DomainRule::new(decision, level);
                violations.check("level", rule).map(Learned::DomainRule)
            })
        }
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
        Learned::DomainRule(DomainRule { decision, level }) => Value::DomainRule(pb::DomainRuleValue {
            decision: decision_number(decision).into(),
            level: level_number(level).into(),
        }),
    }
}

/// A correction of one form. Violations name the field within the form's message.
pub(crate) fn correction(form: &Oneof) -> Result<Correction, Violations> {
    match form {
        Oneof::Verb(pb::VerbCorrection {
            original_input,
            system_choice,
            correct_choice,
        }) => Correction::parse(Form::Verb, original_input, system_choice, correct_choice),
        Oneof::PhraseMapping(pb::PhraseMapping { phrase, verb }) => {
            Correction::parse(Form::PhraseMapping, phrase, "", verb)
        }
        Oneof::Entity(pb::EntityCorrection {
            original_input,
            system_choice,
            correct_choice,
        }) => Correction::parse(Form::Entity, original_input, system_choice, correct_choice),
        Oneof::Prohibition(pb::Prohibition {
            phrase,
            forbidden_choice,
        }) => Correction::parse(Form::Prohibition, phrase, "", forbidden_choice),
        Oneof::Term(pb::TermCorrection {
            term,
            equivalents,
            relation,
        }) => {
            let mut violations = Violations::new();
            let relation = violations.check("relation", self::relation(*relation));
            let equivalents = equivalents.iter().map(String::as_str);
            let parsed = Correction::parse_term(term, equivalents, relation.unwrap_or_default());
            let parsed = violations.part("", parsed);
            violations.finish(parsed)
        }
        Oneof::DomainBlock(pb::DomainBlock { pattern }) => domain(Form::DomainBlock, pattern, 0),
        Oneof::DomainUnblock(pb::DomainUnblock { pattern, level }) => {
            domain(Form::DomainUnblock, pattern, *level)
        }
        Oneof::DomainClearOverride(pb::DomainClearOverride { pattern }) => {
            domain(Form::DomainClearOverride, pattern, 0)
        }
        Oneof::DomainSetTrust(pb::DomainSetTrust { pattern, level }) => {
            domain(Form::DomainSetTrust, pattern, *level)
        }
    }
}

fn domain(form: Form, pattern: &str, level: i32) -> Result<Correction, Violations> {
    let mut violations = Violations::new();
    let parsed = match violations.check("level", trust_level(level)) {
        Some(level) => violations.part("", Correction::parse_domain(form, pattern, level)),
        None => None,
    };
    violations.finish(parsed)
}

/// The form of a correction on the wire.
pub(crate) fn form_of(form: &Oneof) -> Form {
    match form {
        Oneof::Verb(_) => Form::Verb,
        Oneof::PhraseMapping(_) => Form::PhraseMapping,
        Oneof::Entity(_) => Form::Entity,
        Oneof::Prohibition(_) => Form::Prohibition,
        Oneof::Term(_) => Form::Term,
        Oneof::DomainBlock(_) => Form::DomainBlock,
        Oneof::DomainUnblock(_) => Form::DomainUnblock,
        Oneof::DomainClearOverride(_) => Form::DomainClearOverride,
        Oneof::DomainSetTrust(_) => Form::DomainSetTrust,
    }
}

/// The message of a correction, in the form in which it was sent.
pub(crate) fn form(correction: &Correction) -> Oneof {
    let assertions = correction.assertions();
    let first = assertions
        .first()
        .expect("invariant: a correction is parsed with at least one assertion");
    let Assertion { input, learned, .. } = first;
    let (input, choice) = (input.clone(), learned.maps_to().to_owned());
    let system_choice = correction.system_choice().unwrap_or_default().to_owned();
    match learned {
        Learned::Verb(_) if correction.form() == Form::PhraseMapping => {
            Oneof::PhraseMapping(pb::PhraseMapping {
                phrase: input,
                verb: choice,
            })
        }
        Learned::Verb(_) => Oneof::Verb(pb::VerbCorrection {
            original_input: input,
            system_choice,
            correct_choice: choice,
        }),
        Learned::Entity(_) => Oneof::Entity(pb::EntityCorrection {
            original_input: input,
            system_choice,
            correct_choice: choice,
        }),
        Learned::Forbidden(_) => Oneof::Prohibition(pb::Prohibition {
            phrase: input,
            forbidden_choice: choice,
        }),
        Learned::Synonym(synonym) => Oneof::Term(pb::TermCorrection {
            term: choice,
            equivalents: assertions
                .iter()
                .map(|assertion| assertion.input.clone())
                .collect(),
            relation: relation_number(synonym.relation).into(),
        }),
        Learned::DomainRule(rule) => domain_decision(input, *rule),
    }
}

/// The correction that decides this about a pattern of domains.
pub fn domain_decision(pattern: String, rule: DomainRule) -> Oneof {
    let level = level_number(rule.level).into();
    match rule.decision {
        DomainDecision::Block => Oneof::DomainBlock(pb::DomainBlock { pattern }),
        DomainDecision::Unblock => Oneof::DomainUnblock(pb::DomainUnblock { pattern, level }),
        DomainDecision::SetTrust => Oneof::DomainSetTrust(pb::DomainSetTrust { pattern, level }),
        DomainDecision::Clear => Oneof::DomainClearOverride(pb::DomainClearOverride { pattern }),
    }
}

/// The decision with this number.
fn decision(number: i32) -> Result<DomainDecision, Invalid> {
    match pb::DomainDecision::try_from(number) {
        Ok(pb::DomainDecision::Block) => Ok(DomainDecision::Block),
        Ok(pb::DomainDecision::Unblock) => Ok(DomainDecision::Unblock),
        Ok(pb::DomainDecision::SetTrust) => Ok(DomainDecision::SetTrust),
        Ok(pb::DomainDecision::Clear) => Ok(DomainDecision::Clear),
        Ok(pb::DomainDecision::Unspecified) => Err(Invalid::new("is required")),
        Err(_) => Err(Invalid::new(format!("is not a known decision: {number}"))),
    }
}

fn decision_number(decision: DomainDecision) -> pb::DomainDecision {
    match decision {
        DomainDecision::Block => pb::DomainDecision::Block,
        DomainDecision::Unblock => pb::DomainDecision::Unblock,
        DomainDecision::SetTrust => pb::DomainDecision::SetTrust,
        DomainDecision::Clear => pb::DomainDecision::Clear,
    }
}

/// The level with this number; `None` for UNSPECIFIED.
fn trust_level(number: i32) -> Result<Option<TrustLevel>, Invalid> {
    let mut all = TrustLevel::ALL.into_iter();
    match number {
        0 => Ok(None),
        number => all
            .find(|level| i32::from(level_number(Some(*level))) == number)
            .map(Some)
            .ok_or_else(|| Invalid::new(format!("is not a known level: {number}"))),
    }
}

/// The level's number on the wire.
pub fn level_number(level: Option<TrustLevel>) -> pb::TrustLevel {
    match level {
        None => pb::TrustLevel::Unspecified,
        Some(TrustLevel::Primary) => pb::TrustLevel::Primary,
        Some(TrustLevel::Government) => pb::TrustLevel::Government,
        Some(TrustLevel::Academic) => pb::TrustLevel::Academic,
        Some(TrustLevel::Trusted) => pb::TrustLevel::Trusted,
        Some(TrustLevel::Low) => pb::TrustLevel::Low,
        Some(TrustLevel::Unverified) => pb::TrustLevel::Unverified,
        Some(TrustLevel::Blocked) => pb::TrustLevel::Blocked,
    }
}

/// The relation with this number; UNSPECIFIED is EQUIVALENT.
fn relation(number: i32) -> Result<Relation, Invalid> {
    match pb::SynonymRelation::try_from(number) {
        Ok(pb::SynonymRelation::Unspecified | pb::SynonymRelation::Equivalent) => Ok(Relation::Equivalent),
        Ok(pb::SynonymRelation::OneWay) => Ok(Relation::OneWay),
        Ok(pb::SynonymRelation::Typo) => Ok(Relation::Typo),
        Err(_) => Err(Invalid::new(format!("is not a known relation: {number}"))),
    }
}

/// The relation's number on the wire.
pub fn relation_number(relation: Relation) -> pb::SynonymRelation {
    match relation {
        Relation::Equivalent => pb::SynonymRelation::Equivalent,
        Relation::OneWay => pb::SynonymRelation::OneWay,
        Relation::Typo => pb::SynonymRelation::Typo,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wire_names_kinds_and_fields_as_their_rows_do() {
        for kind in Kind::ALL {
            let choice = if kind == Kind::DomainRule {
                "block"
            } else {
                "choice"
            };
            let value = value(&Learned::of(kind, choice.to_owned()).unwrap());
            assert_eq!(kind_of(&value), kind);
            let wire = pb::ResourceKind::try_from(kind.number()).unwrap();
            let name = wire.as_str_name().trim_start_matches("RESOURCE_KIND_");
            assert_eq!(name.to_lowercase(), kind.name());
        }
    }

    fn a_correction() -> impl Strategy<Value = Correction> {
        let choice = (0usize..4, "[a-z]{1,20}", "[a-m]{0,5}", "[n-z]{1,5}").prop_map(
            |(form, input, system, choice)| {
                let form = Form::ALL[form];
                let system = if matches!(form, Form::Verb | Form::Entity) {
                    system
                } else {
                    String::new()
                };
                Correction::parse(form, &input, &system, &choice).unwrap()
            },
        );
        let equivalents = proptest::collection::btree_set("[n-z]{1,5}", 1..5);
        let term = ("[A-Ma-m]{1,9}", equivalents, 0usize..3).prop_map(|(term, equivalents, relation)| {
            let relation = Relation::ALL[relation];
            Correction::parse_term(
                &term,
                equivalents
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .into_iter(),
                relation,
            )
            .unwrap()
        });
        let decisions = [
            (Form::DomainBlock, None),
            (Form::DomainUnblock, None),
            (Form::DomainUnblock, Some(TrustLevel::Low)),
            (Form::DomainClearOverride, None),
            (Form::DomainSetTrust, Some(TrustLevel::Primary)),
        ];
        let domain = (
            "(\\*\\.)?[A-Za-z]{1,9}\\.org",
            proptest::sample::select(decisions.to_vec()),
        )
            .prop_map(|(pattern, (form, level))| Correction::parse_domain(form, &pattern, level).unwrap());
        prop_oneof![choice, term, domain]
    }

    proptest! {
        #[test]
        fn corrections_survive_a_round_trip(original in a_correction()) {
            let form = form(&original);
            prop_assert_eq!(form_of(&form), original.form());
            prop_assert_eq!(correction(&form).unwrap(), original);
        }
    }
}
