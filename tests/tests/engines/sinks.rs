//! Sinks in real engines: what an engine answers is what was learned, and the fleet says "applied" only when it does.

use emend_base::{Lifecycle, fail_point::FailPoint, telemetry::Metrics};
use emend_edge::{Config, sinks::FAIL_POINTS};
use emend_proto::{
    common::v1::SynonymRelation,
    learning::v1::{ImportAs, ImportHeader, ImportMode, ImportRow},
};
use emend_tests::harness::{
    Database, Gateway, NAMESPACE, System,
    edge::{self, applied, node, until_applied},
    says::{synonym_key, synonym_value, synonyms},
    start::Settings,
    wait::{eventually, holds},
};
use serde_json::json;
use tempfile::TempDir;

use crate::engine::{BULK, Engine, FIELD, INDEX, Kind};

/// What is indexed; ids are places.
const TITLES: [&str; 2] = ["a cheap laptop computer", "a cheap telephone"];
const REPRESENTATIVE: &str = "laptop computer";
/// How many synonyms a large set has.
const MANY: usize = 10_000;

/// An engine with a sink into it, and everything around them.
struct Kept {
    engine: Engine,
    /// What the sink takes for the engine.
    road: Gateway,
    system: System,
    directory: TempDir,
}

impl Kept {
    async fn start(kind: Kind) -> Option<Self> {
        let engine = Engine::start(kind).await?;
        engine.index(&TITLES).await;
        Some(Self {
            road: Gateway::to(engine.address()).await,
            engine,
            system: System::start(Database::sqlite(), 1, 1, Settings::default()).await,
            directory: tempfile::tempdir().expect("a directory"),
        })
    }

    fn sink(&self) -> String {
        format!("{}:cards", self.engine.kind().name())
    }

    /// An edge with a sink for a search application into an index.
    fn config(&self, name: &str, namespace: &str, index: &str, more: &str) -> String {
        let (kind, road) = (self.engine.kind().name(), self.road.address());
        let place = match self.engine.kind() {
            Kind::Solr => format!("address = \"http://{road}/solr\"\ncore = \"{index}\"\nset = \"own\""),
            Kind::SolrCloud => {
                format!("address = \"http://{road}/solr\"\ncollection = \"{index}\"\nset = \"own\"")
            }
            Kind::OpenSearch => {
                format!(
                    "address = \"http://{road}\"\nindex = \"{index}\"\nfilter = \"own\"\nwindow = \"always\""
                )
            }
        };
        format!(
            "listen = [\"127.0.0.1:0\"]\n[node]\nid = \"edge-{name}\"\ncache_dir = \"{}\"\n[node.connection]\naddresses = [\"{}\"]\n\
             [[sink]]\nkind = \"{kind}\"\nname = \"{name}\"\nnamespaces = [\"{namespace}\"]\n{place}\nfield = \"{FIELD}\"\npace = 0\n\
             check = 1\n{more}",
            self.directory.path().display(),
            self.system.learning[0].address(),
        )
    }

    async fn learn(&self, term: &str) {
        let learning = self.system.learning();
        learning
            .put(synonym_key(term, REPRESENTATIVE), synonym_value(REPRESENTATIVE))
            .await;
    }

    async fn forget(&self, term: &str) {
        let learning = self.system.learning();
        let deleted = learning.delete(synonym_key(term, REPRESENTATIVE)).await;
        deleted.expect("it was learned");
    }

    /// What a search for a cheap one finds.
    async fn found(&self, term: &str) -> Vec<String> {
        let query = self.engine.written(&format!("cheap {term}"));
        self.engine.search(&query).await.expect("the engine answers")
    }

    /// After an edge was killed at any step of a sink, another one brings the engine to what is learned, and nobody was told
    /// before.
    async fn is_right_after_each_kill(&self, points: &[&str]) {
        let (learning, sink) = (self.system.learning(), self.sink());
        let config = self.config("cards", NAMESPACE, INDEX, "");
        let mut before: Option<String> = None;
        for name in points {
            let point = FAIL_POINTS.into_iter().find(|point| point.name() == *name);
            let point: FailPoint = point.expect("there is such a point");
            let term = format!("{}gadget", name.trim_start_matches("sink-"));
            self.learn(&term).await;
            if let Some(before) = &before {
                self.forget(before).await;
            }
            let head = learning.head().await;
            let mut dying = edge::start(&config, self.directory.path(), Some(point)).await;
            assert!(!dying.ended().await.success(), "{name}: {}", dying.output());
            let told = applied(&learning, &sink).await;
            assert!(told < head, "{name}: revision {told} was said to be applied");
            let mut next = edge::start(&config, self.directory.path(), None).await;
            until_applied(&learning, &sink).await;
            assert_eq!(self.found(&term).await, ["0"], "{name}");
            if let Some(before) = &before {
                assert_eq!(self.found(before).await, [""; 0], "{name}: {before}");
            }
            next.kill().await;
            before = Some(term);
        }
    }

    /// What somebody changes by hand is put right, and counted; an engine that was away is brought up to date.
    async fn is_put_right(&mut self) {
        let (learning, sink) = (self.system.learning(), self.sink());
        let (metrics, lifecycle) = (Metrics::new(), Lifecycle::new());
        let config = Config::parse(&self.config("cards", NAMESPACE, INDEX, "")).expect("a configuration");
        let edge = emend_edge::start_measured(config, &metrics, &lifecycle).await;
        let edge = edge.expect("the edge starts");
        self.learn("notebook").await;
        until_applied(&learning, &sink).await;
        self.engine.teach(&["byhand", REPRESENTATIVE]).await;
        eventually("the set is put right", async || {
            let query = |text: &str| self.engine.written(text);
            let (by_hand, learned) = (
                self.engine.search(&query("cheap byhand")).await,
                self.engine.search(&query("cheap notebook")).await,
            );
            let is_right = by_hand == Ok(Vec::new()) && learned == Ok(vec!["0".to_owned()]);
            holds(is_right, || format!("{by_hand:?} {learned:?}"))
        })
        .await;
        // More than once where it was looked at between two steps of who changed it.
        let none = format!("emend_sink_drifts_total{{sink=\"{sink}\"}} 0");
        assert!(!metrics.render().contains(&none), "{}", metrics.render());

        self.engine.kill().await;
        self.road.close();
        self.learn("portable").await;
        let head = learning.head().await;
        eventually("the fleet shows that the engine is away", async || {
            let found = node(&learning, &sink).await;
            let is_shown = found.as_ref().is_some_and(|node| {
                node.problem == "AWAY"
                    && node
                        .applied
                        .as_ref()
                        .is_some_and(|applied| applied.revision < head)
            });
            holds(is_shown, || format!("{found:?}"))
        })
        .await;
        self.engine.restart().await;
        self.road.lead_to(self.engine.address());
        until_applied(&learning, &sink).await;
        assert_eq!(self.found("portable").await, ["0"]);
        // What an address has to escape is taken out, too.
        self.learn("tcp/ip").await;
        until_applied(&learning, &sink).await;
        self.forget("tcp/ip").await;
        self.forget("portable").await;
        until_applied(&learning, &sink).await;
        assert_eq!(self.found("portable").await, [""; 0]);
        edge.node().close().await.expect("the node ends");
        lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
    }

    /// What the engine's analysis leaves nothing of is refused with the engine's words, and holds nothing else back.
    async fn shows_what_is_refused(&self) {
        let (learning, sink) = (self.system.learning(), self.sink());
        self.learn("!?").await;
        self.learn("tablet").await;
        let config = self.config("cards", NAMESPACE, INDEX, "");
        let mut edge = edge::start(&config, self.directory.path(), None).await;
        let node = until_applied(&learning, &sink).await;
        let refused: Vec<_> = node.rejected.iter().collect();
        assert_eq!(refused.len(), 1, "{node:?}");
        assert_eq!(refused[0].key, Some(synonym_key("!?", REPRESENTATIVE)));
        assert!(
            refused[0].error.contains("Failed to build synonyms"),
            "{}",
            refused[0].error
        );
        assert_eq!(self.found("tablet").await, ["0"]);
        self.forget("!?").await;
        let node = until_applied(&learning, &sink).await;
        assert_eq!(node.rejected_count, 0, "{node:?}");
        edge.kill().await;
    }

    /// The filter of an index reads a file on a path that the sink shares with the engine, which has no plugin that reads it again:
    /// the index is closed and opened.
    async fn reads_a_file(&self) {
        let learning = self.system.learning();
        let file = self.engine.config().join("emend.txt");
        std::fs::write(&file, "").expect("a file is written");
        let analysis = json!({
            "filter": {"own": {"type": "synonym_graph", "synonyms_path": "emend.txt"}},
            "analyzer": {"own": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "own"]}},
        });
        self.engine.create("files", &analysis).await;
        self.engine.index_in("files", &TITLES).await;
        let more = format!("file = \"{}\"\n", file.display());
        let config = self.config("files", NAMESPACE, "files", &more);
        let mut edge = edge::start(&config, self.directory.path(), None).await;
        self.learn("slate").await;
        until_applied(&learning, "opensearch:files").await;
        let query = self.engine.written("cheap slate");
        assert_eq!(
            self.engine.search_in("files", &query).await,
            Ok(vec!["0".to_owned()])
        );
        edge.kill().await;
    }

    /// Every shard of a collection has the set, of which terms come and go in many steps.
    async fn is_on_every_shard(&self) {
        let (learning, sink) = (self.system.learning(), self.sink());
        let titles = [TITLES[0]; 6];
        self.engine.index(&titles).await;
        let all: Vec<String> = (0..titles.len()).map(|id| id.to_string()).collect();
        let found = async |term: &str| {
            let mut found = self.found(term).await;
            found.sort_unstable();
            found
        };
        let config = self.config("cards", NAMESPACE, INDEX, "");
        let mut edge = edge::start(&config, self.directory.path(), None).await;
        let term = |number: usize| format!("{}gadget", ["a", "b", "c", "d", "e", "f"][number]);
        for number in 0..5 {
            self.learn(&term(number)).await;
        }
        until_applied(&learning, &sink).await;
        for number in 0..5 {
            assert_eq!(found(&term(number)).await, all, "{}", term(number));
        }
        for number in 0..4 {
            self.forget(&term(number)).await;
        }
        self.learn(&term(5)).await;
        until_applied(&learning, &sink).await;
        for number in 0..4 {
            assert_eq!(found(&term(number)).await, [""; 0], "{}", term(number));
        }
        for number in 4..6 {
            assert_eq!(found(&term(number)).await, all, "{}", term(number));
        }
        edge.kill().await;
    }

    /// A large set is written from nothing; then one of it is removed, and one changed.
    async fn is_large(&self) {
        let learning = self.system.learning();
        self.engine
            .index_in(BULK, &["a word42", "a word4242", "other"])
            .await;
        let header = ImportHeader {
            namespace: BULK.into(),
            mode: ImportMode::SkipInvalid.into(),
            import_as: ImportAs::Decision.into(),
            ..ImportHeader::default()
        };
        let rows = (0..MANY).map(|number| ImportRow {
            line: i64::try_from(number + 1).expect("a small number"),
            correction: Some(synonyms(
                &format!("word{number}"),
                &[&format!("term{number}")],
                SynonymRelation::OneWay,
            )),
            user_id: String::new(),
        });
        let imported = learning.import(header, rows.collect()).await;
        imported.expect("they are imported");
        let lifecycle = Lifecycle::new();
        let config = Config::parse(&self.config("bulk", BULK, BULK, "")).expect("a configuration");
        let edge = emend_edge::start(config, &lifecycle)
            .await
            .expect("the edge starts");
        let sink = format!("{}:bulk", self.engine.kind().name());
        until_applied(&learning, &sink).await;
        let found = async |text: &str| {
            let query = self.engine.written(text);
            self.engine
                .search_in(BULK, &query)
                .await
                .expect("the engine answers")
        };
        assert_eq!(
            (found("term42").await, found("term4242").await),
            (vec!["0".to_owned()], vec!["1".to_owned()])
        );
        let key = |term: &str, word: &str| emend_proto::common::v1::ResourceKey {
            namespace: BULK.into(),
            ..synonym_key(term, word)
        };
        learning
            .delete(key("term42", "word42"))
            .await
            .expect("it was learned");
        learning
            .put(key("term4242", "other"), synonym_value("other"))
            .await;
        until_applied(&learning, &sink).await;
        assert_eq!(found("term42").await, [""; 0], "it was removed");
        let mut both = found("term4242").await;
        both.sort_unstable();
        assert_eq!(both, ["1", "2"], "it was changed");
        edge.node().close().await.expect("the node ends");
        lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn solr_answers_what_was_learned_whatever_ends_in_between() {
    let Some(mut kept) = Kept::start(Kind::Solr).await else {
        return;
    };
    kept.is_right_after_each_kill(&[
        "sink-begun",
        "sink-removed",
        "sink-written",
        "sink-loaded",
        "sink-probed",
    ])
    .await;
    kept.is_put_right().await;
    kept.is_large().await;
    kept.system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opensearch_answers_what_was_learned_whatever_ends_in_between() {
    let Some(mut kept) = Kept::start(Kind::OpenSearch).await else {
        return;
    };
    kept.is_right_after_each_kill(&[
        "sink-accepted",
        "sink-noted",
        "sink-closed",
        "sink-written",
        "sink-loaded",
        "sink-probed",
    ])
    .await;
    kept.shows_what_is_refused().await;
    kept.is_put_right().await;
    kept.reads_a_file().await;
    kept.is_large().await;
    kept.system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn solrcloud_answers_what_was_learned_on_every_shard() {
    let Some(kept) = Kept::start(Kind::SolrCloud).await else {
        return;
    };
    kept.is_on_every_shard().await;
    kept.system.stop().await;
}
