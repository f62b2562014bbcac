//! The components `edge` and `edge-sidecar`, rendered: their settings are accepted, and what they name is there.

use std::collections::BTreeSet;

use emend_edge::{Config, Listen};

use crate::objects::{Objects, list, render, render_in, render_theirs, text, transformer};

fn settings(file: &str) -> Config {
    Config::parse(file).unwrap_or_else(|error| panic!("{error}"))
}

/// The paths of files in settings.
fn files(config: &Config) -> Vec<String> {
    let tls = config.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
    let connection = &config.node.connection;
    let own = [
        &config.auth_config,
        &config.node.cache_dir,
        &connection.ca,
        &connection.certificate,
        &connection.key,
        &connection.token_file,
    ];
    let all = tls.chain(own.into_iter().flatten());
    all.map(|path| path.display().to_string()).collect()
}

fn config_of(objects: &Objects) -> String {
    let mut configs = objects.of("ConfigMap");
    let config = configs.find(|config| text(config, "/metadata/name").starts_with("emend-edge-config"));
    text(config.expect("the settings of edges"), "/data/edge.toml")
}

#[test]
fn an_edges_pods_listen_where_its_service_says_and_read_what_is_mounted() {
    let Some(objects) = render("prod", &["tls", "edge", "pod-monitor"]) else {
        return;
    };
    let workload = objects
        .workloads()
        .into_iter()
        .find(|workload| workload.name == "emend-edge");
    let workload = workload.expect("edges");
    let config = settings(&config_of(&objects));
    let ports = workload.ports();
    let Listen::Address(address) = &config.listen[0] else {
        panic!("{:?}", config.listen);
    };
    assert_eq!(address.port(), ports["https-edge"]);
    assert_eq!(
        config.listen_grpc.map(|address| address.port()),
        Some(ports["grpc-edge"])
    );
    let mounted: Vec<String> = list(workload.container(), "/volumeMounts")
        .iter()
        .map(|mount| text(mount, "/mountPath"))
        .collect();
    for file in files(&config) {
        assert!(
            mounted.iter().any(|path| file.starts_with(path)),
            "{file} in {mounted:?}"
        );
    }
    let certificate = objects.named("Certificate", "emend-edge").expect("a certificate");
    let names: BTreeSet<String> = list(certificate, "/spec/dnsNames")
        .iter()
        .map(|name| text(name, ""))
        .collect();
    for name in &config.names {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    // It has a name of its own in each pod.
    let own = list(workload.container(), "/env")
        .iter()
        .find(|variable| text(variable, "/name") == "EMEND_EDGE_ID");
    assert_eq!(
        text(own.expect("its id"), "/valueFrom/fieldRef/fieldPath"),
        "metadata.name"
    );
    let address = &config.node.connection.addresses[0];
    let service = address
        .trim_start_matches("https://")
        .split_once(':')
        .expect("a port");
    let found = objects
        .named("Service", service.0)
        .expect("the service that it follows");
    assert_eq!(text(&list(found, "/spec/ports")[0], "/port"), service.1);
    for policy in ["emend-edge-clients", "emend-edge-calls", "emend-edge-learning"] {
        assert!(objects.named("NetworkPolicy", policy).is_some(), "{policy}");
    }
}

#[test]
fn an_edges_certificate_is_for_the_names_that_its_service_has_in_the_overlays_namespace() {
    let renaming = transformer("tls-names");
    let Some(objects) = render_in("elsewhere", "prod", &["tls", "edge"], &renaming) else {
        return;
    };
    let certificate = objects.named("Certificate", "emend-edge").expect("a certificate");
    let names: Vec<String> = list(certificate, "/spec/dnsNames")
        .iter()
        .map(|name| text(name, ""))
        .collect();
    assert_eq!(
        names,
        [
            "emend-edge",
            "emend-edge.elsewhere",
            "emend-edge.elsewhere.svc",
            "emend-edge.elsewhere.svc.cluster.local",
            "localhost",
        ]
    );
}

/// Two backends of somebody's, one of which asks for a sidecar and has a volume and a container to start before of its own.
const BACKENDS: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: search
  labels: {emend-edge: sidecar}
spec:
  selector: {matchLabels: {app: search}}
  template:
    metadata: {labels: {app: search}}
    spec:
      initContainers: [{name: warm-up, image: warm-up}]
      containers: [{name: search, image: search}]
      volumes: [{name: own, emptyDir: {}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: other, image: other}]}
";

#[test]
fn a_sidecar_is_added_to_the_pods_that_ask_for_one_and_reads_what_is_mounted() {
    let Some(objects) = render_theirs("search", BACKENDS, &["edge-sidecar"]) else {
        return;
    };
    let config = objects
        .of("ConfigMap")
        .find(|config| text(config, "/metadata/name").starts_with("emend-edge-sidecar-"));
    let config = config.expect("the settings of edges");
    assert_eq!(text(config, "/metadata/namespace"), "search");
    let settings = settings(&text(config, "/data/edge.toml"));
    assert_eq!(settings.listen, ["127.0.0.1:7420".parse().unwrap()]);
    let pod = |name: &str| {
        let deployment = objects.named("Deployment", name).expect("a backend");
        deployment.pointer("/spec/template/spec").cloned().expect("a pod")
    };
    let other = pod("other");
    assert_eq!(
        (
            list(&other, "/initContainers").len(),
            list(&other, "/volumes").len()
        ),
        (0, 0),
        "{other}"
    );
    let pod = pod("search");
    let names = |pointer: &str| -> BTreeSet<String> {
        let items = list(&pod, pointer).iter();
        items.map(|item| text(item, "/name")).collect()
    };
    assert_eq!(names("/containers"), ["search".to_owned()].into());
    assert_eq!(
        names("/initContainers"),
        ["emend-edge", "warm-up"].map(str::to_owned).into()
    );
    let volumes = names("/volumes");
    assert!(volumes.contains("own"), "{volumes:?}");
    let sidecar = list(&pod, "/initContainers")
        .iter()
        .find(|container| text(container, "/name") == "emend-edge");
    let sidecar = sidecar.expect("an edge");
    // It goes on running beside the backend, and is of our image.
    assert_eq!(text(sidecar, "/restartPolicy"), "Always");
    assert!(
        text(sidecar, "/image").starts_with("registry.example/emend/emend:"),
        "{sidecar}"
    );
    let mounts = list(sidecar, "/volumeMounts");
    for mount in mounts {
        assert!(volumes.contains(&text(mount, "/name")), "{mount} in {volumes:?}");
    }
    for file in files(&settings) {
        let is_mounted = mounts
            .iter()
            .any(|mount| file.starts_with(&text(mount, "/mountPath")));
        assert!(is_mounted, "{file} in {mounts:?}");
    }
    let mounted = list(&pod, "/volumes")
        .iter()
        .find(|volume| text(volume, "/name") == "emend-edge");
    assert_eq!(
        text(mounted.expect("the settings' volume"), "/configMap/name"),
        text(config, "/metadata/name")
    );
}
