//! Whether rulings agree with the ballots that brought them and with the retractions of these.

use emend_core::{Policy, Roles, candidate::TakenBack};
use emend_store::{StoreError, audit::Findings};
use futures::TryStreamExt as _;

use super::{Contest, Contests};
use crate::audit::{Policies, RULING_ORDER, RULING_RETRACTED};
use crate::{
    audit::stored::{AuditRead, Range},
    policies::PolicyKey,
};

/// Compares each ruling that a correction made with its ballot and the mark of its retraction.
pub(super) async fn check(
    reading: &mut dyn AuditRead,
    range: &Range,
    policies: &Policies,
    contests: &Contests,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut sent = reading.sent_rulings(range);
    while let Some(row) = sent.try_next().await? {
        let Some((id, retracted_by)) = findings.readable(row.parse())? else {
            continue;
        };
        let Some(contest) = contests.get(&row.contest) else {
            continue;
        };
        let known = contest.candidates.get(&id);
        let Some(ruling) = known.and_then(|known| known.candidate.ruling.as_ref()) else {
            continue;
        };
        if ruling.accept_order.0 != row.accept_order {
            findings.add(
                RULING_ORDER,
                format_args!("candidate {id}"),
                format_args!(
                    "its accept order is {}, but that of its ballot is {}",
                    ruling.accept_order.0, row.accept_order
                ),
            );
        }
        if let Some(wrong) = wrong_with(ruling.taken_back, retracted_by.as_ref(), contest, policies) {
            findings.add(RULING_RETRACTED, format_args!("candidate {id}"), wrong);
        }
    }
    Ok(())
}

/// By which policy a retraction was evaluated is not stored: it must have been one that its key ever had.
fn wrong_with(
    taken_back: TakenBack,
    retracted_by: Option<&Roles>,
    contest: &Contest,
    policies: &Policies,
) -> Option<&'static str> {
    let key = contest.key.as_ref()?;
    let default = Policy::default_for(key.kind);
    let scope = PolicyKey::of(key);
    let of_key = policies.iter().filter(|((key_scope, _), _)| *key_scope == scope);
    let mut ever = of_key.map(|(_, policy)| policy).chain([&default]);
    match (taken_back, retracted_by) {
        (TakenBack::No, Some(_)) => Some("its feedback is marked as retracted, but it is not taken back"),
        (TakenBack::Entitled | TakenBack::Unentitled, None) => {
            Some("it is taken back by a retraction, but its feedback is not marked as retracted")
        }
        (TakenBack::Entitled, Some(by)) if !ever.any(|policy| by.permit(policy.ruling.entitled)) => {
            Some("it is taken back as by somebody entitled, but who retracted it never was")
        }
        (TakenBack::Unentitled, Some(by)) if ever.all(|policy| by.permit(policy.ruling.entitled)) => {
            Some("it is taken back as by somebody who is not entitled, but who retracted it always was")
        }
        _ => None,
    }
}
