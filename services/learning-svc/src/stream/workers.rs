//! The loops around the stream's workers: when each runs, and how it ends.

use std::{sync::Arc, time::Duration};

use emend_base::{Backoff, BackoffConfig, Lifecycle};
use emend_stream::pacing::wake_streams;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Stream, Wake, tailer::TailOutcome};

/// How many times in a row following the log may fail before the replica counts as not ready.
const TOLERATED_FAILURES: u32 = 3;
/// How long one step of following the log may take before the replica counts as not ready: the database may never
/// answer.
const STEP: Duration = Duration::from_secs(10);
/// How long a stopping replica waits for its streams to end, so that it can record their end.
const STREAM_END_TIMEOUT: Duration = Duration::from_secs(5);
/// The delay from the start to the first retention run.
const FIRST_RETENTION: Duration = Duration::from_secs(2);
/// By what fraction intervals vary, so that those of many replicas do not coincide.
const JITTER: f64 = 0.2;

/// Spawns them all in `lifecycle`.
pub(super) fn spawn(stream: &Stream, wake: Wake, lifecycle: &Lifecycle) {
    lifecycle.spawn("follow the log", follow(stream.clone(), wake, lifecycle.clone()));
    lifecycle.spawn(
        "wake streams",
        wake_streams(Arc::clone(stream.0.streams.audiences()), lifecycle.clone()),
    );
    lifecycle.spawn("drain streams", drain(stream.clone(), lifecycle.clone()));
    lifecycle.spawn("forget", forget(stream.clone(), lifecycle.clone()));
    lifecycle.spawn(
        "write node activity",
        write_nodes(stream.clone(), lifecycle.clone()),
    );
    lifecycle.spawn("node heartbeat", beat(stream.clone(), lifecycle.clone()));
}

async fn follow(stream: Stream, mut wake: Wake, lifecycle: Lifecycle) {
    let inner = &*stream.0;
    let entropy = &inner.entropy;
    let tailer = stream.tailer();
    let mut backoff = Backoff::new(
        BackoffConfig {
            max: Duration::from_secs(5),
            ..BackoffConfig::default()
        },
        entropy.clone(),
    );
    while !lifecycle.is_stopping() {
        let pause = match noticed(&stream, tailer.run_once()).await {
            Ok(TailOutcome::More) => {
                backoff.reset();
                tokio::task::yield_now().await;
                continue;
            }
            Ok(_) => {
                backoff.reset();
                set_ready(&stream, true);
                inner.settings.scan_interval.mul_f64(entropy.jitter(JITTER))
            }
            Err(error) => {
                tracing::warn!(%error, "can't follow the log");
                if backoff.attempts() >= TOLERATED_FAILURES {
                    set_ready(&stream, false);
                }
                let pause = backoff.next();
                tokio::select! {
                    () = lifecycle.soft().cancelled() => {}
                    () = sleep(pause) => {}
                }
                continue;
            }
        };
        tokio::select! {
            biased;
            () = lifecycle.soft().cancelled() => {}
            () = inner.streams.source().woken.notified() => {}
            () = wake.woken() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Runs a step. If it takes longer than [`STEP`], the replica counts as not ready.
async fn noticed<T>(stream: &Stream, step: impl Future<Output = T>) -> T {
    let mut step = std::pin::pin!(step);
    if let Ok(done) = timeout(STEP, &mut step).await {
        return done;
    }
    tracing::warn!("following the log takes more than {STEP:?}");
    set_ready(stream, false);
    step.await
}

fn set_ready(stream: &Stream, ready: bool) {
    stream
        .0
        .ready
        .send_if_modified(|before| std::mem::replace(before, ready) != ready);
}

async fn drain(stream: Stream, lifecycle: Lifecycle) {
    lifecycle.soft().cancelled().await;
    stream.0.streams.audiences().drain();
}

async fn forget(stream: Stream, lifecycle: Lifecycle) {
    let retention = stream.retention();
    let entropy = &stream.0.entropy;
    // Soon after the start as well: a replica may never live as long as the interval.
    let interval = stream.0.settings.retention_interval;
    let mut pause = interval.min(FIRST_RETENTION);
    loop {
        tokio::select! {
            () = lifecycle.soft().cancelled() => return,
            () = sleep(pause.mul_f64(entropy.jitter(JITTER))) => {}
        }
        match retention.run_once().await {
            Ok(_) => stream.wake(),
            Err(error) => tracing::warn!(%error, "can't drop old tombstones and nodes"),
        }
        pause = interval;
    }
}

async fn write_nodes(stream: Stream, lifecycle: Lifecycle) {
    let (nodes, interval) = (stream.nodes(), stream.0.settings.node_write_interval);
    while !lifecycle.is_stopping() {
        tokio::select! {
            () = lifecycle.soft().cancelled() => break,
            () = nodes.dirty() => {}
        }
        if let Err(error) = nodes.run_once().await {
            tracing::warn!(%error, "can't write node activity");
        }
        tokio::select! {
            () = lifecycle.soft().cancelled() => break,
            () = sleep(interval) => {}
        }
    }
    // Streams are ending now; their ends are written once they are gone.
    let until = Instant::now() + STREAM_END_TIMEOUT;
    while nodes.connected() > 0 {
        tokio::select! {
            () = nodes.dirty() => {}
            () = sleep_until(until) => break,
        }
    }
    if let Err(error) = nodes.run_once().await {
        tracing::warn!(%error, "can't record that streams have ended");
    }
}

async fn beat(stream: Stream, lifecycle: Lifecycle) {
    loop {
        tokio::select! {
            () = lifecycle.soft().cancelled() => return,
            () = sleep(stream.0.settings.node_heartbeat_interval) => {}
        }
        if stream.nodes().connected() > 0
            && let Err(error) = stream.nodes().heartbeat().await
        {
            tracing::warn!(%error, "can't record that streams are still open");
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_base::{Entropy, ManualClock};
    use emend_core::{Epoch, InstallationId};
    use uuid::Uuid;

    use super::*;
    use crate::stream::{Settings, testing::silenced};
    use learning_store::log::LogStore as _;

    #[tokio::test(start_paused = true)]
    async fn a_replica_is_not_ready_while_its_database_does_not_answer() {
        let (log, silence) = silenced();
        log.create_head(Epoch(Uuid::from_u128(1)), InstallationId(Uuid::from_u128(2)))
            .await
            .unwrap();
        let lifecycle = Lifecycle::new();
        let stream = Stream::start(
            Arc::new(log),
            Wake::local(),
            Settings::default(),
            ManualClock::default().shared(),
            Entropy::seeded(1),
            &lifecycle,
        );
        let mut ready = stream.readiness();
        ready.wait_for(|ready| *ready).await.unwrap();

        silence.send_replace(true);
        let before = Instant::now();
        ready.wait_for(|ready| !ready).await.unwrap();
        assert!(before.elapsed() < 2 * STEP, "{:?}", before.elapsed());

        silence.send_replace(false);
        ready.wait_for(|ready| *ready).await.unwrap();
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }
}
