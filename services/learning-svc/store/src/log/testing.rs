//! A log that tests write to and damage behind the store's back.

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::digest::value_checksum;
use emend_stream::log::LoggedChange;
use jiff::SignedDuration;
use uuid::Uuid;

use crate::Store;

/// A change to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// The search application.
    pub namespace: String,
    /// The kind, which need not be known.
    pub kind: i32,
    /// The normalised key.
    pub key: String,
    /// The qualifier; may be empty.
    pub qualifier: String,
    /// The user it applies to; empty: everyone.
    pub user_id: String,
    /// The encoded value; none: deleted.
    pub value: Option<Vec<u8>>,
}

/// Writes `value` to the global `key` of kind 1 in namespace `a`, or deletes it.
pub fn write(key: &str, value: Option<&str>) -> Written {
    Written {
        namespace: "a".into(),
        kind: 1,
        key: key.into(),
        qualifier: String::new(),
        user_id: String::new(),
        value: value.map(|value| value.as_bytes().to_vec()),
    }
}

impl Written {
    /// The same in another namespace and kind.
    #[must_use]
    pub fn of_kind(mut self, namespace: &str, kind: i32) -> Self {
        self.namespace = namespace.into();
        self.kind = kind;
        self
    }

    /// The same for one user.
    #[must_use]
    pub fn of_user(mut self, user_id: &str) -> Self {
        self.user_id = user_id.into();
        self
    }

    /// The same with a qualifier.
    #[must_use]
    pub fn qualified(mut self, qualifier: &str) -> Self {
        self.qualifier = qualifier.into();
        self
    }

    /// An id made of its key, for kinds that are not known as well.
    pub fn contest_id(&self) -> Uuid {
        let key = (
            &self.namespace,
            self.kind,
            &self.key,
            &self.qualifier,
            &self.user_id,
        );
        Uuid::new_v5(&Uuid::nil(), format!("{key:?}").as_bytes())
    }

    /// The change as the log has it.
    pub fn logged(&self, revision: i64, committed_at: i64) -> LoggedChange {
        LoggedChange {
            revision,
            committed_at,
            cause: 1,
            namespace: self.namespace.clone(),
            kind: self.kind,
            key: self.key.clone(),
            qualifier: self.qualifier.clone(),
            user_id: self.user_id.clone(),
            value: self.value.clone().map(Bytes::from),
            checksum: self.checksum(),
            feedback_received_at: 7,
            traceparent: "trace".into(),
        }
    }

    /// The checksum of its value.
    pub fn checksum(&self) -> u64 {
        self.value.as_deref().map_or(0, value_checksum)
    }
}

/// A log that can also be written and damaged.
#[async_trait]
pub trait TestLog: Store {
    /// Commits a revision as if `age` ago. Returns its number.
    async fn append_aged(&self, changes: &[Written], age: SignedDuration) -> i64;

    /// Drops all revisions above that one, as a failover that lost them does; resources stay as they are.
    async fn lose_above(&self, revision: i64);

    /// Commits a revision now. Returns its number.
    async fn append(&self, changes: &[Written]) -> i64 {
        self.append_aged(changes, SignedDuration::ZERO).await
    }
}
