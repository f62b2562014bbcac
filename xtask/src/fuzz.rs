//! `cargo xtask fuzz`: the long run of the fuzz targets, guided by code coverage.
//!
//! libFuzzer comes with the crate `libfuzzer-sys` and is fed by the compiler's coverage pass, which stable toolchains
//! have, too. Only the sanitizers need nightly; they find memory errors, and there is no unsafe code here. Needs a C++
//! compiler, which nothing else does.

use std::{ffi::OsString, fs};

use anyhow::{Context as _, Result, bail};

use crate::process::{self, Workspace};

/// Makes the compiler count the edges taken and report comparisons to libFuzzer, and sets the cfg by which crates know
/// that they are being fuzzed.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Runs one target, or all of them in turn, for `seconds` each.
pub(crate) fn fuzz(workspace: &Workspace, target: Option<&str>, seconds: u32) -> Result<()> {
    let targets = targets(workspace)?;
    let chosen = match target {
        None => targets,
        Some(name) if targets.iter().any(|target| target == name) => vec![name.to_owned()],
        Some(name) => bail!("there is no target {name}; there are {}", targets.join(", ")),
    };
    let host = host(workspace)?;
    build(workspace, &host)?;
    let program = workspace.target(format!("{host}/fuzz/guided"));
    let found = workspace.target("fuzz-found");
    let mut failed = Vec::new();
    for name in chosen {
        let grown = workspace.target(format!("fuzz-corpus/{name}"));
        fs::create_dir_all(&grown)?;
        fs::create_dir_all(&found)?;
        let mut artifacts = OsString::from("-artifact_prefix=");
        artifacts.push(found.join(format!("{name}-")));
        let run = process::run(
            workspace
                .command(&program)
                .env("EMEND_FUZZ_TARGET", &name)
                .arg(format!("-max_total_time={seconds}"))
                .args(["-max_len=16384", "-timeout=20", "-rss_limit_mb=2048"])
                .args(["-print_final_stats=1", "-verbosity=1"])
                .arg(artifacts)
                .arg(&grown)
                .arg(workspace.path(format!("fuzz/corpus/{name}"))),
        );
        if let Err(error) = run {
            eprintln!("error: {name}: {error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!(
            "found something in {}: the inputs are in {}",
            failed.join(", "),
            found.display()
        );
    }
    Ok(())
}

/// Targets are named like their directories in the corpus; a test enforces it.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let mut names = fs::read_dir(workspace.path("fuzz/corpus"))
        .context("fuzz/corpus")?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// The host platform of this toolchain. Naming it to cargo keeps the flags away from build scripts.
fn host(workspace: &Workspace) -> Result<String> {
    let version = process::output(workspace.command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}

fn build(workspace: &Workspace, host: &str) -> Result<()> {
    let build = ["build", "--locked", "--profile=fuzz", "--package=emend-fuzz"];
    let what = ["--bin=guided", "--features=guided"];
    process::run(
        workspace
            .cargo(build)
            .args(what)
            .arg(format!("--target={host}"))
            .env("RUSTFLAGS", COVERAGE),
    )
    .context("the guided run takes a C++ compiler: apt install g++")
}
