//! The words that stand out in queries whose results were found wanting.

use super::is_function_word;

/// How often a word was in queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermCounts {
    /// The word, folded.
    pub term: String,
    /// The word as it is written.
    pub written: String,
    /// Queries with it whose results were rated −1.
    pub negative: u64,
    /// All queries with it.
    pub all: u64,
}

/// A word and how much it stands out.
#[derive(Debug, Clone, PartialEq)]
pub struct NegativeTerm {
    /// The word and its counts.
    pub counts: TermCounts,
    /// Its TF-IDF: greater is worse.
    pub score: f64,
}

/// The words that stand out most in negative queries, worst first: term frequency, the share of the negative queries that have
/// the word, times inverse document frequency, `ln((1 + N) / (1 + n))` with the word in n of all N queries (Spärck Jones, "A
/// statistical interpretation of term specificity and its application in retrieval", 1972; smoothed). A word that is in every
/// query scores 0. Function words are left out: where there are few queries, chance makes them stand out.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
pub fn negative_terms(
    counts: Vec<TermCounts>,
    negative_queries: u64,
    all_queries: u64,
    limit: usize,
) -> Vec<NegativeTerm> {
    let score = |counts: &TermCounts| {
        // Ratings outlive the counts of no query, but a count may be behind.
        let all = counts.all.max(counts.negative);
        let frequency = counts.negative as f64 / negative_queries.max(1) as f64;
        let rareness = (1.0 + all_queries.max(all) as f64) / (1.0 + all as f64);
        frequency * rareness.ln()
    };
    let mut scored: Vec<NegativeTerm> = counts
        .into_iter()
        .filter(|counts| counts.negative > 0 && !is_function_word(&counts.term))
        .map(|counts| NegativeTerm {
            score: score(&counts),
            counts,
        })
        .collect();
    scored.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.counts.term.cmp(&other.counts.term))
    });
    scored.truncate(limit);
    scored
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(term: &str, negative: u64, all: u64) -> TermCounts {
        TermCounts {
            term: term.into(),
            written: term.into(),
            negative,
            all,
        }
    }

    #[test]
    fn rare_words_of_many_negative_queries_come_first() {
        let all = vec![
            counts("card", 10, 1_000),
            counts("bounce", 8, 10),
            counts("typo", 1, 1),
            counts("fine", 0, 50),
            counts("that", 10, 10),
            counts("できる", 9, 9),
        ];
        let found = negative_terms(all, 10, 1_000, 10);
        let names: Vec<&str> = found.iter().map(|found| found.counts.term.as_str()).collect();
        assert_eq!(names, ["bounce", "typo", "card"]);
        assert!((found[0].score - 0.8 * (1_001.0_f64 / 11.0).ln()).abs() < 1e-12);
        assert!(
            found[2].score.abs() < 1e-12,
            "a word of every query tells nothing"
        );
    }

    #[test]
    fn the_list_is_bounded_and_equal_scores_are_in_alphabetical_order() {
        let all = vec![counts("y", 1, 1), counts("x", 1, 1), counts("z", 1, 1)];
        let found = negative_terms(all, 3, 100, 2);
        let names: Vec<&str> = found.iter().map(|found| found.counts.term.as_str()).collect();
        assert_eq!(names, ["x", "y"]);
    }

    #[test]
    fn counts_that_are_behind_make_no_negative_score() {
        let found = negative_terms(vec![counts("x", 5, 0)], 5, 0, 1);
        assert!(found[0].score >= 0.0);
    }
}
