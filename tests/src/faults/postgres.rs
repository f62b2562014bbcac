//! A PostgreSQL server of a test's own, which it may stop, kill, back up, restore and fail over. Its address stays the
//! same, wherever the server behind it is.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use emend_base::{Entropy, testing::skipped};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::{
    process::{Child, Command},
    time::sleep,
};

use crate::harness::{
    Gateway,
    process::{free_port, run},
    wait::PATIENCE,
};

const SUPERUSER: &str = "emend";
const DATABASE: &str = "postgres";
/// Pause between two checks whether it answers.
const POLL: Duration = Duration::from_millis(50);

/// A server, running or not. Dropping it removes it.
#[derive(Debug)]
pub struct Server {
    installed: Installed,
    directory: Directory,
    password: String,
    /// Where clients and standbys reach it.
    road: Gateway,
    address: Option<SocketAddr>,
    child: Option<Child>,
}

/// PostgreSQL's programs, and the account that they run under: they refuse to run as root.
#[derive(Debug, Clone)]
struct Installed {
    programs: PathBuf,
    account: Option<(u32, u32)>,
}

/// A directory owned by that account; removed when dropped.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // Children of a killed server may still write here; what they leave goes with the test machine at the latest.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A copy of a server's files at one moment.
#[derive(Debug)]
pub struct Backup(Directory);

impl Server {
    /// A new server with an empty database; `None` if PostgreSQL's programs are missing, after one line of output that
    /// says so.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start() -> Option<Self> {
        let Some(installed) = Installed::find() else {
            skipped("PostgreSQL's server programs (initdb, postgres, pg_basebackup) are not installed");
            return None;
        };
        let directory = installed.directory().await;
        let password = Entropy::system().uuid_v4().simple().to_string();
        let file = directory.0.join("password");
        installed.write(&file, &password);
        let mut initdb = installed.command("initdb");
        initdb
            .arg("--pgdata")
            .arg(directory.data())
            .arg("--pwfile")
            .arg(&file)
            .args([
                "--username",
                SUPERUSER,
                // On the loopback only, so the cheapest method will do.
                "--auth=password",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ]);
        run("initdb", initdb).await.expect("a cluster can be made");
        let mut server = Self {
            installed,
            directory,
            password,
            road: Gateway::open().await,
            address: None,
            child: None,
        };
        server.start_again().await;
        Some(server)
    }

    /// Its database's URL, as `--database-url` takes it.
    pub fn url(&self) -> String {
        format!(
            "postgres://{SUPERUSER}:{}@{}/{DATABASE}",
            self.password,
            self.road.address()
        )
    }

    /// Starts it after a stop or a kill, and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub async fn start_again(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
            let mut postgres = self.installed.command("postgres");
            postgres
                .arg("-D")
                .arg(self.directory.data())
                .args(["-p", &address.port().to_string()]);
            for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories="] {
                postgres.args(["-c", setting]);
            }
            let log = fs::File::create(self.directory.log()).expect("a log");
            postgres
                .stdin(Stdio::null())
                .stderr(log)
                .stdout(Stdio::null())
                .kill_on_drop(true);
            let mut child = postgres.spawn().expect("postgres can be started");
            if self.answers(&mut child, address).await {
                self.child = Some(child);
                self.address = Some(address);
                self.road.lead_to(address);
                return;
            }
            // Another process took the port first, or children of a killed server are still running.
            assert!(
                tokio::time::Instant::now() < deadline,
                "postgres does not start: {}",
                fs::read_to_string(self.directory.log()).unwrap_or_default()
            );
        }
    }

    /// Waits until it accepts connections; false if it ends first.
    async fn answers(&self, child: &mut Child, address: SocketAddr) -> bool {
        loop {
            if let Ok(connection) = self.options(address).connect().await {
                let _ = connection.close().await;
                return true;
            }
            if child
                .try_wait()
                .expect("the system knows its processes")
                .is_some()
            {
                return false;
            }
            sleep(POLL).await;
        }
    }

    /// Stops it like an operator who does not wait for clients: transactions are rolled back, connections end.
    pub async fn stop(&mut self) {
        let mut child = self.child.take().expect("it runs");
        let mut stop = self.installed.command("pg_ctl");
        stop.args(["stop", "--mode=fast", "--wait", "--silent", "--pgdata"])
            .arg(self.directory.data());
        run("pg_ctl stop", stop).await.expect("the server stops");
        child.wait().await.expect("the server has ended");
        self.road.close();
    }

    /// Kills it without warning.
    pub async fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().await.expect("a running process can be killed");
        self.road.close();
    }

    /// Makes it unreachable while it runs, as a network partition does.
    pub fn cut_off(&self) {
        self.road.close();
    }

    /// The gateway through which everything reaches it.
    pub fn road(&self) -> &Gateway {
        &self.road
    }

    /// A connection that bypasses the gateway.
    ///
    /// # Panics
    /// If it can't be made.
    pub async fn connect(&self) -> PgConnection {
        let address = self.address.expect("it was started");
        self.options(address).connect().await.expect("the server answers")
    }

    fn options(&self, address: SocketAddr) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host(&address.ip().to_string())
            .port(address.port())
            .username(SUPERUSER)
            .password(&self.password)
            .database(DATABASE)
    }

    /// Copies its files while it is running.
    ///
    /// # Panics
    /// If they can't be copied.
    pub async fn back_up(&self) -> Backup {
        let directory = self.installed.directory().await;
        self.base_backup(&directory, self.address.expect("it runs"), &[])
            .await;
        Backup(directory)
    }

    /// Replaces its files with a backup. It must be stopped.
    ///
    /// # Panics
    /// If it is running, or the files can't be copied.
    pub async fn restore(&mut self, backup: &Backup) {
        assert!(self.child.is_none(), "it runs");
        fs::remove_dir_all(self.directory.data()).expect("old files can be removed");
        let mut copy = self.installed.account_command("cp");
        copy.arg("-a").arg(backup.0.data()).arg(self.directory.data());
        run("cp", copy).await.expect("files can be copied");
    }

    /// A standby that follows this server through `road`.
    pub async fn standby(&self, road: &Gateway) -> Self {
        road.lead_to(self.address.expect("it runs"));
        let directory = self.installed.directory().await;
        self.base_backup(&directory, road.address(), &["--write-recovery-conf"])
            .await;
        let mut standby = Self {
            installed: self.installed.clone(),
            directory,
            password: self.password.clone(),
            road: Gateway::open().await,
            address: None,
            child: None,
        };
        standby.start_again().await;
        standby
    }

    /// Waits until `standby` has everything that is committed here now.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn is_followed_by(&self, standby: &Self) {
        let mut here = self.connect().await;
        let written: String = sqlx::query_scalar("SELECT pg_current_wal_flush_lsn()::text")
            .fetch_one(&mut here)
            .await
            .expect("a place in the log");
        crate::harness::eventually("the standby has it", || async {
            let mut there = standby.connect().await;
            let has: bool = sqlx::query_scalar("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn")
                .bind(&written)
                .fetch_one(&mut there)
                .await
                .map_err(|error| error.to_string())?;
            crate::harness::wait::holds(has, || format!("not at {written} yet"))
        })
        .await;
    }

    /// Makes a standby the server behind `self`'s address; `self` ends for good.
    ///
    /// # Panics
    /// If it does not take over.
    pub async fn promote(&mut self, standby: Self) {
        let mut connection = standby.connect().await;
        let promoted: bool = sqlx::query_scalar("SELECT pg_promote(true, 60)")
            .fetch_one(&mut connection)
            .await
            .expect("a standby can be asked");
        assert!(promoted, "it takes over");
        let road = std::mem::replace(&mut self.road, Gateway::open().await);
        *self = Self { road, ..standby };
        self.road.lead_to(self.address.expect("it runs"));
    }

    async fn base_backup(&self, to: &Directory, from: SocketAddr, more: &[&str]) {
        let mut backup = self.installed.command("pg_basebackup");
        backup
            .env("PGPASSWORD", &self.password)
            .args([
                "--host",
                &from.ip().to_string(),
                "--port",
                &from.port().to_string(),
            ])
            .args([
                "--username",
                SUPERUSER,
                "--checkpoint=fast",
                "--wal-method=stream",
                "--no-sync",
            ])
            .args(more)
            .arg("--pgdata")
            .arg(to.data());
        run("pg_basebackup", backup).await.expect("a backup can be made");
    }
}

impl Directory {
    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }
}

impl Installed {
    /// The newest version installed.
    fn find() -> Option<Self> {
        let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
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
        versions.sort();
        let on_the_path = std::env::var_os("PATH").unwrap_or_default();
        let on_the_path: Vec<PathBuf> = std::env::split_paths(&on_the_path).collect();
        let programs = versions
            .into_iter()
            .rev()
            .map(|(_, path)| path)
            .chain(on_the_path)
            .find(|path| {
                ["initdb", "postgres", "pg_ctl", "pg_basebackup"]
                    .iter()
                    .all(|program| path.join(program).is_file())
            })?;
        // The owner of a file that this process creates shows its user.
        let is_root = tempfile::tempfile()
            .and_then(|file| file.metadata())
            .is_ok_and(|file| file.uid() == 0);
        let account = if is_root { Some(account()?) } else { None };
        Some(Self { programs, account })
    }

    fn command(&self, program: &str) -> Command {
        self.account_command(self.programs.join(program))
    }

    fn account_command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir("/");
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
    }

    async fn directory(&self) -> Directory {
        let mut mktemp = self.account_command("mktemp");
        mktemp.args(["--directory", "--tmpdir", "emend-postgres.XXXXXX"]);
        let made = run("mktemp", mktemp).await.expect("a directory");
        Directory(made.trim_end().into())
    }

    fn write(&self, file: &Path, text: &str) {
        fs::write(file, text).expect("a file can be written");
        if let Some((user, group)) = self.account {
            chown(file, Some(user), Some(group)).expect("root may give files away");
        }
    }
}

/// The user and group of an account that exists for servers, from passwd(5).
fn account() -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    ["postgres", "nobody"].iter().find_map(|name| {
        let line = accounts
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
    })
}
