//! What the dashboard shows. `namespace` is the label of an installation; a value that all replicas report alike is
//! taken once, by its maximum.

use super::{
    Kind::{Against, Alerts, Areas, Figure, Lines, LinesWithTraces, Plain, Share},
    Panel, Row,
    Series::{Few, Idle},
    q,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        title: "At a glance",
        panels: &[
            Panel {
                title: "Oldest in outbox",
                about: "How long the oldest correction has waited for learning-svc. Normally some milliseconds.",
                kind: Figure(10.0, 60.0),
                unit: "s",
                width: 4,
                queries: &[q(
                    r#"max(emend_outbox_oldest_age_seconds{namespace=~"$namespace"})"#,
                    "",
                )],
            },
            Panel {
                title: "Dead letters",
                about: "Events that learning-svc refused for good. Normally none.",
                kind: Figure(1.0, 1.0),
                unit: "short",
                width: 4,
                queries: &[q(r#"max(emend_dead_letters{namespace=~"$namespace"})"#, "")],
            },
            Panel {
                title: "Error budget left: calls",
                about: "The share left of the 0.1 % of calls that may fail within 30 days. Below 0 the objective is missed.",
                kind: Share(0.5, 0.0),
                unit: "percentunit",
                width: 4,
                queries: &[q(
                    r#"min by (service) (namespace_service:emend_calls_budget:left{namespace=~"$namespace"})"#,
                    "{{service}}",
                )],
            },
            Panel {
                title: "Error budget left: effects",
                about: "The share left of the 1 % of effects that may take longer than 5 s within 30 days. Below 0 the objective is missed.",
                kind: Share(0.5, 0.0),
                unit: "percentunit",
                width: 4,
                queries: &[q(
                    r#"min(namespace:emend_effects_budget:left{namespace=~"$namespace"})"#,
                    "",
                )],
            },
            Panel {
                title: "Replicas",
                about: "Replicas that answer Prometheus.",
                kind: Plain,
                unit: "short",
                width: 4,
                queries: &[q(
                    r#"count by (service) (emend_build_info{namespace=~"$namespace"})"#,
                    "{{service}}",
                )],
            },
            Panel {
                title: "Subscribers",
                about: "Open streams, on all replicas.",
                kind: Plain,
                unit: "short",
                width: 4,
                queries: &[q(r#"sum(emend_subscribers{namespace=~"$namespace"})"#, "")],
            },
            Panel {
                title: "Alerts",
                about: "Alerts that are firing. The runbook of each is in docs/runbooks, under its name.",
                kind: Alerts,
                unit: "short",
                width: 24,
                queries: &[q(super::ALERTS, "")],
            },
        ],
    },
    super::calls::ROW,
    Row {
        title: "Outbox",
        panels: &[
            Panel {
                title: "Corrections stored",
                about: "Corrections per second, by what is corrected.",
                kind: Areas(Few),
                unit: "cps",
                width: 8,
                queries: &[q(
                    r#"sum by (correction) (rate(emend_feedback_stored_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{correction}}",
                )],
            },
            Panel {
                title: "Waiting for delivery",
                about: "Entries of the outbox, and dead letters. Every replica reports the same table.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[
                    q(
                        r#"max by (namespace) (emend_outbox_entries{namespace=~"$namespace"})"#,
                        "waiting {{namespace}}",
                    ),
                    q(
                        r#"max by (namespace) (emend_dead_letters{namespace=~"$namespace"})"#,
                        "dead {{namespace}}",
                    ),
                ],
            },
            Panel {
                title: "Age of the oldest entry",
                about: "How long the oldest entry has waited.",
                kind: Lines(Few),
                unit: "s",
                width: 8,
                queries: &[q(
                    r#"max by (namespace) (emend_outbox_oldest_age_seconds{namespace=~"$namespace"})"#,
                    "oldest {{namespace}}",
                )],
            },
        ],
    },
    super::ratings::ROW,
    Row {
        title: "What is learned",
        panels: &[
            Panel {
                title: "Promotions",
                about: "Values applied, by kind and reason.",
                kind: Areas(Idle),
                unit: "cps",
                width: 8,
                queries: &[q(
                    r#"sum by (kind, reason) (rate(emend_promotions_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{kind}} {{reason}}",
                )],
            },
            Panel {
                title: "Candidates",
                about: "Candidates by status. Those that await review need a person's decision.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[q(
                    r#"sum by (status) (max by (namespace, kind, status) (emend_candidates{namespace=~"$namespace"}))"#,
                    "{{status}}",
                )],
            },
            Panel {
                title: "Revisions",
                about: "Revisions appended to the log, per second.",
                kind: Lines(Few),
                unit: "cps",
                width: 8,
                queries: &[q(
                    r#"clamp_min(max by (namespace) (deriv(emend_head_revision{namespace=~"$namespace"}[5m])), 0)"#,
                    "revisions {{namespace}}",
                )],
            },
            Panel {
                title: "Evidence to be followed",
                about: "Names, claims and domains for which is to be computed anew what follows from changed evidence.",
                kind: Lines(Few),
                unit: "short",
                width: 24,
                queries: &[q(
                    r#"max by (namespace, of) (emend_evidence_backlog{namespace=~"$namespace"})"#,
                    "{{of}} {{namespace}}",
                )],
            },
        ],
    },
    Row {
        title: "Streams and nodes",
        panels: &[
            Panel {
                title: "Subscribers by replica",
                about: "Open streams. They should be spread over the replicas.",
                kind: Areas(Few),
                unit: "short",
                width: 8,
                queries: &[q(
                    r#"sum by (instance) (emend_subscribers{namespace=~"$namespace"})"#,
                    "{{instance}}",
                )],
            },
            Panel {
                title: "Nodes",
                about: "Search nodes by state, as stored in the database.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[q(
                    r#"sum by (state) (max by (namespace, state) (emend_nodes{namespace=~"$namespace"}))"#,
                    "{{state}}",
                )],
            },
            Panel {
                title: "Node skew",
                about: "Revisions that the connected node furthest behind has not applied.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[q(
                    r#"max by (namespace) (emend_node_revisions_behind_max{namespace=~"$namespace"})"#,
                    "furthest behind {{namespace}}",
                )],
            },
            Panel {
                title: "Commit to applied",
                about: "The time from a revision's commit until nodes applied it, as they report.",
                kind: Lines(Few),
                unit: "s",
                width: 8,
                queries: &[
                    q(
                        r#"histogram_quantile(0.5, sum by (le) (rate(emend_applied_lag_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))"#,
                        "50 %",
                    ),
                    q(
                        r#"histogram_quantile(0.99, sum by (le) (rate(emend_applied_lag_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))"#,
                        "99 %",
                    ),
                ],
            },
            Panel {
                title: "Snapshots",
                about: "Snapshots per second, by reason. no_cursor is a new node; the others mean that something was lost or replaced.",
                kind: Areas(Idle),
                unit: "cps",
                width: 8,
                queries: &[q(
                    r#"sum by (reason) (rate(emend_snapshots_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{reason}}",
                )],
            },
            Panel {
                title: "Streams ended",
                about: "Streams that ended, per second, by reason.",
                kind: Areas(Idle),
                unit: "cps",
                width: 8,
                queries: &[q(
                    r#"sum by (reason) (rate(emend_streams_ended_total{namespace=~"$namespace"}[$__rate_interval]))"#,
                    "{{reason}}",
                )],
            },
            Panel {
                title: "Age of what is served",
                about: "How long ago each replica last read its log to the end. It grows while the database is away; streams then serve what is held.",
                kind: Lines(Few),
                unit: "s",
                width: 24,
                queries: &[q(
                    r#"max by (instance) (emend_state_age_seconds{namespace=~"$namespace"})"#,
                    "{{instance}}",
                )],
            },
        ],
    },
    Row {
        title: "What never goes back",
        panels: &[
            Panel {
                title: "Head of the log",
                about: "The newest revision, and the newest within six hours. The two are equal, unless the database has lost revisions.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[
                    q(
                        r#"max by (namespace) (emend_head_revision{namespace=~"$namespace"})"#,
                        "now {{namespace}}",
                    ),
                    q(
                        r#"max by (namespace) (max_over_time(emend_head_revision{namespace=~"$namespace"}[6h]))"#,
                        "within 6 h {{namespace}}",
                    ),
                ],
            },
            Panel {
                title: "Nodes of another epoch",
                about: "Snapshots within 15 minutes because nodes hold what the log does not have: one for each node after a restore, none otherwise.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[q(
                    r#"sum by (reason, namespace) (increase(emend_snapshots_total{reason=~"foreign_epoch|cursor_ahead|new_epoch", namespace=~"$namespace"}[15m]))"#,
                    "{{reason}} {{namespace}}",
                )],
            },
            Panel {
                title: "Another installation answers",
                about: "1 while another installation of learning-svc answers than the one that feedback-svc delivers to. Corrections wait until then.",
                kind: Lines(Few),
                unit: "short",
                width: 8,
                queries: &[q(
                    r#"max by (namespace) (emend_installation_mismatch{namespace=~"$namespace"})"#,
                    "mismatch {{namespace}}",
                )],
            },
        ],
    },
    Row {
        title: "Time to effect",
        panels: &[
            Panel {
                title: "Time to effect",
                about: "From feedback received to applied by a node. A dot is one measurement, with the id of its trace.",
                kind: LinesWithTraces,
                unit: "s",
                width: 12,
                queries: &[
                    q(
                        r#"histogram_quantile(0.5, sum by (le) (rate(emend_time_to_effect_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))"#,
                        "50 %",
                    ),
                    q(
                        r#"histogram_quantile(0.99, sum by (le) (rate(emend_time_to_effect_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))"#,
                        "99 %",
                    ),
                ],
            },
            Panel {
                title: "Share of late effects",
                about: "The share of effects that took longer than 5 s. The objective allows 1 % over 30 days.",
                kind: Against(0.01, 0.02),
                unit: "percentunit",
                width: 12,
                queries: &[
                    q(
                        r#"max(namespace:emend_effects_late:ratio_rate5m{namespace=~"$namespace"})"#,
                        "5 min",
                    ),
                    q(
                        r#"max(namespace:emend_effects_late:ratio_rate1h{namespace=~"$namespace"})"#,
                        "1 h",
                    ),
                    q(
                        r#"max(namespace:emend_effects_late:ratio_rate6h{namespace=~"$namespace"})"#,
                        "6 h",
                    ),
                    q(
                        r#"max(namespace:emend_effects_late:ratio_rate3d{namespace=~"$namespace"})"#,
                        "3 d",
                    ),
                ],
            },
        ],
    },
    super::console::ROW,
    super::edge::ROW,
    super::edge::SINKS,
    super::mcp::ROW,
    super::processes::DATABASE,
    super::processes::PROCESSES,
];
