//! Everything proposed for one resource key: candidates, who votes, and what applies.

use crate::{
    ballots::Ballots,
    ids::{AcceptOrder, Caller, CandidateId, ContestId, Namespace, ReporterId, Revision},
    outcome::Reason,
    policy::RiskLevel,
    resource::{ResourceKey, ResourceValue},
};

/// Where a candidate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Gathering votes.
    Pending,
    /// A person has to decide.
    AwaitingReview,
    /// Its value is the resource.
    Applied,
    /// A person turned it down.
    Rejected,
    /// Another value of its contest took its place.
    Superseded,
    /// Its supporters went away, or its resource was deleted.
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
}

/// Why votes alone cannot apply this candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A revision that applied it was reverted.
    Reverted,
    /// Its resource was deleted by hand.
    Deleted,
    /// Personal data was found in what everybody would see.
    PersonalData,
}

impl Hold {
    /// The reason that reporters and reviewers are given.
    pub fn reason(self) -> Reason {
        match self {
            Self::Reverted => Reason::Reverted,
            Self::Deleted => Reason::Deleted,
            Self::PersonalData => Reason::PersonalData,
        }
    }
}

/// One proposed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Derived from contest and value.
    pub id: CandidateId,
    /// The proposed value.
    pub value: ResourceValue,
    /// Where it stands.
    pub status: Status,
    /// Why it stands there, where the status alone does not say.
    pub reason: Option<Reason>,
    /// Where it came from.
    pub origin: Origin,
    /// The candidate that a person edited to make this one.
    pub edited_from: Option<CandidateId>,
    /// Why votes alone cannot apply it.
    pub hold: Option<Hold>,
    /// The reason a reviewer gave last; a rejection always has one.
    pub decision_reason: Option<String>,
    /// How often it was proposed, retracted feedback not counted.
    pub occurrences: u64,
    /// Distinct voters that support it.
    pub reporters: u64,
    /// Its supporters minus those of its strongest rival.
    pub net: i64,
    /// The risk when last evaluated.
    pub risk: RiskLevel,
    /// The threshold when last evaluated.
    pub threshold: u32,
    /// The version of the policy by which it was last evaluated.
    pub policy_version: i64,
    /// The threshold by which it was applied; none where a person applied it.
    pub applied_threshold: Option<u32>,
    /// The revision that applied it last.
    pub applied_revision: Revision,
}

/// Who casts a vote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Voter {
    /// A reporter known by id: counts by itself.
    Reporter(ReporterId),
    /// Derived from a session of a caller, or from the caller alone: a caller's derived voters count together at most
    /// as many as the policy says.
    Derived {
        /// The authenticated client.
        caller: Caller,
        /// The session, if one was named.
        session: Option<String>,
    },
}

impl Voter {
    /// `reporter`, else (caller, session), else the caller.
    pub fn new(reporter: Option<ReporterId>, caller: Caller, session: Option<String>) -> Self {
        match reporter {
            Some(reporter) => Self::Reporter(reporter),
            None => Self::Derived { caller, session },
        }
    }

    /// Counts by itself.
    pub fn is_identified(&self) -> bool {
        matches!(self, Self::Reporter(_))
    }
}

/// A pseudonym of a voter in one namespace: what is stored with ballots, so that erasing a reporter's name leaves counts as
/// they are. The same voter has another one in another namespace, so that nobody is followed from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VoterKey(pub uuid::Uuid);

/// The name space of voter keys (RFC 9562, version 5).
const VOTERS: uuid::Uuid = uuid::Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e02);

impl Voter {
    /// The pseudonym under which this voter's ballots are kept in a namespace.
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

/// What is the resource now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentResource {
    /// The revision that gave it this value.
    pub revision: Revision,
    /// Its value.
    pub value: ResourceValue,
}

/// Votes propose no more values than these in one contest: whoever decides upon it reads all of its candidates. People may.
pub const MAX_CANDIDATES: usize = 1_000;

/// A contest as stored: what `decide` decides upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContestState {
    /// The contest's resource key.
    pub key: ResourceKey,
    /// A person set what applies: votes do not replace it.
    pub pinned: bool,
    /// What is the resource now.
    pub resource: Option<CurrentResource>,
    /// The highest accept order seen; kept when the contest is cleared.
    pub highest_accept_order: AcceptOrder,
    /// All candidates.
    pub candidates: Vec<Candidate>,
    /// At least the newest `max_counted_feedback` ballots.
    pub ballots: Ballots,
    /// The namespace holds as many resources of the kind as the policy allows.
    pub full: bool,
}

impl ContestState {
    /// A contest in which nothing was proposed yet.
    pub fn new(key: ResourceKey) -> Self {
        Self {
            key,
            pinned: false,
            resource: None,
            highest_accept_order: AcceptOrder::default(),
            candidates: Vec::new(),
            ballots: Ballots::default(),
            full: false,
        }
    }

    /// The contest's id.
    pub fn id(&self) -> ContestId {
        self.key.contest_id()
    }

    /// The candidate of that id.
    pub fn candidate(&self, id: CandidateId) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.id == id)
    }

    pub(crate) fn candidate_mut(&mut self, id: CandidateId) -> Option<&mut Candidate> {
        self.candidates.iter_mut().find(|candidate| candidate.id == id)
    }

    /// The candidate whose value is the resource.
    pub fn applied(&self) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.status == Status::Applied)
    }
}
