//! The ledger audit: whether the data of both services is consistent, within each service and between them. All
//! acknowledged feedback must be stored, applied by learning-svc, counted as ballots and reflected in the candidates'
//! figures, and replaying the log from scratch must give the resources.
//!
//! Each service reads its own database and reports what is wrong within it ([`feedback_store::audit`],
//! [`learning_store::audit`]). This crate compares the two, feedback by feedback in id order, so that memory is bounded.
//! It changes nothing and knows no table.
//!
//! # While the services run
//! Each database is read at one consistent snapshot, but no snapshot spans both. feedback-svc is opened first and
//! learning-svc right after it, and each is read as of the moment it was opened:
//!
//! * What feedback-svc knew to be delivered at its moment must be in the inbox at the later one, with its effect. If it
//!   is not, it is lost.
//! * What is in the inbox but was unknown to feedback-svc at its moment may have been stored in between. So
//!   feedback-svc is asked again about just those items, now: whatever learning-svc had seen was stored before that. If
//!   feedback-svc still does not know it, it never existed there.
//!
//! So nothing in flight is mistaken for lost or made up, however busy the services are.

mod compare;

use emend_core::FeedbackId;
use emend_store::{
    DatabaseUrl, StoreError,
    audit::{Check, Findings, OpenError, ROW_CORRUPT, Watch},
};
use feedback_store::audit::Audit as FeedbackAudit;
pub use feedback_store::audit::Entry as Stored;
use futures::{StreamExt as _, stream::BoxStream};
use learning_store::audit::{Audit as LearningAudit, Entry as Taken, Figures, Mined};

emend_store::checks! {
    INBOX_FEEDBACK: "Every event that learning-svc applied belongs to feedback that feedback-svc stored.";
    INBOX_MISSING: "Every event that counts as delivered was applied.";
    INBOX_SURPLUS: "Each event of a feedback was applied once.";
    BALLOT_MISSING: "A feedback that was delivered cast a ballot, unless it was refused.";
    BALLOT_DIFFERS: "A ballot has the contest, candidate, voter, accept order and time that follow from its feedback.";
    RETRACTION_DIFFERS: "Feedback is marked as retracted if its retraction was delivered, and only then.";
    MINED_EVIDENCE: "A candidate that was mined comes from a rewording, or another spelling, that feedback-svc proposed.";
    OUTCOME_DIFFERS: "The outcome of a feedback is one that learning-svc returned for it.";
}

/// The two databases.
#[derive(Debug, Clone)]
pub struct Databases {
    /// feedback-svc's.
    pub feedback: DatabaseUrl,
    /// learning-svc's.
    pub learning: DatabaseUrl,
}

/// The findings, and how much was examined.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is inconsistent.
    pub findings: Findings,
    /// Number of feedback items.
    pub feedback: u64,
    /// Those among them whose newest event has not been delivered.
    pub undelivered: u64,
    /// Those undelivered ones that were refused permanently.
    pub dead: u64,
    /// learning-svc's figures.
    pub learning: Figures,
}

/// Why an audit cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A database cannot be opened.
    #[error("{service}'s database {database}: {error}")]
    Open {
        /// The service whose database it is.
        service: &'static str,
        /// Where it is, shown without a password.
        database: DatabaseUrl,
        /// Why.
        #[source]
        error: OpenError,
    },
    /// A database failed while it was read.
    #[error("{service}'s database: {error}")]
    Read {
        /// The service whose database it is.
        service: &'static str,
        /// Why.
        #[source]
        error: StoreError,
    },
}

const FEEDBACK: &str = "feedback-svc";
const LEARNING: &str = "learning-svc";

fn open_failed(service: &'static str, database: &DatabaseUrl) -> impl FnOnce(OpenError) -> AuditError {
    let database = database.clone();
    move |error| AuditError::Open {
        service,
        database,
        error,
    }
}

fn read_failed(service: &'static str) -> impl FnOnce(StoreError) -> AuditError {
    move |error| AuditError::Read { service, error }
}

/// All checks that an audit makes.
pub fn checks() -> impl Iterator<Item = Check> {
    [ROW_CORRUPT]
        .into_iter()
        .chain(feedback_store::audit::CHECKS.iter().copied())
        .chain(learning_store::audit::CHECKS.iter().copied())
        .chain(CHECKS.iter().copied())
}

/// Background work that has yet to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Events to be delivered, not counting dead letters.
    pub events: u64,
    /// Contests to be re-evaluated under a newer policy.
    pub contests: u64,
}

/// How much work is waiting.
pub async fn waiting(databases: &Databases) -> Result<Waiting, AuditError> {
    let mut feedback = FeedbackAudit::open(&databases.feedback)
        .await
        .map_err(open_failed(FEEDBACK, &databases.feedback))?;
    let events = feedback.waiting().await.map_err(read_failed(FEEDBACK))?;
    let mut learning = LearningAudit::open(&databases.learning)
        .await
        .map_err(open_failed(LEARNING, &databases.learning))?;
    let contests = learning.to_reevaluate().await.map_err(read_failed(LEARNING))?;
    Ok(Waiting { events, contests })
}

/// Audits both databases. `witness` is called with every stored feedback, in id order.
pub async fn audit(
    databases: &Databases,
    watch: &mut dyn Watch,
    witness: &mut (dyn FnMut(&Stored) + Send),
) -> Result<Report, AuditError> {
    // The order matters: see the module docs.
    let mut feedback = FeedbackAudit::open(&databases.feedback)
        .await
        .map_err(open_failed(FEEDBACK, &databases.feedback))?;
    let mut learning = LearningAudit::open(&databases.learning)
        .await
        .map_err(open_failed(LEARNING, &databases.learning))?;
    let mut report = Report::default();
    let findings = &mut report.findings;
    report.feedback = feedback.count().await.map_err(read_failed(FEEDBACK))?;
    feedback.check(findings).await.map_err(read_failed(FEEDBACK))?;
    report.learning = learning
        .check(findings, watch)
        .await
        .map_err(read_failed(LEARNING))?;
    mined(databases, &mut feedback, &mut learning, findings).await?;
    watch.begins("feedback", report.feedback);
    let doubtful = DoubtfulEntries {
        databases,
        open: None,
        entries: Vec::new(),
    };
    Merge {
        feedback: Side::new(FEEDBACK, feedback.entries()),
        learning: Side::new(LEARNING, learning.entries()),
        doubtful,
    }
    .run(&mut report, watch, witness)
    .await?;
    Ok(report)
}

/// Finds mined candidates that feedback-svc proposed neither at its moment nor since.
async fn mined(
    databases: &Databases,
    feedback: &mut FeedbackAudit,
    learning: &mut LearningAudit,
    findings: &mut Findings,
) -> Result<(), AuditError> {
    let mut candidates = learning.mined();
    let mut since = None;
    while let Some(found) = candidates.next().await {
        let Some(mined) = findings.readable(found).map_err(read_failed(LEARNING))? else {
            continue;
        };
        if was_mined(feedback, &mined).await? {
            continue;
        }
        let since = match &mut since {
            Some(since) => since,
            none => none.insert(
                FeedbackAudit::open(&databases.feedback)
                    .await
                    .map_err(open_failed(FEEDBACK, &databases.feedback))?,
            ),
        };
        if !was_mined(since, &mined).await? {
            findings.add(
                MINED_EVIDENCE,
                format_args!("candidate {}", mined.candidate),
                "it was mined, but feedback-svc proposed no such rewording",
            );
        }
    }
    Ok(())
}

async fn was_mined(feedback: &mut FeedbackAudit, mined: &Mined) -> Result<bool, AuditError> {
    feedback
        .was_mined(&mined.namespace, &mined.term, &mined.representative)
        .await
        .map_err(read_failed(FEEDBACK))
}

/// One side's entries in id order, with the next one buffered.
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

    /// Buffers the next entry, if there is one. Unreadable entries become findings.
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

/// A merge join of both sides by id.
struct Merge<'a> {
    feedback: Side<'a, Stored>,
    learning: Side<'a, Taken>,
    doubtful: DoubtfulEntries<'a>,
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
                learning_store::audit::check_entry(&taken, &mut report.findings);
                // Compared first as if nothing had been stored since; doubtful entries are checked again later.
                let mut doubts = Findings::default();
                compare::made_up(stored.as_ref(), &taken, &mut doubts);
                if !doubts.is_empty() {
                    self.doubtful.add(taken, &mut report.findings).await?;
                }
            }
        }
        self.doubtful.resolve(&mut report.findings).await
    }
}

impl Report {
    fn count(&mut self, stored: &Stored) {
        match stored.delivery() {
            feedback_store::audit::Delivery::Delivered => {}
            feedback_store::audit::Delivery::Pending => self.undelivered += 1,
            feedback_store::audit::Delivery::Dead => {
                self.undelivered += 1;
                self.dead += 1;
            }
        }
    }
}

/// How many doubtful entries are checked at once.
const CHECKED_TOGETHER: usize = 200;

/// Asks feedback-svc again, as of a moment after learning-svc's.
struct DoubtfulEntries<'a> {
    databases: &'a Databases,
    open: Option<FeedbackAudit>,
    entries: Vec<Taken>,
}

impl DoubtfulEntries<'_> {
    async fn add(&mut self, taken: Taken, findings: &mut Findings) -> Result<(), AuditError> {
        self.entries.push(taken);
        if self.entries.len() >= CHECKED_TOGETHER {
            self.resolve(findings).await?;
        }
        Ok(())
    }

    async fn resolve(&mut self, findings: &mut Findings) -> Result<(), AuditError> {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() {
            return Ok(());
        }
        let feedback = match &mut self.open {
            Some(open) => open,
            none => none.insert(
                FeedbackAudit::open(&self.databases.feedback)
                    .await
                    .map_err(open_failed(FEEDBACK, &self.databases.feedback))?,
            ),
        };
        let ids: Vec<FeedbackId> = entries.iter().map(|taken| taken.feedback).collect();
        let mut stored = Side::new(FEEDBACK, feedback.entries_of(&ids));
        stored.fill(findings).await?;
        // Both are ordered by id.
        for taken in entries {
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
