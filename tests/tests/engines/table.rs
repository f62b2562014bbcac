//! How long a correction takes until the next search is right: by an expanded query, and by the engine's own way.

use std::{
    env,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use emend_base::Lifecycle;
use emend_edge::Edge;
use emend_proto::common::v1::SynonymRelation;
use emend_tests::harness::{Database, System, says, says::synonyms, start::Settings};
use tokio::time::Instant;

use crate::{
    edge,
    engine::{Engine, Kind},
    found::{TITLES, expanded},
};

/// Set by `cargo xtask engines`: the table is printed.
const VARIABLE: &str = "EMEND_TEST_ENGINES_TABLE";
/// How many corrections are measured by an expanded query.
const ROUNDS: usize = 100;
/// How many by the engine's own way, which takes longer.
const OWN_ROUNDS: usize = 5;

/// A row of the table.
struct Row {
    way: String,
    times: Vec<Duration>,
    searches: usize,
    failed: usize,
}

/// Searches that run meanwhile.
#[derive(Default)]
pub(crate) struct Meanwhile {
    searches: AtomicUsize,
    failed: AtomicUsize,
    is_over: AtomicBool,
}

impl Meanwhile {
    /// Ends them.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// How many there were, and how many of them failed.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let [searches, failed] = [&self.searches, &self.failed].map(|count| count.load(Ordering::Relaxed));
        (searches, failed)
    }

    /// Searches for what is always there, as the way that is measured does, until that is over.
    pub(crate) async fn search(&self, engine: &Engine, edge: Option<&Edge>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let query = match edge {
                Some(edge) => expanded(edge, engine.kind().name(), "cheap laptop").await.0,
                None => engine.written("cheap laptop"),
            };
            let found = engine.search(&query).await;
            self.searches.fetch_add(1, Ordering::Relaxed);
            if found != Ok(vec!["0".to_owned()]) {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn row(&self, way: String, times: Vec<Duration>) -> Row {
        let (searches, failed) = self.counts();
        Row {
            way,
            times,
            searches,
            failed,
        }
    }
}

async fn by_expansion(engine: &Engine, system: &System, edge: &Edge) -> Row {
    let meanwhile = Meanwhile::default();
    let measured = async {
        let mut times = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            let term = format!("gadget{round}");
            let text = format!("cheap {term}");
            let correction = || synonyms(&term, &["laptop computer"], SynonymRelation::Equivalent);
            for reporter in ["ana", "ben"] {
                system.feedback().learn(says(reporter, correction())).await;
            }
            system.feedback().submit(says("cem", correction())).await;
            let acknowledged = Instant::now();
            loop {
                let (query, _) = expanded(edge, engine.kind().name(), &text).await;
                if engine.search(&query).await == Ok(vec!["0".to_owned()]) {
                    break;
                }
            }
            times.push(acknowledged.elapsed());
        }
        meanwhile.end();
        times
    };
    let (times, ()) = tokio::join!(measured, meanwhile.search(engine, Some(edge)));
    meanwhile.row(format!("{}, expanded by Emend", engine.kind().name()), times)
}

async fn by_its_own_way(engine: &Engine) -> Row {
    let meanwhile = Meanwhile::default();
    let measured = async {
        let mut times = Vec::with_capacity(OWN_ROUNDS);
        for round in 0..OWN_ROUNDS {
            let term = format!("device{round}");
            let begun = Instant::now();
            engine.teach(&[&term, "laptop computer"]).await;
            let query = engine.written(&format!("cheap {term}"));
            while engine.search(&query).await != Ok(vec!["0".to_owned()]) {}
            times.push(begun.elapsed());
        }
        meanwhile.end();
        times
    };
    let (times, ()) = tokio::join!(measured, meanwhile.search(engine, None));
    let way = match engine.kind() {
        Kind::OpenSearch => "close, settings, open",
        Kind::Solr | Kind::SolrCloud => "managed synonyms, RELOAD",
    };
    meanwhile.row(format!("{}, {way}", engine.kind().name()), times)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_is_printed_if_it_is_asked_for() {
    if env::var_os(VARIABLE).is_none() {
        return;
    }
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &lifecycle).await;
    let ready = edge.node().wait_ready(Duration::from_secs(30)).await;
    ready.expect("the edge has a state");
    let mut rows = Vec::new();
    for kind in [Kind::OpenSearch, Kind::Solr] {
        let engine = Engine::start(kind).await.expect("the engines are there");
        engine.index(&TITLES).await;
        rows.push(by_expansion(&engine, &system, &edge).await);
        rows.push(by_its_own_way(&engine).await);
    }
    print(rows);
    edge.node().close().await.expect("the node ends");
    lifecycle.shutdown(Duration::from_secs(5)).await;
    system.stop().await;
}

#[expect(clippy::print_stdout, reason = "the table")]
fn print(rows: Vec<Row>) {
    println!("\n| way | corrections | p50 ms | p99 ms | searches meanwhile | of which failed |");
    println!("|---|---|---|---|---|---|");
    for mut row in rows {
        row.times.sort_unstable();
        let at = |share: usize| {
            let last = row.times.len().saturating_sub(1);
            let time = row.times.get((row.times.len() * share / 100).min(last));
            time.copied().unwrap_or_default().as_secs_f64() * 1000.0
        };
        println!(
            "| {} | {} | {:.1} | {:.1} | {} | {} |",
            row.way,
            row.times.len(),
            at(50),
            at(99),
            row.searches,
            row.failed
        );
    }
}
