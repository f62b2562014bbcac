//! Queries and interactions of UBI as they are recorded: several documents of one query are one query, and equal interactions
//! are one.
//!
//! Of the documents of a query the earliest one counts: its text, session and time; without times, the one that was read first.
//! Its results are those of all of them, the earliest one's first. What it found is known if any of them says it.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use emend_proto::feedback::v1::{Query, QueryInteraction};
use prost_types::Timestamp;

use super::MAX_RESULTS;

/// What was read, with the place of each.
pub type Placed<P, T> = Vec<(P, T)>;

/// What was read, each with the place of the first document of it.
#[derive(Debug)]
pub struct Searches<P> {
    queries: Placed<P, Query>,
    /// The place of each id in `queries`.
    places: HashMap<String, usize>,
    interactions: Placed<P, QueryInteraction>,
    /// The place of each in `interactions`, by query, result, action and position.
    known: HashMap<(String, String, String, i32), usize>,
}

impl<P> Default for Searches<P> {
    fn default() -> Self {
        Self {
            queries: Vec::new(),
            places: HashMap::new(),
            interactions: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<P> Searches<P> {
    /// Adds a document of a query.
    pub fn query(&mut self, place: P, query: Query) {
        match self.places.entry(query.query_id.clone()) {
            Entry::Vacant(new) => {
                new.insert(self.queries.len());
                self.queries.push((place, query));
            }
            Entry::Occupied(known) => {
                let (_, known) = &mut self.queries[*known.get()];
                let (mut first, mut later) = (query, std::mem::take(known));
                if !is_earlier(first.searched_at, later.searched_at) {
                    std::mem::swap(&mut first, &mut later);
                }
                *known = joined(first, later);
            }
        }
    }

    /// Adds an interaction; of equal ones the earliest counts, in whatever order they are read.
    pub fn interaction(&mut self, place: P, interaction: QueryInteraction) {
        let key = (
            interaction.query_id.clone(),
            interaction.object_id.clone(),
            interaction.action.to_lowercase(),
            interaction.position,
        );
        match self.known.entry(key) {
            Entry::Vacant(new) => {
                new.insert(self.interactions.len());
                self.interactions.push((place, interaction));
            }
            Entry::Occupied(known) => {
                let (_, known) = &mut self.interactions[*known.get()];
                if is_earlier(interaction.acted_at, known.acted_at) {
                    known.acted_at = interaction.acted_at;
                }
            }
        }
    }

    /// The queries and the interactions, in the order in which they were first read.
    pub fn into_rows(self) -> (Placed<P, Query>, Placed<P, QueryInteraction>) {
        (self.queries, self.interactions)
    }
}

/// Whether what was read later is the earlier one; what has no time is the later one.
fn is_earlier(read_later: Option<Timestamp>, read_first: Option<Timestamp>) -> bool {
    let at = |time: Timestamp| (time.seconds, time.nanos);
    match (read_later.map(at), read_first.map(at)) {
        (Some(later), Some(first)) => later < first,
        (later, first) => later.is_some() && first.is_none(),
    }
}

/// A query of two documents.
fn joined(mut first: Query, later: Query) -> Query {
    let known: HashSet<String> = first
        .top_results
        .iter()
        .map(|result| result.object_id.clone())
        .collect();
    let others = later.top_results.into_iter();
    first
        .top_results
        .extend(others.filter(|result| !known.contains(&result.object_id)));
    let together = i32::try_from(first.top_results.len()).unwrap_or(i32::MAX);
    // Of long lists only the first results are kept: there are at least as many as in each of them.
    let said = first.hit_count.into_iter().chain(later.hit_count).max();
    first.hit_count = said.map(|said| said.max(together));
    first.top_results.truncate(MAX_RESULTS);
    if first.session_id.is_empty() {
        first.session_id = later.session_id;
    }
    first
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::QueryResult;

    use super::*;

    fn document(text: &str, second: Option<i64>, hits: Option<&[&str]>) -> Query {
        let result = |id: &&str| QueryResult {
            object_id: (*id).to_owned(),
            ..QueryResult::default()
        };
        Query {
            query_id: "q".into(),
            query_text: text.into(),
            searched_at: second.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 }),
            top_results: hits.unwrap_or_default().iter().map(result).collect(),
            hit_count: hits.map(|hits| i32::try_from(hits.len()).unwrap()),
            ..Query::default()
        }
    }

    fn together(documents: Vec<Query>) -> (String, Option<i32>, Vec<String>) {
        let mut searches = Searches::default();
        for (line, document) in (1_u64..).zip(documents) {
            searches.query(line, document);
        }
        let (queries, _) = searches.into_rows();
        let [(line, query)] = &queries[..] else {
            panic!("{queries:?}");
        };
        assert_eq!(*line, 1, "where it was read first");
        let ids = query.top_results.iter().map(|result| result.object_id.clone());
        (query.query_text.clone(), query.hit_count, ids.collect())
    }

    #[test]
    fn of_several_documents_the_earliest_counts_with_the_results_of_all() {
        let wall = document("wall mount", Some(1), Some(&[]));
        let found = document("wall mount", Some(2), Some(&["a", "b"]));
        let one_word = document("wallmount", Some(3), Some(&["b", "c"]));
        let expected = (
            "wall mount".to_owned(),
            Some(3),
            ["a", "b", "c"].map(str::to_owned).to_vec(),
        );
        let [first, second, third] = [&wall, &found, &one_word];
        for order in [
            [first, second, third],
            [third, second, first],
            [second, third, first],
        ] {
            let (text, hits, mut ids) = together(order.map(Clone::clone).to_vec());
            ids.sort();
            assert_eq!((text, hits, ids), expected);
        }
        let undated = document("tv", None, None);
        assert_eq!(together(vec![undated, wall]).0, "wall mount");
    }

    #[test]
    fn what_was_found_is_known_if_any_document_says_it() {
        let unknown = || document("tv", None, None);
        assert_eq!(together(vec![unknown(), unknown()]).1, None);
        assert_eq!(
            together(vec![unknown(), document("tv", None, Some(&[]))]).1,
            Some(0)
        );
        assert_eq!(
            together(vec![document("tv", None, Some(&[])), unknown()]).1,
            Some(0)
        );
    }

    #[test]
    fn of_equal_interactions_the_earliest_counts_in_any_order() {
        let at = |seconds| Timestamp { seconds, nanos: 0 };
        for times in [[Some(at(9)), Some(at(2)), None], [None, Some(at(2)), Some(at(9))]] {
            let mut searches = Searches::default();
            for acted_at in times {
                let click = QueryInteraction {
                    query_id: "q".into(),
                    object_id: "a".into(),
                    action: "click".into(),
                    position: 1,
                    acted_at,
                };
                searches.interaction((), click);
            }
            let (_, found) = searches.into_rows();
            assert_eq!((found.len(), found[0].1.acted_at), (1, Some(at(2))));
        }
    }

    #[test]
    fn equal_interactions_are_one_and_an_impression_is_another_than_a_click() {
        let mut searches = Searches::default();
        for (action, position) in [("click", 1), ("Click", 1), ("impression", 1), ("click", 2)] {
            let interaction = QueryInteraction {
                query_id: "q".into(),
                object_id: "a".into(),
                action: action.into(),
                position,
                acted_at: None,
            };
            searches.interaction((), interaction);
        }
        assert_eq!(searches.into_rows().1.len(), 3);
    }
}
