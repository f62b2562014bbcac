//! The cost of one more event in a contest with many voters: with the tally maintained from event to event, compared
//! with the obvious approach of counting all ballots for each event.
//!
//! Measured twice: deciding alone, in memory; and through learning-svc's use case on SQLite, each event in its own
//! durable transaction, compared with an instance that keeps nothing and so reads all ballots for each event.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use emend_base::{Entropy, SystemClock};
use emend_core::{
    AcceptOrder, Ballot, Ballots, Caller, ContestState, Correction, Event, EventId, FeedbackId, Namespace,
    Origin, Policy, Proposal, Reporter, Revision, Roles, ballots::Tally, decide,
};
use emend_store::DatabaseUrl;
use learning_store::{self, Database};
use learning_svc::{
    capabilities::{Capabilities, Parts},
    decisions::Follower,
    ingest::event::{FeedbackChange, IngestEvent, Recorded},
};
use tokio::time::Instant;

/// Events applied in one transaction where many are.
const GROUP: usize = 64;

/// The cost of one more event in a contest with many voters.
#[derive(Debug, clap::Args)]
pub(crate) struct Contest {
    /// Number of ballots in the contest
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 10_000])]
    ballots: Vec<u32>,
    /// Events timed in memory
    #[arg(long, default_value_t = 2_000)]
    events: u32,
    /// Events timed through the service; each is a commit
    #[arg(long, default_value_t = 200)]
    commits: u32,
}

pub(crate) fn run(options: &Contest) -> Result<()> {
    println!(
        "µs per event, a vote or its retraction in turn; the contest has so many ballots of as many reporters"
    );
    println!(
        "{:>8}  {:<38} {:>10} {:>12} {:>8}",
        "ballots", "", "kept", "from nothing", "ratio"
    );
    for &ballots in &options.ballots {
        let ours = decided(ballots, options.events)?;
        let peer = recounted(ballots, options.events.div_ceil(10))?;
        tell(ballots, "deciding, in memory", ours, peer);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    for &ballots in &options.ballots {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let path = directory.path().join("learning.db");
        let (ours, peer, grouped) = runtime.block_on(ingested(&path, ballots, options.commits))?;
        tell(ballots, "a transaction each, on disk", ours, peer);
        tell(ballots, "64 in a transaction, on disk", grouped, peer);
    }
    Ok(())
}

fn tell(ballots: u32, what: &str, ours: f64, peer: f64) {
    println!(
        "{ballots:>8}  {what:<38} {ours:>10.1} {peer:>12.1} {:>8.1}",
        peer / ours
    );
}

fn per_event(began: Instant, events: u32) -> f64 {
    began.elapsed().as_secs_f64() * 1e6 / f64::from(events)
}

pub(crate) fn proposal() -> Result<Proposal> {
    let correction =
        Correction::parse_phrase_mapping("set up a csa", "create_csa").context("a correction")?;
    let mut effects = correction.effects(&Namespace::parse("bench").context("a namespace")?, None);
    effects.pop().context("an effect")
}

/// A ballot of a reporter that has no other ballot.
pub(crate) fn ballot(number: u32, proposal: &Proposal) -> Result<Ballot> {
    let caller = Caller::anonymous();
    let voter = reporter(number)?.voter(&caller);
    Ok(Ballot {
        feedback_id: FeedbackId(uuid::Uuid::from_u128(u128::from(number) + 1)),
        accept_order: AcceptOrder(i64::from(number) + 1),
        voter: voter.key(&proposal.key.namespace),
        identified: voter.is_identified(),
        caller,
        candidate: proposal.value.candidate_id(proposal.key.contest_id()),
        received_at: SystemClock::shared().now(),
    })
}

fn reporter(number: u32) -> Result<Reporter> {
    Ok(Reporter::parse(&format!("reporter-{number}"), "", "", "")?)
}

pub(crate) fn cast(number: u32, proposal: &Proposal) -> Result<(Event, Ballot)> {
    let ballot = ballot(number, proposal)?;
    let event = Event::Recorded {
        ballot: ballot.clone(),
        value: proposal.value.clone(),
        origin: Origin::Votes,
        personal_data: false,
        sender: Roles::default(),
        retracted_by: None,
    };
    Ok((event, ballot))
}

/// Decides one event after another on the same contest.
fn decided(ballots: u32, events: u32) -> Result<f64> {
    let proposal = proposal()?;
    let policy = Policy::default_for(proposal.key.kind);
    let now = SystemClock::shared().now();
    let mut state = ContestState::new(proposal.key.clone());
    let there: Vec<Ballot> = (0..ballots)
        .map(|number| ballot(number, &proposal))
        .collect::<Result<_>>()?;
    state.ballots = Ballots::new(there, true);
    let mut play = Vec::new();
    for number in ballots..ballots + events.div_ceil(2) {
        let (event, ballot) = cast(number, &proposal)?;
        play.extend([
            event,
            Event::Retracted {
                ballot,
                sender: Roles::default(),
            },
        ]);
    }
    let began = Instant::now();
    for event in &play {
        state = decide(state, event, &policy, now)
            .map_err(|refused| refused.refusal)?
            .after;
    }
    let took = per_event(began, u32::try_from(play.len())?);
    ensure!(state.ballots.len() == ballots as usize, "ballots were lost");
    Ok(took)
}

/// Only what counting from scratch adds: copying the ballots and counting them.
fn recounted(ballots: u32, events: u32) -> Result<f64> {
    let proposal = proposal()?;
    let policy = Policy::default_for(proposal.key.kind);
    let now = SystemClock::shared().now();
    let there: Vec<Ballot> = (0..=ballots)
        .rev()
        .map(|number| ballot(number, &proposal))
        .collect::<Result<_>>()?;
    let candidate = there.first().context("a ballot")?.candidate;
    let began = Instant::now();
    let mut votes = 0;
    for _ in 0..events {
        votes += Tally::count(&there.clone(), &policy, now).of(candidate).voters;
    }
    let took = per_event(began, events);
    ensure!(votes > 0, "nothing was counted");
    Ok(took)
}

/// No node follows the log.
struct Nobody;

#[async_trait]
impl Follower for Nobody {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}

fn app(store: &Arc<dyn Database>) -> Capabilities {
    Capabilities::new(Parts::new(
        Arc::clone(store),
        Arc::new(Nobody),
        SystemClock::shared(),
        Entropy::system(),
    ))
}

/// Through the use case: one event per transaction, the same with instances that keep nothing, and many events per
/// transaction.
async fn ingested(path: &Path, ballots: u32, commits: u32) -> Result<(f64, f64, f64)> {
    let store = learning_store::open(&DatabaseUrl::sqlite(path), 2).await?;
    learning_store::begin_installation(&*store, &Entropy::system()).await?;
    let service = app(&store);
    let there: Vec<IngestEvent> = (0..ballots).map(event).collect::<Result<_>>()?;
    apply(&service, &there).await?;

    let mut next = ballots;
    let mut play = |events: u32| -> Result<Vec<IngestEvent>> {
        let mut play = Vec::new();
        for _ in 0..events.div_ceil(2) {
            let vote = event(next)?;
            next += 1;
            play.extend([vote.clone(), retraction(&vote)]);
        }
        Ok(play)
    };
    let ours = play(commits)?;
    let began = Instant::now();
    for event in &ours {
        apply(&service, std::slice::from_ref(event)).await?;
    }
    let ours = per_event(began, u32::try_from(ours.len())?);

    let peers = play(commits)?;
    let began = Instant::now();
    for event in &peers {
        apply(&app(&store), std::slice::from_ref(event)).await?;
    }
    let peer = per_event(began, u32::try_from(peers.len())?);

    let grouped = play(commits.max(u32::try_from(GROUP)?))?;
    let began = Instant::now();
    apply(&app(&store), &grouped).await?;
    let grouped = per_event(began, u32::try_from(grouped.len())?);
    store.close().await;
    Ok((ours, peer, grouped))
}

async fn apply(app: &Capabilities, events: &[IngestEvent]) -> Result<()> {
    for result in app.ingest.apply(events).await {
        result.map_err(|error| anyhow::anyhow!("an event was not applied: {error:?}"))?;
    }
    Ok(())
}

fn event(number: u32) -> Result<IngestEvent> {
    let proposal = proposal()?;
    let id = uuid::Uuid::from_u128(u128::from(number) + 1);
    Ok(IngestEvent {
        id: EventId(id),
        feedback: FeedbackId(id),
        namespace: proposal.key.namespace.clone(),
        accept_order: AcceptOrder(i64::from(number) + 1),
        traceparent: String::new(),
        applied_under: None,
        change: FeedbackChange::Recorded(Box::new(Recorded {
            reporter: reporter(number)?,
            caller: Caller::anonymous(),
            query_id: String::new(),
            reason: String::new(),
            context: std::collections::BTreeMap::new(),
            effects: vec![proposal],
            sender: Roles::default(),
            received_at: SystemClock::shared().now(),
            erased: None,
        })),
    })
}

fn retraction(event: &IngestEvent) -> IngestEvent {
    IngestEvent {
        id: EventId(uuid::Uuid::from_u128(event.id.0.as_u128() | 1 << 100)),
        change: FeedbackChange::Retracted {
            caller: Caller::anonymous(),
            at: SystemClock::shared().now(),
            sender: Roles::default(),
        },
        ..event.clone()
    }
}
