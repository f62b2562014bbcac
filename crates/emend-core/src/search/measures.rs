//! How good a ranked list of results is, against judgements by grade: 0 is not relevant, more is better.
//!
//! The definitions are those of `trec_eval`: precision and recall at a cut-off and the reciprocal rank take any grade above 0 as
//! relevant; the discounted cumulative gain is that of Järvelin and Kekäläinen ("Cumulated gain-based evaluation of IR
//! techniques", 2002) with the grade itself as gain and the logarithm of base 2 of rank + 1 as discount.

use std::collections::{HashMap, HashSet};

/// What is relevant to one query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged(HashMap<String, u32>);

impl Judged {
    /// Judgements: a result's id and its grade. The last one of an id counts.
    pub fn new(grades: impl IntoIterator<Item = (String, u32)>) -> Self {
        Self(grades.into_iter().collect())
    }

    /// A result's grade; 0 if it was not judged.
    pub fn grade(&self, id: &str) -> u32 {
        self.0.get(id).copied().unwrap_or(0)
    }

    /// The results that were judged, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// How many results are relevant.
    pub fn relevant(&self) -> usize {
        self.0.values().filter(|grade| **grade > 0).count()
    }

    /// The grades of a ranked list. A result that comes again counts once, where it came first.
    fn grades(&self, ranked: &[impl AsRef<str>]) -> Vec<u32> {
        let mut seen = HashSet::new();
        let grade = |id: &str| {
            if seen.insert(id.to_owned()) {
                self.grade(id)
            } else {
                0
            }
        };
        ranked.iter().map(AsRef::as_ref).map(grade).collect()
    }

    /// How many of the first `k` are relevant.
    fn relevant_within(&self, ranked: &[impl AsRef<str>], k: usize) -> usize {
        let grades = self.grades(ranked);
        grades.iter().take(k).filter(|grade| **grade > 0).count()
    }
}

/// The share of the first `k` places that hold a relevant result; a list that is shorter has empty places. `k` is at least 1.
#[expect(clippy::cast_precision_loss, reason = "lists are short")]
pub fn precision(judged: &Judged, ranked: &[impl AsRef<str>], k: usize) -> f64 {
    judged.relevant_within(ranked, k) as f64 / k.max(1) as f64
}

/// The share of relevant results that are among the first `k`; `None` if none is relevant.
#[expect(clippy::cast_precision_loss, reason = "lists are short")]
pub fn recall(judged: &Judged, ranked: &[impl AsRef<str>], k: usize) -> Option<f64> {
    let relevant = judged.relevant();
    (relevant > 0).then(|| judged.relevant_within(ranked, k) as f64 / relevant as f64)
}

/// 1 over the rank of the first relevant result; 0 if there is none. Its mean over queries is the MRR.
#[expect(clippy::cast_precision_loss, reason = "lists are short")]
pub fn reciprocal_rank(judged: &Judged, ranked: &[impl AsRef<str>]) -> f64 {
    let first = ranked.iter().position(|id| judged.grade(id.as_ref()) > 0);
    first.map_or(0.0, |place| 1.0 / (place + 1) as f64)
}

/// The discounted cumulative gain of the first `k` over that of the best order, 0.0 to 1.0; `None` if none is relevant.
pub fn ndcg(judged: &Judged, ranked: &[impl AsRef<str>], k: usize) -> Option<f64> {
    let mut best: Vec<u32> = judged.0.values().copied().collect();
    best.sort_unstable_by(|one, other| other.cmp(one));
    let ideal = gain(&best, k);
    (ideal > 0.0).then(|| gain(&judged.grades(ranked), k) / ideal)
}

#[expect(clippy::cast_precision_loss, reason = "lists are short")]
fn gain(grades: &[u32], k: usize) -> f64 {
    let discounted = |(place, grade): (usize, &u32)| f64::from(*grade) / ((place + 2) as f64).log2();
    grades.iter().take(k).enumerate().map(discounted).sum()
}

/// The arithmetic mean; `None` of nothing.
#[expect(clippy::cast_precision_loss, reason = "a count of queries")]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged() -> Judged {
        let grades = [("a", 3), ("b", 2), ("c", 1), ("d", 0)];
        Judged::new(grades.map(|(id, grade)| (id.to_owned(), grade)))
    }

    fn close(value: impl Into<Option<f64>>, expected: f64) {
        let value = value.into().unwrap();
        assert!((value - expected).abs() < 5e-5, "{value} is not {expected}");
    }

    #[test]
    fn worked_by_hand() {
        // Ranks 1 to 4: not judged, grade 2, not relevant, grade 3.
        let ranked = ["x", "b", "d", "a"];
        close(precision(&judged(), &ranked, 2), 0.5);
        close(precision(&judged(), &ranked, 5), 0.4);
        close(recall(&judged(), &ranked, 2), 0.3333);
        close(recall(&judged(), &ranked, 10), 0.6667);
        close(reciprocal_rank(&judged(), &ranked), 0.5);
        // DCG = 2 / log2 3 + 3 / log2 5 = 1.26186 + 1.29203 = 2.55389;
        // the best order: 3 + 2 / log2 3 + 1 / log2 4 = 3 + 1.26186 + 0.5 = 4.76186.
        close(ndcg(&judged(), &ranked, 4), 0.53632);
        // At 2: 1.26186 / 4.26186.
        close(ndcg(&judged(), &ranked, 2), 0.29608);
    }

    #[test]
    fn the_best_order_has_the_measure_one_and_nothing_found_zero() {
        close(ndcg(&judged(), &["a", "b", "c"], 3), 1.0);
        let nothing: [&str; 0] = [];
        close(ndcg(&judged(), &nothing, 3), 0.0);
        close(reciprocal_rank(&judged(), &nothing), 0.0);
        close(precision(&judged(), &nothing, 3), 0.0);
    }

    #[test]
    fn a_result_that_comes_again_counts_once() {
        close(precision(&judged(), &["a", "a", "a"], 3), 0.3333);
        close(recall(&judged(), &["c", "c", "c"], 3), 0.3333);
        close(ndcg(&judged(), &["a", "a"], 2), 3.0 / 4.26186);
    }

    #[test]
    fn what_has_nothing_relevant_has_no_recall() {
        let none = Judged::new([("a".to_owned(), 0)]);
        assert_eq!(recall(&none, &["a"], 1), None);
        assert_eq!(ndcg(&none, &["a"], 1), None);
        assert_eq!(mean(&[]), None);
        close(mean(&[0.0, 0.5, 1.0]), 0.5);
    }
}
