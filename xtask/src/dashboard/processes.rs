//! What the dashboard shows of the services' processes and of their database.

use super::{
    Kind::{Against, Areas, Count, Lines},
    Panel, Row,
    Series::{Few, Idle},
    q,
};

pub(super) const DATABASE: Row = Row {
    title: "Database",
    panels: &[
        Panel {
            title: "Share of connections in use",
            about: "The share of its database connections that a replica has in use, averaged over five minutes.",
            kind: Against(0.9, 1.0),
            unit: "percentunit",
            width: 8,
            queries: &[q(
                r#"max by (service, instance) (instance:emend_db_pool_used:ratio_avg5m{namespace=~"$namespace"})"#,
                "{{service}} {{instance}}",
            )],
        },
        Panel {
            title: "Connections",
            about: "Open connections by state, and their maximum.",
            kind: Lines(Few),
            unit: "short",
            width: 8,
            queries: &[
                q(
                    r#"sum by (service, state) (emend_db_pool_connections{namespace=~"$namespace"})"#,
                    "{{service}} {{state}}",
                ),
                q(
                    r#"sum by (service) (emend_db_pool_connections_max{namespace=~"$namespace"})"#,
                    "{{service}} at most",
                ),
            ],
        },
        Panel {
            title: "Errors",
            about: "Database errors per second, by reason. Conflicts are retried; contention counts those that were abandoned.",
            kind: Areas(Idle),
            unit: "cps",
            width: 8,
            queries: &[q(
                r#"sum by (instance, reason) (rate(emend_db_errors_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                "{{instance}} {{reason}}",
            )],
        },
    ],
};

pub(super) const PROCESSES: Row = Row {
    title: "Processes",
    panels: &[
        Panel {
            title: "Memory",
            about: "Resident memory. learning-svc holds everything that was learned.",
            kind: Lines(Few),
            unit: "bytes",
            width: 6,
            queries: &[q(
                r#"process_resident_memory_bytes{job=~".*emend.*", namespace=~"$namespace"}"#,
                "{{instance}}",
            )],
        },
        Panel {
            title: "Processor",
            about: "Processor time used, in cores.",
            kind: Lines(Few),
            unit: "short",
            width: 6,
            queries: &[q(
                r#"rate(process_cpu_seconds_total{job=~".*emend.*", namespace=~"$namespace"}[$__rate_interval])"#,
                "{{instance}}",
            )],
        },
        Panel {
            title: "Open files",
            about: "Open files and sockets. Each connection is one.",
            kind: Lines(Few),
            unit: "short",
            width: 6,
            queries: &[q(
                r#"process_open_fds{job=~".*emend.*", namespace=~"$namespace"}"#,
                "{{instance}}",
            )],
        },
        Panel {
            title: "Starts within an hour",
            about: "How often a replica was restarted. An upgrade counts as one.",
            kind: Lines(Few),
            unit: "short",
            width: 6,
            queries: &[q(
                r#"changes(process_start_time_seconds{job=~".*emend.*", namespace=~"$namespace"}[1h])"#,
                "{{instance}}",
            )],
        },
        Panel {
            title: "Versions",
            about: "The versions that run, and on how many replicas.",
            kind: Count("replicas"),
            unit: "short",
            width: 12,
            queries: &[q(
                r#"count by (service, version) (emend_build_info{namespace=~"$namespace"})"#,
                "",
            )],
        },
        Panel {
            title: "Certificates",
            about: "The time left until a service's own certificate expires, and of those of its callers the five that expire first.",
            kind: Lines(Few),
            unit: "s",
            width: 12,
            queries: &[
                q(
                    r#"clamp_min(min by (service, certificate) (emend_certificate_not_after_timestamp_seconds{namespace=~"$namespace"}) - time(), 0)"#,
                    "{{service}}: {{certificate}}",
                ),
                q(
                    r#"clamp_min(bottomk(5, min by (principal) (emend_client_certificate_not_after_timestamp_seconds{namespace=~"$namespace"})) - time(), 0)"#,
                    "{{principal}}",
                ),
            ],
        },
    ],
};
