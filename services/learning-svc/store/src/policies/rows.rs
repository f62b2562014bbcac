//! Rows of policies.

use emend_core::{Kind, Language, Namespace, Policy, ReviewPolicy, RulingPolicy, VotesPolicy, WindowPolicy};
use emend_store::StoreError;
use jiff::SignedDuration;
use sqlx_macros::FromRow;

use super::{PolicyKey, StoredPolicy};
use crate::{codes, rows::At};

#[derive(Debug, FromRow)]
pub(crate) struct PolicyRow {
    pub namespace: String,
    pub kind: i32,
    pub version: i64,
    pub risk: i32,
    pub threshold: i32,
    pub counting: i32,
    pub half_life: i64,
    pub max_derived_voters: i32,
    pub max_resources: i64,
    pub max_value_bytes: i32,
    pub max_counted_feedback: i32,
    pub entitled: i32,
    pub window_good: i32,
    pub window_bad: i32,
    pub window_max_text_chars: i32,
    pub window_language: i32,
    pub review_min_bad: i32,
    pub review_automatic: i32,
    pub reviewers_needed: i32,
    pub frozen: i32,
    pub updated_at: i64,
}

impl PolicyRow {
    pub(crate) fn parse(&self) -> Result<(PolicyKey, StoredPolicy), StoreError> {
        let id = format!("({}, {}, {})", self.namespace, self.kind, self.version);
        let at = At {
            table: "policies",
            id: &id,
        };
        let key = PolicyKey {
            namespace: at.parse("namespace", Namespace::parse(&self.namespace))?,
            kind: at.known("kind", self.kind, Kind::from_number(self.kind))?,
        };
        let policy = Policy {
            version: self.version,
            max_resources: at.number("max_resources", self.max_resources)?,
            max_value_bytes: at.number("max_value_bytes", self.max_value_bytes)?,
            frozen: self.frozen != 0,
            reviewers_needed: at.number("reviewers_needed", self.reviewers_needed)?,
            votes: VotesPolicy {
                risk: at.known("risk", self.risk, codes::parse_risk(self.risk))?,
                threshold: at.number("threshold", self.threshold)?,
                counting: at.known("counting", self.counting, codes::parse_counting(self.counting))?,
                half_life: (self.half_life > 0).then(|| SignedDuration::from_secs(self.half_life)),
                max_derived_voters: at.number("max_derived_voters", self.max_derived_voters)?,
                max_counted_feedback: at.number("max_counted_feedback", self.max_counted_feedback)?,
            },
            ruling: RulingPolicy {
                entitled: at.known("entitled", self.entitled, codes::parse_role(self.entitled))?,
            },
            window: WindowPolicy {
                good: at.number("window_good", self.window_good)?,
                bad: at.number("window_bad", self.window_bad)?,
                max_text_chars: at.number("window_max_text_chars", self.window_max_text_chars)?,
                language: at.known(
                    "window_language",
                    self.window_language,
                    Language::from_number(self.window_language),
                )?,
            },
            review: ReviewPolicy {
                min_bad: at.number("review_min_bad", self.review_min_bad)?,
                automatic: self.review_automatic != 0,
            },
        };
        policy
            .validate()
            .map_err(|violations| at.corrupt("threshold", violations))?;
        let stored = StoredPolicy {
            policy,
            updated_at: Some(at.time("updated_at", self.updated_at)?),
        };
        Ok((key, stored))
    }
}
