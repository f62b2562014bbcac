//! Recording what was searched: `emend-client`'s recorder, with queries as JSON of the wire contract.

use std::time::Duration;

use emend_client::{Lifecycle, Namespace, QueryRecorder, RecorderCounts};

use crate::{Client, Error, background, contract::message, per_process::PerProcess};

/// How long what is queued may be sent when the recorder is closed.
const GRACE: Duration = Duration::from_secs(3);

/// Records queries and interactions of one search application in the background: it never waits, and never fails a search. A
/// forked child has a queue of its own.
#[derive(Debug)]
pub struct Recorder(PerProcess<Recording>);

#[derive(Debug)]
struct Recording {
    recorder: QueryRecorder,
    lifecycle: Lifecycle,
}

impl Recorder {
    /// A recorder with a client of its own to feedback-svc.
    pub fn new(client: Client, namespace: &str) -> Result<Self, Error> {
        let namespace = Namespace::parse(namespace).map_err(Error::invalid("namespace"))?;
        let record = move || {
            let lifecycle = Lifecycle::new();
            let connected = client.connected()?;
            let _within = background::handle()?.enter();
            Ok(Recording {
                recorder: connected.recorder(&namespace, &lifecycle),
                lifecycle,
            })
        };
        Ok(Self(PerProcess::new(record)?))
    }

    /// Records a query (`emend.feedback.v1.Query`). False: there is no room, or the recorder is closed; it is dropped and
    /// counted.
    pub fn query(&self, json: &str) -> Result<bool, Error> {
        let query = message("emend.feedback.v1.Query", json)?;
        let query = query
            .transcode_to()
            .map_err(|error| Error::of_field("Query", error.to_string()))?;
        Ok(self.0.get()?.value.recorder.query(query))
    }

    /// Records what a user did with a result (`emend.feedback.v1.QueryInteraction`), in the same way.
    pub fn interaction(&self, json: &str) -> Result<bool, Error> {
        let interaction = message("emend.feedback.v1.QueryInteraction", json)?;
        let interaction = interaction
            .transcode_to()
            .map_err(|error| Error::of_field("QueryInteraction", error.to_string()))?;
        Ok(self.0.get()?.value.recorder.interaction(interaction))
    }

    /// Waits until all that was recorded before is sent or dropped.
    pub fn flush(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let held = self.0.get();
        async move {
            let recorder = held?.value.recorder.clone();
            background::run(async move { recorder.flush().await }).await
        }
    }

    /// What became of what this process recorded.
    pub fn counts(&self) -> Result<RecorderCounts, Error> {
        Ok(self.0.get()?.value.recorder.counts())
    }

    /// Sends what is queued, for 2 s at most, and ends.
    pub fn close(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let held = self.0.get();
        async move {
            let lifecycle = held?.value.lifecycle.clone();
            background::run(async move { lifecycle.shutdown(GRACE).await }).await?;
            Ok(())
        }
    }
}
