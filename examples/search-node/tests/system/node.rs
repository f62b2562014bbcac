//! A search node beside the services of a test.

use std::{io::sink, net::SocketAddr, path::Path, sync::Arc};

use anyhow::Result;
use emend_client::{
    Clock as _, Entropy, FeedbackClient, LearnedView, Lifecycle, Namespace, QueryRecorder, Revision,
    Subscriber, SystemClock,
};
use emend_tests::harness::{NAMESPACE, System, within};
use futures::FutureExt as _;
use search_node::{
    backend::{Asked, Backend, Found},
    corpus,
    embedding::Embedder,
    index::SearchIndex,
    serve::{Addresses, serve},
};
use tempfile::TempDir;

/// The corpus that ships with the example.
pub(crate) fn records() -> Vec<corpus::Record> {
    corpus::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap()
}

/// A file of the example.
pub(crate) fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// An index of the whole corpus.
pub(crate) fn indexed() -> (TempDir, SearchIndex) {
    let directory = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(directory.path()).unwrap();
    index
        .update(&records(), None, false, SystemClock.now(), &mut sink())
        .unwrap();
    (directory, index)
}

/// A running node. Dropping it stops it.
pub(crate) struct Node {
    pub(crate) backend: Arc<Backend>,
    lifecycle: Lifecycle,
    _index: TempDir,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.lifecycle.soft().cancel();
        self.lifecycle.hard().cancel();
    }
}

impl Node {
    /// A node that subscribes to the first learning-svc.
    pub(crate) async fn start(system: &System, id: &str) -> Self {
        Self::start_with(system, id, indexed(), None).await
    }

    /// The same, on another index and with an embedding server.
    pub(crate) async fn start_with(
        system: &System,
        id: &str,
        index: (TempDir, SearchIndex),
        embedder: Option<Box<dyn Embedder>>,
    ) -> Self {
        let lifecycle = Lifecycle::new();
        let address = format!("http://{}", system.learning[0].front.address());
        let node = Subscriber::builder(address, id)
            .namespace(NAMESPACE)
            .include_user_scoped(true)
            .spawn(&lifecycle)
            .await
            .unwrap();
        within("the node has a state", node.view().wait_until_filled()).await;
        let feedback = FeedbackClient::new(format!("http://{}", system.feedback[0].front.address())).unwrap();
        let recorder = feedback.recorder(&Namespace::parse(NAMESPACE).unwrap(), &lifecycle);
        let mut started = Self::of(node.view().clone(), index, embedder, Some(recorder));
        started.lifecycle = lifecycle;
        started
    }

    /// A node to which nobody has taught anything.
    pub(crate) fn alone() -> Self {
        let (_, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
        Self::of(view, indexed(), None, None)
    }

    /// A node that answers from this view.
    pub(crate) fn of(
        view: LearnedView,
        (directory, index): (TempDir, SearchIndex),
        embedder: Option<Box<dyn Embedder>>,
        recorder: Option<QueryRecorder>,
    ) -> Self {
        let namespace = Namespace::parse(NAMESPACE).unwrap();
        let mut backend = Backend::new(index, view, namespace, Entropy::system());
        if let Some(recorder) = recorder {
            backend = backend.recording(recorder);
        }
        if let Some(embedder) = embedder {
            backend = backend.embedding(embedder);
        }
        Self {
            backend: Arc::new(backend),
            lifecycle: Lifecycle::new(),
            _index: directory,
        }
    }

    /// Serves it on free ports, until it is dropped, with the rating widget from there.
    pub(crate) async fn serve(&self, ratings: &str) -> Addresses {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let at = Addresses { grpc: any, http: any };
        serve(Arc::clone(&self.backend), at, ratings, &self.lifecycle)
            .await
            .unwrap()
    }

    /// Waits until it has applied all that learning-svc has.
    pub(crate) async fn is_current(&self, system: &System) {
        let head = system.learning().head().await;
        let applied = self.backend.learned().wait_for_revision(Revision(head));
        within("the node has applied a revision", applied).await;
    }

    /// What is found without an embedding server.
    pub(crate) fn search(&self, query: &str) -> Found {
        let asked = Asked {
            query: query.to_owned(),
            ..Asked::default()
        };
        self.ask(&asked).unwrap()
    }

    /// The same, or why nothing is searched.
    pub(crate) fn ask(&self, asked: &Asked) -> Result<Found> {
        let found = self.backend.search(asked).now_or_never();
        found.expect("only an embedding server is waited for")
    }

    /// What a query finds, by id.
    pub(crate) fn ids(&self, query: &str) -> Vec<String> {
        let found = self.search(query);
        found
            .titles
            .iter()
            .map(|title| title.record.of().to_owned())
            .collect()
    }
}
