//! What the dashboard shows of recorded queries and of ratings of search answers.

use super::{
    Kind::{Against, Areas, Lines},
    Panel, Row,
    Series::{Few, Idle},
    q,
};

pub(super) const ROW: Row = Row {
    title: "Queries and ratings",
    panels: &[
        Panel {
            title: "Ratings",
            about: "Ratings of search answers that were stored, per second, by rating and type of query. The type is unknown until the query is recorded.",
            kind: Areas(Idle),
            unit: "cps",
            width: 8,
            queries: &[q(
                r#"sum by (rating, query_type) (rate(emend_search_ratings_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{rating}} {{query_type}}",
            )],
        },
        Panel {
            title: "Share of negative ratings",
            about: "The share of −1 among the ratings of the last hour, by type of query. emend search stats has confidence intervals, and compares versions.",
            kind: Lines(Few),
            unit: "percentunit",
            width: 8,
            queries: &[q(
                r#"sum by (query_type) (rate(emend_search_ratings_total{rating="down", namespace=~"$namespace"}[1h])) / (sum by (query_type) (rate(emend_search_ratings_total{namespace=~"$namespace"}[1h])) > 0)"#,
                "{{query_type}}",
            )],
        },
        Panel {
            title: "Ratings refused and failed",
            about: "Ratings per second that were refused because their reporter had rated too often, and that could not be stored.",
            kind: Lines(Few),
            unit: "cps",
            width: 8,
            queries: &[
                q(
                    r#"sum by (namespace) (rate(emend_search_ratings_refused_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "refused by the limit {{namespace}}",
                ),
                q(
                    r#"sum by (namespace) (rate(emend_search_ratings_failed_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "not stored {{namespace}}",
                ),
            ],
        },
        Panel {
            title: "Ratings of queries that nobody recorded",
            about: "The share of the ratings of the last hour whose query was not recorded within 10 s. Above the bound an alert fires.",
            kind: Against(0.2, 0.3),
            unit: "percentunit",
            width: 8,
            queries: &[q(
                r#"sum by (namespace) (rate(emend_search_ratings_missing_total{namespace=~"$namespace"}[1h])) / (sum by (namespace) (rate(emend_search_ratings_total{namespace=~"$namespace"}[1h])) > 0)"#,
                "missing {{namespace}}",
            )],
        },
        Panel {
            title: "What ratings' texts had in them",
            about: "Stored ratings per second from whose texts HTML was removed, or in which personal data was masked.",
            kind: Lines(Few),
            unit: "cps",
            width: 8,
            queries: &[
                q(
                    r#"sum by (namespace) (rate(emend_search_ratings_html_removed_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "HTML {{namespace}}",
                ),
                q(
                    r#"sum by (namespace) (rate(emend_search_ratings_masked_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "personal data {{namespace}}",
                ),
            ],
        },
        Panel {
            title: "Synonyms mined",
            about: "Synonyms proposed within a day because rewordings worked. They wait for a person's decision among the candidates.",
            kind: Lines(Few),
            unit: "short",
            width: 8,
            queries: &[q(
                r#"sum by (namespace) (increase(emend_synonyms_mined_total{namespace=~"$namespace"}[1d]))"#,
                "mined {{namespace}}",
            )],
        },
        Panel {
            title: "Queries and interactions",
            about: "What backends record, and what of it is stored, per second.",
            kind: Lines(Few),
            unit: "cps",
            width: 8,
            queries: &[
                q(
                    r#"sum by (what) (rate(emend_queries_recorded_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{what}} recorded",
                ),
                q(
                    r#"sum by (what) (rate(emend_queries_written_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{what}} stored",
                ),
            ],
        },
        Panel {
            title: "Queries dropped",
            about: "Queries and interactions that were lost, per second, by reason. Normally none.",
            kind: Areas(Idle),
            unit: "cps",
            width: 8,
            queries: &[q(
                r#"sum by (reason) (rate(emend_queries_dropped_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{reason}}",
            )],
        },
        Panel {
            title: "Queries that wait in memory",
            about: "Queries and interactions that a replica holds until they are stored. A replica that is killed loses them.",
            kind: Lines(Few),
            unit: "short",
            width: 8,
            queries: &[q(
                r#"sum by (instance) (emend_queries_queued{namespace=~"$namespace"})"#,
                "{{instance}}",
            )],
        },
    ],
};
