//! What the dashboard shows of edges and their sinks.

use super::{
    Kind::{Against, Areas, Lines},
    Panel, Row,
    Series::{Few, Idle},
    q,
};

pub(super) const ROW: Row = Row {
    title: "Edges",
    panels: &[
        Panel {
            title: "Look-ups",
            about: "Requests for look-ups per second, by how they ended. away: the edge had no state yet, or not the revision that was waited for; refused: something in the request is wrong, or its caller may not ask.",
            kind: Areas(Idle),
            unit: "reqps",
            width: 8,
            queries: &[q(
                r#"sum by (outcome) (rate(emend_edge_requests_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{outcome}}",
            )],
        },
        Panel {
            title: "Time of a look-up (p99)",
            about: "How long requests take by look-up, in the process, with the wait for a revision where one was asked for. Normally less than a thousandth of a second.",
            kind: Against(0.001, 0.005),
            unit: "s",
            width: 8,
            queries: &[q(
                r#"histogram_quantile(0.99, sum by (le, lookup) (rate(emend_edge_request_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))"#,
                "{{lookup}}",
            )],
        },
        Panel {
            title: "Age of answers",
            about: "How long ago each edge was known to hold everything there was. Normally less than a minute; -1: it never had a state.",
            kind: Against(60.0, 300.0),
            unit: "s",
            width: 8,
            queries: &[q(
                r#"max by (instance) (emend_edge_age_seconds{namespace=~"$namespace"})"#,
                "{{instance}}",
            )],
        },
    ],
};

pub(super) const SINKS: Row = Row {
    title: "Sinks",
    panels: &[
        Panel {
            title: "Sinks with a problem",
            about: "away: what the sink writes to can't be reached; refused: it refuses what it is asked; drift: somebody else changed the set, and it is left so. Normally empty.",
            kind: Lines(Idle),
            unit: "short",
            width: 8,
            queries: &[q(
                r#"max by (sink, problem) (emend_sink_problem{namespace=~"$namespace"}) > 0"#,
                "{{sink}} {{problem}}",
            )],
        },
        Panel {
            title: "Not in the engine yet",
            about: "For how long each sink has had a revision that its engine is not known to answer by. With a pace or a window it grows until those allow a reload.",
            kind: Against(900.0, 1_800.0),
            unit: "s",
            width: 8,
            queries: &[q(
                r#"max by (sink) (emend_sink_unconfirmed_seconds{namespace=~"$namespace"})"#,
                "{{sink}}",
            )],
        },
        Panel {
            title: "Sets written, changes by others",
            about: "How often sets were written and loaded, or revisions delivered, per second; below that, how often a check found that somebody else had changed a set. More than one edge for one set shows here.",
            kind: Lines(Few),
            unit: "ops",
            width: 8,
            queries: &[
                q(
                    r#"sum by (sink) (rate(emend_sink_writes_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{sink}}",
                ),
                q(
                    r#"sum by (sink) (rate(emend_sink_drifts_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{sink}}, changed by others",
                ),
            ],
        },
    ],
};
