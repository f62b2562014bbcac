//! What is known of a recorded query under another tuning.
//!
//! A recording says where was searched, from which score on, how many results there were, and the scores of the best. So a search
//! that looks in no more places and takes no lower scores finds no more, and one that looks in no fewer finds what has the
//! score. What a recording does not tell stays open: a range, not a number.

use std::collections::{BTreeMap, BTreeSet};

use emend_core::search::{RetryPlan, Step, Tuning};
use emend_proto::feedback::v1::Query;

/// Where is searched. An empty name: where the node searches without being told, if that is not known.
pub(super) type Places = BTreeSet<String>;

/// One search of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Search {
    /// Where.
    pub(super) places: Places,
    /// From which score on.
    pub(super) min_score: f64,
    /// How many results at most.
    pub(super) top_k: usize,
    /// Whether the text is embedded with its synonyms.
    pub(super) expand: bool,
}

impl Search {
    /// Whether it finds nothing if the other one does not.
    fn is_within(&self, other: &Self) -> bool {
        self.expand == other.expand
            && self.min_score >= other.min_score
            && self.places.is_subset(&other.places)
    }
}

/// The searches of a tuning, of which the first that finds something is the last.
pub(super) fn searches(tuning: &Tuning, usual: &Places) -> Vec<Search> {
    let search = |step: Step<'_>| match step {
        Step::Suggest(_) => None,
        Step::Search(attempt) => {
            let mut places = usual.clone();
            if !attempt.namespaces.is_empty() {
                places = attempt.namespaces.iter().cloned().collect();
            }
            places.extend(attempt.more_namespaces.iter().map(ToString::to_string));
            Some(Search {
                places,
                min_score: attempt.min_score,
                top_k: usize::try_from(attempt.top_k).unwrap_or(usize::MAX),
                expand: attempt.expand,
            })
        }
    };
    RetryPlan::new(tuning).filter_map(search).collect()
}

/// Where the node searches without being told: as most queries were recorded that were searched as the tuning in force says
/// first, if it does not say where.
pub(super) fn usual(in_force: &Tuning, queries: &[Query]) -> Places {
    let unknown = Places::from([String::new()]);
    if !in_force.namespaces().is_empty() {
        return unknown;
    }
    let is_first = |query: &&Query| {
        !query.namespaces.is_empty()
            && query
                .min_score
                .is_none_or(|score| is_same(score, in_force.min_score()))
    };
    let mut counts: BTreeMap<Places, usize> = BTreeMap::new();
    for query in queries.iter().filter(is_first) {
        *counts
            .entry(query.namespaces.iter().cloned().collect())
            .or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(unknown, |(places, _)| places)
}

fn is_same(score: f64, other: f64) -> bool {
    (score - other).abs() < 1e-6
}

/// A query as it was recorded.
#[derive(Debug)]
pub(super) struct Recording {
    /// How many results it found; 0 also if that is not known.
    hits: usize,
    /// Searches that found nothing.
    failed: Vec<Search>,
    /// The search that found something.
    found: Option<Search>,
    /// The best scores, in descending order; empty if they are not known.
    scores: Vec<f64>,
}

impl Recording {
    /// Reads a recording as the work of the plan in force if a step of it fits, else as that of another tuning. Where it does
    /// not say what the minimum score was or where was searched, that is as the step has it.
    pub(super) fn new(query: &Query, in_force: &[Search]) -> Self {
        let shown = query.top_results.len();
        let said = query
            .hit_count
            .map(|count| usize::try_from(count).unwrap_or_default());
        // Of a query that says neither how many there were nor any of them, it is not known whether it found anything.
        let is_known = said.is_some() || shown > 0;
        let hits = said.unwrap_or_default().max(shown);
        let mut scores: Vec<f64> = query.top_results.iter().map(|result| result.score).collect();
        scores.sort_by(|one, other| other.total_cmp(one));
        // Imported queries have results without scores.
        if scores.first().is_some_and(|best| *best <= 0.0) {
            scores.clear();
        }
        let places: Places = query.namespaces.iter().cloned().collect();
        let lowest = scores.last().copied();
        // Of steps that look alike the first may have found it.
        let step = in_force.iter().position(|search| {
            (places.is_empty() || search.places == places)
                && match query.min_score {
                    Some(score) => is_same(score, search.min_score),
                    None => lowest.is_none_or(|lowest| lowest >= search.min_score),
                }
        });
        let other = Search {
            places,
            min_score: query.min_score.or(lowest).unwrap_or_default(),
            // Not known: there may have been more.
            top_k: 0,
            expand: false,
        };
        let (failed, found) = match step {
            _ if !is_known => (Vec::new(), None),
            Some(_) if hits == 0 => (in_force.to_vec(), None),
            Some(step) => (in_force[..step].to_vec(), Some(in_force[step].clone())),
            None if hits == 0 => (vec![other], None),
            None => (Vec::new(), Some(other)),
        };
        Self {
            hits,
            failed,
            found,
            scores,
        }
    }

    /// How many results a search finds, at least and at most.
    fn bounds(&self, search: &Search) -> (usize, usize) {
        if self.failed.iter().any(|failed| search.is_within(failed)) {
            return (0, 0);
        }
        let Some(found) = self.found.as_ref().filter(|found| found.expand == search.expand) else {
            return (0, search.top_k);
        };
        let passing = self
            .scores
            .iter()
            .filter(|score| **score >= search.min_score)
            .count();
        let is_lower = search.min_score <= found.min_score;
        let least = if !found.places.is_subset(&search.places) {
            0
        } else if is_lower {
            self.hits
        } else {
            passing
        };
        let was_cut = self.hits >= found.top_k;
        let most = if !search.is_within(found) {
            search.top_k
        } else if passing < self.scores.len() {
            passing
        } else if was_cut {
            search.top_k
        } else if is_lower || self.scores.len() < self.hits {
            self.hits
        } else {
            passing
        };
        (least.min(search.top_k), most.max(least).min(search.top_k))
    }

    /// What the query finds by this plan.
    pub(super) fn under(&self, plan: &[Search]) -> Outlook {
        for (step, search) in (1..).zip(plan) {
            let (least, most) = self.bounds(search);
            if most > 0 {
                return Outlook { step, least, most };
            }
        }
        Outlook {
            step: plan.len(),
            least: 0,
            most: 0,
        }
    }
}

/// What a query finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outlook {
    /// The first step of the plan that may find something, from 1; the last one if none does.
    pub(super) step: usize,
    /// How many results that step finds at least.
    pub(super) least: usize,
    /// How many at most.
    pub(super) most: usize,
}

/// What is different, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// It would find nothing.
    Nothing,
    /// It would find fewer.
    Fewer,
    /// It would find as many, in a later step.
    Retry,
    /// It may find fewer or nothing: the recording does not tell.
    Unknown,
    /// It may find more.
    More,
}

impl Change {
    /// Every one.
    pub(super) const ALL: [Self; 5] = [Self::Nothing, Self::Fewer, Self::Retry, Self::Unknown, Self::More];

    /// What is different, if anything is.
    pub(super) fn of(before: Outlook, after: Outlook) -> Option<Self> {
        if before == after {
            None
        } else if before.most == 0 {
            (after.most > 0).then_some(Self::More)
        } else if after.most == 0 && before.least > 0 {
            Some(Self::Nothing)
        } else if after.least == 0 {
            Some(Self::Unknown)
        } else if after.most < before.least {
            Some(Self::Fewer)
        } else if after.least < before.most {
            Some(Self::Unknown)
        } else if after.step > before.step {
            Some(Self::Retry)
        } else {
            (after.most > before.most).then_some(Self::More)
        }
    }

    /// In a word.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Fewer => "fewer",
            Self::Retry => "retry",
            Self::Unknown => "unknown",
            Self::More => "perhaps more",
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::QueryResult;

    use super::*;

    /// A recorded query: the places, the minimum score, the scores of the best, and how many there were.
    fn recorded(places: &[&str], min_score: f64, scores: &[f64], hits: i32) -> Query {
        let result = |score: &f64| QueryResult {
            score: *score,
            ..QueryResult::default()
        };
        Query {
            namespaces: places.iter().map(ToString::to_string).collect(),
            min_score: Some(min_score),
            top_results: scores.iter().map(result).collect(),
            hit_count: Some(hits),
            ..Query::default()
        }
    }

    /// What a query would find that was recorded with one tuning, with another: the step, how many, and what is different.
    fn outlook(query: &Query, in_force: &str, then: &str) -> (usize, usize, usize, Option<Change>) {
        let (in_force, then) = (Tuning::parse(in_force).unwrap(), Tuning::parse(then).unwrap());
        let usual = Places::from(["a".to_owned(), "b".to_owned()]);
        let in_force = searches(&in_force, &usual);
        let recording = Recording::new(query, &in_force);
        let after = recording.under(&searches(&then, &usual));
        let Outlook { step, least, most } = after;
        (step, least, most, Change::of(recording.under(&in_force), after))
    }

    const DEFAULTS: &str = "top_k=10";
    const ONCE: &str = "retry=none";

    #[test]
    fn under_the_tuning_in_force_a_query_finds_what_it_found() {
        for (query, expected) in [
            (recorded(&["a", "b"], 0.4, &[0.9, 0.5], 2), (1, 2, 2)),
            (
                recorded(&["a", "b"], 0.4, &[0.9, 0.8, 0.7, 0.6, 0.5], 10),
                (1, 10, 10),
            ),
            (recorded(&["a", "b", "combined"], 0.3, &[0.9, 0.35], 2), (2, 2, 2)),
            (recorded(&["a", "b", "combined"], 0.3, &[], 0), (3, 0, 0)),
            // A backend that records neither, and one whose results have no scores.
            (
                Query {
                    hit_count: Some(3),
                    ..Query::default()
                },
                (1, 3, 3),
            ),
            (recorded(&["a", "b"], 0.4, &[0.0, 0.0], 2), (1, 2, 2)),
        ] {
            let (step, least, most, change) = outlook(&query, DEFAULTS, DEFAULTS);
            assert_eq!(((step, least, most), change), (expected, None), "{query:?}");
        }
    }

    #[test]
    fn a_higher_minimum_score_loses_results_and_leads_to_the_next_step() {
        let query = recorded(&["a", "b"], 0.4, &[0.7, 0.55, 0.45], 3);
        for (then, expected) in [
            ("min_score=0.5 retry=none", (1, 2, 2, Some(Change::Fewer))),
            ("min_score=0.8 retry=none", (1, 0, 0, Some(Change::Nothing))),
            // The second step takes what has 0.7, and perhaps more from another place.
            ("min_score=0.8", (2, 1, 20, Some(Change::Unknown))),
            ("min_score=0.8 retry=-0.4", (2, 3, 3, Some(Change::Retry))),
            // Nor does the second step find anything: with synonyms, nobody knows.
            (
                "min_score=0.9 retry=-0.1 retry=synonyms",
                (3, 0, 10, Some(Change::Unknown)),
            ),
            ("min_score=0.9 retry=-0.1", (2, 0, 0, Some(Change::Nothing))),
        ] {
            assert_eq!(outlook(&query, DEFAULTS, then), expected, "{then}");
        }
        // The scores of the first five are known.
        let query = recorded(&["a", "b"], 0.4, &[0.9, 0.8, 0.7, 0.6, 0.5], 8);
        for (then, expected) in [
            ("min_score=0.55 retry=none", (1, 4, 4, Some(Change::Fewer))),
            ("min_score=0.45 retry=none", (1, 5, 8, Some(Change::Unknown))),
            ("top_k=6 retry=none", (1, 6, 6, Some(Change::Fewer))),
            ("top_k=20 retry=none", (1, 8, 8, None)),
        ] {
            assert_eq!(outlook(&query, ONCE, then), expected, "{then}");
        }
    }

    #[test]
    fn what_a_recording_does_not_tell_stays_open() {
        let query = recorded(&["a", "b"], 0.4, &[0.7, 0.45], 2);
        for (then, expected) in [
            ("min_score=0.3 retry=none", (1, 2, 10, Some(Change::More))),
            ("namespaces=a retry=none", (1, 0, 2, Some(Change::Unknown))),
            (
                "namespaces=a min_score=0.5 retry=none",
                (1, 0, 1, Some(Change::Unknown)),
            ),
            ("namespaces=c retry=none", (1, 0, 10, Some(Change::Unknown))),
            ("namespaces=a,b,c retry=none", (1, 2, 10, Some(Change::More))),
        ] {
            assert_eq!(outlook(&query, ONCE, then), expected, "{then}");
        }
        // Nobody said whether it found anything: it may, as before.
        for query in [
            Query::default(),
            Query {
                hit_count: None,
                ..recorded(&["a", "b"], 0.4, &[], 0)
            },
        ] {
            for (then, expected) in [
                (DEFAULTS, (1, 0, 10, None)),
                ("top_k=20", (1, 0, 20, Some(Change::Unknown))),
            ] {
                assert_eq!(outlook(&query, DEFAULTS, then), expected, "{query:?}, {then}");
            }
        }
        // Ten of ten: there may be more.
        let full = recorded(&["a", "b"], 0.4, &[0.9, 0.8, 0.7, 0.6, 0.5], 10);
        assert_eq!(
            outlook(&full, ONCE, "top_k=20 retry=none"),
            (1, 10, 20, Some(Change::More))
        );
        let nothing = recorded(&["a", "b", "combined"], 0.3, &[], 0);
        for (then, expected) in [
            ("min_score=0.3", (2, 0, 20, Some(Change::More))),
            ("min_score=0.5", (3, 0, 0, None)),
        ] {
            assert_eq!(outlook(&nothing, DEFAULTS, then), expected, "{then}");
        }
    }

    #[test]
    fn what_another_tuning_found_is_compared_with_what_the_one_in_force_would_find() {
        let unsaid = Query {
            min_score: None,
            ..recorded(&["a", "b"], 0.0, &[0.5, 0.45], 2)
        };
        for query in [unsaid, recorded(&["a", "b"], 0.3, &[0.5, 0.45], 2)] {
            let in_force = "min_score=0.6 retry=none";
            for (then, expected) in [
                (in_force, (1, 0, 0, None)),
                ("min_score=0.48 retry=none", (1, 1, 1, Some(Change::More))),
            ] {
                assert_eq!(outlook(&query, in_force, then), expected, "{query:?}, {then}");
            }
        }
        // There were more than the tuning gives.
        let many = recorded(&["a", "b"], 0.4, &[0.9, 0.8, 0.7, 0.6, 0.5], 250);
        assert_eq!(outlook(&many, DEFAULTS, DEFAULTS), (1, 10, 10, None));
        assert_eq!(
            outlook(&many, ONCE, "top_k=20 retry=none"),
            (1, 20, 20, Some(Change::More))
        );
    }

    #[test]
    fn where_a_node_searches_without_being_told_is_where_most_queries_were_searched_first() {
        let queries = [
            recorded(&["b", "a"], 0.4, &[0.5], 1),
            recorded(&["a", "b"], 0.4, &[0.5], 1),
            recorded(&["old"], 0.4, &[0.5], 1),
            recorded(&["a", "b", "combined"], 0.3, &[0.5], 1),
            recorded(&["a", "b", "combined"], 0.3, &[0.5], 1),
            recorded(&["a", "b", "combined"], 0.3, &[0.5], 1),
        ];
        let places = usual(&Tuning::default(), &queries);
        assert_eq!(places, Places::from(["a".to_owned(), "b".to_owned()]));
        let unknown = Places::from([String::new()]);
        assert_eq!(usual(&Tuning::parse("namespaces=a").unwrap(), &queries), unknown);
        assert_eq!(usual(&Tuning::default(), &[]), unknown);
    }
}
