//! Whether a host is blocked, in a node's view: among a thousand rules and among many, compared with a locked hash map of
//! patterns that is asked for the host, and for each name above it with and without a wildcard.
//!
//! Hosts have three labels and are in their form. Half of them are blocked by a rule for the name above them, the others are
//! in no rule. Each figure is the median over batches, which is least sensitive to other programs on the machine.

use std::{borrow::Cow, collections::HashMap, hint::black_box, sync::RwLock, time::Duration};

use anyhow::{Context as _, Result};
use clap::Args;
use emend_base::{Entropy, SystemClock};
use emend_client::{LearnedView, view::Fact};
use emend_core::{
    DomainRule, Kind, Learned, Namespace, ResourceValue, Revision, evidence::suffixes, kinds::HUMAN,
};
use tokio::time::Instant;

/// Look-ups timed together.
const BATCH: usize = 2_000;
const NAMESPACE: &str = "research";

/// Whether hosts are blocked, against a locked hash map.
#[derive(Debug, Args)]
pub(crate) struct Domains {
    /// Numbers of rules to compare.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 1_000_000])]
    rules: Vec<usize>,
    /// How long each figure is measured, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(args: &Domains) -> Result<()> {
    println!("hosts of three labels, half of them blocked; medians of batches of {BATCH}");
    println!(
        "{:>10} {:>22} {:>28} {:>8}",
        "rules", "ns, LearnedView", "ns, RwLock<std HashMap>", "ratio"
    );
    for &rules in &args.rules {
        let patterns: Vec<String> = (0..rules).map(|id| format!("site{id}.example")).collect();
        let asked = hosts(rules);
        let within = Duration::from_secs_f64(args.seconds);
        let ours = of_view(&patterns, &asked, within)?;
        let locked = of_map(&patterns, &asked, within);
        println!("{rules:>10} {ours:>22.0} {locked:>28.0} {:>8.2}", ours / locked);
    }
    Ok(())
}

/// The hosts to ask for, in no order.
fn hosts(rules: usize) -> Vec<String> {
    let draw = Entropy::seeded(7);
    (0..200_000)
        .map(|number| {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place below the number of rules"
            )]
            let id = (draw.fraction() * rules as f64) as usize;
            let known = if number % 2 == 0 { "site" } else { "other" };
            format!("www{}.{known}{id}.example", number % 7)
        })
        .collect()
}

fn of_view(patterns: &[String], hosts: &[String], within: Duration) -> Result<f64> {
    let (mut publisher, view) = LearnedView::new(&Entropy::system(), SystemClock::shared());
    let block = DomainRule::parse("block").map_err(|invalid| anyhow::anyhow!("{invalid}"))?;
    let facts = patterns.iter().map(|pattern| Fact {
        namespace: NAMESPACE,
        kind: Kind::DomainRule,
        key: pattern,
        qualifier: HUMAN,
        user_id: "",
        revision: Revision(1),
        value: Some(Cow::Owned(ResourceValue::new(
            pattern.as_str(),
            Learned::DomainRule(block.into()),
        ))),
    });
    publisher.replace(patterns.len(), facts, Revision(1));
    let namespace = Namespace::parse(NAMESPACE).context("a namespace")?;
    let mut reader = view.reader();
    Ok(median(hosts, within, |host| {
        reader.read().is_blocked(&namespace, host)
    }))
}

fn of_map(patterns: &[String], hosts: &[String], within: Duration) -> f64 {
    let rules: HashMap<(String, String), bool> = patterns
        .iter()
        .map(|pattern| ((NAMESPACE.to_owned(), pattern.clone()), true))
        .collect();
    let rules = RwLock::new(rules);
    median(hosts, within, |host| {
        let Ok(rules) = rules.read() else { return false };
        let decided = suffixes(host).find_map(|name| {
            let wildcard = (name.len() < host.len()).then(|| format!("*.{name}"));
            wildcard
                .and_then(|pattern| rules.get(&(NAMESPACE.to_owned(), pattern)))
                .or_else(|| rules.get(&(NAMESPACE.to_owned(), name.to_owned())))
        });
        decided.copied().unwrap_or(false)
    })
}

/// Nanoseconds per look-up.
fn median(hosts: &[String], within: Duration, mut is_blocked: impl FnMut(&str) -> bool) -> f64 {
    let mut nanos = Vec::new();
    let end = Instant::now() + within;
    for batch in hosts.chunks_exact(BATCH).cycle() {
        let begun = Instant::now();
        let blocked = batch.iter().filter(|host| is_blocked(host)).count();
        let elapsed = begun.elapsed();
        assert_eq!(black_box(blocked), BATCH / 2, "half of them");
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        nanos.push(elapsed.as_nanos() as f64 / BATCH as f64);
        if Instant::now() > end {
            break;
        }
    }
    nanos.sort_unstable_by(f64::total_cmp);
    nanos[nanos.len() / 2]
}
