//! What the dashboard shows of calls: how many, how they end, how long they take, and what is refused.

use super::{
    Kind::{Against, Areas, Lines},
    Panel, Row,
    Series::{Few, Many},
    q,
};

pub(super) const ROW: Row = Row {
    title: "Calls: rate, errors, duration",
    panels: &[
        Panel {
            title: "Rate by method",
            about: "Unary calls that ended, per second.",
            kind: Lines(Many),
            unit: "reqps",
            width: 8,
            queries: &[q(
                r#"sum by (grpc_service, grpc_method) (rate(grpc_server_handled_total{grpc_service=~"emend[.].+", grpc_type="unary", namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{grpc_method}}",
            )],
        },
        Panel {
            title: "Errors by method and code",
            about: "Calls and streams that ended with a code other than OK, per second, by the code in the trailers.",
            kind: Lines(Many),
            unit: "reqps",
            width: 8,
            queries: &[q(
                r#"sum by (grpc_service, grpc_method, grpc_code) (rate(grpc_server_handled_total{grpc_service=~"emend[.].+", grpc_code!="OK", namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{grpc_method}} {{grpc_code}}",
            )],
        },
        Panel {
            title: "Duration by method, 99 %",
            about: "The time within which 99 % of the unary calls ended.",
            kind: Lines(Many),
            unit: "s",
            width: 8,
            queries: &[q(
                r#"histogram_quantile(0.99, sum by (le, grpc_service, grpc_method) (rate(grpc_server_handling_seconds_bucket{grpc_service=~"emend[.].+", grpc_type="unary", namespace=~"$namespace"}[$__rate_interval]))) > 0"#,
                "{{grpc_method}}",
            )],
        },
        Panel {
            title: "Share of failed calls",
            about: "The share of unary calls that ended with a fault of the service. The objective allows 0.1 % over 30 days.",
            kind: Against(0.001, 0.002),
            unit: "percentunit",
            width: 8,
            queries: &[
                q(
                    r#"namespace_service:emend_calls_failed:ratio_rate5m{namespace=~"$namespace"}"#,
                    "{{service}} 5 min {{namespace}}",
                ),
                q(
                    r#"namespace_service:emend_calls_failed:ratio_rate1h{namespace=~"$namespace"}"#,
                    "{{service}} 1 h {{namespace}}",
                ),
                q(
                    r#"namespace_service:emend_calls_failed:ratio_rate6h{namespace=~"$namespace"}"#,
                    "{{service}} 6 h {{namespace}}",
                ),
                q(
                    r#"namespace_service:emend_calls_failed:ratio_rate3d{namespace=~"$namespace"}"#,
                    "{{service}} 3 d {{namespace}}",
                ),
            ],
        },
        Panel {
            title: "In flight",
            about: "Calls and streams in progress, by method.",
            kind: Areas(Many),
            unit: "short",
            width: 8,
            queries: &[q(
                r#"sum by (grpc_service, grpc_method) (grpc_server_in_flight{grpc_service=~"emend[.].+", namespace=~"$namespace"})"#,
                "{{grpc_method}}",
            )],
        },
        Panel {
            title: "Duration by service",
            about: "The time within which half, and 99 %, of the unary calls ended.",
            kind: Lines(Many),
            unit: "s",
            width: 8,
            queries: &[
                q(
                    r#"label_replace(histogram_quantile(0.5, sum by (le, grpc_service) (rate(grpc_server_handling_seconds_bucket{grpc_service=~"emend[.].+", grpc_type="unary", namespace=~"$namespace"}[$__rate_interval]))) > 0, "short", "$1", "grpc_service", ".*[.]([A-Za-z]+)")"#,
                    "{{short}} 50 %",
                ),
                q(
                    r#"label_replace(histogram_quantile(0.99, sum by (le, grpc_service) (rate(grpc_server_handling_seconds_bucket{grpc_service=~"emend[.].+", grpc_type="unary", namespace=~"$namespace"}[$__rate_interval]))) > 0, "short", "$1", "grpc_service", ".*[.]([A-Za-z]+)")"#,
                    "{{short}} 99 %",
                ),
            ],
        },
        Panel {
            title: "Share of refused calls",
            about: "The share of all calls that a service refused to defend itself (RESOURCE_EXHAUSTED). They spend no error budget.",
            kind: Against(0.05, 0.1),
            unit: "percentunit",
            width: 8,
            queries: &[q(
                r#"namespace_service:emend_calls_refused:ratio_rate5m{namespace=~"$namespace"}"#,
                "{{service}} {{namespace}}",
            )],
        },
        Panel {
            title: "Refused connections",
            about: "Connections that replicas closed at once because they had too many, per second.",
            kind: Lines(Few),
            unit: "cps",
            width: 8,
            queries: &[q(
                r#"sum by (instance) (rate(emend_connections_refused_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{instance}}",
            )],
        },
        Panel {
            title: "Ready replicas",
            about: "Replicas that are ready. Where none is, callers get no answer at all, and that counts as no call.",
            kind: Lines(Few),
            unit: "short",
            width: 8,
            queries: &[q(
                r#"sum by (service, namespace) (emend_ready{namespace=~"$namespace"})"#,
                "{{service}} {{namespace}}",
            )],
        },
    ],
};
