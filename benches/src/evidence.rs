//! The evidence graph with many edges: upserting them in batches of 500, reading a claim and the edges of a conflict, compared in
//! the same run with inserting as many rows in batches of 500 into a table with a primary key and nothing else.
//!
//! Edges lead from fragments of pages on many hosts to claims that have ten edges each. The nodes are there before; only the edges
//! are timed.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, ensure};
use async_trait::async_trait;
use emend_base::{Entropy, SystemClock};
use emend_core::{
    Namespace, Revision,
    evidence::{Combining, EdgeRelation, EvidenceId, NodeRef, NodeSort, TrustLevel, Weight},
};
use emend_store::DatabaseUrl;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use learning_svc::{
    app::{App, Follower},
    evidence::{
        graph::{ClaimUpsert, EdgeUpsert, Fragment, Page, Upsert},
        store::{EdgeFilter, EdgePosition},
    },
    store,
};
use sqlx::{ConnectOptions as _, QueryBuilder};
use tokio::time::Instant;

/// Edges and rows in one batch.
const BATCH: usize = 500;
/// Edges of one claim.
const PER_CLAIM: usize = 10;
/// Reads timed.
const READS: usize = 200;

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
        let rows = plain_inserts_sqlite(&plain, options.edges).await?;
        measure("SQLite", &file, options, rows).await?;
        if let Some(url) = &options.postgres {
            let rows = plain_inserts_postgres(url, options.edges).await?;
            measure("PostgreSQL", &url.parse()?, options, rows).await?;
        }
        Ok(())
    })
}

/// Microseconds for each of so many.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn micros_each(count: usize, began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6 / count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: usize, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

async fn measure(name: &str, database: &DatabaseUrl, options: &Evidence, rows: f64) -> Result<()> {
    let entropy = Entropy::system();
    let store = store::open(database, 8).await?;
    store::begin_installation(&*store, &entropy).await?;
    let app = App::new(store, Arc::new(NoFollower), SystemClock::shared(), entropy);
    for nodes in nodes(options.edges)? {
        app.upsert_evidence(&nodes).await?;
    }
    let batches: Vec<Upsert> = (0..options.edges)
        .collect::<Vec<_>>()
        .chunks(BATCH)
        .map(edges)
        .collect::<Result<_>>()?;
    let began = Instant::now();
    stream::iter(&batches)
        .map(|batch| app.upsert_evidence(batch))
        .buffer_unordered(options.at_once)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    let ours = per_second(options.edges, began);
    println!(
        "{name}: {ours:.0} edges/s upserted in batches of {BATCH}, {} at once; {rows:.0} plain rows/s inserted, one batch after another ({:.2}x)",
        options.at_once,
        ours / rows
    );

    let evidence = app.store.evidence().context("a store with evidence")?;
    let claims = options.edges.div_ceil(PER_CLAIM);
    let step = (claims / READS).max(1);
    let began = Instant::now();
    for claim in (0..claims).step_by(step) {
        let claim = id("c", claim)?;
        let found = evidence.claim(&namespace()?, &claim, Combining::CountAll).await?;
        let found = found.context("a claim")?;
        ensure!(found.evidence.supporting_count > 0, "a claim has lost its edges");
    }
    let a_claim = micros_each(claims.div_ceil(step), began);
    let began = Instant::now();
    for claim in (0..claims).step_by(step) {
        let filter = EdgeFilter {
            namespace: namespace()?,
            claim: Some(id("c", claim)?),
            relations: vec![EdgeRelation::Supports, EdgeRelation::Refutes],
            levels: vec![TrustLevel::Unverified, TrustLevel::Low],
            reviewed: None,
            corrected: None,
            task: None,
            edge: None,
        };
        let found = evidence.edges(&filter, EdgePosition::default(), 100).await?;
        ensure!(!found.is_empty(), "a conflict has lost its edges");
    }
    let a_conflict = micros_each(claims.div_ceil(step), began);
    println!(
        "{name}: of {} edges, a claim is read in {a_claim:.0} µs, the edges of a conflict by levels in {a_conflict:.0} µs",
        options.edges
    );
    app.store.close().await;
    Ok(())
}

fn namespace() -> Result<Namespace> {
    Namespace::parse("bench").map_err(|invalid| anyhow!("{invalid}"))
}

fn id(kind: &str, number: usize) -> Result<EvidenceId> {
    EvidenceId::parse(&format!("{kind}{number:08}")).map_err(|invalid| anyhow!("{invalid}"))
}

fn upsert() -> Result<Upsert> {
    Ok(Upsert {
        namespace: namespace()?,
        pages: Vec::new(),
        fragments: Vec::new(),
        claims: Vec::new(),
        edges: Vec::new(),
    })
}

/// A page for 10 fragments, a host for 5 pages, a claim for [`PER_CLAIM`] edges, and a fragment for two edges.
fn nodes(edges: usize) -> Result<Vec<Upsert>> {
    let mut upserts = Vec::new();
    let fragments: Vec<usize> = (0..edges.div_ceil(2)).collect();
    let pages: Vec<usize> = (0..fragments.len().div_ceil(10)).collect();
    let claims: Vec<usize> = (0..edges.div_ceil(PER_CLAIM)).collect();
    for pages in pages.chunks(BATCH) {
        let mut of = upsert()?;
        for &page in pages {
            of.pages.push(Page {
                id: id("p", page)?,
                host: format!("www.host{}.example", page / 5),
                url: String::new(),
                title: String::new(),
                works: Vec::new(),
            });
        }
        upserts.push(of);
    }
    for fragments in fragments.chunks(BATCH) {
        let mut of = upsert()?;
        for &fragment in fragments {
            of.fragments.push(Fragment {
                id: id("f", fragment)?,
                page: id("p", fragment / 10)?,
                text: "A part of a page that says something of a claim.".into(),
            });
        }
        upserts.push(of);
    }
    for claims in claims.chunks(BATCH) {
        let mut of = upsert()?;
        for &claim in claims {
            of.claims.push(ClaimUpsert {
                id: id("c", claim)?,
                task: Some(id("t", claim / 1_000)?),
                text: "Something that is said to be true.".into(),
                page: None,
                adopted: None,
                patterns: Vec::new(),
            });
        }
        upserts.push(of);
    }
    Ok(upserts)
}

fn edges(numbers: &[usize]) -> Result<Upsert> {
    let mut of = upsert()?;
    let weight = Weight::parse(0.9).map_err(|invalid| anyhow!("{invalid}"))?;
    for &number in numbers {
        of.edges.push(EdgeUpsert {
            id: id("e", number)?,
            relation: EdgeRelation::LABELS[number % 3],
            source: NodeRef {
                sort: NodeSort::Fragment,
                id: id("f", number / 2)?,
            },
            target: NodeRef {
                sort: NodeSort::Claim,
                id: id("c", number / PER_CLAIM)?,
            },
            task: Some(id("t", number / (PER_CLAIM * 1_000))?),
            label: None,
            confidence: Some((0.9, weight)),
        });
    }
    Ok(of)
}

const PLAIN: &str = "CREATE TABLE plain_edges (edge_id TEXT PRIMARY KEY, source TEXT NOT NULL, target TEXT NOT NULL, weight BIGINT NOT NULL)";

macro_rules! plain_inserts {
    ($name:ident, $options:ty, $database:ty) => {
        async fn $name(url: &str, rows: usize) -> Result<f64> {
            let mut connection = url.parse::<$options>()?.connect().await?;
            sqlx::query("DROP TABLE IF EXISTS plain_edges")
                .execute(&mut connection)
                .await?;
            sqlx::query(PLAIN).execute(&mut connection).await?;
            let numbers: Vec<usize> = (0..rows).collect();
            let began = Instant::now();
            for numbers in numbers.chunks(BATCH) {
                let mut query = QueryBuilder::<$database>::new(
                    "INSERT INTO plain_edges (edge_id, source, target, weight) ",
                );
                query.push_values(numbers, |mut row, number| {
                    row.push_bind(format!("e{number:08}"))
                        .push_bind(format!("f{:08}", number / 2))
                        .push_bind(format!("c{:08}", number / PER_CLAIM))
                        .push_bind(900_000_i64);
                });
                query.build().execute(&mut connection).await?;
            }
            let ours = per_second(rows, began);
            sqlx::query("DROP TABLE plain_edges")
                .execute(&mut connection)
                .await?;
            Ok(ours)
        }
    };
}

plain_inserts!(
    plain_inserts_sqlite,
    sqlx::sqlite::SqliteConnectOptions,
    sqlx::Sqlite
);
plain_inserts!(
    plain_inserts_postgres,
    sqlx::postgres::PgConnectOptions,
    sqlx::Postgres
);
