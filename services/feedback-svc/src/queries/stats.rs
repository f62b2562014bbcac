//! What ratings and queries say of search: how many ratings are negative and how many queries found nothing, by week, type of query, version and variant; and which words stand out in
//! the queries that were rated so.

use std::collections::{BTreeMap, HashSet};

use emend_base::Error;
use emend_core::search::{NegativeTerm, TermCounts, negative_terms, two_proportions, written_terms};
use feedback_store::records::stats::{Compared, Dimension, Share, Shares, StatsFilter, WorstQuery};

use crate::queries::Queries;

/// The newest ratings whose queries are looked at for words.
const MAX_NEGATIVE: usize = 10_000;
/// Queries read at once.
const PAGE: u32 = 200;
/// Words counted at once.
const MAX_WORDS: usize = 100_000;

/// What ratings say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stats {
    /// All of them.
    pub(crate) total: Share,
    /// By each dimension: weeks in order, others by their ratings, the most first.
    pub(crate) by: BTreeMap<Dimension, Vec<Share>>,
    /// How many names each dimension has beyond those.
    pub(crate) left_out: BTreeMap<Dimension, u64>,
    /// The comparison that was asked for.
    pub(crate) comparison: Option<Comparison>,
}

/// Two shares, and whether they differ by more than chance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) one: Share,
    pub(crate) other: Share,
    /// The probability of so great a difference if there is none; none where a side has no ratings.
    pub(crate) p_value: Option<f64>,
    /// The same of the shares of queries that found nothing.
    pub(crate) zero_hit_p_value: Option<f64>,
}

/// Words that stand out, with what they were counted in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NegativeTerms {
    pub(crate) terms: Vec<NegativeTerm>,
    /// Queries whose results were rated −1.
    pub(crate) negative_queries: u64,
    /// All queries.
    pub(crate) queries: u64,
    /// Words that were pruned from the counts of all queries.
    pub(crate) pruned: u64,
    /// By how much a count of all queries may be too low for that.
    pub(crate) undercount: u64,
}

impl Queries {
    /// What ratings say of search.
    pub(crate) async fn stats(
        &self,
        filter: &StatsFilter,
        compared: Option<&Compared>,
    ) -> Result<Stats, Error> {
        let Shares { total, by: mut names } = self.store.shares(filter, compared).await?;
        let comparison = compared.map(|compared| {
            let names = names.get(&compared.by).into_iter();
            let shares =
                names.flat_map(|names| names.listed.iter().map(|(_, share)| share).chain(&names.beyond));
            compare(&shares.collect::<Vec<_>>(), &compared.one, &compared.other)
        });
        let (mut by, mut left_out) = (BTreeMap::new(), BTreeMap::new());
        for dimension in Dimension::ALL {
            let found = names.remove(&dimension).unwrap_or_default();
            let mut shares: Vec<Share> = found.listed.into_iter().map(|(_, share)| share).collect();
            if dimension == Dimension::Week {
                shares.reverse();
            }
            by.insert(dimension, shares);
            left_out.insert(dimension, found.left_out);
        }
        Ok(Stats {
            total,
            by,
            left_out,
            comparison,
        })
    }

    /// The queries that most people rated −1, so many at most, with how many there are in all.
    pub(crate) async fn worst_queries(
        &self,
        filter: &StatsFilter,
        limit: u32,
    ) -> Result<(Vec<WorstQuery>, u64), Error> {
        Ok(self.store.worst_queries(filter, limit).await?)
    }

    /// The words that stand out most in queries whose results were rated −1.
    pub(crate) async fn negative_terms(
        &self,
        filter: &StatsFilter,
        limit: usize,
    ) -> Result<NegativeTerms, Error> {
        let (mut words, mut negative_queries) = (BTreeMap::new(), 0);
        // As the newest query has them.
        let mut written = BTreeMap::new();
        let (mut looked_at, mut before, mut seen) = (0, None, HashSet::new());
        while looked_at < MAX_NEGATIVE {
            let texts = self.store.negative_texts(filter, before, PAGE).await?;
            let Some((last, ..)) = texts.last() else { break };
            before = Some(*last);
            looked_at += texts.len();
            // However many rated a query so, it is one query, as among all queries.
            let texts = texts.into_iter().filter(|(.., text)| !text.is_empty());
            for (_, id, text) in texts {
                if !seen.insert(id) {
                    continue;
                }
                negative_queries += 1;
                for (term, as_written) in written_terms(&text) {
                    *words.entry(term.clone()).or_default() += 1;
                    written.entry(term).or_insert(as_written);
                }
            }
            keep_frequent(&mut words, MAX_WORDS);
            written.retain(|term, _| words.contains_key(term));
        }
        let asked: Vec<&str> = words.keys().map(String::as_str).collect();
        let counted = self.store.term_counts(&filter.namespace, &asked).await?;
        let counts = words.into_iter().map(|(term, negative)| TermCounts {
            all: counted.by_term.get(&term).copied().unwrap_or_default(),
            negative,
            written: written.remove(&term).unwrap_or_default(),
            term,
        });
        let queries = counted.queries;
        Ok(NegativeTerms {
            terms: negative_terms(counts.collect(), negative_queries, queries, limit),
            negative_queries,
            queries,
            pruned: counted.pruned,
            undercount: counted.undercount,
        })
    }
}

/// Forgets the rarest words where there are more than so many.
fn keep_frequent(words: &mut BTreeMap<String, u64>, most: usize) {
    let mut least = 1;
    while words.len() > most {
        words.retain(|_, count| *count > least);
        least += 1;
    }
}

fn compare(shares: &[&Share], one: &str, other: &str) -> Comparison {
    let share = |name: &str| {
        let found = shares.iter().copied().find(|share| share.name == name);
        found.cloned().unwrap_or_else(|| Share {
            name: name.to_owned(),
            ..Share::default()
        })
    };
    let (one, other) = (share(one), share(other));
    Comparison {
        p_value: two_proportions((one.negative, one.ratings), (other.negative, other.ratings)),
        zero_hit_p_value: two_proportions(
            (one.zero_hits, one.known_hits()),
            (other.zero_hits, other.known_hits()),
        ),
        one,
        other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_words_the_rarest_are_forgotten() {
        let mut words = BTreeMap::from(
            [("a", 1), ("b", 2), ("c", 2), ("d", 3)].map(|(word, count)| (word.to_owned(), count)),
        );
        keep_frequent(&mut words, 3);
        assert_eq!(words.keys().collect::<Vec<_>>(), ["b", "c", "d"]);
        keep_frequent(&mut words, 2);
        assert_eq!(words.keys().collect::<Vec<_>>(), ["d"]);
    }
}
