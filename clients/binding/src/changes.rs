//! What happens to a node, as a language's callbacks are told it.

use emend_client::{Events, Observed, State, SubscriberEvent};
use serde::Serialize;

use crate::{Error, background};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What: `updated`, `snapshot`, `restored`, `connected`, `disconnected`, `mismatch` (another installation answers),
    /// `copy_refused`, `in_doubt` (digests differ) or `missed` (the callback was too slow).
    pub event: &'static str,
    /// The revision at or below which everything is applied, where one is known.
    pub revision: Option<i64>,
    /// What changed, ordered by revision; empty unless `updated`.
    pub changes: Vec<ChangedResource>,
    /// In words for people, where there is more to say.
    pub detail: String,
}

/// One key that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedResource {
    /// The kind, for example `invocation_phrase`.
    pub kind: String,
    /// The search application.
    pub namespace: String,
    /// The key, in normal form.
    pub key: String,
    /// What else identifies it; empty for most kinds.
    pub qualifier: String,
    /// Whose it is; empty: everybody's.
    pub user_id: String,
    /// The revision that changed it.
    pub revision: i64,
    /// It is gone.
    pub removed: bool,
}

/// What happens to a node from now on.
#[derive(Debug)]
pub struct Changes(pub(crate) Events);

impl Changes {
    /// Waits for the next one; `None` once the node has ended. Blocks its thread.
    pub fn next_blocking(&mut self) -> Result<Option<Change>, Error> {
        Ok(background::handle()?.block_on(self.next()))
    }

    /// Waits for the next one; `None` once the node has ended.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            match self.0.next().await? {
                Observed::Missed(count) => {
                    return Some(Change {
                        detail: format!("{count} events were missed: the callback was too slow"),
                        ..change("missed", None)
                    });
                }
                Observed::Event(event) => {
                    if let Some(change) = told(&event) {
                        return Some(change);
                    }
                }
            }
        }
    }
}

fn change(event: &'static str, revision: Option<i64>) -> Change {
    Change {
        event,
        revision,
        changes: Vec::new(),
        detail: String::new(),
    }
}

/// What callbacks are told of an event; `None`: it changes nothing for them.
fn told(event: &SubscriberEvent) -> Option<Change> {
    let with = |event, detail: &str| Change {
        detail: detail.to_owned(),
        ..change(event, None)
    };
    Some(match event {
        SubscriberEvent::Restored { revision, .. } => change("restored", Some(revision.0)),
        SubscriberEvent::CopyRefused { error } => with("copy_refused", error),
        SubscriberEvent::Connected => change("connected", None),
        SubscriberEvent::Snapshot { snapshot, .. } => change("snapshot", Some(snapshot.revision.0)),
        SubscriberEvent::Updated { update, .. } => {
            let changes = update.changes.iter().map(|changed| ChangedResource {
                kind: emend_client::Kind::from_number(changed.key.kind)
                    .map_or_else(|| changed.key.kind.to_string(), |kind| kind.name().to_owned()),
                namespace: changed.key.namespace.clone(),
                key: changed.key.key.clone(),
                qualifier: changed.key.qualifier.clone(),
                user_id: changed.key.user_id.clone(),
                revision: changed.revision.0,
                removed: !matches!(changed.state, State::Learned(_)),
            });
            Change {
                changes: changes.collect(),
                ..change("updated", Some(update.to.0))
            }
        }
        SubscriberEvent::DigestMismatch { differences } => with("in_doubt", &differences.join("; ")),
        SubscriberEvent::InstallationMismatch { held, answering } => with(
            "mismatch",
            &format!("the node holds what installation {held} learned; {answering} answers"),
        ),
        SubscriberEvent::Disconnected { reason, .. } => with("disconnected", reason),
        SubscriberEvent::Resumed { .. }
        | SubscriberEvent::Bookmark { .. }
        | SubscriberEvent::Saved { .. }
        | SubscriberEvent::Mirrored { .. } => return None,
    })
}
