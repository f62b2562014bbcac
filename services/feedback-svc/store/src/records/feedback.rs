//! Feedback: parsed submissions, and what is stored of them.

use std::collections::BTreeMap;

use emend_core::{
    AcceptOrder, Caller, Correction, FeedbackId, Kind, Namespace, Rating, Reporter, RequestId, Role, Rule,
    Scope,
};
use emend_proto::common::v1::{self as pb, RatingClass, correction::Correction as Oneof};
use emend_wire::render;
use jiff::Timestamp;
use prost::Message as _;
use xxhash_rust::xxh3::Xxh3;

use crate::records::{
    erasure::Redaction,
    event::NewEvent,
    outbox::{DeliveryState, EncodedOutcome},
    ratings::{RatingFilter, RatingState},
};

/// A valid request to store one correction. `C` is that correction; `()` where it is looked at by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission<C = Correction> {
    /// Makes it safe to repeat.
    pub request_id: Option<RequestId>,
    /// The search application.
    pub namespace: Namespace,
    /// Who reports it. With scope USER the id is present.
    pub reporter: Reporter,
    /// The query it is about; may be empty.
    pub query_id: String,
    /// Why; may be empty.
    pub reason: String,
    /// Whatever helps a reviewer.
    pub context: BTreeMap<String, String>,
    /// For whom it is to be learned.
    pub scope: Scope,
    /// What is wrong and what is right.
    pub correction: C,
}

impl<C> Submission<C> {
    /// The same request with this correction.
    pub fn with<D>(self, correction: D) -> Submission<D> {
        Submission {
            request_id: self.request_id,
            namespace: self.namespace,
            reporter: self.reporter,
            query_id: self.query_id,
            reason: self.reason,
            context: self.context,
            scope: self.scope,
            correction,
        }
    }

    /// Tells a repeated request from a reused request id. Covers every field but the request id itself and what a rating
    /// counts as. `correction` is the message of the correction.
    fn hash_with(&self, mut correction: pb::Correction) -> RequestHash {
        let mut hash = Hasher::new();
        let Self {
            request_id: _,
            namespace,
            reporter,
            query_id,
            reason,
            context,
            scope,
            correction: _,
        } = self;
        hash.text(namespace.as_str());
        hash.optional(reporter.id.as_ref().map(emend_core::ReporterId::as_str));
        hash.optional(reporter.session.as_deref());
        hash.text(&reporter.client);
        hash.text(&reporter.client_key);
        hash.text(query_id);
        hash.text(reason);
        hash.number(context.len());
        for (key, value) in context {
            hash.text(key);
            hash.text(value);
        }
        hash.number(usize::from(*scope == Scope::User));
        if let Some(Oneof::Rating(rating)) = &mut correction.correction {
            // It follows from the settings, which may change before the request is repeated.
            rating.counts_as = RatingClass::Unspecified.into();
        }
        hash.bytes(&correction.encode_to_vec());
        RequestHash(hash.0.digest128().to_le_bytes())
    }
}

impl Submission<Box<Rating<()>>> {
    /// How the request is found again, if it was stored when its target could be rated. None without a request id.
    pub fn repeated(self) -> Option<RepeatedRequest> {
        let hash = self.hash_with(render::rating_without_class(&self.correction));
        Some(RepeatedRequest {
            request_id: self.request_id?,
            namespace: self.namespace,
            hash,
        })
    }
}

impl Submission {
    /// Whether learning-svc is told of it. It is not of a rating of a search answer, from which alone nothing is learned.
    pub fn is_delivered(&self) -> bool {
        self.correction.form().kind().is_some()
    }

    /// Tells a repeated request from a reused request id.
    pub fn hash(&self) -> RequestHash {
        self.hash_with(render::correction(&self.correction))
    }
}

/// A request that was perhaps stored before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedRequest {
    /// The search application.
    pub namespace: Namespace,
    /// What its sender calls it.
    pub request_id: RequestId,
    /// The hash of all else that it says.
    pub hash: RequestHash,
}

/// XXH3-128 of a parsed request, every part preceded by its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHash(pub [u8; 16]);

struct Hasher(Xxh3);

impl Hasher {
    fn new() -> Self {
        Self(Xxh3::new())
    }

    fn number(&mut self, number: usize) {
        self.0.update(&(number as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.update(bytes);
    }

    fn optional(&mut self, text: Option<&str>) {
        self.number(usize::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }
}

/// Feedback that is ready to be stored.
#[derive(Debug, Clone)]
pub struct NewFeedback {
    /// Its id.
    pub id: FeedbackId,
    /// The authenticated client that sent it.
    pub caller: Caller,
    /// W3C trace context of the submission; may be empty.
    pub traceparent: String,
    /// What was said, masked.
    pub submission: Submission,
    /// The hash of the request as it was parsed, before masking.
    pub hash: RequestHash,
    /// The event that tells learning-svc it was recorded; of what is not delivered it only says how large it is.
    pub event: NewEvent,
    /// What was taken out of a rating of a search answer.
    pub removed: Removed,
}

/// What was taken out of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// HTML.
    pub html: bool,
    /// Personal data.
    pub personal_data: bool,
}

/// Whether it matters who retracts what is learned as this kind.
pub fn is_by_ruling(kind: Option<Kind>) -> bool {
    kind.is_some_and(|kind| matches!(kind.rules().rule, Rule::Ruling(_)))
}

/// A request to retract feedback.
#[derive(Debug, Clone)]
pub struct NewRetraction {
    /// The search application.
    pub namespace: Namespace,
    /// Which feedback.
    pub id: FeedbackId,
    /// The authenticated client that asks for it.
    pub caller: Caller,
    /// Its strongest role at that time.
    pub role: Option<Role>,
    /// Why, masked; may be empty.
    pub reason: String,
    /// The event that tells learning-svc it was retracted.
    pub event: NewEvent,
}

impl NewRetraction {
    /// The number under which [`NewRetraction::role`] is stored.
    pub fn role_number(&self) -> i64 {
        self.role.map_or(0, |role| role as i64 + 1)
    }
}

/// What the database assigned to a stored event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The feedback's accept order.
    pub order: AcceptOrder,
    /// When it was stored, by the database's clock.
    pub at: Timestamp,
}

/// A stored correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// Its id.
    pub id: FeedbackId,
    /// What was said, masked.
    pub submission: Submission,
    /// The authenticated client that sent it.
    pub caller: Caller,
    /// Its position in the order of all feedback, and when it was stored.
    pub accepted: Accepted,
    /// Its retraction, if any.
    pub retraction: Option<Retraction>,
    /// What learning-svc answered, if it has.
    pub outcome: Option<EncodedOutcome>,
    /// The delivery state of its newest event that was evaluated or will be.
    pub delivery: DeliveryState,
    /// The erasure of its personal parts, if any.
    pub redaction: Option<Redaction>,
    /// What is known of a rating of a search answer.
    pub search_rating: Option<RatingState>,
}

/// The retraction of a feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retraction {
    /// When, by the database's clock.
    pub at: Timestamp,
    /// Why, masked; may be empty.
    pub reason: String,
}

/// Which feedback to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackQuery {
    /// The search application.
    pub namespace: Namespace,
    /// Only this reporter's.
    pub reporter: Option<emend_core::ReporterId>,
    /// Only what would be learned as this kind.
    pub kind: Option<Kind>,
    /// Only ratings of this target.
    pub target: Option<String>,
    /// Only ratings with this value; not without a target.
    pub rating: Option<String>,
    /// Only ratings of search answers, and only these.
    pub search_ratings: Option<RatingFilter>,
    /// Only feedback in this delivery state.
    pub delivery: Option<DeliveryState>,
    /// Only what was received at or after this time.
    pub from: Option<Timestamp>,
    /// Only what was received before this time.
    pub before: Option<Timestamp>,
    /// Only what follows this one in the list.
    pub after: Option<AcceptOrder>,
    /// At most this many.
    pub limit: u32,
}

impl FeedbackQuery {
    /// Whether no index yields exactly these rows in order, so that the query may have to scan much.
    pub fn is_wide(&self) -> bool {
        let undelivered = matches!(
            self.delivery,
            Some(DeliveryState::Pending | DeliveryState::DeadLetter)
        );
        if let Some(filter) = &self.search_ratings {
            let labels = filter.tag.is_some() || filter.processed.is_some() || filter.only_counting;
            let by_index = [
                filter.value.is_some(),
                filter.query_type.is_some(),
                filter.query_text.is_some(),
            ];
            let both = by_index.iter().filter(|is_asked| **is_asked).count() > 1;
            let others = self.reporter.is_some() || self.delivery.is_some();
            return labels || both || others || self.has_period();
        }
        let by_kind = self.kind.is_some() || self.is_of_ratings();
        let by_index = [self.reporter.is_some(), by_kind, undelivered];
        let conditions = by_index.iter().filter(|is_asked| **is_asked).count();
        conditions > 1 || self.delivery.is_some() && !undelivered || self.has_period()
    }

    /// Whether it asks for ratings alone. Nothing else is learned as their kind.
    pub fn is_of_ratings(&self) -> bool {
        match self.kind {
            Some(kind) => kind == Kind::FewShotSet,
            None => self.target.is_some(),
        }
    }

    /// Whether it asks for a period.
    pub fn has_period(&self) -> bool {
        self.from.is_some() || self.before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn submission() -> Submission {
        Submission {
            request_id: None,
            namespace: Namespace::parse("fund-admin").unwrap(),
            reporter: Reporter::parse("jane", "s", "web", "").unwrap(),
            query_id: String::new(),
            reason: "ask jane.doe@example.org".into(),
            context: BTreeMap::from([("topic".into(), "call +44 20 7946 0958".into())]),
            scope: Scope::Global,
            correction: Correction::parse_phrase_mapping("mail jane.doe@example.org", "send_mail").unwrap(),
        }
    }

    #[test]
    fn each_field_changes_the_hash_but_the_request_id() {
        let original = submission();
        let changed: [fn(&mut Submission); 9] = [
            |s| s.namespace = Namespace::parse("other").unwrap(),
            |s| s.reporter = Reporter::parse("", "jane", "web", "").unwrap(),
            |s| s.reporter.client_key = "k".into(),
            |s| s.query_id = "q".into(),
            |s| s.reason = "other".into(),
            |s| drop(s.context.insert("more".into(), String::new())),
            |s| s.scope = Scope::User,
            |s| s.correction = Correction::parse_entity("a", "", "b").unwrap(),
            |s| s.correction = Correction::parse_phrase_mapping("a", "b").unwrap(),
        ];
        for change in changed {
            let mut other = original.clone();
            change(&mut other);
            assert_ne!(other.hash(), original.hash(), "{other:?}");
        }
        let same = Submission {
            request_id: Some(RequestId::parse("r").unwrap()),
            ..original.clone()
        };
        assert_eq!(same.hash(), original.hash());
    }

    #[test]
    fn the_task_of_a_decision_changes_the_hash() {
        let decided_in = |task: &str| Submission {
            correction: Correction::parse_claim_restore("c1", task).unwrap(),
            ..submission()
        };
        assert_ne!(decided_in("t1").hash(), decided_in("").hash());
        assert_eq!(decided_in(" t1").hash(), decided_in("t1").hash());
    }

    proptest! {
        #[test]
        fn text_that_moves_between_fields_changes_the_hash(left in "[a-z]{0,3}", right in "[a-z]{1,3}") {
            let one = Submission { query_id: left.clone(), reason: right.clone(), ..submission() };
            let other = Submission { query_id: left + &right, reason: String::new(), ..submission() };
            prop_assert_ne!(one.hash(), other.hash());
        }
    }
}
