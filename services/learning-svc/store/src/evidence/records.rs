//! The evidence graph as read and as written.

use emend_core::{
    AcceptOrder, CandidateId, FeedbackId, Namespace, ResourceKey, Revision,
    evidence::{
        ClaimStatus, Combining, EdgeLabels, EdgeRelation, Evidence, EvidenceId, NodeRef, TrustLevel, Weight,
        WorkId,
    },
};
use jiff::Timestamp;

use crate::actor::Actor;

/// What a ruling says of a claim or edge, or that none does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulingWrite {
    /// The contest, of the kind `CLAIM_STATE` or `EDGE_LABEL`.
    pub key: ResourceKey,
    /// What is in force: the number of a relation, or of a decision about a claim; 0: nothing is.
    pub ruled: i32,
    /// The place of the ruling among those of the contest, which is when it was accepted; 0: nothing is in force.
    pub accept_order: AcceptOrder,
    /// The ruling that is in force.
    pub candidate: Option<CandidateId>,
}

/// What happened to a contest about evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceAction {
    /// A correction was recorded.
    Corrected,
    /// A correction was taken back.
    Retracted,
    /// A person approved a correction.
    Approved,
    /// A person rejected a correction.
    Rejected,
    /// An operator set or deleted it, the trust file or the system did.
    Set,
    /// A revision was reverted.
    Reverted,
    /// What a correction was waiting for was upserted.
    Arrived,
    /// What was upserted wrongly of a page, fragment, claim or edge was corrected.
    Replaced,
    /// A page, fragment, claim or edge was deleted.
    Deleted,
    /// A person's approval or rejection was undone.
    Undone,
}

impl EvidenceAction {
    /// All actions.
    pub const ALL: [Self; 10] = [
        Self::Corrected,
        Self::Retracted,
        Self::Approved,
        Self::Rejected,
        Self::Set,
        Self::Reverted,
        Self::Arrived,
        Self::Replaced,
        Self::Deleted,
        Self::Undone,
    ];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Corrected => 1,
            Self::Retracted => 2,
            Self::Approved => 3,
            Self::Rejected => 4,
            Self::Set => 5,
            Self::Reverted => 6,
            Self::Arrived => 7,
            Self::Replaced => 8,
            Self::Deleted => 9,
            Self::Undone => 10,
        }
    }

    /// The action with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.number() == number)
    }
}

/// An event to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventWrite {
    /// What was done.
    pub action: EvidenceAction,
    /// To what.
    pub key: ResourceKey,
    /// The task; empty: that of the correction.
    pub task: String,
    /// The correction that it is about, where it is not one itself.
    pub correction: Option<CandidateId>,
    /// By whom.
    pub actor: Actor,
    /// Why, as an operator or reviewer said; may be empty.
    pub reason: String,
    /// What was in force before, as one word; empty: nothing was.
    pub before: String,
    /// What is in force after, as one word; empty: nothing is.
    pub after: String,
    /// What was asked for, as one word; may be empty.
    pub proposed: String,
    /// The feedback.
    pub feedback: Option<FeedbackId>,
    /// The candidate.
    pub candidate: Option<CandidateId>,
    /// The revision that it wrote; 0: it changed nothing.
    pub revision: Revision,
    /// When, by the service's clock.
    pub at: Timestamp,
}

/// Which claims to list.
#[derive(Debug, Clone)]
pub struct ClaimFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only those of this task.
    pub task: Option<EvidenceId>,
    /// Only those of this status.
    pub status: Option<ClaimStatus>,
    /// Only those that were adopted, or were not.
    pub adopted: Option<bool>,
}

/// What the edges of a claim come to in each reading.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Readings {
    /// Each edge weighs.
    pub count_all: Evidence,
    /// The strongest edge of each relation of each source weighs.
    pub one_per_source: Evidence,
}

/// In which readings claims are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighing {
    /// The one that the policy names.
    pub combining: Combining,
    /// Whether [`ClaimRecord::readings`] is filled.
    pub both: bool,
}

impl Weighing {
    /// The readings to compute.
    pub(crate) fn ways(&self) -> &[Combining] {
        if self.both {
            &Combining::ALL
        } else {
            std::slice::from_ref(&self.combining)
        }
    }
}

impl From<Combining> for Weighing {
    fn from(combining: Combining) -> Self {
        Self {
            combining,
            both: false,
        }
    }
}

/// A claim with what its edges come to.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimRecord {
    /// Its id.
    pub id: EvidenceId,
    /// The task that it belongs to; may be empty.
    pub task: String,
    /// What it says.
    pub text: String,
    /// The page that it was found on; may be empty.
    pub page: String,
    /// The host of that page, and how far it is trusted.
    pub source: Option<HostRecord>,
    /// Whether it was adopted.
    pub adopted: bool,
    /// Names of dangerous patterns.
    pub patterns: Vec<String>,
    /// Whether a person rejected it, 1, or restored it, 2; 0: neither is in force.
    pub ruled: i32,
    /// Where it stands.
    pub status: ClaimStatus,
    /// Its edges, as the policy combines them.
    pub evidence: Evidence,
    /// Its edges in both readings, if they were asked for.
    pub readings: Option<Readings>,
    /// How many independent sources support it.
    pub independent_sources: u64,
    /// When it was first upserted.
    pub created_at: Timestamp,
    /// When it was last upserted.
    pub updated_at: Timestamp,
}

/// A page by what it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPage {
    /// Its id.
    pub id: EvidenceId,
    /// Ids of its work: its own, and those by which it was looked for.
    pub works: Vec<WorkId>,
}

/// A host, and how far it is trusted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// How far it is trusted, by all layers.
    pub level: TrustLevel,
}

/// Which edges to list.
#[derive(Debug, Clone)]
pub struct EdgeFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only those with this claim at either end.
    pub claim: Option<EvidenceId>,
    /// Only those of these relations; empty: any.
    pub relations: Vec<EdgeRelation>,
    /// Only those whose source's host is trusted this far; empty: any.
    pub levels: Vec<TrustLevel>,
    /// Only those that were reviewed, or were not.
    pub reviewed: Option<bool>,
    /// Only those that were corrected, or were not.
    pub corrected: Option<bool>,
    /// Only those of this task.
    pub task: Option<EvidenceId>,
    /// Only this one.
    pub edge: Option<EvidenceId>,
}

/// In which order edges are listed: the one in which an index finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeOrder {
    /// In which they were first upserted: those of a claim or a task.
    Upserted,
    /// By the hosts of their sources, of one host as upserted: those of levels.
    Host,
    /// By when their reviews were accepted: those that were reviewed.
    Review,
    /// By their ids: one, or all others.
    Id,
}

impl EdgeFilter {
    /// In which order they are listed.
    pub fn order(&self) -> EdgeOrder {
        if self.edge.is_some() {
            EdgeOrder::Id
        } else if self.claim.is_some() || self.task.is_some() {
            EdgeOrder::Upserted
        } else if !self.levels.is_empty() {
            EdgeOrder::Host
        } else if self.reviewed == Some(true) || self.corrected == Some(true) {
            EdgeOrder::Review
        } else {
            EdgeOrder::Id
        }
    }
}

/// A position in a list of edges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgePosition {
    /// The host's key or the time of the review, where edges are listed by these; else 0.
    pub first: i64,
    /// The edge's key.
    pub edge: i64,
}

/// An edge as corrected.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeRecord {
    /// Its id.
    pub id: EvidenceId,
    /// What it was upserted as.
    pub given: EdgeRelation,
    /// What the model says.
    pub label: Option<EdgeRelation>,
    /// How sure the model is.
    pub confidence: Option<f64>,
    /// What a person says.
    pub ruled: Option<EdgeRelation>,
    /// What it is, by all of these.
    pub relation: EdgeRelation,
    /// From where.
    pub source: NodeRef,
    /// To where.
    pub target: NodeRef,
    /// The host of the source.
    pub source_host: Option<HostRecord>,
    /// The host of the target, or of its page.
    pub target_host: Option<HostRecord>,
    /// The task that it belongs to; may be empty.
    pub task: String,
    /// When the review was accepted.
    pub reviewed_at: Option<Timestamp>,
    /// Why, as the reviewer said; empty if not given or erased.
    pub review_reason: String,
    /// The feedback that reviewed it.
    pub reviewed_by: Option<FeedbackId>,
}

impl EdgeRecord {
    /// What the backend, its model and people say of it.
    pub fn labels(&self) -> EdgeLabels {
        let weight = self
            .confidence
            .and_then(|confidence| Weight::parse(confidence).ok());
        EdgeLabels {
            relation: self.given,
            label: self.label,
            confidence: weight,
            ruled: self.ruled,
        }
    }

    /// What the model says, or, without a label, what it was upserted as.
    pub fn predicted(&self) -> EdgeRelation {
        self.labels().prediction()
    }

    /// Whether a person disagreed with the model.
    pub fn is_corrected(&self) -> bool {
        self.labels().is_corrected()
    }
}
