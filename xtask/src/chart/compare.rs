//! Whether the chart renders to what Kustomize renders, by Helm itself.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{CHART, COMPONENTS, Objects, components_of, merge::Choice, objects, possible, render};
use crate::{
    manifests,
    process::{self, Workspace},
};

/// Lints the chart, and compares what it renders with what Kustomize renders.
pub(crate) fn compare(workspace: &Workspace, kustomize: &Path, helm: &Path) -> Result<()> {
    let values = |choice: Choice| {
        let chosen = |component: usize| choice >> component & 1 == 1;
        let mut values = json!({"access": if chosen(0) { "tls" } else { "open-network" }});
        for (component, (_, value, _)) in COMPONENTS.iter().enumerate().skip(1) {
            values[*value] = json!({"enabled": chosen(component)});
        }
        values
    };
    process::run(
        workspace
            .command(helm)
            .args(["lint", "--strict", "--quiet", CHART]),
    )?;
    for choice in choices_to_compare() {
        let by_kustomize = render(workspace, kustomize, choice)?;
        let by_helm = objects(&template(workspace, helm, "emend", &values(choice))?)?;
        let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        let components = components_of(choice);
        ensure!(
            names(&by_helm) == names(&by_kustomize),
            "with {components:?} Helm renders {:?}, and Kustomize {:?}",
            names(&by_helm),
            names(&by_kustomize)
        );
        for (name, object) in by_kustomize {
            ensure!(
                by_helm[&name] == object,
                "with {components:?} {name} is, by Helm, {:#}\n\nand by Kustomize {object:#}",
                by_helm[&name]
            );
        }
    }
    // Without any values it is `prod` with `tls`.
    let defaults = objects(&template(workspace, helm, "emend", &json!({}))?)?;
    ensure!(
        defaults == render(workspace, kustomize, 1)?,
        "without values the chart is not prod with tls"
    );
    every_value_is_heard(workspace, helm)
}

/// Checks that what values say is in what is rendered, and nothing of what they replace.
fn every_value_is_heard(workspace: &Workspace, helm: &Path) -> Result<()> {
    let values = json!({
        "access": "tls",
        "images": {"registry": "a.example/b", "tag": "9.8.7", "digests": {"learning-svc": format!("sha256:{}", "ab".repeat(32))}},
        "database": {"secret": "said-database"},
        "auth": "# said-auth",
        "feedback": {
            "replicas": 71, "config": "# said-feedback", "env": [{"name": "SAID_FEEDBACK", "value": "x"}],
            "resources": {"limits": {"memory": "711Mi"}}, "pod": {"priorityClassName": "said-feedback-class"},
        },
        "learning": {
            "replicas": 72, "config": "# said-learning", "env": [{"name": "SAID_LEARNING", "value": "x"}],
            "resources": {"limits": {"memory": "722Mi"}}, "pod": {"priorityClassName": "said-learning-class"},
        },
        "podMonitor": {"enabled": true, "namespace": "said-monitoring"},
        "traces": {"enabled": true, "endpoint": "http://said-traces:4317", "namespace": "said-traces"},
        "ratingHttp": {
            "enabled": true, "keySecret": "said-key", "tlsSecret": "said-tls", "host": "said.example", "serves": "said/web",
            "origins": "https://said.example", "trustedProxies": "192.0.2.0/24", "namespace": "said-ingress",
            "ingress": {"ingressClassName": "said-class"},
        },
        "console": {
            "enabled": true, "replicas": 78, "keySecret": "said-console-key", "tlsSecret": "said-console-tls",
            "host": "console.said.example", "namespace": "said-console-ingress", "env": [{"name": "SAID_CONSOLE", "value": "x"}],
            "resources": {"limits": {"memory": "733Mi"}}, "pod": {"priorityClassName": "said-console-class"},
            "ingress": {"ingressClassName": "said-console-ingress-class"},
        },
        "mcp": {
            "enabled": true, "replicas": 79, "keySecret": "said-mcp-key", "tlsSecret": "said-mcp-tls",
            "host": "mcp.said.example", "namespace": "said-mcp-ingress", "env": [{"name": "SAID_MCP", "value": "x"}],
            "resources": {"limits": {"memory": "744Mi"}}, "pod": {"priorityClassName": "said-mcp-class"},
            "ingress": {"ingressClassName": "said-mcp-ingress-class"},
        },
        "edge": {
            "enabled": true, "replicas": 80, "env": [{"name": "SAID_EDGE", "value": "x"}],
            "resources": {"limits": {"memory": "755Mi"}}, "pod": {"priorityClassName": "said-edge-class"},
        },
        "backup": {
            "enabled": true, "secret": "said-backup", "keep": "73", "image": "said.example/postgres:17", "schedule": "1 2 3 4 5",
            "storage": "74Gi", "volume": {"storageClassName": "said-storage"},
        },
    });
    let printed = template(workspace, helm, "elsewhere", &values)?;
    let scaled = json!({
        "autoscaling": {"enabled": true, "minReplicas": 75, "maxReplicas": 76, "streams": "77000"},
        "edge": {"enabled": true, "config": "# said-edge"},
    });
    let scaled_printed = template(workspace, helm, "elsewhere", &scaled)?;
    let mut said = Vec::new();
    let mut left = vec![(&values, &printed), (&scaled, &scaled_printed)];
    while let Some((value, printed)) = left.pop() {
        match value {
            Value::Object(map) => left.extend(map.values().map(|value| (value, printed))),
            Value::Array(list) => left.extend(list.iter().map(|value| (value, printed))),
            Value::Bool(_) => {}
            scalar => said.push((
                scalar.as_str().map_or_else(|| scalar.to_string(), str::to_owned),
                printed,
            )),
        }
    }
    for (value, printed) in said {
        // Which of the two kinds of access is not said by name.
        ensure!(
            value == "tls" || printed.contains(&value),
            "the chart does not heed {value}"
        );
    }
    for replaced in ["registry.example", "namespace: \"emend\"", ".emend.svc"] {
        ensure!(
            !printed.contains(replaced),
            "whatever values say, the chart says {replaced}"
        );
    }
    for refused in [
        json!({"access": "none"}),
        json!({"access": "open-network", "edge": {"enabled": true}}),
    ] {
        ensure!(
            template(workspace, helm, "emend", &refused).is_err(),
            "the chart takes {refused}"
        );
    }
    Ok(())
}

fn template(workspace: &Workspace, helm: &Path, namespace: &str, values: &Value) -> Result<String> {
    let file = workspace.target("manifests/values.json");
    fs::write(&file, values.to_string())?;
    process::output(
        workspace
            .command(helm)
            // Built without a release's flags Helm takes a cluster to be of an old version.
            .args([
                "template",
                "emend",
                CHART,
                "--kube-version",
                manifests::KUBERNETES,
            ])
            .args(["--namespace", namespace, "--values"])
            .arg(file),
    )
}

/// None, each, all but one, and all: the last ones say whether what was learned of two holds of more.
fn choices_to_compare() -> BTreeSet<Choice> {
    let all: Choice = (1 << COMPONENTS.len()) - 1;
    (0..=all)
        .filter(|choice| choice.count_ones() <= 1 || (all & !choice).count_ones() <= 1)
        .flat_map(possible)
        .collect()
}
