//! Durable submissions per second through feedback-svc, where concurrent submissions share a commit, compared in the
//! same run on the same kind of database with two peers: the same service over gRPC with one transaction per
//! submission, and a bare minimum of one transaction each without a service. Every acknowledged submission is on disk.
//!
//! The benefit of sharing a commit depends on what a commit costs, so the cost of one synced write is measured as well.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use emend_base::{Entropy, Environment, Lifecycle};
use emend_proto::{
    common::v1::{Correction, PhraseMapping, Reporter, correction},
    feedback::v1::{SubmitFeedbackRequest, feedback_service_client::FeedbackServiceClient},
};
use emend_store::DatabaseUrl;
use feedback_svc::{CommitConfig, Config};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tonic::transport::Channel;

/// Number of synced writes measured.
const SYNCED_WRITES: u64 = 200;
/// Minimum cost in microseconds of a synced write on a real disk. A faster write was acknowledged from memory.
const REAL_DISK_US: f64 = 20.0;
/// Connections of the one-transaction-each peer on PostgreSQL, where the server groups commits by itself.
const CONNECTIONS: u64 = 16;

/// Durable submissions per second, compared with one transaction each.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// Submissions per run
    #[arg(long, default_value_t = 20_000)]
    submissions: u64,
    /// Submissions in flight at once
    #[arg(long, default_value_t = 128)]
    concurrency: u64,
    /// Also on PostgreSQL: an empty database to write into
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
}

/// How long each variant took.
struct Timings {
    grouped: Duration,
    one_by_one: Duration,
    lean: Duration,
}

pub(crate) fn run(options: &Submit) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let micros = synced_write(&directory.path().join("synced"))?;
        println!(
            "one synced write of 4 KiB: {micros:.0} µs{}",
            if micros < REAL_DISK_US {
                ", nearly free: this disk does not wait for anything, so sharing a commit is worth less here than elsewhere"
            } else {
                ""
            }
        );
        let sqlite = |name: &str| DatabaseUrl::sqlite(directory.path().join(name));
        let took = Timings {
            grouped: through_service(options, &sqlite("grouped.db"), 1, CommitConfig::default()).await?,
            one_by_one: through_service(options, &sqlite("one.db"), 1, groups_of_one()).await?,
            lean: sqlite_one_by_one(options, &directory.path().join("lean.db")).await?,
        };
        report("SQLite", options, &took);
        if let Some(url) = &options.postgres {
            let database: DatabaseUrl = url.parse()?;
            let took = Timings {
                grouped: through_service(options, &database, 1, CommitConfig::default()).await?,
                // A service without grouping commits on one connection, so run as many replicas as the lean peer has
                // connections.
                one_by_one: through_service(options, &database, CONNECTIONS, groups_of_one()).await?,
                lean: postgres_one_by_one(options, url).await?,
            };
            report("PostgreSQL", options, &took);
        }
        Ok(())
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn report(database: &str, options: &Submit, took: &Timings) {
    let rate = |took: Duration| options.submissions as f64 / took.as_secs_f64();
    let grouped = rate(took.grouped);
    println!(
        "{database}: {grouped:.0} submissions/s through feedback-svc over gRPC ({} submissions, {} under way at once)",
        options.submissions, options.concurrency,
    );
    for (peer, took) in [
        ("through the same with one transaction each", took.one_by_one),
        ("in one lean transaction each, with no service", took.lean),
    ] {
        println!("{:>8.0}/s {peer}: ratio {:.1}", rate(took), grouped / rate(took));
    }
}

/// The median time of a synced write, in microseconds.
fn synced_write(path: &Path) -> Result<f64> {
    let file = File::create(path)?;
    let mut micros = Vec::new();
    for number in 0..SYNCED_WRITES {
        let began = Instant::now();
        file.write_all_at(&[1; 4096], number * 4096)?;
        file.sync_data()?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    micros.get(micros.len() / 2).copied().context("a figure")
}

/// One transaction per submission.
fn groups_of_one() -> CommitConfig {
    CommitConfig {
        group_items: 1,
        ..CommitConfig::default()
    }
}

/// Through the service, over real sockets; `replicas` of it share the database and the clients.
async fn through_service(
    options: &Submit,
    database: &DatabaseUrl,
    replicas: u64,
    commit: CommitConfig,
) -> Result<Duration> {
    // Request ids must not repeat those of another run on the same database.
    let run = Entropy::system().uuid_v4().to_string();
    let lifecycle = Lifecycle::new();
    let mut handles = Vec::new();
    let mut channels = Vec::new();
    for _ in 0..replicas {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        // No server listens there: delivery waits, as when learning-svc is away.
        let config = Config {
            commit,
            ..Config::new(database.clone(), "127.0.0.1:9".parse()?)
        };
        let environment = Environment::system(&lifecycle);
        let handle = feedback_svc::start(config, listener, environment).await?;
        channels.push(
            Channel::from_shared(format!("http://{}", handle.address()))?
                .connect()
                .await?,
        );
        handles.push(handle);
    }
    let clients = options.concurrency;
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for (client, channel) in (0..clients).zip(channels.iter().cycle()) {
        let mut feedback = FeedbackServiceClient::new(channel.clone());
        let share = (client..options.submissions).step_by(usize::try_from(clients)?);
        let run = run.clone();
        tasks.spawn(async move {
            for number in share {
                feedback.submit_feedback(request(&run, number)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let took = began.elapsed();
    for handle in handles {
        handle.shutdown(Duration::from_secs(5)).await;
    }
    Ok(took)
}

fn request(run: &str, number: u64) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        request_id: format!("{run}-{number}"),
        namespace: "bench".into(),
        reporter: Some(Reporter {
            id: format!("reporter-{}", number % 1000),
            ..Reporter::default()
        }),
        correction: Some(Correction {
            correction: Some(correction::Correction::PhraseMapping(PhraseMapping {
                phrase: format!("phrase number {number}"),
                verb: "verb".into(),
            })),
        }),
        ..SubmitFeedbackRequest::default()
    }
}

const PEER_TABLES: [&str; 2] = [
    "CREATE TABLE peer_feedback (id TEXT PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE peer_outbox (id TEXT PRIMARY KEY, body TEXT NOT NULL)",
];
const PEER_INSERTS: [&str; 2] = [
    "INSERT INTO peer_feedback (id, body) VALUES ($1, $2)",
    "INSERT INTO peer_outbox (id, body) VALUES ($1, $2)",
];

/// The writes of the leanest possible service, one transaction each; SQLite has one writer.
async fn sqlite_one_by_one(options: &Submit, path: &Path) -> Result<Duration> {
    let mut connection = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
        .synchronous(sqlx::sqlite::SqliteSynchronous::Full)
        .connect()
        .await?;
    for table in PEER_TABLES {
        sqlx::query(table).execute(&mut connection).await?;
    }
    let began = Instant::now();
    for number in 0..options.submissions {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for insert in PEER_INSERTS {
            sqlx::query(insert)
                .bind(number.to_string())
                .bind(body(number))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
    }
    Ok(began.elapsed())
}

/// The same on PostgreSQL, over several connections.
async fn postgres_one_by_one(options: &Submit, url: &str) -> Result<Duration> {
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(u32::try_from(CONNECTIONS)?)
        .connect(url)
        .await?;
    for table in PEER_TABLES {
        sqlx::query(table).execute(&pool).await?;
    }
    let pool = Arc::new(pool);
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..CONNECTIONS {
        let pool = Arc::clone(&pool);
        let share = (client..options.submissions).step_by(usize::try_from(CONNECTIONS)?);
        tasks.spawn(async move {
            for number in share {
                let mut transaction = pool.begin().await?;
                for insert in PEER_INSERTS {
                    sqlx::query(insert)
                        .bind(number.to_string())
                        .bind(body(number))
                        .execute(&mut *transaction)
                        .await?;
                }
                transaction.commit().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(began.elapsed())
}

fn body(number: u64) -> String {
    format!(
        "a correction of about the same size, number {number}: {}",
        "x".repeat(200)
    )
}
