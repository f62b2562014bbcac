//! Counts of candidates, and of values applied.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Counter, Family, Gauge},
    },
};
use emend_core::{Kind, Status, decide::Cause};

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
const PROMOTIONS: Description = Description {
    name: "emend_promotions_total",
    kind: Type::Counter,
    unit: "promotions",
    labels: &[
        "kind=entity_alias|invocation_phrase|prohibition",
        "reason=votes|review|operator|import|revert|retraction|policy|erasure",
    ],
    help: "Values applied by this replica, by reason: from then on nodes answer with them",
};

/// Counts values applied. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Promotions(Family<Labels<2>, Counter>);

impl Promotions {
    /// Counts what was committed.
    pub fn count(&self, promoted: &[(Kind, Cause)]) {
        for (kind, cause) in promoted {
            self.of(*kind, *cause).inc();
        }
    }

    fn of(&self, kind: Kind, cause: Cause) -> Counter {
        let reason = match cause {
            Cause::Votes => "votes",
            Cause::Review => "review",
            Cause::Operator => "operator",
            Cause::Import => "import",
            Cause::Revert => "revert",
            Cause::Retraction => "retraction",
            Cause::Policy => "policy",
            Cause::Erasure => "erasure",
            Cause::Ruling => "ruling",
            Cause::Rating => "rating",
        };
        self.0
            .get_or_create_owned(&[("kind", kind.name()), ("reason", reason)])
    }
}

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
    /// Counts values applied.
    pub promotions: Promotions,
    candidates: Family<Labels<2>, Gauge>,
}

impl ContestMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        // Counters exist from the start, so that their first increment shows.
        for kind in Kind::ALL {
            for cause in Cause::ALL {
                own.promotions.of(kind, cause);
            }
        }
        metrics.register(CANDIDATES, own.candidates.clone());
        metrics.register(PROMOTIONS, own.promotions.0.clone());
        own
    }

    /// Shows how many candidates there are of each kind and status.
    pub fn show_candidates(&self, counted: &[(Kind, Status, u64)]) {
        for kind in Kind::ALL {
            for status in STATUSES {
                let found = counted.iter().find(|(of, is, _)| (*of, *is) == (kind, status));
                let count = found.map_or(0, |(.., count)| *count);
                self.candidates
                    .get_or_create(&[("kind", kind.name()), ("status", status_name(status))])
                    .set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
    }
}
