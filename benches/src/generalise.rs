//! Near look-ups: how many utterances that nobody corrected are answered right, and what that costs beside exact look-ups.
//!
//! Without a data set phrases are made up. With one (`--dataset`, train.csv and test.csv as of `emend replay`) the
//! evaluation comes first, a line for each amount that is learned, each figure the mean over the seeds.

use std::{
    collections::HashMap,
    hint::black_box,
    path::{Path, PathBuf},
    sync::RwLock,
};

use anyhow::{Context as _, Result};
use clap::Args;
use emend_base::Entropy;
use emend_core::generalise::{Index, Method};
use emend_lab::{
    generalise::{MIN_CONFIDENCE, Score, Share, learn, score},
    replay::dataset::Dataset,
};
use tokio::time::Instant;

/// Near look-ups: what they answer right, and what they cost.
#[derive(Debug, Args)]
pub(crate) struct Generalise {
    /// A directory with train.csv and test.csv: evaluate on them first.
    #[arg(long)]
    dataset: Option<PathBuf>,
    /// A directory with vectors in Model2Vec's format: evaluate with them, too.
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
        if let Some(vectors) = &args.vectors {
            evaluate(
                &dataset,
                args.seeds,
                &Method::Vectors(emend_vectors::read(vectors)?),
            );
        }
    }
    cost(args);
    Ok(())
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
        ("1 a label", Share::Each(1)),
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
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        println!(
            "{name:>16} {:>8} {:>10} {:>10} {:>12.3} {:>11}",
            percent(mean.right),
            percent(mean.covered),
            percent(mean.precision),
            mean.calibration_error,
            if mean.left_alone.is_nan() {
                "-".into()
            } else {
                percent(mean.left_alone)
            },
        );
    }
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

fn cost(args: &Generalise) {
    let learned = made_up(args.phrases, args.choices, 7);
    let asked = made_up(5_000, args.choices, 8);
    let mut index = Index::new(Method::Lexical);
    for (phrase, choice) in &learned {
        index.learn(phrase, choice);
    }
    let begun = Instant::now();
    let fitted = index.refit();
    let refit = begun.elapsed();
    index.adopt(fitted);
    let exact: RwLock<HashMap<String, String>> = RwLock::new(learned.into_iter().collect());
    let near = sorted(&asked, 3, |phrase| index.near(phrase, &|_| false, 0.0).is_some());
    let map = sorted(&asked, 3, |phrase| {
        exact.read().is_ok_and(|exact| exact.contains_key(phrase))
    });
    let mut changed = index.clone();
    let updates = sorted(&asked[..500.min(asked.len())], 1, |phrase| {
        changed.learn(phrase, "choice0");
        changed.is_behind()
    });
    println!(
        "{} phrases of {} choices; microseconds",
        args.phrases, args.choices
    );
    println!("{:>32} {:>10} {:>10}", "", "median", "p99");
    for (name, nanos) in [
        ("near look-up", &near),
        ("exact look-up, locked HashMap", &map),
        ("one phrase learned", &updates),
    ] {
        let at = |percent: usize| micros(nanos[nanos.len() * percent / 100]);
        println!("{name:>32} {:>10.2} {:>10.2}", at(50), at(99));
    }
    println!(
        "refit {:.1} s; near look-ups hold {} MiB",
        refit.as_secs_f64(),
        index.bytes() >> 20
    );
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of one call")]
fn micros(nanos: u128) -> f64 {
    nanos as f64 / 1_000.0
}

/// Nanoseconds of each call, ascending; where a phrase can be asked several `times`, of its fastest, which other programs
/// disturb least.
fn sorted(asked: &[(String, String)], times: usize, mut ask: impl FnMut(&str) -> bool) -> Vec<u128> {
    let mut nanos: Vec<u128> = asked
        .iter()
        .map(|(phrase, _)| {
            let times = (0..times).map(|_| {
                let begun = Instant::now();
                black_box(ask(phrase));
                begun.elapsed().as_nanos()
            });
            times.min().unwrap_or_default()
        })
        .collect();
    nanos.sort_unstable();
    nanos
}
