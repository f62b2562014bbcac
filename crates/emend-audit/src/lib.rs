//! The ledger audit: whether what both services stored agrees with itself and with each other. Acknowledged feedback is
//! stored feedback, is what learning-svc took, is ballots, is candidates' figures; the log replayed from nothing is the
//! resources.
//!
//! Each service reads its own database and says what is wrong within it ([`feedback_svc::audit`], [`learning_svc::audit`]);
//! here the two are held against each other, feedback by feedback, both in the order of their ids, so that memory is
//! bounded. Nothing is changed. It knows no table.
//!
//! # While the services run
//! Each reading is of one consistent state, but there is no one state of both databases. feedback-svc is read first and
//! learning-svc second, both as of the moment when they are opened, one right after the other:
//!
//! * What feedback-svc knew to be delivered at its moment is in the inbox at the later one, with its effect. If it is not,
//!   it is lost.
//! * What is in the inbox and was not asked for at feedback-svc's moment may have been stored in between. So feedback-svc
//!   is asked again about just that, now: what learning-svc had before was stored before it. If nobody asked for it then
//!   either, nobody ever did.
//!
//! So nothing that is under way is taken for lost or for made up, however busy the services are.

mod compare;

use emend_core::FeedbackId;
use emend_runtime::{
    audit::{Check, Findings, OpenError, ROW_CORRUPT, Watch},
    database::DatabaseUrl,
    store::StoreError,
};
use feedback_svc::audit::Audit as FeedbackAudit;
pub use feedback_svc::audit::Entry as Stored;
use futures::{StreamExt as _, stream::BoxStream};
use learning_svc::audit::{Audit as LearningAudit, Entry as Taken, Figures};

emend_runtime::checks! {
    INBOX_FEEDBACK: "Every event that learning-svc applied is of a feedback that feedback-svc stored.";
    INBOX_MISSING: "Every event that counts as delivered was applied.";
    INBOX_SURPLUS: "A feedback's events were applied once each.";
    BALLOT_MISSING: "A feedback that was delivered cast a ballot, unless it was refused.";
    BALLOT_DIFFERS: "A ballot is the one that its feedback gives by the rules: contest, candidate, voter, accept order, time.";
    RETRACTION_DIFFERS: "What was retracted and delivered is marked as retracted, and nothing else is.";
    OUTCOME_DIFFERS: "The outcome that a feedback shows is one that learning-svc gave it.";
}

/// The two databases.
#[derive(Debug, Clone)]
pub struct Databases {
    /// feedback-svc's.
    pub feedback: DatabaseUrl,
    /// learning-svc's.
    pub learning: DatabaseUrl,
}

/// What was found, and how much was looked at.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is not as it has to be.
    pub findings: Findings,
    /// Feedbacks.
    pub feedback: u64,
    /// Of them those whose newest event is not delivered.
    pub undelivered: u64,
    /// Of those the ones that were refused for good.
    pub dead: u64,
    /// Of learning-svc.
    pub learning: Figures,
}

/// Why an audit can't be made.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A database can't be opened.
    #[error("{service}'s database: {error}")]
    Open {
        /// Whose.
        service: &'static str,
        /// Why.
        #[source]
        error: OpenError,
    },
    /// A database did not answer to the end.
    #[error("{service}'s database: {error}")]
    Read {
        /// Whose.
        service: &'static str,
        /// Why.
        #[source]
        error: StoreError,
    },
}

const FEEDBACK: &str = "feedback-svc";
const LEARNING: &str = "learning-svc";

fn open_failed(service: &'static str) -> impl FnOnce(OpenError) -> AuditError {
    move |error| AuditError::Open { service, error }
}

fn read_failed(service: &'static str) -> impl FnOnce(StoreError) -> AuditError {
    move |error| AuditError::Read { service, error }
}

/// All checks that an audit makes.
pub fn checks() -> impl Iterator<Item = Check> {
    [ROW_CORRUPT]
        .into_iter()
        .chain(feedback_svc::audit::CHECKS.iter().copied())
        .chain(learning_svc::audit::CHECKS.iter().copied())
        .chain(CHECKS.iter().copied())
}

/// Work that is still to be done by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Events to be delivered, dead letters left out.
    pub events: u64,
    /// Contests to be evaluated by a newer policy.
    pub contests: u64,
}

/// How much still waits.
pub async fn waiting(databases: &Databases) -> Result<Waiting, AuditError> {
    let mut feedback = FeedbackAudit::open(&databases.feedback)
        .await
        .map_err(open_failed(FEEDBACK))?;
    let events = feedback.waiting().await.map_err(read_failed(FEEDBACK))?;
    let mut learning = LearningAudit::open(&databases.learning)
        .await
        .map_err(open_failed(LEARNING))?;
    let contests = learning.to_reevaluate().await.map_err(read_failed(LEARNING))?;
    Ok(Waiting { events, contests })
}

/// Audits both databases. `witness` is shown every stored feedback, in the order of their ids.
pub async fn audit(
    databases: &Databases,
    watch: &mut dyn Watch,
    witness: &mut (dyn FnMut(&Stored) + Send),
) -> Result<Report, AuditError> {
    // In this order: see above.
    let mut feedback = FeedbackAudit::open(&databases.feedback)
        .await
        .map_err(open_failed(FEEDBACK))?;
    let mut learning = LearningAudit::open(&databases.learning)
        .await
        .map_err(open_failed(LEARNING))?;
    let mut report = Report::default();
    let findings = &mut report.findings;
    report.feedback = feedback.count().await.map_err(read_failed(FEEDBACK))?;
    feedback.check(findings).await.map_err(read_failed(FEEDBACK))?;
    report.learning = learning
        .check(findings, watch)
        .await
        .map_err(read_failed(LEARNING))?;
    watch.begins("feedback", report.feedback);
    let again = Again {
        databases,
        open: None,
        doubtful: Vec::new(),
    };
    Merge {
        feedback: Side::new(FEEDBACK, feedback.entries()),
        learning: Side::new(LEARNING, learning.entries()),
        again,
    }
    .run(&mut report, watch, witness)
    .await?;
    Ok(report)
}

/// One side's entries, in the order of their ids, with the next one at hand.
struct Side<'a, T> {
    service: &'static str,
    entries: BoxStream<'a, Result<T, StoreError>>,
    next: Option<T>,
}

impl<'a, T> Side<'a, T> {
    fn new(service: &'static str, entries: BoxStream<'a, Result<T, StoreError>>) -> Self {
        Self {
            service,
            entries,
            next: None,
        }
    }

    /// Sees to it that the next one is at hand, if there is one. Those that can't be read are findings.
    async fn fill(&mut self, findings: &mut Findings) -> Result<(), AuditError> {
        while self.next.is_none() {
            let Some(entry) = self.entries.next().await else {
                break;
            };
            self.next = findings.readable(entry).map_err(read_failed(self.service))?;
        }
        Ok(())
    }
}

/// Both sides, side by side.
struct Merge<'a> {
    feedback: Side<'a, Stored>,
    learning: Side<'a, Taken>,
    again: Again<'a>,
}

impl Merge<'_> {
    async fn run(
        mut self,
        report: &mut Report,
        watch: &mut dyn Watch,
        witness: &mut (dyn FnMut(&Stored) + Send),
    ) -> Result<(), AuditError> {
        loop {
            self.feedback.fill(&mut report.findings).await?;
            self.learning.fill(&mut report.findings).await?;
            let (stored, taken) = match (&self.feedback.next, &self.learning.next) {
                (None, None) => break,
                (Some(stored), Some(taken)) if stored.id() == taken.feedback => {
                    (self.feedback.next.take(), self.learning.next.take())
                }
                (Some(stored), Some(taken)) if stored.id() < taken.feedback => {
                    (self.feedback.next.take(), None)
                }
                (Some(_), None) => (self.feedback.next.take(), None),
                (_, Some(_)) => (None, self.learning.next.take()),
            };
            if let Some(stored) = &stored {
                stored.check(&mut report.findings);
                witness(stored);
                report.count(stored);
                watch.went_on(1);
                compare::lost(stored, taken.as_ref(), &mut report.findings);
            }
            if let Some(taken) = taken {
                taken.check(&mut report.findings);
                // Looked at as if nothing had been stored since; what is in doubt then is asked about again.
                let mut doubts = Findings::default();
                compare::made_up(stored.as_ref(), &taken, &mut doubts);
                if !doubts.is_empty() {
                    self.again.doubt(taken, &mut report.findings).await?;
                }
            }
        }
        self.again.resolve(&mut report.findings).await
    }
}

impl Report {
    fn count(&mut self, stored: &Stored) {
        match stored.delivery() {
            feedback_svc::audit::Delivery::Delivered => {}
            feedback_svc::audit::Delivery::Pending => self.undelivered += 1,
            feedback_svc::audit::Delivery::Dead => {
                self.undelivered += 1;
                self.dead += 1;
            }
        }
    }
}

/// How many are asked about together.
const ASKED_TOGETHER: usize = 200;

/// Asks feedback-svc again, as of a moment after learning-svc's.
struct Again<'a> {
    databases: &'a Databases,
    open: Option<FeedbackAudit>,
    doubtful: Vec<Taken>,
}

impl Again<'_> {
    async fn doubt(&mut self, taken: Taken, findings: &mut Findings) -> Result<(), AuditError> {
        self.doubtful.push(taken);
        if self.doubtful.len() >= ASKED_TOGETHER {
            self.resolve(findings).await?;
        }
        Ok(())
    }

    async fn resolve(&mut self, findings: &mut Findings) -> Result<(), AuditError> {
        let doubtful = std::mem::take(&mut self.doubtful);
        if doubtful.is_empty() {
            return Ok(());
        }
        let feedback = match &mut self.open {
            Some(open) => open,
            none => none.insert(
                FeedbackAudit::open(&self.databases.feedback)
                    .await
                    .map_err(open_failed(FEEDBACK))?,
            ),
        };
        let ids: Vec<FeedbackId> = doubtful.iter().map(|taken| taken.feedback).collect();
        let mut stored = Side::new(FEEDBACK, feedback.entries_of(&ids));
        stored.fill(findings).await?;
        // Both by id.
        for taken in doubtful {
            while stored
                .next
                .as_ref()
                .is_some_and(|stored| stored.id() < taken.feedback)
            {
                stored.next = None;
                stored.fill(findings).await?;
            }
            let of_taken = stored
                .next
                .as_ref()
                .filter(|stored| stored.id() == taken.feedback);
            compare::made_up(of_taken, &taken, findings);
        }
        Ok(())
    }
}
