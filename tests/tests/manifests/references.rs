//! Whatever one manifest refers to in another must exist.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::{
    objects::{
        Objects, Workload, directory, list, refusal, render, render_in, secret_name, secrets_of, text, texts,
        transformer,
    },
    secured::own_auth,
};

/// Secrets that operators create before anything is applied.
const BROUGHT: [&str; 8] = [
    "emend-console-key",
    "emend-console-tls",
    "emend-database",
    "emend-delivery-token",
    "emend-mcp-key",
    "emend-mcp-tls",
    "emend-rating-key",
    "emend-ratings-tls",
];

/// The port of a mesh in a pod's network, which is no container's: ambient's.
const MESH: &str = "15008";

/// Everything that is wrong.
fn findings(objects: &Objects) -> Vec<String> {
    let mut findings = Vec::new();
    let namespaces = objects.namespaces();
    if namespaces.len() != 1 {
        findings.push(format!("objects are in several namespaces: {namespaces:?}"));
    }
    for workload in objects.workloads() {
        of_workload(objects, &workload, &mut findings);
    }
    for service in objects.of("Service") {
        let selected = objects.selected(&texts(service, "/spec/selector"));
        let ports: Vec<String> = list(service, "/spec/ports")
            .iter()
            .map(|port| text(port, "/targetPort"))
            .collect();
        expect_ports("Service", service, &selected, &ports, &mut findings);
    }
    for ingress in objects.of("Ingress") {
        of_ingress(objects, ingress, &mut findings);
    }
    for policy in objects.of("NetworkPolicy") {
        let selected = objects.selected(&texts(policy, "/spec/podSelector/matchLabels"));
        let ports: Vec<String> = list(policy, "/spec/ingress")
            .iter()
            .flat_map(|rule| list(rule, "/ports"))
            .map(|port| text(port, "/port"))
            .collect();
        expect_ports("NetworkPolicy", policy, &selected, &ports, &mut findings);
        for rule in list(policy, "/spec/egress") {
            let to = list(rule, "/to")
                .iter()
                .filter(|to| to.get("namespaceSelector").is_none());
            for to in to {
                let selected = objects.selected(&texts(to, "/podSelector/matchLabels"));
                let ports: Vec<String> = list(rule, "/ports")
                    .iter()
                    .map(|port| text(port, "/port"))
                    .collect();
                expect_ports("NetworkPolicy", policy, &selected, &ports, &mut findings);
            }
        }
    }
    for budget in objects.of("PodDisruptionBudget") {
        let selected = objects.selected(&texts(budget, "/spec/selector/matchLabels"));
        expect_ports("PodDisruptionBudget", budget, &selected, &[], &mut findings);
    }
    for monitor in objects.of("PodMonitor") {
        let selected = objects.selected(&texts(monitor, "/spec/selector/matchLabels"));
        let ports: Vec<String> = list(monitor, "/spec/podMetricsEndpoints")
            .iter()
            .map(|endpoint| text(endpoint, "/port"))
            .collect();
        expect_ports("PodMonitor", monitor, &selected, &ports, &mut findings);
    }
    for scaler in objects.of("HorizontalPodAutoscaler") {
        let (kind, name) = (
            text(scaler, "/spec/scaleTargetRef/kind"),
            text(scaler, "/spec/scaleTargetRef/name"),
        );
        match objects.named(&kind, &name) {
            None => findings.push(format!("HorizontalPodAutoscaler: there is no {kind} {name}")),
            Some(target) if target.pointer("/spec/replicas").is_some() => {
                findings.push(format!("{kind} {name}: two say how many replicas there are"));
            }
            Some(_) => {}
        }
    }
    findings
}

fn of_workload(objects: &Objects, workload: &Workload, findings: &mut Vec<String>) {
    let name = &workload.name;
    let mut say = |finding: String| findings.push(format!("{name}: {finding}"));
    let volumes = list(&workload.pod, "/volumes");
    let volume_names: BTreeSet<String> = volumes
        .iter()
        .map(|volume| text(volume, "/name"))
        .chain(workload.claims.clone())
        .collect();
    for mount in list(workload.container(), "/volumeMounts") {
        let volume = text(mount, "/name");
        if !volume_names.contains(&volume) {
            say(format!("there is no volume {volume}"));
        }
    }
    for volume in volumes {
        let config = text(volume, "/configMap/name");
        if !config.is_empty() && objects.named("ConfigMap", &config).is_none() {
            say(format!("there is no ConfigMap {config}"));
        }
        for secret in secrets_of(volume).map(secret_name) {
            if !is_made(objects, &secret) {
                say(format!("nothing makes the Secret {secret}"));
            }
        }
    }
    for (probe, what) in workload.probes() {
        for port in ["/grpc/port", "/httpGet/port"].map(|pointer| text(&what, pointer)) {
            if !port.is_empty() && workload.port(&port).is_none() {
                say(format!("{probe}: there is no port {port}"));
            }
        }
    }
    let account = text(&workload.pod, "/serviceAccountName");
    if objects.named("ServiceAccount", &account).is_none() {
        say(format!("there is no ServiceAccount {account}"));
    }
}

/// Whether a Secret is issued by a Certificate or brought by operators.
fn is_made(objects: &Objects, secret: &str) -> bool {
    let mut certificates = objects.of("Certificate");
    BROUGHT.contains(&secret)
        || certificates.any(|certificate| text(certificate, "/spec/secretName") == secret)
}

fn of_ingress(objects: &Objects, ingress: &Value, findings: &mut Vec<String>) {
    let name = text(ingress, "/metadata/name");
    let mut say = |finding: String| findings.push(format!("Ingress {name}: {finding}"));
    let mut hosts = Vec::new();
    for tls in list(ingress, "/spec/tls") {
        hosts.extend(list(tls, "/hosts"));
        let secret = text(tls, "/secretName");
        if !is_made(objects, &secret) {
            say(format!("nothing makes the Secret {secret}"));
        }
    }
    for rule in list(ingress, "/spec/rules") {
        if rule.get("host").is_none_or(|host| !hosts.contains(&host)) {
            say(format!("{} is not served over TLS", text(rule, "/host")));
        }
        for path in list(rule, "/http/paths") {
            let [service, port] =
                ["name", "port/name"].map(|what| text(path, &format!("/backend/service/{what}")));
            let ports = objects
                .named("Service", &service)
                .map(|service| list(service, "/spec/ports"));
            let known = ports.is_some_and(|ports| ports.iter().any(|of| text(of, "/name") == port));
            if !known {
                say(format!("there is no Service {service} with a port {port}"));
            }
        }
    }
}

/// Checks that a selector matches a workload and that it has these ports.
fn expect_ports(
    kind: &str,
    object: &Value,
    selected: &[Workload],
    ports: &[String],
    findings: &mut Vec<String>,
) {
    let name = text(object, "/metadata/name");
    if selected.is_empty() {
        findings.push(format!("{kind} {name} selects nobody"));
    }
    for workload in selected {
        let missing = |port: &&String| *port != MESH && workload.port(port).is_none();
        for port in ports.iter().filter(missing) {
            findings.push(format!("{kind} {name}: {} has no port {port}", workload.name));
        }
    }
}

#[test]
fn references_between_manifests_are_valid() {
    for (overlay, components) in [
        ("dev", &[][..]),
        ("dev", &["pod-monitor", "traces"]),
        ("prod", &[]),
        ("prod", &["open-network"]),
        ("dev", &["rating-http"]),
        ("dev", &["tls-dev"]),
        ("prod", &["open-network", "rating-http"]),
        ("prod", &["rating-http", "tls"]),
        ("prod", &["tls", "pod-monitor", "traces", "autoscaling"]),
        ("prod", &["workload-identity", "rating-http", "pod-monitor"]),
        ("prod", &["open-network", "pod-monitor", "traces", "autoscaling"]),
        ("prod", &["console", "open-network", "pod-monitor"]),
        ("prod", &["console", "tls", "rating-http", "autoscaling"]),
        ("prod", &["console", "workload-identity", "pod-monitor"]),
        ("prod", &["tls", "edge", "pod-monitor"]),
        ("prod", &["mcp", "open-network", "pod-monitor"]),
        ("prod", &["mcp", "console", "tls"]),
        ("prod", &["mcp", "workload-identity"]),
    ] {
        let Some(objects) = render(overlay, components) else {
            return;
        };
        assert_eq!(findings(&objects), [""; 0], "{overlay} {components:?}");
        assert!(!objects.workloads().is_empty());
    }
}

#[test]
fn nobody_is_let_in_unauthenticated_beside_tls() {
    for components in [
        ["tls", "open-network"],
        ["open-network", "tls"],
        ["workload-identity", "open-network"],
    ] {
        let Some(refused) = refusal("prod", &components) else {
            return;
        };
        assert!(refused.contains("emend-either-tls-or-open-network"), "{refused}");
    }
}

#[test]
fn a_reference_to_a_missing_object_is_found() {
    let Some(objects) = render("dev", &["autoscaling"]) else {
        return;
    };
    assert_eq!(
        findings(&objects),
        [
            "HorizontalPodAutoscaler: there is no Deployment emend-feedback",
            "HorizontalPodAutoscaler: there is no Deployment emend-learning"
        ]
    );
}

/// Whoever connects from another namespace uses these names.
#[test]
fn certificates_are_for_the_names_that_services_have_in_the_overlays_namespace() {
    for (overlay, component) in [("prod", "tls"), ("dev", "tls-dev"), ("prod", "workload-identity")] {
        let renaming = transformer("tls-names");
        let Some(objects) = render_in("elsewhere", overlay, &[component], &renaming) else {
            return;
        };
        assert_eq!(objects.namespaces(), ["elsewhere".to_owned()].into());
        let certificates = objects.of("Certificate");
        let named: BTreeSet<String> = certificates
            .flat_map(|certificate| list(certificate, "/spec/dnsNames"))
            .map(|name| text(name, ""))
            .collect();
        let mut expected = BTreeSet::from(["localhost".to_owned()]);
        for service in objects.of("Service") {
            let name = text(service, "/metadata/name");
            let within = ["", ".elsewhere", ".elsewhere.svc", ".elsewhere.svc.cluster.local"];
            expected.extend(within.map(|rest| format!("{name}{rest}")));
        }
        assert_eq!(named, expected, "{overlay} {component}");
    }
}

/// Nobody is let in without a certificate beside TLS, and what people brought outlives what is rendered.
#[test]
fn nothing_says_that_callers_are_not_authenticated_beside_tls_and_no_namespace_is_rendered() {
    let allowed = "--allow-unauthenticated".to_owned();
    for (overlay, component, open) in [
        ("dev", "tls", false),
        ("dev", "tls-dev", false),
        ("prod", "tls", false),
        ("prod", "workload-identity", false),
        ("dev", "pod-monitor", true),
        ("prod", "open-network", true),
    ] {
        let Some(objects) = render(overlay, &[component]) else {
            return;
        };
        for workload in objects.workloads() {
            assert_eq!(workload.args().contains(&allowed), open, "{overlay} {component}");
        }
        assert!(objects.of("Namespace").next().is_none(), "{overlay} {component}");
    }
}

#[test]
fn addresses_in_the_files_are_those_of_services() {
    let Some(objects) = render("prod", &["open-network"]) else {
        return;
    };
    let files = objects
        .of("ConfigMap")
        .map(|config| text(config, "/data/config.toml"));
    let named: Vec<String> = files
        .flat_map(|file| file.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| {
            line.strip_prefix("learning-addr = ")
                .map(|address| address.trim_matches('"').to_owned())
        })
        .collect();
    assert_eq!(named.len(), 1);
    for address in named {
        let (name, port) = address.split_once(':').unwrap();
        let service = objects.named("Service", name).unwrap();
        let ports: Vec<String> = list(service, "/spec/ports")
            .iter()
            .map(|port| text(port, "/port"))
            .collect();
        assert_eq!(ports, [port]);
    }
}

#[test]
fn ports_of_services_name_their_protocol() {
    for (components, protocol) in [("open-network", "kubernetes.io/h2c"), ("tls", "https")] {
        let Some(objects) = render("prod", &["console", "mcp", components, "rating-http"]) else {
            return;
        };
        for service in objects.of("Service") {
            let said: Vec<String> = list(service, "/spec/ports")
                .iter()
                .map(|port| text(port, "/appProtocol"))
                .collect();
            // Behind an Ingress it is plain HTTP, whatever gRPC is served over.
            let name = text(service, "/metadata/name");
            let plain = ["emend-ratings", "emend-console", "emend-mcp"].contains(&&*name);
            assert_eq!(
                said,
                [if plain { "http" } else { protocol }],
                "{name} {components}"
            );
        }
    }
}

/// A session is in the memory of one pod, and belongs to a token.
#[test]
fn requests_of_one_token_go_to_one_pod_that_serves_assistants() {
    let Some(objects) = render("prod", &["mcp", "open-network"]) else {
        return;
    };
    let ingress = objects.named("Ingress", "emend-mcp").expect("an Ingress");
    let annotations = texts(ingress, "/metadata/annotations");
    let hashed = &annotations["nginx.ingress.kubernetes.io/upstream-hash-by"];
    assert_eq!(hashed, "$http_authorization");
}

#[test]
fn only_named_peers_may_connect() {
    let Some(objects) = render(
        "prod",
        &[
            "console",
            "open-network",
            "rating-http",
            "pod-monitor",
            "autoscaling",
        ],
    ) else {
        return;
    };
    let denied = objects.named("NetworkPolicy", "emend-default-deny").unwrap();
    assert_eq!(list(denied, "/spec/policyTypes").len(), 2);
    assert_eq!(denied.pointer("/spec/podSelector"), Some(&serde_json::json!({})));
    assert!(denied.pointer("/spec/ingress").is_none() && denied.pointer("/spec/egress").is_none());
    for policy in objects.of("NetworkPolicy") {
        for rule in list(policy, "/spec/ingress") {
            assert!(
                !list(rule, "/from").is_empty() && !list(rule, "/ports").is_empty(),
                "{policy}"
            );
        }
    }
}

/// A setting from a Deployment's own settings file, without quotes.
fn setting(objects: &Objects, deployment: &Value, key: &str) -> String {
    let name = text(deployment, "/metadata/name");
    let volumes = list(deployment, "/spec/template/spec/volumes");
    let config = volumes.iter().find_map(|volume| {
        let config = text(volume, "/configMap/name");
        config.starts_with(&format!("{name}-config")).then_some(config)
    });
    let config = config.expect("settings of its own");
    let config = objects.named("ConfigMap", &config).expect("what is mounted");
    let settings = text(config, "/data/config.toml");
    let mut lines = settings.lines().filter_map(|line| line.split_once(" = "));
    let (_, value) = lines.find(|(said, _)| *said == key).expect("it says so");
    value.trim_matches('"').to_owned()
}

/// The most connections to PostgreSQL that all replicas have while both services are rolled.
fn connections(objects: &Objects) -> u32 {
    /// How many pods of each still end while another gets ready; `maxSurge` does not count them.
    const ENDING: u32 = 2;
    let number = |text: String| text.parse::<u32>().expect("a number");
    let of = |deployment: &Value| {
        let name = text(deployment, "/metadata/name");
        let scaler = objects.named("HorizontalPodAutoscaler", &name);
        let replicas = scaler.map_or_else(
            || text(deployment, "/spec/replicas"),
            |scaler| text(scaler, "/spec/maxReplicas"),
        );
        let surge = text(deployment, "/spec/strategy/rollingUpdate/maxSurge");
        let each = setting(objects, deployment, "database-connections");
        // One more: learning-svc's for LISTEN, feedback-svc's for the lock by which others see that it lives.
        (number(replicas) + number(surge) + ENDING) * (number(each) + 1)
    };
    objects.of("Deployment").map(of).sum()
}

#[test]
fn all_replicas_fit_into_the_default_connections_of_postgresql() {
    /// `max_connections` without `superuser_reserved_connections`.
    const DEFAULT: u32 = 100 - 3;
    let Some(objects) = render("prod", &["open-network"]) else {
        return;
    };
    let taken = connections(&objects);
    assert!(taken <= DEFAULT, "{taken}");
    let said = format!("take {taken} of the {DEFAULT}");
    let page = include_str!("../../../docs/deploy.md");
    assert!(page.contains(&said), "{said}");
    for file in ["feedback.toml", "learning.toml"] {
        let file = fs::read_to_string(directory().join("overlays/prod").join(file)).unwrap();
        assert!(file.contains(&said), "{said}");
    }

    let scaled = connections(&render("prod", &["open-network", "autoscaling"]).unwrap());
    assert!(scaled > DEFAULT, "{scaled}");
    let said = format!("up to {scaled},");
    assert!(include_str!("../../../docs/go-live.md").contains(&said), "{said}");
    let file = directory().join("components/autoscaling/kustomization.yaml");
    let file = fs::read_to_string(file).unwrap();
    assert!(file.contains(&format!("take {scaled} connections")), "{scaled}");
}

/// Kustomize is about to forget them; `replacements` are what stays.
#[test]
fn no_kustomization_uses_vars() {
    let mut directories = vec![directory().join("..")];
    let mut read = 0;
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.file_stem().is_some_and(|stem| stem == "kustomization") {
                read += 1;
                let text = fs::read_to_string(&path).unwrap();
                assert!(
                    !text.lines().any(|line| line.starts_with("vars:")),
                    "{}",
                    path.display()
                );
            }
        }
    }
    assert!(read > 10, "{read}");
}

/// The sum from the page on deploying, with the measured cost of one of each.
#[test]
fn the_memory_limit_covers_what_the_settings_allow() {
    const ITSELF: u64 = 30 << 20;
    const CALL: u64 = 20_000;
    const STREAM_BUFFER: u64 = 64 << 20;
    const COMMIT_QUEUE: u64 = 32 << 20;
    const QUERY_QUEUE: u64 = 32 << 20;
    // The connections of raters, each with a body.
    const RATERS: u64 = 256 * (18_000 + (16 << 10));
    const ALIAS: u64 = 400;
    const ALIASES: u64 = 250_000;
    let bytes = |text: &str| -> u64 {
        let units = [("GiB", 30), ("MiB", 20), ("Gi", 30), ("Mi", 20)];
        let told = units.iter().find_map(|(unit, shift)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            Some(number << shift)
        });
        told.expect("a number of MiB or GiB")
    };
    let limit = |deployment: &Value| {
        let limits = "/spec/template/spec/containers/0/resources/limits";
        bytes(&text(deployment, &format!("{limits}/memory")))
    };
    // The bytes that a stream takes with its connection, and that any other connection takes.
    for (component, stream, connection) in [("open-network", 25_000, 18_000), ("tls", 39_000, 30_000)] {
        let Some(objects) = render("prod", &[component, "rating-http"]) else {
            return;
        };
        // Each call, and what calls hold besides, once as received and once decoded.
        let calls = |deployment: &Value| -> u64 {
            let number: u64 = setting(&objects, deployment, "max-calls").parse().unwrap();
            CALL * number + 2 * bytes(&setting(&objects, deployment, "call-buffer-size"))
        };
        let learning = objects.named("Deployment", "emend-learning").unwrap();
        let streams: u64 = setting(&objects, learning, "max-streams").parse().unwrap();
        let connections: u64 = setting(&objects, learning, "max-connections").parse().unwrap();
        let import = bytes(&setting(&objects, learning, "import-buffer-size"));
        let idle = connection * (connections - streams);
        let resources = ALIAS * ALIASES;
        let taken =
            ITSELF + stream * streams + idle + STREAM_BUFFER + 2 * import + calls(learning) + resources;
        let limit_of = limit(learning);
        assert!(taken <= limit_of, "{component}: {taken} bytes of {limit_of}");

        let feedback = objects.named("Deployment", "emend-feedback").unwrap();
        let connections: u64 = setting(&objects, feedback, "max-connections").parse().unwrap();
        let queues = COMMIT_QUEUE + QUERY_QUEUE + RATERS;
        let taken = ITSELF + connection * connections + queues + calls(feedback);
        let limit_of = limit(feedback);
        assert!(taken <= limit_of, "{component}: {taken} bytes of {limit_of}");
    }
}

#[test]
fn prod_with_tls_lets_feedback_svc_deliver_by_default() {
    let Some(objects) = render("prod", &["tls"]) else {
        return;
    };
    let said = text(
        objects.named("ConfigMap", "emend-auth").unwrap(),
        "/data/auth.toml",
    );
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
    // The overlay in the page is what the pods of `secured` are started with.
    let page = own_auth();
    let page: Vec<&str> = page.lines().map(str::trim).collect();
    let said = said.join("\n");
    assert!(page.join("\n").contains(said.trim()), "{said}");
}

#[test]
fn access_rules_change_without_new_pods_and_the_ca_keeps_its_key() {
    let Some(objects) = render("prod", &["tls"]) else {
        return;
    };
    assert!(objects.named("ConfigMap", "emend-auth").is_some());
    let authority = objects.named("Certificate", "emend-ca").unwrap();
    assert_eq!(text(authority, "/spec/privateKey/rotationPolicy"), "Never");
}
