//! Debian's Prometheus and promtool: found in `PATH`, or unpacked under target/tools. Never installed, because the
//! package would start a server.

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{
    debian,
    process::{self, Workspace},
};

/// The variable that names another promtool.
pub(crate) const PROMTOOL_VARIABLE: &str = "EMEND_TEST_PROMTOOL";
/// The variable that names another Prometheus.
pub(crate) const PROMETHEUS_VARIABLE: &str = "EMEND_TEST_PROMETHEUS";

/// The program that checks rules and queries Prometheus.
pub(crate) fn promtool(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    find(workspace, may_install, PROMTOOL_VARIABLE, "promtool")
}

/// The server.
pub(crate) fn prometheus(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    find(workspace, may_install, PROMETHEUS_VARIABLE, "prometheus")
}

fn find(workspace: &Workspace, may_install: bool, variable: &str, name: &str) -> Result<PathBuf> {
    if let Some(named) = env::var_os(variable) {
        return Ok(named.into());
    }
    if let Some(program) = process::find_program(name) {
        return Ok(program);
    }
    let directory = workspace.target("tools/prometheus");
    let program = directory.join("usr/bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    if !may_install {
        bail!("{name} is missing: run without --no-install, or set {variable}");
    }
    debian::unpack("prometheus", &directory).with_context(|| format!("cannot get {name}"))?;
    Ok(program)
}
