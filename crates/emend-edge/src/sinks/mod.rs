//! Sinks: what was learned, kept where an engine or a program of its users' reads it.
//!
//! A sink is a node of the fleet. It follows the stream by itself, and what it reports as applied is the newest revision by which
//! the engine answered a probe query: not what was sent there. What the engine refuses is a rejected resource, with the engine's
//! words, and holds back nothing else.
//!
//! It keeps a set of its own, which has a [`Stamp`](content::Stamp): what the set says, as one word, and who wrote it by which state.
//! By that it knows its set again after a restart, sees what somebody else changed in it, asks the engine by which state it answers,
//! and gives way to an edge that is ahead of it. What has no stamp is not touched.
//!
//! ```text
//! config      what edge.toml says of a sink
//! stepped     steps, which time and the stream wake
//! worker      when a set is looked at; selection: what of a state it is
//! keeper      comparing, writing, reading back
//! target      what is there, writing it, the probe: file, solr, opensearch
//! webhook     every revision, in order, to an address
//! reporting   what is said in the fleet and in metrics
//! ```

mod config;
mod content;
mod error;
mod fail_points;
mod file;
mod http;
mod keeper;
mod metrics;
mod opensearch;
mod reporting;
mod selection;
mod solr;
mod stepped;
mod synonyms;
mod target;
#[cfg(test)]
mod testing;
mod webhook;
mod worker;

use std::{path::PathBuf, time::Duration};

use emend_base::{Entropy, Lifecycle, SystemClock};
use emend_binding::{ConnectionSettings, Error, NodeSettings};
use emend_client::{Confirmed, NodeHandle};
use tokio::sync::watch;

pub use self::{config::SinkConfig, fail_points::ALL as FAIL_POINTS, metrics::SinkMetrics};
use self::{
    config::{Common, TargetConfig, WebhookConfig},
    file::FileSink,
    opensearch::OpenSearch,
    reporting::Reporting,
    solr::Solr,
    target::Target,
    webhook::Delivering,
    worker::Worker,
};

/// The least time between two reports of a sink.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the sinks beside a node, as nodes of their own with its connection, as tasks of `lifecycle`.
pub(crate) async fn start(
    sinks: Vec<SinkConfig>,
    beside: &NodeSettings,
    metrics: &SinkMetrics,
    lifecycle: &Lifecycle,
) -> Result<(), Error> {
    for sink in sinks {
        let id = sink.id();
        let SinkConfig { common, target } = sink;
        let remembered_in = target.note(&id, beside.cache_dir.as_deref())?;
        let (confirmed, said) = watch::channel(Confirmed::default());
        let settings = NodeSettings {
            id: id.clone(),
            namespaces: common.namespaces.clone(),
            kinds: target.kinds(),
            include_user_scoped: false,
            mirror_prompts: None,
            version: if beside.version.is_empty() {
                env!("CARGO_PKG_VERSION").to_owned()
            } else {
                beside.version.clone()
            },
            labels: beside
                .labels
                .clone()
                .into_iter()
                .chain([("kind".to_owned(), "sink".to_owned())])
                .collect(),
            ..beside.clone()
        };
        let builder = settings
            .builder()?
            .confirmed(said)
            .report_interval(REPORT_INTERVAL);
        let node = builder.spawn(lifecycle).await?;
        let begun = Begun {
            id: id.clone(),
            node,
            reporting: Reporting::new(confirmed, metrics.of(&id)),
            common,
            lifecycle,
        };
        match target {
            TargetConfig::File(config) => begun.keep(FileSink::new(config)),
            TargetConfig::Solr(config) => begun.keep(Solr::new(config)),
            TargetConfig::OpenSearch(config) => begun.keep(OpenSearch::new(config, remembered_in)),
            TargetConfig::Webhook(config) => {
                begun.deliver(config, remembered_in, beside.connection.clone())?;
            }
        }
    }
    Ok(())
}

/// A sink whose node follows the stream.
struct Begun<'l> {
    id: String,
    node: NodeHandle,
    reporting: Reporting,
    common: Common,
    lifecycle: &'l Lifecycle,
}

impl Begun<'_> {
    fn keep<T: Target>(self, target: T) {
        let events = self.node.events();
        let injected = (SystemClock::shared(), Entropy::system());
        let worker = Worker::new(self.id, target, self.node, self.reporting, &self.common, injected);
        let stop = self.lifecycle.soft().clone();
        self.lifecycle.spawn("sink", stepped::run(worker, events, stop));
    }

    fn deliver(
        self,
        config: WebhookConfig,
        note: Option<PathBuf>,
        connection: ConnectionSettings,
    ) -> Result<(), Error> {
        let events = self.node.events();
        let note = note.expect("invariant: a webhook has a note");
        let namespaces = self.common.namespaces;
        let injected = (SystemClock::shared(), Entropy::system());
        let delivering = Delivering::new(
            config,
            namespaces,
            connection,
            note,
            self.node,
            self.reporting,
            injected,
        )?;
        let stop = self.lifecycle.soft().clone();
        self.lifecycle
            .spawn("webhook", stepped::run(delivering, events, stop));
        Ok(())
    }
}
