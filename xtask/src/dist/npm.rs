//! The Node package as a tarball for one platform, with its part in Rust.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{sbom, sources::Sources};
use crate::process::{self, Workspace};

/// The package's directory, and that of its crate.
const PACKAGE: &str = "clients/node";
/// What its bill of materials is called.
const NAME: &str = "emend-client-node";
/// What the tarball is made of, beside the addon.
const PARTS: [&str; 5] = ["package.json", "README.md", "lib", "types", "scripts/build.js"];
/// Makes a tarball, or installs one, and asks nobody.
const QUIET: [&str; 3] = ["--no-fund", "--no-audit", "--loglevel=error"];

/// Builds and packs the package. Without npm there is none, which is said.
pub(super) fn pack(
    workspace: &Workspace,
    dist: &Path,
    profile: &str,
    sources: &Sources,
    may_install: bool,
) -> Result<()> {
    if process::find_program("npm").is_none() {
        ensure!(!process::in_ci(), "npm is missing: install Node 20 or newer");
        eprintln!("no package for Node: npm is missing");
        return Ok(());
    }
    let manifest = fs::read_to_string(workspace.path(PACKAGE).join("package.json"))?;
    let manifest: Value = serde_json::from_str(&manifest)?;
    ensure!(
        manifest["version"] == *sources.version,
        "{PACKAGE}/package.json must have the version {}",
        sources.version
    );
    let platform = process::output(
        workspace
            .command("node")
            .args(["--print", "`${process.platform}-${process.arch}`"]),
    )?;
    let platform = platform.trim();
    let stage = dist.join("npm");
    for part in PARTS {
        let to = stage.join(part);
        fs::create_dir_all(to.parent().context("a part of a directory")?)?;
        process::run(
            workspace
                .command("cp")
                .arg("--recursive")
                .arg(workspace.path(PACKAGE).join(part))
                .arg(to),
        )?;
    }
    fs::copy(workspace.path("LICENSE"), stage.join("LICENSE"))?;
    process::run(
        workspace
            .command("strip")
            .arg("--strip-unneeded")
            .arg("-o")
            .arg(stage.join(format!("emend.{platform}.node")))
            .arg(library(workspace, profile)?),
    )?;
    let packed = process::output(
        workspace
            .command("npm")
            .arg("pack")
            .args(QUIET)
            .arg("--pack-destination")
            .arg(dist)
            .current_dir(&stage),
    )?;
    let tarball = packed.lines().last().context("npm pack named no file")?;
    let named = dist.join(tarball.replace(".tgz", &format!("-{platform}.tgz")));
    fs::rename(dist.join(tarball), &named)?;
    fs::remove_dir_all(stage)?;
    sbom::describe(workspace, dist, NAME, PACKAGE, &sources.committed, may_install)?;
    sbom::is_whole(workspace, dist, NAME, PACKAGE)?;
    try_out(workspace, dist, &named)
}

/// Builds the part in Rust, and says where it is.
fn library(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    process::run(&mut workspace.cargo(["build", "--locked", "--package=emend-node", "--profile", profile]))?;
    let directory = workspace.target(if profile == "dev" { "debug" } else { profile });
    ["libemend_node.so", "libemend_node.dylib"]
        .map(|name| directory.join(name))
        .into_iter()
        .find(|library| library.is_file())
        .context("cargo built no libemend_node")
}

/// Installs the tarball where nothing else is, and starts a node of it.
fn try_out(workspace: &Workspace, dist: &Path, tarball: &Path) -> Result<()> {
    let directory = dist.join("tried-npm");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("package.json"), "{ \"private\": true }\n")?;
    process::run(
        workspace
            .command("npm")
            .args(["install", "--no-package-lock"])
            .args(QUIET)
            .arg(tarball)
            .current_dir(&directory),
    )?;
    let program = "const { Node } = require('@emend/client'); \
                   const node = new Node('127.0.0.1:1', { id: 'tried' }); \
                   console.log(node.resolve('shop', 'hello').feedbackHint); node.close()";
    let printed = process::output(
        workspace
            .command("node")
            .args(["--eval", program])
            .current_dir(&directory),
    )?;
    ensure!(
        printed == "false\n",
        "the packed package for Node printed {printed:?}"
    );
    fs::remove_dir_all(directory)?;
    Ok(())
}
