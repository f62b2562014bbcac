//! Durable submissions a second: through feedback-svc, whose concurrent submissions share a commit, beside one
//! transaction each straight to the same kind of database in the same run. Each answered submission is on disk.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use emend_proto::{
    common::v1::{Correction, PhraseMapping, Reporter, correction},
    feedback::v1::{SubmitFeedbackRequest, feedback_service_client::FeedbackServiceClient},
};
use emend_runtime::{Entropy, Lifecycle, SystemClock, database::DatabaseUrl};
use feedback_svc::{Config, Environment};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tonic::transport::Channel;

/// Durable submissions a second, beside one transaction each.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// Submissions in each run
    #[arg(long, default_value_t = 20_000)]
    submissions: u64,
    /// Submissions under way at once
    #[arg(long, default_value_t = 128)]
    concurrency: u64,
    /// Also on PostgreSQL: an empty database to write into
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
}

pub(crate) fn run(options: &Submit) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let emend = ours(options, DatabaseUrl::sqlite(directory.path().join("feedback.db"))).await?;
        let peer = sqlite_one_by_one(options, &directory.path().join("peer.db")).await?;
        report("SQLite", options, emend, peer);
        if let Some(url) = &options.postgres {
            let emend = ours(options, url.parse()?).await?;
            let peer = postgres_one_by_one(options, url).await?;
            report("PostgreSQL", options, emend, peer);
        }
        Ok(())
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn report(database: &str, options: &Submit, emend: Duration, peer: Duration) {
    let rate = |took: Duration| options.submissions as f64 / took.as_secs_f64();
    println!(
        "{database}: {:.0} submissions/s through feedback-svc over gRPC, {:.0}/s in one transaction each: ratio {:.1} \
         ({} submissions, {} under way at once)",
        rate(emend),
        rate(peer),
        rate(emend) / rate(peer),
        options.submissions,
        options.concurrency,
    );
}

/// Through the service, over a real socket.
async fn ours(options: &Submit, database: DatabaseUrl) -> Result<Duration> {
    let lifecycle = Lifecycle::new();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    // Nobody listens there: delivery waits, as when learning-svc is away.
    let config = Config::new(database, "127.0.0.1:9".parse()?);
    let environment = Environment {
        lifecycle: lifecycle.clone(),
        clock: SystemClock::shared(),
        entropy: Entropy::system(),
    };
    let handle = feedback_svc::start(config, listener, environment).await?;
    let channel = Channel::from_shared(format!("http://{}", handle.address()))?
        .connect()
        .await?;
    let clients = options.concurrency;
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let mut feedback = FeedbackServiceClient::new(channel.clone());
        let share = (client..options.submissions).step_by(usize::try_from(clients)?);
        tasks.spawn(async move {
            for number in share {
                feedback.submit_feedback(request(number)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let took = began.elapsed();
    handle.shutdown(Duration::from_secs(5)).await;
    Ok(took)
}

fn request(number: u64) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        request_id: format!("bench-{number}"),
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

/// As much as the leanest service would write, one transaction each; SQLite has one writer.
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

/// The same on PostgreSQL, over 16 connections, where the server groups commits by itself.
async fn postgres_one_by_one(options: &Submit, url: &str) -> Result<Duration> {
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(16)
        .connect(url)
        .await?;
    for table in PEER_TABLES {
        sqlx::query(table).execute(&pool).await?;
    }
    let pool = Arc::new(pool);
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..16 {
        let pool = Arc::clone(&pool);
        let share = (client..options.submissions).step_by(16);
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
