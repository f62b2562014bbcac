//! Look-ups in a node's view, compared with the obvious alternatives: a locked hash map, and a persistent map behind an
//! atomic pointer. All hold the same phrases, receive the same updates while being read, and are asked the same
//! questions.
//!
//! The phrases lie in memory in the order in which they are asked, just as a freshly normalised phrase is in the cache.
//! Each figure is the median over batches, which is least sensitive to other programs on the machine.

pub(crate) mod subjects;

use std::{
    borrow::Cow,
    hint::black_box,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use clap::Args;
use emend_base::{Entropy, SystemClock};
use emend_client::LearnedView;
use emend_core::{Learned, Namespace, NormalizedKey, ResourceValue, Revision};
use tokio::time::Instant;

use self::subjects::{Answer, ByReader, ByView, Change, Locked, NAMESPACE, Persistent, Subject, View, fact};

/// Look-ups timed together.
const BATCH: u32 = 2_000;
/// Changes per update.
const CHANGES: usize = 10;

/// Look-ups in a node, against a locked hash map and a persistent map.
#[derive(Debug, Args)]
pub(crate) struct Lookup {
    /// How many phrases are learned.
    #[arg(long, default_value_t = 1_000_000)]
    phrases: usize,
    /// Updates per second while looking up.
    #[arg(long, default_value_t = 20.0)]
    updates: f64,
    /// Threads that look up at the same time, in the second round.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// How long each figure is measured, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Distinct verbs that the phrases map to.
    #[arg(long, default_value_t = 5_000)]
    verbs: usize,
}

/// The phrases to look up, in order.
struct Questions {
    known: Vec<NormalizedKey>,
    unknown: Vec<NormalizedKey>,
    /// As many known as unknown ones, in no order that could be foreseen.
    mixed: Vec<NormalizedKey>,
}

/// Nanoseconds per look-up, each the median over batches.
struct Figures {
    /// Many independent look-ups: throughput of one thread.
    known: f64,
    unknown: f64,
    mixed: f64,
    /// Each look-up depends on the one before: latency of one query.
    serial: f64,
    /// Like `known`, with several threads.
    threads: f64,
    /// The longest update.
    update: Duration,
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(args: &Lookup) -> Result<()> {
    let draw = Draw(Entropy::seeded(7));
    let phrases: Vec<String> = (0..args.phrases).map(|id| phrase(id, "learned")).collect();
    let verb_of = |id: usize| format!("verb_of_the_application_{}", id % args.verbs.max(1));
    let unheard: Vec<String> = (0..args.phrases.min(200_000))
        .map(|id| phrase(id, "unheard"))
        .collect();
    // From all over what is learned.
    let some = phrases
        .iter()
        .step_by((phrases.len() / unheard.len().max(1)).max(1));
    let both: Vec<String> = unheard.iter().chain(some).cloned().collect();
    let questions = Questions {
        known: shuffled(&phrases, &draw)?,
        unknown: shuffled(&unheard, &draw)?,
        mixed: shuffled(&both, &draw)?,
    };
    println!(
        "{} phrases, {} verbs, {} updates/s of {CHANGES} changes while looking up; medians of batches of {BATCH}",
        args.phrases, args.verbs, args.updates
    );
    println!(
        "{:<28} {:>10} {:>10} {:>10} {:>10} {:>12} {:>14}",
        "ns per look-up", "known", "unknown", "mixed", "serial", "threads", "longest update"
    );

    let (mut publisher, view) = LearnedView::new(&Entropy::system(), SystemClock::shared());
    let verbs: Vec<String> = (0..args.phrases).map(verb_of).collect();
    let facts = phrases.iter().zip(&verbs).map(|(phrase, verb)| {
        let value = ResourceValue::of(Learned::Verb(verb.clone()));
        fact(phrase, Cow::Owned(value), 1)
    });
    publisher.replace(args.phrases, facts, Revision(1));
    let subject = View {
        learned: view,
        namespace: Namespace::parse(NAMESPACE).context("a namespace")?,
        publisher: publisher.into(),
    };
    let ours = measured(&ByReader(&subject), &questions, &phrases, args);
    show("LearnedView, a Reader", &ours, &ours);
    show(
        "LearnedView",
        &measured(&ByView(&subject), &questions, &phrases, args),
        &ours,
    );
    drop(subject);

    let answers = || {
        let answer = |verb: &String| Answer {
            value: verb.clone(),
            revision: 1,
        };
        phrases.iter().cloned().zip(verbs.iter().map(answer))
    };
    let subject = Locked(RwLock::new(answers().collect()));
    show(
        "RwLock<std HashMap>",
        &measured(&subject, &questions, &phrases, args),
        &ours,
    );
    drop(subject);

    let map = answers()
        .map(|(phrase, answer)| (phrase, Arc::new(answer)))
        .collect();
    let subject = Persistent(ArcSwap::from_pointee(map));
    show(
        "ArcSwap<imbl HashMap>",
        &measured(&subject, &questions, &phrases, args),
        &ours,
    );
    Ok(())
}

fn measured(subject: &impl Subject, questions: &Questions, phrases: &[String], args: &Lookup) -> Figures {
    let seconds = Duration::from_secs_f64(args.seconds);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let updating = scope.spawn(|| updates(subject, phrases, args, &stop));
        let known = median(batches(subject, &questions.known, 0, seconds, false));
        let unknown = median(batches(subject, &questions.unknown, 0, seconds, false));
        let mixed = median(batches(subject, &questions.mixed, 0, seconds, false));
        let serial = median(batches(subject, &questions.known, 0, seconds, true));
        let readers: Vec<_> = (0..args.threads)
            .map(|reader| {
                // Each thread starts at a different phrase.
                let start = questions.known.len() / args.threads * reader;
                scope.spawn(move || batches(subject, &questions.known, start, seconds, false))
            })
            .collect();
        let threads = readers
            .into_iter()
            .flat_map(|reader| reader.join().unwrap_or_default())
            .collect();
        let threads = median(threads);
        stop.store(true, Ordering::Relaxed);
        let update = updating.join().unwrap_or_default();
        Figures {
            known,
            unknown,
            mixed,
            serial,
            threads,
            update,
        }
    })
}

/// Applies updates at the configured rate; returns how long the longest took.
fn updates(subject: &impl Subject, phrases: &[String], args: &Lookup, stop: &AtomicBool) -> Duration {
    let draw = Draw(Entropy::seeded(11));
    let mut longest = Duration::ZERO;
    let mut revision = 1;
    if args.updates <= 0.0 {
        return longest;
    }
    while !stop.load(Ordering::Relaxed) {
        revision += 1;
        let changes: Vec<_> = (0..CHANGES)
            .map(|_| {
                let id = draw.below(phrases.len());
                Change::new(
                    &phrases[id],
                    format!("verb_of_the_application_{}", id % args.verbs.max(1)),
                )
            })
            .collect();
        let start = Instant::now();
        subject.update(&changes, revision);
        longest = longest.max(start.elapsed());
        thread::sleep(Duration::from_secs_f64(1.0 / args.updates).saturating_sub(start.elapsed()));
    }
    longest
}

/// Nanoseconds per look-up, one figure per batch.
fn batches(
    subject: &impl Subject,
    questions: &[NormalizedKey],
    start: usize,
    within: Duration,
    serial: bool,
) -> Vec<f64> {
    let mut ask = subject.asker();
    let end = Instant::now() + within;
    let mut nanos = Vec::new();
    let mut at = start;
    while Instant::now() < end {
        let begun = Instant::now();
        let mut sum = 0;
        for _ in 0..BATCH {
            let (length, revision) = ask(&questions[at]).unwrap_or_default();
            // If the answer decides what is asked next, a look-up cannot start before the last one has ended. No answer
            // is that long, but the compiler does not know that.
            let step = if serial { black_box(length) >> 40 } else { 0 };
            sum += length + usize::try_from(revision).unwrap_or(0);
            at += 1 + step;
            if at >= questions.len() {
                at = 0;
            }
        }
        black_box(sum);
        nanos.push(begun.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH));
    }
    nanos
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn show(name: &str, figures: &Figures, ours: &Figures) {
    let cell = |of: fn(&Figures) -> f64| {
        let ratio = of(figures) / of(ours);
        format!("{:.0} ({ratio:.1}x)", of(figures))
    };
    println!(
        "{name:<28} {:>10} {:>10} {:>10} {:>10} {:>12} {:>14}",
        cell(|figures| figures.known),
        cell(|figures| figures.unknown),
        cell(|figures| figures.mixed),
        cell(|figures| figures.serial),
        cell(|figures| figures.threads),
        format!("{:.1?}", figures.update),
    );
}

/// A distinct phrase, about as long as a typical query.
pub(crate) fn phrase(id: usize, word: &str) -> String {
    const VERBS: [&str; 7] = [
        "set up",
        "show me",
        "please book",
        "cancel",
        "find",
        "compare",
        "send",
    ];
    const NOUNS: [&str; 5] = [
        "a csa",
        "the fund report",
        "my transfer",
        "an isda",
        "all open trades",
    ];
    format!(
        "{} {} {word} {id}",
        VERBS[id % VERBS.len()],
        NOUNS[id / 7 % NOUNS.len()]
    )
}

/// Allocated in the order in which they will be asked.
fn shuffled(phrases: &[String], draw: &Draw) -> Result<Vec<NormalizedKey>> {
    let mut order: Vec<usize> = (0..phrases.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, draw.below(last + 1));
    }
    let parsed = order.into_iter().map(|id| NormalizedKey::parse(&phrases[id]));
    parsed
        .collect::<Result<_, _>>()
        .context("a phrase that cannot be normalised")
}

struct Draw(Entropy);

impl Draw {
    fn below(&self, bound: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        // Modulo bias towards small numbers is below one part in 10^12.
        usize::from_le_bytes(bytes) % bound.max(1)
    }
}
