//! Validates custom resources against the schemas of the projects that define them, rejecting any field that the schema
//! does not name. The schemas' own CEL rules (`x-kubernetes-validations`) are not checked.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    process::{self, Workspace},
    tools,
};

/// A Go module whose archive contains resource definitions, and its version.
struct Module {
    path: &'static str,
    version: &'static str,
    /// Each kind and the file of its definition.
    kinds: &'static [(&'static str, &'static str)],
}

const MODULES: &[Module] = &[
    Module {
        path: "github.com/prometheus-operator/prometheus-operator",
        version: "v0.85.0",
        kinds: &[
            (
                "PodMonitor",
                "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            ),
            (
                "PrometheusRule",
                "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
            ),
        ],
    },
    Module {
        path: "github.com/cert-manager/cert-manager",
        version: "v1.21.2",
        kinds: &[
            ("Certificate", "deploy/crds/cert-manager.io_certificates.yaml"),
            ("Issuer", "deploy/crds/cert-manager.io_issuers.yaml"),
        ],
    },
];

/// Reads `{"schemas": {KIND: …}, "objects": [{"file", "object"}, …]}` and prints every violation.
const VALIDATE: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
asked = json.load(open(sys.argv[1]))
validators = {kind: Draft202012Validator(schema) for kind, schema in asked["schemas"].items()}
wrong = 0
for entry in asked["objects"]:
    found = entry["object"]
    for error in validators[found["kind"]].iter_errors(found):
        wrong += 1
        print(f'{entry["file"]}: {found["kind"]} {found["metadata"]["name"]}: {error.json_path}: {error.message}')
sys.exit(1 if wrong else 0)
"#;

/// Whether `kind` is one of these custom kinds.
pub(crate) fn is_custom(kind: &str) -> bool {
    MODULES
        .iter()
        .flat_map(|module| module.kinds)
        .any(|(known, _)| *known == kind)
}

/// The files of the definitions, by kind; downloaded with Go if missing.
pub(crate) fn definitions(workspace: &Workspace, may_install: bool) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut found = Vec::new();
    for module in MODULES {
        let name = module.path.rsplit('/').next().unwrap_or_default();
        let directory = workspace.target(format!("tools/{name}-{}", module.version));
        let at = |kind: &str| directory.join(format!("{kind}.yaml"));
        if module.kinds.iter().any(|(kind, _)| !at(kind).is_file()) {
            let go = tools::go().filter(|_| may_install).with_context(|| {
                format!("{name}'s definitions are missing, and downloading them needs Go")
            })?;
            let wanted = format!("{}@{}", module.path, module.version);
            let printed = process::output(workspace.command(go).args(["mod", "download", "-json", &wanted]))?;
            let printed: Value = serde_json::from_str(&printed).context("Go's answer")?;
            let unpacked = printed["Dir"]
                .as_str()
                .context("Go does not report the module's directory")?;
            fs::create_dir_all(&directory)?;
            for (kind, file) in module.kinds {
                fs::write(at(kind), fs::read(Path::new(unpacked).join(file)).context(*file)?)?;
            }
        }
        found.extend(module.kinds.iter().map(|(kind, _)| (*kind, at(kind))));
    }
    Ok(found)
}

/// Checks that every custom object in these files conforms to its definition and has no other fields.
pub(crate) fn validate(
    workspace: &Workspace,
    python: &Path,
    definitions: &[(&'static str, PathBuf)],
    rendered: &[PathBuf],
) -> Result<()> {
    let mut schemas = serde_json::Map::new();
    for (kind, file) in definitions {
        let definition: Value = serde_saphyr::from_str(&fs::read_to_string(file)?).context(*kind)?;
        schemas.insert((*kind).to_owned(), strict_schema(&definition).context(*kind)?);
    }
    let mut objects = Vec::new();
    let mut kinds = BTreeSet::new();
    for file in rendered {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        for text in fs::read_to_string(file)?.split("\n---\n") {
            let object: Value = serde_saphyr::from_str(text).with_context(|| name.clone().into_owned())?;
            let kind = object["kind"].as_str().unwrap_or_default();
            if is_custom(kind) {
                kinds.insert(kind.to_owned());
                objects.push(json!({"file": name, "object": object}));
            }
        }
    }
    let unused: Vec<&String> = schemas.keys().filter(|kind| !kinds.contains(*kind)).collect();
    ensure!(unused.is_empty(), "no object is of the kinds {unused:?}");
    let asked = workspace.target("manifests/custom.json");
    fs::write(
        &asked,
        json!({"schemas": schemas, "objects": objects}).to_string(),
    )?;
    let program = workspace.target("manifests/custom.py");
    fs::write(&program, VALIDATE.trim_start())?;
    process::run(workspace.command(python).arg(program).arg(asked))
        .context("objects that do not match their definition")
}

/// The definition's schema as JSON Schema, with the API version fixed and unknown fields rejected.
fn strict_schema(definition: &Value) -> Result<Value> {
    let versions = definition["spec"]["versions"].as_array().context("no versions")?;
    let served = versions.iter().find(|version| version["served"] == true);
    let version = served.context("it serves no version")?;
    let mut schema = version["schema"]["openAPIV3Schema"].clone();
    close(&mut schema);
    let (group, name) = (&definition["spec"]["group"], &version["name"]);
    let (group, name) = (
        group.as_str().context("no group")?,
        name.as_str().context("no name")?,
    );
    schema["properties"]["apiVersion"] = json!({"const": format!("{group}/{name}")});
    Ok(schema)
}

/// Rejects fields that a structural schema does not name. `anyOf` and the like only narrow and name no fields, so they
/// are left alone.
fn close(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let open = schema.contains_key("additionalProperties")
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(close);
        if !open {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    for within in ["items", "additionalProperties"] {
        if let Some(within) = schema.get_mut(within) {
            close(within);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::strict_schema;

    #[test]
    fn fields_that_a_definition_does_not_name_are_refused_at_every_depth() {
        let definition = json!({"spec": {"group": "a.example", "versions": [
            {"name": "v1alpha1", "served": false},
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": {"type": "object", "properties": {
                        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                        "labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}},
                        "any": {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": true},
                    }},
                },
            }}},
        ]}});
        let schema = strict_schema(&definition).unwrap();
        let properties = &schema["properties"];
        assert_eq!(properties["apiVersion"], json!({"const": "a.example/v1"}));
        let spec = &properties["spec"]["properties"];
        for closed in [
            &schema,
            &properties["spec"],
            &spec["list"]["items"],
            &spec["labels"]["additionalProperties"],
        ] {
            assert_eq!(closed["additionalProperties"], false, "{closed}");
        }
        for open in [&properties["metadata"], &spec["any"]] {
            assert!(open.get("additionalProperties").is_none(), "{open}");
        }
    }
}
