//! The programs, started as the manifests say.

use std::{collections::BTreeMap, io, net::SocketAddr};

use emend_tests::harness::{
    Database, Feedback, Gateway, eventually,
    process::{Process, serving},
    rpc::channel,
    says,
    system::Service,
    wait::holds,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    objects::{Objects, Workload, render, text},
    pod::Pod,
};

/// The value of a setting in the output of `--print-config`.
fn setting(printed: &str, key: &str) -> Option<String> {
    let lines = printed.lines().map(|line| line.trim_start_matches("# "));
    let mut values = lines.filter_map(|line| line.strip_prefix(&format!("{key} = ")));
    let value = values.next()?.rsplit_once("  # ")?.0.trim();
    Some(value.trim_matches('"').to_owned())
}

fn port(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok()
}

/// A duration as settings write it, in seconds.
fn seconds(span: &str) -> u64 {
    emend_base::config::units::duration(span)
        .expect("a span")
        .as_secs()
}

/// The actual address of each port.
pub(crate) type Addresses = BTreeMap<u16, SocketAddr>;

/// Probes like the kubelet, and waits until the probe passes.
pub(crate) async fn probe(workload: &Workload, name: &str, what: &Value, at: &Addresses) {
    probes_as(true, workload, name, what, at).await;
}

/// Probes like the kubelet, and waits until the probe passes, or until it does not.
async fn probes_as(passing: bool, workload: &Workload, name: &str, what: &Value, at: &Addresses) {
    let port = |pointer: &str| workload.port(&text(what, pointer)).expect("a probe has a port");
    let verb = if passing { "passes" } else { "fails" };
    let wanted = format!("{} {verb} its {name}", workload.name);
    if what.get("httpGet").is_some() {
        let (address, path) = (at[&port("/httpGet/port")], text(what, "/httpGet/path"));
        eventually(&wanted, || async {
            let answer = get(address, &path).await.map_err(|error| error.to_string())?;
            holds(answer.starts_with("HTTP/1.1 200 ") == passing, || answer)
        })
        .await;
        return;
    }
    let health = HealthClient::new(channel(at[&port("/grpc/port")]));
    eventually(&wanted, || async {
        let status = serving(&health, &text(what, "/grpc/service")).await;
        holds((status == Some(ServingStatus::Serving)) == passing, || {
            format!("{status:?}")
        })
    })
    .await;
}

/// How a message about the metrics' address begins.
const METRICS: &str = "metrics";

/// Finds `"address":"HOST:PORT"` in the line that says that it serves metrics, or calls.
fn listens_at(line: &str, metrics: bool) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    let about_metrics = text(&line, "/message").starts_with(METRICS);
    let address = line.get("address")?.as_str()?;
    (about_metrics == metrics).then(|| address.parse().ok())?
}

pub(crate) async fn address_of(process: &Process, metrics: bool) -> SocketAddr {
    eventually("it says where it listens", || async {
        process
            .logged(|line| listens_at(line, metrics))
            .ok_or_else(|| process.output())
    })
    .await
}

/// The answer to a GET over HTTP/1.1.
pub(crate) async fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    ask(address, &format!("GET {path}"), "", "").await
}

/// The answer to a request over HTTP/1.1, with more headers, each of which ends its line.
pub(crate) async fn ask(address: SocketAddr, request: &str, headers: &str, body: &str) -> io::Result<String> {
    ask_as(address, request, &address.to_string(), headers, body).await
}

/// The same under this host name.
pub(crate) async fn ask_as(
    address: SocketAddr,
    request: &str,
    host: &str,
    headers: &str,
    body: &str,
) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let request = format!(
        "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// As operators would draw one.
pub(crate) const RATING_KEY: &str = "dGhpcyBpcyB0aGUga2V5IG9mIGEgdGVzdA==\n";

pub(crate) fn secrets<'a>(database: &Database) -> BTreeMap<(&'a str, &'a str), String> {
    secrets_by(database, None)
}

/// The Secrets, with the database at the other end of a road.
fn secrets_by<'a>(database: &Database, road: Option<&Gateway>) -> BTreeMap<(&'a str, &'a str), String> {
    let url = |service| format!("{}\n", database.url(service, road));
    BTreeMap::from([
        (("emend-database", "feedback-url"), url(Service::Feedback)),
        (("emend-database", "learning-url"), url(Service::Learning)),
        (("emend-rating-key", "key"), RATING_KEY.to_owned()),
    ])
}

/// Checks that the settings, ports and times in the manifest are those of its program.
pub(crate) async fn is_true(objects: &Objects, pod: &Pod) {
    let workload = &pod.workload;
    let name = &workload.name;
    let (code, checked, complaints) = pod.run(&["--check-config"], &[]).await;
    assert_eq!((code, complaints), (Some(0), String::new()), "{name}");
    assert!(checked.starts_with("ok\nnot checked"), "{name}: {checked}");
    let (_, printed, _) = pod.run(&["--print-config"], &[]).await;

    let mut listening: Vec<u16> = ["listen", "feedback-addr", "learning-addr", "metrics-addr"]
        .iter()
        .filter(|key| **key != "learning-addr" || workload.program() == "emend")
        .filter_map(|key| port(&setting(&printed, key)?))
        .filter(|port| *port != 0)
        .collect();
    let raters = setting(&printed, "rating-http").unwrap_or_default();
    let bindings = raters.split('"').filter_map(|binding| binding.split_once('='));
    listening.extend(bindings.filter_map(|(address, _)| port(address)));
    listening.sort_unstable();
    let mut ports: Vec<u16> = workload.ports().into_values().collect();
    ports.sort_unstable();
    assert_eq!(
        ports, listening,
        "{name}: its ports are those on which it listens\n{printed}"
    );

    let grace = setting(&printed, "shutdown-grace").map_or(10, |grace| seconds(&grace));
    let sleep: u64 = text(workload.container(), "/lifecycle/preStop/sleep/seconds")
        .parse()
        .unwrap_or(0);
    let limit: u64 = text(&workload.pod, "/terminationGracePeriodSeconds")
        .parse()
        .expect("it is there");
    assert!(
        sleep + grace + 2 < limit,
        "{name}: {sleep} + {grace} + 2 s are not within {limit} s"
    );
    assert!(!objects.workloads().is_empty());
}

/// Checks that a directory that is not a volume can't be written to.
async fn is_confined(pod: &Pod) {
    let elsewhere = [
        ("EMEND_DATA_DIR", "/srv/emend"),
        ("EMEND_FEEDBACK_ADDR", "127.0.0.1:0"),
        ("EMEND_LEARNING_ADDR", "127.0.0.1:0"),
    ];
    let (code, _, printed) = pod.run(&[], &elsewhere).await;
    assert_ne!(code, Some(0));
    assert!(printed.contains("/srv/emend"), "{printed}");
}

pub(crate) async fn ends_well(mut process: Process) {
    process.terminate().await;
    let status = process.ended().await;
    assert!(status.success(), "{status}:\n{}", process.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_pod_of_dev_runs_and_keeps_its_data_on_its_volume() {
    let Some(objects) = render("dev", &[]) else {
        return;
    };
    let workload = objects.workloads().remove(0);
    let Some(pod) = Pod::make(&objects, &workload, &BTreeMap::new()).await else {
        return;
    };
    is_true(&objects, &pod).await;
    is_confined(&pod).await;
    let anywhere = [
        ("EMEND_FEEDBACK_ADDR", "127.0.0.1:0"),
        ("EMEND_LEARNING_ADDR", "127.0.0.1:0"),
    ];
    let mut learned = Vec::new();
    for round in 0..2 {
        let mut process = pod.start(&anywhere);
        let (feedback, learning) = process
            .says("that it is ready", |line| {
                let (feedback, learning) = line
                    .strip_prefix("emend: ready feedback=")?
                    .split(" console=")
                    .next()?
                    .split_once(" learning=")?;
                Some((
                    feedback.parse::<SocketAddr>().ok()?,
                    learning.parse::<SocketAddr>().ok()?,
                ))
            })
            .await;
        let at = Addresses::from([(7401, feedback), (7402, learning)]);
        for (name, what) in workload.probes() {
            probe(&workload, name, &what, &at).await;
        }
        let feedback = Feedback::at(feedback);
        if round == 0 {
            learned.push(
                feedback
                    .learn(says::says("ana", says::alias("J. Smith", "person-1")))
                    .await
                    .feedback_id,
            );
        }
        let kept = feedback
            .list(feedback.list_request(emend_tests::harness::NAMESPACE))
            .await;
        let kept: Vec<String> = kept.into_iter().map(|feedback| feedback.feedback_id).collect();
        assert_eq!(kept, learned, "round {round}");
        ends_well(process).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_prod_run_and_deliver_to_each_other() {
    let Some(objects) = render("prod", &["open-network", "first-start"]) else {
        return;
    };
    let Some(database) = Database::postgres().await else {
        return;
    };
    let Some(road) = database.road().await else {
        return;
    };
    let mut at = Addresses::new();
    let mut processes = Vec::new();
    let mut workloads = objects.workloads();
    // learning-svc first: feedback-svc is told its address.
    workloads.sort_by_key(|workload| workload.name != "emend-learning");
    for workload in workloads {
        let Some(pod) = Pod::make(&objects, &workload, &secrets_by(&database, Some(&road))).await else {
            return;
        };
        is_true(&objects, &pod).await;
        let learning = at
            .get(&7402)
            .map_or_else(|| "127.0.0.1:1".to_owned(), ToString::to_string);
        let process = pod.start(&[
            ("EMEND_FEEDBACK_LISTEN", "127.0.0.1:0"),
            ("EMEND_LEARNING_LISTEN", "127.0.0.1:0"),
            ("EMEND_LEARNING_ADDR", &learning),
        ]);
        let own = workload.ports()[&format!("grpc-{}", workload.name.trim_start_matches("emend-"))];
        at.insert(own, address_of(&process, false).await);
        for (name, what) in workload.probes() {
            probe(&workload, name, &what, &at).await;
        }
        processes.push((process, pod));
    }
    let feedback = Feedback::at(at[&7401]);
    feedback
        .learn(says::says("ana", says::alias("J. Smith", "person-1")))
        .await;
    // A pod that can't write gets no calls, and is not started again for it.
    for reachable in [false, true] {
        if reachable {
            database.reopen(&road);
        } else {
            road.close();
        }
        for (_, pod) in &processes {
            for (name, what) in pod.workload.probes() {
                probes_as(
                    reachable || name != "readinessProbe",
                    &pod.workload,
                    name,
                    &what,
                    &at,
                )
                .await;
            }
        }
    }
    for (process, _pod) in processes.into_iter().rev() {
        ends_well(process).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_served_where_the_pod_monitor_looks() {
    let Some(objects) = render("dev", &["pod-monitor", "traces"]) else {
        return;
    };
    let workload = objects.workloads().remove(0);
    let Some(pod) = Pod::make(&objects, &workload, &BTreeMap::new()).await else {
        return;
    };
    is_true(&objects, &pod).await;
    let process = pod.start(&[
        ("EMEND_FEEDBACK_ADDR", "127.0.0.1:0"),
        ("EMEND_LEARNING_ADDR", "127.0.0.1:0"),
        ("EMEND_METRICS_ADDR", "127.0.0.1:0"),
    ]);
    let address = address_of(&process, true).await;
    let monitor = objects.of("PodMonitor").next().unwrap();
    let path = text(monitor, "/spec/podMetricsEndpoints/0/path");
    let served = get(address, &path).await.unwrap();
    assert!(
        served.starts_with("HTTP/1.1 200") && served.contains("emend_build_info"),
        "{served}"
    );
    ends_well(process).await;
}

#[tokio::test]
async fn prod_without_authentication_does_not_listen() {
    let Some(objects) = render("prod", &[]) else {
        return;
    };
    let secrets = BTreeMap::from([
        (
            ("emend-database", "feedback-url"),
            "postgres://emend@127.0.0.1:1/emend".to_owned(),
        ),
        (
            ("emend-database", "learning-url"),
            "postgres://emend@127.0.0.1:1/emend".to_owned(),
        ),
    ]);
    for workload in objects.workloads() {
        let Some(pod) = Pod::make(&objects, &workload, &secrets).await else {
            return;
        };
        let (code, _, printed) = pod.run(&["--check-config"], &[]).await;
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains("refusing to listen on 0.0.0.0"), "{printed}");
    }
}
