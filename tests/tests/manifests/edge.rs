//! The components `edge` and `edge-sidecar`: their settings are accepted, and what they name is there.

use std::collections::BTreeSet;

use emend_edge::{Config, Listen};

use crate::objects::{Objects, directory, list, render, text};

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
fn a_sidecar_reads_what_is_mounted_and_is_added_to_what_asks_for_one() {
    let component = directory().join("components/edge-sidecar");
    let file = std::fs::read_to_string(component.join("edge.toml")).expect("its settings");
    let config = settings(&file);
    assert_eq!(config.listen, ["127.0.0.1:7420".parse().unwrap()]);
    let kustomization = std::fs::read_to_string(component.join("kustomization.yaml")).expect("a file");
    let kustomization: serde_json::Value = serde_saphyr::from_str(&kustomization).expect("YAML");
    let patch: serde_json::Value =
        serde_saphyr::from_str(&text(&kustomization, "/patches/0/patch")).expect("YAML");
    assert_eq!(
        text(&kustomization, "/patches/0/target/labelSelector"),
        "emend-edge=sidecar"
    );
    let sidecar = &list(&patch, "/spec/template/spec/initContainers")[0];
    assert_eq!(text(sidecar, "/restartPolicy"), "Always");
    let mounted: Vec<String> = list(sidecar, "/volumeMounts")
        .iter()
        .map(|mount| text(mount, "/mountPath"))
        .collect();
    for file in files(&config) {
        assert!(
            mounted.iter().any(|path| file.starts_with(path)),
            "{file} in {mounted:?}"
        );
    }
    let volumes: BTreeSet<String> = list(&patch, "/spec/template/spec/volumes")
        .iter()
        .map(|volume| text(volume, "/name"))
        .collect();
    let named: BTreeSet<String> = list(sidecar, "/volumeMounts")
        .iter()
        .map(|mount| text(mount, "/name"))
        .collect();
    assert_eq!(volumes, named);
}
