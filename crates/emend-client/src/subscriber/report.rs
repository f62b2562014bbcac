//! Builds a node's report: how far it has applied, what it cannot use, and how long applying took.

use emend_proto::learning::v1::{RejectedResource, ReportStatusRequest};

use super::reporter::ReportContents;
use crate::replica::Replica;

const MAX_REJECTED: usize = 100;
const MAX_ERROR_CHARS: usize = 512;

/// Builds a report; `None` while nothing has been applied.
pub(super) fn make_report(
    replica: &Replica,
    node_id: &str,
    contents: &ReportContents,
) -> Option<ReportStatusRequest> {
    let applied = replica.position()?.clone();
    let rejected = replica.rejected();
    let described = rejected
        .newest()
        .take(MAX_REJECTED)
        .map(|(key, revision, why)| RejectedResource {
            key: Some(key.to_key()),
            revision,
            error: why.to_string().chars().take(MAX_ERROR_CHARS).collect(),
        });
    let (effect_delays, effect_traces) = contents.effects.to_message();
    Some(ReportStatusRequest {
        node_id: node_id.to_owned(),
        applied: Some(applied),
        rejected: described.collect(),
        rejected_count: i64::try_from(rejected.len()).unwrap_or(i64::MAX),
        delays: Some(contents.delays.to_message()),
        problem: contents.problem.unwrap_or_default().to_owned(),
        effect_delays: Some(effect_delays),
        effect_traces,
    })
}
