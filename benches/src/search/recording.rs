//! Searches that are recorded with a feedback-svc that stands still, against searches that are not recorded.
//!
//! The service is a listener whose connections are accepted by the system and never answered, as those of a stopped process
//! are. The load is kept to half a core: after each search the thread rests for as long as it took, so that what is measured
//! is what recording adds and not a queue for the processor.

use std::{net::TcpListener, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use emend_base::Lifecycle;
use emend_client::{FeedbackClient, Namespace};
use tokio::time::Instant;

use super::{Node, micros, node, percentile, search};
use crate::{expand::NAMESPACE, memory};

/// Asks the queries of both in turn, and prints how long they took.
pub(super) fn run(index: &Path, queries: &[String], seconds: f64) -> Result<()> {
    let stalled = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", stalled.local_addr()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let _entered = runtime.enter();
    let lifecycle = Lifecycle::new();
    let namespace = Namespace::parse(NAMESPACE).context("a namespace")?;
    let recorder = FeedbackClient::new(address)?.recorder(&namespace, &lifecycle);

    let without = node(index)?;
    let Node { backend, publisher } = node(index)?;
    let with = Node {
        backend: backend.recording(recorder.clone()),
        publisher,
    };
    // Until nothing more finds room.
    for query in queries.iter().cycle() {
        search(&with.backend, query)?;
        if recorder.counts().dropped > 0 {
            break;
        }
    }
    memory::forget()?;
    let (before, full) = (memory::most()?, recorder.counts());
    let mut took = [Vec::new(), Vec::new()];
    let end = Instant::now() + Duration::from_secs_f64(2.0 * seconds);
    while Instant::now() < end {
        for query in queries {
            for (node, took) in [&with, &without].into_iter().zip(&mut took) {
                let begun = Instant::now();
                search(&node.backend, query)?;
                let elapsed = begun.elapsed();
                took.push(elapsed);
                std::thread::sleep(elapsed);
            }
        }
    }
    let (after, counts) = (memory::most()?, recorder.counts());
    let searches = took[0].len();
    let dropped = counts.dropped - full.dropped;
    ensure!(counts.sent == 0, "the service answered");
    let [p50, p99] = [50, 99].map(|percent| {
        let [with, without] = took.each_mut().map(|took| micros(percentile(took, percent)));
        format!(
            "p{percent} {with:.0} µs recorded, {without:.0} µs not; ratio {:.2}",
            with / without
        )
    });
    println!("while feedback-svc stands still: {p50}; {p99}");
    println!(
        "of {searches} recorded searches {dropped} were dropped and counted; at most {after} MiB resident, {before} MiB before"
    );
    Ok(())
}
