//! Whether a claim is shown. Decided by rulings: the newest one in force applies.
//!
//! That a claim was restored is a value: it beats what the backend reports against the claim.

#![expect(clippy::ref_option, reason = "the same signatures for all kinds")]

use std::sync::Arc;

use super::{Field, Form, KindRules, Learned, Rule, RulingRules, newest};
use crate::{roles::Role, violation::Invalid};

/// Maximum length of a reason code in characters.
const MAX_REASON_CODE_CHARS: usize = 64;
const REJECTED: &str = "rejected";
const RESTORED: &str = "restored";
/// What files call that nobody decided.
const CLEARED: &str = "cleared";

/// What a person decided about a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClaimState {
    /// It is hidden from results, and kept; perhaps a code says why.
    Rejected(Option<ReasonCode>),
    /// It is shown, whatever the backend reports against it.
    Restored,
}

/// Why a claim was rejected: 1 to 64 characters in `UPPER_SNAKE_CASE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReasonCode {
    /// The decision as one word: the code follows the colon.
    word: Arc<str>,
}

impl ReasonCode {
    /// Parses a code. Empty: none.
    pub fn parse(raw: &str) -> Result<Option<Self>, Invalid> {
        let code = raw.trim();
        if code.is_empty() {
            return Ok(None);
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
        let word = format!("{REJECTED}:{code}").into();
        Ok(Some(Self { word }))
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        self.word.get(REJECTED.len() + 1..).unwrap_or_default()
    }
}

impl ClaimState {
    /// The decision as one word: `rejected`, `rejected:SPAM`, `restored`.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        let (decision, code) = word.split_once(':').unwrap_or((word, ""));
        let in_word = |Invalid(why)| Invalid::new(format!("the reason code after the colon {why}"));
        match decision.trim().to_ascii_lowercase().as_str() {
            REJECTED => ReasonCode::parse(code).map(Self::Rejected).map_err(in_word),
            RESTORED if code.trim().is_empty() => Ok(Self::Restored),
            RESTORED => Err(in_word(Invalid::new("must be empty with this decision"))),
            _ => Err(Invalid::new(format!(
                "must be rejected, rejected:REASON_CODE or restored, is {word:?}"
            ))),
        }
    }

    /// The decision as one word.
    pub fn word(&self) -> &str {
        match self {
            Self::Rejected(Some(code)) => &code.word,
            Self::Rejected(None) => REJECTED,
            Self::Restored => RESTORED,
        }
    }

    /// Why it was rejected, as a code; empty if nobody said.
    pub fn reason_code(&self) -> &str {
        match self {
            Self::Rejected(code) => code.as_ref().map_or("", ReasonCode::as_str),
            Self::Restored => "",
        }
    }

    /// Whether the claim is hidden from results.
    pub const fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected(_))
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
        by_corrections: true,
    }),
    parse: |word| ClaimState::parse(&word).map(|state| Learned::ClaimState(Some(state))),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(state: &Option<ClaimState>) -> Vec<Field<'_>> {
    let decision = match state {
        Some(ClaimState::Rejected(_)) => REJECTED,
        Some(ClaimState::Restored) => RESTORED,
        None => CLEARED,
    };
    let reason_code = state.as_ref().map_or("", ClaimState::reason_code);
    vec![
        Field::distinguishing("decision", decision),
        Field::distinguishing("reason_code", reason_code),
    ]
}

pub(super) fn maps_to(state: &Option<ClaimState>) -> &str {
    state.as_ref().map_or(CLEARED, ClaimState::word)
}

pub(super) fn describe(id: &str, state: &Option<ClaimState>) -> String {
    match state {
        Some(ClaimState::Rejected(None)) => format!("claim “{id}” is rejected"),
        Some(ClaimState::Rejected(Some(code))) => format!("claim “{id}” is rejected ({})", code.as_str()),
        Some(ClaimState::Restored) => format!("claim “{id}” is restored"),
        None => format!("nothing is decided about claim “{id}”"),
    }
}

fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    newest(newest_first, &nothing())
}

fn nothing() -> Learned {
    Learned::ClaimState(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_decision_applies_and_a_cleared_one_leaves_nothing() {
        let [rejected, restored] =
            ["rejected", "restored"].map(|word| Learned::ClaimState(Some(ClaimState::parse(word).unwrap())));
        assert_eq!(in_force(&[]), None);
        assert_eq!(in_force(&[&restored, &rejected]), Some(restored.clone()));
        assert_eq!(in_force(&[&rejected, &restored]), Some(rejected.clone()));
        assert_eq!(in_force(&[&nothing(), &rejected]), None);
    }

    #[test]
    fn a_decision_is_one_word() {
        for (word, is_rejected, code) in [
            ("rejected", true, ""),
            (" Restored ", false, ""),
            ("rejected:SPAM_2", true, "SPAM_2"),
        ] {
            let state = ClaimState::parse(word).unwrap();
            assert_eq!(
                (state.is_rejected(), state.reason_code()),
                (is_rejected, code),
                "{word}"
            );
            assert_eq!(ClaimState::parse(maps_to(&Some(state.clone()))), Ok(state));
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
