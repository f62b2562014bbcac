//! What was searched most, and how often results were clicked, of the queries that are still kept.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use emend_base::Error;
use emend_core::normalize::normalize;
use feedback_store::records::stats::{KeptSearch, StatsFilter, Traffic};

use crate::queries::Queries;

/// Variants that are told apart in all.
const MAX_VARIANTS: usize = 100;
/// Variants that are told apart of one query.
const MAX_QUERY_VARIANTS: usize = 10;
/// Characters of a query's text.
const MAX_TEXT_CHARS: usize = 200;

/// Searches by variant: each with its name, those with the most searches first.
pub(crate) type ByVariant = Vec<(String, Traffic)>;

/// What was searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recent {
    pub(crate) all: Traffic,
    pub(crate) variants: ByVariant,
    pub(crate) top: Vec<TopQuery>,
    /// Variants and queries beyond those.
    pub(crate) left_out_variants: u64,
    pub(crate) left_out_queries: u64,
}

/// A query that was searched often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopQuery {
    /// As it was searched last.
    pub(crate) text: String,
    pub(crate) all: Traffic,
    pub(crate) variants: ByVariant,
}

impl Queries {
    /// What was searched most, so many queries at most.
    pub(crate) async fn recent(&self, filter: &StatsFilter, limit: usize) -> Result<Recent, Error> {
        let mut counted = Counted::default();
        let mut each = |search| counted.add(&search);
        self.store.kept_searches(filter, &mut each).await?;
        Ok(counted.finish(limit))
    }
}

/// Searches as they are counted, newest first. Of a query it holds a hash and the beginning of its text, whatever its length.
#[derive(Debug, Default)]
struct Counted {
    all: Traffic,
    variants: HashMap<String, (usize, Traffic)>,
    queries: HashMap<u64, CountedQuery>,
}

#[derive(Debug, Default)]
struct CountedQuery {
    text: String,
    all: Traffic,
    /// By the number of the variant.
    variants: Vec<(usize, Traffic)>,
}

impl Counted {
    fn add(&mut self, search: &KeptSearch) {
        self.all.add(search);
        let next = self.variants.len();
        let (variant, of_variant) = self
            .variants
            .entry(search.variant.clone())
            .or_insert((next, Traffic::default()));
        of_variant.add(search);
        let variant = *variant;
        let mut hasher = DefaultHasher::new();
        normalize(&search.text).hash(&mut hasher);
        let query = self.queries.entry(hasher.finish()).or_default();
        if query.text.is_empty() {
            query.text = search.text.chars().take(MAX_TEXT_CHARS).collect();
        }
        query.all.add(search);
        if let Some((_, traffic)) = query.variants.iter_mut().find(|(known, _)| *known == variant) {
            traffic.add(search);
        } else {
            let mut traffic = Traffic::default();
            traffic.add(search);
            query.variants.push((variant, traffic));
        }
    }

    fn finish(self, limit: usize) -> Recent {
        let mut names = vec![String::new(); self.variants.len()];
        for (name, (number, _)) in &self.variants {
            names[*number].clone_from(name);
        }
        let variants = self.variants.into_iter();
        let variants = variants.map(|(name, (_, traffic))| (name, traffic)).collect();
        let (variants, left_out_variants) = most(variants, MAX_VARIANTS);
        let mut queries: Vec<CountedQuery> = self.queries.into_values().collect();
        queries.sort_by(|one, other| {
            let by_searches = other.all.searches.cmp(&one.all.searches);
            by_searches.then_with(|| one.text.cmp(&other.text))
        });
        let left_out_queries = queries.len().saturating_sub(limit) as u64;
        queries.truncate(limit);
        let top = queries.into_iter().map(|query| {
            let by_variant = query.variants.into_iter();
            let by_variant = by_variant.map(|(number, traffic)| (names[number].clone(), traffic));
            TopQuery {
                text: query.text,
                all: query.all,
                variants: most(by_variant.collect(), MAX_QUERY_VARIANTS).0,
            }
        });
        Recent {
            all: self.all,
            variants,
            top: top.collect(),
            left_out_variants,
            left_out_queries,
        }
    }
}

/// The variants with the most searches, and how many there are beyond those.
fn most(mut variants: ByVariant, limit: usize) -> (ByVariant, u64) {
    variants.sort_by(|one, other| {
        let by_searches = other.1.searches.cmp(&one.1.searches);
        by_searches.then_with(|| one.0.cmp(&other.0))
    });
    let left_out = variants.len().saturating_sub(limit) as u64;
    variants.truncate(limit);
    (variants, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &str, variant: &str) -> KeptSearch {
        KeptSearch {
            text: text.into(),
            variant: variant.into(),
            ..KeptSearch::default()
        }
    }

    #[test]
    fn lists_and_texts_are_bounded_and_what_is_left_out_is_counted() {
        let mut counted = Counted::default();
        let long = "あ".repeat(2_000);
        for number in 0..150 {
            counted.add(&search(&long, &format!("v{number:03}")));
            counted.add(&search(&format!("query {number}"), "v000"));
        }
        let recent = counted.finish(20);
        assert_eq!((recent.all.searches, recent.all.unknown_hits), (300, 300));
        assert_eq!((recent.variants.len(), recent.left_out_variants), (100, 50));
        assert_eq!(
            (recent.variants[0].0.as_str(), recent.variants[0].1.searches),
            ("v000", 151)
        );
        assert_eq!((recent.top.len(), recent.left_out_queries), (20, 131));
        assert_eq!(recent.top[0].text.chars().count(), MAX_TEXT_CHARS);
        assert_eq!(
            (recent.top[0].all.searches, recent.top[0].variants.len()),
            (150, 10)
        );
    }
}
