//! Makes the vectors of the records while searches run.

use std::{io::sink, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use emend_client::{Clock as _, SystemClock};

use super::{Embedded, Embedder};
use crate::{corpus::Record, index::SearchIndex};

/// The pause before what failed is tried again.
const AGAIN: Duration = Duration::from_mins(1);

/// Embeds the records of which the index has no vector.
pub struct RecordEmbedder {
    index: Arc<SearchIndex>,
    records: Arc<[Record]>,
    embedder: Box<dyn Embedder>,
}

impl std::fmt::Debug for RecordEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordEmbedder").finish_non_exhaustive()
    }
}

impl RecordEmbedder {
    /// For the records that the index holds.
    pub fn new(index: Arc<SearchIndex>, records: Vec<Record>, embedder: Box<dyn Embedder>) -> Self {
        Self {
            index,
            records: records.into(),
            embedder,
        }
    }

    /// Embeds what has no vector, and writes the vectors into the index. An error leaves the rest for the next time.
    pub async fn run_once(&self) -> Result<()> {
        let embedded = Embedded::of_changed(&self.index, &self.records, &*self.embedder).await?;
        let (index, records) = (Arc::clone(&self.index), Arc::clone(&self.records));
        let write = move || -> Result<()> {
            if !embedded.vectors.is_empty() {
                index.update(&records, Some(&embedded), false, SystemClock.now(), &mut sink())?;
            }
            embedded.failure.map_or(Ok(()), Err)
        };
        tokio::task::spawn_blocking(write)
            .await
            .context("the vectors were not written")?
    }

    /// Runs until all records have vectors, or until `stop`.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let work = async {
            while let Err(error) = self.run_once().await {
                tracing::warn!("some records have no vector and are found by words alone: {error:#}");
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! {
            () = stop => {}
            () = work => {}
        }
    }
}
