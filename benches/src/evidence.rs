//! The evidence graph with many edges: upserting them in batches of 500, compared in the same run with inserting as many rows in
//! batches of 500 into a table with a primary key and nothing else; then what is read of the graph, what exports of tasks of different
//! sizes hold in memory, and how soon another trust in a domain is in force.
//!
//! The nodes are there before; of the upserts only the edges are timed.

mod graph;
mod plain;
mod reads;
mod trust;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use emend_base::{Entropy, SystemClock};
use emend_core::Revision;
use emend_store::DatabaseUrl;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use learning_store::{self, evidence::graph::Upsert};
use learning_svc::{
    capabilities::{Capabilities, Parts},
    decisions::Follower,
};
use tokio::time::Instant;

/// Edges and rows in one batch.
const BATCH: usize = 500;

/// The evidence graph with many edges, compared with plain inserts.
#[derive(Debug, clap::Args)]
pub(crate) struct Evidence {
    /// Edges
    #[arg(long, default_value_t = 100_000)]
    edges: usize,
    /// Batches at once
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Also on PostgreSQL: an empty database to write into
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
}

struct NoFollower;

#[async_trait]
impl Follower for NoFollower {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}

pub(crate) fn run(options: &Evidence) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let file = DatabaseUrl::sqlite(directory.path().join("learning.db"));
        let plain = format!(
            "sqlite://{}?mode=rwc",
            directory.path().join("plain.db").display()
        );
        let rows = plain::plain_inserts_sqlite(&plain, options.edges).await?;
        measure("SQLite", &file, options, rows).await?;
        if let Some(url) = &options.postgres {
            let rows = plain::plain_inserts_postgres(url, options.edges).await?;
            measure("PostgreSQL", &url.parse()?, options, rows).await?;
        }
        Ok(())
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: usize, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

async fn measure(name: &str, database: &DatabaseUrl, options: &Evidence, rows: f64) -> Result<()> {
    let entropy = Entropy::system();
    let store = learning_store::open(database, 8).await?;
    learning_store::begin_installation(&*store, &entropy).await?;
    let app = Capabilities::new(Parts::new(
        store,
        Arc::new(NoFollower),
        SystemClock::shared(),
        entropy,
    ));
    for nodes in graph::nodes(options.edges)? {
        app.evidence.upsert(&nodes).await?;
    }
    let batches: Vec<Upsert> = (0..options.edges)
        .collect::<Vec<_>>()
        .chunks(BATCH)
        .map(|numbers| graph::edges(numbers, options.edges))
        .collect::<Result<_>>()?;
    let began = Instant::now();
    stream::iter(&batches)
        .map(|batch| app.evidence.upsert(batch))
        .buffer_unordered(options.at_once)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    let ours = per_second(options.edges, began);
    drop(batches);
    println!(
        "{name}: {ours:.0} edges/s upserted in batches of {BATCH}, {} at once; {rows:.0} plain rows/s inserted, one batch after another ({:.2}x)",
        options.at_once,
        ours / rows
    );
    let began = Instant::now();
    while app.evidence.follow_once().await? {}
    println!(
        "{name}: {:.0} claims/s verified after that",
        per_second(options.edges.div_ceil(graph::PER_CLAIM), began)
    );
    reads::claims_and_conflicts(name, &app, options.edges).await?;
    reads::exports(name, &app, options.edges).await?;
    trust::changes(name, &app, options.edges).await?;
    app.store.close().await;
    Ok(())
}
