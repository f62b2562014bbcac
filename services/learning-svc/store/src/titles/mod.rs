//! What is stored of titles: what people call namespaces.

#[cfg(test)]
mod contract;
mod sql;

use async_trait::async_trait;
use emend_core::Namespace;
use emend_store::StoreError;
use jiff::Timestamp;

/// A title as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    /// The text.
    pub text: String,
    /// When it was given, by the database's clock.
    pub updated_at: Timestamp,
}

/// Titles in a unit of work.
#[async_trait]
pub trait TitleRepository: Send {
    /// The title of a namespace; none if nobody gave it one.
    async fn title(&mut self, namespace: &Namespace) -> Result<Option<Title>, StoreError>;

    /// Gives a namespace a title, in place of the one that it has.
    async fn save_title(&mut self, namespace: &Namespace, text: &str) -> Result<(), StoreError>;
}
