//! What ingesting ratings costs while improvements of the same targets hang in a language model that never answers, compared
//! with the same ratings while none is generated. In turns on one SQLite database, each event group a durable transaction.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use emend_base::{
    Entropy, Lifecycle, SystemClock,
    http_client::model::{Endpoint, Parameters},
};
use emend_core::{
    AcceptOrder, Caller, Correction, EventId, FeedbackId, Kind, Learned, Namespace, Prompt, Reporter,
    ResourceKey, ResourceValue, Revision, Roles, ratings::RatingFields,
};
use emend_store::DatabaseUrl;
use learning_store::{self, actor::Actor};
use learning_svc::{
    capabilities::{Capabilities, Parts},
    decisions::Follower,
    generator::http::Model,
    ingest::event::{FeedbackChange, IngestEvent, Recorded},
    resources::write::Put,
};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};

/// What ingesting ratings costs while a language model hangs.
#[derive(Debug, clap::Args)]
pub(crate) struct Generator {
    /// Ratings in each turn
    #[arg(long, default_value_t = 6_400)]
    ratings: u32,
    /// Turns of each
    #[arg(long, default_value_t = 5)]
    turns: u32,
}

const NAMESPACE: &str = "bench";
/// Events applied in one transaction.
const GROUP: usize = 64;
/// Each has a prompt that is improved.
const TARGETS: [&str; 3] = ["INTERPRET", "SUMMARIZE_HOURLY", "SUMMARIZE_DAILY"];

/// No node follows the log.
struct Nobody;

#[async_trait]
impl Follower for Nobody {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}

/// What a turn took.
#[derive(Default)]
struct Took {
    all: Duration,
    groups: Vec<Duration>,
}

pub(crate) fn run(options: &Generator) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measured(options))
}

async fn measured(options: &Generator) -> Result<()> {
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let database = DatabaseUrl::sqlite(directory.path().join("learning.db"));
    let entropy = Entropy::system();
    let store = learning_store::open(&database, 4).await?;
    learning_store::begin_installation(&*store, &entropy).await?;
    let parts = Parts::new(store, Arc::new(Nobody), SystemClock::shared(), entropy.clone());
    let app = Capabilities::new(parts.clone());
    for target in TARGETS {
        app.resources.put(&put(target)?).await?;
    }
    // It accepts connections, and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = Endpoint {
        url: format!("http://{}/v1", silent.local_addr()?).parse()?,
        model: "silent".into(),
        key: None,
        timeout: Duration::from_mins(10),
        attempts: 1,
        parameters: Parameters::default(),
    };
    let mut next = 0;
    ingest(&app, &mut next, options.ratings).await?;

    let (mut quiet, mut hanging) = (Took::default(), Took::default());
    for _ in 0..options.turns {
        quiet.add(ingest(&app, &mut next, options.ratings).await?);

        let lifecycle = Lifecycle::new();
        let slow = Capabilities::new(Parts {
            generator: Arc::new(Model::new(
                &endpoint,
                Arc::new(Arc::clone(&parts.clock)),
                entropy.clone(),
            )),
            lifecycle: lifecycle.clone(),
            ..parts.clone()
        });
        let mut calls = JoinSet::new();
        let mut connections = Vec::new();
        for target in TARGETS {
            let (app, key) = (slow.clone(), key(target)?);
            calls.spawn(async move {
                app.outputs
                    .generate_improvement(&key, &Actor::caller(Caller::system()))
                    .await
            });
            connections.push(silent.accept().await?);
        }
        hanging.add(ingest(&app, &mut next, options.ratings).await?);
        ensure!(calls.try_join_next().is_none(), "a call did not hang");
        lifecycle.shutdown(Duration::from_secs(10)).await;
    }
    println!(
        "{} ratings in groups of {GROUP}, {} turns each, on SQLite; {} improvements hang meanwhile, or none is generated",
        options.ratings,
        options.turns,
        TARGETS.len()
    );
    let ratings = f64::from(options.ratings * options.turns);
    let (ours, peer) = (
        ratings / hanging.all.as_secs_f64(),
        ratings / quiet.all.as_secs_f64(),
    );
    println!(
        "ratings/s:            {ours:>9.0} while they hang, {peer:>9.0} without ({:.2}x)",
        ours / peer
    );
    for (name, hundredths) in [("median", 50), ("99th of 100", 99)] {
        let (ours, peer) = (hanging.at(hundredths)?, quiet.at(hundredths)?);
        println!(
            "ms a group, {name:<11}: {ours:>7.2} while they hang, {peer:>7.2} without ({:.2}x)",
            ours / peer
        );
    }
    app.store.close().await;
    Ok(())
}

impl Took {
    fn add(&mut self, turn: Self) {
        self.all += turn.all;
        self.groups.extend(turn.groups);
    }

    /// So many hundredths of the groups took no longer, in milliseconds.
    fn at(&mut self, hundredths: usize) -> Result<f64> {
        self.groups.sort_unstable();
        let place = self.groups.len().saturating_sub(1) * hundredths / 100;
        let took = self.groups.get(place).context("a group")?;
        Ok(took.as_secs_f64() * 1e3)
    }
}

fn key(target: &str) -> Result<ResourceKey> {
    Ok(ResourceKey::parse(NAMESPACE, Some(Kind::Prompt), target, "", "")?)
}

fn put(target: &str) -> Result<Put> {
    let prompt = Prompt::new("Summarise.", vec![], vec![])?;
    Ok(Put {
        key: key(target)?,
        value: ResourceValue::new(target, Learned::Prompt(prompt)),
        etag: None,
        reason: None,
        actor: Actor::caller(Caller::system()),
    })
}

/// Ingests so many further ratings, a group after another.
async fn ingest(app: &Capabilities, next: &mut u32, ratings: u32) -> Result<Took> {
    let events: Vec<IngestEvent> = (*next..*next + ratings).map(rating).collect::<Result<_>>()?;
    *next += ratings;
    let mut took = Took::default();
    let began = Instant::now();
    for group in events.chunks(GROUP) {
        let began = Instant::now();
        for result in app.ingest.apply(group).await {
            result.map_err(|error| anyhow::anyhow!("a rating was not applied: {error:?}"))?;
        }
        took.groups.push(began.elapsed());
    }
    took.all = began.elapsed();
    Ok(took)
}

fn rating(number: u32) -> Result<IngestEvent> {
    let target = TARGETS.get(number as usize % TARGETS.len()).context("a target")?;
    let fault = ["has no figures".to_owned()];
    let correction = Correction::parse_rating(RatingFields {
        target,
        value: "BAD",
        target_id: &format!("output-{number}"),
        input_text: "NAV 101.2, up 0.4 %.",
        output_text: "Much happened.",
        prompt_version: "1",
        issues: &fault,
        corrected_text: "NAV 101.2 (+0.4 %).",
        ..RatingFields::default()
    })?;
    let namespace = Namespace::parse(NAMESPACE).context("a namespace")?;
    let id = uuid::Uuid::from_u128(u128::from(number) + 1);
    Ok(IngestEvent {
        id: EventId(id),
        feedback: FeedbackId(id),
        accept_order: AcceptOrder(i64::from(number) + 1),
        traceparent: String::new(),
        applied_under: None,
        change: FeedbackChange::Recorded(Box::new(Recorded {
            reporter: Reporter::parse(&format!("reporter-{}", number % 500), "", "", "")?,
            caller: Caller::anonymous(),
            query_id: String::new(),
            reason: String::new(),
            context: BTreeMap::new(),
            effects: correction.effects(&namespace, None),
            sender: Roles::default(),
            received_at: SystemClock::shared().now(),
            erased: None,
        })),
        namespace,
    })
}
