//! Counts of candidates.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Family, Gauge},
    },
};
use emend_core::{Kind, Status};

const CANDIDATES: Description = Description {
    name: "emend_candidates",
    kind: Type::Gauge,
    unit: "candidates",
    labels: &[
        "kind=entity_alias|invocation_phrase|prohibition",
        "status=pending|awaiting_review|applied|rejected|superseded|withdrawn",
    ],
    help: "Candidates by kind and status; every replica shows the same, so take the \
           maximum and not the sum",
};

const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::AwaitingReview => "awaiting_review",
        Status::Applied => "applied",
        Status::Rejected => "rejected",
        Status::Superseded => "superseded",
        Status::Withdrawn => "withdrawn",
    }
}

const STATUSES: [Status; 6] = [
    Status::Pending,
    Status::AwaitingReview,
    Status::Applied,
    Status::Rejected,
    Status::Superseded,
    Status::Withdrawn,
];

/// The metrics of contests. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct ContestMetrics {
    candidates: Family<Labels<2>, Gauge>,
}

impl ContestMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(CANDIDATES, own.candidates.clone());
        own
    }

    /// Shows how many candidates there are of each kind and status.
    pub fn show_candidates(&self, counted: &[(Kind, Status, u64)]) {
        for kind in Kind::ALL {
            for status in STATUSES {
                let found = counted
                    .iter()
                    .find(|(counted_kind, is, _)| (*counted_kind, *is) == (kind, status));
                let count = found.map_or(0, |(.., count)| *count);
                self.candidates
                    .get_or_create(&[("kind", kind.name()), ("status", status_name(status))])
                    .set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
    }
}
