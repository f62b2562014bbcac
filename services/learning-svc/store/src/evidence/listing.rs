//! What was done to the evidence graph, what reviews came to, and exports: the ports, and what crosses them.

use async_trait::async_trait;
use emend_core::{
    Caller, Key, Kind, Namespace, ResourceKey, Revision,
    evidence::{EdgeRelation, EvidenceId},
};
use emend_store::StoreError;
use jiff::Timestamp;

use super::{ClaimRecord, EdgePosition, EdgeRecord, EvidenceAction, HostRecord, Weighing};
use crate::{
    actor::Actor,
    evidence::graph::{Element, Fragment},
};

type Result<T> = std::result::Result<T, StoreError>;

/// A period: from a time, and up to but without another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Period {
    /// Its begin; none: there is no first time.
    pub from: Option<Timestamp>,
    /// Its end; none: there is no last time.
    pub to: Option<Timestamp>,
}

/// Which events to list.
#[derive(Debug, Clone)]
pub struct EventFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only those about this key of this kind, or about the element that it is.
    pub target: Option<(Kind, Key)>,
    /// Only those about this element, or about the key that it is.
    pub element: Option<Element>,
    /// Only those of this task.
    pub task: Option<EvidenceId>,
    /// Only those of this caller.
    pub caller: Option<Caller>,
    /// Only those of this period.
    pub period: Period,
}

impl EventFilter {
    /// Whether they are listed in the order of what happened, as those of a target or a task are; the others by time.
    pub fn in_order(&self) -> bool {
        self.target.is_some() || self.element.is_some() || self.task.is_some()
    }
}

/// A position in a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPosition {
    /// Where events are listed by time, that time in microseconds; else 0.
    pub at: i64,
    /// The event.
    pub event: i64,
}

/// Something that was done to a domain, claim or edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Its number.
    pub event: i64,
    /// What was done.
    pub action: EvidenceAction,
    /// What was decided about; none where an element was replaced or deleted.
    pub key: Option<ResourceKey>,
    /// What was replaced or deleted; none where a decision is told.
    pub element: Option<Element>,
    /// The task; may be empty.
    pub task: String,
    /// By whom.
    pub actor: Actor,
    /// Why; empty if not given or erased.
    pub reason: String,
    /// What was in force before, as one word; may be empty.
    pub before: String,
    /// What is in force after, as one word; may be empty.
    pub after: String,
    /// What was asked for, as one word; may be empty.
    pub proposed: String,
    /// The feedback; may be empty.
    pub feedback: String,
    /// The candidate; may be empty.
    pub candidate: String,
    /// The revision that it wrote; 0: it changed nothing.
    pub revision: Revision,
    /// When, by the service's clock.
    pub at: Timestamp,
    /// Whose correction was recorded; may be empty.
    pub reporter: String,
}

/// Which reviewed edges to count or export.
#[derive(Debug, Clone)]
pub struct ReviewFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Only those of this task.
    pub task: Option<EvidenceId>,
    /// Only those of which the model said this.
    pub predicted: Option<EdgeRelation>,
    /// Only those of which people say one of these; empty: any.
    pub correct: Vec<EdgeRelation>,
    /// Only those whose review in force was accepted in this period.
    pub period: Period,
}

/// Of how many edges the model said one thing, and people another or the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewCount {
    /// What the model said.
    pub predicted: EdgeRelation,
    /// What people say.
    pub correct: EdgeRelation,
    /// How many edges.
    pub edges: u64,
}

/// An edge with the texts of its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRecord {
    /// The edge.
    pub edge: EdgeRecord,
    /// The text of its source; of a page, the title.
    pub premise: String,
    /// The text of its target.
    pub hypothesis: String,
    /// Who corrected it; empty if not given or erased.
    pub reporter: String,
}

/// A page of a source, as exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRecord {
    /// Its id.
    pub id: EvidenceId,
    /// Its host, if it has one, and how far that is trusted.
    pub host: Option<HostRecord>,
    /// Where it is; may be empty.
    pub url: String,
    /// Its title; may be empty.
    pub title: String,
    /// The ids of its work, each in canonical form or empty: DOI, PubMed id, arXiv id.
    pub works: [String; 3],
}

/// What an export consists of, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Pages.
    Pages,
    /// Fragments.
    Fragments,
    /// Claims.
    Claims,
    /// Edges.
    Edges,
}

impl Part {
    /// All parts, in order.
    pub const ALL: [Self; 4] = [Self::Pages, Self::Fragments, Self::Claims, Self::Edges];
}

/// A line of an export.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A page.
    Page(PageRecord),
    /// A fragment.
    Fragment(Fragment),
    /// A claim.
    Claim(Box<ClaimRecord>),
    /// An edge.
    Edge(Box<EdgeRecord>),
}

/// Where something is in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskKey {
    /// The key of the namespace's graph.
    pub space: i64,
    /// The key of the task.
    pub task: i64,
}

/// Lists and counts, each query by itself.
#[async_trait]
pub trait EvidenceReads: Send + Sync {
    /// Events before a position, the newest first, at most `limit`.
    async fn events(
        &self,
        filter: &EventFilter,
        before: Option<EventPosition>,
        limit: u32,
    ) -> Result<Vec<(EventPosition, EventRecord)>>;

    /// Counts reviewed edges.
    async fn review_counts(&self, filter: &ReviewFilter) -> Result<Vec<ReviewCount>>;

    /// Begins to read one state, as of now, for an export.
    async fn begin_export(&self) -> Result<Box<dyn ExportRead>>;
}

/// One state of the evidence graph, read page by page. It ends when it is dropped.
#[async_trait]
pub trait ExportRead: Send {
    /// The key of a task; none if nothing belongs to it.
    async fn task(&mut self, namespace: &Namespace, task: &EvidenceId) -> Result<Option<TaskKey>>;

    /// The keys of what belongs to a part of a task's export, in order, after the key `after`, at most `limit`.
    async fn keys(&mut self, part: Part, task: TaskKey, after: i64, limit: u32) -> Result<Vec<i64>>;

    /// What has these keys, in any order.
    async fn lines(
        &mut self,
        part: Part,
        task: TaskKey,
        keys: &[i64],
        weighing: Weighing,
    ) -> Result<Vec<Line>>;

    /// Corrected edges after a position, by when their reviews were accepted, at most `limit`.
    async fn samples(
        &mut self,
        filter: &ReviewFilter,
        after: EdgePosition,
        limit: u32,
    ) -> Result<Vec<(EdgePosition, SampleRecord)>>;
}
