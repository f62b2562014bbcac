//! Everything proposed for one resource key: candidates, their voters, and the value that applies.

use jiff::Timestamp;

use crate::{
    ballots::Ballots,
    ids::{AcceptOrder, Caller, CandidateId, ContestId, Namespace, ReporterId, Revision},
    outcome::Reason,
    outputs::{OutputTally, Rated},
    policy::{RiskLevel, Roles},
    resource::{ResourceKey, ResourceValue},
};

/// The status of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Gathering votes.
    Pending,
    /// A person has to decide.
    AwaitingReview,
    /// Its value is the resource.
    Applied,
    /// A person rejected it.
    Rejected,
    /// Another value of its contest replaced it.
    Superseded,
    /// It lost its supporters, or its resource was deleted.
    Withdrawn,
}

/// Where a candidate came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Corrections.
    Votes,
    /// An edited approval.
    Review,
    /// An operator's Put.
    Operator,
    /// A bulk import.
    Import,
    /// A generator, from what was said so far.
    Generator,
    /// What users did, said by nobody.
    Mined,
}

/// Why votes alone cannot apply this candidate, or why a ruling was not effective when it was first evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A revision that applied it was reverted.
    Reverted,
    /// Its resource was deleted by hand.
    Deleted,
    /// Personal data was found in a GLOBAL key or value.
    PersonalData,
    /// The sender of a ruling was not entitled.
    NotEntitled,
    /// Only a person may put a ruling on this key into force.
    HighRisk,
    /// There was no room for another resource.
    ResourceLimit,
    /// The policy is frozen. Ends by itself when it no longer is.
    Frozen,
}

impl Hold {
    /// All holds.
    pub const ALL: [Self; 7] = [
        Self::Reverted,
        Self::Deleted,
        Self::PersonalData,
        Self::NotEntitled,
        Self::HighRisk,
        Self::ResourceLimit,
        Self::Frozen,
    ];

    /// The reason shown to reporters and reviewers.
    pub fn reason(self) -> Reason {
        match self {
            Self::NotEntitled => Reason::NotEntitled,
            Self::HighRisk => Reason::HighRisk,
            Self::ResourceLimit => Reason::ResourceLimit,
            Self::Frozen => Reason::Frozen,
            Self::Reverted => Reason::Reverted,
            Self::Deleted => Reason::Deleted,
            Self::PersonalData => Reason::PersonalData,
        }
    }
}

/// One proposed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Derived from the contest and the value.
    pub id: CandidateId,
    /// The proposed value.
    pub value: ResourceValue,
    /// Its current status.
    pub status: Status,
    /// The reason for the status, if the status alone does not say.
    pub reason: Option<Reason>,
    /// Where it came from.
    pub origin: Origin,
    /// The candidate that a person edited to make this one.
    pub edited_from: Option<CandidateId>,
    /// Why votes alone cannot apply it.
    pub hold: Option<Hold>,
    /// The reviewer's last reason; a rejection always has one.
    pub decision_reason: Option<String>,
    /// How often it was proposed, not counting retracted feedback.
    pub occurrences: u64,
    /// Number of distinct voters that support it.
    pub reporters: u64,
    /// Its supporters minus those of its strongest rival.
    pub net: i64,
    /// The risk when last evaluated.
    pub risk: RiskLevel,
    /// The threshold when last evaluated.
    pub threshold: u32,
    /// The version of the policy that last evaluated it.
    pub policy_version: i64,
    /// The threshold at which votes applied it; `None` if a person applied it.
    pub applied_threshold: Option<u32>,
    /// The last revision that applied it; of a ruling, the one by which it came into force itself.
    pub applied_revision: Revision,
    /// What is kept of it as a ruling; `None` where the kind is decided in another way.
    pub ruling: Option<Ruling>,
    /// What is kept of it as a proposal under review; `None` where the kind is decided in another way.
    pub proposal: Option<Proposed>,
}

/// What is kept of a candidate that is a proposal under review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proposed {
    /// The number of its version; never given again.
    pub version: u32,
    /// The version that was current when it was made; 0: none was.
    pub base: u32,
    /// What was decided about it.
    pub verdict: Verdict,
    /// When a person approved or rejected it.
    pub decided_at: Option<Timestamp>,
}

/// What was decided about a proposal, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing yet.
    Open,
    /// A person applied it. It may be made current again.
    Approved,
    /// A person rejected it.
    Rejected,
    /// It can no longer be decided: its reporter took it back, or another version than it was made for is current.
    Closed,
}

/// The numbers of versions in a contest that is decided by review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Versions {
    /// The version that is current; 0: none is.
    pub current: u32,
    /// The last number given.
    pub last: u32,
}

/// What is kept of a candidate that is a ruling, so that whether it is effective can be computed again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ruling {
    /// Its place among the rulings of its contest.
    pub accept_order: AcceptOrder,
    /// The sender's roles; none where an operator wrote it.
    pub roles: Roles,
    /// A person put it into force, or approved it.
    pub approved: bool,
    /// Whether it was taken back, and with what right.
    pub taken_back: TakenBack,
}

/// Whether a ruling was taken back, and with what right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TakenBack {
    /// It was not.
    No,
    /// By a retraction of somebody who was not entitled: counts only while it waits.
    Unentitled,
    /// By a retraction of somebody who was.
    Entitled,
    /// By a revert of the revision that brought it into force.
    Reverted,
}

impl Candidate {
    /// Whether it is a ruling that is effective: the newest of these is in force.
    pub fn is_effective(&self) -> bool {
        let Some(ruling) = &self.ruling else {
            return false;
        };
        self.status != Status::Rejected
            && ruling.taken_back < TakenBack::Entitled
            && (self.hold.is_none() || ruling.approved)
    }

    /// Net confirmations still missing while votes may apply it; 0 if none, and where votes do not decide.
    pub fn confirmations_needed(&self) -> u32 {
        let is_by_votes = self.ruling.is_none() && self.proposal.is_none();
        let missing = (i64::from(self.threshold) - self.net).max(match self.reason {
            Some(Reason::Frozen) => 0,
            // A value that once applied may have enough support and wait for the next vote.
            _ => 1,
        });
        match self.status {
            Status::Pending | Status::Superseded if is_by_votes => u32::try_from(missing).unwrap_or(u32::MAX),
            _ => 0,
        }
    }
}

/// Identifies a voter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Voter {
    /// A reporter known by id; counts by itself.
    Reporter(ReporterId),
    /// Derived from a caller's session, or from the caller alone. The policy caps how many derived voters of one caller
    /// count.
    Derived {
        /// The authenticated client.
        caller: Caller,
        /// The session, if one was given.
        session: Option<String>,
    },
}

impl Voter {
    /// The reporter if known, else (caller, session), else the caller.
    pub fn new(reporter: Option<ReporterId>, caller: Caller, session: Option<String>) -> Self {
        match reporter {
            Some(reporter) => Self::Reporter(reporter),
            None => Self::Derived { caller, session },
        }
    }

    /// Whether the voter counts by itself.
    pub fn is_identified(&self) -> bool {
        matches!(self, Self::Reporter(_))
    }
}

/// A voter's pseudonym in one namespace. Ballots store it, so that erasing a reporter's name leaves the counts as they
/// are. It differs between namespaces, so that nobody can be tracked across them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VoterKey(pub uuid::Uuid);

/// The UUID namespace of voter keys (RFC 9562, version 5).
const VOTERS: uuid::Uuid = uuid::Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e02);

impl Voter {
    /// The pseudonym under which this voter's ballots are stored in `namespace`.
    pub fn key(&self, namespace: &Namespace) -> VoterKey {
        let namespace = namespace.as_str().as_bytes();
        let bytes = match self {
            Self::Reporter(reporter) => {
                crate::resource::length_prefixed(&[namespace, b"r", reporter.as_str().as_bytes()])
            }
            Self::Derived {
                caller,
                session: Some(session),
            } => crate::resource::length_prefixed(&[
                namespace,
                b"s",
                caller.as_str().as_bytes(),
                session.as_bytes(),
            ]),
            Self::Derived {
                caller,
                session: None,
            } => crate::resource::length_prefixed(&[namespace, b"c", caller.as_str().as_bytes()]),
        };
        VoterKey(uuid::Uuid::new_v5(&VOTERS, &bytes))
    }
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
