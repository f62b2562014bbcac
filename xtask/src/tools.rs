//! Third-party tools: clients that check Emend against more than its own client (buf, Python's grpcio, grpcurl, Go,
//! Prometheus), and the tools that render and check the manifests. Installed under target/tools in the versions pinned
//! here; an environment variable can name another program for each.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    debian,
    engines::{self, ENGINES_VARIABLE},
    process::{self, Workspace},
    prometheus::{self, PROMETHEUS_VARIABLE, PROMTOOL_VARIABLE},
    steps::Outcome,
};

const BUF_VERSION: &str = "1.75.0";
const GRPCURL_VERSION: &str = "1.9.4";
const PYTHON_PACKAGES: &[&str] = &[
    "grpcio==1.85.1",
    "grpcio-reflection==1.85.1",
    "grpcio-status==1.85.1",
    "protobuf==7.36.2",
    "googleapis-common-protos==1.76.0",
    // trec_eval itself, against which the measures of `emend search evaluate` are tested.
    "pytrec_eval-terrier==0.5.11",
    // The official SDK of the Model Context Protocol, and what checks answers against the tools' schemas.
    "mcp==2.3.0",
    "jsonschema==4.26.0",
    // What the edge says of itself in OpenAPI is valid, and others' generator makes a client of it.
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
];

const AXE_VERSION: &str = "4.14.1";
/// The suite, and the Node that it runs on: it needs a newer one than the clients do.
const MCP_SUITE: [&str; 2] = ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22.23.3"];
const COMPOSE_VERSION: &str = "2.16.2";
const HELM_VERSION: &str = "3.22.0";
const KUSTOMIZE_VERSION: &str = "5.5.0";

/// The variable through which tests find the tool; unset if it is missing.
pub(crate) const PYTHON_VARIABLE: &str = "EMEND_TEST_PYTHON";
/// See [`PYTHON_VARIABLE`].
pub(crate) const BUF_VARIABLE: &str = "EMEND_TEST_BUF";
/// See [`PYTHON_VARIABLE`].
pub(crate) const GRPCURL_VARIABLE: &str = "EMEND_TEST_GRPCURL";

/// See [`PYTHON_VARIABLE`].
pub(crate) const KUSTOMIZE_VARIABLE: &str = "EMEND_TEST_KUSTOMIZE";
/// Names a Helm 3 for the checks of the manifests.
const HELM_VARIABLE: &str = "EMEND_TEST_HELM";

/// See [`PYTHON_VARIABLE`]. What drives a Chromium.
pub(crate) const CHROMEDRIVER_VARIABLE: &str = "EMEND_TEST_CHROMEDRIVER";
/// See [`PYTHON_VARIABLE`]. The script that checks how accessible a page is.
pub(crate) const AXE_VARIABLE: &str = "EMEND_TEST_AXE";

/// See [`PYTHON_VARIABLE`]. Go itself, for the Go example.
pub(crate) const GO_VARIABLE: &str = "EMEND_TEST_GO";

/// The tools found or installed: (variable, program).
#[derive(Default)]
pub(crate) struct Tools {
    pub(crate) programs: Vec<(&'static str, PathBuf)>,
}

impl Tools {
    /// Provides all tools. If installing is allowed, a missing tool is an error, except Go and what Go builds.
    pub(crate) fn provide(workspace: &Workspace, may_install: bool) -> Result<(Self, Outcome)> {
        let mut tools = Self::default();
        let mut missing = Vec::new();
        let found = [
            (BUF_VARIABLE, buf(workspace, may_install)),
            (PYTHON_VARIABLE, python(workspace, may_install)),
            (GRPCURL_VARIABLE, grpcurl(workspace, may_install)),
            (CHROMEDRIVER_VARIABLE, chromedriver(may_install)),
            (AXE_VARIABLE, axe(workspace, may_install)),
            (ENGINES_VARIABLE, engines::provide(workspace, may_install)),
            (KUSTOMIZE_VARIABLE, kustomize(workspace, may_install)),
            (GO_VARIABLE, go().context("Go is missing")),
            (PROMTOOL_VARIABLE, prometheus::promtool(workspace, may_install)),
            (
                PROMETHEUS_VARIABLE,
                prometheus::prometheus(workspace, may_install),
            ),
        ];
        for (variable, program) in found {
            match program {
                Ok(program) => tools.programs.push((variable, program)),
                Err(error) if !may_install || (needs_go(variable) && go().is_none()) => {
                    missing.push(format!("{error:#}"));
                }
                Err(error) => return Err(error),
            }
        }
        let outcome = if missing.is_empty() {
            Outcome::Done
        } else {
            Outcome::NotRun(missing.join("; "))
        };
        Ok((tools, outcome))
    }
}

/// Whether `told`, a variable or a line that mentions one, needs Go.
pub(crate) fn needs_go(told: &str) -> bool {
    [GO_VARIABLE, GRPCURL_VARIABLE, KUSTOMIZE_VARIABLE]
        .iter()
        .any(|variable| told.contains(variable))
}

/// The Go command, which builds grpcurl and kustomize; never installed from here.
pub(crate) fn go() -> Option<PathBuf> {
    process::find_program("go")
        .or_else(|| Some(PathBuf::from("/usr/local/go/bin/go")).filter(|go| go.is_file()))
}

/// buf: lints the protos and is a gRPC client.
pub(crate) fn buf(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    let directory = workspace.target(format!("tools/buf-{BUF_VERSION}"));
    let program = directory.join("node_modules/.bin/buf");
    find(BUF_VARIABLE, &program, "buf", may_install, || {
        npm(workspace, &directory, &format!("@bufbuild/buf@{BUF_VERSION}"))
    })
}

/// axe-core: finds what keeps people from using a page.
fn axe(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    let directory = workspace.target(format!("tools/axe-core-{AXE_VERSION}"));
    let script = directory.join("node_modules/axe-core/axe.min.js");
    find(AXE_VARIABLE, &script, "axe-core", may_install, || {
        npm(workspace, &directory, &format!("axe-core@{AXE_VERSION}"))
    })
}

/// The official conformance suite of the Model Context Protocol: Node, and the script that it runs.
pub(crate) fn mcp_suite(workspace: &Workspace, may_install: bool) -> Result<(PathBuf, PathBuf)> {
    let versions = MCP_SUITE.map(|package| package.rsplit('@').next().unwrap_or_default());
    let directory = workspace.target(format!("tools/mcp-conformance-{}", versions.join("-")));
    let modules = directory.join("node_modules");
    let node = modules.join(".bin/node");
    let script = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    if !(node.is_file() && script.is_file()) {
        if !may_install {
            bail!("the conformance suite of MCP is missing: run without --no-install");
        }
        npm_all(workspace, &directory, &MCP_SUITE)?;
    }
    Ok((node, script))
}

/// Installs a package into a directory of its own, and npm first if it is missing.
fn npm(workspace: &Workspace, directory: &Path, package: &str) -> Result<()> {
    npm_all(workspace, directory, &[package])
}

fn npm_all(workspace: &Workspace, directory: &Path, packages: &[&str]) -> Result<()> {
    if process::find_program("npm").is_none() {
        debian::install(&["nodejs", "npm"], true).context("npm is missing")?;
    }
    fs::create_dir_all(directory)?;
    process::run(
        workspace
            .command("npm")
            .args([
                "install",
                "--no-fund",
                "--no-audit",
                "--no-save",
                "--loglevel=error",
                "--prefix",
            ])
            .arg(directory)
            .args(packages),
    )
}

/// The driver of Debian's Chromium, which it brings.
fn chromedriver(may_install: bool) -> Result<PathBuf> {
    if let Some(named) = env::var_os(CHROMEDRIVER_VARIABLE) {
        return Ok(named.into());
    }
    let found = || process::find_program("chromedriver");
    if let Some(program) = found() {
        return Ok(program);
    }
    debian::install(&["chromium", "chromium-driver"], may_install).context("chromedriver is missing")?;
    found().context("chromium-driver was installed, but chromedriver is not in PATH")
}

/// A Python with grpcio, and with `trec_eval`'s measures.
fn python(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    match env::var_os(PYTHON_VARIABLE) {
        Some(named) => Ok(named.into()),
        None => venv(workspace, "venv", PYTHON_PACKAGES, may_install)
            .with_context(|| format!("Python's grpcio is missing; or set {PYTHON_VARIABLE}")),
    }
}

/// The Python of a virtual environment under target/tools with these packages.
pub(crate) fn venv(
    workspace: &Workspace,
    name: &str,
    packages: &[&str],
    may_install: bool,
) -> Result<PathBuf> {
    let directory = workspace.target("tools").join(name);
    let program = directory.join("bin/python");
    // Written once installation is complete: pip may have been interrupted, or versions may change.
    let stamp = directory.join("emend-packages");
    let wanted = packages.join("\n");
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|is| is == wanted) {
        return Ok(program);
    }
    if !may_install {
        bail!("{} is missing: run without --no-install", packages[0]);
    }
    let make = |python: &str| {
        process::run(
            workspace
                .command(python)
                .args(["-m", "venv", "--clear"])
                .arg(&directory),
        )
    };
    make("python3").or_else(|_| {
        debian::install(&["python3", "python3-venv"], may_install).context("Python's venv is missing")?;
        make("/usr/bin/python3")
    })?;
    process::run(
        workspace
            .command(&program)
            // What is run is compiled then; most is not.
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-compile",
                "--disable-pip-version-check",
            ])
            .args(packages),
    )?;
    fs::write(stamp, wanted)?;
    Ok(program)
}

/// The program that renders the manifests: a kubectl whose kustomize supports components, else kustomize itself, built
/// with Go.
pub(crate) fn kustomize(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    if let Some(named) = env::var_os(KUSTOMIZE_VARIABLE) {
        return Ok(named.into());
    }
    if let Some(kubectl) = process::find_program("kubectl")
        && knows_components(workspace, &kubectl)
    {
        return Ok(kubectl);
    }
    let directory = workspace.target(format!("tools/kustomize-{KUSTOMIZE_VERSION}"));
    let program = directory.join("kustomize");
    if program.is_file() {
        return Ok(program);
    }
    let go = go().filter(|_| may_install).with_context(|| {
        format!("kubectl 1.27 or newer is missing, and so is kustomize: install one of them, or set {KUSTOMIZE_VARIABLE}")
    })?;
    process::run(
        workspace
            .command(go)
            .arg("install")
            .arg(format!("sigs.k8s.io/kustomize/kustomize/v5@v{KUSTOMIZE_VERSION}"))
            .env("GOBIN", &directory),
    )?;
    Ok(program)
}

/// Helm, which renders and checks the chart; built with Go.
pub(crate) fn helm(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    if let Some(named) = env::var_os(HELM_VARIABLE) {
        return Ok(named.into());
    }
    let directory = workspace.target(format!("tools/helm-{HELM_VERSION}"));
    let program = directory.join("helm");
    if program.is_file() {
        return Ok(program);
    }
    let go = go()
        .filter(|_| may_install)
        .with_context(|| format!("helm is missing, and Go builds it; or set {HELM_VARIABLE}"))?;
    process::run(
        workspace
            .command(go)
            .arg("install")
            .arg(format!("helm.sh/helm/v3/cmd/helm@v{HELM_VERSION}"))
            .env("GOBIN", &directory),
    )?;
    Ok(program)
}

/// The Compose Specification's own parser, which checks that a file conforms.
pub(crate) fn compose_spec(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    let directory = workspace.target(format!("tools/compose-go-{COMPOSE_VERSION}"));
    // Go names the program after the directory of its `main`.
    let program = directory.join("cmd");
    if program.is_file() {
        return Ok(program);
    }
    let go = go()
        .filter(|_| may_install)
        .context("what checks compose files is missing, and Go builds it")?;
    process::run(
        workspace
            .command(go)
            .arg("install")
            .arg(format!(
                "github.com/compose-spec/compose-go/v2/cmd@v{COMPOSE_VERSION}"
            ))
            .env("GOBIN", &directory),
    )?;
    Ok(program)
}

/// Debian's kubectl predates components.
fn knows_components(workspace: &Workspace, kubectl: &Path) -> bool {
    let version = process::output(workspace.command(kubectl).args(["version", "--client"]));
    version.is_ok_and(|told| told.contains("Kustomize Version: v5"))
}

/// The most widely known gRPC client.
fn grpcurl(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    let directory = workspace.target(format!("tools/grpcurl-{GRPCURL_VERSION}"));
    find(
        GRPCURL_VARIABLE,
        &directory.join("grpcurl"),
        "grpcurl",
        may_install,
        || {
            let go = go().context("grpcurl is missing, and so is Go, which builds it")?;
            process::run(
                workspace
                    .command(go)
                    .arg("install")
                    .arg(format!(
                        "github.com/fullstorydev/grpcurl/cmd/grpcurl@v{GRPCURL_VERSION}"
                    ))
                    .env("GOBIN", &directory),
            )
        },
    )
}

/// The program named by `variable`, else `program`, which `install` creates, else `name` in `PATH`.
fn find(
    variable: &str,
    program: &Path,
    name: &str,
    may_install: bool,
    install: impl FnOnce() -> Result<()>,
) -> Result<PathBuf> {
    if let Some(named) = env::var_os(variable) {
        return Ok(named.into());
    }
    if program.is_file() {
        return Ok(program.to_owned());
    }
    if may_install {
        install().with_context(|| format!("cannot install {name}"))?;
        return Ok(program.to_owned());
    }
    process::find_program(name)
        .with_context(|| format!("{name} is missing: run without --no-install, or set {variable}"))
}
