//! The ledger audit for whole-system tests: what was asked and acknowledged = what is stored = inbox = ballots = candidates =
//! resources = the log replayed from nothing, and every node holds what the database holds.
//!
//! ```no_run
//! # async fn run() {
//! use emend_tests::{
//!     audit::ledger::{self, Asked},
//!     harness::{System, node::Node, says, verb},
//! };
//!
//! let system = System::sqlite().await;
//! let node = Node::start(system.learning[0].front.address(), "search-1").await;
//! let mut asked = Asked::default();
//!
//! // Note what is asked before it is sent, and what is acknowledged when it is. Every request has a request id.
//! let mut request = says("jane", verb("set up a csa", "create_isda"));
//! request.request_id = "1".into();
//! asked.ask(&request);
//! if let Ok(answer) = system.feedback().service.clone().submit_feedback(request.clone()).await {
//!     asked.acknowledge(&request, &answer.into_inner().feedback.unwrap().feedback_id);
//! }
//!
//! // … whatever faults there are; then, with the load stopped and the services up again:
//! ledger::expect_sound(&system, Some(&asked), &[(&node).into()]).await;
//! # }
//! ```
//!
//! [`check`] answers with the findings instead. Both first wait, for at most [`PATIENCE`], until the outbox has
//! drained, everything pending is evaluated under its newest policy, and the nodes have applied the head; whatever does
//! not get there is a finding. `None` for what was asked leaves out what only the asker can know.

mod asked;
mod nodes;

use std::time::Duration;

use emend_audit::{AuditError, Databases, Report, Waiting};
use emend_store::audit::{Finding, Findings, IgnoreProgress};
use tokio::time::{Instant, sleep};

pub use self::{asked::Asked, nodes::Holder};
use crate::harness::{Stored, System, deployment::Deployment, tamper::Copy, wait::PATIENCE};

emend_store::checks! {
    OUTBOX_NOT_DRAINED: "With the services up, every event is delivered in time.";
    REEVALUATION_WAITS: "With the services up, every contest is evaluated by its newest policy in time.";
    ACKNOWLEDGED_LOST: "Every acknowledged submission is stored under the id that was returned.";
    ACKNOWLEDGED_DIFFERS: "Every acknowledged submission is stored unchanged.";
    STORED_TWICE: "A request is stored at most once, however often it was sent.";
    STORED_UNASKED: "Everything stored was requested.";
    RETRACTION_LOST: "Every acknowledged retraction is stored.";
    RETRACTED_UNASKED: "Every stored retraction was requested.";
    NODE_BEHIND: "A connected node applies the head in time, and nothing beyond.";
    NODE_DIGEST: "A node's digests are those of the database.";
    NODE_DIFFERS: "A node holds the keys, values and revisions of the database and no others, and answers with them.";
}

/// A system that can be audited.
pub trait Audited {
    /// The databases of its services.
    fn databases(&self) -> Databases;

    /// What learning-svc stored.
    fn stored(&self) -> Stored;
}

impl Audited for System {
    fn databases(&self) -> Databases {
        self.database.databases()
    }

    fn stored(&self) -> Stored {
        Self::stored(self)
    }
}

impl Audited for Deployment {
    fn databases(&self) -> Databases {
        Self::databases(self)
    }

    fn stored(&self) -> Stored {
        Self::stored(self)
    }
}

impl Audited for Copy {
    fn databases(&self) -> Databases {
        Self::databases(self).clone()
    }

    fn stored(&self) -> Stored {
        Self::stored(self)
    }
}

/// Every finding, at most [`emend_store::audit::KEPT_FINDINGS`] of a kind; empty if all is well.
///
/// # Panics
/// If a database can't be read.
pub async fn check(system: &impl Audited, asked: Option<&Asked>, nodes: &[Holder<'_>]) -> Vec<Finding> {
    check_within(PATIENCE, system, asked, nodes).await
}

/// The same with another bound on the wait for the outbox and for each node.
///
/// # Panics
/// If a database can't be read.
pub async fn check_within(
    patience: Duration,
    system: &impl Audited,
    asked: Option<&Asked>,
    nodes: &[Holder<'_>],
) -> Vec<Finding> {
    let databases = system.databases();
    let mut own = Findings::default();
    drained(patience, &databases, &mut own).await;
    let mut witness = asked.map(asked::Witness::of);
    let report = emend_audit::audit(&databases, &mut IgnoreProgress, &mut |stored| {
        if let Some(witness) = &mut witness {
            witness.sees(stored, &mut own);
        }
    })
    .await
    .unwrap_or_else(|error| panic!("the audit can't be made: {error}"));
    if let Some(witness) = witness {
        witness.ends(&mut own);
    }
    if !nodes.is_empty() {
        let database = nodes::Database {
            figures: &report.learning,
            resources: system.stored().resources().await,
            once: system.stored().keys_once().await,
        };
        for node in nodes {
            node.check(patience, &database, &mut own).await;
        }
    }
    let Report { findings, .. } = report;
    [findings.kept(), own.kept()].concat()
}

/// Asserts that there are no findings.
///
/// # Panics
/// If there is one, with every finding.
pub async fn expect_sound(system: &impl Audited, asked: Option<&Asked>, nodes: &[Holder<'_>]) {
    let findings = check(system, asked, nodes).await;
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "the audit found:\n{}", lines.join("\n"));
}

async fn drained(patience: Duration, databases: &Databases, findings: &mut Findings) {
    let deadline = Instant::now() + patience;
    loop {
        let waiting = emend_audit::waiting(databases).await;
        match waiting {
            Ok(Waiting {
                events: 0,
                contests: 0,
            }) => return,
            still if Instant::now() >= deadline => {
                match still {
                    Ok(Waiting { events, contests }) => {
                        if events > 0 {
                            let message = format_args!("{events} events still wait after {patience:?}");
                            findings.add(OUTBOX_NOT_DRAINED, "the outbox", message);
                        }
                        if contests > 0 {
                            let message = format_args!("{contests} contests still wait after {patience:?}");
                            findings.add(REEVALUATION_WAITS, "the contests", message);
                        }
                    }
                    Err(error) => findings.add(
                        OUTBOX_NOT_DRAINED,
                        "the outbox",
                        format_args!("it can't be looked into: {error}"),
                    ),
                }
                return;
            }
            // A database that is coming back may refuse connections for a while.
            Ok(_) | Err(AuditError::Open { .. } | AuditError::Read { .. }) => {}
        }
        sleep(Duration::from_millis(50)).await;
    }
}
