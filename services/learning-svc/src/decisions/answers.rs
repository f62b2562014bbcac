//! The answers to events that are not decided: they change nothing, or were answered before.

use emend_core::EventId;
use emend_proto::common::v1 as pb;
use emend_store::CorruptRow;
use emend_wire::render;
use jiff::Timestamp;
use learning_store::{contests::KnownBallot, ingest::Seen};
use prost::Message as _;

use crate::failure::Failure;

/// The outcome of an event that changed nothing that counts.
pub(crate) fn no_effect(
    known: Option<&KnownBallot>,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> pb::Outcome {
    pb::Outcome {
        state: pb::OutcomeState::NoEffect as i32,
        reason: reason.to_owned(),
        candidate_id: known
            .map(|known| known.ballot.candidate.to_string())
            .unwrap_or_default(),
        kind: known.map_or(0, |known| known.key.kind.number()),
        message: message.to_owned(),
        evaluated_at: Some(render::timestamp(now)),
        ..pb::Outcome::default()
    }
}

/// The outcome that an event got before.
pub(crate) fn answered_before(seen: &Seen, event: EventId) -> Result<pb::Outcome, Failure> {
    let bytes = seen.outcomes.get(&event).map(AsRef::as_ref).unwrap_or_default();
    let outcome = pb::Outcome::decode(bytes);
    outcome.map_err(|error| CorruptRow::new("inbox", "outcome", event, error).into())
}
