//! Parsers that several requests share.

use emend_core::{
    Caller, CandidateId, Invalid, Namespace, ReporterId, Violations,
    violation::{bounded_prose, bounded_text},
};
use emend_wire::parse::free_text;
use learning_store::actor::Actor;

use crate::etag;

/// Characters of a reason at most.
pub(crate) const REASON: usize = emend_wire::parse::MAX_REASON_CHARS;

/// The search application.
pub(crate) fn namespace(violations: &mut Violations, raw: &str) -> Option<Namespace> {
    violations.check("namespace", Namespace::parse(raw))
}

/// A candidate's id.
pub(crate) fn candidate_id(violations: &mut Violations, raw: &str) -> Option<CandidateId> {
    violations.check("candidate_id", CandidateId::parse(raw))
}

/// An optional etag.
#[expect(
    clippy::option_option,
    reason = "the outer option is none if invalid, the inner if none was sent"
)]
pub(crate) fn etag(violations: &mut Violations, field: &str, raw: &str) -> Option<Option<String>> {
    violations.check(field, etag::parse(raw))
}

/// An optional reason.
#[expect(
    clippy::option_option,
    reason = "the outer option is none if invalid, the inner if none was sent"
)]
pub(crate) fn reason(violations: &mut Violations, raw: &str) -> Option<Option<String>> {
    violations.check("reason", free_text(raw, REASON))
}

/// A reason that must be given.
pub(crate) fn required_reason(violations: &mut Violations, raw: &str) -> Option<String> {
    violations.check("reason", bounded_prose(raw, 1, REASON))
}

/// The caller, and on whose behalf it acts.
pub(crate) fn actor(violations: &mut Violations, caller: &Caller, on_behalf_of: &str) -> Option<Actor> {
    let on_behalf_of = violations.check("on_behalf_of", bounded_text(on_behalf_of, 0, 128))?;
    Some(Actor {
        caller: caller.clone(),
        on_behalf_of,
    })
}

/// An optional reporter id, as a user id.
pub(crate) fn user(raw: &str) -> Result<Option<emend_core::UserId>, Invalid> {
    if raw.is_empty() {
        Ok(None)
    } else {
        ReporterId::parse(raw).map(|reporter| Some((&reporter).into()))
    }
}
