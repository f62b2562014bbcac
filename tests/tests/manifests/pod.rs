//! A pod without a cluster: the program alone in a file system of its own, with what the manifest mounts and nothing
//! else, read-only except for its volumes, and with the manifest's user.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
};

use emend_base::testing::skipped;
use emend_tests::harness::process::{Process, binary};
use tempfile::TempDir;

use crate::objects::{Objects, Workload, list, secret_name, secrets_of, text};

/// Run as root: makes the root read-only and the volumes writable, if mounting is allowed, then changes root and user.
/// `$1`: the root, `$2`: the user, `$3`: the group that files are given, `$4`: the writable directories, then the
/// command.
const ENTER: &str = r#"
set -e
root=$1 user=$2 group=$3 writable=$4
shift 4
if [ -n "$MOUNTS" ]; then
    mount --bind "$root" "$root"
    mount -o remount,bind,ro "$root"
    for directory in $writable; do
        mount --bind "$root$directory" "$root$directory"
        mount -o remount,bind,rw "$root$directory"
    done
    mount --bind /proc "$root/proc"
fi
unset MOUNTS
exec chroot --userspec="$user:$user" --groups="$group" "$root" "$@"
"#;

/// The environment in which a pod's container is started.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) workload: Workload,
    root: TempDir,
    user: String,
    /// The group of the Secrets' files.
    group: String,
    writable: Vec<String>,
    mounts: bool,
}

/// In place of a Secret's name: a token of the pod's service account, whose key is its audience.
pub(crate) const SERVICE_ACCOUNT_TOKEN: &str = "a service account's token";

impl Pod {
    /// Makes its file system; `secrets` are the Secrets' values by (Secret, key), and those of what else is projected. `None` without the necessary rights,
    /// after one line of output that says so.
    pub(crate) async fn make(
        objects: &Objects,
        workload: &Workload,
        secrets: &BTreeMap<(&str, &str), String>,
    ) -> Option<Self> {
        let can = |program: &str, args: &[&str]| {
            Command::new(program)
                .args(args)
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !can("chroot", &["/", "true"]) {
            skipped("a pod's file system is of root's making, and this is somebody else");
            return None;
        }
        let user = text(&workload.pod, "/securityContext/runAsUser");
        // On the program's file system, so that the program need not be copied.
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let mut pod = Self {
            workload: workload.clone(),
            root,
            user,
            group: text(&workload.pod, "/securityContext/fsGroup"),
            writable: Vec::new(),
            mounts: can("unshare", &["--mount", "true"]),
        };
        pod.install(&binary(&workload.program()).await);
        pod.mount(objects, secrets);
        Some(pod)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// Puts in the program and the libraries that it is linked with, as in a distroless image.
    fn install(&self, program: &Path) {
        let linked = Command::new("ldd").arg(program).output().expect("ldd runs");
        let linked = String::from_utf8(linked.stdout).expect("text");
        let libraries = linked
            .lines()
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        for library in libraries {
            self.put(Path::new(library), library);
        }
        let name = program
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        self.put(program, &format!("/usr/local/bin/{name}"));
        fs::create_dir_all(self.at("/proc")).expect("a directory");
    }

    fn put(&self, from: &Path, to: &str) {
        let to = self.at(to);
        fs::create_dir_all(to.parent().expect("below the root")).expect("a directory");
        // A link to a symbolic link would lead nowhere.
        let from = from.canonicalize().expect("it is there");
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).expect("it can be copied");
        }
    }

    /// Puts its volumes in place.
    fn mount(&mut self, objects: &Objects, secrets: &BTreeMap<(&str, &str), String>) {
        let mut mounts: Vec<_> = list(self.workload.container(), "/volumeMounts").to_vec();
        mounts.sort_by_key(|mount| text(mount, "/mountPath"));
        for mount in mounts {
            let (name, path) = (text(&mount, "/name"), text(&mount, "/mountPath"));
            let at = self.at(&path);
            fs::create_dir_all(&at).expect("a directory");
            if self.workload.claims.contains(&name) {
                let user = self.user.parse().expect("a number");
                chown(&at, Some(user), Some(user)).expect("root may");
                self.writable.push(path);
                continue;
            }
            let volumes = list(&self.workload.pod, "/volumes");
            let volume = volumes
                .iter()
                .find(|volume| text(volume, "/name") == name)
                .unwrap_or_else(|| panic!("{}: there is no volume {name}", self.workload.name));
            let config = text(volume, "/configMap/name");
            if let Some(config) = objects.named("ConfigMap", &config) {
                for (file, content) in crate::objects::texts(config, "/data") {
                    fs::write(at.join(file), content).expect("a file");
                }
            }
            let mode = ["/secret/defaultMode", "/projected/defaultMode"].map(|pointer| text(volume, pointer));
            for source in list(volume, "/projected/sources") {
                let given = |what: (&str, &str), to: &str| {
                    let content = secrets
                        .get(&what)
                        .unwrap_or_else(|| panic!("nobody gives {what:?}"));
                    self.keep(&mode.concat(), &at.join(to), content);
                };
                if let Some(token) = source.get("serviceAccountToken") {
                    let audience = text(token, "/audience");
                    given((SERVICE_ACCOUNT_TOKEN, &audience), &text(token, "/path"));
                }
                if let Some(config) = source.get("configMap") {
                    let name = text(config, "/name");
                    for item in list(config, "/items") {
                        given((&name, &text(item, "/key")), &text(item, "/path"));
                    }
                }
            }
            for secret in secrets_of(volume) {
                let name = secret_name(secret);
                let items = list(secret, "/items");
                for item in items {
                    let key = text(item, "/key");
                    match secrets.get(&(&name, &key)) {
                        Some(value) => self.keep(&mode.concat(), &at.join(text(item, "/path")), value),
                        None => assert_eq!(
                            text(secret, "/optional"),
                            "true",
                            "the Secret {name} has no {key}"
                        ),
                    }
                }
                // Without a list of items, all keys become files.
                let all = secrets.iter().filter(|((secret, _), _)| *secret == name);
                for ((_, key), value) in all.filter(|_| items.is_empty()) {
                    self.keep(&mode.concat(), &at.join(key), value);
                }
            }
        }
    }

    /// Writes a file of a Secret, with the mode and group that the volume and the pod specify.
    fn keep(&self, mode: &str, at: &Path, content: &str) {
        fs::write(at, content).expect("a file");
        let mode = mode.parse().expect("a mode");
        fs::set_permissions(at, fs::Permissions::from_mode(mode)).expect("it is ours");
        let group = self.group.parse().expect("a number");
        chown(at, Some(0), Some(group)).expect("root may");
    }

    /// Writes one more file, readable by everybody in the pod.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("below the root")).expect("a directory");
        fs::write(at, content).expect("a file");
    }

    /// Sets the names that it can resolve, in the form of `/etc/hosts`; no others are resolved.
    pub(crate) fn resolve(&self, hosts: &str) {
        self.write("/etc/hosts", hosts);
        self.write("/etc/nsswitch.conf", "hosts: files\n");
    }

    /// The container's own command line, with more flags, and with variables that override the manifest's.
    fn command(&self, more: &[&str], variables: &[(&str, &str)]) -> tokio::process::Command {
        let mut command = if self.mounts {
            let mut command = tokio::process::Command::new("unshare");
            command.args(["--mount", "sh"]);
            command
        } else {
            tokio::process::Command::new("sh")
        };
        command.args(["-c", ENTER, "sh"]).arg(self.root.path());
        command.args([&self.user, &self.group, &self.writable.join(" ")]);
        command.arg(format!("/usr/local/bin/{}", self.workload.program()));
        command.args(self.workload.args()).args(more);
        command.env_clear().env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        if self.mounts {
            command.env("MOUNTS", "1");
        }
        command
            .envs(self.workload.environment())
            .envs(variables.iter().copied());
        command
    }

    /// Starts it.
    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> Process {
        Process::spawn(&self.workload.name, self.command(&[], variables))
    }

    /// Runs it to its end; answers with its exit code, standard output and standard error.
    pub(crate) async fn run(
        &self,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> (Option<i32>, String, String) {
        let output = self.command(more, variables).output().await.expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}
