//! The supervisor process of a temporary PostgreSQL cluster: creates the cluster, prints its URL on standard output and
//! keeps it until standard input ends. The pipe closes when the parent ends, however it ends (an interrupt, a kill), so
//! no server or directory is left behind.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::TcpListener,
    os::unix::{
        fs::{OpenOptionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{debian, process};

const SUPERUSER: &str = "emend";
const POLL: Duration = Duration::from_millis(100);
/// A file system in memory. Tests create and drop hundreds of databases of hundreds of files, for which ext4 takes longer than
/// all of them for their queries.
const MEMORY: &str = "/dev/shm";
/// What a cluster may need, in KiB.
const ROOM: u64 = 4 * 1024 * 1024;
/// In units of [`POLL`].
const START_POLLS: u32 = 600;

/// Creates a cluster with the programs in `bin_dir`, prints its URL as one line, and removes it when standard input
/// ends.
pub(crate) fn supervise(bin_dir: &Path) -> Result<()> {
    let owner = Owner::choose()?;
    let cluster = Cluster::initialise(bin_dir, owner)?;
    let (_server, url) = cluster.start()?;
    writeln!(io::stdout(), "{url}")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// The account that PostgreSQL runs under: it refuses to run as root.
#[derive(Clone, Copy)]
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn choose() -> Result<Self> {
        if !debian::is_root() {
            return Ok(Self(None));
        }
        let accounts = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let ids = ["postgres", "nobody"]
            .iter()
            .find_map(|name| account(&accounts, name));
        Ok(Self(Some(ids.context(
            "PostgreSQL does not run as root, and there is no account postgres or nobody",
        )?)))
    }

    fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        // Its own process group: an interrupt at the terminal must not reach it.
        command.current_dir("/").stdin(Stdio::null()).process_group(0);
        if let Some((uid, gid)) = self.0 {
            command.uid(uid).gid(gid);
        }
        command
    }
}

/// The (uid, gid) of an account in passwd(5) format.
fn account(accounts: &str, name: &str) -> Option<(u32, u32)> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// A cluster's directory; removed when dropped.
struct Cluster {
    bin_dir: PathBuf,
    owner: Owner,
    directory: PathBuf,
    password: String,
}

impl Cluster {
    fn initialise(bin_dir: &Path, owner: Owner) -> Result<Self> {
        let cluster = Self {
            bin_dir: bin_dir.to_owned(),
            owner,
            directory: new_directory(owner)?,
            password: random_hex()?,
        };
        let password_file = cluster.directory.join("password");
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&password_file)?
            .write_all(cluster.password.as_bytes())?;
        if let Some((uid, gid)) = owner.0 {
            chown(&password_file, Some(uid), Some(gid))?;
        }
        let mut initdb = owner.command(bin_dir.join("initdb"));
        initdb
            .arg("--pgdata")
            .arg(cluster.data())
            .arg("--pwfile")
            .arg(&password_file)
            .args([
                "--username",
                SUPERUSER,
                // Loopback only, so the cheapest authentication suffices.
                "--auth=password",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ]);
        process::output(&mut initdb)?;
        Ok(cluster)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Starts the server, waits until it answers, and returns its URL.
    fn start(&self) -> Result<(Server, String)> {
        let port = free_port()?.to_string();
        let log = File::create(self.log())?;
        let mut postgres = self.owner.command(self.bin_dir.join("postgres"));
        postgres
            .arg("-D")
            .arg(self.data())
            .args(["-p", &port])
            .stdout(log.try_clone()?)
            .stderr(log);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=300",
            // No test cuts the power: what a killed process wrote is still there. Else each database that is created or
            // dropped would wait for the disk.
            "fsync=off",
            "full_page_writes=off",
            "max_wal_size=1GB",
            // The queries are short; to compile them takes longer.
            "jit=off",
        ] {
            postgres.args(["-c", setting]);
        }
        let child = postgres.spawn().context("cannot start postgres")?;
        let mut server = Server {
            child,
            pg_ctl: self.bin_dir.join("pg_ctl"),
            data: self.data(),
            owner: self.owner,
        };

        for _ in 0..START_POLLS {
            let mut is_ready = self.owner.command(self.bin_dir.join("pg_isready"));
            is_ready.args(["--quiet", "--host", "127.0.0.1", "--port", &port]);
            if is_ready.status()?.success() {
                return Ok((
                    server,
                    format!(
                        "postgres://{SUPERUSER}:{}@127.0.0.1:{port}/postgres",
                        self.password
                    ),
                ));
            }
            if let Some(status) = server.child.try_wait()? {
                bail!(
                    "postgres ended ({status}): {}",
                    fs::read_to_string(self.log()).unwrap_or_default()
                );
            }
            thread::sleep(POLL);
        }
        bail!(
            "postgres does not answer: {}",
            fs::read_to_string(self.log()).unwrap_or_default()
        )
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("cannot remove {}: {error}", self.directory.display());
        }
    }
}

/// A running server; stopped when dropped.
struct Server {
    child: Child,
    pg_ctl: PathBuf,
    data: PathBuf,
    owner: Owner,
}

impl Drop for Server {
    fn drop(&mut self) {
        // This cluster will not be read again, so no checkpoint is needed.
        let mut stop = self.owner.command(&self.pg_ctl);
        stop.args(["stop", "--silent", "--mode=immediate", "--pgdata"])
            .arg(&self.data);
        if !stop.status().is_ok_and(|status| status.success()) {
            // Its children notice and end, too. Killing fails only if it has already ended.
            drop(self.child.kill());
        }
        if let Err(error) = self.child.wait() {
            eprintln!("cannot wait for postgres: {error}");
        }
    }
}

/// A directory owned by `owner`, in the first location that the account can access.
fn new_directory(owner: Owner) -> Result<PathBuf> {
    let mut errors = Vec::new();
    let parents = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    let in_memory = has_room(MEMORY).then(|| PathBuf::from(MEMORY));
    for parent in in_memory.into_iter().chain(parents) {
        let mut mktemp = owner.command("mktemp");
        mktemp.arg("-d").arg(parent.join("emend-postgres.XXXXXX"));
        match process::output(&mut mktemp) {
            Ok(path) => return Ok(path.trim_end().into()),
            Err(error) => errors.push(format!("{error:#}")),
        }
    }
    bail!("no directory for PostgreSQL: {}", errors.join("; "))
}

/// Whether a cluster with all that tests store fits there.
fn has_room(directory: &str) -> bool {
    let printed = process::output(Command::new("df").args(["-P", "-k", directory]));
    printed.is_ok_and(|printed| available(&printed).is_some_and(|kib| kib >= ROOM))
}

/// The KiB available on a file system, as `df -P -k` prints them.
fn available(printed: &str) -> Option<u64> {
    printed.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

/// A port that is free now; nothing else on this machine is expected to take it before PostgreSQL does.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn random_hex() -> Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::{account, available};

    #[test]
    fn what_is_available_is_read_from_dfs_table() {
        let printed = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                       tmpfs 24682608 1024 24681584 1% /dev/shm\n";
        assert_eq!(available(printed), Some(24_681_584));
        assert_eq!(available("df: nothing there"), None);
    }

    #[test]
    fn an_accounts_ids_are_read_from_its_own_line() {
        let accounts =
            "root:x:0:0:root:/root:/bin/bash\npostgres:x:104:111:,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(account(accounts, "postgres"), Some((104, 111)));
        assert_eq!(account(accounts, "postgre"), None);
        assert_eq!(account("postgres:x", "postgres"), None);
    }
}
