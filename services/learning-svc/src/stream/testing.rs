//! Replicas for the stream's tests, on an in-memory log, and a subscriber that follows the protocol strictly.

mod client;

use std::{collections::BTreeMap, sync::Arc};

use emend_base::{Entropy, ManualClock};
use emend_core::{Epoch, InstallationId};
use emend_store::{
    StoreError,
    simulation::{Interference, NoInterference},
};
use futures::future::BoxFuture;
use learning_store::log::LogStore as _;
use tokio::sync::watch;
use uuid::Uuid;

pub(crate) use self::client::{Client, Held, Key, covered, model};
use super::{Settings, Stream};
/// The log. Clones share it; several streams on one log are replicas on one database.
pub(crate) use learning_store::memory::MemoryStore as MemoryLog;

/// A replica on the log, at its head, whose workers are stepped by hand.
pub(crate) async fn replica(log: &MemoryLog, settings: Settings) -> Stream {
    let stream = Stream::new(
        Arc::new(log.clone()),
        settings,
        ManualClock::default().shared(),
        Entropy::seeded(1),
    );
    log.create_head(Epoch(Uuid::from_u128(1)), InstallationId(Uuid::from_u128(2)))
        .await
        .unwrap();
    catch_up(&stream).await;
    stream
}

/// Steps the tailer until it is at the log's head.
pub(crate) async fn catch_up(stream: &Stream) {
    use super::tailer::TailOutcome;
    while stream.tailer().run_once().await.unwrap() != TailOutcome::Current {}
}

/// A log that answers no call for as long as it is told to be silent.
pub(crate) fn silenced() -> (MemoryLog, watch::Sender<bool>) {
    let (silence, silent) = watch::channel(false);
    let log = MemoryLog::on(ManualClock::default().shared(), Arc::new(Silent(silent)));
    (log, silence)
}

#[derive(Debug)]
struct Silent(watch::Receiver<bool>);

impl Interference for Silent {
    fn before<'a>(&'a self, _call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut silent = self.0.clone();
        Box::pin(async move {
            let _ = silent.wait_for(|silent| !silent).await;
            Ok(())
        })
    }

    fn after<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        NoInterference.after(call)
    }
}

/// What a client subscribed to everything holds at a revision.
pub(crate) fn model_at(log: &MemoryLog, revision: i64) -> BTreeMap<Key, Held> {
    let logged = log.logged_after(0);
    model(
        logged
            .iter()
            .map(|logged| &**logged)
            .filter(|logged| logged.revision <= revision),
    )
}
