//! One proposed value, what became of it, and why.

use std::fmt;

use jiff::Timestamp;

use crate::{
    ids::{AcceptOrder, CandidateId, Revision},
    resource::ResourceValue,
    roles::{RiskLevel, Roles},
    violation::Invalid,
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

    /// Whether one reviewer approved it, where it takes two.
    pub fn awaits_second(&self) -> bool {
        self.status == Status::AwaitingReview && self.reason == Some(Reason::SecondReviewer)
    }

    /// Net confirmations still missing while votes may apply it; 0 if none, and where votes do not decide.
    pub fn confirmations_needed(&self) -> u32 {
        let is_by_votes = self.ruling.is_none() && self.proposal.is_none();
        let missing = (i64::from(self.threshold) - self.net).max(match self.reason {
            Some(Reason::Frozen) => 0,
            // A value that once applied may have enough support and wait for the next vote.
            _ => 1,
        });
        let may_be_carried = match self.status {
            Status::Pending | Status::Superseded => true,
            // What was mined waits for a person, or for as many votes as anything else needs.
            Status::AwaitingReview => {
                self.origin == Origin::Mined
                    && self.reason == Some(Reason::PersonDecides)
                    && self.risk != RiskLevel::High
            }
            Status::Applied | Status::Rejected | Status::Withdrawn => false,
        };
        if is_by_votes && may_be_carried {
            u32::try_from(missing).unwrap_or(u32::MAX)
        } else {
            0
        }
    }
}

/// The reason for the state of a candidate or correction, with a stable machine-readable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Too few supporters.
    BelowThreshold,
    /// Enough supporters, but a rival has too many.
    Rivals,
    /// A person set the applied value.
    Pinned,
    /// The risk is HIGH: only a person can apply it.
    HighRisk,
    /// A revision that applied it was reverted.
    Reverted,
    /// Its resource was deleted by hand.
    Deleted,
    /// Personal data was found in a GLOBAL key or value.
    PersonalData,
    /// The feedback was retracted.
    Retracted,
    /// A limit is reached: one of the policy's, the number of scopes or
    /// the candidates of a contest.
    ResourceLimit,
    /// Its reporter has been erased, and with it what was said for that user alone.
    Erased,
    /// The policy is frozen: corrections put nothing into force.
    Frozen,
    /// The sender was not entitled to decide this.
    NotEntitled,
    /// A newer ruling is in force.
    NewerRuling,
    /// There was nothing to clear.
    NothingToClear,
    /// A rating that counts neither as good nor as bad.
    Neutral,
    /// A newer rating of the same output by the same reporter counts instead.
    Replaced,
    /// At least as many live ratings of its output say otherwise.
    Outvoted,
    /// Newer outputs fill the set.
    NotInWindow,
    /// Its texts have been erased.
    Redacted,
    /// What the key names is not known yet.
    TargetNotFound,
    /// What the key names is known, and nobody corrects it: a citation.
    NotCorrectable,
    /// A person decides about each proposal.
    PersonDecides,
    /// Another version than the one that it was made for is current.
    BaseChanged,
    /// A person applied it in other words.
    Edited,
    /// The decision that made it was undone.
    Undone,
    /// One reviewer approved it, and another one has to.
    SecondReviewer,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 26] = [
        Self::BelowThreshold,
        Self::Rivals,
        Self::Pinned,
        Self::HighRisk,
        Self::Reverted,
        Self::Deleted,
        Self::PersonalData,
        Self::Retracted,
        Self::ResourceLimit,
        Self::Erased,
        Self::Frozen,
        Self::NotEntitled,
        Self::NewerRuling,
        Self::NothingToClear,
        Self::Neutral,
        Self::Replaced,
        Self::Outvoted,
        Self::NotInWindow,
        Self::Redacted,
        Self::TargetNotFound,
        Self::NotCorrectable,
        Self::PersonDecides,
        Self::BaseChanged,
        Self::Edited,
        Self::Undone,
        Self::SecondReviewer,
    ];

    /// The stable name, for example `BELOW_THRESHOLD`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BelowThreshold => "BELOW_THRESHOLD",
            Self::Rivals => "RIVALS",
            Self::Pinned => "PINNED",
            Self::HighRisk => "HIGH_RISK",
            Self::Reverted => "REVERTED",
            Self::Deleted => "DELETED",
            Self::PersonalData => "PERSONAL_DATA",
            Self::Retracted => "RETRACTED",
            Self::ResourceLimit => "RESOURCE_LIMIT",
            Self::Erased => "ERASED",
            Self::Frozen => "FROZEN",
            Self::NotEntitled => "NOT_ENTITLED",
            Self::NewerRuling => "NEWER_RULING",
            Self::NothingToClear => "NOTHING_TO_CLEAR",
            Self::Neutral => "NEUTRAL",
            Self::Replaced => "REPLACED",
            Self::Outvoted => "OUTVOTED",
            Self::NotInWindow => "NOT_IN_WINDOW",
            Self::Redacted => "REDACTED",
            Self::TargetNotFound => "TARGET_NOT_FOUND",
            Self::NotCorrectable => "NOT_CORRECTABLE",
            Self::PersonDecides => "PERSON_DECIDES",
            Self::BaseChanged => "BASE_CHANGED",
            Self::Edited => "EDITED",
            Self::Undone => "UNDONE",
            Self::SecondReviewer => "SECOND_REVIEWER",
        }
    }

    /// The reason with this name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.name() == name)
            .ok_or_else(|| Invalid::new(format!("is not a reason: {name:?}")))
    }

    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Self::BelowThreshold => "it has too few confirmations",
            Self::Rivals => "other answers have too many supporters",
            Self::Pinned => "a person decided what applies",
            Self::HighRisk => "its risk is high",
            Self::Reverted => "it was reverted before",
            Self::Deleted => "it was deleted before",
            Self::PersonalData => "it may contain personal data",
            Self::Retracted => "it was retracted",
            Self::ResourceLimit => "a limit is reached",
            Self::Erased => "its reporter has been erased",
            Self::Frozen => "learning is frozen",
            Self::NotEntitled => "its sender is not entitled to decide it",
            Self::NewerRuling => "a newer ruling is in force",
            Self::NothingToClear => "there was nothing to clear",
            Self::Neutral => "it counts neither as good nor as bad",
            Self::Replaced => "a newer rating by the same reporter counts instead",
            Self::Outvoted => "at least as many ratings of its output say otherwise",
            Self::NotInWindow => "newer outputs fill the set",
            Self::Redacted => "its texts have been erased",
            Self::TargetNotFound => "what it is about is not known yet",
            Self::NotCorrectable => "it is a citation, which nobody corrects",
            Self::PersonDecides => "a person decides about it",
            Self::BaseChanged => "another version than the one that it was made for is current",
            Self::Edited => "it was applied in other words",
            Self::Undone => "the decision that made it was undone",
            Self::SecondReviewer => "one reviewer approved it, and another one has to",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
