//! Whether a claim is shown. Decided by rulings: the newest one in force applies.
//!
//! That a claim was restored is a value: it beats what the backend reports against the claim.

use std::sync::Arc;

use super::{Field, Form, KindRules, Learned, Rule, RulingRules, newest};
use crate::{policy::Role, violation::Invalid};

/// Maximum length of a reason code in characters.
const MAX_REASON_CODE_CHARS: usize = 64;

/// A decision about a claim, and for a rejection perhaps why, as a code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimState {
    decision: ClaimDecision,
    /// The decision as one word, with the reason code after a colon.
    word: Arc<str>,
}

/// What is decided about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimDecision {
    /// It is hidden from results, and kept.
    Rejected,
    /// It is shown, whatever the backend reports against it.
    Restored,
    /// Nobody decides: what the backend reports applies. Never a resource.
    Cleared,
}

impl ClaimDecision {
    /// All decisions, in the order of their numbers on the wire.
    pub const ALL: [Self; 3] = [Self::Rejected, Self::Restored, Self::Cleared];

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Restored => "restored",
            Self::Cleared => "cleared",
        }
    }
}

impl ClaimState {
    /// A decision. Only a rejection may have a reason code, 1 to 64 characters in `UPPER_SNAKE_CASE`; empty: none.
    pub fn new(decision: ClaimDecision, reason_code: &str) -> Result<Self, Invalid> {
        let code = reason_code.trim();
        if code.is_empty() {
            return Ok(Self {
                decision,
                word: decision.name().into(),
            });
        }
        if decision != ClaimDecision::Rejected {
            return Err(Invalid::new("must be empty with this decision"));
        }
        let is_code = code.len() <= MAX_REASON_CODE_CHARS
            && code.starts_with(|first: char| first.is_ascii_uppercase())
            && code
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_code {
            return Err(Invalid::new(format!(
                "must be 1 to {MAX_REASON_CODE_CHARS} characters of [A-Z0-9_], beginning with a letter"
            )));
        }
        Ok(Self {
            decision,
            word: format!("{}:{code}", decision.name()).into(),
        })
    }

    /// The decision as one word: `rejected`, `rejected:SPAM`, `restored`.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        let (decision, code) = word.split_once(':').unwrap_or((word, ""));
        let sought = decision.trim().to_ascii_lowercase();
        let mut decisions = [ClaimDecision::Rejected, ClaimDecision::Restored].into_iter();
        match decisions.find(|decision| decision.name() == sought) {
            Some(decision) => Self::new(decision, code)
                .map_err(|Invalid(why)| Invalid::new(format!("the reason code after the colon {why}"))),
            None => Err(Invalid::new(format!(
                "must be rejected, rejected:REASON_CODE or restored, is {word:?}"
            ))),
        }
    }

    /// What was decided.
    pub const fn decision(&self) -> ClaimDecision {
        self.decision
    }

    /// Why it was rejected, as a code; empty if nobody said.
    pub fn reason_code(&self) -> &str {
        self.word.split_once(':').map_or("", |(_, code)| code)
    }

    /// Whether the claim is hidden from results.
    pub fn is_rejected(&self) -> bool {
        self.decision == ClaimDecision::Rejected
    }
}

pub(super) const RULES: KindRules = KindRules {
    name: "claim_state",
    number: 7,
    summary: "Whether a claim is rejected, or was restored",
    short_name: "claim",
    aliases: &["claim-state", "claims"],
    key: Form::Exact,
    qualifier: None,
    rule: Rule::Ruling(RulingRules {
        in_force,
        nothing,
        is_high_risk: |_| false,
        needs_target: true,
        entitled: Role::Reviewer,
    }),
    parse: |word| ClaimState::parse(&word).map(Learned::ClaimState),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(state: &ClaimState) -> Vec<Field<'_>> {
    vec![
        Field::distinguishing("decision", state.decision.name()),
        Field::distinguishing("reason_code", state.reason_code()),
    ]
}

pub(super) fn maps_to(state: &ClaimState) -> &str {
    &state.word
}

pub(super) fn describe(id: &str, state: &ClaimState) -> String {
    match (state.decision, state.reason_code()) {
        (ClaimDecision::Rejected, "") => format!("claim “{id}” is rejected"),
        (ClaimDecision::Rejected, code) => format!("claim “{id}” is rejected ({code})"),
        (ClaimDecision::Restored, _) => format!("claim “{id}” is restored"),
        (ClaimDecision::Cleared, _) => format!("nothing is decided about claim “{id}”"),
    }
}

fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    newest(newest_first, &nothing())
}

fn nothing() -> Learned {
    Learned::ClaimState(ClaimState {
        decision: ClaimDecision::Cleared,
        word: ClaimDecision::Cleared.name().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_decision_applies_and_a_cleared_one_leaves_nothing() {
        let [rejected, restored] =
            ["rejected", "restored"].map(|word| Learned::ClaimState(ClaimState::parse(word).unwrap()));
        assert_eq!(in_force(&[]), None);
        assert_eq!(in_force(&[&restored, &rejected]), Some(restored.clone()));
        assert_eq!(in_force(&[&rejected, &restored]), Some(rejected.clone()));
        assert_eq!(in_force(&[&nothing(), &rejected]), None);
    }

    #[test]
    fn a_decision_is_one_word() {
        for (word, decision, code) in [
            ("rejected", ClaimDecision::Rejected, ""),
            (" Restored ", ClaimDecision::Restored, ""),
            ("rejected:SPAM_2", ClaimDecision::Rejected, "SPAM_2"),
        ] {
            let state = ClaimState::parse(word).unwrap();
            assert_eq!(
                (state.decision(), state.reason_code()),
                (decision, code),
                "{word}"
            );
            assert_eq!(ClaimState::parse(maps_to(&state)), Ok(state));
        }
        let long = format!("rejected:{}", "A".repeat(65));
        for word in [
            "",
            "cleared",
            "reject",
            "rejected:spam",
            "rejected:_A",
            "restored:SPAM",
            &long,
        ] {
            assert!(ClaimState::parse(word).is_err(), "{word}");
        }
    }
}
