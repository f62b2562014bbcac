//! The pods of `prod` with the component `workload-identity`, started as the manifests say, beside an API server that gives out
//! the keys of its tokens: callers are known by their service accounts, in their own namespace and in another.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use emend_base::{
    SystemClock,
    tls::{
        files::{identity, provider},
        testing::Authority,
    },
};
use emend_serve::auth::testing::Issuer;
use emend_tests::harness::{Database, process::Process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use crate::{
    objects::{list, render_own, text},
    pod::{Pod, SERVICE_ACCOUNT_TOKEN},
    running::{ends_well, is_true, probe, secrets},
    secured::{Caller, Network, issued, patches_in},
};

/// What the kubelet gives a pod for the API server.
const FOR_API_SERVER: &str = "a-token-for-the-api-server";
/// Its address in the cluster.
const API_SERVER: &str = "kubernetes.default.svc";

/// A token of a service account, for an audience.
fn token(issuer: &Issuer, account: &str, audience: &str) -> String {
    let now = SystemClock::shared().now().as_second();
    issuer.token(&json!({
        "aud": [audience],
        "exp": now + 3_600,
        "iat": now,
        "iss": "https://kubernetes.default.svc.cluster.local",
        "nbf": now,
        "sub": format!("system:serviceaccount:{account}"),
    }))
}

/// Answers a request for the keys, if it shows the right token.
async fn answer(acceptor: TlsAcceptor, stream: TcpStream, keys: Arc<str>) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request).to_lowercase();
    let knows = request.contains(&format!("authorization: bearer {FOR_API_SERVER}\r\n"));
    let status = match (knows, request.starts_with("get /openid/v1/jwks ")) {
        (false, _) => "401 Unauthorized",
        (true, false) => "404 Not Found",
        (true, true) => "200 OK",
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/jwk-set+json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{keys}",
        keys.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// An API server at this address that gives out an issuer's keys, until it is dropped.
async fn api_server(at: SocketAddr, authority: &Authority, issuer: &Issuer) -> JoinSet<()> {
    let directory = tempfile::tempdir().expect("a directory");
    authority
        .issue(99, &[API_SERVER])
        .write(directory.path(), "server");
    let file = |name: &str| directory.path().join(name);
    let (chain, key) = identity(&file("server.pem"), &file("server.key")).expect("they go together");
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("TLS")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(at).await.expect("root may");
    let keys: Arc<str> = json!({"keys": [issuer.jwk()]}).to_string().into();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut answers = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            answers.spawn(answer(acceptor.clone(), stream, Arc::clone(&keys)));
        }
    });
    serving
}

/// Runs a command with this token; answers with its exit code, standard output and standard error.
async fn says(caller: &Caller, token: &str, command: &[&str]) -> (Option<i32>, String, String) {
    caller.0.write("/var/run/secrets/emend/token", token);
    let known = [
        "--feedback-addr=emend-feedback:7401",
        "--learning-addr=emend-subscribe:7402",
        "--ca=/certificates/ca.pem",
        "--token-file=/var/run/secrets/emend/token",
        "--timeout=20s",
        "--json",
    ];
    caller.0.run(&[command, &known].concat(), &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_prod_know_each_other_and_their_callers_by_service_accounts() {
    let page = include_str!("../../../docs/security.md");
    let own = patches_in(page, "jwks_url");
    let Some(objects) = render_own("prod", &["workload-identity", "first-start"], own) else {
        return;
    };
    let Some(database) = Database::postgres().await else {
        return;
    };
    let (authority, cluster) = (Authority::new("emend-ca"), Authority::new("kubernetes"));
    let issuer = Issuer::new("of-the-cluster");
    let certificates = issued(&objects, &authority);
    let mut secrets = secrets(&database);
    for ((secret, key), content) in &certificates {
        secrets.insert((secret, key), content.clone());
    }
    secrets.insert(("kube-root-ca.crt", "ca.crt"), cluster.pem());
    secrets.insert((SERVICE_ACCOUNT_TOKEN, ""), FOR_API_SERVER.to_owned());
    let workloads = objects.workloads();
    let network = Network::of(&workloads);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let api = Ipv4Addr::new(127, high | 0x80, low, 250);
    let hosts = format!("{}{api} {API_SERVER}\n", network.hosts(&objects));

    let mut running: Vec<(Process, Pod)> = Vec::new();
    let mut serving = None;
    for workload in &workloads {
        let account = text(&workload.pod, "/serviceAccountName");
        let delivers = token(&issuer, &format!("emend:{account}"), "emend");
        secrets.insert((SERVICE_ACCOUNT_TOKEN, "emend"), delivers);
        let Some(pod) = Pod::make(&objects, workload, &secrets).await else {
            return;
        };
        pod.resolve(&hosts);
        is_true(&objects, &pod).await;
        if serving.is_none() {
            serving = Some(api_server(SocketAddr::new(IpAddr::V4(api), 443), &cluster, &issuer).await);
        }
        let at = network.at(workload);
        let service = workload.name.trim_start_matches("emend-");
        let listen = at[&workload.ports()[&format!("grpc-{service}")]].to_string();
        let operators = at[&workload.ports()["metrics"]].to_string();
        let listen_by = format!("EMEND_{}_LISTEN", service.to_uppercase());
        let process = pod.start(&[(&*listen_by, &*listen), ("EMEND_METRICS_ADDR", &*operators)]);
        for (name, what) in workload.probes() {
            probe(workload, name, &what, &at).await;
        }
        running.push((process, pod));
    }

    let Some(caller) = Caller::make(&objects, &hosts, &authority).await else {
        return;
    };
    let submit = [
        "submit",
        "entity",
        "J. Smith",
        "jane.smith",
        "--reporter=ana",
        "--wait",
    ];
    let backend = token(&issuer, "search:backend", "emend");
    let (code, out, printed) = says(&caller, &backend, &submit).await;
    assert_eq!(code, Some(0), "{printed}");
    let stored: Value = serde_json::from_str(&out).unwrap();
    // It is evaluated, so feedback-svc's token made it an ingester.
    assert_eq!(stored["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{stored}");
    assert_eq!(stored["caller"], "search-backend", "{stored}");
    let (code, _, printed) = says(&caller, &backend, &["resolve", "j. smith", "--kind=entity"]).await;
    assert_eq!(code, Some(0), "{printed}");

    let forged = Issuer::new("of-the-cluster");
    for (token, command, why) in [
        (backend, &["nodes"][..], "ROLE_MISSING"),
        (
            token(&issuer, "search:backend", "another"),
            &submit,
            "UNAUTHENTICATED",
        ),
        (
            token(&issuer, "elsewhere:backend", "emend"),
            &submit,
            "UNAUTHENTICATED",
        ),
        (
            token(&forged, "search:backend", "emend"),
            &submit,
            "UNAUTHENTICATED",
        ),
    ] {
        let (code, _, printed) = says(&caller, &token, command).await;
        assert!(code != Some(0) && printed.contains(why), "{why}: {printed}");
    }
    for (process, _pod) in running {
        ends_well(process).await;
    }
    drop(serving);
}

/// What the page has for a caller's pod goes with what the services ask for.
#[test]
fn a_callers_pod_mounts_a_token_for_the_audience_and_the_account_that_the_file_knows() {
    let page = include_str!("../../../docs/security.md");
    let pod = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .find(|block| block.contains("serviceAccountToken"))
        .expect("the page has it");
    let objects: Vec<Value> = pod
        .split("\n---\n")
        .map(|object| serde_saphyr::from_str(object).expect("YAML"))
        .collect();
    let of = |kind: &str| {
        objects
            .iter()
            .find(|object| text(object, "/kind") == kind)
            .expect("it is there")
    };
    let (account, pod) = (of("ServiceAccount"), of("Pod"));
    let namespace = text(account, "/metadata/namespace");
    assert_eq!(text(pod, "/metadata/namespace"), namespace);
    let name = text(account, "/metadata/name");
    assert_eq!(text(pod, "/spec/serviceAccountName"), name);
    let own = patches_in(page, "jwks_url");
    assert!(
        own.contains(&format!("\"system:serviceaccount:{namespace}:{name}\"")),
        "{own}"
    );
    let tokens = list(pod, "/spec/volumes")
        .iter()
        .flat_map(|volume| list(volume, "/projected/sources"));
    let audiences: Vec<String> = tokens
        .map(|source| text(source, "/serviceAccountToken/audience"))
        .filter(|audience| !audience.is_empty())
        .collect();
    assert_eq!(audiences, ["emend"]);
    assert!(own.contains("audience = \"emend\""), "{own}");
    let mounts = list(pod, "/spec/containers/0/volumeMounts");
    let mount = mounts
        .iter()
        .find(|mount| text(mount, "/name") == "emend-token")
        .expect("it is mounted");
    let file = format!("{}/token", text(mount, "/mountPath"));
    let variables = list(pod, "/spec/containers/0/env");
    assert!(
        variables.iter().any(|variable| text(variable, "/value") == file),
        "{variables:?}"
    );
}
