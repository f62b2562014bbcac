//! What is packed: the version, the commit and the time of the sources.

use anyhow::{Context as _, Result};

use crate::{
    dependencies::read_toml,
    process::{self, Workspace},
};

/// The sources of a release.
pub(super) struct Sources {
    pub(super) version: String,
    /// `None` outside a repository.
    pub(super) commit: Option<String>,
    /// Whether they are not what was committed.
    pub(super) modified: bool,
    /// The commit's time in seconds since 1970, the only time recorded in the artefacts. 0 outside a repository.
    pub(super) committed: String,
    /// The same in the form of RFC 3339.
    pub(super) created: String,
    /// Where they are published.
    pub(super) url: Option<String>,
}

impl Sources {
    pub(super) fn of(workspace: &Workspace, url: Option<String>) -> Result<Self> {
        let manifest = read_toml(workspace, "Cargo.toml")?;
        let version = manifest
            .get("workspace")
            .and_then(|table| table.get("package")?.get("version"));
        let version = version
            .and_then(toml::Value::as_str)
            .context("the workspace has no version")?;
        let git = |arguments: &[&str]| {
            let mut command = workspace.command("git");
            command.args(["-c", "safe.directory=*"]).args(arguments);
            let printed = process::output(command.env("TZ", "UTC")).ok()?;
            Some(printed.trim().to_owned())
        };
        let last = |format: &str| git(&["log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", format]);
        Ok(Self {
            version: version.to_owned(),
            commit: last("--format=%H"),
            modified: git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty()),
            committed: last("--format=%ct").unwrap_or_else(|| "0".to_owned()),
            created: last("--format=%cd").unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned()),
            url,
        })
    }

    /// The commit, marked if it is not all of it.
    pub(super) fn revision(&self) -> Option<String> {
        let commit = self.commit.clone()?;
        Some(self.marked(commit))
    }

    /// Under which names images are to be found: the version, and the version with the commit.
    pub(super) fn tags(&self) -> Vec<String> {
        let version = &self.version;
        let exact = self.commit.as_ref().map(|commit| {
            let short = commit.get(..12).unwrap_or(commit);
            self.marked(format!("{version}-{short}"))
        });
        std::iter::once(version.clone()).chain(exact).collect()
    }

    fn marked(&self, mut name: String) -> String {
        if self.modified {
            name.push_str("-modified");
        }
        name
    }
}
