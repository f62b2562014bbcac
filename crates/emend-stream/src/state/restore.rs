//! Building a state from everything that applies: sorted first, so that the trees are built from one end to the other,
//! and each order on a thread of its own where there is much.

use std::{collections::BTreeMap, sync::Arc, thread};

use emend_core::Digest;
use imbl::OrdSet;

use super::{
    Group, ReplicaState,
    entry::{ByKey, ByRevision, ByUser, Entry},
};
use crate::{
    filter::GroupId,
    log::{Loaded, LoggedChange},
};

/// From this many entries on a second thread is worth starting.
const MANY: usize = 20_000;

/// The newest states of keys, as a load finds them.
#[derive(Debug, Default)]
pub struct Restored {
    groups: BTreeMap<Arc<GroupId>, Vec<Arc<Entry>>>,
    entries: usize,
}

impl Restored {
    /// Adds the newest states of keys. Each key may come once, in any order.
    pub fn add(&mut self, changes: Vec<LoggedChange>) {
        self.entries += changes.len();
        let mut changes = changes.into_iter().peekable();
        while let Some(first) = changes.peek() {
            let id = GroupId {
                namespace: first.namespace.as_str().into(),
                kind: first.kind,
                user_scoped: !first.user_id.is_empty(),
            };
            let id = match self.groups.get_key_value(&id) {
                Some((id, _)) => Arc::clone(id),
                None => Arc::new(id),
            };
            let entries = self.groups.entry(Arc::clone(&id)).or_default();
            while let Some(change) = changes.next_if(|next| is_of(&id, next)) {
                entries.push(Arc::new(Entry::new(Arc::clone(&id), change)));
            }
        }
    }

    /// Whether making a state of it takes so long that nothing else should wait for it.
    pub fn is_large(&self) -> bool {
        self.entries >= MANY
    }

    /// The state at the moment at which all of it applied.
    pub fn finish(self, loaded: Loaded) -> ReplicaState {
        let mut state = ReplicaState::empty(loaded.head.epoch, loaded.head.installation);
        for (id, entries) in self.groups {
            let dead = entries.iter().filter(|entry| entry.value.is_none());
            for entry in dead {
                state.tombstones.insert(ByRevision(Arc::clone(entry)));
            }
            let group = group(Arc::clone(&id), entries);
            state.newest.insert((group.last_changed, Arc::clone(&id)));
            state.groups.insert(id, Arc::new(group));
        }
        state.revision = loaded.head.revision;
        state.committed_at = loaded.committed_at;
        state.raise_horizon(loaded.head.horizon);
        state
    }
}

fn is_of(id: &GroupId, change: &LoggedChange) -> bool {
    *id.namespace == *change.namespace
        && id.kind == change.kind
        && id.user_scoped != change.user_id.is_empty()
}

fn group(id: Arc<GroupId>, entries: Vec<Arc<Entry>>) -> Group {
    let by_revision = |entries: Vec<Arc<Entry>>| sorted(entries.into_iter().map(ByRevision));
    let by_key = |entries: Vec<Arc<Entry>>| {
        let mut digest = Digest::default();
        let (live, dead): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.value.is_some());
        for entry in &live {
            digest.add(&entry.digest_item());
        }
        let by_user = if id.user_scoped {
            sorted(live.iter().cloned().map(ByUser))
        } else {
            OrdSet::new()
        };
        let live = sorted(live.into_iter().map(ByKey));
        (digest, live, sorted(dead.into_iter().map(ByKey)), by_user)
    };
    let live = entries.iter().filter(|entry| entry.value.is_some());
    let bytes = live.map(|entry| entry.bytes()).sum();
    let last_changed = entries.iter().map(|entry| entry.revision).max().unwrap_or(0);
    let (changed, (digest, live, dead, by_user)) = if entries.len() < MANY {
        (by_revision(entries.clone()), by_key(entries))
    } else {
        thread::scope(|scope| {
            let others = entries.clone();
            let changed = scope.spawn(|| by_revision(others));
            let by_key = by_key(entries);
            match changed.join() {
                Ok(changed) => (changed, by_key),
                Err(panicked) => std::panic::resume_unwind(panicked),
            }
        })
    };
    Group {
        id,
        digest,
        bytes,
        last_changed,
        live,
        dead,
        changed,
        by_user,
    }
}

fn sorted<T: Ord + Clone>(items: impl Iterator<Item = T>) -> OrdSet<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.into_iter().collect()
}
