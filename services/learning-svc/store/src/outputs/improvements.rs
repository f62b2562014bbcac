//! What is stored of generated prompts: which one of a target is being generated, what each was made of, and what is said of
//! it; and what of ratings and versions is read for them.
//!
//! Whether an improvement is open is not stored: its candidate says so.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use emend_core::{
    CandidateId, ContestId, FeedbackId, Namespace, OutputTally, Rated, RatingClass, ResourceKey,
    ResourceValue, ratings::Place,
};
use emend_store::StoreError;
use jiff::Timestamp;
use uuid::Uuid;

use crate::contests::{CandidateRecord, TransitionWrite};

type Result<T> = std::result::Result<T, StoreError>;

/// The place of a rating among those of its target by when they arrived here: later ones are greater. A rating may arrive long
/// after others that were accepted later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival(pub i64);

/// An improvement, and the right to go on with it: a random token, which nobody has who took it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The improvement's id: the bytes of its proposal.
    pub improvement: Uuid,
    /// The token.
    pub token: Uuid,
}

/// An improvement that is to be generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Which, and the right to go on with it.
    pub lease: Lease,
    /// The contest that counts the versions of its target.
    pub target: ContestId,
    /// The contest that it is proposed in.
    pub contest: ContestId,
    /// The version that it is made for.
    pub base: u32,
    /// What generates it.
    pub generator: String,
}

/// What an improvement was made of, and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The candidate that it is.
    pub candidate: CandidateId,
    /// Why it is better.
    pub reason: String,
    /// How many of its ratings were of each class.
    pub counts: Counts,
    /// The last of them to arrive.
    pub newest_rating: Arrival,
    /// Their feedbacks.
    pub feedback: Vec<FeedbackId>,
}

/// How many ratings are of each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Good ones.
    pub good: u64,
    /// Neutral ones.
    pub neutral: u64,
    /// Bad ones.
    pub bad: u64,
}

impl Counts {
    /// One more of a class.
    pub fn add(&mut self, class: RatingClass, count: u64) {
        let counted = match class {
            RatingClass::Good => &mut self.good,
            RatingClass::Neutral => &mut self.neutral,
            RatingClass::Bad => &mut self.bad,
        };
        *counted += count;
    }
}

/// How far improving a target has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// One is being generated.
    pub is_running: bool,
    /// The newest that is a candidate.
    pub newest: Option<Newest>,
}

impl Progress {
    /// The improvement that awaits review.
    pub fn open(&self) -> Option<CandidateId> {
        self.newest
            .filter(|newest| newest.is_open)
            .map(|newest| newest.candidate)
    }

    /// What arrived after this is for the next improvement.
    pub fn since(&self) -> Arrival {
        self.newest
            .map_or(Arrival::default(), |newest| newest.newest_rating)
    }
}

/// The newest improvement of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// The candidate that it is.
    pub candidate: CandidateId,
    /// Whether it awaits review.
    pub is_open: bool,
    /// The last to arrive of the ratings that it was made of.
    pub newest_rating: Arrival,
    /// When it was proposed.
    pub proposed_at: Timestamp,
}

/// What is kept of an improvement that is a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImprovementRecord {
    /// What generated it.
    pub generator: String,
    /// Why it is better.
    pub reason: String,
    /// The ratings that it was made of.
    pub counts: Counts,
    /// How many of them have been redacted since.
    pub redacted: u64,
}

/// The ratings of what one version of a prompt made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionStats {
    /// As the ratings say.
    pub prompt_version: String,
    /// How many there are.
    pub counts: Counts,
    /// When the first was received.
    pub first: Timestamp,
    /// When the newest was received.
    pub last: Timestamp,
}

/// The version of a prompt that is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentVersion {
    /// Its number.
    pub number: u32,
    /// What arrived after this arrived since it was made current.
    pub since: Arrival,
}

/// A version of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRecord {
    /// The candidate that has its number; of several under different labels, the first.
    pub record: CandidateRecord,
    /// The labels under which it is current, sorted.
    pub labels: Vec<String>,
    /// What was decided about it under each label: the newest [`DECISIONS`], the oldest first.
    pub history: Vec<(String, TransitionWrite)>,
}

/// Decisions about a version that are read, at most.
pub const DECISIONS: u32 = 50;

/// Improvements in a unit of work. The contest that counts a target's versions must be locked.
#[async_trait]
pub trait ImprovementRepository: Send {
    /// How far improving a target has come.
    async fn progress(&mut self, target: ContestId) -> Result<Progress>;

    /// The version of a prompt that is current; none if none is.
    async fn current_version(&mut self, contest: ContestId) -> Result<Option<CurrentVersion>>;

    /// How many live ratings of each class count for the next improvement of a version: those that name it, and those that arrived
    /// since it was made current.
    async fn count_for(&mut self, window: ContestId, version: CurrentVersion) -> Result<Counts>;

    /// The last of these to arrive, with their texts, the last first; of each class as many as asked for.
    async fn newest_for(
        &mut self,
        window: ContestId,
        version: CurrentVersion,
        wanted: &[(RatingClass, u32)],
    ) -> Result<Vec<(Arrival, Rated)>>;

    /// Notes that one is being generated, in the place of one that was given up.
    async fn begin(&mut self, begun: &Begun, lease: Duration) -> Result<()>;

    /// Notes that one is a candidate now. False if somebody else took it over.
    async fn finish(&mut self, lease: Lease, finished: &Finished) -> Result<bool>;

    /// Forgets one that could not be generated, unless somebody else took it over.
    async fn give_up(&mut self, lease: Lease) -> Result<()>;

    /// A version of a prompt, under whichever label; of several the first.
    async fn version(&mut self, target: &ResourceKey, version: u32) -> Result<Option<CandidateRecord>>;
}

/// What of generated prompts was redacted since, in a unit of work.
#[async_trait]
pub trait Redactions: Send {
    /// How many of the ratings that a candidate was generated from have been redacted; 0 of one that was not generated.
    async fn redacted(&mut self, candidate: CandidateId) -> Result<u64>;
}

/// Prompts, their versions, improvements and ratings outside units of work.
#[async_trait]
pub trait OutputStore: Send + Sync {
    /// How far improving a target has come.
    async fn progress(&self, target: ContestId) -> Result<Progress>;

    /// How many live ratings of each class arrived in a window after another.
    async fn count_ratings(&self, window: ContestId, after: Arrival) -> Result<Counts>;

    /// How many live ratings of each class count for the next improvement of a version: see [`ImprovementRepository::count_for`].
    async fn count_for(&self, window: ContestId, version: CurrentVersion) -> Result<Counts>;

    /// The targets of a namespace that were rated or have a prompt, in their order, after one of them.
    async fn targets(&self, namespace: &Namespace, after: &str, limit: u32) -> Result<Vec<String>>;

    /// The live ratings of a window by the version of the prompt, that with the newest rating first.
    async fn version_stats(&self, window: ContestId, limit: u32) -> Result<Vec<VersionStats>>;

    /// The last live ratings of some classes to arrive, with their texts, the last first; of each class as many as asked for.
    async fn newest_ratings(&self, window: ContestId, wanted: &[(RatingClass, u32)]) -> Result<Vec<Rated>>;

    /// Outputs of some classes after a place, the oldest first: each with the newest live ratings of its class that its example is
    /// made of, with their texts, the newest first.
    async fn outputs_after(
        &self,
        window: ContestId,
        classes: &[RatingClass],
        after: Option<Place>,
        limit: u32,
    ) -> Result<Vec<(OutputTally, Vec<Rated>)>>;

    /// What is kept of these candidates as improvements.
    async fn improvements(
        &self,
        candidates: &[CandidateId],
    ) -> Result<HashMap<CandidateId, ImprovementRecord>>;

    /// The version of a prompt that is current; none if none is.
    async fn current_version(&self, contest: ContestId) -> Result<Option<CurrentVersion>>;

    /// What a version in a contest says.
    async fn version_value(&self, contest: ContestId, version: u32) -> Result<Option<ResourceValue>>;

    /// The versions of a prompt under all labels with a number below `before`, the greatest first.
    async fn versions(
        &self,
        target: &ResourceKey,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>>;

    /// The versions of prompts in a namespace, of one target if one is given, that were generated from ratings redacted since, or
    /// edited from such: each with its place in this list, those made last first, after a place.
    async fn redacted_versions(
        &self,
        namespace: &Namespace,
        target: Option<&ResourceKey>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, VersionRecord)>>;

    /// Namespaces where improvements are generated without a request.
    async fn automatic_namespaces(&self) -> Result<Vec<Namespace>>;

    /// The prompts of a namespace that are current under a label, by the keys of their contests, after one of them.
    async fn current_prompts(
        &self,
        namespace: &Namespace,
        label: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, ResourceKey)>>;
}
