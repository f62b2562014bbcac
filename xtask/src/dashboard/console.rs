//! What the dashboard shows of the console.

use super::{
    Kind::{Against, Areas, Lines},
    Panel, Row,
    Series::{Few, Idle},
    q,
};

pub(super) const ROW: Row = Row {
    title: "Console",
    panels: &[
        Panel {
            title: "Pages and forms",
            about: "Pages asked for and forms sent, per second, by how they ended. away: a service could not be reached; refused: something entered is not right, or somebody else was faster.",
            kind: Areas(Idle),
            unit: "reqps",
            width: 8,
            queries: &[q(
                r#"sum by (outcome) (rate(emend_console_requests_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{outcome}}",
            )],
        },
        Panel {
            title: "Time of a page (p99)",
            about: "How long pages take by part of the console, with the calls that they make. Normally less than a tenth of a second.",
            kind: Against(0.1, 0.5),
            unit: "s",
            width: 8,
            queries: &[q(
                r#"histogram_quantile(0.99, sum by (le, part) (rate(emend_console_request_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))"#,
                "{{part}}",
            )],
        },
        Panel {
            title: "Open pages",
            about: "Open pages that are told what changes, the watches at learning-svc that they share, and pages within an hour that were not told because as many follow as may.",
            kind: Lines(Few),
            unit: "short",
            width: 8,
            queries: &[
                q(
                    r#"sum(emend_console_live_pages{namespace=~"$namespace"})"#,
                    "pages",
                ),
                q(
                    r#"sum(emend_console_watches{namespace=~"$namespace"})"#,
                    "watches",
                ),
                q(
                    r#"sum by (reason) (increase(emend_console_live_refused_total{namespace=~"$namespace"}[1h]))"#,
                    "not told: {{reason}}",
                ),
            ],
        },
    ],
};
