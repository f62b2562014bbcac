//! Ratings of search answers, recorded queries, and what was mined from them.

use emend_tests::harness::system::Service::{Feedback, Learning};

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET rating = 0 WHERE rating = -1",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET rater = {new_id} WHERE rating = 1",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET replaced_by = NULL",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET replaced_by = accept_order",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "DELETE FROM search_ratings WHERE rating = 0",
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        "UPDATE search_ratings SET accept_order = accept_order - 1 WHERE rating = 0",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        concat!(
            "UPDATE search_ratings SET tags = ' low_recall ', accept_order = ",
            oldest!(),
            " WHERE rating = 0"
        ),
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET query_type = 'HYBRID' WHERE context_state = 2",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET query_type = 'HYBRID' WHERE context_state <> 2",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET context_state = 3 WHERE rating = 1",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET session_id = 'a session' WHERE rater IS NULL",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET query = {no_id} WHERE length(query) > 0",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET query = (SELECT query FROM search_ratings WHERE length(query) > 0 LIMIT 1) WHERE rater IS NULL",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE feedback_personal SET context = '{\"title\":\"A card\"}'",
    ),
    (
        "RATING_LABELS",
        Feedback,
        "UPDATE search_ratings SET tags = ' synonym_miss low_recall '",
    ),
    (
        "RATING_LABELS",
        Feedback,
        "UPDATE search_ratings SET tags = 'low_recall'",
    ),
    (
        "RATING_TIME",
        Feedback,
        "UPDATE search_ratings SET rated_at = rated_at - 1",
    ),
    (
        "RATING_CONTEXT",
        Feedback,
        "UPDATE search_ratings SET known_at_once = 1 WHERE context_state <> 2",
    ),
    (
        "QUERY_CLICK",
        Feedback,
        "UPDATE query_interactions SET is_click = 0",
    ),
    (
        "QUERY_CLICK",
        Feedback,
        "UPDATE query_interactions SET action = 'view'",
    ),
    (
        "QUERY_COUNT",
        Feedback,
        "INSERT INTO query_counts_pruned (namespace, queries, words, undercount) VALUES ('other', -1, 0, 0)",
    ),
    (
        "DATED_AHEAD",
        Feedback,
        "UPDATE search_ratings SET rated_at = rated_at + 7200000000",
    ),
    (
        "DATED_AHEAD",
        Feedback,
        "UPDATE queries SET recorded_at = recorded_at + 7200000000",
    ),
    (
        "DATED_AHEAD",
        Feedback,
        "UPDATE query_interactions SET recorded_at = recorded_at + 7200000000",
    ),
    ("QUERY_PARTS", Feedback, "DELETE FROM query_personal"),
    ("QUERY_PARTS", Feedback, "DELETE FROM queries"),
    (
        "QUERY_PARTS",
        Feedback,
        "UPDATE query_personal SET namespace = 'other'",
    ),
    ("ROW_CORRUPT", Feedback, "UPDATE queries SET hit_count = -1"),
    (
        "ROW_CORRUPT",
        Feedback,
        "UPDATE query_interactions SET position = -1",
    ),
    (
        "QUERY_COUNT",
        Feedback,
        "UPDATE query_days SET queries = queries - 1",
    ),
    (
        "QUERY_COUNT",
        Feedback,
        "UPDATE query_days SET zero_hits = queries + 1",
    ),
    ("QUERY_COUNT", Feedback, "UPDATE query_days SET unknown_hits = -1"),
    ("QUERY_COUNT", Feedback, "DELETE FROM query_days"),
    ("QUERY_COUNT", Feedback, "UPDATE query_terms SET queries = -1"),
    (
        "QUERY_COUNT",
        Feedback,
        "UPDATE query_terms SET queries = queries + 100",
    ),
    (
        "MINED_REWORDING",
        Feedback,
        "UPDATE mined_rewrites SET worked = 'return' WHERE worked = 'rush'",
    ),
    (
        "MINED_REWORDING",
        Feedback,
        "UPDATE mined_rewrites SET failed = 'STORM' WHERE failed = 'storm'",
    ),
    (
        "MINED_REWORDING",
        Feedback,
        "UPDATE mined_rewrites SET worked = failed",
    ),
    (
        "MINED_EVIDENCE",
        Feedback,
        "DELETE FROM mined_rewrites WHERE failed = 'bounce'",
    ),
    (
        "MINED_EVIDENCE",
        Learning,
        "UPDATE contests SET namespace = 'other' WHERE key = 'bounce'",
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        "DELETE FROM mined_rewrites WHERE failed = 'storm'",
    ),
];
