//! What a load was told: what was acknowledged and what was refused.

use std::collections::{BTreeMap, BTreeSet};

use emend_base::status::Explained;
use emend_proto::feedback::v1::{Feedback as StoredFeedback, SubmitFeedbackRequest};
use tonic::Code;

use crate::audit::ledger::Asked;

/// Everything that was acknowledged to some writers.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// What was asked of feedback-svc, verbatim, and which of it was acknowledged.
    pub asked: Asked,
    /// Feedback by id, with its request id.
    pub stored: BTreeMap<String, String>,
    /// Retracted feedback, by id.
    pub retracted: BTreeSet<String>,
    /// What operators did, with the revisions that they were told.
    pub acts: Vec<OperatorWrite>,
    /// What operators reverted.
    pub reverts: Vec<Revert>,
    /// Imports that changed something.
    pub imports: Vec<Import>,
    /// Refusals of calls that were repeated and got through later.
    pub refusals: Refusals,
}

/// What an operator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorWrite {
    /// The revision that did it.
    pub revision: i64,
    /// The normalised key.
    pub key: String,
    /// The value that was put; `None` for a deletion.
    pub value: Option<String>,
}

/// A revision that an operator reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revert {
    /// The reverted revision.
    pub of: i64,
    /// The revision that reverted it.
    pub revision: i64,
}

/// Rows imported as a person's decision: from one glossary, all with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The namespace of the keys.
    pub namespace: String,
    /// The normalised keys.
    pub keys: Vec<String>,
    /// The value that each was given.
    pub value: String,
    /// The first revision of the import.
    pub first: i64,
    /// The last one.
    pub last: i64,
    /// How many rows this call changed: all, unless an earlier attempt took effect without an answer.
    pub applied: i64,
}

/// Counts of refusals by code and reason; an empty reason means that the connection broke.
#[derive(Debug, Clone, Default)]
pub struct Refusals(BTreeMap<(i32, String), usize>);

impl Refusals {
    /// Counts a refusal.
    pub fn add(&mut self, refusal: &Explained) {
        let reason = refusal.reason.clone().unwrap_or_default();
        *self.0.entry((refusal.code.into(), reason)).or_default() += 1;
    }

    /// How often a service refused with this code and reason.
    pub fn of(&self, code: Code, reason: &str) -> usize {
        let key = (code.into(), reason.to_owned());
        self.0.get(&key).copied().unwrap_or_default()
    }
}

impl Record {
    /// Notes that a submission was answered OK. Answers with the feedback's id.
    pub fn acknowledge(&mut self, request: &SubmitFeedbackRequest, stored: StoredFeedback) -> String {
        let StoredFeedback {
            feedback_id,
            request_id,
            ..
        } = stored;
        self.asked.acknowledge(request, &feedback_id);
        self.stored.insert(feedback_id.clone(), request_id);
        feedback_id
    }

    /// Notes that a retraction was answered OK.
    pub fn acknowledge_retraction(&mut self, feedback_id: String) {
        self.asked.acknowledge_retraction(&feedback_id);
        self.retracted.insert(feedback_id);
    }

    /// Adds what other writers were told.
    pub fn add(&mut self, other: Self) {
        let Self {
            asked,
            stored,
            retracted,
            acts,
            reverts,
            imports,
            refusals,
        } = other;
        self.asked.merge(asked);
        self.stored.extend(stored);
        self.retracted.extend(retracted);
        self.acts.extend(acts);
        self.reverts.extend(reverts);
        self.imports.extend(imports);
        for (refusal, count) in refusals.0 {
            *self.refusals.0.entry(refusal).or_default() += count;
        }
    }

    /// What was acknowledged but is not stored; what is stored twice, or was never acknowledged; what is retracted
    /// without an acknowledgement, or the reverse. In words; empty if all is well.
    pub fn differences(&self, stored: &[StoredFeedback]) -> Vec<String> {
        let mut found = Vec::new();
        let mut ids: BTreeMap<&str, &StoredFeedback> = BTreeMap::new();
        let mut requests = BTreeSet::new();
        for feedback in stored {
            ids.insert(&feedback.feedback_id, feedback);
            if !requests.insert(&feedback.request_id) {
                found.push(format!("request {} is stored twice", feedback.request_id));
            }
            if !self.stored.contains_key(&feedback.feedback_id) {
                found.push(format!(
                    "{} ({}) is stored, but was never acknowledged",
                    feedback.feedback_id, feedback.request_id
                ));
            }
        }
        for (id, request) in &self.stored {
            match ids.get(id.as_str()) {
                None => found.push(format!("{id} ({request}) was acknowledged, but is not stored")),
                Some(feedback) if feedback.request_id != *request => found.push(format!(
                    "{id} was acknowledged to request {request}, and is stored of {}",
                    feedback.request_id
                )),
                Some(feedback) if feedback.retracted_at.is_some() != self.retracted.contains(id) => {
                    found.push(format!("{id}: stored and acknowledged retraction differ"));
                }
                Some(_) => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback(id: &str, request: &str, retracted: bool) -> StoredFeedback {
        StoredFeedback {
            feedback_id: id.into(),
            request_id: request.into(),
            retracted_at: retracted.then(prost_types::Timestamp::default),
            ..StoredFeedback::default()
        }
    }

    #[test]
    fn lost_unknown_duplicate_and_unretracted_feedback_is_found() {
        let record = Record {
            stored: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]),
            retracted: BTreeSet::from(["b".into()]),
            ..Record::default()
        };
        let whole = [feedback("a", "1", false), feedback("b", "2", true)];
        assert_eq!(record.differences(&whole), [""; 0]);
        for (wrong, what) in [
            (
                vec![feedback("b", "2", true)],
                "a (1) was acknowledged, but is not stored",
            ),
            (
                [whole.to_vec(), vec![feedback("c", "3", false)]].concat(),
                "c (3) is stored, but",
            ),
            (
                vec![feedback("a", "1", false), feedback("b", "2", false)],
                "b: stored and acknowledged retraction",
            ),
            (
                vec![feedback("a", "1", true), feedback("b", "2", true)],
                "a: stored and acknowledged retraction",
            ),
            (
                [whole.to_vec(), vec![feedback("c", "1", false)]].concat(),
                "request 1 is stored twice",
            ),
        ] {
            let found = record.differences(&wrong);
            assert!(
                found.iter().any(|found| found.contains(what)),
                "{what}: {found:?}"
            );
        }
    }
}
