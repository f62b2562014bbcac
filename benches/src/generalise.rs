//! Near look-ups: how many utterances that nobody corrected are answered right, and what that costs beside exact look-ups.
//!
//! Without a data set phrases are made up. With one (`--dataset`, train.csv and test.csv as of `emend replay`) the
//! evaluation comes first, a line for each amount that is learned, each figure the mean over the seeds.

use std::{
    borrow::Cow,
    hint::black_box,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::Args;
use emend_base::{Entropy, SystemClock};
use emend_client::{
    LearnedView,
    view::{Fact, Publisher},
};
use emend_core::{
    Kind, Learned, Namespace, NearLookup, ResourceValue, Revision,
    generalise::{Index, Method},
};
use emend_lab::{
    generalise::{MIN_CONFIDENCE, Score, Share, learn, score},
    replay::dataset::Dataset,
};
use tokio::time::Instant;

use crate::{
    lookup::subjects::{NAMESPACE, fact},
    memory,
};

/// What phrases are looked up as.
const KIND: Kind = Kind::InvocationPhrase;

/// Near look-ups: what they answer right, and what they cost.
#[derive(Debug, Args)]
pub(crate) struct Generalise {
    /// A directory with train.csv and test.csv: evaluate on them first.
    #[arg(long)]
    dataset: Option<PathBuf>,
    /// A directory with vectors in Model2Vec's format or a sentence encoder in ONNX: evaluate with them, too.
    #[arg(long, requires = "dataset")]
    vectors: Option<PathBuf>,
    /// Draws over which figures are averaged, where less than everything is learned.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Learned phrases of which time and memory are measured.
    #[arg(long, default_value_t = 10_000)]
    phrases: usize,
    /// Choices that they stand for.
    #[arg(long, default_value_t = 150)]
    choices: usize,
}

/// Runs the evaluation and the benchmark.
pub(crate) fn run(args: &Generalise) -> Result<()> {
    if let Some(directory) = &args.dataset {
        let dataset = load(directory)?;
        evaluate(&dataset, args.seeds, &Method::Lexical);
        if let Some(directory) = &args.vectors {
            let before = memory::resident()?;
            let method = Method::Vectors(emend_vectors::read(directory)?);
            let kibibytes = memory::resident()?.saturating_sub(before);
            cost_with_vectors(&dataset, &method, kibibytes);
            evaluate(&dataset, args.seeds, &method);
        }
    }
    cost(args)
}

fn load(directory: &Path) -> Result<Dataset> {
    let read = |name: &str| -> Result<Vec<(String, String)>> {
        let path = directory.join(name);
        let mut rows = csv::Reader::from_path(&path).with_context(|| path.display().to_string())?;
        let rows = rows.deserialize().collect::<Result<_, _>>();
        rows.with_context(|| path.display().to_string())
    };
    Ok(Dataset::new(read("train.csv")?, read("test.csv")?))
}

fn evaluate(dataset: &Dataset, seeds: u64, method: &Method) {
    println!(
        "test.csv by what was learned of train.csv, by words{}; confident: at {MIN_CONFIDENCE} and above; means of {seeds} \
         seeds",
        if method.hash().is_empty() {
            " alone"
        } else {
            " and vectors"
        }
    );
    println!(
        "{:>16} {:>8} {:>10} {:>10} {:>12} {:>11}",
        "learned", "right", "confident", "of it right", "calib. error", "left alone"
    );
    for (name, share) in [
        ("2 a label", Share::Each(2)),
        ("3 a label", Share::Each(3)),
        ("5 a label", Share::Each(5)),
        ("10 a label", Share::Each(10)),
        ("885 at random", Share::Random(885)),
        ("all", Share::All),
        ("without 15", Share::Without(15)),
    ] {
        // All is all, whatever is drawn.
        let seeds = if share == Share::All { 1 } else { seeds };
        let scores: Vec<Score> = (1..=seeds)
            .map(|seed| {
                let (mut index, strangers) = learn(dataset, share, seed, method.clone());
                index.adopt(index.refit());
                score(&index, dataset, &strangers)
            })
            .collect();
        let mean = Score::mean(&scores);
        let percent = |share: f64| {
            if share.is_nan() {
                "-".into()
            } else {
                format!("{:.1} %", 100.0 * share)
            }
        };
        println!(
            "{name:>16} {:>8} {:>10} {:>10} {:>12.3} {:>11}",
            percent(mean.right),
            percent(mean.covered),
            percent(mean.precision),
            mean.calibration_error,
            percent(mean.left_alone),
        );
    }
    println!();
}

/// What vectors cost where all of train.csv is learned: of the words of people, because an encoder takes the longer the more tokens it
/// is given.
fn cost_with_vectors(dataset: &Dataset, method: &Method, kibibytes: u64) {
    let (mut index, _) = learn(dataset, Share::All, 1, method.clone());
    let fit = |index: &mut Index| {
        let begun = Instant::now();
        index.adopt(index.refit());
        begun.elapsed()
    };
    let (first, next) = (fit(&mut index), fit(&mut index));
    let asked: Vec<String> = dataset
        .test
        .iter()
        .map(|asked| asked.key.as_str().to_owned())
        .collect();
    let near = |phrase: &str| index.near(phrase, &|_| false, 0.0);
    println!("with vectors, all learned; microseconds of every call");
    println!("{:>34} {:>10} {:>10}", "", "median", "p99");
    for name in ["near look-up, asked the first time", "near look-up, asked again"] {
        print_row(name, &sorted(&asked, near));
    }
    println!(
        "first fit {:.1} s, the next {:.1} s; near look-ups hold {:.1} MiB, vectors {:.1} MiB before the first",
        first.as_secs_f64(),
        next.as_secs_f64(),
        mebibytes(index.bytes() as u64 / 1024),
        mebibytes(kibibytes)
    );
    println!();
}

/// Phrases of eight to fourteen words of which some are their choice's own.
fn made_up(count: usize, choices: usize, seed: u64) -> Vec<(String, String)> {
    let draw = Entropy::seeded(seed);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place below a small number"
    )]
    let below = |bound: usize| (draw.fraction() * bound as f64) as usize;
    (0..count)
        .map(|number| {
            let choice = number % choices;
            let words: Vec<String> = (0..8 + below(7))
                .map(|place| {
                    if place % 3 == 0 {
                        format!("own{}of{choice}", below(12))
                    } else {
                        format!("word{}", below(3_000))
                    }
                })
                .collect();
            (words.join(" "), format!("choice{choice}"))
        })
        .collect()
}

/// A node and who publishes its states.
struct Node {
    publisher: Publisher,
    view: LearnedView,
    namespace: Namespace,
}

impl Node {
    /// One that has learned phrases, and answers near ones or nothing but exact ones.
    fn new(learned: &[(String, String)], is_near: bool) -> Result<Self> {
        let (mut publisher, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
        if is_near {
            view.keep_near();
        }
        let values = learned
            .iter()
            .map(|(phrase, choice)| fact(phrase, Cow::Owned(value(choice)), 1));
        // From any confidence on, so that every near look-up does all there is to do.
        let setting = Learned::NearLookup(Some(NearLookup::new(Some(0.0), None, "")?));
        let setting = Fact {
            kind: Kind::NearLookup,
            ..fact(KIND.name(), Cow::Owned(ResourceValue::of(setting)), 1)
        };
        publisher.replace(learned.len(), values.chain([setting]), Revision(1));
        publisher.fit_near();
        Ok(Self {
            publisher,
            view,
            namespace: Namespace::parse(NAMESPACE)?,
        })
    }

    fn exact(&self, phrase: &str) -> bool {
        let answer = self.view.resolve(&self.namespace, KIND, phrase, None, []);
        answer.is_ok_and(|answer| answer.found.is_some())
    }

    fn near(&self, phrase: &str) -> bool {
        let answer = self.view.resolve_near(&self.namespace, KIND, phrase, None, []);
        answer.is_ok_and(|answer| answer.near.is_some())
    }

    fn learn(&mut self, phrase: &str) {
        let learned = fact(phrase, Cow::Owned(value("choice0")), 2);
        self.publisher.apply([learned], Revision(2));
    }
}

fn value(choice: &str) -> ResourceValue {
    ResourceValue::of(Learned::Verb(choice.to_owned()))
}

fn cost(args: &Generalise) -> Result<()> {
    let learned = made_up(args.phrases, args.choices, 7);
    let asked: Vec<String> = made_up(5_000, args.choices, 8)
        .into_iter()
        .map(|row| row.0)
        .collect();
    let known: Vec<String> = learned
        .iter()
        .take(asked.len())
        .map(|row| row.0.clone())
        .collect();
    let before = memory::resident()?;
    let mut exact = Node::new(&learned, false)?;
    let exact_kibibytes = memory::resident()?.saturating_sub(before);
    let begun = Instant::now();
    let mut near = Node::new(&learned, true)?;
    let fit = begun.elapsed();
    let updates = &asked[..500.min(asked.len())];
    let rows = [
        ("near look-up", sorted(&asked, |phrase| near.near(phrase))),
        (
            "exact look-up, of a known phrase",
            sorted(&known, |phrase| exact.exact(phrase)),
        ),
        (
            "exact look-up, of an unknown one",
            sorted(&asked, |phrase| exact.exact(phrase)),
        ),
        (
            "a phrase learned, near and exact",
            sorted(updates, |phrase| near.learn(phrase)),
        ),
        (
            "a phrase learned, exact alone",
            sorted(updates, |phrase| exact.learn(phrase)),
        ),
    ];
    println!(
        "{} phrases of {} choices; microseconds of every call",
        args.phrases, args.choices
    );
    println!("{:>34} {:>10} {:>10}", "", "median", "p99");
    for (name, nanos) in rows {
        print_row(name, &nanos);
    }
    let mut index = Index::new(Method::Lexical);
    index.replace(learned.iter().map(|(phrase, choice)| (&**phrase, &**choice)));
    index.adopt(index.refit());
    println!(
        "first fit {:.1} s; near look-ups hold {:.1} MiB, exact ones alone {:.1} MiB",
        fit.as_secs_f64(),
        mebibytes(index.bytes() as u64 / 1024),
        mebibytes(exact_kibibytes)
    );
    Ok(())
}

/// The median and the 99th percentile of calls.
fn print_row(name: &str, nanos: &[u128]) {
    let at = |percent: usize| micros(nanos[nanos.len() * percent / 100]);
    println!("{name:>34} {:>10.2} {:>10.2}", at(50), at(99));
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of one call")]
fn micros(nanos: u128) -> f64 {
    nanos as f64 / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}

/// Nanoseconds of each call, ascending.
fn sorted<T>(phrases: &[String], mut call: impl FnMut(&str) -> T) -> Vec<u128> {
    let mut nanos: Vec<u128> = phrases
        .iter()
        .map(|phrase| {
            let begun = Instant::now();
            black_box(call(phrase));
            begun.elapsed().as_nanos()
        })
        .collect();
    nanos.sort_unstable();
    nanos
}
