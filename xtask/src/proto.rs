//! The wire contract: checks with buf (format, lint, breaking changes against branch main), and the code generated from
//! it, which is committed.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    clients,
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

/// Where the generated code is.
const GENERATED: &str = "crates/emend-proto/src/generated";
/// Where the classes of the Python package are, which it generates too.
const PYTHON: &str = "clients/python/python/emend/_generated";
/// The program that generates it.
const GENERATOR: &str = "emend-proto-codegen";
/// Builds and runs it.
const GENERATE: [&str; 6] = ["run", "--quiet", "--locked", "--package", GENERATOR, "--"];

/// `cargo xtask proto`: mends the format, generates the code, and checks.
pub(crate) fn proto(workspace: &Workspace, may_install: bool) -> Result<()> {
    let buf = tools::buf(workspace, may_install)?;
    process::run(workspace.command(&buf).args(["format", "--write"]))?;
    process::run(workspace.command(&buf).arg("lint"))?;
    generate(
        workspace,
        &mut workspace.cargo(GENERATE),
        &workspace.path(GENERATED),
        &workspace.path(PYTHON),
    )?;
    if let Outcome::NotRun(reason) = clients::go::generate(workspace, &buf)? {
        eprintln!("no code in Go: {reason}");
    }
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

/// Generates the code anew and compares it with what is committed.
pub(crate) fn check_generated(workspace: &Workspace) -> Result<Outcome> {
    check_generated_by(workspace, &mut workspace.cargo(GENERATE))
}

/// The same, by the program that the workspace's build has made: built alone, most of it would be built twice.
pub(crate) fn check_generated_as_built(workspace: &Workspace) -> Result<Outcome> {
    check_generated_by(
        workspace,
        &mut workspace.command(workspace.target("debug").join(GENERATOR)),
    )
}

fn check_generated_by(workspace: &Workspace, generator: &mut Command) -> Result<Outcome> {
    let anew = workspace.target("tools/generated");
    if anew.exists() {
        fs::remove_dir_all(&anew)?;
    }
    let parts = [(anew.join("rust"), GENERATED), (anew.join("python"), PYTHON)];
    generate(workspace, generator, &parts[0].0, &parts[1].0)?;
    for (anew, committed) in parts {
        ensure!(
            files(&anew)? == files(&workspace.path(committed))?,
            "{committed} is not what the protos say: `cargo xtask proto` generates it"
        );
    }
    Ok(Outcome::Done)
}

fn generate(workspace: &Workspace, generator: &mut Command, out: &Path, python: &Path) -> Result<()> {
    process::run(generator.arg(workspace.path("proto")).arg(out).arg(python))
}

fn files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for file in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let file = file?;
        // What an interpreter leaves behind.
        if file.file_type()?.is_dir() {
            continue;
        }
        files.insert(PathBuf::from(file.file_name()), fs::read(file.path())?);
    }
    Ok(files)
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
