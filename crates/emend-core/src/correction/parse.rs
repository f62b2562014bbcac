//! Parsing a correction's fields, with every violation at once.

use super::{Correction, Subject};
use crate::{
    evidence::{DomainRule, EdgeRelation},
    kinds::{self, EdgeLabel, Kind, ReasonCode, Relation, SearchTuning},
    normalize::parse_choice,
    ratings::{OwnTarget, Rating, RatingFields, RefusedRating},
    violation::{Invalid, Violations},
};

/// The most equivalents in one correction of a term.
pub const MAX_EQUIVALENTS: usize = 32;

impl Correction {
    /// Parses the fields of a correction of a verb: what the system chose, or nothing, and what is right.
    pub fn parse_verb(original_input: &str, system_choice: &str, verb: &str) -> Result<Self, Violations> {
        let parsed = corrected_choice(Kind::InvocationPhrase, original_input, system_choice, verb)?;
        let (phrase, system_choice, verb) = parsed;
        Ok(Self::Verb {
            phrase,
            system_choice,
            verb,
        })
    }

    /// The same of an entity.
    pub fn parse_entity(original_input: &str, system_choice: &str, entity: &str) -> Result<Self, Violations> {
        let parsed = corrected_choice(Kind::EntityAlias, original_input, system_choice, entity)?;
        let (alias, system_choice, entity) = parsed;
        Ok(Self::Entity {
            alias,
            system_choice,
            entity,
        })
    }

    /// Parses the fields of a phrase mapping.
    pub fn parse_phrase_mapping(phrase: &str, verb: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::InvocationPhrase.rules().key;
        let phrase = Subject::parse(&mut violations, "phrase", form, phrase);
        let verb = violations.check("verb", parse_choice(verb));
        let parsed = phrase.zip(verb);
        violations.finish(parsed.map(|(phrase, verb)| Self::PhraseMapping { phrase, verb }))
    }

    /// Parses the fields of a prohibition.
    pub fn parse_prohibition(phrase: &str, forbidden_choice: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::Prohibition.rules().key;
        let phrase = Subject::parse(&mut violations, "phrase", form, phrase);
        let forbidden = violations.check("forbidden_choice", parse_choice(forbidden_choice));
        let parsed = phrase.zip(forbidden);
        violations.finish(parsed.map(|(phrase, forbidden)| Self::Prohibition { phrase, forbidden }))
    }

    /// Parses the fields of a correction of a term: what else stands for it, and how. One assertion for each equivalent.
    pub fn parse_term<'a>(
        term: &str,
        equivalents: impl ExactSizeIterator<Item = &'a str>,
        relation: Relation,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::Synonym.rules().key;
        let term = Subject::parse(&mut violations, "term", form, term);
        let count = equivalents.len();
        if !(1..=MAX_EQUIVALENTS).contains(&count) {
            violations.add(
                "equivalents",
                format!("must have 1 to {MAX_EQUIVALENTS} entries, has {count}"),
            );
        }
        let mut parsed: Vec<Subject> = Vec::with_capacity(count.min(MAX_EQUIVALENTS));
        for (index, equivalent) in equivalents.take(MAX_EQUIVALENTS).enumerate() {
            let field = format!("equivalents[{index}]");
            let Some(equivalent) = Subject::parse(&mut violations, &field, form, equivalent) else {
                continue;
            };
            let Some(term) = &term else { continue };
            if equivalent.key == term.key {
                violations.add(field, "must differ from term: there is nothing to learn");
            } else if parsed.iter().any(|other| other.key == equivalent.key) {
                violations.add(field, "is there twice, perhaps in another spelling");
            } else {
                parsed.push(equivalent);
            }
        }
        violations.finish(term.map(|term| Self::Term {
            term,
            equivalents: parsed,
            relation,
        }))
    }

    /// Parses what is decided about the sources that a pattern of domains covers. A wrong rule is a violation of its level.
    pub fn parse_domain(
        pattern: &str,
        rule: Result<DomainRule, Invalid>,
        task_id: &str,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::DomainRule.rules().key;
        let pattern = Subject::parse(&mut violations, "pattern", form, pattern);
        let rule = violations.check("level", rule);
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = pattern.zip(rule).zip(task);
        violations.finish(parsed.map(|((pattern, rule), task)| match rule {
            DomainRule::Block => Self::DomainBlock { pattern, task },
            DomainRule::Unblock(level) => Self::DomainUnblock { pattern, level, task },
            DomainRule::SetTrust(level) => Self::DomainSetTrust { pattern, level, task },
            DomainRule::Clear => Self::DomainClearOverride { pattern, task },
        }))
    }

    /// Parses the fields of a claim's rejection, with a reason code or an empty one.
    pub fn parse_claim_reject(claim_id: &str, reason_code: &str, task_id: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::ClaimState.rules().key;
        let claim = Subject::parse(&mut violations, "claim_id", form, claim_id);
        let reason_code = violations.check("reason_code", ReasonCode::parse(reason_code));
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = claim.zip(reason_code).zip(task);
        violations.finish(parsed.map(|((claim, reason_code), task)| Self::ClaimReject {
            claim,
            reason_code,
            task,
        }))
    }

    /// Parses the fields of a claim's restoration.
    pub fn parse_claim_restore(claim_id: &str, task_id: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::ClaimState.rules().key;
        let claim = Subject::parse(&mut violations, "claim_id", form, claim_id);
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = claim.zip(task);
        violations.finish(parsed.map(|(claim, task)| Self::ClaimRestore { claim, task }))
    }

    /// Parses the fields of an edge's correction. Violations of `relation` are those of the caller's own parsing, too.
    pub fn parse_edge(
        edge_id: &str,
        relation: Result<EdgeRelation, Invalid>,
        task_id: &str,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::EdgeLabel.rules().key;
        let edge = Subject::parse(&mut violations, "edge_id", form, edge_id);
        let label = violations.check("correct_relation", relation.and_then(EdgeLabel::new));
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = edge.zip(label).zip(task);
        violations.finish(parsed.map(|((edge, label), task)| Self::EdgeCorrect { edge, label, task }))
    }

    /// Parses the fields of a tuning. Violations of `tuning` are those of the caller's own parsing, within its message; `None`
    /// clears what is set, which no correction does.
    pub fn parse_tuning(
        query_type: &str,
        tuning: Result<Option<SearchTuning>, Violations>,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let tuning = violations.part("tuning", tuning);
        let form = Kind::SearchTuning.rules().key;
        let query_type = Subject::parse(&mut violations, "query_type", form, query_type);
        if tuning == Some(None) {
            violations.add("tuning", "must be set: only an operator clears it");
        }
        let parsed = query_type.zip(tuning.flatten());
        violations.finish(parsed.map(|(query_type, tuning)| Self::Tuning { query_type, tuning }))
    }

    /// Parses the fields of a rating as it was stored or travels.
    pub fn parse_rating(fields: RatingFields<'_>) -> Result<Self, Violations> {
        Rating::parse(fields).and_then(Self::rated)
    }

    /// Parses the fields of a rating as somebody gives it, where the application has these targets of its own.
    pub fn parse_new_rating(fields: RatingFields<'_>, own: &[OwnTarget]) -> Result<Self, RefusedRating> {
        Ok(Self::rated(Rating::parse_new(fields, own)?)?)
    }

    fn rated(rating: Rating) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::FewShotSet.rules().key;
        let target = Subject::parse(&mut violations, "target", form, &rating.target);
        let rating = Box::new(rating);
        violations.finish(target.map(|target| Self::Rating { target, rating }))
    }
}

/// The fields of a correction that says what is right in place of what the system chose, if that is known.
fn corrected_choice(
    kind: Kind,
    input: &str,
    system_choice: &str,
    correct_choice: &str,
) -> Result<(Subject, Option<String>, String), Violations> {
    let mut violations = Violations::new();
    let subject = Subject::parse(&mut violations, "original_input", kind.rules().key, input);
    let choice = violations.check("correct_choice", parse_choice(correct_choice));
    let system_choice = if system_choice.trim().is_empty() {
        Some(None)
    } else {
        violations
            .check("system_choice", parse_choice(system_choice))
            .map(Some)
    };
    if let (Some(Some(system)), Some(right)) = (&system_choice, &choice)
        && system == right
    {
        violations.add(
            "correct_choice",
            "must differ from system_choice: there is nothing to correct",
        );
    }
    let parsed = subject.zip(system_choice).zip(choice);
    violations.finish(parsed.map(|((subject, system_choice), choice)| (subject, system_choice, choice)))
}

/// The research task in which something is said, by the application's own id: at most 256 characters, compared byte for byte.
/// Empty: none.
fn parse_task(raw: &str) -> Result<Option<String>, Invalid> {
    match raw.trim() {
        "" => Ok(None),
        task => kinds::Form::Exact.parse(task).map(Some),
    }
}
