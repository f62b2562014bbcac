//! What every image has beneath its program: the loader and the libraries that programs here are linked to, certificates
//! of public CAs, and the user they run as. It is taken from this machine, with the names, versions and licences of the
//! Debian packages it belongs to, where scanners look for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use lddtree::DependencyAnalyzer;

use super::layers::Tree;
use crate::process;

/// Who programs run as: what distroless images call `nonroot`.
pub(super) const USER: u64 = 65532;
/// Where the certificates are in an image.
pub(super) const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Where they are on machines: on Debian and Arch, and on Fedora.
const BUNDLES: [&str; 2] = [CERTIFICATES, "/etc/pki/tls/certs/ca-bundle.crt"];

/// Where loaders look by themselves, directly or in a directory of the platform.
const USUAL: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// The files, and where they come from.
pub(super) struct Runtime {
    pub(super) tree: Tree,
    /// What was taken from this machine, by its path in the tree, and the packages of that.
    pub(super) taken: BTreeMap<String, Option<Package>>,
}

/// A Debian package of this machine.
#[derive(Clone)]
pub(super) struct Package {
    name: String,
    version: String,
    architecture: String,
    distribution: String,
}

impl Runtime {
    /// What these programs need.
    pub(super) fn of(programs: &[PathBuf]) -> Result<Self> {
        let mut tree = Tree::default();
        let mut taken = BTreeMap::new();
        for path in needed(programs)? {
            tree.file(&path, fs::read(&path).with_context(|| path.clone())?, 0o755);
            taken.insert(within(&path), Package::with(&path));
        }
        let bundle = BUNDLES.iter().find(|path| Path::new(path).is_file());
        let bundle = bundle.context("there is no bundle of CAs: install ca-certificates")?;
        tree.file(CERTIFICATES, fs::read(bundle)?, 0o644);
        // The bundle is put together when the package is installed: it is in no list of files.
        taken.insert(within(CERTIFICATES), Package::named("ca-certificates"));
        for package in taken.values().flatten() {
            package.describe(&mut tree)?;
        }
        if let Ok(release) = fs::read("/etc/os-release") {
            tree.file("/etc/os-release", release, 0o644);
        }
        add_user(&mut tree);
        Ok(Self { tree, taken })
    }
}

/// A path as trees have it.
fn within(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

/// Users, and the directories of theirs that programs may write to. glibc 2.34 and newer looks up names by files and DNS
/// without any further library.
fn add_user(tree: &mut Tree) {
    let user = format!("nonroot:x:{USER}:{USER}:nonroot:/home/nonroot:/sbin/nologin");
    let mut file = |path: &str, text: String| tree.file(path, text.into_bytes(), 0o644);
    file(
        "/etc/passwd",
        format!("root:x:0:0:root:/root:/sbin/nologin\n{user}\n"),
    );
    file("/etc/group", format!("root:x:0:\nnonroot:x:{USER}:\n"));
    file(
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
    );
    tree.directory("/home/nonroot", 0o700, USER);
    tree.directory("/tmp", 0o1777, 0);
}

/// The loader and the libraries, as the loader will look for them.
fn needed(programs: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for program in programs {
        let shown = program.display();
        let tree = DependencyAnalyzer::new("/".into())
            .analyze(program)
            .with_context(|| shown.to_string())?;
        let Some(loader) = tree.interpreter else { continue };
        for library in tree.libraries.values() {
            ensure!(library.found(), "{shown} needs {}", library.name);
            if loader.ends_with(&format!("/{}", library.name)) {
                continue;
            }
            // An image has no cache that would say where other libraries are.
            let usual = USUAL.iter().any(|directory| library.path.starts_with(directory));
            let path = library.path.display().to_string();
            ensure!(usual, "{shown} needs {path}, where no loader looks by itself");
            paths.insert(path);
        }
        paths.insert(loader);
    }
    Ok(paths)
}

impl Package {
    /// The package that a file belongs to; `None` if there is none, or this is not Debian.
    fn with(path: &str) -> Option<Self> {
        // Lists of files name them as they were before /lib became a link to /usr/lib.
        let real = fs::canonicalize(path).ok()?.display().to_string();
        let before = real.strip_prefix("/usr").unwrap_or(&real).to_owned();
        [path.to_owned(), real, before].iter().find_map(|path| {
            let found = process::output(Command::new("dpkg-query").args(["--search", path])).ok()?;
            let (name, _) = found.lines().next()?.split_once(": ")?;
            Self::named(name)
        })
    }

    fn named(name: &str) -> Option<Self> {
        let format = "--showformat=${Package}\t${Version}\t${Architecture}";
        let shown = process::output(Command::new("dpkg-query").args(["--show", format, name])).ok()?;
        let mut columns = shown.split('\t').map(str::to_owned);
        Some(Self {
            name: columns.next()?,
            version: columns.next()?,
            architecture: columns.next()?,
            distribution: distribution()?,
        })
    }

    /// Its purl (package URL).
    pub(super) fn url(&self) -> String {
        let version = self.version.replace('+', "%2B").replace(':', "%3A");
        let Self {
            name,
            architecture,
            distribution,
            ..
        } = self;
        format!("pkg:deb/{distribution}/{name}@{version}?arch={architecture}")
    }

    /// Adds its licence, and what scanners read of it.
    fn describe(&self, tree: &mut Tree) -> Result<()> {
        let Self {
            name, architecture, ..
        } = self;
        let licence = format!("/usr/share/doc/{name}/copyright");
        let text = fs::read(&licence).with_context(|| licence.clone())?;
        tree.file(&licence, text, 0o644);
        let package = format!("{name}:{architecture}");
        let status = process::output(Command::new("dpkg-query").args(["--status", &package]))?;
        let described = format!("/var/lib/dpkg/status.d/{name}");
        tree.file(&described, status.into_bytes(), 0o644);
        Ok(())
    }
}

/// What this machine's distribution calls itself: `debian`.
fn distribution() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let id = release.lines().find_map(|line| line.strip_prefix("ID="))?;
    Some(id.trim_matches('"').to_owned())
}
