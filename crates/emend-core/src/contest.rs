//! Everything proposed for one resource key: candidates, their voters, and the value that applies.

use crate::{
    ballots::Ballots,
    candidate::{Candidate, Status},
    ids::{AcceptOrder, CandidateId, ContestId, Revision},
    ratings::{OutputTally, Rated},
    resource::{ResourceKey, ResourceValue},
};

/// The numbers of versions in a contest that is decided by review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Versions {
    /// The version that is current; 0: none is.
    pub current: u32,
    /// The last number given.
    pub last: u32,
}

/// The resource as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentResource {
    /// The revision that gave it this value.
    pub revision: Revision,
    /// Its value.
    pub value: ResourceValue,
}

/// Maximum number of candidates that votes can create in one contest, because every decision reads all candidates of
/// its contest. People may create more.
pub const MAX_CANDIDATES: usize = 1_000;

/// A contest as stored: the input to `decide`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContestState {
    /// The contest's resource key.
    pub key: ResourceKey,
    /// A person set the applied value, and votes do not replace it.
    pub pinned: bool,
    /// The resource as it is now.
    pub resource: Option<CurrentResource>,
    /// The highest accept order seen; kept when the contest is cleared.
    pub highest_accept_order: AcceptOrder,
    /// All candidates; of some kinds those that matter, see [`Rule::depends_on_the_decided`](crate::Rule::depends_on_the_decided).
    pub candidates: Vec<Candidate>,
    /// At least the newest `max_counted_feedback` ballots.
    pub ballots: Ballots,
    /// Where a window of ratings decides, what of them a decision needs, in any order: see [`mod@crate::decide`].
    pub ratings: Vec<Rated>,
    /// Likewise of the outputs that they are of. One of which nothing is known has no live ratings.
    pub outputs: Vec<OutputTally>,
    /// No new resource fits: the policy's limit or [`MAX_SCOPES`](crate::policy::MAX_SCOPES) is reached.
    pub full: bool,
    /// The accept order of what a person does now: newer than all that the contest has seen.
    pub next_order: AcceptOrder,
    /// The numbers of versions, where the kind is decided by review.
    pub versions: Versions,
    /// What is known of what the key names, where the kind's rulings need that.
    pub target: Target,
    /// How many decisions the contest has seen: see [`Decision::counts`](crate::Decision::counts).
    pub decisions: u64,
}

/// What is known of what a key names, where the kind's rulings need that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// Nothing yet: rulings wait.
    Unknown,
    /// It is there.
    Known,
    /// It is there, and nobody corrects it: an edge that is a citation, which it stays.
    NotCorrectable,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Known, Self::NotCorrectable];

    /// What is known of it before anything of its sort was upserted.
    pub const fn at_first(kind: crate::Kind) -> Self {
        if kind.rules().rule.needs_target() {
            Self::Unknown
        } else {
            Self::Known
        }
    }

    /// The number in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Unknown => 0,
            Self::Known => 1,
            Self::NotCorrectable => 2,
        }
    }

    /// What has this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.number() == number)
    }
}

impl ContestState {
    /// A contest without candidates.
    pub fn new(key: ResourceKey) -> Self {
        Self {
            key,
            pinned: false,
            resource: None,
            highest_accept_order: AcceptOrder::default(),
            candidates: Vec::new(),
            ballots: Ballots::default(),
            ratings: Vec::new(),
            outputs: Vec::new(),
            full: false,
            next_order: AcceptOrder::default(),
            versions: Versions::default(),
            target: Target::Known,
            decisions: 0,
        }
    }

    /// The contest's id.
    pub fn id(&self) -> ContestId {
        self.key.contest_id()
    }

    /// The candidate with this id.
    pub fn candidate(&self, id: CandidateId) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.id == id)
    }

    pub(crate) fn candidate_mut(&mut self, id: CandidateId) -> Option<&mut Candidate> {
        self.candidates.iter_mut().find(|candidate| candidate.id == id)
    }

    /// The effective rulings, the newest first.
    pub fn effective(&self) -> Vec<&Candidate> {
        let mut effective: Vec<&Candidate> = self
            .candidates
            .iter()
            .filter(|candidate| candidate.is_effective())
            .collect();
        let order = |candidate: &Candidate| candidate.ruling.as_ref().map(|ruling| ruling.accept_order);
        effective.sort_unstable_by_key(|candidate| std::cmp::Reverse((order(candidate), candidate.id)));
        effective
    }

    /// The candidate whose value is the resource, or the ruling in force.
    pub fn applied(&self) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.status == Status::Applied)
    }
}
