//! Checks deploy/. The Kubernetes manifests: every overlay is rendered with every valid set of components and validated
//! against Kubernetes' schemas, those of cert-manager and the Prometheus operator, and checkov's rules. The Helm chart
//! that is written from them is compared with them. The Dockerfile
//! and the compose file: as far as possible without a container engine. Whether they match the programs is tested in
//! `tests/tests/manifests`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    chart, custom,
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

const OVERLAYS: &str = "deploy/k8s/overlays";
const COMPONENTS: &str = "deploy/k8s/components";
/// Where every object that is rendered stands once, in the target directory.
const DISTINCT: &str = "manifests/distinct";

/// The version of Kubernetes' schemas to validate against. The manifests need 1.30, which enables `preStop.sleep` by
/// default.
pub(crate) const KUBERNETES: &str = "1.32.0";
const PACKAGES: &[&str] = &[
    "checkov==3.3.30",
    "kubernetes-validate==1.37.0",
    "jsonschema==4.26.0",
];

/// Valid combinations: an overlay with at most one component of each row. `dev` includes `open-network` and runs a
/// single pod, which is not scaled.
const TABLE: &[(&str, &[&[&str]])] = &[
    ("dev", &[&["pod-monitor"], &["traces"]]),
    (
        "prod",
        &[
            &["open-network", "tls"],
            &["pod-monitor"],
            &["traces"],
            &["autoscaling"],
        ],
    ),
    // What they add is independent of the others.
    ("prod", &[&["first-start"]]),
    ("dev", &[&["backup"]]),
    ("prod", &[&["backup-postgresql"]]),
    ("dev", &[&["rating-http"], &["tls-dev"]]),
    ("prod", &[&["open-network", "tls"], &["rating-http"]]),
    ("prod", &[&["workload-identity"], &["rating-http"]]),
    ("prod", &[&["tls"], &["edge"], &["pod-monitor"]]),
    // First, because `open-network` takes its certificate out.
    (
        "prod",
        &[
            &["console"],
            &["open-network", "tls", "workload-identity"],
            &["pod-monitor"],
        ],
    ),
    (
        "prod",
        &[
            &["mcp"],
            &["open-network", "tls", "workload-identity"],
            &["pod-monitor"],
        ],
    ),
];

/// `cargo xtask manifests`; with `write` the chart's templates are written first.
pub(crate) fn manifests(workspace: &Workspace, may_install: bool, write: bool) -> ExitCode {
    let mut steps = Steps::default();
    if write {
        steps.run("Helm chart's templates", || {
            chart::write(workspace, may_install)?;
            Ok(Outcome::Done)
        });
    }
    check(workspace, may_install, &mut steps);
    steps.finish()
}

/// Renders and checks everything.
pub(crate) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    let rendered = steps.run_for("manifests", || {
        let program = match tools::kustomize(workspace, may_install) {
            Ok(program) => program,
            Err(error) if tools::go().is_none() || !may_install => {
                return Ok((None, Outcome::NotRun(format!("{error:#}"))));
            }
            Err(error) => return Err(error),
        };
        let rendered = render_all(workspace, &program)?;
        Ok((Some((program, rendered)), Outcome::Done))
    });
    let Some(Some((kustomize, directory))) = rendered else {
        return;
    };
    steps.run("Helm chart", || {
        chart::up_to_date(workspace, &kustomize)?;
        let helm = match tools::helm(workspace, may_install) {
            Ok(helm) => helm,
            Err(error) if tools::go().is_none() || !may_install => {
                return Ok(Outcome::NotRun(format!("{error:#}")));
            }
            Err(error) => return Err(error),
        };
        chart::compare(workspace, &kustomize, &helm)?;
        Ok(Outcome::Done)
    });
    steps.run("manifests' schemas", || {
        let python = match tools::venv(workspace, "manifests", PACKAGES, may_install) {
            Ok(python) => python,
            Err(error) if !may_install => return Ok(Outcome::NotRun(format!("{error:#}"))),
            Err(error) => return Err(error),
        };
        validate(
            workspace,
            &python.with_file_name("kubernetes-validate"),
            &distinct(workspace, &directory)?,
        )?;
        Ok(Outcome::Done)
    });
    steps.run("custom resources' schemas", || {
        let Ok(python) = tools::venv(workspace, "manifests", PACKAGES, false) else {
            return Ok(Outcome::NotRun("jsonschema is missing".to_owned()));
        };
        let definitions = match custom::definitions(workspace, may_install) {
            Ok(definitions) => definitions,
            Err(error) if tools::go().is_none() || !may_install => {
                return Ok(Outcome::NotRun(format!("{error:#}")));
            }
            Err(error) => return Err(error),
        };
        custom::validate(
            workspace,
            &python,
            &definitions,
            &distinct(workspace, &directory)?,
        )?;
        Ok(Outcome::Done)
    });
    steps.run("manifests' security", || {
        let Ok(python) = tools::venv(workspace, "manifests", PACKAGES, false) else {
            return Ok(Outcome::NotRun("checkov is missing".to_owned()));
        };
        distinct(workspace, &directory)?;
        // Exceptions are annotations in the manifests, each with its reason.
        process::run(
            workspace
                .command(python.with_file_name("checkov"))
                .args([
                    "--framework",
                    "kubernetes",
                    "--skip-download",
                    "--compact",
                    "--quiet",
                    "-d",
                ])
                .arg(workspace.target(DISTINCT)),
        )?;
        Ok(Outcome::Done)
    });
    check_containers(workspace, may_install, steps);
}

/// Checks the Dockerfile with checkov and compose.yaml with the specification's own parser.
fn check_containers(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("Dockerfile", || {
        let Ok(python) = tools::venv(workspace, "manifests", PACKAGES, false) else {
            return Ok(Outcome::NotRun("checkov is missing".to_owned()));
        };
        process::run(
            workspace
                .command(python.with_file_name("checkov"))
                .args([
                    "--framework",
                    "dockerfile",
                    "--skip-download",
                    "--compact",
                    "--quiet",
                    "-f",
                ])
                .arg(workspace.path("deploy/docker/Dockerfile")),
        )?;
        Ok(Outcome::Done)
    });
    steps.run("compose.yaml", || {
        let program = match tools::compose_spec(workspace, may_install) {
            Ok(program) => program,
            Err(error) if tools::go().is_none() || !may_install => {
                return Ok(Outcome::NotRun(format!("{error:#}")));
            }
            Err(error) => return Err(error),
        };
        // Its output, the model with all defaults, is not worth showing.
        process::output(
            workspace
                .command(program)
                .arg(workspace.path("deploy/docker/compose.yaml")),
        )?;
        Ok(Outcome::Done)
    });
}

/// Renders one file per overlay and set of components into one directory.
fn render_all(workspace: &Workspace, program: &Path) -> Result<PathBuf> {
    nothing_left_out(workspace)?;
    let (rendered, scratch) = (
        workspace.target("manifests/rendered"),
        workspace.target("manifests/scratch"),
    );
    for directory in [&rendered, &scratch] {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
    }
    for (overlay, rows) in TABLE {
        for components in choices(rows) {
            let name = [&[*overlay], &components[..]].concat().join("+");
            let text = render(workspace, program, &scratch, overlay, &components)?;
            fs::write(rendered.join(format!("{name}.yaml")), text)?;
            eprintln!("{name}");
        }
    }
    Ok(rendered)
}

/// What an overlay with components renders to, by a kustomization in `scratch`.
pub(crate) fn render(
    workspace: &Workspace,
    program: &Path,
    scratch: &Path,
    overlay: &str,
    components: &[&str],
) -> Result<String> {
    let root = relative_root(scratch, workspace)?;
    fs::write(
        scratch.join("kustomization.yaml"),
        kustomization(&root, overlay, components),
    )?;
    let command = if program.ends_with("kustomize") {
        "build"
    } else {
        "kustomize"
    };
    process::output(workspace.command(program).arg(command).arg(scratch))
        .with_context(|| format!("{overlay} {components:?}"))
}

/// The component of overlays that are not ours: the tests of manifests put it into one.
const OF_BACKENDS: &str = "edge-sidecar";

/// Fails if an overlay or component is missing from the table.
fn nothing_left_out(workspace: &Workspace) -> Result<()> {
    let named: BTreeSet<String> = TABLE
        .iter()
        .flat_map(|(overlay, rows)| rows.iter().flat_map(|row| row.iter()).chain([overlay]))
        .map(ToString::to_string)
        .collect();
    for directory in [OVERLAYS, COMPONENTS] {
        for entry in fs::read_dir(workspace.path(directory)).context(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            ensure!(
                named.contains(&name) || name == OF_BACKENDS,
                "{directory}/{name} is not in the table of what goes together"
            );
        }
    }
    Ok(())
}

/// All ways to choose at most one of each row.
fn choices<'a>(rows: &[&[&'a str]]) -> Vec<Vec<&'a str>> {
    let Some((row, rest)) = rows.split_first() else {
        return vec![Vec::new()];
    };
    let rest = choices(rest);
    let without = rest.iter().cloned();
    let with = row.iter().flat_map(|component| {
        rest.iter()
            .map(move |others| [&[*component], &others[..]].concat())
    });
    without.chain(with).collect()
}

/// kustomize accepts only relative paths.
fn relative_root(from: &Path, workspace: &Workspace) -> Result<String> {
    let (from, root) = (from.canonicalize()?, workspace.path(".").canonicalize()?);
    let common = from
        .ancestors()
        .find(|ancestor| root.starts_with(ancestor))
        .context("no common root")?;
    let up = from.strip_prefix(common)?.components().map(|_| "..");
    let down = root.strip_prefix(common)?.to_string_lossy().into_owned();
    Ok(up
        .map(str::to_owned)
        .chain((!down.is_empty()).then_some(down))
        .collect::<Vec<_>>()
        .join("/"))
}

fn kustomization(root: &str, overlay: &str, components: &[&str]) -> String {
    // Components add objects, which must be put into the overlay's namespace.
    let namespace = if overlay == "dev" { "emend-dev" } else { "emend" };
    let mut lines = vec![
        format!("namespace: {namespace}"),
        "resources:".to_owned(),
        format!("  - {root}/{OVERLAYS}/{overlay}"),
    ];
    if !components.is_empty() {
        lines.push("components:".to_owned());
    }
    let components = components
        .iter()
        .map(|component| format!("  - {root}/{COMPONENTS}/{component}"));
    lines.extend(components);
    lines.push(String::new());
    lines.join("\n")
}

/// The rendered files.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    ensure!(!files.is_empty(), "nothing was rendered");
    Ok(files)
}

/// Files of the same names with the objects of each that no file before it has: most are the same in many.
fn distinct(workspace: &Workspace, rendered: &Path) -> Result<Vec<PathBuf>> {
    let directory = workspace.target(DISTINCT);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let mut seen = BTreeSet::new();
    for file in files_of(rendered)? {
        let text = fs::read_to_string(&file)?;
        let mut new: Vec<&str> = text.trim_end().split("\n---\n").collect();
        new.retain(|object| seen.insert((*object).to_owned()));
        if !new.is_empty() {
            let file = directory.join(file.file_name().unwrap_or_default());
            fs::write(file, new.join("\n---\n"))?;
        }
    }
    files_of(&directory)
}

/// Checks that every object conforms to its schema; custom resources are validated elsewhere.
fn validate(workspace: &Workspace, program: &Path, files: &[PathBuf]) -> Result<()> {
    let printed = workspace
        .command(program)
        .args(["--strict", "--quiet", "--kubernetes-version", KUBERNETES])
        .args(files)
        .output()?;
    let (out, err) = (
        String::from_utf8_lossy(&printed.stdout),
        String::from_utf8_lossy(&printed.stderr),
    );
    ensure!(
        printed.status.success(),
        "kubernetes-validate: {}\n{out}{err}",
        printed.status
    );
    let unknown: Vec<&str> = out
        .lines()
        .filter(|line| {
            let kind = line
                .split_once("for kind ")
                .and_then(|(_, rest)| rest.split_once(" with"));
            !kind.is_some_and(|(kind, _)| custom::is_custom(kind))
        })
        .collect();
    if !unknown.is_empty() {
        bail!("{}", unknown.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{choices, kustomization};

    #[test]
    fn at_most_one_component_of_each_row_is_combined() {
        let all = choices(&[&["a", "b"], &["c"]]);
        assert_eq!(
            all,
            [
                vec![],
                vec!["c"],
                vec!["a"],
                vec!["a", "c"],
                vec!["b"],
                vec!["b", "c"]
            ]
        );
    }

    #[test]
    fn a_kustomization_names_the_chosen_components() {
        assert_eq!(
            kustomization("../..", "prod", &["tls"]),
            "namespace: emend\nresources:\n  - ../../deploy/k8s/overlays/prod\ncomponents:\n  - ../../deploy/k8s/components/tls\n"
        );
        assert!(!kustomization("..", "dev", &[]).contains("components"));
    }
}
