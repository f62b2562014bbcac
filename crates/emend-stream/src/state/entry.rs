//! The newest state of one key, and the orders in which keys are kept.
//!
//! Entries are immutable and shared: between a state's indexes, between states, and with streams still sending an older
//! state.

use std::{cmp::Ordering, sync::Arc};

use bytes::Bytes;
use emend_core::digest::Item;

use crate::{filter::GroupId, log::LoggedChange};

/// The newest state of one key.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The group whose digest it counts in; holds the key's namespace and kind.
    pub group: Arc<GroupId>,
    /// The normalised key.
    pub key: Box<str>,
    /// The qualifier, or empty.
    pub qualifier: Box<str>,
    /// The user it belongs to; empty if global.
    pub user_id: Box<str>,
    /// The revision that changed it last.
    pub revision: i64,
    /// The encoded value; none if deleted.
    pub value: Option<Bytes>,
    /// XXH3-64 of the value's bytes.
    pub checksum: u64,
    /// When the revision was committed, in microseconds since 1970.
    pub committed_at: i64,
    /// A `Cause`, by its number.
    pub cause: i32,
    /// When the feedback that caused it was received, in microseconds since 1970; 0 if none did.
    pub feedback_received_at: i64,
    /// W3C trace context of that feedback, or empty.
    pub traceparent: Box<str>,
}

impl Entry {
    pub(super) fn new(group: Arc<GroupId>, change: LoggedChange) -> Self {
        Self {
            group,
            key: change.key.into(),
            qualifier: change.qualifier.into(),
            user_id: change.user_id.into(),
            revision: change.revision,
            value: change.value,
            checksum: change.checksum,
            committed_at: change.committed_at,
            cause: change.cause,
            feedback_received_at: change.feedback_received_at,
            traceparent: change.traceparent.into(),
        }
    }

    /// An entry to search with: only its position in the orders means anything.
    pub(super) fn place(
        group: Arc<GroupId>,
        revision: i64,
        key: &str,
        qualifier: &str,
        user_id: &str,
    ) -> Arc<Self> {
        Arc::new(Self {
            group,
            key: key.into(),
            qualifier: qualifier.into(),
            user_id: user_id.into(),
            revision,
            value: None,
            checksum: 0,
            committed_at: 0,
            cause: 0,
            feedback_received_at: 0,
            traceparent: Box::default(),
        })
    }

    /// The part that goes into a digest.
    pub fn digest_item(&self) -> Item<'_> {
        Item {
            namespace: &self.group.namespace,
            kind: self.group.kind,
            key: &self.key,
            qualifier: &self.qualifier,
            user_id: &self.user_id,
            revision: self.revision,
            value_checksum: self.checksum,
        }
    }

    /// The bytes of its key and value.
    pub(super) fn bytes(&self) -> u64 {
        let key = self.key.len() + self.qualifier.len() + self.user_id.len();
        (key + self.value.as_ref().map_or(0, Bytes::len)) as u64
    }

    fn names(&self) -> (&str, &str, &str) {
        (&self.key, &self.qualifier, &self.user_id)
    }
}

/// Wraps an entry so that it sorts in the given order.
macro_rules! ordered {
    ($(#[$doc:meta])* $name:ident, |$a:ident, $b:ident| $cmp:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $name(pub(crate) Arc<Entry>);

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                let ($a, $b) = (&*self.0, &*other.0);
                $cmp
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other) == Ordering::Equal
            }
        }

        impl Eq for $name {}
    };
}

ordered!(
    /// In key order, within one group: key, qualifier, user.
    ByKey,
    |a, b| a.names().cmp(&b.names())
);

ordered!(
    /// By user, within one group: user, key, qualifier.
    ByUser,
    |a, b| (&a.user_id, &a.key, &a.qualifier).cmp(&(&b.user_id, &b.key, &b.qualifier))
);

ordered!(
    /// In the order of an update, over all groups: revision, then namespace, kind, key, qualifier, user.
    ByRevision,
    |a, b| a
        .revision
        .cmp(&b.revision)
        .then_with(|| a.group.cmp_key(&b.group))
        .then_with(|| a.names().cmp(&b.names()))
);
