//! The component `console`: pods that serve the console, started as the manifests say, and who reaches whom.

use std::collections::{BTreeMap, BTreeSet};

use emend_base::tls::testing::Authority;
use emend_serve::auth::TokenHash;
use emend_tests::harness::{
    Database,
    console::{Visitor, header},
    process::Process,
};
use serde_json::Value;

use crate::{
    objects::{Objects, Workload, list, render, render_own, text, texts},
    pod::Pod,
    running::{ends_well, probe, secrets},
    secured::{Network, issued, patches_with},
};

const TOKEN: &str = "a-token-that-only-this-test-knows";
/// 32 bytes, as operators would draw them.
const COOKIE_KEY: &str = "dGhpcyBpcyB0aGUgY29va2llIGtleSBvZiBhIHRlc3Q=\n";
/// How an overlay names the console; the manifests have another name.
const PUBLIC_URL: &str = "EMEND_CONSOLE_PUBLIC_URL";

fn console(objects: &Objects) -> Workload {
    let mut workloads = objects.workloads();
    workloads.retain(|workload| workload.name == "emend-console");
    assert_eq!(workloads.len(), 1);
    workloads.remove(0)
}

/// Starts the console's pod at its place in the network, and waits until its probes pass.
async fn start(workload: &Workload, pod: &Pod, network: &Network) -> Process {
    let at = network.at(workload);
    let ports = workload.ports();
    let listens = at[&ports["http-console"]].to_string();
    let operators = at[&ports["metrics"]].to_string();
    let environment = workload.environment();
    assert_eq!(
        environment["EMEND_CONSOLE_ADDR"],
        format!("0.0.0.0:{}", ports["http-console"])
    );
    assert_eq!(
        environment["EMEND_METRICS_ADDR"],
        format!("0.0.0.0:{}", ports["metrics"])
    );
    let process = pod.start(&[
        ("EMEND_CONSOLE_ADDR", &listens),
        ("EMEND_METRICS_ADDR", &operators),
    ]);
    for (name, what) in workload.probes() {
        probe(workload, name, &what, &at).await;
    }
    process
}

/// Somebody at the console's pod, and the header that names the console as browsers do.
fn somebody<'a>(
    workload: &'a Workload,
    network: &Network,
    host: &'a mut String,
) -> (Visitor, [(&'a str, &'a str); 1]) {
    let url = &workload.environment()[PUBLIC_URL];
    host.push_str(url.strip_prefix("https://").expect("TLS ends before it"));
    let at = network.at(workload)[&workload.ports()["http-console"]];
    (Visitor::at(at), [("Host", host.as_str())])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_prod_with_tls_serve_a_console_where_people_sign_in_by_tokens() {
    let auth = format!(
        "patches:\n  - target: {{kind: ConfigMap, name: emend-auth}}\n    patch: |\n      - op: replace\n        path: /data/auth.toml\n        \
         value: |\n          [[principals]]\n          name = \"feedback-svc\"\n          certificates = [\"emend-feedback\"]\n          \
         grants = [{{ roles = [\"ingester\"], namespaces = \"*\" }}]\n          [[principals]]\n          name = \"mia\"\n          \
         token_sha256 = [\"{}\"]\n          grants = [{{ roles = [\"reviewer\"], namespaces = \"*\" }}]\n",
        TokenHash::of(TOKEN)
    );
    let Some(objects) = render_own("prod", &["console", "tls", "first-start"], &auth) else {
        return;
    };
    let Some(database) = Database::postgres().await else {
        return;
    };
    let authority = Authority::new("emend-ca");
    let issued = issued(&objects, &authority);
    let mut secrets = secrets(&database);
    secrets.insert(("emend-console-key", "key"), COOKIE_KEY.to_owned());
    for ((secret, key), content) in &issued {
        secrets.insert((secret, key), content.clone());
    }
    let mut workloads = objects.workloads();
    // The services first.
    workloads.sort_by_key(|workload| workload.name == "emend-console");
    let network = Network::of(&workloads);
    let hosts = network.hosts(&objects);
    let mut running: Vec<(Process, Pod)> = Vec::new();
    for workload in &workloads {
        let Some(pod) = Pod::make(&objects, workload, &secrets).await else {
            return;
        };
        pod.resolve(&hosts);
        let process = if workload.name == "emend-console" {
            start(workload, &pod, &network).await
        } else {
            let at = network.at(workload);
            let service = workload.name.trim_start_matches("emend-");
            let listen = at[&workload.ports()[&format!("grpc-{service}")]].to_string();
            let operators = at[&workload.ports()["metrics"]].to_string();
            let listen_by = format!("EMEND_{}_LISTEN", service.to_uppercase());
            let process = pod.start(&[(&*listen_by, &*listen), ("EMEND_METRICS_ADDR", &*operators)]);
            for (name, what) in workload.probes() {
                probe(workload, name, &what, &at).await;
            }
            process
        };
        running.push((process, pod));
    }

    let workload = console(&objects);
    let mut host = String::new();
    let (visitor, named) = somebody(&workload, &network, &mut host);
    // Without a token nobody is anybody, whatever certificate the console shows the services, and is told nothing of it.
    let asked = visitor.ask("GET", "/ns/default/today", &named, "").await;
    assert_eq!(asked.status, 401, "{}", asked.body);
    assert!(!asked.body.contains("role=\"alert\""), "{}", asked.body);
    let refused = visitor.sign_in_as("another", &named).await;
    assert_eq!(refused.status, 401, "{}", refused.body);
    let signed_in = visitor.sign_in_as(TOKEN, &named).await;
    assert_eq!(signed_in.status, 303, "{}", signed_in.body);
    assert!(header(&signed_in, "set-cookie").join("").contains("Secure"));
    let today = visitor.ask("GET", "/ns/default/today", &named, "").await;
    assert_eq!(today.status, 200, "{}", today.body);
    assert!(
        today.body.contains("<div class=\"who\">mia</div>"),
        "{}",
        today.body
    );
    for (process, _pod) in running {
        ends_well(process).await;
    }
}

/// In a network that is open, and with both services away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_of_the_console_is_ready_while_the_services_are_away_and_says_so() {
    let Some(objects) = render("prod", &["console", "open-network"]) else {
        return;
    };
    let workload = console(&objects);
    let brought = BTreeMap::from([(("emend-console-key", "key"), COOKIE_KEY.to_owned())]);
    let Some(pod) = Pod::make(&objects, &workload, &brought).await else {
        return;
    };
    let network = Network::of(std::slice::from_ref(&workload));
    pod.resolve("127.0.0.1 emend-feedback emend-learning\n");
    let process = start(&workload, &pod, &network).await;
    let mut host = String::new();
    let (visitor, named) = somebody(&workload, &network, &mut host);
    let today = visitor.ask("GET", "/ns/default/today", &named, "").await;
    assert_eq!(today.status, 503, "{}", today.body);
    assert!(today.body.contains("be reached"), "{}", today.body);
    assert_eq!(header(&today, "refresh"), ["5"], "it is asked for again");
    // Another name is refused, as that of whoever rebinds a name of their own to this address would be.
    let asked = visitor
        .ask("GET", "/ns/default/today", &[("Host", "evil.example")], "")
        .await;
    assert_eq!(asked.status, 421, "{}", asked.body);
    ends_well(process).await;
}

#[test]
fn an_overlay_says_by_which_name_people_reach_the_console_as_the_page_shows() {
    let page = patches_with(PUBLIC_URL);
    let Some(objects) = render_own("prod", &["console", "open-network"], page) else {
        return;
    };
    let ingress = objects.named("Ingress", "emend-console").expect("an Ingress");
    let hosts = ["/spec/tls/0/hosts/0", "/spec/rules/0/host"].map(|host| text(ingress, host));
    let url = &console(&objects).environment()[PUBLIC_URL];
    assert_eq!(
        hosts.map(|host| format!("https://{host}")),
        [url.clone(), url.clone()]
    );
    assert!(page.contains(url), "{url}");
}

/// The labels of what a rule's side selects.
fn selected(rule: &Value, side: &str) -> BTreeSet<String> {
    let peers = list(rule, side).iter();
    peers
        .flat_map(|peer| {
            ["/podSelector/matchLabels", "/namespaceSelector/matchLabels"]
                .into_iter()
                .flat_map(|labels| texts(peer, labels))
        })
        .map(|(label, value)| format!("{label}={value}"))
        .collect()
}

/// The Ingress' controller and Prometheus reach it, and it reaches both services and names: nothing else.
#[test]
fn the_console_is_reached_by_the_ingress_and_reaches_the_services_alone() {
    for access in ["tls", "open-network", "workload-identity"] {
        let Some(objects) = render("prod", &["console", access, "pod-monitor"]) else {
            return;
        };
        let labels = console(&objects).labels;
        let (mut from, mut to) = (BTreeSet::new(), BTreeSet::new());
        for policy in objects.of("NetworkPolicy") {
            let wanted = texts(policy, "/spec/podSelector/matchLabels");
            let is_excepted = list(policy, "/spec/podSelector/matchExpressions")
                .iter()
                .any(|expression| {
                    assert_eq!(text(expression, "/operator"), "NotIn", "{policy}");
                    let value = labels.get(&text(expression, "/key"));
                    list(expression, "/values")
                        .iter()
                        .any(|other| other.as_str() == value.map(String::as_str))
                });
            if is_excepted
                || wanted
                    .iter()
                    .any(|(label, value)| labels.get(label) != Some(value))
            {
                continue;
            }
            for (rules, side, seen) in [
                ("/spec/ingress", "/from", &mut from),
                ("/spec/egress", "/to", &mut to),
            ] {
                for rule in list(policy, rules) {
                    let ports = list(rule, "/ports").iter().map(|port| text(port, "/port"));
                    let ports: Vec<String> = ports.collect();
                    let whom = Vec::from_iter(selected(rule, side)).join(",");
                    seen.insert(format!("{whom} {}", ports.join(",")));
                }
            }
        }
        let is_mesh = |rule: &String| {
            access == "open-network"
                && ["15008", "15012", "8080,8086,8090"]
                    .iter()
                    .any(|port| rule.ends_with(port))
        };
        // The keys of tokens are asked for by the services.
        let is_issuer = |rule: &String| access == "workload-identity" && rule == " 443,6443";
        from.retain(|rule| !is_mesh(rule));
        to.retain(|rule| !is_mesh(rule) && !is_issuer(rule));
        assert_eq!(
            Vec::from_iter(from),
            [
                "kubernetes.io/metadata.name=ingress http-console",
                "kubernetes.io/metadata.name=monitoring metrics"
            ],
            "{access}"
        );
        assert_eq!(
            Vec::from_iter(to),
            [
                "emend-serves-feedback=true 7401",
                "emend-serves-learning=true 7402",
                "k8s-app=kube-dns,kubernetes.io/metadata.name=kube-system 53,53"
            ],
            "{access}"
        );
        let delivered = |service: &str| {
            let policy = objects.named("NetworkPolicy", &format!("emend-console-{service}"));
            selected(&list(policy.expect("a policy"), "/spec/ingress")[0], "/from")
        };
        for service in ["feedback", "learning"] {
            assert_eq!(
                delivered(service),
                ["app.kubernetes.io/name=emend-console".to_owned()].into()
            );
        }
    }
}

/// Else the console would show a certificate that nobody issues.
#[test]
fn the_console_is_listed_before_who_may_call() {
    let Some(refused) = crate::objects::refusal("prod", &["open-network", "console"]) else {
        return;
    };
    assert!(refused.contains("emend-either-tls-or-open-network"), "{refused}");
    let Some(objects) = render("prod", &["console", "open-network"]) else {
        return;
    };
    assert_eq!(objects.of("Certificate").count(), 0);
    let args = console(&objects).args();
    assert!(!args.iter().any(|arg| arg.contains("/etc/emend/tls")), "{args:?}");
    assert!(!args.contains(&"--allow-unauthenticated".to_owned()), "{args:?}");
}
