//! Alerts and queries on a running pair, by a real Prometheus: the alert on the oldest outbox entry fires while
//! learning-svc is down and ends when it is back; every query of the dashboard, the rules and the documents is
//! answered; every metric in the reference exists.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use emend_proto::learning::v1::{ApplyTrustFileRequest, TrustFileFormat};
use emend_tests::harness::{
    NAMESPACE, alias, answered,
    deployment::{Deployment, Program},
    node::Node,
    process::Process,
    prometheus::Prometheus,
    says,
    tamper::age_outbox,
    wait::{eventually, holds},
};
use serde_json::Value;

use crate::{ONLY_WITH_TLS, real_clients::tool};

const RULES: &str = "deploy/observability/rules/emend.rules.yaml";
const DASHBOARD: &str = "deploy/observability/dashboards/emend.json";
const REFERENCE: &str = "docs/metrics.md";
const RUNBOOKS: &str = "docs/runbooks";

/// The severities of the alert under test.
const OLDEST: [&str; 2] = ["critical", "warning"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rules without their `for` durations: the test is about the conditions.
fn rules_at_once() -> String {
    let rules = text(RULES);
    let lines = rules
        .lines()
        .filter(|line| !line.trim_start().starts_with("for: "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A program's metrics address, according to its log.
async fn metrics_of(program: &Program) -> SocketAddr {
    metrics_at(program.process.as_ref().expect("it runs")).await
}

async fn metrics_at(process: &Process) -> SocketAddr {
    eventually("the log tells where metrics are", || async {
        let address = process.logged(|line| {
            let (_, told) = line.split_once("metrics and readiness are served over HTTP")?;
            told.split("address=")
                .nth(1)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        });
        address.ok_or_else(|| process.output())
    })
    .await
}

async fn prometheus_of(program: &std::ffi::OsStr, pair: &Deployment) -> Prometheus {
    prometheus_with(program, pair, &[]).await
}

/// The same with others beside the pair.
async fn prometheus_with(program: &std::ffi::OsStr, pair: &Deployment, others: &[&Process]) -> Prometheus {
    let mut targets = vec![metrics_of(&pair.feedback).await, metrics_of(&pair.learning).await];
    for other in others {
        targets.push(metrics_at(other).await);
    }
    Prometheus::start(program, &rules_at_once(), &targets).await
}

/// A console of its own beside the pair.
async fn console_of(pair: &Deployment) -> Process {
    let [feedback, learning] =
        [&pair.feedback, &pair.learning].map(|program| program.front.address().to_string());
    Process::start(
        "emend",
        [
            "console",
            "--feedback-addr",
            &feedback,
            "--learning-addr",
            &learning,
            "--console-addr",
            "127.0.0.1:0",
            "--metrics-addr",
            "127.0.0.1:0",
        ],
    )
    .await
}

/// What serves assistants over HTTP, beside the pair.
async fn mcp_of(pair: &Deployment) -> Process {
    let [feedback, learning] =
        [&pair.feedback, &pair.learning].map(|program| program.front.address().to_string());
    Process::start(
        "emend",
        [
            "mcp",
            "--http",
            "127.0.0.1:0",
            "--feedback-addr",
            &feedback,
            "--learning-addr",
            &learning,
            "--metrics-addr",
            "127.0.0.1:0",
        ],
    )
    .await
}

/// An edge beside the pair, with a sink in this directory.
async fn edge_of(pair: &Deployment, directory: &Path) -> Process {
    let learning = pair.learning.front.address();
    let file = directory.join("synonyms.txt");
    let settings = format!(
        "listen = [\"127.0.0.1:0\"]\n[node]\nid = \"edge\"\n[node.connection]\naddresses = [\"{learning}\"]\n\
         [[sink]]\nkind = \"file\"\nname = \"words\"\nnamespaces = [\"{NAMESPACE}\"]\nwhat = \"synonyms\"\npath = \"{}\"\n",
        file.display()
    );
    let path = directory.join("edge.toml");
    fs::write(&path, settings).expect("a file");
    let config = format!("--config={}", path.display());
    Process::start("emend", ["edge", &config, "--metrics-addr", "127.0.0.1:0"]).await
}

/// Waits until the alert fires in both severities, or in neither.
async fn until_oldest(prometheus: &Prometheus, fires: bool) {
    eventually("the alert on the oldest entry", || async {
        let firing = prometheus.firing().await;
        let right = OLDEST.iter().all(|severity| {
            firing.contains(&("EmendOutboxOldestEntry".to_owned(), (*severity).to_owned())) == fires
        });
        holds(right, || format!("{firing:?}"))
    })
    .await;
}

async fn fires_while_learning_svc_is_away(mut pair: Deployment) {
    let Some(program) = tool("EMEND_TEST_PROMETHEUS") else {
        return;
    };
    let prometheus = prometheus_of(&program, &pair).await;
    pair.feedback().learn(says("jane", alias("jd", "jane-doe"))).await;
    until_oldest(&prometheus, false).await;

    pair.learning.kill().await;
    let waiting = pair
        .feedback()
        .submit(says("joe", alias("js", "joe-smith")))
        .await;
    age_outbox(&pair.feedback_url(), Duration::from_hours(1)).await;
    until_oldest(&prometheus, true).await;
    let oldest = prometheus.query("max(emend_outbox_oldest_age_seconds)").await;
    let age: f64 = oldest[0].1.parse().expect("a number");
    assert!((3_600.0..4_000.0).contains(&age), "{oldest:?}");
    // There is an alert on the service that is down as well.
    eventually("the alert on the service", || async {
        let down = prometheus
            .query(r#"ALERTS{alertname="EmendServiceDown", alertstate="firing"}"#)
            .await;
        holds(
            down.iter().any(|(labels, _)| labels["service"] == "learning-svc"),
            || format!("{down:?}"),
        )
    })
    .await;

    pair.start_learning().await;
    until_oldest(&prometheus, false).await;
    let delivered = pair
        .feedback()
        .delivered(&waiting.namespace, &waiting.feedback_id)
        .await;
    assert!(delivered.outcome.is_some_and(|outcome| outcome.revision > 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_alert_on_the_oldest_entry_fires_while_learning_svc_is_away_on_sqlite() {
    fires_while_learning_svc_is_away(Deployment::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_alert_on_the_oldest_entry_fires_while_learning_svc_is_away_on_postgres() {
    let Some(pair) = Deployment::postgres().await else {
        return;
    };
    fires_while_learning_svc_is_away(pair).await;
}

/// The queries of the dashboard and the runbooks, in Prometheus's own form.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let mut queries: Vec<String> = targets
        .map(|target| target["expr"].as_str().expect("a query"))
        .map(|query| {
            query
                .replace("$namespace", ".*")
                .replace("$__rate_interval", "1m")
        })
        .collect();
    for entry in fs::read_dir(path(RUNBOOKS)).expect("runbooks") {
        let page = fs::read_to_string(entry.expect("an entry").path()).expect("a page");
        let mut parts = page.split("```promql\n").skip(1);
        queries.extend(
            parts
                .by_ref()
                .filter_map(|part| Some(part.split("```").next()?.trim().to_owned())),
        );
    }
    queries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_is_answered_and_every_metric_is_there() {
    let Some(program) = tool("EMEND_TEST_PROMETHEUS") else {
        return;
    };
    let pair = Deployment::sqlite().await;
    let node = Node::start(pair.learning.front.address(), "search-1").await;
    let learned = pair.feedback().learn(says("jane", alias("jd", "jane-doe"))).await;
    node.until(learned.outcome.expect("evaluated").revision).await;
    let trust_file = ApplyTrustFileRequest {
        content: format!("namespaces: [{NAMESPACE}]\nversion: 1\n"),
        format: TrustFileFormat::Yaml.into(),
        ..ApplyTrustFileRequest::default()
    };
    answered(pair.learning().evidence.apply_trust_file(trust_file).await);
    let console = console_of(&pair).await;
    let directory = tempfile::tempdir().unwrap();
    let edge = edge_of(&pair, directory.path()).await;
    let mcp = mcp_of(&pair).await;
    let prometheus = prometheus_with(&program, &pair, &[&console, &edge, &mcp]).await;

    let rows = text(REFERENCE);
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `"));
    let metrics: Vec<String> = rows
        .filter_map(|row| {
            let (name, rest) = row.split_once('`')?;
            if ONLY_WITH_TLS.contains(&name) {
                return None;
            }
            let series = if rest.starts_with(" | histogram") {
                "_bucket"
            } else {
                ""
            };
            Some(format!("{name}{series}"))
        })
        .collect();
    assert!(metrics.len() > 20, "{metrics:?}");
    eventually("every metric is there", || async {
        let names = prometheus.names().await;
        let missing: Vec<&String> = metrics.iter().filter(|name| !names.contains(*name)).collect();
        holds(missing.is_empty(), || format!("{missing:?}"))
    })
    .await;

    let queries = queries();
    assert!(queries.len() > 50, "{queries:?}");
    for query in queries {
        // Fails if Prometheus rejects the query, or can't match the series in it.
        prometheus.query(&query).await;
    }
    // Queries that have an answer even on a fresh pair.
    for query in [
        "max by (namespace) (emend_outbox_oldest_age_seconds)",
        "count by (service) (emend_build_info)",
        "instance:emend_db_pool_used:ratio_avg5m",
    ] {
        eventually(query, || async {
            holds(!prometheus.query(query).await.is_empty(), || {
                "no answer".to_owned()
            })
        })
        .await;
    }
    eventually("no alert fires where all is well", || async {
        let firing = prometheus.query(r#"ALERTS{alertstate="firing"}"#).await;
        holds(firing.is_empty(), || format!("{firing:?}"))
    })
    .await;
}
