//! Spans of applied updates, each in the trace of a submission behind it.

use std::collections::BTreeSet;

use emend_base::{
    span::{self, Pending},
    traceparent::Traceparent,
};
use emend_proto::wire::{Change, Message, SubscribeResponse, Update};
use tracing::info_span;

use crate::replica::Replica;

/// The most spans of one update.
const MOST: usize = 32;

/// Begins a span for each sampled trace behind an update that `message` completes.
pub(super) fn begin(message: &SubscribeResponse, replica: &Replica) -> Vec<Pending> {
    let mut spans = Vec::new();
    let Some(Message::Update(Update {
        changes, last: true, ..
    })) = &message.message
    else {
        return spans;
    };
    if !span::is_recorded() {
        return spans;
    }
    let mut seen = BTreeSet::new();
    let known = |change: &&Change| change.change.is_some();
    for change in replica.staged_changes().iter().chain(changes).filter(known) {
        if spans.len() >= MOST {
            break;
        }
        if seen.insert(&*change.traceparent)
            && let Some(traceparent) = Traceparent::parse_sampled(&change.traceparent)
        {
            let span = info_span!(
                target: span::TARGET,
                parent: None,
                "apply update",
                otel.kind = "consumer",
                messaging.system = "emend",
                emend.revision = change.revision,
            );
            spans.push(Pending::new(span, traceparent));
        }
    }
    spans
}
