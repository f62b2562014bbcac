//! Metrics: a running pair shows every described metric, with the described name, type and labels, and each moves when
//! it should.

use std::{collections::BTreeSet, net::SocketAddr, path::Path, time::Duration};

use emend_base::{Lifecycle, telemetry::Metrics};
use emend_client::Subscriber;
use emend_console::ConsoleMetrics;
use emend_core::Revision;
use emend_edge::{EdgeMetrics, sinks::SinkMetrics};
use emend_mcp::http::McpMetrics;
use emend_proto::{
    common::v1::SearchRatingValue,
    feedback::v1::{GetFeedbackRequest, QueryInteraction, RecordInteractionRequest, SubmitFeedbackRequest},
    learning::v1::{
        ApplyTrustFileRequest, GenerateImprovementRequest, IngestRequest, NodeInfo, SubscribeRequest,
        TrustFileFormat,
    },
};
use emend_serve::metrics::ServerMetrics;
use emend_store::metrics::DatabaseMetrics;
use emend_tests::harness::{
    Feedback, Learning, NAMESPACE, alias, answered,
    deployment::Up,
    eventually,
    http::{Scraped, ask, until_counted, until_shown},
    phrase,
    process::free_port,
    says,
    says::{finds_fault, prompt_key, prompt_value, search_rates},
    wait::holds,
    within,
};
use tonic::Code;

use crate::{ONLY_WITH_TLS, profiles::suggested};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
const BEGIN: &str =
    "<!-- generated from the code: EMEND_UPDATE_DOCS=1 cargo test -p emend-tests --test system metrics -->";
const END: &str = "<!-- end of what is generated -->";

/// What the code describes, in the form of the reference.
fn described() -> String {
    let metrics = Metrics::new();
    let _ = metrics.group::<ServerMetrics>();
    let _ = metrics.group::<DatabaseMetrics>();
    let mut text = String::new();
    let mut shown = 0;
    let mut section = |title: &str| {
        let all = metrics.descriptions();
        text.push_str("\n## ");
        text.push_str(title);
        text.push_str("\n\n");
        text.push_str(&Metrics::table(&all[shown..]));
        shown = all.len();
    };
    section("Every process");
    feedback_svc::describe_metrics(&metrics);
    section("feedback-svc");
    learning_svc::metrics::LearningMetrics::register(&metrics);
    section("learning-svc");
    let _ = ConsoleMetrics::of(&metrics);
    section("The console");
    let _ = EdgeMetrics::of(&metrics);
    section("The edge");
    let _ = SinkMetrics::of_process(&metrics);
    section("Sinks of an edge");
    let _ = McpMetrics::of(&metrics);
    section("Assistants over HTTP");
    text
}

#[test]
fn the_reference_of_metrics_matches_the_code() {
    let reference = std::fs::read_to_string(REFERENCE).unwrap();
    let (before, rest) = reference.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let right = format!("{before}{BEGIN}\n{}\n{END}{after}", described());
    if std::env::var_os("EMEND_UPDATE_DOCS").is_some() {
        std::fs::write(REFERENCE, right).unwrap();
        return;
    }
    assert_eq!(reference, right, "EMEND_UPDATE_DOCS=1 rewrites docs/metrics.md");
}

/// Whether a pair without TLS, an edge and assistants over HTTP shows a metric; `alerts.rs` looks for those of an edge.
fn is_of_a_pair(name: &str) -> bool {
    let is_of_an_edge = name.starts_with("emend_edge_") || name.starts_with("emend_sink_");
    !ONLY_WITH_TLS.contains(&name) && !is_of_an_edge && !name.starts_with("emend_mcp_")
}

/// The rows of the reference: name, type, label names.
fn rows() -> Vec<(String, String, Vec<String>)> {
    let reference = std::fs::read_to_string(REFERENCE).unwrap();
    let rows = reference.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row
            .split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ', '`']))
            .collect();
        let labels = cells[3].split(", ").filter(|label| !label.is_empty());
        let labels = labels.map(|label| label.trim_matches('`').split('=').next().unwrap().to_owned());
        (cells[0].to_owned(), cells[1].to_owned(), labels.collect())
    })
    .collect()
}

/// The metrics named by dashboards, rules and runbooks; a name with a colon is a recording rule's.
fn names_in_use() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names = BTreeSet::new();
    let mut directories = vec![root.join("deploy/observability"), root.join("docs/runbooks")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
            let ours = words.filter(|word| {
                let ours = ["emend_", "grpc_server_", "process_"];
                ours.iter().any(|prefix| word.starts_with(prefix)) && !word.contains(':')
            });
            names.extend(ours.map(str::to_owned));
        }
    }
    names
}

/// `emend up` with its metrics on a known port.
async fn up() -> (Up, SocketAddr) {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
    let up = Up::start_with(&["--ephemeral", "--metrics-addr", &address.to_string()]).await;
    (up, address)
}

fn of(service: &str, method: &str, kind: &str) -> String {
    format!("grpc_type=\"{kind}\",grpc_service=\"emend.{service}\",grpc_method=\"{method}\"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_documented_metric_is_exported_and_changes() {
    let (up, address) = up().await;
    let (feedback, learning) = (Feedback::at(up.feedback), Learning::at(up.learning));
    let lifecycle = Lifecycle::new();
    let node = Subscriber::builder(format!("http://{}", up.learning), "search-1")
        .report_interval(Duration::from_millis(20))
        .spawn(&lifecycle)
        .await
        .unwrap();
    until_counted(address, "emend_subscribers", 1).await;
    until_counted(address, "emend_snapshots_total{reason=\"no_cursor\"}", 1).await;
    let trust_file = ApplyTrustFileRequest {
        content: format!("namespaces: [{NAMESPACE}]\nversion: 7\n"),
        format: TrustFileFormat::Yaml.into(),
        ..ApplyTrustFileRequest::default()
    };
    answered(learning.evidence.clone().apply_trust_file(trust_file).await);

    // An alias applies immediately; a phrase waits for more votes.
    let learned = feedback.learn(says("jane", alias("jd", "jane-doe"))).await;
    feedback
        .learn(says("jane", phrase("set up a csa", "create_csa")))
        .await;
    let revision = learned.outcome.unwrap().revision;
    within(
        "the node applies it",
        node.view().wait_for_revision(Revision(revision)),
    )
    .await;
    let commented = SubmitFeedbackRequest {
        reason: "<b>ask</b> jane.doe@example.org".into(),
        ..search_rates("jane", "q0", SearchRatingValue::Down)
    };
    feedback.submit(commented).await;
    for query in 1..10 {
        let rating = search_rates("jane", &format!("q{query}"), SearchRatingValue::Up);
        feedback.submit(rating).await;
    }
    let one_more = search_rates("jane", "q10", SearchRatingValue::Up);
    let refused = feedback
        .service
        .clone()
        .submit_feedback(one_more)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    for (series, expected) in [
        (
            "emend_search_ratings_total{rating=\"down\",query_type=\"unknown\"}",
            1,
        ),
        (
            "emend_search_ratings_total{rating=\"up\",query_type=\"unknown\"}",
            9,
        ),
        ("emend_search_ratings_refused_total", 1),
        ("emend_search_ratings_failed_total", 0),
        ("emend_search_ratings_missing_total", 10),
        ("emend_search_ratings_html_removed_total", 1),
        ("emend_search_ratings_masked_total", 1),
        ("emend_feedback_stored_total{correction=\"entity\"}", 1),
        ("emend_feedback_stored_total{correction=\"phrase_mapping\"}", 1),
        (
            "emend_promotions_total{kind=\"entity_alias\",reason=\"votes\"}",
            1,
        ),
        ("emend_candidates{kind=\"entity_alias\",status=\"applied\"}", 1),
        (
            "emend_candidates{kind=\"invocation_phrase\",status=\"pending\"}",
            1,
        ),
        ("emend_evidence_backlog{of=\"claims\"}", 0),
        ("emend_trust_file_applied_version{application=\"fund-admin\"}", 7),
        ("emend_head_revision", 1),
        ("emend_resources", 1),
        ("emend_state_age_seconds", 0),
        ("emend_applied_lag_seconds_count", 1),
        ("emend_time_to_effect_seconds_count", 1),
        ("emend_nodes{state=\"connected\"}", 1),
        ("emend_node_revisions_behind_max", 0),
        ("emend_outbox_entries", 0),
        ("emend_outbox_oldest_age_seconds", 0),
        ("emend_dead_letters", 0),
    ] {
        until_counted(address, series, expected).await;
    }
    until_shown(address, "emend_resource_bytes", |bytes| bytes > 10.0).await;

    learning.put(prompt_key(""), prompt_value("Summarise.")).await;
    for output in ["1", "2", "3"] {
        feedback.learn(finds_fault("jane", output, "vague")).await;
    }
    let generate = GenerateImprovementRequest {
        namespace: NAMESPACE.into(),
        target: "SUMMARIZE_DAILY".into(),
        ..GenerateImprovementRequest::default()
    };
    answered(learning.outputs.clone().generate_improvement(generate).await);
    for series in [
        "emend_generations_total{outcome=\"proposed\"}",
        "emend_generation_seconds_count",
    ] {
        until_counted(address, series, 1).await;
    }

    assert_eq!(suggested(&learning, "jane", &["Kafka"]).await.len(), 1);
    for series in [
        "emend_profile_activities_total",
        "emend_profile_suggestions_total{result=\"proposed\"}",
    ] {
        until_counted(address, series, 1).await;
    }

    let interaction = |position| QueryInteraction {
        query_id: "q-1".into(),
        object_id: "card-1".into(),
        action: "click".into(),
        position,
        acted_at: None,
    };
    let clicks = RecordInteractionRequest {
        namespace: NAMESPACE.into(),
        interactions: vec![interaction(1), interaction(1)],
    };
    answered(feedback.queries.clone().record_interaction(clicks).await);
    for (series, expected) in [
        ("emend_queries_recorded_total{what=\"interaction\"}", 2),
        ("emend_queries_written_total{what=\"interaction\"}", 1),
        ("emend_queries_written_total{what=\"query\"}", 0),
        ("emend_queries_dropped_total{reason=\"queue_full\"}", 0),
        ("emend_queries_queued", 0),
        ("emend_synonyms_mined_total", 0),
    ] {
        until_counted(address, series, expected).await;
    }

    // Codes wherever they appear: in headers alone, in trailers after headers, and nowhere because the caller left.
    let missing = GetFeedbackRequest {
        namespace: NAMESPACE.into(),
        feedback_id: "5d1f1c3e-8a0e-4c6a-9d39-0d1f6f0f5a11".into(),
    };
    let refused = feedback.service.clone().get_feedback(missing).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let empty = tokio_stream::iter([IngestRequest::default()]);
    let mut ingest = learning.ingest.clone().ingest(empty).await.unwrap().into_inner();
    assert_eq!(ingest.message().await.unwrap_err().code(), Code::InvalidArgument);
    let subscribe = SubscribeRequest {
        node: Some(NodeInfo {
            id: "gone".into(),
            ..NodeInfo::default()
        }),
        ..SubscribeRequest::default()
    };
    drop(learning.subscriptions.clone().subscribe(subscribe).await.unwrap());
    for (labels, code) in [
        (
            of("feedback.v1.FeedbackService", "GetFeedback", "unary"),
            "NotFound",
        ),
        (of("feedback.v1.FeedbackService", "SubmitFeedback", "unary"), "OK"),
        (
            of("learning.v1.IngestService", "Ingest", "bidi_stream"),
            "InvalidArgument",
        ),
        (
            of("learning.v1.SubscriptionService", "Subscribe", "server_stream"),
            "Canceled",
        ),
    ] {
        let series = format!("grpc_server_handled_total{{{labels},grpc_code=\"{code}\"}}");
        until_shown(address, &series, |count| count >= 1.0).await;
    }
    until_counted(address, "emend_streams_ended_total{reason=\"client_gone\"}", 1).await;
    let subscribe = of("learning.v1.SubscriptionService", "Subscribe", "server_stream");
    let scraped = Scraped::from(address).await;
    assert_eq!(
        scraped.value(&format!("grpc_server_in_flight{{{subscribe}}}")),
        Some(1.0),
        "the node's"
    );
    assert_eq!(
        scraped.value(&format!("grpc_server_started_total{{{subscribe}}}")),
        Some(2.0)
    );
    assert!(scraped.sum("emend_db_pool_connections_max") >= 2.0);
    assert!(scraped.value("process_resident_memory_bytes").unwrap() > 1e6);

    for (name, kind, labels) in rows().into_iter().filter(|(name, ..)| is_of_a_pair(name)) {
        expect_shown(&scraped, &name, &kind, &labels);
    }
    for name in names_in_use().into_iter().filter(|name| is_of_a_pair(name)) {
        let is_shown = scraped.0.lines().any(|line| {
            let series = line.split(['{', ' ']).next().unwrap();
            series == name
        });
        assert!(is_shown, "{name} is named by a dashboard, a rule or a runbook");
    }
    lifecycle.shutdown(Duration::from_secs(5)).await;
}

/// Checks that a metric is shown as described.
fn expect_shown(scraped: &Scraped, name: &str, kind: &str, labels: &[String]) {
    let family = name.strip_suffix("_total").unwrap_or(name);
    let declared = format!("# TYPE {family} {kind}");
    let text = &scraped.0;
    assert!(text.lines().any(|line| line == declared), "{declared}:\n{text}");
    assert!(
        text.lines()
            .any(|line| line.starts_with(&format!("# HELP {family} "))),
        "{name} has no help"
    );
    let sample = match kind {
        "histogram" => format!("{name}_count"),
        _ => name.to_owned(),
    };
    let series = text.lines().find(|line| {
        let rest = line.strip_prefix(&sample);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    });
    let series = series.unwrap_or_else(|| panic!("{name} has no series:\n{text}"));
    for label in labels {
        assert!(
            series.contains(&format!("{label}=\"")),
            "{name} has no {label}: {series}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_port_shows_readiness_and_changes_the_log_level() {
    let (mut up, address) = up().await;
    let answer = ask(address, "GET", "/metrics", "").await;
    let typed = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(
        answer.head.contains(typed) && answer.body.ends_with("# EOF\n"),
        "{}",
        answer.head
    );
    for path in ["/livez", "/readyz"] {
        assert_eq!(ask(address, "GET", path, "").await.status, 200, "{path}");
    }

    let answered = |line: &str| line.contains("answered").then_some(());
    let feedback = Feedback::at(up.feedback);
    feedback.submit(says("jane", alias("jd", "jane-doe"))).await;
    assert_eq!(up.process.logged(answered), None, "that is for debugging");
    let changed = ask(address, "PUT", "/log-level", "info,emend_serve=debug").await;
    assert_eq!(changed.status, 200, "{changed:?}");
    eventually("calls are logged", || async {
        feedback.submit(says("jane", alias("jd", "jane-doe"))).await;
        holds(up.process.logged(answered).is_some(), String::new)
    })
    .await;

    up.process.terminate().await;
    assert!(up.process.ended().await.success());
}
