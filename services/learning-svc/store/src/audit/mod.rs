//! Checks that what this service stored is consistent with itself: the log replayed from the start gives the resources,
//! the ballots recounted give the candidates' figures, and what came from feedback-svc took effect.
//!
//! An [`Audit`] reads one consistent state, as of when it was opened, while the service runs; it changes nothing.
//! Memory is bounded: contests are read in ranges, ballots, changes and events one at a time. What is stored about each
//! feedback is handed on to be compared with what feedback-svc stored. It must know nothing of that service's schema.

mod contests;
mod entry;
mod evidence;
mod log;
mod queue;
pub(crate) mod stored;

use std::collections::{BTreeMap, HashMap};

use emend_core::{Digest, Epoch, Policy, Revision};
use emend_store::{
    DatabaseUrl, StoreError,
    audit::{Findings, OpenError, Watch, in_groups},
};
use futures::{StreamExt as _, stream::BoxStream};

pub use self::entry::{check_entry, is_imported};
pub use crate::audit::stored::{AppliedEvent, CastBallot, CastRating, Entry};
use crate::{
    audit::stored::{self as port, AuditRead, EntryRow},
    policies::PolicyKey,
    rows::StoredId,
};

emend_store::checks! {
    HEAD: "The log has exactly one head.";
    LOG_GAP: "The log has every revision from 1 to the head, and none after it.";
    REVISION_CHANGES: "Each revision in the log has 1 to 1,000 changes, numbered from 0, each of a different key.";
    TOMBSTONE_HORIZON: "The horizon, up to which deletions may be forgotten, is a revision from 0 to the head.";
    CHANGE_CHECKSUM: "The checksum of a change is that of its value.";
    CHANGE_BEFORE: "The previous value that a change names is the value of the preceding change of its key.";
    RESOURCE_REPLAY: "Replaying the log from the start gives the resources: each value, byte for byte, and its revision.";
    LOG_DIGEST: "Replaying the log from the start gives the digests of the resources.";
    RESOURCE_CHECKSUM: "The checksum of a resource is that of its value.";
    RESOURCE_COMMITTED: "The commit time of a resource is that of its revision.";
    RESOURCE_COUNT: "The stored count of resources of each kind in each namespace is their number.";
    RESOURCE_APPLIED: "A contest has a resource if and only if one of its candidates is applied: with that candidate's value, at the revision that applied it. What ratings decide has no candidates.";
    CONTEST_MISSING: "Candidates, ballots, ratings, resources and changes belong to a contest that exists.";
    CONTEST_ROW: "A contest's row says correctly whether a candidate is pending or awaits review, or ratings decide, and whether a person set the value, and its highest accept order covers its newest ballot.";
    CONTEST_DECIDED: "Evaluating a contest again by the policy that evaluated it last changes nothing that votes decide.";
    CANDIDATE_ID: "A candidate's id is derived from its contest and its value.";
    CANDIDATE_OCCURRENCES: "A candidate's occurrence count is the number of ballots for it that count.";
    CANDIDATE_VOTES: "A candidate's voters and net confirmations are those that its contest's ballots give, recounted by the policy that counted them.";
    CANDIDATE_RULING: "A ruling waits for want of the right to decide exactly if its sender's roles did not entitle it, by the policy of its time.";
    RULING_ORDER: "The accept order of a ruling is that of its ballot.";
    RULING_RETRACTED: "A ruling is taken back by a retraction exactly if its feedback is marked as retracted, and with the right of who did.";
    CANDIDATE_HISTORY: "A candidate's transitions lead without a gap from its creation to its status, name revisions that are in the log, and end with who decided it last.";
    BALLOT_CANDIDATE: "A ballot that counts is for a candidate of its contest.";
    BALLOT_RETRACTED: "A ballot counts unless its feedback is marked as retracted, and then it does not.";
    BALLOT_DETAILS: "A ballot has its personal parts unless they were erased, and then it has none.";
    LOG_WINDOW: "Of what a window of ratings decides the log keeps the newest value, and of earlier ones the checksum.";
    RESOURCE_WINDOW: "What a window of ratings decides is what its live ratings come to by the policy that evaluated it last: each output once, in its class and at its place.";
    RATING_LIVE: "Of the ratings of one output by one voter the newest that is not excluded is live, and no other.";
    RATED_OUTPUT: "What is kept of an output that was rated is what its live ratings come to: how many are good and bad, which is more, and the newest of those.";
    RATING_TEXTS: "A rating has texts unless it is excluded, and then it has none.";
    RATING_EXCLUDED: "A rating whose feedback is marked as retracted or redacted is excluded.";
    PROPOSAL_VERSION: "Where people review proposals, the version that is current is that of the applied candidate; no contest has a number twice or one above the last given, and a number says the same under every label.";
    PROPOSAL_VERDICT: "What was decided about a proposal goes with its status, and has a time exactly if a person approved or rejected it.";
    IMPROVEMENT: "What is kept of a generated prompt belongs to a candidate made for the version that it names, and to as many ratings as it says; each generated prompt has it.";
    SUGGESTION: "What is kept of a suggestion belongs to a candidate for the profile's field that it is about, and each candidate of a profile that was generated has it.";
    QUEUE_WAITING: "The review queue lists the candidates that await review and no others, each with the figures by which it is ordered.";
    QUEUE_LEASE: "Nobody has a candidate of the review queue open for longer than a lease lasts.";
    QUEUE_DAY: "What is counted of a day of the review queue is no less than what its candidates' histories say of it.";
    QUEUE_CHANGE: "A change that is told to those who watch the review queue is of a contest that exists, between statuses that there are.";
    EVIDENCE_RULING: "What people say of a claim or edge in the evidence graph is what is in force in its contest, and since when and by which feedback; the graph has everything that is ruled about.";
    EVIDENCE_DERIVED: "The relation and weights of an edge follow from what the backend, its model and people say, and whether a claim is rejected from its ruling and its dangerous patterns.";
    EVIDENCE_EDGE: "What rows of the evidence graph name exists, an edge's page and host are those of its source, and a claim's host is that of its page.";
    EVIDENCE_WORK: "Pages are one work exactly if they share an id, also by way of others; a work says how many pages it has, and has their ids.";
    EVIDENCE_TARGET: "A contest says correctly whether the claim or edge that it is about is known.";
    EVIDENCE_EVENT: "An event of the evidence graph names a contest of its namespace, or an element of the graph that was replaced or deleted, and, if it changed something, a revision in the log.";
    EVIDENCE_STATUS: "A claim is verified if enough independent sources support it, and it is not rejected.";
    EVIDENCE_VERIFIED: "The levels of hosts are those that the rules in force give, and what the system says of a domain is what its claims come to.";
    INBOX_EFFECT: "An event that was applied left a ballot, a rating or a mark, or was refused with a reason.";
    EFFECT_INBOX: "A ballot, a rating or a mark comes from an event that was applied, or is a vote cast by an import.";
}

/// What one digest covers: namespace, kind's number, whether user-scoped.
pub type Group = (String, i32, bool);

/// How much there is, and how far the log has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// The log's epoch; none if it has no head.
    pub epoch: Option<Epoch>,
    /// The newest revision.
    pub head: Revision,
    /// Deletions at or below it may be forgotten.
    pub horizon: Revision,
    /// Changes in the log.
    pub changes: u64,
    /// Contests.
    pub contests: u64,
    /// Candidates.
    pub candidates: u64,
    /// Ballots that count.
    pub ballots: u64,
    /// Applied events.
    pub events: u64,
    /// Contests pending re-evaluation by a newer policy.
    pub to_reevaluate: u64,
    /// Resources, with the digests by which nodes compare what they hold.
    pub digests: BTreeMap<Group, Digest>,
}

/// A candidate that was mined: a synonym.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mined {
    /// Its id.
    pub candidate: String,
    /// The search application.
    pub namespace: String,
    /// What users searched for and did not find, in normal form.
    pub term: String,
    /// What they searched for instead, in normal form.
    pub representative: String,
}

/// All policy versions ever set.
type Policies = HashMap<(PolicyKey, i64), Policy>;

/// An open audit of everything stored.
pub struct Audit {
    reading: Box<dyn AuditRead>,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Audit {
    /// Begins to read. The state is as of this moment, whatever is stored meanwhile.
    pub async fn open(database: &DatabaseUrl) -> Result<Self, OpenError> {
        Ok(Self {
            reading: port::open(database).await?,
        })
    }

    /// How many contests are pending re-evaluation by a newer policy.
    pub async fn to_reevaluate(&mut self) -> Result<u64, StoreError> {
        self.reading.to_reevaluate().await
    }

    /// Checks everything except single feedbacks, which [`check_entry`] does.
    pub async fn check(
        &mut self,
        findings: &mut Findings,
        watch: &mut dyn Watch,
    ) -> Result<Figures, StoreError> {
        let extent = self.reading.extent().await?;
        let mut figures = Figures {
            contests: extent.contests,
            events: extent.events,
            to_reevaluate: self.reading.to_reevaluate().await?,
            ..Figures::default()
        };
        let mut policies = Policies::new();
        for policy in self.reading.policies().await? {
            if let Some((key, policy)) = findings.readable(policy)? {
                policies.insert((key, policy.version), policy);
            }
        }
        log::check(&mut *self.reading, &mut figures, findings, watch).await?;
        contests::check(&mut *self.reading, &policies, &mut figures, findings, watch).await?;
        queue::check(&mut *self.reading, findings).await?;
        evidence::check(&mut *self.reading, findings, watch).await?;
        Ok(figures)
    }

    /// The candidates that were mined from what users did.
    pub fn mined(&mut self) -> BoxStream<'_, Result<Mined, StoreError>> {
        let parsed = self.reading.mined().map(|row| {
            let row = row?;
            Ok(Mined {
                candidate: StoredId(&row.candidate_id).to_string(),
                namespace: row.namespace,
                term: row.key,
                representative: row.qualifier,
            })
        });
        parsed.boxed()
    }

    /// Everything stored about each feedback, by id. An unreadable one is an error of its own
    /// ([`StoreError::Corrupt`]), after which the others follow; any other error ends the stream.
    pub fn entries(&mut self) -> BoxStream<'_, Result<Entry, StoreError>> {
        in_groups(self.reading.entries(), |one, other| {
            one.feedback_id == other.feedback_id
        })
        .map(|rows| EntryRow::entry_of(&rows?))
        .boxed()
    }
}
