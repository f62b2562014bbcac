//! What a person can still decide of a candidate, by its kind and its status alone: so that nobody is asked, or offered a button,
//! for what would be refused whatever is answered.

use crate::{
    candidate::Status,
    kinds::{Kind, Rule},
};

/// What a person can still decide about a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decidable {
    /// Whether it can be approved as it is.
    pub approve: bool,
    /// Whether it can be approved with another value.
    pub edit: bool,
    /// Whether it can be rejected.
    pub reject: bool,
}

impl Decidable {
    /// By how its kind is decided. Where votes decide, a person may decide anew at any time; what was ruled or reviewed is decided.
    pub fn of(kind: Option<Kind>, status: Status) -> Self {
        let is_open = matches!(status, Status::Pending | Status::AwaitingReview);
        let is_rejected = status == Status::Rejected;
        match kind.map(|kind| kind.rules().rule) {
            Some(Rule::Votes { .. }) => Self {
                approve: status != Status::Applied,
                edit: true,
                reject: !is_rejected,
            },
            Some(Rule::Ruling(_)) => Self {
                approve: is_open,
                edit: is_open,
                reject: !is_rejected,
            },
            Some(Rule::Review(_) | Rule::Window(_)) | None => Self {
                approve: is_open,
                edit: is_open,
                reject: is_open,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_votes_decide_a_person_may_decide_anew() {
        use Status::{Applied, AwaitingReview, Rejected, Withdrawn};
        for (kind, status, may) in [
            (Kind::InvocationPhrase, AwaitingReview, (true, true, true)),
            (Kind::InvocationPhrase, Withdrawn, (true, true, true)),
            (Kind::InvocationPhrase, Rejected, (true, true, false)),
            (Kind::InvocationPhrase, Applied, (false, true, true)),
            (Kind::DomainRule, AwaitingReview, (true, true, true)),
            (Kind::DomainRule, Rejected, (false, false, false)),
            (Kind::DomainRule, Applied, (false, false, true)),
            (Kind::Prompt, Applied, (false, false, false)),
            (Kind::Prompt, AwaitingReview, (true, true, true)),
        ] {
            let Decidable {
                approve,
                edit,
                reject,
            } = Decidable::of(Some(kind), status);
            assert_eq!((approve, edit, reject), may, "{kind:?} {status:?}");
        }
    }
}
