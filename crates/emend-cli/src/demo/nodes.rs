//! The search nodes of the demo: what they answer, and how long they took to apply what was learned.

use std::time::Duration;

use emend_client::{Events, ExpandedText, LearnedView, Observed, SubscriberEvent};
use emend_core::Revision;
use jiff::Timestamp;
use tokio::time::timeout;

use super::script::Answer;
use crate::failure::{Failure, Result};

/// How long each step may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// One search node.
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) view: LearnedView,
    pub(super) events: Events,
}

/// The learned choice, otherwise the backend's best that is not prohibited.
pub(super) fn answer(learned: Option<String>, prohibited: &[String], own: &[(&str, f64)]) -> Answer {
    match learned {
        Some(choice) => Answer {
            choice,
            learned: true,
        },
        None => Answer {
            choice: own
                .iter()
                .map(|(choice, _)| (*choice).to_owned())
                .find(|choice| !prohibited.contains(choice))
                .unwrap_or_else(|| "nothing".into()),
            learned: false,
        },
    }
}

/// Whether a title has every part of a query, each in one of the ways in which it may be written.
pub(super) fn has_all(title: &str, query: &ExpandedText) -> bool {
    let title = title.to_lowercase();
    let has = |part: &str| title.contains(&part.to_lowercase());
    let mut from = 0;
    let mut plain = String::new();
    for group in &query.groups {
        plain.push_str(&query.original[from..group.span.start]);
        plain.push(' ');
        from = group.span.end;
        if !group.alternatives.iter().any(|term| has(term)) {
            return false;
        }
    }
    plain.push_str(&query.original[from..]);
    let between = |c: char| c.is_whitespace() || c == 'の';
    plain.split(between).all(has)
}

/// The times since the commit and since the feedback that caused it.
pub(super) type Times = (Option<Duration>, Option<Duration>);

/// Waits until the node has applied the revision, and returns how long that took.
pub(super) async fn applied(node: &mut Node, revision: i64) -> Result<Times> {
    let waited = async {
        loop {
            match node.events.next().await {
                None => return Err(Failure::failed(format!("{} has ended", node.name))),
                Some(Observed::Missed(_)) => {}
                Some(Observed::Event(event)) => match &*event {
                    SubscriberEvent::Updated { update, applied_at } if update.to >= Revision(revision) => {
                        let change = update
                            .changes
                            .iter()
                            .find(|change| change.revision == Revision(revision));
                        let since = |at: Option<Timestamp>| {
                            at.and_then(|at| Duration::try_from(applied_at.duration_since(at)).ok())
                        };
                        return Ok(change.map_or((None, None), |change| {
                            (since(change.committed_at), since(change.feedback_received_at))
                        }));
                    }
                    // A snapshot contains it too, but without the commit time.
                    SubscriberEvent::Snapshot { snapshot, .. } if snapshot.revision >= Revision(revision) => {
                        return Ok((None, None));
                    }
                    _ => {}
                },
            }
        }
    };
    within_timeout(waited, "a node to apply what was learned").await?
}

/// Waits for a future, with a time limit.
pub(super) async fn within_timeout<T>(waited: impl Future<Output = T>, what: &str) -> Result<T> {
    timeout(TIMEOUT, waited)
        .await
        .map_err(|_| Failure::failed(format!("timed out after {TIMEOUT:?} waiting for {what}")))
}
