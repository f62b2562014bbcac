//! Builds a node's report: how far it has applied, what it cannot use, and how long applying took.

use emend_proto::learning::v1::{RejectedResource, ReportStatusRequest};

use super::{Confirmed, reporter::ReportContents};
use crate::replica::Replica;

const MAX_REJECTED: usize = 100;
const MAX_ERROR_CHARS: usize = 512;

/// Builds a report; `None` while there is nothing to report: nothing has been applied, and nothing is wrong. `confirmed` is what
/// is in use where the node hands on what it holds, if it does.
pub(super) fn make_report(
    replica: &Replica,
    node_id: &str,
    contents: &ReportContents,
    confirmed: Option<&Confirmed>,
) -> Option<ReportStatusRequest> {
    let held = replica.position()?;
    let applied = confirmed.map_or_else(|| Some(held.clone()), |confirmed| confirmed.position.clone());
    let refused = confirmed.map_or(&[][..], |confirmed| &confirmed.refused);
    let problem = contents
        .problem
        .or(confirmed.and_then(|confirmed| confirmed.problem))
        .unwrap_or_default();
    let rejected = replica.rejected();
    if applied.is_none() && problem.is_empty() && refused.is_empty() && rejected.len() == 0 {
        return None;
    }
    let error = |why: &str| why.chars().take(MAX_ERROR_CHARS).collect();
    let unusable = rejected.newest().map(|(key, revision, why)| RejectedResource {
        key: Some(key.to_key()),
        revision,
        error: error(&why.to_string()),
    });
    let described = refused.iter().map(|refused| RejectedResource {
        key: Some(refused.key.clone()),
        revision: refused.revision,
        error: error(&refused.error),
    });
    let (effect_delays, effect_traces) = contents.effects.to_message();
    Some(ReportStatusRequest {
        node_id: node_id.to_owned(),
        applied,
        rejected: described.chain(unusable).take(MAX_REJECTED).collect(),
        rejected_count: i64::try_from(rejected.len() + refused.len()).unwrap_or(i64::MAX),
        delays: Some(contents.delays.to_message()),
        problem: problem.to_owned(),
        effect_delays: Some(effect_delays),
        effect_traces,
    })
}

/// The report of a node that took so long to apply changes.
#[cfg(test)]
pub(crate) fn reported(
    replica: &Replica,
    node_id: &str,
    delays: impl Iterator<Item = jiff::SignedDuration>,
) -> Option<ReportStatusRequest> {
    let mut contents = ReportContents::default();
    delays.for_each(|delay| contents.delays.add(delay));
    make_report(replica, node_id, &contents, None)
}
