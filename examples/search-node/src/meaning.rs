//! The meaning of one query: its text as a vector, which is made again where a step of the plan expands the text.

use std::sync::atomic::{AtomicBool, Ordering};

use emend_client::Tuning;

use crate::{
    embedding::{Embedder, Vector},
    ranking::{Meaning, Weights},
};

/// Whether vectors were searched, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VectorSearch {
    /// The node has no embedding server, or the tuning gives vectors no weight.
    #[default]
    Off,
    /// They were.
    Done,
    /// The embedding server gave no answer that can be used: only words were searched.
    Unanswered,
    /// The index has no vectors of this version and length: only words were searched.
    NoVectors,
}

/// An embedding server, and whether it answered last.
pub(crate) struct Port {
    embedder: Box<dyn Embedder>,
    is_away: AtomicBool,
}

impl Port {
    pub(crate) fn new(embedder: Box<dyn Embedder>) -> Self {
        Self {
            embedder,
            is_away: AtomicBool::new(false),
        }
    }

    async fn embed(&self, text: &str) -> Option<Vector> {
        let made = self.embedder.embed(&[text]).await;
        let was_away = self.is_away.swap(made.is_err(), Ordering::Relaxed);
        match made {
            Ok(vectors) => {
                if was_away {
                    tracing::info!("the embedding server answers again");
                }
                vectors.into_iter().next()
            }
            Err(error) => {
                // Each search has an event that says so; what is worth a warning is the first.
                if was_away {
                    tracing::debug!("no vector for a query: {error:#}");
                } else {
                    tracing::warn!("searching by words alone: {error:#}");
                }
                None
            }
        }
    }
}

/// The meaning of one query.
pub(crate) struct QueryMeaning<'p> {
    port: Option<(&'p Port, Weights)>,
    /// The text that was embedded last; empty: none.
    pub(crate) embedded: String,
    vector: Option<Vector>,
    pub(crate) state: VectorSearch,
}

impl<'p> QueryMeaning<'p> {
    /// Nothing is embedded where the tuning gives vectors no weight.
    pub(crate) fn new(port: Option<&'p Port>, tuning: &Tuning) -> Self {
        let weights = Weights {
            keyword: tuning.weight("keyword").unwrap_or(1.0),
            embedding: tuning.weight("embedding").unwrap_or(1.0),
        };
        Self {
            port: port
                .filter(|_| weights.embedding > 0.0)
                .map(|port| (port, weights)),
            embedded: String::new(),
            vector: None,
            state: VectorSearch::Off,
        }
    }

    /// Makes the vector of a text, if it is not made yet. A server that failed is not asked again for this query.
    pub(crate) async fn embed(&mut self, text: &str) {
        let Some((port, _)) = self.port else { return };
        if self.state == VectorSearch::Unanswered || self.embedded == text {
            return;
        }
        self.vector = port.embed(text).await;
        if self.vector.is_some() {
            text.clone_into(&mut self.embedded);
        } else {
            self.embedded.clear();
            self.state = VectorSearch::Unanswered;
        }
    }

    /// What to search for beside words.
    pub(crate) fn of_query(&self) -> Option<Meaning<'_>> {
        let (port, weights) = self.port?;
        Some(Meaning {
            version: port.embedder.version(),
            vector: self.vector.as_ref()?,
            weights,
        })
    }

    /// Notes whether there were vectors to search.
    pub(crate) fn note(&mut self, with_vectors: bool) {
        if self.vector.is_some() {
            self.state = if with_vectors {
                VectorSearch::Done
            } else {
                VectorSearch::NoVectors
            };
        }
    }

    /// What the vectors are called that were searched; empty: none were.
    pub(crate) fn version(&self) -> String {
        match (self.state, self.port) {
            (VectorSearch::Done, Some((port, _))) => port.embedder.version().to_owned(),
            _ => String::new(),
        }
    }
}
