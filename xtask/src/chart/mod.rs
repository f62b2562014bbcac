//! The Helm chart, deploy/helm/emend. Its templates are written from what Kustomize renders: `prod` with every component alone
//! and with every two together shows on what each line depends. Its other files are written by hand. Checked is that the chart
//! renders to what Kustomize renders, object by object, also for choices that the templates were not written from.

mod compare;
mod merge;
mod template;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

pub(crate) use self::compare::compare;
use self::{
    merge::{Choice, Place, merge},
    template::{Opening, Setting, Writer},
};
use crate::{manifests, process::Workspace, tools};

const CHART: &str = "deploy/helm/emend";
/// What the manifests call what is the operators' to name.
const REGISTRY: &str = "registry.example/emend/";

/// The components that can be chosen, what the chart calls the choice, and how its templates ask for it. `tls` is first: where it
/// is not chosen, `open-network` is.
const COMPONENTS: [(&str, &str, &str); 10] = [
    ("tls", "access", "(eq .Values.access \"tls\")"),
    ("pod-monitor", "podMonitor", ".Values.podMonitor.enabled"),
    ("traces", "traces", ".Values.traces.enabled"),
    ("autoscaling", "autoscaling", ".Values.autoscaling.enabled"),
    ("first-start", "firstStart", ".Values.firstStart.enabled"),
    ("rating-http", "ratingHttp", ".Values.ratingHttp.enabled"),
    ("backup-postgresql", "backup", ".Values.backup.enabled"),
    ("console", "console", ".Values.console.enabled"),
    ("mcp", "mcp", ".Values.mcp.enabled"),
    ("edge", EDGE, ".Values.edge.enabled"),
];

/// The component that has to be chosen together with `tls`: the chart refuses another choice.
const EDGE: &str = "edge";

/// The components that have to be listed before the one that says who may call.
const BEFORE_ACCESS: [&str; 2] = ["console", "mcp"];

/// Components that the chart does not have: in place of `tls` where that is not chosen, of `dev`, in place of `tls` for callers
/// with tokens, and in the pods of others.
const LEFT_OUT: [&str; 5] = [
    "open-network",
    "backup",
    "tls-dev",
    "workload-identity",
    "edge-sidecar",
];

/// Scalars of the manifests that are values of the chart: how their paths end, or begin and end with a star between; what they are; the
/// expression for them. The first that fits counts.
const SETTINGS: [(&str, &str, &str); 39] = [
    ("/metadata/namespace", "emend", ".Release.Namespace"),
    (
        "Deployment/emend-feedback/spec/replicas",
        "",
        ".Values.feedback.replicas",
    ),
    (
        "Deployment/emend-learning/spec/replicas",
        "",
        ".Values.learning.replicas",
    ),
    ("/minReplicas", "", ".Values.autoscaling.minReplicas"),
    ("/maxReplicas", "", ".Values.autoscaling.maxReplicas"),
    ("/target/averageValue", "", ".Values.autoscaling.streams"),
    ("/secret/name", "emend-database", ".Values.database.secret"),
    ("/secret/secretName", "emend-database", ".Values.database.secret"),
    ("/secretKeyRef/name", "emend-backup", ".Values.backup.secret"),
    ("/env/KEEP/value", "", ".Values.backup.keep"),
    ("/image", "postgres:17", ".Values.backup.image"),
    ("/spec/schedule", "", ".Values.backup.schedule"),
    ("/requests/storage", "", ".Values.backup.storage"),
    (
        "/secret/secretName",
        "emend-rating-key",
        ".Values.ratingHttp.keySecret",
    ),
    ("/secretName", "emend-ratings-tls", ".Values.ratingHttp.tlsSecret"),
    ("/hosts/ratings.example", "", ".Values.ratingHttp.host"),
    ("/host", "ratings.example", ".Values.ratingHttp.host"),
    (
        "/env/EMEND_RATING_HTTP/value",
        "",
        "printf \"0.0.0.0:7403=%s\" .Values.ratingHttp.serves",
    ),
    (
        "/env/EMEND_RATING_ORIGINS/value",
        "",
        ".Values.ratingHttp.origins",
    ),
    (
        "/env/EMEND_RATING_TRUSTED_PROXIES/value",
        "",
        ".Values.ratingHttp.trustedProxies",
    ),
    (
        "Deployment/emend-console/spec/replicas",
        "",
        ".Values.console.replicas",
    ),
    (
        "/secret/secretName",
        "emend-console-key",
        ".Values.console.keySecret",
    ),
    ("/secretName", "emend-console-tls", ".Values.console.tlsSecret"),
    ("/hosts/emend.example", "", ".Values.console.host"),
    ("/host", "emend.example", ".Values.console.host"),
    (
        "/env/EMEND_CONSOLE_PUBLIC_URL/value",
        "",
        "printf \"https://%s\" .Values.console.host",
    ),
    (
        "NetworkPolicy/emend-console-browsers/*/kubernetes.io/metadata.name",
        "ingress",
        ".Values.console.namespace",
    ),
    ("Deployment/emend-mcp/spec/replicas", "", ".Values.mcp.replicas"),
    ("/secret/secretName", "emend-mcp-key", ".Values.mcp.keySecret"),
    ("/secretName", "emend-mcp-tls", ".Values.mcp.tlsSecret"),
    ("/hosts/mcp.emend.example", "", ".Values.mcp.host"),
    ("/host", "mcp.emend.example", ".Values.mcp.host"),
    (
        "/env/EMEND_MCP_PUBLIC_URL/value",
        "",
        "printf \"https://%s\" .Values.mcp.host",
    ),
    (
        "NetworkPolicy/emend-mcp-assistants/*/kubernetes.io/metadata.name",
        "ingress",
        ".Values.mcp.namespace",
    ),
    ("Deployment/emend-edge/spec/replicas", "", ".Values.edge.replicas"),
    (
        "/kubernetes.io/metadata.name",
        "ingress",
        ".Values.ratingHttp.namespace",
    ),
    (
        "/kubernetes.io/metadata.name",
        "monitoring",
        ".Values.podMonitor.namespace",
    ),
    (
        "/kubernetes.io/metadata.name",
        "observability",
        ".Values.traces.namespace",
    ),
    (
        "/env/OTEL_EXPORTER_OTLP_ENDPOINT/value",
        "",
        ".Values.traces.endpoint",
    ),
];

/// What the manifests have within longer texts, and what stands there in the templates.
const EMBEDDED: [(&str, &str); 1] = [("emend-edge.emend", "emend-edge.{{ .Release.Namespace }}")];

/// Where values replace, or add to, more than a scalar.
const OPENINGS: [Opening; 23] = [
    opening(
        "Deployment/emend-feedback/",
        "/containers/emend/resources",
        ".Values.feedback.resources",
        true,
    ),
    opening(
        "Deployment/emend-learning/",
        "/containers/emend/resources",
        ".Values.learning.resources",
        true,
    ),
    opening(
        "ConfigMap/emend-feedback-config",
        "/data/config.toml",
        ".Values.feedback.config",
        true,
    ),
    opening(
        "ConfigMap/emend-learning-config",
        "/data/config.toml",
        ".Values.learning.config",
        true,
    ),
    opening("ConfigMap/emend-auth/", "/data/auth.toml", ".Values.auth", true),
    opening(
        "Deployment/emend-feedback/",
        "/containers/emend/env",
        ".Values.feedback.env",
        false,
    ),
    opening(
        "Deployment/emend-learning/",
        "/containers/emend/env",
        ".Values.learning.env",
        false,
    ),
    opening(
        "Deployment/emend-feedback/",
        "/template/spec",
        ".Values.feedback.pod",
        false,
    ),
    opening(
        "Deployment/emend-learning/",
        "/template/spec",
        ".Values.learning.pod",
        false,
    ),
    opening(
        "PersistentVolumeClaim/emend-backups/",
        "emend-backups/spec",
        ".Values.backup.volume",
        false,
    ),
    opening(
        "Ingress/emend-ratings/",
        "emend-ratings/spec",
        ".Values.ratingHttp.ingress",
        false,
    ),
    opening(
        "Deployment/emend-console/",
        "/containers/emend/resources",
        ".Values.console.resources",
        true,
    ),
    opening(
        "Deployment/emend-console/",
        "/containers/emend/env",
        ".Values.console.env",
        false,
    ),
    opening(
        "Deployment/emend-console/",
        "/template/spec",
        ".Values.console.pod",
        false,
    ),
    opening(
        "Ingress/emend-console/",
        "emend-console/spec",
        ".Values.console.ingress",
        false,
    ),
    opening(
        "Deployment/emend-mcp/",
        "/containers/emend/resources",
        ".Values.mcp.resources",
        true,
    ),
    opening(
        "Deployment/emend-mcp/",
        "/containers/emend/env",
        ".Values.mcp.env",
        false,
    ),
    opening(
        "Deployment/emend-mcp/",
        "/template/spec",
        ".Values.mcp.pod",
        false,
    ),
    opening(
        "Ingress/emend-mcp/",
        "emend-mcp/spec",
        ".Values.mcp.ingress",
        false,
    ),
    opening(
        "ConfigMap/emend-edge-config",
        "/data/edge.toml",
        ".Values.edge.config",
        true,
    ),
    opening(
        "Deployment/emend-edge/",
        "/containers/emend/resources",
        ".Values.edge.resources",
        true,
    ),
    opening(
        "Deployment/emend-edge/",
        "/containers/emend/env",
        ".Values.edge.env",
        false,
    ),
    opening(
        "Deployment/emend-edge/",
        "/template/spec",
        ".Values.edge.pod",
        false,
    ),
];

const fn opening(begins: &'static str, ends: &'static str, value: &'static str, replaces: bool) -> Opening {
    Opening {
        at: (begins, ends),
        value,
        replaces,
    }
}

/// Objects by kind and name.
type Objects = BTreeMap<String, Value>;

/// Writes the templates.
pub(crate) fn write(workspace: &Workspace, may_install: bool) -> Result<()> {
    let kustomize = tools::kustomize(workspace, may_install)?;
    let directory = workspace.path(CHART).join("templates");
    for (name, text) in templates(&renderings(workspace, &kustomize)?)? {
        fs::write(directory.join(&name), text).context(name)?;
    }
    Ok(())
}

/// Fails if the templates are not those that [`write()`] writes, or a component is forgotten.
pub(crate) fn up_to_date(workspace: &Workspace, kustomize: &Path) -> Result<()> {
    for entry in fs::read_dir(workspace.path("deploy/k8s/components"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(
            LEFT_OUT.contains(&&*name) || COMPONENTS.iter().any(|(component, ..)| *component == name),
            "deploy/k8s/components/{name} is neither in the chart nor left out: xtask/src/chart says which are"
        );
    }
    let directory = workspace.path(CHART).join("templates");
    let written = templates(&renderings(workspace, kustomize)?)?;
    let by_hand = ["NOTES.txt", "_helpers.tpl"];
    for entry in fs::read_dir(&directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(
            by_hand.contains(&&*name) || written.contains_key(&name),
            "{CHART}/templates/{name} is of no manifest"
        );
    }
    for (name, text) in written {
        ensure!(
            fs::read_to_string(directory.join(&name)).is_ok_and(|is| is == text),
            "{CHART}/templates/{name} is out of date: `cargo xtask manifests --write` writes it"
        );
    }
    Ok(())
}

fn components_of(choice: Choice) -> Vec<&'static str> {
    let chosen = |component: usize| choice >> component & 1 == 1;
    let mut components = vec![if chosen(0) { "tls" } else { "open-network" }];
    let rest = COMPONENTS.iter().enumerate().skip(1);
    components.extend(
        rest.filter(|(component, _)| chosen(*component))
            .map(|(_, (name, ..))| *name),
    );
    components.sort_by_key(|name| !BEFORE_ACCESS.contains(name));
    components
}

/// No component, each, and each two.
fn choices_to_learn() -> BTreeSet<Choice> {
    let all = 0..1 << COMPONENTS.len();
    let few = all.filter(|choice: &Choice| choice.count_ones() <= 2);
    few.flat_map(possible).collect()
}

/// A choice as the chart takes it: one of edges without `tls` becomes two, with `tls` and without edges.
fn possible(choice: Choice) -> [Choice; 2] {
    let edge = COMPONENTS.iter().position(|(component, ..)| *component == EDGE);
    let (tls, edge): (Choice, Choice) = (1, edge.map_or(0, |edge| 1 << edge));
    if choice & edge != 0 && choice & tls == 0 {
        [choice | tls, choice & !edge]
    } else {
        [choice; 2]
    }
}

fn renderings(workspace: &Workspace, kustomize: &Path) -> Result<Vec<(Choice, Value)>> {
    let mut renderings = Vec::new();
    for choice in choices_to_learn() {
        let objects = render(workspace, kustomize, choice)?;
        renderings.push((choice, Value::Object(objects.into_iter().collect())));
    }
    Ok(renderings)
}

fn render(workspace: &Workspace, kustomize: &Path, choice: Choice) -> Result<Objects> {
    let scratch = workspace.target("manifests/chart");
    fs::create_dir_all(&scratch)?;
    objects(&manifests::render(
        workspace,
        kustomize,
        &scratch,
        "prod",
        &components_of(choice),
    )?)
}

fn objects(printed: &str) -> Result<Objects> {
    let mut objects = Objects::new();
    for text in format!("\n{printed}").split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(text).with_context(|| text.to_owned())?;
        if object.is_null() {
            continue;
        }
        drop_nulls(&mut object);
        let name = |pointer| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .context("an object without a name")
        };
        let name = format!("{}/{}", name("/kind")?, name("/metadata/name")?);
        ensure!(
            objects.insert(name.clone(), object).is_none(),
            "{name} is there twice"
        );
    }
    Ok(objects)
}

/// A field that is null is none.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The files of the templates: one for each kind of object.
fn templates(renderings: &[(Choice, Value)]) -> Result<BTreeMap<String, String>> {
    let scope: Vec<Choice> = renderings.iter().map(|(choice, _)| *choice).collect();
    let named: Vec<(Choice, &Value)> = renderings
        .iter()
        .map(|(choice, objects)| (*choice, objects))
        .collect();
    let merged = merge("", &scope, &named, COMPONENTS.len())?;
    let Place { nodes, .. } = &merged;
    let [(None, merge::Node::Map(objects))] = &nodes[..] else {
        anyhow::bail!("nothing was rendered");
    };
    let asked = COMPONENTS.map(|(_, _, asked)| asked);
    let settings = settings(renderings);
    let mut writer = Writer::new(&asked, &settings, &EMBEDDED, &OPENINGS);
    let mut files = BTreeMap::new();
    for (path, place) in objects {
        let kind = path.split('/').next().unwrap_or_default().to_lowercase();
        let file: &mut String = files.entry(format!("{kind}.yaml")).or_insert_with(|| {
            "{{- /* Written by `cargo xtask manifests --write` from deploy/k8s. Change that, not this. */}}\n".to_owned()
        });
        file.push_str(&writer.object(path, place)?);
    }
    writer.all_used()?;
    Ok(files)
}

/// Those of the table, and those whose names have a version or a hash in the manifests.
fn settings(renderings: &[(Choice, Value)]) -> Vec<Setting> {
    let setting = |at: &str, is: &str, becomes: &str| Setting {
        at: at.to_owned(),
        is: is.to_owned(),
        becomes: becomes.to_owned(),
    };
    let mut settings: Vec<Setting> = SETTINGS
        .iter()
        .map(|(at, is, becomes)| setting(at, is, becomes))
        .collect();
    let mut texts = BTreeSet::new();
    let mut left: Vec<&Value> = renderings.iter().map(|(_, objects)| objects).collect();
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => left.extend(map.values()),
            Value::Array(list) => left.extend(list),
            Value::String(text) => drop(texts.insert(text.as_str())),
            _ => {}
        }
    }
    for text in texts {
        if let Some((program, _)) = text
            .strip_prefix(REGISTRY)
            .and_then(|image| image.split_once(':'))
        {
            settings.push(setting(
                "/image",
                text,
                &format!("include \"emend.image\" (list $ \"{program}\")"),
            ));
        }
        for service in ["feedback", "learning", EDGE] {
            if let Some(hash) = text.strip_prefix(&format!("emend-{service}-config-")) {
                let becomes = format!(
                    "include \"emend.config\" (list \"{service}\" .Values.{service}.config \"{hash}\")"
                );
                settings.push(setting("/name", text, &becomes));
            }
        }
        if let Some((name, domain)) = text
            .split_once(".emend")
            .filter(|(name, _)| name.starts_with("emend-"))
        {
            let becomes = format!("printf \"{name}.%s{domain}\" .Release.Namespace");
            settings.push(setting(&format!("/dnsNames/{text}"), text, &becomes));
        }
    }
    settings
}
