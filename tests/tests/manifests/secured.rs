//! The pods of `prod` with the component `tls`, started as the manifests say: with certificates that have the names and
//! usages of `certificates.yaml`, and at the names and ports of the manifests.
//!
//! Each pod has an address of its own, as in a cluster, but in 127.0.0.0/8, where all of the manifests' ports are free;
//! the names of Services resolve to it through each pod's `/etc/hosts`. Only the listen address does not come from the
//! manifests but is set by variables.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU8, Ordering},
};

use emend_base::tls::testing::{Authority, ExtendedKeyUsagePurpose as Usage, Issued, date_time_ymd};
use emend_serve::auth::TokenHash;
use emend_tests::harness::{Database, eventually, http::until_counted, process::Process};
use serde_json::{Value, json};

use crate::{
    objects::{Objects, Workload, list, render_own, text, texts},
    pod::Pod,
    raters::{BINDING, bound_to},
    running::{Addresses, address_of, ends_well, get, is_true, probe, secrets},
};

/// As many addresses has each network of pods.
const PODS: u8 = 16;

/// The years in which the certificates begin and end to be valid.
const FROM: i32 = 2025;
const TO: i32 = 2095;

/// How a custom overlay says who may do what, from the page on deploying.
pub(super) fn own_auth() -> &'static str {
    patches_with("auth.toml")
}

/// The patches of a custom overlay, from the page on deploying, that have this word.
pub(super) fn patches_with(word: &str) -> &'static str {
    patches_in(include_str!("../../../docs/deploy.md"), word)
}

/// The patches of a custom overlay, from a page, that have this word.
pub(super) fn patches_in(page: &'static str, word: &str) -> &'static str {
    let blocks = page.split("```yaml\n").skip(1);
    let mut blocks = blocks.filter_map(|block| block.split("```").next());
    let block = blocks.find(|block| block.starts_with("patches:") && block.contains(word));
    block.expect("the page has it")
}

/// The pods' addresses.
pub(super) struct Network(BTreeMap<String, Ipv4Addr>);

impl Network {
    /// An address for each pod, which no other test uses, and no other run of these tests is likely to.
    pub(super) fn of(workloads: &[Workload]) -> Self {
        static NETWORKS: AtomicU8 = AtomicU8::new(0);
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let first = NETWORKS.fetch_add(1, Ordering::Relaxed) * PODS + 1;
        assert!(workloads.len() < usize::from(PODS));
        let address = |number: u8| Ipv4Addr::new(127, high | 0x80, low, number);
        let names = workloads.iter().map(|workload| workload.name.clone());
        Self(names.zip((first..).map(address)).collect())
    }

    pub(super) fn at(&self, workload: &Workload) -> Addresses {
        let address = IpAddr::V4(self.0[&workload.name]);
        let ports = workload.ports().into_values();
        ports.map(|port| (port, SocketAddr::new(address, port))).collect()
    }

    /// The Services' names, in the form of `/etc/hosts`.
    pub(super) fn hosts(&self, objects: &Objects) -> String {
        let mut hosts = Vec::new();
        for service in objects.of("Service") {
            for workload in objects.selected(&texts(service, "/spec/selector")) {
                let name = text(service, "/metadata/name");
                hosts.push(format!("{} {name}\n", self.0[&workload.name]));
            }
        }
        hosts.concat()
    }
}

/// The Secrets that cert-manager would make of the Certificates, except the CA's own: by name and key.
pub(super) fn issued(objects: &Objects, authority: &Authority) -> BTreeMap<(String, &'static str), String> {
    let mut secrets = BTreeMap::new();
    for (number, certificate) in objects.of("Certificate").enumerate() {
        if text(certificate, "/spec/isCA") == "true" {
            continue;
        }
        let words = |pointer: &str| -> Vec<String> {
            let words = list(certificate, pointer).iter();
            words
                .map(|word| word.as_str().expect("text").to_owned())
                .collect()
        };
        let usages = words("/spec/usages");
        let usages: Vec<Usage> = usages
            .iter()
            .filter_map(|usage| match usage.as_str() {
                "server auth" => Some(Usage::ServerAuth),
                "client auth" => Some(Usage::ClientAuth),
                "digital signature" => None,
                other => panic!("{other}: not known here"),
            })
            .collect();
        let names = words("/spec/dnsNames");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let made = authority.issue_as(number as u64 + 10, &names, |params| {
            params.extended_key_usages = usages;
            params.not_before = date_time_ymd(FROM, 1, 1);
            params.not_after = date_time_ymd(TO, 1, 1);
        });
        let secret = text(certificate, "/spec/secretName");
        secrets.insert((secret.clone(), "tls.crt"), made.cert);
        secrets.insert((secret.clone(), "tls.key"), made.key);
        secrets.insert((secret, "ca.crt"), authority.pem());
    }
    secrets
}

/// A client elsewhere in the cluster, with the `emend` command.
pub(super) struct Caller(pub(super) Pod);

impl Caller {
    pub(super) async fn make(objects: &Objects, hosts: &str, authority: &Authority) -> Option<Self> {
        let workload = Workload {
            name: "caller".to_owned(),
            labels: BTreeMap::new(),
            pod: json!({
                "securityContext": {"runAsUser": 65532, "fsGroup": 65532},
                "containers": [{"image": "emend"}],
            }),
            claims: Vec::new(),
        };
        let pod = Pod::make(objects, &workload, &BTreeMap::new()).await?;
        pod.resolve(hosts);
        pod.write("/certificates/ca.pem", &authority.pem());
        Some(Self(pod))
    }

    fn has(&self, name: &str, cert: &str, key: &str) {
        self.0.write(&format!("/certificates/{name}.pem"), cert);
        self.0.write(&format!("/certificates/{name}.key"), key);
    }

    fn was_issued(&self, name: &str, issued: &Issued) {
        self.has(name, &issued.cert, &issued.key);
    }

    /// Runs a command with this certificate; answers with its exit code, standard output and standard error.
    async fn says(&self, certificate: &str, command: &[&str]) -> (Option<i32>, String, String) {
        let more = [
            format!("--client-cert=/certificates/{certificate}.pem"),
            format!("--client-key=/certificates/{certificate}.key"),
        ];
        let [cert, key] = more.each_ref().map(String::as_str);
        let known = [
            "--feedback-addr=emend-feedback:7401",
            "--learning-addr=emend-subscribe:7402",
            "--ca=/certificates/ca.pem",
            "--timeout=20s",
            "--json",
        ];
        self.0.run(&[command, &known, &[cert, key]].concat(), &[]).await
    }

    async fn refused(&self, certificate: &str, command: &[&str], why: &str) {
        let (code, _, printed) = self.says(certificate, command).await;
        assert!(
            code != Some(0) && printed.contains(why),
            "{certificate}: {why}: {printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_prod_with_tls_know_each_other_and_their_callers_by_certificates() {
    let Some(objects) = render_own("prod", &["tls", "rating-http", "first-start"], own_auth()) else {
        return;
    };
    let Some(database) = Database::postgres().await else {
        return;
    };
    let authority = Authority::new("emend-ca");
    let issued = issued(&objects, &authority);
    let mut secrets = secrets(&database);
    for ((secret, key), content) in &issued {
        secrets.insert((secret, key), content.clone());
    }
    let workloads = objects.workloads();
    let network = Network::of(&workloads);
    let hosts = network.hosts(&objects);
    let mut running: Vec<(Process, Pod)> = Vec::new();
    for workload in &workloads {
        let Some(pod) = Pod::make(&objects, workload, &secrets).await else {
            return;
        };
        pod.resolve(&hosts);
        is_true(&objects, &pod).await;
        let at = network.at(workload);
        let service = workload.name.trim_start_matches("emend-");
        let listen = at[&workload.ports()[&format!("grpc-{service}")]].to_string();
        let operators = at[&workload.ports()["metrics"]].to_string();
        let listen_by = format!("EMEND_{}_LISTEN", service.to_uppercase());
        let raters = workload.ports().get("http-ratings").map(|port| at[port]);
        let bound = raters.map(|raters| bound_to(workload, raters));
        let mut variables = vec![(&*listen_by, &*listen), ("EMEND_METRICS_ADDR", &*operators)];
        variables.extend(bound.iter().map(|bound| (BINDING, &**bound)));
        let process = pod.start(&variables);
        for (name, what) in workload.probes() {
            probe(workload, name, &what, &at).await;
        }
        let (code, printed, _) = pod.run(&["--probe"], &variables).await;
        assert_eq!(
            (code, printed),
            (Some(0), format!("/readyz at {operators}: ready\n")),
            "{service}"
        );
        assert_eq!(raters.is_some(), service == "feedback");
        if let Some(raters) = raters {
            // Behind an Ingress, whatever gRPC is served over.
            let served = get(raters, "/widget.js").await.unwrap();
            assert!(served.starts_with("HTTP/1.1 200"), "{served}");
        }
        running.push((process, pod));
    }

    for workload in &workloads {
        let operators = network.at(workload)[&workload.ports()["metrics"]];
        let certificates: &[&str] = match &*workload.name {
            "emend-feedback" => &["server", "client"],
            _ => &["server"],
        };
        for certificate in certificates {
            let service = workload.name.trim_start_matches("emend-");
            let labels = format!("{{service=\"{service}-svc\",certificate=\"{certificate}\"}}");
            for (time, year) in [("not_before", FROM), ("not_after", TO)] {
                let series = format!("emend_certificate_{time}_timestamp_seconds{labels}");
                let seconds = date_time_ymd(year, 1, 1).unix_timestamp();
                until_counted(operators, &series, u32::try_from(seconds).unwrap()).await;
            }
        }
    }

    let Some(caller) = Caller::make(&objects, &hosts, &authority).await else {
        return;
    };
    caller.was_issued("search-backend", &authority.issue(1, &["search-backend.search"]));
    caller.was_issued("stranger", &authority.issue(2, &["stranger"]));
    let elsewhere = Authority::new("elsewhere");
    caller.was_issued("outsider", &elsewhere.issue(3, &["search-backend.search"]));
    let of_feedback = |key| &issued[&("emend-feedback-tls".to_owned(), key)];
    caller.has("feedback-svc", of_feedback("tls.crt"), of_feedback("tls.key"));

    let submit = [
        "submit",
        "entity",
        "J. Smith",
        "jane.smith",
        "--reporter=ana",
        "--wait",
    ];
    let (code, out, printed) = caller.says("search-backend", &submit).await;
    assert_eq!(code, Some(0), "{printed}");
    let stored: Value = serde_json::from_str(&out).unwrap();
    // It is evaluated, so the relay, as an ingester, has delivered it.
    assert_eq!(stored["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{stored}");
    let resolve = ["resolve", "j. smith", "--kind=entity"];
    let (code, out, printed) = caller.says("search-backend", &resolve).await;
    assert_eq!(code, Some(0), "{printed}");
    let resolved: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(resolved["match"]["value"], "jane.smith", "{resolved}");

    caller.refused("search-backend", &["nodes"], "ROLE_MISSING").await;
    caller.refused("feedback-svc", &submit, "ROLE_MISSING").await;
    caller.refused("stranger", &submit, "UNAUTHENTICATED").await;
    // The server logs the reason; it is a matter of luck whether its message reaches the client.
    caller.refused("outsider", &submit, "error").await;
    // So does it with calls, by their principal or their address.
    let is_feedback = |pod: &Pod| pod.workload.name == "emend-feedback";
    let (feedback, _) = running.iter().find(|(_, pod)| is_feedback(pod)).expect("it runs");
    for (who, reason) in [
        ("\"caller\":\"feedback-svc\"", "ROLE_MISSING"),
        ("\"peer\":", "CREDENTIALS_NOT_ACCEPTED"),
    ] {
        eventually("the log tells who was refused", || async {
            let told = feedback.logged(|line| {
                let says = |what: &str| line.contains(what);
                (says("\"refused\"") && says(who) && says(reason)).then_some(())
            });
            told.ok_or_else(|| feedback.output())
        })
        .await;
    }
    for (process, _pod) in running {
        ends_well(process).await;
    }
}

/// `tls-dev`, with a token of feedback-svc in place of its certificate, as its head says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pod_of_dev_serves_over_tls_alone() {
    const TOKEN: &str = "a-token-that-only-this-test-knows";
    let auth = format!(
        "patches:\n  - target: {{kind: ConfigMap, name: emend-auth}}\n    patch: |\n      - op: replace\n        path: /data/auth.toml\n        \
         value: |\n          [[principals]]\n          name = \"feedback-svc\"\n          token_sha256 = [\"{}\"]\n          \
         grants = [{{ roles = [\"ingester\"], namespaces = \"*\" }}]\n",
        TokenHash::of(TOKEN)
    );
    let Some(objects) = render_own("dev", &["tls-dev"], &auth) else {
        return;
    };
    let issued = issued(&objects, &Authority::new("emend-ca"));
    let mut secrets = BTreeMap::from([(("emend-delivery-token", "token"), format!("{TOKEN}\n"))]);
    for ((secret, key), content) in &issued {
        secrets.insert((secret, key), content.clone());
    }
    let workload = objects.workloads().remove(0);
    let Some(pod) = Pod::make(&objects, &workload, &secrets).await else {
        return;
    };
    is_true(&objects, &pod).await;
    let process = pod.start(&[
        ("EMEND_FEEDBACK_ADDR", "127.0.0.1:0"),
        ("EMEND_LEARNING_ADDR", "127.0.0.1:0"),
        ("EMEND_METRICS_ADDR", "127.0.0.1:0"),
    ]);
    let at = Addresses::from([(9464, address_of(&process, true).await)]);
    for (name, what) in workload.probes() {
        probe(&workload, name, &what, &at).await;
    }
    let starts = "\"tls\":\"on, with certificates of clients\",\"authentication\":\"on\"";
    let told = process.logged(|line| line.contains(starts).then_some(()));
    assert!(told.is_some(), "{}", process.output());
    ends_well(process).await;
}
