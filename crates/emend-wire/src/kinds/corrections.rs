//! The forms of corrections.

use emend_core::{
    ClaimDecision, ClaimState, Correction, DomainDecision, DomainRule, EdgeLabel, Invalid, Learned, Rating,
    RatingClass, SearchTuning, Violations,
    correction::{Assertion, Form},
    outputs::{OwnTarget, RatingFields},
};
use emend_proto::common::v1::{self as pb, correction::Correction as Oneof};

use super::numbers::{
    self, edge_relation, level_number, relation_number, relation_of, search_rating, search_rating_value,
    trust_level,
};
use crate::{render, search};

/// A correction of one form, where the application has these targets of its own, which can be rated. Violations name the field
/// within the form's message.
pub(crate) fn correction(form: &Oneof, own_targets: &[OwnTarget]) -> Result<Correction, Violations> {
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
            let relation = violations.check("relation", numbers::relation(*relation));
            let equivalents = equivalents.iter().map(String::as_str);
            let parsed = Correction::parse_term(term, equivalents, relation.unwrap_or_default());
            let parsed = violations.part("", parsed);
            violations.finish(parsed)
        }
        Oneof::DomainBlock(pb::DomainBlock { pattern, task_id }) => {
            in_task(task_id, domain(Form::DomainBlock, pattern, 0))
        }
        Oneof::DomainUnblock(pb::DomainUnblock {
            pattern,
            level,
            task_id,
        }) => in_task(task_id, domain(Form::DomainUnblock, pattern, *level)),
        Oneof::DomainClearOverride(pb::DomainClearOverride { pattern, task_id }) => {
            in_task(task_id, domain(Form::DomainClearOverride, pattern, 0))
        }
        Oneof::DomainSetTrust(pb::DomainSetTrust {
            pattern,
            level,
            task_id,
        }) => in_task(task_id, domain(Form::DomainSetTrust, pattern, *level)),
        Oneof::ClaimReject(pb::ClaimReject {
            claim_id,
            reason_code,
            task_id,
        }) => in_task(task_id, Correction::parse_claim_reject(claim_id, reason_code)),
        Oneof::ClaimRestore(pb::ClaimRestore { claim_id, task_id }) => {
            in_task(task_id, Correction::parse_claim_restore(claim_id))
        }
        Oneof::EdgeCorrect(pb::EdgeCorrect {
            edge_id,
            correct_relation,
            task_id,
        }) => in_task(
            task_id,
            Correction::parse_edge(edge_id, edge_relation(*correct_relation)),
        ),
        Oneof::Rating(message) => rating(message, own_targets),
        Oneof::SearchRating(pb::SearchRating { value }) => {
            let mut violations = Violations::new();
            let rating = violations.check("value", search_rating(*value));
            violations.finish(rating.map(Correction::of_search_rating))
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

/// A correction that was said in a research task.
fn in_task(task_id: &str, parsed: Result<Correction, Violations>) -> Result<Correction, Violations> {
    let mut violations = Violations::new();
    let parsed = violations.part("", parsed);
    let task = violations.check("task_id", Correction::parse_task(task_id));
    violations.finish(
        parsed
            .zip(task)
            .map(|(correction, task)| correction.in_task(task)),
    )
}

fn rating(message: &pb::Rating, own_targets: &[OwnTarget]) -> Result<Correction, Violations> {
    let mut violations = Violations::new();
    let counts_as = match message.counts_as {
        0 => Some(None),
        number => {
            let class = RatingClass::from_number(number);
            let class = class.ok_or_else(|| Invalid::new(format!("is not a known class: {number}")));
            violations.check("counts_as", class).map(Some)
        }
    };
    let fields = RatingFields {
        target: &message.target,
        value: &message.value,
        target_id: &message.target_id,
        input_text: &message.input_text,
        output_text: &message.output_text,
        prompt_version: &message.prompt_version,
        issues: &message.issues,
        corrected_text: &message.corrected_text,
        correct_judgement: &message.correct_judgement,
        counts_as: counts_as.flatten(),
    };
    let parsed = violations.part("", Correction::parse_rating(fields, own_targets));
    violations.finish(parsed)
}

fn rating_message(rating: &Rating) -> pb::Rating {
    pb::Rating {
        target: rating.target.clone(),
        value: rating.value.clone(),
        target_id: rating.target_id.clone(),
        prompt_version: rating.prompt_version.clone(),
        counts_as: rating.class.number(),
        ..render::rated_texts(Some(rating))
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
    if let Some(rating) = correction.search_rating() {
        let value = search_rating_value(rating).into();
        return Oneof::SearchRating(pb::SearchRating { value });
    }
    let assertions = correction.assertions();
    let first = assertions
        .first()
        .expect("invariant: what is no rating of a search answer is parsed with at least one assertion");
    let Assertion { input, learned, .. } = first;
    let (input, choice) = (input.clone(), learned.maps_to().to_owned());
    let system_choice = correction.system_choice().unwrap_or_default().to_owned();
    let mut form = match learned {
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
        Learned::DomainRule(value) => domain_decision(input, value.rule),
        // No correction says a prompt or an entry of a profile.
        Learned::FewShotSet(_) | Learned::Prompt(_) | Learned::ProfileEntry(_) => {
            Oneof::Rating(correction.rating().map(rating_message).unwrap_or_default())
        }
        Learned::ClaimState(state) => claim_decision(input, state),
        Learned::EdgeLabel(label) => edge_correction(input, *label),
        Learned::SearchTuning(tuning) => tuning_correction(input, tuning),
    };
    if let (Some(task), Some(said_in)) = (task_of(&mut form), correction.task()) {
        said_in.clone_into(task);
    }
    form
}

/// The correction that decides this about a pattern of domains, in no research task.
pub fn domain_decision(pattern: String, rule: DomainRule) -> Oneof {
    let level = level_number(rule.level).into();
    let task_id = String::new();
    match rule.decision {
        DomainDecision::Block => Oneof::DomainBlock(pb::DomainBlock { pattern, task_id }),
        DomainDecision::Unblock => Oneof::DomainUnblock(pb::DomainUnblock {
            pattern,
            level,
            task_id,
        }),
        DomainDecision::SetTrust => Oneof::DomainSetTrust(pb::DomainSetTrust {
            pattern,
            level,
            task_id,
        }),
        DomainDecision::Clear => Oneof::DomainClearOverride(pb::DomainClearOverride { pattern, task_id }),
    }
}

/// The correction that decides this about a claim, in no research task. No correction clears a decision: a rejected claim is
/// restored.
pub fn claim_decision(claim_id: String, state: &ClaimState) -> Oneof {
    let task_id = String::new();
    match state.decision() {
        ClaimDecision::Rejected => Oneof::ClaimReject(pb::ClaimReject {
            claim_id,
            reason_code: state.reason_code().to_owned(),
            task_id,
        }),
        ClaimDecision::Restored | ClaimDecision::Cleared => {
            Oneof::ClaimRestore(pb::ClaimRestore { claim_id, task_id })
        }
    }
}

/// The correction that gives an edge this label, in no research task.
pub fn edge_correction(edge_id: String, label: EdgeLabel) -> Oneof {
    Oneof::EdgeCorrect(pb::EdgeCorrect {
        edge_id,
        correct_relation: relation_of(label),
        task_id: String::new(),
    })
}

/// The correction that has queries of one type searched so.
pub fn tuning_correction(query_type: String, tuning: &SearchTuning) -> Oneof {
    Oneof::Tuning(pb::TuningCorrection {
        query_type,
        tuning: Some(search::tuning_message(tuning)),
    })
}

/// The research task in which a correction is said, if its form names one.
pub fn task_of(form: &mut Oneof) -> Option<&mut String> {
    match form {
        Oneof::DomainBlock(of) => Some(&mut of.task_id),
        Oneof::DomainUnblock(of) => Some(&mut of.task_id),
        Oneof::DomainClearOverride(of) => Some(&mut of.task_id),
        Oneof::DomainSetTrust(of) => Some(&mut of.task_id),
        Oneof::ClaimReject(of) => Some(&mut of.task_id),
        Oneof::ClaimRestore(of) => Some(&mut of.task_id),
        Oneof::EdgeCorrect(of) => Some(&mut of.task_id),
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
        let of_evidence = ("[A-Za-z0-9:]{1,9}", 0usize..6).prop_map(|(id, which)| {
            let parsed = match which {
                0 => Correction::parse_claim_reject(&id, ""),
                1 => Correction::parse_claim_reject(&id, "SPAM"),
                2 => Correction::parse_claim_restore(&id),
                label => Correction::parse_edge(&id, Ok(EdgeRelation::LABELS[label - 3])),
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
                Correction::parse_tuning(&query_type, Ok(tuning.into())).unwrap()
            },
        );
        let of_task = (
            prop_oneof![domain, of_evidence],
            proptest::option::of("[A-Za-z]{1,9}"),
        )
            .prop_map(|(correction, task)| correction.in_task(task));
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
                Correction::parse_rating(fields, &[]).unwrap()
            },
        );
        prop_oneof![choice, term, of_task, rating, tuning]
    }

    proptest! {
        #[test]
        fn corrections_survive_a_round_trip(original in a_correction()) {
            let form = form(&original);
            prop_assert_eq!(form_of(&form), original.form());
            prop_assert_eq!(correction(&form, &[]).unwrap(), original);
        }
    }
}
