//! What it takes to learn something, per namespace and kind.

use jiff::SignedDuration;

use crate::{
    kinds::Kind,
    violation::{Invalid, Violations},
};

/// How much harm a wrong promotion does, and therefore what a promotion requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RiskLevel {
    /// Applied with the first vote.
    Low,
    /// Applied at the policy's threshold of net confirmations.
    Medium,
    /// Only a person can apply it.
    High,
}

/// How votes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Each voter counts once.
    DistinctVoters,
    /// Each feedback counts if it supports the candidate that its voter supports now.
    Occurrences,
}

/// What it takes to learn resources of one kind in one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Increases by 1 with each change; 0 is the default policy.
    pub version: i64,
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
    /// Maximum number of resources of this kind in the namespace, 1 to 2,000,000.
    pub max_resources: u64,
    /// Maximum encoded size of one value in bytes, 1 to 524,288.
    pub max_value_bytes: u32,
    /// How many of a contest's newest corrections are counted, 100 to 100,000.
    pub max_counted_feedback: u32,
}

/// Maximum number of scopes, (namespace, kind) pairs, that hold resources: nodes compare one digest per scope with
/// every bookmark. Replicas that decide at the same moment may exceed it slightly.
pub const MAX_SCOPES: u64 = 10_000;

impl Policy {
    /// The policy that applies if none was set.
    pub fn default_for(kind: Kind) -> Self {
        Self {
            version: 0,
            risk: kind.rules().default_risk,
            threshold: 3,
            counting: Counting::DistinctVoters,
            half_life: None,
            max_derived_voters: 1,
            max_resources: 2_000_000,
            max_value_bytes: 512 * 1024,
            max_counted_feedback: 10_000,
        }
    }

    /// Checks all bounds; violations carry the field names of the wire contract.
    pub fn validate(&self) -> Result<(), Violations> {
        let mut violations = Violations::new();
        let mut within = |field: &str, value: u64, min: u64, max: u64| {
            if !(min..=max).contains(&value) {
                violations.add(field, format!("must be {min} to {max}, is {value}"));
            }
        };
        within("threshold", self.threshold.into(), 1, 1_000);
        within("max_derived_voters", self.max_derived_voters.into(), 1, 1_000);
        within("max_resources", self.max_resources, 1, 2_000_000);
        within("max_value_bytes", self.max_value_bytes.into(), 1, 512 * 1024);
        within(
            "max_counted_feedback",
            self.max_counted_feedback.into(),
            100,
            100_000,
        );
        if let Some(half_life) = self.half_life {
            violations.check("half_life", check_half_life(half_life));
        }
        violations.finish(Some(()))
    }

    /// The risk of one contest. A user-scoped contest is LOW, since it harms nobody else.
    pub fn risk_for(&self, user_scoped: bool) -> RiskLevel {
        if user_scoped { RiskLevel::Low } else { self.risk }
    }

    /// The net confirmations required at this risk. For HIGH the threshold is for display only: votes never apply it.
    pub fn threshold_for(&self, risk: RiskLevel) -> u32 {
        match risk {
            RiskLevel::Low => 1,
            RiskLevel::Medium | RiskLevel::High => self.threshold,
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
            assert_eq!(policy.risk == RiskLevel::Low, kind == Kind::EntityAlias);
        }
    }

    #[test]
    fn every_broken_bound_is_named() {
        let policy = Policy {
            threshold: 0,
            max_derived_voters: 0,
            max_resources: 0,
            max_value_bytes: 0,
            max_counted_feedback: 1,
            half_life: Some(SignedDuration::from_secs(1)),
            ..Policy::default_for(Kind::InvocationPhrase)
        };
        assert_eq!(policy.validate().unwrap_err().into_vec().len(), 6);
    }
}
