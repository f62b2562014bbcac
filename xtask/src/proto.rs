//! Checks of the wire contract with buf: format, lint, and breaking changes against branch main.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use crate::{
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

/// `cargo xtask proto`.
pub(crate) fn proto(workspace: &Workspace, may_install: bool) -> Result<()> {
    let buf = tools::buf(workspace, may_install)?;
    process::run(workspace.command(&buf).args(["format", "--write"]))?;
    process::run(workspace.command(&buf).arg("lint"))?;
    if let Outcome::NotRun(reason) = breaking(workspace, &buf)? {
        eprintln!("no look for breaking changes: {reason}");
    }
    Ok(())
}

/// The same checks as steps, changing nothing.
pub(crate) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    let found = steps.run_for("buf lint", || {
        let buf = match tools::buf(workspace, may_install) {
            Ok(buf) => buf,
            Err(error) if !may_install && !process::in_ci() => {
                return Ok((None, Outcome::NotRun(format!("{error:#}"))));
            }
            Err(error) => return Err(error),
        };
        process::run(workspace.command(&buf).args(["format", "--diff", "--exit-code"]))
            .context("`cargo xtask proto` mends the format")?;
        process::run(workspace.command(&buf).arg("lint"))?;
        Ok((Some(buf), Outcome::Done))
    });
    if let Some(Some(buf)) = found {
        steps.run("buf breaking", || breaking(workspace, &buf));
    }
}

/// Compares with main's protos, which are exported from git first: buf itself would clone the whole history and expects
/// a `buf.yaml` there.
fn breaking(workspace: &Workspace, buf: &Path) -> Result<Outcome> {
    let Some(main) = ["main", "origin/main"]
        .iter()
        .find(|branch| is_in_git(workspace, &format!("{branch}:proto")))
    else {
        return Ok(Outcome::NotRun(
            "this clone has no branch main with protos".into(),
        ));
    };
    let protos = workspace.target("tools/main-protos.tar");
    fs::create_dir_all(workspace.target("tools"))?;
    process::run(
        git(workspace)
            .args(["archive", "--format=tar", "--output"])
            .arg(&protos)
            .arg(format!("{main}:proto")),
    )?;
    process::run(
        workspace
            .command(buf)
            .arg("breaking")
            .arg("--against")
            .arg(&protos),
    )?;
    Ok(Outcome::Done)
}

fn is_in_git(workspace: &Workspace, object: &str) -> bool {
    process::output(
        git(workspace)
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(object),
    )
    .is_ok()
}

fn git(workspace: &Workspace) -> Command {
    let mut git = workspace.command("git");
    // A CI checkout may belong to another account; reading it does no harm.
    git.args(["-c", "safe.directory=*"]);
    git
}
