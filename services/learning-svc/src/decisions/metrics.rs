//! Counts of values applied.

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind as Type, Labels,
        prometheus::{Counter, Family},
    },
};
use emend_core::{Kind, decide::Cause};

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
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        // Counters exist from the start, so that their first increment shows.
        for kind in Kind::ALL {
            for cause in Cause::ALL {
                own.counter(kind, cause);
            }
        }
        metrics.register(PROMOTIONS, own.0.clone());
        own
    }

    /// Counts what was committed.
    pub fn count(&self, promoted: &[(Kind, Cause)]) {
        for (kind, cause) in promoted {
            self.counter(*kind, *cause).inc();
        }
    }

    fn counter(&self, kind: Kind, cause: Cause) -> Counter {
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
            Cause::Undo => "undo",
        };
        self.0
            .get_or_create_owned(&[("kind", kind.name()), ("reason", reason)])
    }
}
