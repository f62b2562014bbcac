//! One feedback as an audit sees it, and whether its parts agree.

use std::collections::BTreeMap;

use bytes::Bytes;
use emend_core::{
    AcceptOrder, Caller, Correction, EventId, FeedbackId, Namespace, Reporter, RequestId, Scope,
    search::Rater, voter::VoterKey,
};
use emend_proto::{
    common::v1::Outcome,
    learning::v1::{Event, event},
};
use emend_serve::auth::Role;
use emend_store::audit::Findings;
use jiff::Timestamp;
use prost::Message as _;

use crate::{
    audit::{
        FEEDBACK_KIND, FEEDBACK_PARTS, FEEDBACK_REDACTED, FEEDBACK_STATUS, OUTBOX_ENTRY, OUTBOX_STATE,
        SEARCH_RATING,
    },
    records::{
        event::recorded,
        feedback::{Feedback, is_by_ruling},
        outbox::DeliveryState,
    },
};

/// The delivery state of a feedback's newest event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In the outbox.
    Pending,
    /// Delivered.
    Delivered,
    /// Refused for good.
    Dead,
}

/// One feedback with all its parts, as of one moment.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) feedback: Feedback,
    pub(crate) kind: i64,
    /// What it is listed as a rating of, and with which value; empty where it is none.
    pub(crate) rating: [String; 2],
    pub(crate) traceparent: String,
    /// Those of the personal part and of the status.
    pub(crate) namespaces: [String; 2],
    /// How many events it has had; the newest has this number.
    pub(crate) events: i64,
    /// The number of the event whose outcome it holds; 0 if it holds none.
    pub(crate) outcome_of: i64,
    pub(crate) outbox: Vec<OutboxEntry>,
    pub(crate) listed_rating: Option<ListedRating>,
}

/// How a rating of a search answer is listed.
#[derive(Debug, Clone)]
pub(crate) struct ListedRating {
    pub(crate) namespace: String,
    pub(crate) value: i64,
    pub(crate) query_id: String,
    pub(crate) rater: Option<Rater>,
}

/// An event in the outbox.
#[derive(Debug, Clone)]
pub struct OutboxEntry {
    pub(crate) event: EventId,
    pub(crate) number: i64,
    pub(crate) state: DeliveryState,
    pub(crate) feedback: FeedbackId,
    pub(crate) namespace: String,
    pub(crate) payload: Bytes,
}

impl OutboxEntry {
    /// The event's id.
    pub fn event(&self) -> EventId {
        self.event
    }

    /// 1 for the first event of a feedback, and so on.
    pub fn number(&self) -> i64 {
        self.number
    }
}

impl Entry {
    /// Its id.
    pub fn id(&self) -> FeedbackId {
        self.feedback.id
    }

    /// The search application.
    pub fn namespace(&self) -> &Namespace {
        &self.feedback.submission.namespace
    }

    /// The client that sent it.
    pub fn caller(&self) -> &Caller {
        &self.feedback.caller
    }

    /// Who reported it.
    pub fn reporter(&self) -> &Reporter {
        &self.feedback.submission.reporter
    }

    /// The request id that made it safe to repeat.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.feedback.submission.request_id.as_ref()
    }

    /// The query it is about; may be empty.
    pub fn query_id(&self) -> &str {
        &self.feedback.submission.query_id
    }

    /// Why, masked; may be empty.
    pub fn reason(&self) -> &str {
        &self.feedback.submission.reason
    }

    /// What helps a reviewer, masked.
    pub fn context(&self) -> &BTreeMap<String, String> {
        &self.feedback.submission.context
    }

    /// For whom it is to be learned.
    pub fn scope(&self) -> Scope {
        self.feedback.submission.scope
    }

    /// What is wrong and what is right.
    pub fn correction(&self) -> &Correction {
        &self.feedback.submission.correction
    }

    /// Its position in the order of all feedback.
    pub fn accept_order(&self) -> AcceptOrder {
        self.feedback.accepted.order
    }

    /// When it was stored.
    pub fn received_at(&self) -> Timestamp {
        self.feedback.accepted.at
    }

    /// W3C trace context of its submission; may be empty.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Whether it was retracted.
    pub fn is_retracted(&self) -> bool {
        self.feedback.retraction.is_some()
    }

    /// How often it can have been retracted: where rulings decide, once by each role and once by nobody in particular.
    fn most_retractions(&self) -> i64 {
        match (
            &self.feedback.retraction,
            self.feedback.submission.correction.form().kind(),
        ) {
            (None, _) => 0,
            (Some(_), kind) if is_by_ruling(kind) => {
                1 + i64::try_from(emend_core::Role::ALL.len()).unwrap_or(i64::MAX)
            }
            (Some(_), _) => 1,
        }
    }

    /// The voter's pseudonym, and whether the voter was known by an id of its own.
    pub fn voter(&self) -> (VoterKey, bool) {
        if let Some(redaction) = &self.feedback.redaction {
            (redaction.voter, redaction.identified)
        } else {
            let voter = self.reporter().voter(self.caller());
            (voter.key(self.namespace()), voter.is_identified())
        }
    }

    /// Whether its personal parts are erased.
    pub fn is_redacted(&self) -> bool {
        self.feedback.redaction.is_some()
    }

    /// How many events it has had.
    pub fn events(&self) -> i64 {
        self.events + i64::from(self.is_redacted() && self.teaches())
    }

    /// Whether learning-svc is told of it: not of a rating of a search answer.
    pub fn teaches(&self) -> bool {
        self.feedback.submission.is_delivered()
    }

    /// Its events that are not delivered yet, as far as this service knows.
    pub fn outbox(&self) -> &[OutboxEntry] {
        &self.outbox
    }

    /// Whether the event with this number was delivered.
    pub fn is_delivered(&self, number: i64) -> bool {
        number <= self.events && self.outbox.iter().all(|entry| entry.number != number)
    }

    /// The delivery state of its newest event.
    pub fn delivery(&self) -> Delivery {
        match self.feedback.delivery {
            DeliveryState::Pending => Delivery::Pending,
            DeliveryState::Delivered => Delivery::Delivered,
            DeliveryState::DeadLetter => Delivery::Dead,
        }
    }

    /// What learning-svc answered, if it has.
    pub fn outcome(&self) -> Option<Result<Outcome, prost::DecodeError>> {
        let outcome = self.feedback.outcome.as_ref()?;
        Some(Outcome::decode(&*outcome.0))
    }

    /// Checks that its parts agree.
    pub fn check(&self, findings: &mut Findings) {
        let id = format!("feedback {}", self.id());
        if self
            .namespaces
            .iter()
            .any(|namespace| namespace != self.namespace().as_str())
        {
            findings.add(FEEDBACK_PARTS, &id, "its parts are in different namespaces");
        }
        let kind = self.correction().form().kind();
        let kind = kind.map_or(0, |kind| i64::from(kind.number()));
        if self.kind != kind {
            let message = format!(
                "it is listed as kind {}, but its correction is of kind {kind}",
                self.kind
            );
            findings.add(FEEDBACK_KIND, &id, message);
        }
        let rating = self.correction().rating();
        let rating = rating.map_or(["", ""], |rating| [&rating.target, &rating.value]);
        if self.rating != rating {
            let message = format!(
                "it is listed as the rating {:?}, but its correction is {rating:?}",
                self.rating
            );
            findings.add(FEEDBACK_KIND, &id, message);
        }
        if let Some(wrong) = self.wrong_with_listed_rating() {
            findings.add(SEARCH_RATING, &id, wrong);
        }
        self.check_redaction(&id, findings);
        self.check_status(&id, findings);
        self.check_outbox(&id, findings);
    }

    fn wrong_with_listed_rating(&self) -> Option<&'static str> {
        let (value, listed) = match (self.correction().search_rating(), &self.listed_rating) {
            (None, None) => return None,
            (None, Some(_)) => return Some("it is listed as a rating of a search answer, but is none"),
            (Some(_), None) => return Some("it is a rating of a search answer, but is not listed as one"),
            (Some(value), Some(listed)) => (value, listed),
        };
        let rater = Rater::of(self.namespace(), self.caller(), self.reporter());
        let is_right = listed.namespace == self.namespace().as_str()
            && listed.value == i64::from(value.number())
            && listed.query_id == self.query_id()
            && listed.rater == (!self.is_redacted()).then_some(rater);
        (!is_right).then_some("it is listed as another rating than it is")
    }

    fn check_redaction(&self, id: &str, findings: &mut Findings) {
        let submission = &self.feedback.submission;
        let is_empty = submission.reporter == Reporter::default()
            && submission.context.is_empty()
            && submission.query_id.is_empty()
            && submission.reason.is_empty()
            && submission.correction == submission.correction.clone().without_personal_parts()
            && self
                .feedback
                .retraction
                .as_ref()
                .is_none_or(|retraction| retraction.reason.is_empty());
        if self.is_redacted() && !is_empty {
            findings.add(FEEDBACK_REDACTED, id, "it is redacted, but has personal parts");
        }
    }

    fn check_status(&self, id: &str, findings: &mut Findings) {
        let mut wrong = |message: String| findings.add(FEEDBACK_STATUS, id, message);
        // One when it was stored; one for each retraction, each by a stronger role than the one before.
        let retractions = i64::from(self.is_retracted())..=self.most_retractions();
        if !self.teaches() {
            if self.events != 0 || self.outcome_of != 0 || self.delivery() != Delivery::Delivered {
                wrong("it is delivered to nobody, but has had events".to_owned());
            }
            return;
        }
        if !retractions.contains(&(self.events - 1)) {
            wrong(format!(
                "it has had {} events, but should have had {}",
                self.events,
                1 + retractions.start()
            ));
        }
        if self.outcome_of < 0 || self.outcome_of > self.events {
            wrong(format!(
                "its outcome is of event {} of {}",
                self.outcome_of, self.events
            ));
        }
        match self.outcome() {
            None if self.outcome_of > 0 => wrong("its outcome is missing".to_owned()),
            Some(_) if self.outcome_of == 0 => wrong("it has an outcome, but of no event".to_owned()),
            Some(Err(error)) => wrong(format!("its outcome can't be read: {error}")),
            _ => {}
        }
        if self.delivery() == Delivery::Delivered && self.outcome_of != self.events {
            wrong(format!(
                "event {} is delivered, but the outcome is of event {}",
                self.events, self.outcome_of
            ));
        }
    }

    fn check_outbox(&self, id: &str, findings: &mut Findings) {
        let newest = self.outbox.iter().find(|entry| entry.number == self.events);
        let (is, should) = (self.feedback.delivery, newest.map(|entry| entry.state));
        if is != should.unwrap_or(DeliveryState::Delivered) {
            let where_it_is = match should {
                None => "is not in the outbox".to_owned(),
                Some(state) => format!("is in the outbox as {state:?}"),
            };
            findings.add(
                OUTBOX_STATE,
                id,
                format_args!("its delivery state is {is:?}, but its newest event {where_it_is}"),
            );
        }
        for (place, entry) in self.outbox.iter().enumerate() {
            if let Some(wrong) = self.wrong_with(place, entry) {
                findings.add(OUTBOX_ENTRY, format_args!("{id}, event {}", entry.event), wrong);
            }
        }
    }

    fn wrong_with(&self, place: usize, entry: &OutboxEntry) -> Option<String> {
        if entry.feedback != self.id() || entry.namespace != self.namespace().as_str() {
            return Some("it names another feedback or namespace".to_owned());
        }
        let first = i64::from(!self.is_redacted());
        if !(first..=self.events).contains(&entry.number)
            || self.outbox[..place]
                .iter()
                .any(|other| other.number == entry.number)
        {
            return Some(format!("it has number {} of {}", entry.number, self.events));
        }
        let message = match Event::decode(entry.payload.clone()) {
            Ok(message) => message,
            Err(error) => return Some(format!("its payload can't be read: {error}")),
        };
        let right = match (entry.number, &message.event) {
            (1, Some(event::Event::Recorded(found))) => {
                let submission = &self.feedback.submission;
                let again = recorded(
                    entry.event,
                    self.id(),
                    self.caller(),
                    // What the caller might do then is in the event alone.
                    found.sender_roles.clone(),
                    &self.traceparent,
                    submission,
                    self.feedback.redaction.as_ref(),
                );
                again.message == message && are_roles(&found.sender_roles)
            }
            (2.., Some(event::Event::Retracted(found))) => {
                self.is_of(&message, entry) && are_roles(&found.sender_roles)
            }
            (0, Some(event::Event::Redacted(_))) => self.is_of(&message, entry),
            _ => false,
        };
        (!right).then(|| "its payload is not the event of this feedback".to_owned())
    }

    fn is_of(&self, message: &Event, entry: &OutboxEntry) -> bool {
        message.event_id == entry.event.to_string() && message.feedback_id == self.id().to_string()
    }
}

/// Whether these are names of roles. Which of them the caller had is in the event alone.
fn are_roles(names: &[String]) -> bool {
    names
        .iter()
        .all(|name| Role::ALL.into_iter().any(|role| role.name() == name))
}
