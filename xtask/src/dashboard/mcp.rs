//! What the dashboard shows of what serves assistants.

use super::{
    Kind::{Against, Areas},
    Panel, Row,
    Series::Idle,
    q,
};

pub(super) const ROW: Row = Row {
    title: "Assistants over HTTP",
    panels: &[
        Panel {
            title: "Requests of assistants",
            about: "Requests per second, by how they ended. refused: something in the request is wrong, or its caller may not ask; turned_away: there was no room for its session.",
            kind: Areas(Idle),
            unit: "reqps",
            width: 8,
            queries: &[q(
                r#"sum by (outcome) (rate(emend_mcp_requests_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{outcome}}",
            )],
        },
        Panel {
            title: "Sessions",
            about: "Sessions that are open in each process. There are 1,000 at most; then one that is idle makes room for another.",
            kind: Against(900.0, 1000.0),
            unit: "short",
            width: 8,
            queries: &[q(
                r#"max by (instance) (emend_mcp_sessions{namespace=~"$namespace"})"#,
                "{{instance}}",
            )],
        },
        Panel {
            title: "Turned away",
            about: "Requests per second for which a table had no room: for one session more, or for following one namespace more. Normally none.",
            kind: Areas(Idle),
            unit: "reqps",
            width: 8,
            queries: &[q(
                r#"sum by (table) (rate(emend_mcp_turned_away_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{table}}",
            )],
        },
    ],
};
