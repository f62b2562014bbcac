//! Makes the vectors of the records while searches run.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};

use super::{Embedded, Embedder};
use crate::index::SearchIndex;

/// The pause before what failed is tried again.
const AGAIN: Duration = Duration::from_mins(1);

/// Embeds the records of which the index has no vector.
pub struct RecordEmbedder {
    index: Arc<SearchIndex>,
    embedder: Box<dyn Embedder>,
}

impl std::fmt::Debug for RecordEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordEmbedder").finish_non_exhaustive()
    }
}

impl RecordEmbedder {
    /// For the records that the index holds.
    pub fn new(index: Arc<SearchIndex>, embedder: Box<dyn Embedder>) -> Self {
        Self { index, embedder }
    }

    /// Embeds what has no vector, and writes the vectors into the index; returns how many it made. An error leaves the rest for
    /// the next time, as does a record that was indexed anew meanwhile.
    pub async fn run_once(&self) -> Result<usize> {
        let records = self.index.records()?;
        let embedded = Embedded::of_changed(&self.index, &records, &*self.embedder).await?;
        let index = Arc::clone(&self.index);
        let write = move || -> Result<usize> {
            if !embedded.vectors.is_empty() {
                index.add_vectors(&records, &embedded)?;
            }
            embedded.failure.map_or(Ok(embedded.vectors.len()), Err)
        };
        tokio::task::spawn_blocking(write)
            .await
            .context("the vectors were not written")?
    }

    /// Runs until all records have vectors, or until `stop`.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let work = async {
            loop {
                match self.run_once().await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!("some records have no vector and are found by words alone: {error:#}");
                        tokio::time::sleep(AGAIN).await;
                    }
                }
            }
        };
        tokio::select! {
            () = stop => {}
            () = work => {}
        }
    }
}
