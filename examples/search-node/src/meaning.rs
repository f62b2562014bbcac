//! The meaning of one query: its text as a vector, which is made again where a step of the plan expands the text.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emend_client::{SharedClock, Timestamp, Tuning};

use crate::{
    embedding::{Embedder, Vector, is_away},
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

/// How long a server that is away is not asked. Of the searches after that one asks, and waits as long as it may take.
const PAUSE: Duration = Duration::from_secs(5);

/// An embedding server, and whether it answered last.
pub(crate) struct Port {
    embedder: Box<dyn Embedder>,
    clock: SharedClock,
    has_failed: AtomicBool,
    /// When a server that is away is asked again.
    again_at: Mutex<Option<Timestamp>>,
}

impl Port {
    pub(crate) fn new(embedder: Box<dyn Embedder>, clock: SharedClock) -> Self {
        Self {
            embedder,
            clock,
            has_failed: AtomicBool::new(false),
            again_at: Mutex::default(),
        }
    }

    /// Whether the server is to be asked now. Of one that was away, only who asks first is told so.
    fn is_to_be_asked(&self) -> bool {
        let now = self.clock.now();
        let mut again_at = self.again_at.lock().unwrap_or_else(PoisonError::into_inner);
        match *again_at {
            Some(at) if now < at => false,
            Some(_) => {
                *again_at = after_pause(now);
                true
            }
            None => true,
        }
    }

    async fn embed(&self, text: &str) -> Option<Vector> {
        if !self.is_to_be_asked() {
            return None;
        }
        let made = self.embedder.embed(&[text]).await;
        // A text that is refused says nothing of others.
        let again_at = if made.as_ref().is_err_and(is_away) {
            after_pause(self.clock.now())
        } else {
            None
        };
        *self.again_at.lock().unwrap_or_else(PoisonError::into_inner) = again_at;
        let had_failed = self.has_failed.swap(made.is_err(), Ordering::Relaxed);
        match made {
            Ok(vectors) => {
                if had_failed {
                    tracing::info!("the embedding server answers again");
                }
                vectors.into_iter().next()
            }
            Err(error) => {
                // Each search has an event that says so; what is worth a warning is the first.
                if had_failed {
                    tracing::debug!("no vector for a query: {error:#}");
                } else {
                    tracing::warn!("searching by words alone: {error:#}");
                }
                None
            }
        }
    }
}

fn after_pause(now: Timestamp) -> Option<Timestamp> {
    now.saturating_add(PAUSE).ok()
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

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use anyhow::{Result, bail};
    use emend_base::http_client::{ErrorKind, ServiceError};
    use emend_client::{Clock as _, ManualClock};

    use super::*;

    /// Answers what is shorter than 9 bytes, while it is there.
    #[derive(Default)]
    struct Server {
        is_away: AtomicBool,
        asked: AtomicUsize,
    }

    struct Client(Arc<Server>);

    #[tonic::async_trait]
    impl Embedder for Client {
        fn version(&self) -> &'static str {
            "meanings@1"
        }

        async fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
            self.0.asked.fetch_add(1, SeqCst);
            if self.0.is_away.load(SeqCst) {
                let (service, message) = ("the embedding server", "no answer".to_owned());
                let kind = ErrorKind::Later;
                return Err(ServiceError {
                    service,
                    message,
                    kind,
                    after: None,
                    answer: None,
                }
                .into());
            }
            if texts[0].len() > 8 {
                bail!("it is too long");
            }
            Ok(vec![Vector::new(vec![1.0])?])
        }
    }

    #[tokio::test]
    async fn a_server_that_is_away_is_asked_by_one_search_after_each_pause() {
        let (server, clock) = (Arc::new(Server::default()), ManualClock::default());
        let port = Port::new(Box::new(Client(Arc::clone(&server))), clock.shared());
        // How many searches of three had a vector, and how often the server was asked.
        let three = async || {
            let mut made = 0;
            for _ in 0..3 {
                let mut meaning = QueryMeaning::new(Some(&port), &Tuning::default());
                meaning.embed("short").await;
                let is_made = meaning.of_query().is_some();
                assert_eq!(meaning.state == VectorSearch::Unanswered, !is_made);
                made += usize::from(is_made);
            }
            (made, server.asked.swap(0, SeqCst))
        };
        let pass = |span| clock.set(clock.now().saturating_add(span).unwrap());
        assert_eq!(three().await, (3, 3));
        server.is_away.store(true, SeqCst);
        assert_eq!(three().await, (0, 1));
        pass(Duration::from_secs(4));
        assert_eq!(three().await, (0, 0));
        pass(Duration::from_secs(1));
        assert_eq!(three().await, (0, 1), "one asks");
        server.is_away.store(false, SeqCst);
        assert_eq!(three().await, (0, 0));
        pass(PAUSE);
        assert_eq!(three().await, (3, 3), "it is back");

        // A text that it refuses is no reason to leave out others.
        assert!(port.embed("longer than that").await.is_none());
        assert!(port.embed("short").await.is_some());
    }

    #[tokio::test]
    async fn one_search_waits_for_a_server_that_was_away_and_the_others_do_not() {
        let clock = ManualClock::default();
        let port = Port::new(Box::new(Client(Arc::default())), clock.shared());
        *port.again_at.lock().unwrap() = Some(clock.now());
        assert!(port.is_to_be_asked());
        assert!(!port.is_to_be_asked(), "the first has no answer yet");
        clock.set(clock.now().saturating_add(PAUSE).unwrap());
        assert!(port.is_to_be_asked(), "and may never have one");
    }
}
