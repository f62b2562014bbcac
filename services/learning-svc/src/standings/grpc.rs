//! `GetStandings`: its request and its response.

use emend_core::{FeedbackId, InstallationId, Namespace, Standing, Violations};
use emend_proto::learning::v1 as pb;
use emend_wire::render;

use crate::grpc::parse;

/// Feedbacks in one request at most.
const FEEDBACKS: usize = 1_000;

/// The namespace and the feedbacks that are asked about.
pub(crate) fn asked(request: &pb::GetStandingsRequest) -> Result<(Namespace, Vec<FeedbackId>), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let count = request.feedback_ids.len();
    if count == 0 || count > FEEDBACKS {
        violations.add(
            "feedback_ids",
            format!("must have 1 to {FEEDBACKS} entries, has {count}"),
        );
    }
    let ids = request.feedback_ids.iter().take(FEEDBACKS).enumerate();
    let feedback = ids
        .filter_map(|(place, id)| violations.check(&format!("feedback_ids[{place}]"), FeedbackId::parse(id)))
        .collect();
    if !request.installation_id.is_empty() {
        violations.check("installation_id", InstallationId::parse(&request.installation_id));
    }
    violations.finish(namespace.map(|namespace| (namespace, feedback)))
}

/// What has become of them.
pub(crate) fn told(standings: &[(FeedbackId, Vec<Standing>)]) -> pb::GetStandingsResponse {
    let standings = standings.iter().map(|(feedback, effects)| pb::FeedbackStandings {
        feedback_id: feedback.to_string(),
        effects: effects.iter().map(render::standing).collect(),
    });
    pb::GetStandingsResponse {
        standings: standings.collect(),
    }
}
