//! A node in Rust beside the packages for Python and Node. All follow the same service, hold the same phrases and are asked the same
//! questions; `cargo xtask bench clients` runs each in a process of its own and prints them side by side.
//!
//! ```text
//! measure LEARNING NAMESPACE ROWS
//! ```
//!
//! LEARNING is the learning service's address, ROWS what was learned in the namespace: `phrase,verb` and a line for each.

use std::{collections::HashMap, env, fs, hint::black_box, time::Duration};

use anyhow::{Context as _, Result, ensure};
use emend_client::{Kind, Lifecycle, Namespace, Subscriber};
use serde_json::json;
use tokio::{runtime::Builder, time::Instant};

/// How many look-ups a round times together.
const SAMPLE: usize = 1 << 16;
/// How far the phrases of a sample are apart, so that no cache has the next one: a prime.
const STRIDE: usize = 245_489;
const ROUNDS: usize = 9;

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [learning, name, file] = &*words else {
        anyhow::bail!("measure LEARNING NAMESPACE ROWS");
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let namespace = Namespace::parse(name)?;
    let lifecycle = Lifecycle::new();
    let begins = Instant::now();
    let node = runtime.block_on(async {
        let node = Subscriber::builder(format!("http://{learning}"), "measured-in-rust")
            .namespace(name.clone())
            .spawn(&lifecycle)
            .await?;
        node.view().wait_until_filled().await;
        Ok::<_, anyhow::Error>(node)
    })?;
    let load = begins.elapsed();
    let memory = resident()?;

    let text = fs::read_to_string(file)?;
    let rows = text.lines().skip(1).map(|line| line.split_once(','));
    let rows: Vec<(&str, &str)> = rows.collect::<Option<_>>().context("phrase,verb")?;
    ensure!(!rows.is_empty(), "no phrases");
    let known: Vec<&str> = (0..SAMPLE)
        .map(|place| rows[place * STRIDE % rows.len()].0)
        .collect();
    let unknown: Vec<String> = known
        .iter()
        .map(|phrase| format!("{phrase} nobody knows"))
        .collect();
    let view = node.view();
    let is_found = |phrase: &str| {
        let answer = view.resolve(&namespace, Kind::InvocationPhrase, phrase, None, []);
        answer.is_ok_and(|answer| answer.found.is_some())
    };
    let known_ns = nanoseconds(&known, is_found)?;
    let unknown_ns = nanoseconds(&unknown, |phrase| !is_found(phrase))?;
    let map: HashMap<&str, &str> = rows.iter().copied().collect();
    let map_ns = nanoseconds(&known, |phrase| map.contains_key(phrase))?;
    println!(
        "{}",
        json!({
            "load_s": load.as_secs_f64(), "memory_mb": memory, "known_ns": known_ns, "unknown_ns": unknown_ns,
            "map_ns": map_ns,
        })
    );
    runtime.block_on(lifecycle.shutdown(Duration::from_secs(2)));
    Ok(())
}

/// The memory of this process in MB (`VmRSS` of proc(5)).
fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    let kibibytes: u32 = kibibytes.context("no VmRSS in /proc/self/status")?.parse()?;
    Ok(f64::from(kibibytes) * 1_024.0 / 1e6)
}

/// The median of some rounds, for one look-up. Fails if an answer is wrong.
fn nanoseconds<T: AsRef<str>>(phrases: &[T], is_right: impl Fn(&str) -> bool) -> Result<f64> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begins = Instant::now();
        let right = phrases
            .iter()
            .filter(|phrase| black_box(is_right(phrase.as_ref())))
            .count();
        let took = begins.elapsed();
        ensure!(
            right == phrases.len(),
            "{} answers are wrong",
            phrases.len() - right
        );
        rounds.push(took.as_secs_f64() * 1e9 / f64::from(u32::try_from(phrases.len())?));
    }
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[ROUNDS / 2])
}
