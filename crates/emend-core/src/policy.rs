//! What it takes to learn something, per namespace and kind.

use jiff::SignedDuration;

use crate::{
    kinds::{Kind, Learned, Rule, WindowRules},
    ratings::{MAX_WINDOW, OutputTally, Rated, WindowPolicy},
    roles::{RiskLevel, Role},
    violation::{Invalid, Violations},
};

/// How votes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Each voter counts once.
    DistinctVoters,
    /// Each feedback counts if it supports the candidate that its voter supports now.
    Occurrences,
}

/// What it takes to learn resources of one kind in one namespace. Only the part for the kind's own rule matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Increases by 1 with each change; 0 is the default policy.
    pub version: i64,
    /// Maximum number of resources of this kind in the namespace, 1 to 2,000,000.
    pub max_resources: u64,
    /// Maximum encoded size of one value in bytes, 1 to 524,288.
    pub max_value_bytes: u32,
    /// Corrections put nothing into force until this is taken back; people still may.
    pub frozen: bool,
    /// How many reviewers have to approve what a person applies, 1 or 2. One is enough for what is one user's own.
    pub reviewers_needed: u32,
    /// For kinds that are decided by votes.
    pub votes: VotesPolicy,
    /// For kinds that are decided by rulings.
    pub ruling: RulingPolicy,
    /// For kinds that are decided by a window of ratings.
    pub window: WindowPolicy,
    /// For kinds that are decided by review.
    pub review: ReviewPolicy,
}

/// How votes decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VotesPolicy {
    /// How much harm a wrong promotion does.
    pub risk: RiskLevel,
    /// Net confirmations required at MEDIUM risk, 1 to 1,000.
    pub threshold: u32,
    /// How votes are counted.
    pub counting: Counting,
    /// A vote's weight halves in this time, 1 h to 3,650 days; `None`: votes do not decay.
    pub half_life: Option<SignedDuration>,
    /// How many voters derived from one caller count in one contest, 1 to 1,000.
    pub max_derived_voters: u32,
    /// How many of a contest's newest corrections are counted, 100 to 100,000.
    pub max_counted_feedback: u32,
}

/// Who decides by rulings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulingPolicy {
    /// Whose rulings are effective at once.
    pub entitled: Role,
}

/// When something is proposed for review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewPolicy {
    /// How many bad ratings since the newest proposal an improvement of a prompt needs, 1 to 1,000.
    pub min_bad: u32,
    /// An improvement is generated as soon as there are that many, without a request.
    pub automatic: bool,
}

impl Default for ReviewPolicy {
    fn default() -> Self {
        Self {
            min_bad: 3,
            automatic: false,
        }
    }
}

/// Maximum number of scopes, (namespace, kind) pairs, that hold resources: nodes compare one digest per scope with
/// every bookmark. Replicas that decide at the same moment may exceed it slightly.
pub const MAX_SCOPES: u64 = 10_000;

impl Policy {
    /// The policy that applies if none was set.
    pub fn default_for(kind: Kind) -> Self {
        Self {
            version: 0,
            max_resources: 2_000_000,
            max_value_bytes: 512 * 1024,
            frozen: false,
            reviewers_needed: 1,
            votes: VotesPolicy {
                risk: match kind.rules().rule {
                    Rule::Votes { default_risk } => default_risk,
                    Rule::Ruling(_) | Rule::Window(_) | Rule::Review(_) => RiskLevel::Low,
                },
                threshold: 3,
                counting: Counting::DistinctVoters,
                half_life: None,
                max_derived_voters: 1,
                max_counted_feedback: 10_000,
            },
            ruling: RulingPolicy {
                entitled: match kind.rules().rule {
                    Rule::Ruling(rules) => rules.entitled,
                    Rule::Votes { .. } | Rule::Window(_) | Rule::Review(_) => Role::Reviewer,
                },
            },
            window: WindowPolicy::default(),
            review: ReviewPolicy::default(),
        }
    }

    /// What a window comes to under this policy.
    pub fn window_value(
        &self,
        rules: &WindowRules,
        outputs: &[OutputTally],
        ratings: &[Rated],
    ) -> Option<Learned> {
        (rules.value)(outputs, ratings, &self.window, self.max_value_bytes as usize)
    }

    /// Checks all bounds; violations carry the field names of the wire contract.
    pub fn validate(&self) -> Result<(), Violations> {
        let mut violations = Violations::new();
        let mut within = |field: &str, value: u64, min: u64, max: u64| {
            if !(min..=max).contains(&value) {
                violations.add(field, format!("must be {min} to {max}, is {value}"));
            }
        };
        let votes = &self.votes;
        within("threshold", votes.threshold.into(), 1, 1_000);
        within("max_derived_voters", votes.max_derived_voters.into(), 1, 1_000);
        within("reviewers_needed", self.reviewers_needed.into(), 1, 2);
        within("max_resources", self.max_resources, 1, 2_000_000);
        within("max_value_bytes", self.max_value_bytes.into(), 1, 512 * 1024);
        within(
            "max_counted_feedback",
            votes.max_counted_feedback.into(),
            100,
            100_000,
        );
        let window = &self.window;
        within("window.good", window.good.into(), 0, MAX_WINDOW.into());
        within("window.bad", window.bad.into(), 0, MAX_WINDOW.into());
        within("window.max_text_chars", window.max_text_chars.into(), 100, 10_000);
        within("review.min_bad", self.review.min_bad.into(), 1, 1_000);
        if let Some(half_life) = votes.half_life {
            violations.check("half_life", check_half_life(half_life));
        }
        violations.finish(Some(()))
    }

    /// The risk of one contest. A user-scoped contest is LOW, since it harms nobody else.
    pub fn risk_for(&self, user_scoped: bool) -> RiskLevel {
        if user_scoped {
            RiskLevel::Low
        } else {
            self.votes.risk
        }
    }

    /// Whether two reviewers have to approve in one contest. What is one user's own harms nobody else.
    pub fn needs_two(&self, user_scoped: bool) -> bool {
        self.reviewers_needed > 1 && !user_scoped
    }

    /// The net confirmations required at this risk. For HIGH the threshold is for display only: votes never apply it.
    pub fn threshold_for(&self, risk: RiskLevel) -> u32 {
        match risk {
            RiskLevel::Low => 1,
            RiskLevel::Medium | RiskLevel::High => self.votes.threshold,
        }
    }
}

fn check_half_life(half_life: SignedDuration) -> Result<(), Invalid> {
    let hours = half_life.as_hours();
    if hours >= 1 && half_life <= SignedDuration::from_hours(3_650 * 24) {
        Ok(())
    } else {
        Err(Invalid::new("must be 1 h to 3,650 days"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_by_risk() {
        for kind in Kind::ALL {
            let policy = Policy::default_for(kind);
            assert_eq!(policy.validate(), Ok(()));
            let is_low = kind == Kind::EntityAlias || !matches!(kind.rules().rule, Rule::Votes { .. });
            assert_eq!(policy.votes.risk == RiskLevel::Low, is_low);
        }
    }

    #[test]
    fn every_broken_bound_is_named() {
        let mut policy = Policy::default_for(Kind::InvocationPhrase);
        policy.max_resources = 0;
        policy.reviewers_needed = 3;
        policy.max_value_bytes = 0;
        policy.votes = VotesPolicy {
            threshold: 0,
            max_derived_voters: 0,
            max_counted_feedback: 1,
            half_life: Some(SignedDuration::from_secs(1)),
            ..policy.votes
        };
        policy.window = WindowPolicy {
            good: 21,
            bad: 21,
            max_text_chars: 99,
            ..policy.window
        };
        assert_eq!(policy.validate().unwrap_err().into_vec().len(), 10);
    }
}
