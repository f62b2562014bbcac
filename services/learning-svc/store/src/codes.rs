//! The numbers and names under which databases store the rules' enums. The numbers are those of the wire contract.

use emend_core::{Counting, Hold, Origin, Reason, RiskLevel, Role, Status, TakenBack, candidate::Verdict};

/// A candidate's status.
pub fn status(status: Status) -> i32 {
    match status {
        Status::Pending => 1,
        Status::AwaitingReview => 2,
        Status::Applied => 3,
        Status::Rejected => 4,
        Status::Superseded => 5,
        Status::Withdrawn => 6,
    }
}

/// All statuses, by their numbers.
pub const STATUSES: [Status; 6] = [
    Status::Pending,
    Status::AwaitingReview,
    Status::Applied,
    Status::Rejected,
    Status::Superseded,
    Status::Withdrawn,
];

/// The status with this number.
pub fn parse_status(number: i32) -> Option<Status> {
    STATUSES.into_iter().find(|&known| status(known) == number)
}

/// A candidate's origin.
pub fn origin(origin: Origin) -> i32 {
    match origin {
        Origin::Votes => 1,
        Origin::Review => 2,
        Origin::Operator => 3,
        Origin::Import => 4,
        Origin::Generator => 5,
        Origin::Mined => 6,
    }
}

/// The origin with this number.
pub fn parse_origin(number: i32) -> Option<Origin> {
    [
        Origin::Votes,
        Origin::Review,
        Origin::Operator,
        Origin::Import,
        Origin::Generator,
        Origin::Mined,
    ]
    .into_iter()
    .find(|&known| origin(known) == number)
}

/// A risk level.
pub fn risk(risk: RiskLevel) -> i32 {
    match risk {
        RiskLevel::Low => 1,
        RiskLevel::Medium => 2,
        RiskLevel::High => 3,
    }
}

/// The risk level with this number.
pub fn parse_risk(number: i32) -> Option<RiskLevel> {
    [RiskLevel::Low, RiskLevel::Medium, RiskLevel::High]
        .into_iter()
        .find(|&known| risk(known) == number)
}

/// What is counted: distinct voters or occurrences.
pub fn counting(counting: Counting) -> i32 {
    match counting {
        Counting::DistinctVoters => 1,
        Counting::Occurrences => 2,
    }
}

/// The counting with this number.
pub fn parse_counting(number: i32) -> Option<Counting> {
    [Counting::DistinctVoters, Counting::Occurrences]
        .into_iter()
        .find(|&known| counting(known) == number)
}

/// The name of the reason why votes alone cannot apply a candidate; empty if they can.
pub fn hold(hold: Option<Hold>) -> &'static str {
    hold.map_or("", |hold| hold.reason().name())
}

/// The hold with this name.
pub fn parse_hold(name: &str) -> Option<Option<Hold>> {
    if name.is_empty() {
        return Some(None);
    }
    Hold::ALL
        .into_iter()
        .find(|known| known.reason().name() == name)
        .map(Some)
}

/// Whether a ruling was taken back, and with what right; 0 also where there is none.
pub fn taken_back(taken_back: TakenBack) -> i32 {
    match taken_back {
        TakenBack::No => 0,
        TakenBack::Unentitled => 1,
        TakenBack::Entitled => 2,
        TakenBack::Reverted => 3,
    }
}

/// What that number says.
pub fn parse_taken_back(number: i32) -> Option<TakenBack> {
    [
        TakenBack::No,
        TakenBack::Unentitled,
        TakenBack::Entitled,
        TakenBack::Reverted,
    ]
    .into_iter()
    .find(|&known| taken_back(known) == number)
}

/// The number of a verdict.
pub fn verdict(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Open => 1,
        Verdict::Approved => 2,
        Verdict::Rejected => 3,
        Verdict::Closed => 4,
    }
}

/// What that number says.
pub fn parse_verdict(number: i32) -> Option<Verdict> {
    [
        Verdict::Open,
        Verdict::Approved,
        Verdict::Rejected,
        Verdict::Closed,
    ]
    .into_iter()
    .find(|&known| verdict(known) == number)
}

/// The number of a role.
pub fn role(role: Role) -> i32 {
    match role {
        Role::Reporter => 1,
        Role::Reviewer => 2,
        Role::Operator => 3,
        Role::Admin => 4,
    }
}

/// The role with this number.
pub fn parse_role(number: i32) -> Option<Role> {
    Role::ALL.into_iter().find(|&known| role(known) == number)
}

/// A reason's name; empty: none.
pub fn reason(reason: Option<Reason>) -> &'static str {
    reason.map_or("", Reason::name)
}

/// The reason with this name.
pub fn parse_reason(name: &str) -> Option<Option<Reason>> {
    if name.is_empty() {
        Some(None)
    } else {
        Reason::parse(name).ok().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_and_name_comes_back_as_what_it_was() {
        for number in 1..=6 {
            assert_eq!(parse_status(number).map(status), Some(number));
        }
        for number in 1..=4 {
            assert_eq!(parse_origin(number).map(origin), Some(number));
        }
        for number in 1..=3 {
            assert_eq!(parse_risk(number).map(risk), Some(number));
        }
        for number in 1..=2 {
            assert_eq!(parse_counting(number).map(counting), Some(number));
        }
        for number in 0..=3 {
            assert_eq!(parse_taken_back(number).map(taken_back), Some(number));
        }
        for number in 1..=4 {
            assert_eq!(parse_verdict(number).map(verdict), Some(number));
            assert_eq!(parse_role(number).map(role), Some(number));
        }
        for name in [
            "",
            "REVERTED",
            "DELETED",
            "PERSONAL_DATA",
            "NOT_ENTITLED",
            "FROZEN",
        ] {
            assert_eq!(parse_hold(name).map(hold), Some(name));
        }
        for name in ["", "RIVALS", "RETRACTED"] {
            assert_eq!(parse_reason(name).map(reason), Some(name));
        }
        assert_eq!(parse_status(0), None);
        assert_eq!(parse_hold("RIVALS"), None);
        assert_eq!(parse_reason("SOMETHING"), None);
    }
}
