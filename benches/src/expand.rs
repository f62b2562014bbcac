//! Terms in running text: with many and with few of them, found by a matcher and expanded in a node's view, compared with
//! aho-corasick on the raw text, which neither ignores anything nor knows what a word is.
//!
//! Terms are words of kanji, katakana and Latin letters; every fourth word of the texts is a term, however many there are, so
//! that the rates differ by the number of terms alone. Each figure is the median over passes through texts of about a
//! kilobyte. How long the matcher takes to build is printed with it: it is built beside the look-ups.

use std::{borrow::Cow, hint::black_box, sync::Arc, time::Duration};

use aho_corasick::{AhoCorasick, MatchKind};
use anyhow::{Context as _, Result};
use clap::Args;
use emend_base::{Entropy, SystemClock};
use emend_client::{
    ExpandMode, LearnedView,
    view::{Fact, Publisher},
};
use emend_core::{
    Kind, Learned, Namespace, Relation, ResourceValue, Revision, Synonym, normalize,
    search::{Matcher, find},
};
use tokio::time::Instant;

/// The search application.
pub(crate) const NAMESPACE: &str = "cards";
/// Terms of one set.
pub(crate) const SET: usize = 4;
/// Texts, each of about a kilobyte.
const TEXTS: usize = 400;

/// Terms in running text, against aho-corasick.
#[derive(Debug, Args)]
pub(crate) struct Expand {
    /// How many terms there are.
    #[arg(long, default_value_t = 90_000)]
    terms: usize,
    /// How many there are where they are few.
    #[arg(long, default_value_t = 100)]
    few: usize,
    /// How long each figure is measured, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(args: &Expand) -> Result<()> {
    let draw = Draw(Entropy::seeded(7));
    let terms = terms(&draw, args.terms.max(args.few));
    let within = Duration::from_secs_f64(args.seconds);
    println!("{TEXTS} texts of a kilobyte; medians of passes; MB/s");
    println!(
        "{:>8} {:>12} {:>16} {:>16} {:>10} {:>10}",
        "terms", "find", "LearnedView", "aho-corasick", "ratio", "build"
    );
    let mut rates = Vec::new();
    for count in [args.terms, args.few] {
        let some = &terms[..count];
        let texts = texts(&draw, some);
        let begun = Instant::now();
        let matcher = Matcher::new(some.iter().map(|term| Arc::from(normalize(term))));
        let built = begun.elapsed();
        let found = rate(&texts, within, |text| find(text, &[&matcher], |_| Some(())).len());
        let expanded = of_view(some, &texts, within)?;
        let peer = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(some)?;
        let raw = rate(&texts, within, |text| peer.find_iter(text).count());
        println!(
            "{count:>8} {found:>12.1} {expanded:>16.1} {raw:>16.1} {:>10.2} {:>8.0}ms",
            found / raw,
            built.as_secs_f64() * 1e3
        );
        rates.push((found, expanded));
    }
    if let [many, few] = rates[..] {
        println!(
            "with {} terms as a share of the rate with {}: find {:.2}, LearnedView {:.2}",
            args.terms,
            args.few,
            many.0 / few.0,
            many.1 / few.1
        );
    }
    Ok(())
}

/// Expands by keyword in a view in which the terms stand for the first of their sets.
fn of_view(terms: &[String], texts: &[String], within: Duration) -> Result<f64> {
    let (mut publisher, view) = LearnedView::new(&Entropy::system(), SystemClock::shared());
    publish(&mut publisher, terms, Revision(1));
    let namespace = Namespace::parse(NAMESPACE).context("a namespace")?;
    let mut reader = view.reader();
    Ok(rate(texts, within, |text| {
        let expanded = reader.read().expand(&namespace, text, ExpandMode::Keyword, None);
        expanded.groups.len()
    }))
}

/// Publishes the terms as what was learned, each standing for the first of its set.
pub(crate) fn publish(publisher: &mut Publisher, terms: &[String], revision: Revision) {
    let keys: Vec<String> = terms.iter().map(|term| normalize(term)).collect();
    let facts = (0..terms.len()).filter(|id| id % SET != 0).map(|id| {
        let first = id - id % SET;
        let learned = Learned::Synonym(Synonym {
            relation: Relation::Equivalent,
            representative: terms[first].clone(),
        });
        Fact {
            namespace: NAMESPACE,
            kind: Kind::Synonym,
            key: &keys[id],
            qualifier: &keys[first],
            user_id: "",
            revision,
            value: Some(Cow::Owned(ResourceValue::new(terms[id].as_str(), learned))),
        }
    });
    publisher.replace(terms.len(), facts, revision);
}

/// Megabytes a second.
fn rate(texts: &[String], within: Duration, mut found: impl FnMut(&str) -> usize) -> f64 {
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut rates = Vec::new();
    let end = Instant::now() + within;
    while rates.len() < 3 || Instant::now() < end {
        let begun = Instant::now();
        let all: usize = texts.iter().map(|text| found(text)).sum();
        let elapsed = begun.elapsed();
        black_box(all);
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        rates.push(bytes as f64 / 1e6 / elapsed.as_secs_f64());
    }
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Draws words.
pub(crate) struct Draw(pub(crate) Entropy);

impl Draw {
    /// A number below `bound`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place below the bound"
    )]
    fn below(&self, bound: usize) -> usize {
        (self.0.fraction() * bound as f64) as usize
    }

    fn word(&self, from: char, letters: usize, lengths: std::ops::Range<usize>) -> String {
        let length = lengths.start + self.below(lengths.len());
        (0..length)
            .filter_map(|_| char::from_u32(u32::from(from) + u32::try_from(self.below(letters)).ok()?))
            .collect()
    }

    /// A word of kanji, katakana or Latin letters.
    fn content(&self) -> String {
        match self.below(4) {
            0 | 1 => self.word('一', 2_000, 2..5),
            2 => self.word('ア', 80, 3..8),
            _ => self.word('a', 26, 3..9),
        }
    }
}

/// Words, all different.
pub(crate) fn terms(draw: &Draw, count: usize) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let words = std::iter::repeat_with(|| draw.content());
    words
        .filter(|word| seen.insert(word.clone()))
        .take(count)
        .collect()
}

/// Sentences: words with particles between them, every fourth a term.
fn texts(draw: &Draw, terms: &[String]) -> Vec<String> {
    let text = |_| {
        let mut text = String::new();
        while text.len() < 1_000 {
            if draw.below(4) == 0 {
                text.push_str(&terms[draw.below(terms.len())]);
            } else {
                text.push_str(&draw.content());
            }
            match draw.below(6) {
                0 => text.push('、'),
                1 => text.push(' '),
                _ => text.push_str(&draw.word('ぁ', 80, 1..4)),
            }
        }
        text
    };
    (0..TEXTS).map(text).collect()
}
