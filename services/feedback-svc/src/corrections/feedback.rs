//! Feedback: parsed submissions, and what is stored of them.

use std::collections::BTreeMap;

use emend_core::{
    AcceptOrder, Caller, Correction, FeedbackId, Kind, Namespace, Rating, Reporter, RequestId, Role, Rule,
    Scope, personal_data,
};
use emend_proto::common::v1::{self as pb, RatingClass, correction::Correction as Oneof};
use emend_wire::{
    parse::{MAX_CONTEXT_VALUE_BYTES, MAX_REASON_CHARS},
    render,
};
use jiff::Timestamp;
use prost::Message as _;
use xxhash_rust::xxh3::Xxh3;

use crate::{
    erasure::Redaction,
    outbox::entry::{DeliveryState, EncodedOutcome, NewEvent},
    ratings::{
        RatingFilter, RatingState,
        plain_text::{self, Removed},
    },
};

/// A valid request to store one correction. `C` is that correction; `()` where it is looked at by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Submission<C = Correction> {
    /// Makes it safe to repeat.
    pub(crate) request_id: Option<RequestId>,
    /// The search application.
    pub(crate) namespace: Namespace,
    /// Who reports it. With scope USER the id is present.
    pub(crate) reporter: Reporter,
    /// The query it is about; may be empty.
    pub(crate) query_id: String,
    /// Why; may be empty.
    pub(crate) reason: String,
    /// Whatever helps a reviewer.
    pub(crate) context: BTreeMap<String, String>,
    /// For whom it is to be learned.
    pub(crate) scope: Scope,
    /// What is wrong and what is right.
    pub(crate) correction: C,
}

impl<C> Submission<C> {
    /// The same request with this correction.
    pub(crate) fn with<D>(self, correction: D) -> Submission<D> {
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
    pub(crate) fn repeated(self) -> Option<RepeatedRequest> {
        let hash = self.hash_with(render::rating_of_unknown_target(&self.correction));
        Some(RepeatedRequest {
            request_id: self.request_id?,
            namespace: self.namespace,
            hash,
        })
    }
}

impl Submission {
    /// The same with personal data in free text and rated texts masked, and what was taken out of the texts of a rating of a
    /// search answer: of these also HTML. Keys and values of corrections are never masked.
    pub(crate) fn cleaned(mut self) -> (Self, Removed) {
        let mut removed = Removed::default();
        if self.correction.search_rating().is_some() {
            let reason = plain_text::clean(&mut self.reason, plain_text::fits_reason);
            let values = self.context.values_mut();
            let values = values.map(|value| {
                plain_text::clean(value, |text| text.floor_char_boundary(MAX_CONTEXT_VALUE_BYTES))
            });
            for removed_here in values.chain([reason]) {
                removed.html |= removed_here.html;
                removed.personal_data |= removed_here.personal_data;
            }
        } else {
            mask_prose(&mut self.reason);
            self.context.values_mut().for_each(mask_context_value);
            self.correction = self.correction.masked();
        }
        (self, removed)
    }

    /// Whether learning-svc is told of it. It is not of a rating of a search answer, from which alone nothing is learned.
    pub(crate) fn is_delivered(&self) -> bool {
        self.correction.form().kind().is_some()
    }

    /// Tells a repeated request from a reused request id.
    pub(crate) fn hash(&self) -> RequestHash {
        self.hash_with(render::correction(&self.correction))
    }
}

/// Masks personal data in a reason. A mask may be longer than what it hides, so the result is cut to the limit.
pub(crate) fn mask_prose(text: &mut String) {
    mask(text, |masked| {
        masked.char_indices().nth(MAX_REASON_CHARS).map(|(end, _)| end)
    });
}

/// The same for a value of the context.
fn mask_context_value(text: &mut String) {
    mask(text, |masked| {
        (masked.len() > MAX_CONTEXT_VALUE_BYTES).then(|| masked.floor_char_boundary(MAX_CONTEXT_VALUE_BYTES))
    });
}

fn mask(text: &mut String, too_long: impl Fn(&str) -> Option<usize>) {
    let masked = personal_data::mask(text);
    if *masked != **text {
        let mut masked = masked.into_owned();
        if let Some(end) = too_long(&masked) {
            masked.truncate(end);
        }
        *text = masked;
    }
}

/// A request that was perhaps stored before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepeatedRequest {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// What its sender calls it.
    pub(crate) request_id: RequestId,
    /// The hash of all else that it says.
    pub(crate) hash: RequestHash,
}

/// XXH3-128 of a parsed request, every part preceded by its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHash(pub(crate) [u8; 16]);

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
pub(crate) struct NewFeedback {
    /// Its id.
    pub(crate) id: FeedbackId,
    /// The authenticated client that sent it.
    pub(crate) caller: Caller,
    /// W3C trace context of the submission; may be empty.
    pub(crate) traceparent: String,
    /// What was said, masked.
    pub(crate) submission: Submission,
    /// The hash of the request as it was parsed, before masking.
    pub(crate) hash: RequestHash,
    /// The event that tells learning-svc it was recorded; of what is not delivered it only says how large it is.
    pub(crate) event: NewEvent,
    /// What was taken out of a rating of a search answer.
    pub(crate) removed: Removed,
}

/// Whether it matters who retracts what is learned as this kind.
pub(crate) fn is_by_ruling(kind: Option<Kind>) -> bool {
    kind.is_some_and(|kind| matches!(kind.rules().rule, Rule::Ruling(_)))
}

/// A request to retract feedback.
#[derive(Debug, Clone)]
pub(crate) struct NewRetraction {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// Which feedback.
    pub(crate) id: FeedbackId,
    /// The authenticated client that asks for it.
    pub(crate) caller: Caller,
    /// Its strongest role at that time.
    pub(crate) role: Option<Role>,
    /// Why, masked; may be empty.
    pub(crate) reason: String,
    /// The event that tells learning-svc it was retracted.
    pub(crate) event: NewEvent,
}

impl NewRetraction {
    /// The number under which [`NewRetraction::role`] is stored.
    pub(crate) fn role_number(&self) -> i64 {
        self.role.map_or(0, |role| role as i64 + 1)
    }
}

/// What the database assigned to a stored event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The feedback's accept order.
    pub(crate) order: AcceptOrder,
    /// When it was stored, by the database's clock.
    pub(crate) at: Timestamp,
}

/// A stored correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Feedback {
    /// Its id.
    pub(crate) id: FeedbackId,
    /// What was said, masked.
    pub(crate) submission: Submission,
    /// The authenticated client that sent it.
    pub(crate) caller: Caller,
    /// Its position in the order of all feedback, and when it was stored.
    pub(crate) accepted: Accepted,
    /// Its retraction, if any.
    pub(crate) retraction: Option<Retraction>,
    /// What learning-svc answered, if it has.
    pub(crate) outcome: Option<EncodedOutcome>,
    /// The delivery state of its newest event that was evaluated or will be.
    pub(crate) delivery: DeliveryState,
    /// The erasure of its personal parts, if any.
    pub(crate) redaction: Option<Redaction>,
    /// What is known of a rating of a search answer.
    pub(crate) search_rating: Option<RatingState>,
}

/// The retraction of a feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retraction {
    /// When, by the database's clock.
    pub(crate) at: Timestamp,
    /// Why, masked; may be empty.
    pub(crate) reason: String,
}

/// Which feedback to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedbackQuery {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// Only this reporter's.
    pub(crate) reporter: Option<emend_core::ReporterId>,
    /// Only what would be learned as this kind.
    pub(crate) kind: Option<Kind>,
    /// Only ratings of this target.
    pub(crate) target: Option<String>,
    /// Only ratings with this value; not without a target.
    pub(crate) rating: Option<String>,
    /// Only ratings of search answers, and only these.
    pub(crate) search_ratings: Option<RatingFilter>,
    /// Only feedback in this delivery state.
    pub(crate) delivery: Option<DeliveryState>,
    /// Only what was received at or after this time.
    pub(crate) from: Option<Timestamp>,
    /// Only what was received before this time.
    pub(crate) before: Option<Timestamp>,
    /// Only what follows this one in the list.
    pub(crate) after: Option<AcceptOrder>,
    /// At most this many.
    pub(crate) limit: u32,
}

impl FeedbackQuery {
    /// Whether no index yields exactly these rows in order, so that the query may have to scan much.
    pub(crate) fn is_wide(&self) -> bool {
        let undelivered = matches!(
            self.delivery,
            Some(DeliveryState::Pending | DeliveryState::DeadLetter)
        );
        if let Some(filter) = &self.search_ratings {
            let labels = filter.tag.is_some() || filter.processed.is_some() || filter.only_counting;
            let both = filter.value.is_some() && filter.query_type.is_some();
            let others = self.reporter.is_some() || self.delivery.is_some();
            return labels || both || others || self.has_period();
        }
        let by_kind = self.kind.is_some() || self.is_of_ratings();
        let by_index = [self.reporter.is_some(), by_kind, undelivered];
        let conditions = by_index.iter().filter(|is_asked| **is_asked).count();
        conditions > 1 || self.delivery.is_some() && !undelivered || self.has_period()
    }

    /// Whether it asks for ratings alone. Nothing else is learned as their kind.
    pub(crate) fn is_of_ratings(&self) -> bool {
        match self.kind {
            Some(kind) => kind == Kind::FewShotSet,
            None => self.target.is_some(),
        }
    }

    /// Whether it asks for a period.
    pub(crate) fn has_period(&self) -> bool {
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
    fn text_that_cannot_be_masked_in_parts_is_masked_as_a_whole() {
        let mut text = "10.0.0.1:".repeat(40);
        mask_prose(&mut text);
        assert_eq!(text, "[masked]");
    }

    #[test]
    fn free_text_is_masked_and_corrections_never_are() {
        let (masked, _) = submission().cleaned();
        assert_eq!(masked.reason, "ask [email]");
        assert_eq!(masked.context["topic"], "call [phone]");
        assert_eq!(masked.correction, submission().correction);
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
