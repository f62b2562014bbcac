//! What this service counts and measures: the metrics of its capabilities, registered together, and how they are kept
//! up to date. What is in the database is sampled by a worker; what the replica itself holds is read at scrape time.

use std::sync::Arc;

use emend_base::telemetry::Metrics;
use emend_proto::learning::v1::ingest_service_server::SERVICE_NAME;
use emend_serve::health::Readiness;
use emend_store::StoreError;
use emend_stream::metrics::StreamMetrics;
use learning_store::Database;

use crate::{
    config::Config,
    contests::metrics::ContestMetrics,
    decisions::metrics::Promotions,
    evidence::metrics::{COUNTED, EvidenceMetrics, MAX_SHOWN},
    nodes::metrics::NodeMetrics,
    outputs::metrics::Generations,
    profiles::metrics::ProfileMetrics,
    stream::{NODES_SEEN_WITHIN, Settings, Stream},
};

/// The service's name in metrics.
pub(crate) const SERVICE: &str = "learning-svc";

/// This service's metrics. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct LearningMetrics {
    /// Candidates.
    pub contests: ContestMetrics,
    /// Values applied.
    pub promotions: Promotions,
    /// The evidence graph, and trust files.
    pub evidence: EvidenceMetrics,
    /// What was generated.
    pub generations: Generations,
    /// The update stream.
    pub stream: StreamMetrics,
    /// The fleet.
    pub nodes: NodeMetrics,
    /// Activities and suggestions.
    pub profiles: ProfileMetrics,
}

impl LearningMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        metrics.name_service(SERVICE, env!("CARGO_PKG_VERSION"));
        Self {
            contests: ContestMetrics::register(metrics),
            promotions: Promotions::register(metrics),
            evidence: EvidenceMetrics::register(metrics),
            generations: Generations::register(metrics),
            stream: StreamMetrics::register(metrics),
            nodes: NodeMetrics::register(metrics),
            profiles: ProfileMetrics::register(metrics),
        }
    }

    /// Reports this replica's state at every scrape.
    pub fn watch(&self, config: &Config, readiness: &Readiness, stream: &Stream, store: &Arc<dyn Database>) {
        let (metrics, store) = (&config.metrics, Arc::clone(store));
        emend_store::metrics::watch_connections(metrics, SERVICE, move || store.connections());
        emend_serve::metrics::watch_readiness(metrics, SERVICE, readiness.clone(), SERVICE_NAME);
        emend_serve::metrics::watch_files(
            metrics,
            SERVICE,
            config.authenticator.as_ref(),
            config.tls.as_ref(),
        );
        let (own, stream) = (self.clone(), stream.clone());
        metrics.refresh(move || {
            own.stream.show_subscribers(stream.subscribers());
            // Nothing to report before the first state is loaded.
            if let Ok(state) = stream.state() {
                own.stream.show_head(state.revision());
                own.stream.show_age(stream.age());
                own.stream.show_held(state.held());
                own.nodes
                    .show_behind(stream.nodes().furthest_behind(state.place()));
            }
        });
    }

    /// Samples what is in the database.
    pub async fn sample(&self, store: &dyn Database, settings: &Settings) -> Result<(), StoreError> {
        let counts = store
            .count_nodes(settings.node_connected_within, NODES_SEEN_WITHIN)
            .await?;
        self.nodes.show_nodes(counts);
        self.contests.show_candidates(&store.count_candidates().await?);
        self.evidence.show_backlog(store.backlog(COUNTED).await?);
        self.evidence
            .show_trust_files(&store.trust_versions(MAX_SHOWN).await?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{Kind, decide::Cause};
    use emend_proto::learning::v1::SnapshotReason;

    use super::*;
    use emend_stream::metrics::StreamEnd;

    #[test]
    fn every_reason_is_exported_before_it_first_occurs() {
        let metrics = Metrics::new();
        let own = LearningMetrics::register(&metrics);
        own.promotions.count(&[(Kind::EntityAlias, Cause::Votes)]);
        own.stream.ended(StreamEnd::Stalled);
        own.stream.snapshot(SnapshotReason::NewEpoch);
        let rendered = metrics.render();
        for line in [
            "emend_promotions_total{kind=\"entity_alias\",reason=\"votes\"} 1",
            "emend_promotions_total{kind=\"prohibition\",reason=\"policy\"} 0",
            "emend_streams_ended_total{reason=\"stalled\"} 1",
            "emend_streams_ended_total{reason=\"client_gone\"} 0",
            "emend_snapshots_total{reason=\"new_epoch\"} 1",
            "emend_snapshots_total{reason=\"no_cursor\"} 0",
        ] {
            assert!(
                rendered.lines().any(|found| found == line),
                "{line} in\n{rendered}"
            );
        }
        assert!(!rendered.contains("unspecified"));
        assert!(
            !rendered.contains("\nemend_head_revision "),
            "the log is not loaded"
        );
        own.stream.show_head(0);
        assert!(metrics.render().contains("\nemend_head_revision 0\n"));
    }
}
