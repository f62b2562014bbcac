//! What is counted and logged of ratings.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use emend_base::telemetry::{
    Metrics,
    metrics::{
        Description, Kind,
        prometheus::{Counter, Family},
    },
};
use emend_core::search::SearchRating;
use emend_proto::feedback::v1::Query;
use feedback_store::{
    ports::SettledRating,
    records::{
        feedback::{NewFeedback, Removed},
        ratings::{EncodedQuery, RatingState},
    },
};
use prost::Message as _;

/// The most query types that become labels of their own.
const MAX_TYPES: usize = 32;
/// The label of all further ones.
const OTHER: &str = "other";
/// The label if the query is not known.
const UNKNOWN: &str = "unknown";

const STORED: Description = Description {
    name: "emend_search_ratings_total",
    kind: Kind::Counter,
    unit: "ratings",
    labels: &["rating=up|neutral|down", "query_type"],
    help: "Stored ratings of search answers, by their value and the type of their query: unknown if the query was not \
           recorded, other for all but the first 32 types. Counted by the replica that found the query, or gave up on it: up \
           to 10 s after the rating",
};
const REFUSED: Description = Description {
    name: "emend_search_ratings_refused_total",
    kind: Kind::Counter,
    unit: "ratings",
    labels: &[],
    help: "Ratings that this replica has refused because their reporter had rated as often as the settings allow",
};
const FAILED: Description = Description {
    name: "emend_search_ratings_failed_total",
    kind: Kind::Counter,
    unit: "ratings",
    labels: &[],
    help: "Ratings that this replica could not store because the database was away, full or refused them",
};
const MISSING: Description = Description {
    name: "emend_search_ratings_missing_total",
    kind: Kind::Counter,
    unit: "ratings",
    labels: &[],
    help: "Ratings of whose queries this replica found that they were not recorded within 10 s",
};
const HTML_REMOVED: Description = Description {
    name: "emend_search_ratings_html_removed_total",
    kind: Kind::Counter,
    unit: "ratings",
    labels: &[],
    help: "Stored ratings from whose texts HTML was removed",
};
const MASKED: Description = Description {
    name: "emend_search_ratings_masked_total",
    kind: Kind::Counter,
    unit: "ratings",
    labels: &[],
    help: "Stored ratings in whose texts personal data was masked",
};

/// Counts ratings. Clones share the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct RatingMetrics {
    stored: Family<Vec<(&'static str, String)>, Counter>,
    types: Arc<Mutex<BTreeSet<String>>>,
    refused: Counter,
    failed: Counter,
    missing: Counter,
    html_removed: Counter,
    masked: Counter,
    /// Whether the titles of what was found are logged.
    pub(crate) logs_titles: bool,
}

impl RatingMetrics {
    /// Registers them among the metrics of the process.
    pub(crate) fn register(&self, metrics: &Metrics) {
        for rating in SearchRating::ALL {
            self.of(rating, UNKNOWN);
        }
        metrics.register(STORED, self.stored.clone());
        metrics.register(REFUSED, self.refused.clone());
        metrics.register(FAILED, self.failed.clone());
        metrics.register(MISSING, self.missing.clone());
        metrics.register(HTML_REMOVED, self.html_removed.clone());
        metrics.register(MASKED, self.masked.clone());
    }

    /// Counts what was removed from a rating that was stored, and the rating itself if its query is known at once; others are
    /// counted when they are settled.
    pub(crate) fn stored(&self, new: &NewFeedback, state: &RatingState) {
        let Some(rating) = new.submission.correction.search_rating() else {
            return;
        };
        let Removed { html, personal_data } = new.removed;
        if html {
            self.html_removed.inc();
        }
        if personal_data {
            self.masked.inc();
        }
        // Another transaction may have settled it by now, and then counts it.
        if state.is_known_at_once {
            self.settled([&SettledRating {
                namespace: new.submission.namespace.clone(),
                id: new.id,
                rating,
                query_type: state.query_type.clone(),
                titles: if self.logs_titles {
                    titles(state)
                } else {
                    Vec::new()
                },
            }]);
        }
    }

    /// Counts and logs stored ratings of which it is known what their query was, or that it was not recorded.
    pub(crate) fn settled<'a>(&self, ratings: impl IntoIterator<Item = &'a SettledRating>) {
        for settled in ratings {
            self.of(settled.rating, &self.label(&settled.query_type)).inc();
            let titles = self.logs_titles.then_some(&settled.titles[..]);
            // Where it went wrong, all of them help to find out why.
            let all = titles.map(|titles| match settled.rating {
                SearchRating::Down => titles,
                _ => &[],
            });
            tracing::info!(
                namespace = %settled.namespace,
                feedback_id = %settled.id,
                rating = settled.rating.number(),
                query_type = %settled.query_type,
                top_title = titles.map(|titles| titles.first().map_or("", String::as_str)),
                top_titles = all.map(tracing::field::debug),
                "a rating was stored"
            );
        }
    }

    /// Counts one more that was refused.
    pub(crate) fn refused(&self) {
        self.refused.inc();
    }

    /// Counts ratings whose queries were not recorded in time.
    pub(crate) fn missing(&self, count: u64) {
        self.missing.inc_by(count);
    }

    /// Counts the ratings among what could not be stored.
    pub(crate) fn failed<'a>(&self, items: impl IntoIterator<Item = &'a NewFeedback>) {
        let ratings = items
            .into_iter()
            .filter(|item| item.submission.correction.search_rating().is_some());
        self.failed.inc_by(ratings.count() as u64);
    }

    fn of(&self, rating: SearchRating, query_type: &str) -> Counter {
        let labels = vec![
            ("rating", rating.name().to_owned()),
            ("query_type", query_type.to_owned()),
        ];
        self.stored.get_or_create_owned(&labels)
    }

    /// The label of a query type. The first that are seen get one of their own.
    fn label(&self, query_type: &str) -> String {
        if query_type.is_empty() {
            return UNKNOWN.to_owned();
        }
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        if types.contains(query_type) || types.len() < MAX_TYPES {
            types.insert(query_type.to_owned());
            return query_type.to_owned();
        }
        OTHER.to_owned()
    }
}

/// The titles of what the query returned, best first.
fn titles(state: &RatingState) -> Vec<String> {
    let query = state
        .query
        .clone()
        .and_then(|EncodedQuery(bytes)| Query::decode(bytes).ok());
    let results = query.map(|query| query.top_results).unwrap_or_default();
    results.into_iter().map(|result| result.title).collect()
}

#[cfg(test)]
mod tests {
    use emend_base::testing::Logged;
    use feedback_store::testing::search_rated;

    use super::*;

    #[test]
    fn a_rating_is_counted_once_it_is_known_what_was_rated() {
        let metrics = RatingMetrics::default();
        let count = |query_type: &str| metrics.of(SearchRating::Down, query_type).get();
        let new = search_rated(["jane", "", ""], "q1", SearchRating::Down);
        metrics.stored(&new, &RatingState::pending());
        assert_eq!(count("unknown"), 0);
        let state = RatingState {
            query_type: "SEMANTIC".into(),
            is_known_at_once: true,
            ..RatingState::pending()
        };
        metrics.stored(&new, &state);
        assert_eq!(count("SEMANTIC"), 1);
        // Settled by another transaction before its state was read: counted there.
        metrics.stored(
            &new,
            &RatingState {
                is_known_at_once: false,
                ..state
            },
        );
        assert_eq!(count("SEMANTIC"), 1);
        metrics.settled([&SettledRating {
            namespace: new.submission.namespace,
            id: new.id,
            rating: SearchRating::Down,
            query_type: String::new(),
            titles: Vec::new(),
        }]);
        assert_eq!(count("unknown"), 1);
    }

    /// What is logged of a rating down, and of one up.
    fn logged_of(metrics: &RatingMetrics) -> Vec<String> {
        let logged = Logged::default();
        let rated = |rating| SettledRating {
            namespace: feedback_store::testing::namespace(),
            id: search_rated(["jane", "", ""], "q1", rating).id,
            rating,
            query_type: "SEMANTIC".into(),
            titles: ["first", "second"].map(str::to_owned).into(),
        };
        let ratings = [SearchRating::Down, SearchRating::Up].map(rated);
        tracing::subscriber::with_default(logged.clone(), || metrics.settled(&ratings));
        let lines = logged.lines().into_iter().zip(&ratings);
        lines
            .map(|(line, rated)| line.replace(&rated.id.to_string(), "ID"))
            .collect()
    }

    const DOWN: &str =
        "message=a rating was stored;namespace=fund-admin;feedback_id=ID;rating=-1;query_type=SEMANTIC;";
    const UP: &str =
        "message=a rating was stored;namespace=fund-admin;feedback_id=ID;rating=1;query_type=SEMANTIC;";

    #[test]
    fn a_rating_is_logged_without_what_was_found() {
        assert_eq!(logged_of(&RatingMetrics::default()), [DOWN, UP]);
    }

    #[test]
    fn where_a_setting_asks_for_titles_the_top_one_is_logged_and_of_a_rating_down_all() {
        let metrics = RatingMetrics {
            logs_titles: true,
            ..RatingMetrics::default()
        };
        assert_eq!(
            logged_of(&metrics),
            [
                format!("{DOWN}top_title=\"first\";top_titles=[\"first\", \"second\"];"),
                format!("{UP}top_title=\"first\";top_titles=[];"),
            ]
        );
    }

    #[test]
    fn so_many_query_types_become_labels_and_the_rest_is_other() {
        let metrics = RatingMetrics::default();
        assert_eq!(metrics.label(""), "unknown");
        for number in 0..MAX_TYPES {
            let name = format!("T{number}");
            assert_eq!(metrics.label(&name), name);
        }
        assert_eq!(
            (metrics.label("MORE"), metrics.label("T7")),
            ("other".into(), "T7".into())
        );
    }
}
