//! The Go module: whether its generated code is that of the protos, vet, staticcheck, and its tests against a real pair.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::installed::Guide;
use crate::{
    digest::sha256,
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

/// Where the module is.
const MODULE: &str = "clients/go";
/// The program that rests on it.
const EXAMPLE: &str = "examples/go";
/// Where its generated code is.
const GENERATED: &str = "clients/go/gen";
/// How it is generated.
const TEMPLATE: &str = "clients/go/buf.gen.yaml";
/// The digest of the generated code and of what it was generated from. It says without Go whether one was changed without the other.
const DIGEST: &str = "clients/go/gen.sha256";
/// Built by Go.
const STATICCHECK: &str = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

/// What a person does first.
const GUIDE: Guide = Guide {
    document: "docs/integration/go.md",
    install: "mkdir hello && cd hello
go mod init example.org/hello
go mod edit -replace=emend.dev/clients/go=../clients/go
go get emend.dev/clients/go@v0.0.0",
    language: "go",
    file: "hello/main.go",
    run: "cd hello; go run .",
};

/// What takes too long for each change: the generated code anew, by plugins that Go builds first; the tests with the race detector,
/// for which it compiles everything once more; and the module in a project elsewhere.
pub(super) fn check_long(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("client in Go: generated anew", || {
        let Some(go) = tools::go() else {
            return Ok(Outcome::NotRun(format!("{} names no Go", tools::GO_VARIABLE)));
        };
        check_generated(workspace, may_install, &go)
    });
    steps.run("client in Go: races", || {
        let Some(go) = tools::go() else {
            return Ok(Outcome::NotRun(format!("{} names no Go", tools::GO_VARIABLE)));
        };
        test(workspace, &go, &["-race"])
    });
    steps.run("guide in Go", || {
        let Some(go) = tools::go() else {
            return Ok(Outcome::NotRun(format!("{} names no Go", tools::GO_VARIABLE)));
        };
        GUIDE.is_right(workspace, |_| Ok(go.parent().map(PathBuf::from)))?;
        Ok(Outcome::Done)
    });
}

/// The generated code, format, vet, staticcheck, and the tests. Without Go one line says so.
pub(super) fn check(workspace: &Workspace, _: bool, steps: &mut Steps) {
    steps.run("client in Go: digest of the generated code", || {
        let written = fs::read_to_string(workspace.path(DIGEST)).context(DIGEST)?;
        ensure!(
            written == digest(workspace)?,
            "{GENERATED}, the protos and {DIGEST} don't belong together: `cargo xtask proto` generates them where Go is"
        );
        Ok(Outcome::Done)
    });
    let Some(go) = tools::go() else {
        steps.run("client in Go", || {
            Ok(Outcome::NotRun(format!("{} names no Go", tools::GO_VARIABLE)))
        });
        return;
    };
    let go = &*go;
    for (name, module) in [("client in Go: vet", MODULE), ("example in Go: vet", EXAMPLE)] {
        steps.run(name, || {
            let unformatted = process::output(
                workspace
                    .command(go.with_file_name("gofmt"))
                    .arg("-l")
                    .arg(workspace.path(module)),
            )?;
            ensure!(
                unformatted.is_empty(),
                "gofmt -w mends the format of {unformatted}"
            );
            process::run(command(workspace, go, module).args(["vet", "./..."]))?;
            process::run(command(workspace, go, module).args(["run", STATICCHECK, "./..."]))?;
            Ok(Outcome::Done)
        });
    }
    steps.run("client in Go: tests", || test(workspace, go, &[]));
}

fn test(workspace: &Workspace, go: &Path, options: &[&str]) -> Result<Outcome> {
    let mut tests = command(workspace, go, MODULE);
    tests
        .args(["test", "-count=1"])
        .args(options)
        .arg(".")
        .env("EMEND_TEST_PROGRAM", workspace.target("debug/emend"));
    process::run(&mut tests).map(|()| Outcome::Done)
}

/// Generates the code from the protos; `cargo xtask proto` does this.
pub(crate) fn generate(workspace: &Workspace, buf: &Path) -> Result<Outcome> {
    let Some(go) = tools::go() else {
        return Ok(Outcome::NotRun(format!("{} names no Go", tools::GO_VARIABLE)));
    };
    generate_into(workspace, buf, &go, &workspace.path(MODULE))?;
    fs::write(workspace.path(DIGEST), digest(workspace)?)?;
    Ok(Outcome::Done)
}

/// What belongs to the protos, and to the code that was generated from them: not what an editor left beside them.
const OF_DIGEST: [(&str, &str); 2] = [("proto", "proto"), (GENERATED, "go")];

/// The digest of the protos and of the generated code, by name and length, and of the template.
fn digest(workspace: &Workspace) -> Result<String> {
    let mut all = Vec::new();
    for (directory, ending) in OF_DIGEST {
        for (name, content) in files(&workspace.path(directory))? {
            if name.extension().is_none_or(|its| its != ending) {
                continue;
            }
            let (name, length) = (name.display(), content.len());
            all.extend(format!("{directory}/{name} {length}\n").into_bytes());
            all.extend(content);
        }
    }
    all.extend(fs::read(workspace.path(TEMPLATE))?);
    Ok(format!("{}\n", sha256(&all)))
}

fn generate_into(workspace: &Workspace, buf: &Path, go: &Path, out: &Path) -> Result<()> {
    process::run(
        workspace
            .command(buf)
            .args(["generate", "proto", "--clean", "--template", TEMPLATE])
            .arg("--output")
            .arg(out)
            .env("PATH", path_with(go)?),
    )
}

fn check_generated(workspace: &Workspace, may_install: bool, go: &Path) -> Result<Outcome> {
    let buf = match tools::buf(workspace, may_install) {
        Ok(buf) => buf,
        Err(error) if !may_install && !process::in_ci() => return Ok(Outcome::NotRun(format!("{error:#}"))),
        Err(error) => return Err(error),
    };
    let anew = workspace.target("tools/go-generated");
    generate_into(workspace, &buf, go, &anew)?;
    ensure!(
        files(&anew.join("gen"))? == files(&workspace.path(GENERATED))?,
        "{GENERATED} is not what the protos say: `cargo xtask proto` generates it"
    );
    Ok(Outcome::Done)
}

/// Go runs the plugins of buf, so it has to be found.
fn path_with(go: &Path) -> Result<OsString> {
    let beside = go.parent().map(PathBuf::from);
    let known = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(
        beside.into_iter().chain(env::split_paths(&known)),
    )?)
}

fn command(workspace: &Workspace, go: &Path, module: &str) -> Command {
    let mut command = workspace.command(go);
    command.current_dir(workspace.path(module));
    command
}

/// All files below a directory.
fn files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.insert(path.strip_prefix(directory)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}
