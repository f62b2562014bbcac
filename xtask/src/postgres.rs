//! The PostgreSQL server for tests: the one named by `EMEND_TEST_POSTGRES_URL`, else a temporary one of our own.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{debian, process};

/// The variable with the URL of a server on which tests may create databases.
pub(crate) const URL_VARIABLE: &str = "EMEND_TEST_POSTGRES_URL";

/// A server for tests. One that we started ends when this is dropped, and also when this process is killed.
pub(crate) struct TestServer {
    url: String,
    keeper: Option<Child>,
}

impl TestServer {
    /// Uses the server named in the environment; otherwise starts one, installing PostgreSQL first if needed.
    pub(crate) fn provide(may_install: bool) -> Result<Self> {
        if let Ok(url) = env::var(URL_VARIABLE) {
            eprintln!("using {URL_VARIABLE}");
            return Ok(Self { url, keeper: None });
        }
        if find_bin_dir().is_none() {
            debian::install(&["postgresql"], may_install)
                .context("PostgreSQL's server programs are missing")?;
        }
        let bin_dir =
            find_bin_dir().context("PostgreSQL was installed, but its programs are nowhere to be found")?;
        eprintln!("starting a throw-away cluster with {}", bin_dir.display());
        // This program, even if a build has replaced its file meanwhile.
        let own = Path::new("/proc/self/exe");
        let own = if own.exists() {
            own.to_owned()
        } else {
            env::current_exe()?
        };
        let mut keeper = Command::new(own);
        keeper.args(["supervise-postgres", "--bin-dir"]).arg(bin_dir);
        // Outside the terminal's process group, so that it can clean up after an interrupt.
        let mut keeper = keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let said = keeper.stdout.take().context("invariant: its output is piped")?;
        let mut server = Self {
            url: String::new(),
            keeper: Some(keeper),
        };
        BufReader::new(said).read_line(&mut server.url)?;
        server.url.truncate(server.url.trim_end().len());
        if server.url.is_empty() {
            bail!("PostgreSQL did not start; see above");
        }
        Ok(server)
    }

    /// The URL for the tests.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        drop(keeper.stdin.take());
        if let Err(error) = keeper.wait() {
            eprintln!("cannot wait for PostgreSQL's keeper: {error}");
        }
    }
}

/// `cargo xtask postgres`.
pub(crate) fn keep(may_install: bool) -> Result<()> {
    let server = TestServer::provide(may_install)?;
    println!("{}", server.url());
    loop {
        std::thread::park();
    }
}

/// The newest installation that has the programs a cluster needs.
fn find_bin_dir() -> Option<PathBuf> {
    let printed = process::output(Command::new("pg_config").arg("--bindir"))
        .ok()
        .map(|dir| PathBuf::from(dir.trim()));
    let mut of_debian: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    of_debian.sort();
    let newest_first = of_debian.into_iter().rev().map(|(_, dir)| dir);
    printed.into_iter().chain(newest_first).find(|dir| {
        ["initdb", "postgres", "pg_ctl", "pg_isready"]
            .iter()
            .all(|program| dir.join(program).is_file())
    })
}
