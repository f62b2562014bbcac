//! Runs other programs from the workspace's root.

use std::{
    env,
    ffi::OsStr,
    io::{self, BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// The checkout that this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds it through cargo's environment; the target directory follows `CARGO_TARGET_DIR`.
    pub(crate) fn locate() -> Self {
        let manifest_dir =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest_dir)
            .parent()
            .unwrap_or(Path::new("."))
            .to_owned();
        let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        Self { root, target }
    }

    /// A file of the checkout.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// A file under the target directory.
    pub(crate) fn target(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.target.join(relative)
    }

    /// A command that runs at the root, without input.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        // Remove what `cargo run` sets for this program: some build scripts rerun if it differs from a plain `cargo
        // test`.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let about_this_package = name.starts_with("CARGO_PKG_")
                || [
                    "CARGO_MANIFEST_DIR",
                    "CARGO_MANIFEST_PATH",
                    "CARGO_BIN_NAME",
                    "CARGO_CRATE_NAME",
                ]
                .contains(&&*name);
            if about_this_package {
                command.env_remove(name);
            }
        }
        command
    }

    /// A cargo command.
    pub(crate) fn cargo<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments);
        command
    }
}

/// Whether this is a CI run, where nothing may be skipped.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Prints the command and runs it with its output streamed; fails unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", line(command));
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", line(command));
    }
    Ok(())
}

/// The same, and `hear` gets each line of its standard output.
pub(crate) fn run_heard(command: &mut Command, mut hear: impl FnMut(&str)) -> Result<()> {
    eprintln!("$ {}", line(command));
    let cannot_run = format!("cannot run {}", line(command));
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| cannot_run.clone())?;
    let mut lines = BufReader::new(child.stdout.take().context("it is piped")?);
    let mut listen = || -> io::Result<()> {
        let mut bytes = Vec::new();
        while lines.read_until(b'\n', &mut bytes)? > 0 {
            io::stdout().write_all(&bytes)?;
            hear(String::from_utf8_lossy(&bytes).trim_end());
            bytes.clear();
        }
        Ok(())
    };
    let heard = listen();
    // Whoever can't be heard any more does not go on unheard.
    drop(lines);
    let status = child.wait().context(cannot_run)?;
    heard?;
    if !status.success() {
        bail!("{} failed: {status}", line(command));
    }
    Ok(())
}

/// The command's standard output; fails with its standard error unless it exits with 0.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", line(command)))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            line(command),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} printed no UTF-8", line(command)))
}

/// Finds a program in `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
