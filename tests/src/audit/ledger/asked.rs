//! Checks what was asked of feedback-svc and what it acknowledged, submissions and retractions, against what it stored.

use std::collections::{BTreeMap, BTreeSet};

use emend_audit::Stored;
use emend_core::personal_data::mask;
use emend_proto::feedback::v1::SubmitFeedbackRequest;
use emend_store::audit::Findings;
use emend_wire::parse;

use super::{
    ACKNOWLEDGED_DIFFERS, ACKNOWLEDGED_LOST, RETRACTED_UNASKED, RETRACTION_LOST, STORED_TWICE, STORED_UNASKED,
};

/// A caller's name for a submission: namespace and request id. All of a test's clients are one caller.
type Name = (String, String);

/// What was asked, and which of it was acknowledged. What was asked but not acknowledged may be stored or not: perhaps
/// only the answer was lost.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    requests: BTreeMap<Name, Request>,
    /// By feedback id: whether its retraction was acknowledged.
    retractions: BTreeMap<String, bool>,
}

#[derive(Debug, Clone)]
struct Request {
    message: SubmitFeedbackRequest,
    acknowledged: Option<String>,
}

fn name(message: &SubmitFeedbackRequest) -> Name {
    assert!(
        !message.request_id.is_empty(),
        "a request that is to be audited has a request id"
    );
    (message.namespace.clone(), message.request_id.clone())
}

impl Asked {
    /// Notes a submission that is about to be sent, for the first time or again.
    ///
    /// # Panics
    /// If it has no request id.
    pub fn ask(&mut self, message: &SubmitFeedbackRequest) {
        self.requests.entry(name(message)).or_insert_with(|| Request {
            message: message.clone(),
            acknowledged: None,
        });
    }

    /// Notes that a submission was answered OK, with this id.
    ///
    /// # Panics
    /// If it has no request id, or was answered with another id earlier.
    pub fn acknowledge(&mut self, message: &SubmitFeedbackRequest, feedback_id: &str) {
        self.ask(message);
        let request = self.requests.get_mut(&name(message)).expect("asked just now");
        let before = request.acknowledged.replace(feedback_id.to_owned());
        assert!(
            before.is_none_or(|before| before == feedback_id),
            "one request, one feedback"
        );
    }

    /// Notes that feedback is about to be retracted, for the first time or again.
    pub fn ask_to_retract(&mut self, feedback_id: &str) {
        self.retractions.entry(feedback_id.to_owned()).or_default();
    }

    /// Notes that a retraction was answered OK.
    pub fn acknowledge_retraction(&mut self, feedback_id: &str) {
        self.retractions.insert(feedback_id.to_owned(), true);
    }

    /// Merges what another was asked, for writers that each keep their own.
    pub fn merge(&mut self, other: Self) {
        self.requests.extend(other.requests);
        for (feedback_id, acknowledged) in other.retractions {
            *self.retractions.entry(feedback_id).or_default() |= acknowledged;
        }
    }

    /// The number of acknowledged submissions.
    pub fn acknowledged(&self) -> usize {
        let requests = self.requests.values();
        requests.filter(|request| request.acknowledged.is_some()).count()
    }
}

/// Compares every piece of stored feedback with what was asked.
pub(super) struct Witness<'a> {
    asked: &'a Asked,
    seen: BTreeSet<Name>,
    acknowledged: BTreeMap<&'a str, &'a Request>,
}

impl<'a> Witness<'a> {
    pub(super) fn of(asked: &'a Asked) -> Self {
        let acknowledged = asked
            .requests
            .values()
            .filter_map(|request| Some((request.acknowledged.as_deref()?, request)));
        Self {
            asked,
            seen: BTreeSet::new(),
            acknowledged: acknowledged.collect(),
        }
    }

    pub(super) fn sees(&mut self, stored: &Stored, findings: &mut Findings) {
        let id = stored.id().to_string();
        let evidence = format!("feedback {id}");
        if let Some(request) = self.acknowledged.remove(id.as_str())
            && let Some(what) = difference(&request.message, stored)
        {
            findings.add(
                ACKNOWLEDGED_DIFFERS,
                &evidence,
                format_args!("its {what} differs from the request"),
            );
        }
        match (self.asked.retractions.get(&id), stored.is_retracted()) {
            (Some(true), false) => findings.add(
                RETRACTION_LOST,
                &evidence,
                "its retraction was acknowledged, but is not stored",
            ),
            (None, true) => findings.add(
                RETRACTED_UNASKED,
                &evidence,
                "it is retracted, but nobody requested that",
            ),
            (Some(true), true) | (Some(false), _) | (None, false) => {}
        }
        let request_id = stored.request_id().map_or("", |id| id.as_str());
        let name = (stored.namespace().to_string(), request_id.to_owned());
        match self.asked.requests.get(&name) {
            None => findings.add(STORED_UNASKED, &evidence, "nobody requested it"),
            Some(request) => {
                if difference(&request.message, stored).is_some() {
                    findings.add(
                        STORED_UNASKED,
                        &evidence,
                        "another request was sent under this request id",
                    );
                }
                if !self.seen.insert(name) {
                    findings.add(
                        STORED_TWICE,
                        &evidence,
                        "the same request is also stored as another feedback",
                    );
                }
            }
        }
    }

    pub(super) fn ends(self, findings: &mut Findings) {
        for id in self.acknowledged.keys() {
            findings.add(
                ACKNOWLEDGED_LOST,
                format_args!("feedback {id}"),
                "it was acknowledged, but is not stored",
            );
        }
    }
}

/// The first field in which stored feedback differs from what was asked.
fn difference(asked: &SubmitFeedbackRequest, stored: &Stored) -> Option<&'static str> {
    let context: BTreeMap<String, String> = asked
        .context
        .iter()
        .map(|(key, value)| (key.clone(), mask(value).into_owned()))
        .collect();
    let same = [
        ("namespace", stored.namespace().as_str() == asked.namespace),
        (
            "reporter",
            parse::reporter(asked.reporter.as_ref()).as_ref() == Ok(stored.reporter()),
        ),
        (
            "correction",
            parse::correction(asked.correction.as_ref()).as_ref() == Ok(stored.correction()),
        ),
        ("scope", parse::scope(asked.scope) == Ok(stored.scope())),
        ("query id", stored.query_id() == asked.query_id),
        ("reason", stored.reason() == mask(asked.reason.trim())),
        ("context", *stored.context() == context),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}
