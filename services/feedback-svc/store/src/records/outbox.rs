//! Events on their way to learning-svc: leases, refusals, dead letters, and what learning-svc answered.

use std::time::Duration;

use bytes::Bytes;
use emend_base::Entropy;
use emend_core::{EventId, FeedbackId, Namespace};
use uuid::Uuid;

/// An `emend.common.v1.Outcome` as learning-svc sent it. This service passes outcomes on; what they mean is none of its
/// concern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedOutcome(pub Bytes);

/// The state of an event's delivery to learning-svc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// In the outbox.
    Pending,
    /// Delivered and evaluated.
    Delivered,
    /// Refused for good.
    DeadLetter,
}

impl DeliveryState {
    /// The state of new feedback: what is not delivered at all counts as if it were.
    pub const fn at_first(is_delivered: bool) -> Self {
        if is_delivered {
            Self::Pending
        } else {
            Self::Delivered
        }
    }

    /// The number in databases and on the wire.
    pub const fn number(self) -> i64 {
        match self {
            Self::Pending => 1,
            Self::Delivered => 2,
            Self::DeadLetter => 3,
        }
    }

    /// The state with this number.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::Pending),
            2 => Some(Self::Delivered),
            3 => Some(Self::DeadLetter),
            _ => None,
        }
    }
}

/// The right to deliver an outbox entry, until it expires by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// No other lease has it.
    pub token: LeaseToken,
    /// For how long.
    pub duration: Duration,
}

/// Identifies a lease, and in its first four bytes its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseToken(pub Uuid);

/// A running replica; random, so no other one has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseHolder(pub u32);

impl LeaseHolder {
    /// A new one.
    pub fn new(entropy: &Entropy) -> Self {
        Self(entropy.uuid_v4().as_fields().0)
    }

    /// The beginning of its tokens.
    pub fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// A new token.
    pub fn token(self, entropy: &Entropy) -> LeaseToken {
        let random = entropy.uuid_v4();
        let (_, middle, version, rest) = random.as_fields();
        LeaseToken(Uuid::from_fields(self.0, middle, version, rest))
    }
}

/// Which dead letters to list, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterQuery {
    /// Only this search application's.
    pub namespace: Option<Namespace>,
    /// Only what follows this one in the list.
    pub after: Option<DeadLetterPosition>,
    /// At most this many.
    pub limit: u32,
}

/// The position of a dead letter in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetterPosition {
    /// When it became one, in microseconds since 1970.
    pub dead_at: i64,
    /// Breaks ties between dead letters of the same instant.
    pub event_id: EventId,
}

/// An event that learning-svc refused for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The event.
    pub event_id: EventId,
    /// Its feedback.
    pub feedback_id: FeedbackId,
    /// The search application.
    pub namespace: Namespace,
    /// How often delivery was attempted.
    pub attempts: u32,
    /// The refusal.
    pub refusal: Refusal,
    /// When it became a dead letter, in microseconds since 1970 by the database's clock.
    pub dead_at: i64,
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A google.rpc.Code.
    pub code: i32,
    /// In words.
    pub error: String,
}

/// Which dead letters to make due again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redrive {
    /// All of a search application.
    Namespace(Namespace),
    /// These; if a search application is given, only those that belong to it.
    Events(Vec<EventId>, Option<Namespace>),
}
