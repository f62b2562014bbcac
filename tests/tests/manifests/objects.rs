//! The manifests as kustomize renders them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use emend_base::testing::skipped;
use serde_json::Value;

/// Stands for the folder of the manifests in what is added to a custom overlay.
const ROOT: &str = "MANIFESTS";
/// The variable that names the renderer; `cargo xtask test` sets it.
const PROGRAM: &str = "EMEND_TEST_KUSTOMIZE";

/// Everything that an overlay with components renders to.
#[derive(Debug)]
pub(crate) struct Objects(Vec<Value>);

/// A workload: a pod with one container.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) pod: Value,
    pub(crate) claims: Vec<String>,
}

/// The directory of the manifests.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/k8s")
}

/// Renders an overlay with components; `None` without a renderer, after one line of output that says so.
pub(crate) fn render(overlay: &str, components: &[&str]) -> Option<Objects> {
    render_own(overlay, components, "")
}

/// Renders a custom overlay: based on `overlay` with these components, and with more in its `kustomization.yaml`.
pub(crate) fn render_own(overlay: &str, components: &[&str], more: &str) -> Option<Objects> {
    let namespace = if overlay == "dev" { "emend-dev" } else { "emend" };
    render_in(namespace, overlay, components, more)
}

/// The same, in this namespace.
pub(crate) fn render_in(namespace: &str, overlay: &str, components: &[&str], more: &str) -> Option<Objects> {
    Some(objects(rendering(
        namespace,
        Base::Overlay(overlay),
        components,
        more,
    )?))
}

/// Renders manifests of somebody's own, in a namespace of theirs, with these components.
pub(crate) fn render_theirs(namespace: &str, manifests: &str, components: &[&str]) -> Option<Objects> {
    Some(objects(rendering(
        namespace,
        Base::Manifests(manifests),
        components,
        "",
    )?))
}

fn objects(output: Output) -> Objects {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    let objects = text
        .split("\n---\n")
        .map(|object| serde_saphyr::from_str(object).unwrap_or_else(|error| panic!("{error}:\n{object}")));
    Objects(objects.collect())
}

/// Why kustomize refuses `overlay` with these components.
pub(crate) fn refusal(overlay: &str, components: &[&str]) -> Option<String> {
    let output = rendering("emend", Base::Overlay(overlay), components, "")?;
    assert!(!output.status.success(), "{components:?} are rendered");
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The end of a custom overlay that lists this transformer.
pub(crate) fn transformer(name: &str) -> String {
    format!("transformers:\n  - {ROOT}/transformers/{name}\n")
}

/// What components are put into.
#[derive(Debug, Clone, Copy)]
enum Base<'a> {
    /// One of our overlays, by its name.
    Overlay(&'a str),
    /// Manifests of somebody's own.
    Manifests(&'a str),
}

/// What kustomize makes of a custom overlay.
fn rendering(namespace: &str, base: Base<'_>, components: &[&str], more: &str) -> Option<Output> {
    let Some(program) = env::var_os(PROGRAM).map(PathBuf::from) else {
        skipped(format!("{PROGRAM} is not set"));
        return None;
    };
    // kustomize takes relative paths only, so the scratch directory is within the checkout.
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let from = scratch.path().canonicalize().expect("it is there");
    let root = directory().canonicalize().expect("it is there");
    let up = from
        .components()
        .skip(1)
        .map(|_| "..")
        .collect::<Vec<_>>()
        .join("/");
    let named = |kind: &str, name: &str| format!("  - {up}{}/{kind}/{name}\n", root.display());
    let resources = match base {
        Base::Overlay(overlay) => named("overlays", overlay),
        Base::Manifests(manifests) => {
            fs::write(scratch.path().join("theirs.yaml"), manifests).expect("a file");
            "  - theirs.yaml\n".to_owned()
        }
    };
    // A user who takes both puts what components add into the overlay's namespace.
    let mut text = format!("namespace: {namespace}\nresources:\n{resources}");
    if !components.is_empty() {
        text.push_str("components:\n");
    }
    for component in components {
        text.push_str(&named("components", component));
    }
    text.push_str(&more.replace(ROOT, &format!("{up}{}", root.display())));
    fs::write(scratch.path().join("kustomization.yaml"), text).expect("a file");
    let command = if program.ends_with("kustomize") {
        "build"
    } else {
        "kustomize"
    };
    let output = Command::new(program)
        .arg(command)
        .arg(scratch.path())
        .output()
        .expect("it runs");
    Some(output)
}

/// The value at a path, as text; empty if there is none.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The list at a path; empty if there is none.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The Secrets that a volume consists of.
pub(crate) fn secrets_of(volume: &Value) -> impl Iterator<Item = &Value> {
    let projected = list(volume, "/projected/sources").iter();
    let projected = projected.filter_map(|source| source.get("secret"));
    volume.get("secret").into_iter().chain(projected)
}

/// The name of a volume's Secret.
pub(crate) fn secret_name(secret: &Value) -> String {
    ["/secretName", "/name"]
        .map(|pointer| text(secret, pointer))
        .concat()
}

/// The texts at a path, by name.
pub(crate) fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

impl Objects {
    /// All objects of a kind.
    pub(crate) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |object| text(object, "/kind") == kind)
    }

    /// Every namespace that an object is in.
    pub(crate) fn namespaces(&self) -> BTreeSet<String> {
        self.0
            .iter()
            .map(|object| text(object, "/metadata/namespace"))
            .collect()
    }

    /// The object with this kind and name.
    pub(crate) fn named(&self, kind: &str, name: &str) -> Option<&Value> {
        self.of(kind)
            .find(|object| text(object, "/metadata/name") == name)
    }

    /// All workloads.
    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let workloads = self.of("Deployment").chain(self.of("StatefulSet"));
        workloads
            .map(|object| Workload {
                name: text(object, "/metadata/name"),
                labels: texts(object, "/spec/template/metadata/labels"),
                pod: object.pointer("/spec/template/spec").cloned().unwrap_or_default(),
                claims: list(object, "/spec/volumeClaimTemplates")
                    .iter()
                    .map(|claim| text(claim, "/metadata/name"))
                    .collect(),
            })
            .collect()
    }

    /// The workloads that a selector's `matchLabels` select; no labels select all.
    pub(crate) fn selected(&self, labels: &BTreeMap<String, String>) -> Vec<Workload> {
        let mut workloads = self.workloads();
        workloads.retain(|workload| {
            labels
                .iter()
                .all(|(name, value)| workload.labels.get(name) == Some(value))
        });
        workloads
    }
}

impl Workload {
    /// Its only container.
    pub(crate) fn container(&self) -> &Value {
        let containers = list(&self.pod, "/containers");
        assert_eq!(containers.len(), 1, "{}", self.name);
        &containers[0]
    }

    /// The program in its image.
    pub(crate) fn program(&self) -> String {
        let image = text(self.container(), "/image");
        let image = image.rsplit('/').next().expect("a name");
        image.split([':', '@']).next().expect("a name").to_owned()
    }

    pub(crate) fn args(&self) -> Vec<String> {
        let args = list(self.container(), "/args").iter();
        args.map(|arg| arg.as_str().expect("an argument is text").to_owned())
            .collect()
    }

    /// Its environment, with what the kubelet fills in.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::new();
        for variable in list(self.container(), "/env") {
            let field = variable.pointer("/valueFrom/fieldRef/fieldPath");
            let value = match field.and_then(Value::as_str) {
                Some("metadata.name") => "a-pod".to_owned(),
                Some(other) => panic!("the tests' kubelet does not know {other}"),
                None => environment.iter().fold(
                    text(variable, "/value"),
                    |value, (name, known): (&String, &String)| value.replace(&format!("$({name})"), known),
                ),
            };
            environment.insert(text(variable, "/name"), value);
        }
        environment
    }

    /// Its ports by name.
    pub(crate) fn ports(&self) -> BTreeMap<String, u16> {
        list(self.container(), "/ports")
            .iter()
            .map(|port| {
                (
                    text(port, "/name"),
                    text(port, "/containerPort").parse().expect("a port"),
                )
            })
            .collect()
    }

    /// The number of a port given by number or name.
    pub(crate) fn port(&self, port: &str) -> Option<u16> {
        let ports = self.ports();
        match port.parse::<u16>() {
            Ok(number) => ports.values().copied().find(|known| *known == number),
            Err(_) => ports.get(port).copied(),
        }
    }

    /// The probes that it has, by name.
    pub(crate) fn probes(&self) -> Vec<(&'static str, Value)> {
        ["startupProbe", "livenessProbe", "readinessProbe"]
            .into_iter()
            .filter_map(|name| Some((name, self.container().get(name)?.clone())))
            .collect()
    }
}
