//! The forms of corrections.

use emend_core::{
    ClaimState, Correction, DomainDecision, DomainRule, EdgeLabel, Invalid, Rating, RatingClass, Violations,
    correction::{Form, Subject},
    kinds::ReasonCode,
    ratings::{OwnTarget, RatingFields, RefusedRating},
    search::Tuning,
};
use emend_proto::common::v1::{self as pb, correction::Correction as Oneof};

use super::numbers::{
    self, edge_relation, level_number, relation_number, search_rating, search_rating_value, trust_level,
};
use crate::{render, search};

/// A correction as it was stored or travels. Violations name the field within the form's message.
pub(crate) fn correction(form: &Oneof) -> Result<Correction, Violations> {
    match form {
        Oneof::Verb(pb::VerbCorrection {
            original_input,
            system_choice,
            correct_choice,
        }) => Correction::parse_verb(original_input, system_choice, correct_choice),
        Oneof::PhraseMapping(pb::PhraseMapping { phrase, verb }) => {
            Correction::parse_phrase_mapping(phrase, verb)
        }
        Oneof::Entity(pb::EntityCorrection {
            original_input,
            system_choice,
            correct_choice,
        }) => Correction::parse_entity(original_input, system_choice, correct_choice),
        Oneof::Prohibition(pb::Prohibition {
            phrase,
            forbidden_choice,
        }) => Correction::parse_prohibition(phrase, forbidden_choice),
        Oneof::Term(pb::TermCorrection {
            term,
            equivalents,
            relation,
        }) => {
            let mut violations = Violations::new();
            let relation = violations.check("relation", numbers::relation(*relation));
            let equivalents = equivalents.iter().map(String::as_str);
            let parsed = Correction::parse_term(term, equivalents, relation.unwrap_or_default());
            let parsed = violations.part("", parsed);
            violations.finish(parsed)
        }
        Oneof::DomainBlock(pb::DomainBlock { pattern, task_id }) => {
            Correction::parse_domain(pattern, Ok(DomainRule::Block), task_id)
        }
        Oneof::DomainUnblock(pb::DomainUnblock {
            pattern,
            level,
            task_id,
        }) => Correction::parse_domain(pattern, rule(DomainDecision::Unblock, *level), task_id),
        Oneof::DomainClearOverride(pb::DomainClearOverride { pattern, task_id }) => {
            Correction::parse_domain(pattern, Ok(DomainRule::Clear), task_id)
        }
        Oneof::DomainSetTrust(pb::DomainSetTrust {
            pattern,
            level,
            task_id,
        }) => Correction::parse_domain(pattern, rule(DomainDecision::SetTrust, *level), task_id),
        Oneof::ClaimReject(pb::ClaimReject {
            claim_id,
            reason_code,
            task_id,
        }) => Correction::parse_claim_reject(claim_id, reason_code, task_id),
        Oneof::ClaimRestore(pb::ClaimRestore { claim_id, task_id }) => {
            Correction::parse_claim_restore(claim_id, task_id)
        }
        Oneof::EdgeCorrect(pb::EdgeCorrect {
            edge_id,
            correct_relation,
            task_id,
        }) => Correction::parse_edge(edge_id, edge_relation(*correct_relation), task_id),
        Oneof::Rating(message) => {
            let mut violations = Violations::new();
            let fields = rating_fields(message, &mut violations);
            let parsed = violations.part("", Correction::parse_rating(fields));
            violations.finish(parsed)
        }
        Oneof::SearchRating(pb::SearchRating { value }) => {
            let mut violations = Violations::new();
            let rating = violations.check("value", search_rating(*value));
            violations.finish(rating.map(Correction::SearchRating))
        }
        Oneof::Tuning(pb::TuningCorrection { query_type, tuning }) => {
            let tuning = tuning.as_ref().map_or_else(
                || {
                    let mut violations = Violations::new();
                    violations.add("", "is required");
                    violations.finish(None)
                },
                search::tuning,
            );
            Correction::parse_tuning(query_type, tuning)
        }
    }
}

/// A correction as somebody says it, where the application has these targets of its own, which can be rated.
pub(crate) fn new_correction(form: &Oneof, own_targets: &[OwnTarget]) -> Result<Correction, RefusedRating> {
    if let Oneof::Rating(message) = form {
        let mut violations = Violations::new();
        let fields = rating_fields(message, &mut violations);
        let parsed = Correction::parse_new_rating(fields, own_targets);
        if violations.is_empty() {
            return parsed;
        }
        violations.part("", parsed.map_err(|refused| refused.violations));
        return Err(violations.into());
    }
    let parsed = correction(form)?;
    parsed.check_new()?;
    Ok(parsed)
}

fn rule(decision: DomainDecision, level: i32) -> Result<DomainRule, Invalid> {
    trust_level(level).and_then(|level| DomainRule::new(decision, level))
}

fn rating_fields<'a>(message: &'a pb::Rating, violations: &mut Violations) -> RatingFields<'a> {
    let counts_as = match message.counts_as {
        0 => None,
        number => {
            let class = RatingClass::from_number(number);
            let class = class.ok_or_else(|| Invalid::new(format!("is not a known class: {number}")));
            violations.check("counts_as", class)
        }
    };
    RatingFields {
        target: &message.target,
        value: &message.value,
        target_id: &message.target_id,
        input_text: &message.input_text,
        output_text: &message.output_text,
        prompt_version: &message.prompt_version,
        issues: &message.issues,
        corrected_text: &message.corrected_text,
        correct_judgement: &message.correct_judgement,
        counts_as,
    }
}

/// The message of a rating, whether or not it is known what it counts as.
pub(crate) fn rating_message<C>(rating: &Rating<C>, class: Option<RatingClass>) -> pb::Rating {
    pb::Rating {
        target: rating.target.clone(),
        value: rating.value.clone(),
        target_id: rating.target_id.clone(),
        prompt_version: rating.prompt_version.clone(),
        counts_as: class.map_or(0, RatingClass::number),
        ..render::rated_texts(&rating.texts)
    }
}

/// The form of a correction on the wire.
pub const fn form_of(form: &Oneof) -> Form {
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
        Oneof::Rating(_) => Form::Rating,
        Oneof::ClaimReject(_) => Form::ClaimReject,
        Oneof::ClaimRestore(_) => Form::ClaimRestore,
        Oneof::EdgeCorrect(_) => Form::EdgeCorrect,
        Oneof::SearchRating(_) => Form::SearchRating,
        Oneof::Tuning(_) => Form::Tuning,
    }
}

/// The message of a correction, in the form in which it was sent.
pub(crate) fn form(correction: &Correction) -> Oneof {
    let written = |subject: &Subject| subject.written().to_owned();
    let mut form = match correction {
        Correction::Verb {
            phrase,
            system_choice,
            verb,
        } => Oneof::Verb(pb::VerbCorrection {
            original_input: written(phrase),
            system_choice: system_choice.clone().unwrap_or_default(),
            correct_choice: verb.clone(),
        }),
        Correction::PhraseMapping { phrase, verb } => Oneof::PhraseMapping(pb::PhraseMapping {
            phrase: written(phrase),
            verb: verb.clone(),
        }),
        Correction::Entity {
            alias,
            system_choice,
            entity,
        } => Oneof::Entity(pb::EntityCorrection {
            original_input: written(alias),
            system_choice: system_choice.clone().unwrap_or_default(),
            correct_choice: entity.clone(),
        }),
        Correction::Prohibition { phrase, forbidden } => Oneof::Prohibition(pb::Prohibition {
            phrase: written(phrase),
            forbidden_choice: forbidden.clone(),
        }),
        Correction::Term {
            term,
            equivalents,
            relation,
        } => Oneof::Term(pb::TermCorrection {
            term: written(term),
            equivalents: equivalents.iter().map(written).collect(),
            relation: relation_number(*relation).into(),
        }),
        Correction::DomainBlock { pattern, .. } => domain_decision(written(pattern), DomainRule::Block),
        Correction::DomainUnblock { pattern, level, .. } => {
            domain_decision(written(pattern), DomainRule::Unblock(*level))
        }
        Correction::DomainClearOverride { pattern, .. } => {
            domain_decision(written(pattern), DomainRule::Clear)
        }
        Correction::DomainSetTrust { pattern, level, .. } => {
            domain_decision(written(pattern), DomainRule::SetTrust(*level))
        }
        Correction::Rating { rating, .. } => Oneof::Rating(rating_message(rating, Some(rating.class))),
        Correction::ClaimReject {
            claim, reason_code, ..
        } => claim_reject(written(claim), reason_code.as_ref()),
        Correction::ClaimRestore { claim, .. } => claim_restore(written(claim)),
        Correction::EdgeCorrect { edge, label, .. } => edge_correction(written(edge), *label),
        Correction::SearchRating(rating) => Oneof::SearchRating(pb::SearchRating {
            value: search_rating_value(*rating).into(),
        }),
        Correction::Tuning { query_type, tuning } => tuning_correction(written(query_type), tuning.tuning()),
    };
    if let (Some(task), Some(said_in)) = (task_of(&mut form), correction.task()) {
        said_in.clone_into(task);
    }
    form
}

/// The correction that decides this about a pattern of domains, in no research task.
pub fn domain_decision(pattern: String, rule: DomainRule) -> Oneof {
    let level = level_number(rule.level()).into();
    let task_id = String::new();
    match rule {
        DomainRule::Block => Oneof::DomainBlock(pb::DomainBlock { pattern, task_id }),
        DomainRule::Unblock(_) => Oneof::DomainUnblock(pb::DomainUnblock {
            pattern,
            level,
            task_id,
        }),
        DomainRule::SetTrust(_) => Oneof::DomainSetTrust(pb::DomainSetTrust {
            pattern,
            level,
            task_id,
        }),
        DomainRule::Clear => Oneof::DomainClearOverride(pb::DomainClearOverride { pattern, task_id }),
    }
}

/// The correction that decides this about a claim, in no research task.
pub fn claim_decision(claim_id: String, state: &ClaimState) -> Oneof {
    match state {
        ClaimState::Rejected(reason_code) => claim_reject(claim_id, reason_code.as_ref()),
        ClaimState::Restored => claim_restore(claim_id),
    }
}

fn claim_reject(claim_id: String, reason_code: Option<&ReasonCode>) -> Oneof {
    Oneof::ClaimReject(pb::ClaimReject {
        claim_id,
        reason_code: reason_code.map_or("", ReasonCode::as_str).to_owned(),
        task_id: String::new(),
    })
}

const fn claim_restore(claim_id: String) -> Oneof {
    Oneof::ClaimRestore(pb::ClaimRestore {
        claim_id,
        task_id: String::new(),
    })
}

/// The correction that gives an edge this label, in no research task.
pub fn edge_correction(edge_id: String, label: EdgeLabel) -> Oneof {
    Oneof::EdgeCorrect(pb::EdgeCorrect {
        edge_id,
        correct_relation: label.relation().number(),
        task_id: String::new(),
    })
}

/// The correction that has queries of one type searched so.
pub fn tuning_correction(query_type: String, tuning: &Tuning) -> Oneof {
    Oneof::Tuning(pb::TuningCorrection {
        query_type,
        tuning: Some(search::tuning_message(tuning)),
    })
}

/// The research task in which a correction is said, if its form names one.
pub fn task_of(form: &mut Oneof) -> Option<&mut String> {
    match form {
        Oneof::DomainBlock(message) => Some(&mut message.task_id),
        Oneof::DomainUnblock(message) => Some(&mut message.task_id),
        Oneof::DomainClearOverride(message) => Some(&mut message.task_id),
        Oneof::DomainSetTrust(message) => Some(&mut message.task_id),
        Oneof::ClaimReject(message) => Some(&mut message.task_id),
        Oneof::ClaimRestore(message) => Some(&mut message.task_id),
        Oneof::EdgeCorrect(message) => Some(&mut message.task_id),
        Oneof::Verb(_)
        | Oneof::PhraseMapping(_)
        | Oneof::Entity(_)
        | Oneof::Prohibition(_)
        | Oneof::Term(_)
        | Oneof::Rating(_)
        | Oneof::SearchRating(_)
        | Oneof::Tuning(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{EdgeRelation, Relation, TrustLevel};
    use proptest::prelude::*;

    use super::*;

    fn a_correction() -> impl Strategy<Value = Correction> {
        let choice = (0usize..4, "[a-z]{1,20}", "[a-m]{0,5}", "[n-z]{1,5}").prop_map(
            |(form, input, system, choice)| {
                let parsed = match form {
                    0 => Correction::parse_verb(&input, &system, &choice),
                    1 => Correction::parse_phrase_mapping(&input, &choice),
                    2 => Correction::parse_entity(&input, &system, &choice),
                    _ => Correction::parse_prohibition(&input, &choice),
                };
                parsed.unwrap()
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
        let task = || proptest::option::of("[A-Za-z]{1,9}").prop_map(Option::unwrap_or_default);
        let rules = [
            DomainRule::Block,
            DomainRule::Unblock(None),
            DomainRule::Unblock(Some(TrustLevel::Low)),
            DomainRule::Clear,
            DomainRule::SetTrust(TrustLevel::Primary),
        ];
        let rules = proptest::sample::select(rules.to_vec());
        let domain = ("(\\*\\.)?[A-Za-z]{1,9}\\.org", rules, task())
            .prop_map(|(pattern, rule, task)| Correction::parse_domain(&pattern, Ok(rule), &task).unwrap());
        let evidence = ("[A-Za-z0-9:]{1,9}", 0usize..6, task()).prop_map(|(id, which, task)| {
            let parsed = match which {
                0 => Correction::parse_claim_reject(&id, "", &task),
                1 => Correction::parse_claim_reject(&id, "SPAM", &task),
                2 => Correction::parse_claim_restore(&id, &task),
                label => Correction::parse_edge(&id, Ok(EdgeRelation::LABELS[label - 3]), &task),
            };
            parsed.unwrap()
        });
        let tuning = ("[A-Za-z]{1,9}", 1u32..=100, 0.0f64..=1.0, 0usize..4).prop_map(
            |(query_type, top_k, score, which)| {
                let more = [
                    "retry=none",
                    "namespaces=a,b retry=+c,-0.1,top_k=20 suggestion=Try fewer words.",
                    "confidence.high=0.8 weight.keyword=2.5",
                    "",
                ][which];
                let line = format!("top_k={top_k} min_score={score} {more}");
                let tuning = emend_core::search::Tuning::parse(&line).unwrap();
                Correction::parse_tuning(&query_type, Ok(Some(tuning.into()))).unwrap()
            },
        );
        let texts = proptest::collection::vec("[a-zé]{1,9}", 6);
        let rating = (0usize..3, texts, proptest::collection::vec("[a-z]{1,5}", 0..3)).prop_map(
            |(value, texts, issues)| {
                let fields = RatingFields {
                    target: "SUMMARIZE_DAILY",
                    value: ["GOOD", "NEUTRAL", "BAD"][value],
                    target_id: "day-1",
                    input_text: &texts[0],
                    output_text: &texts[1],
                    prompt_version: &texts[2],
                    issues: &issues,
                    corrected_text: &texts[3],
                    correct_judgement: &texts[4],
                    counts_as: None,
                };
                Correction::parse_rating(fields).unwrap()
            },
        );
        prop_oneof![choice, term, domain, evidence, rating, tuning]
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
