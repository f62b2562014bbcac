//! Between the messages of each kind and what they mean: corrections, and the values of resources. One exhaustive match each
//! way; a kind or form that is missing in one does not compile.

use emend_core::{
    ClaimDecision, ClaimState, Correction, DomainDecision, DomainRule, DomainRuleValue, EdgeLabel,
    EdgeRelation, Example, FeedbackId, FewShotSet, Invalid, Kind, Language, Learned, Rating, RatingClass,
    Relation, ResourceValue, SearchTuning, Synonym, TrustLevel, Violations,
    correction::{Assertion, Form},
    kinds::{Finding, RuleCause, parse_choice},
    outputs::{OwnTarget, RatingFields},
    search::SearchRating,
};
use emend_proto::common::v1::{self as pb, correction::Correction as Oneof, resource_value::Value};

use crate::{outputs, render, search};

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
        Value::DomainRule(pb::DomainRuleValue {
            decision,
            level,
            cause,
            cause_id,
        }) => {
            let decision = violations.check("decision", self::decision(*decision));
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
            let language = violations.check("language", self::language(*language));
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
            let decision = violations.check("decision", decision_about_claim(*decision));
            decision.and_then(|decision| {
                let state = ClaimState::new(decision, reason_code);
                violations.check("reason_code", state).map(Learned::ClaimState)
            })
        }
        Value::EdgeLabel(pb::EdgeLabelValue { relation, cleared }) => {
            let label = match (cleared, relation) {
                (true, 0) => Ok(EdgeLabel::CLEARED),
                (true, _) => Err(Invalid::new("must be empty where cleared is set")),
                (false, relation) => edge_relation(*relation).and_then(EdgeLabel::new),
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
            decision: decision_number(rule.decision).into(),
            level: level_number(rule.level).into(),
            cause: finding_number(cause.as_ref().map(|cause| cause.found)).into(),
            cause_id: cause.map(|cause| cause.claim_id).unwrap_or_default(),
        }),
        Learned::FewShotSet(FewShotSet { language, good, bad }) => Value::FewShotSet(pb::FewShotSetValue {
            language: language.number(),
            good: good.into_iter().map(example).collect(),
            bad: bad.into_iter().map(example).collect(),
        }),
        Learned::ClaimState(state) => Value::ClaimState(pb::ClaimStateValue {
            decision: claim_decision_number(state.decision()).into(),
            reason_code: state.reason_code().to_owned(),
        }),
        Learned::EdgeLabel(label) => Value::EdgeLabel(pb::EdgeLabelValue {
            relation: relation_of(label),
            cleared: label == EdgeLabel::CLEARED,
        }),
        Learned::Prompt(prompt) => Value::Prompt(outputs::prompt_message(&prompt)),
        Learned::ProfileEntry(entry) => Value::Profile(outputs::profile_message(entry)),
        Learned::SearchTuning(tuning) => Value::SearchTuning(search::tuning_message(&tuning).into()),
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
        examples.push(Example {
            feedback: violations.check(&format!("{field}[{index}].feedback_id"), id)?,
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
        input: example.input,
        output: example.output,
        corrected: example.corrected,
        issues: example.issues,
    }
}

/// The language with this number; UNSPECIFIED is EN.
pub fn language(number: i32) -> Result<Language, Invalid> {
    match number {
        0 => Ok(Language::En),
        number => Language::from_number(number)
            .ok_or_else(|| Invalid::new(format!("is not a known language: {number}"))),
    }
}

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
            let relation = violations.check("relation", self::relation(*relation));
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

/// A rating of what a search returned.
pub fn search_rating(number: i32) -> Result<SearchRating, Invalid> {
    match pb::SearchRatingValue::try_from(number) {
        Ok(pb::SearchRatingValue::Up) => Ok(SearchRating::Up),
        Ok(pb::SearchRatingValue::Neutral) => Ok(SearchRating::Neutral),
        Ok(pb::SearchRatingValue::Down) => Ok(SearchRating::Down),
        Ok(pb::SearchRatingValue::Unspecified) => Err(Invalid::new("is required: UP, NEUTRAL or DOWN")),
        Err(_) => Err(Invalid::new(format!("is not a known rating: {number}"))),
    }
}

/// Its value on the wire.
pub fn search_rating_value(rating: SearchRating) -> pb::SearchRatingValue {
    match rating {
        SearchRating::Up => pb::SearchRatingValue::Up,
        SearchRating::Neutral => pb::SearchRatingValue::Neutral,
        SearchRating::Down => pb::SearchRatingValue::Down,
    }
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

/// The label's number on the wire; 0 if it is cleared.
fn relation_of(label: EdgeLabel) -> i32 {
    label.relation().map_or(0, EdgeRelation::number)
}

/// The decision about a claim with this number.
fn decision_about_claim(number: i32) -> Result<ClaimDecision, Invalid> {
    match pb::ClaimDecision::try_from(number) {
        Ok(pb::ClaimDecision::Rejected) => Ok(ClaimDecision::Rejected),
        Ok(pb::ClaimDecision::Restored) => Ok(ClaimDecision::Restored),
        Ok(pb::ClaimDecision::Cleared) => Ok(ClaimDecision::Cleared),
        Ok(pb::ClaimDecision::Unspecified) => Err(Invalid::new("is required")),
        Err(_) => Err(Invalid::new(format!("is not a known decision: {number}"))),
    }
}

fn claim_decision_number(decision: ClaimDecision) -> pb::ClaimDecision {
    match decision {
        ClaimDecision::Rejected => pb::ClaimDecision::Rejected,
        ClaimDecision::Restored => pb::ClaimDecision::Restored,
        ClaimDecision::Cleared => pb::ClaimDecision::Cleared,
    }
}

/// The relation of an edge with this number.
pub fn edge_relation(number: i32) -> Result<EdgeRelation, Invalid> {
    match number {
        0 => Err(Invalid::new("is required")),
        number => EdgeRelation::from_number(number)
            .ok_or_else(|| Invalid::new(format!("is not a known relation: {number}"))),
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

/// The number on the wire of what the system found.
fn finding_number(found: Option<Finding>) -> pb::DomainRuleCause {
    match found {
        None => pb::DomainRuleCause::Unspecified,
        Some(Finding::DangerousPattern) => pb::DomainRuleCause::DangerousPattern,
        Some(Finding::RejectedShare) => pb::DomainRuleCause::RejectedShare,
        Some(Finding::IndependentSupport) => pb::DomainRuleCause::IndependentSupport,
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
            let learned = ["choice", "block", "rejected:SPAM", "refutes", "top_k=5"]
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
