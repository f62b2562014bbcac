//! Searches of the example search node, with many synonyms and without any, and while all of them are replaced.
//!
//! Its corpus is there in many copies, and its judged queries are asked in turn of two nodes on one index: one that knows the sets
//! of synonyms that ship with it and as many other terms as are asked for, and one that knows none. A query that finds nothing is
//! searched three times; so the ratio is taken over those that both find. Then one thread searches while another
//! publishes all synonyms again and again. Last, searches are recorded while feedback-svc stands still.

mod recording;

use std::{
    io::sink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use emend_base::{Clock as _, Entropy, SystemClock};
use emend_client::{LearnedView, Namespace, Revision, view::Publisher};
use futures::FutureExt as _;
use search_node::{
    backend::{Asked, Backend, Found},
    corpus::{self, Record},
    index::SearchIndex,
};
use tokio::time::Instant;

use crate::expand::{Draw, NAMESPACE, SET, publish, terms};

/// Searches with synonyms, against searches without.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// How many terms there are, beside those that ship with the example.
    #[arg(long, default_value_t = 90_000)]
    terms: usize,
    /// How many times the corpus is in the index.
    #[arg(long, default_value_t = 25)]
    copies: usize,
    /// How long each figure is measured, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// A backend, and what it answers from.
struct Node {
    backend: Backend,
    publisher: Publisher,
}

/// Runs the benchmark and prints its figures.
pub(crate) fn run(args: &Search) -> Result<()> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/search-node");
    let records = copies(&corpus::read(&example.join("corpus"))?, args.copies);
    let directory = tempfile::tempdir()?;
    SearchIndex::open(directory.path())?.update(&records, None, false, SystemClock.now(), &mut sink())?;
    let synonyms = synonyms(&example, args.terms)?;
    let mut with = node(directory.path())?;
    publish(&mut with.publisher, &synonyms, Revision(1));
    let without = node(directory.path())?;
    let queries = queries(&example)?;
    println!(
        "{} records, {} terms, {} queries",
        records.len(),
        synonyms.len(),
        queries.len()
    );

    let mut both = Vec::new();
    for query in &queries {
        if found(&with, query)? > 0 && found(&without, query)? > 0 {
            both.push(query.clone());
        }
    }
    compare(
        &format!("the {} that both find", both.len()),
        [&with, &without],
        &both,
        args.seconds,
    )?;
    compare("all", [&with, &without], &queries, args.seconds)?;
    reload(&mut with, &queries, &synonyms, args.seconds)?;
    recording::run(directory.path(), &queries, args.seconds)
}

fn node(index: &Path) -> Result<Node> {
    let (publisher, view) = LearnedView::new(&Entropy::system(), SystemClock::shared());
    let namespace = Namespace::parse(NAMESPACE).context("a namespace")?;
    let backend = Backend::new(SearchIndex::open(index)?, view, namespace, Entropy::system());
    Ok(Node { backend, publisher })
}

/// The corpus with as many titles of the same texts.
fn copies(records: &[Record], count: usize) -> Vec<Record> {
    let copy = |number: usize| {
        records.iter().map(move |record| Record {
            id: format!("{number}-{}", record.id),
            title: format!("{} {number}", record.title),
            ..record.clone()
        })
    };
    (0..count).flat_map(copy).collect()
}

/// The sets of the example, each filled up to one size, and other terms.
fn synonyms(example: &Path, count: usize) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let file = std::fs::read_to_string(example.join("synonyms.txt"))?;
    let sets = file.lines().filter(|line| !line.starts_with('#'));
    for (number, line) in sets.enumerate() {
        let mut set: Vec<String> = line.split(", ").map(str::to_owned).collect();
        for other in set.len()..SET {
            set.push(format!("term{number}x{other}"));
        }
        all.extend(set);
    }
    all.extend(terms(&Draw(Entropy::seeded(7)), count));
    Ok(all)
}

fn queries(example: &Path) -> Result<Vec<String>> {
    let mut queries = Vec::new();
    for line in std::fs::read_to_string(example.join("judged.jsonl"))?.lines() {
        let query: serde_json::Value = serde_json::from_str(line)?;
        queries.push(query["query"].as_str().context("a query")?.to_owned());
    }
    Ok(queries)
}

/// How many titles a query finds.
fn found(node: &Node, query: &str) -> Result<usize> {
    Ok(search(&node.backend, query)?.titles.len())
}

fn search(backend: &Backend, query: &str) -> Result<Found> {
    let asked = Asked {
        query: query.to_owned(),
        ..Asked::default()
    };
    let found = backend.search(&asked).now_or_never();
    found.context("a search without an embedding server waits for nothing")?
}

/// Asks the queries of both in turn. Which of them is asked first changes, as it reads the postings into the caches for the other.
fn compare(which: &str, nodes: [&Node; 2], queries: &[String], seconds: f64) -> Result<()> {
    let mut took = [Vec::new(), Vec::new()];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut order = [0, 1];
    while took[0].is_empty() || Instant::now() < end {
        for query in queries {
            for which in order {
                let begun = Instant::now();
                found(nodes[which], query)?;
                took[which].push(begun.elapsed());
            }
        }
        order.reverse();
    }
    let [with, without] = took.map(|mut took| percentile(&mut took, 50));
    println!(
        "p50 of {which}: {:.0} µs with synonyms, {:.0} µs without; ratio {:.2}",
        micros(with),
        micros(without),
        micros(with) / micros(without)
    );
    Ok(())
}

/// Searches while a thread publishes all synonyms again and again.
fn reload(node: &mut Node, queries: &[String], synonyms: &[String], seconds: f64) -> Result<()> {
    let (backend, publisher) = (&node.backend, &mut node.publisher);
    let ends = AtomicBool::new(false);
    let searches = |until: &dyn Fn() -> bool| {
        let (mut took, mut failed) = (Vec::new(), 0);
        for query in queries.iter().cycle() {
            if until() {
                break;
            }
            let begun = Instant::now();
            let is_found = search(backend, query).is_ok_and(|found| !found.titles.is_empty());
            took.push(begun.elapsed());
            failed += usize::from(!is_found);
        }
        (took, failed)
    };
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut quiet, _) = searches(&|| Instant::now() >= end);
    let (mut busy, failed, reloads) = thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            // As the thread in which a subscriber applies what takes long.
            let _ = rustix::process::nice(10);
            let mut reloads = 0;
            while !ends.load(Ordering::Relaxed) {
                reloads += 1;
                publish(publisher, synonyms, Revision(1 + reloads));
            }
            reloads
        });
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let (took, failed) = searches(&|| Instant::now() >= end);
        ends.store(true, Ordering::Relaxed);
        let reloads = publishing
            .join()
            .map_err(|_| anyhow::anyhow!("publishing ended by a panic"))?;
        anyhow::Ok((took, failed, reloads))
    })?;
    ensure!(failed == 0, "{failed} searches failed or found nothing");
    let count = busy.len();
    println!(
        "while they are published {reloads} times: {count} searches, none failed; p99 {:.0} µs ({:.0} µs before), longest {:.1} ms ({:.1} ms before)",
        micros(percentile(&mut busy, 99)),
        micros(percentile(&mut quiet, 99)),
        micros(percentile(&mut busy, 100)) / 1e3,
        micros(percentile(&mut quiet, 100)) / 1e3,
    );
    Ok(())
}

fn percentile(took: &mut [Duration], percent: usize) -> Duration {
    took.sort_unstable();
    let last = took.len().saturating_sub(1);
    took.get(last * percent / 100).copied().unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
