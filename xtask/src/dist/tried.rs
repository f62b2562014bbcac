//! Whether a program starts in its image: the layers are unpacked, and the program runs with them as its root.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::process::{self, Workspace};

/// Starts the program of an image with `--version`. Where namespaces are not allowed it cannot be tried, which is said.
pub(super) fn starts(workspace: &Workspace, archive: &Path, scratch: &Path) -> Result<()> {
    const UNSHARE: [&str; 3] = ["--map-root-user", "--mount", "--net"];
    if process::output(workspace.command("unshare").args(UNSHARE).arg("true")).is_err() {
        ensure!(!process::in_ci(), "unshare may not make namespaces here");
        eprintln!(
            "{}: not tried: unshare may not make namespaces",
            archive.display()
        );
        return Ok(());
    }
    let (layout, root) = (scratch.join("layout"), scratch.join("root"));
    for directory in [&layout, &root] {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
    }
    unpack(workspace, archive, &layout)?;
    let read = |path: &Path| -> Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    let blob = |descriptor: &Value| -> Result<_> {
        let digest = descriptor["digest"].as_str().context("a digest")?;
        Ok(layout.join("blobs").join(digest.replace(':', "/")))
    };
    let index = read(&layout.join("index.json"))?;
    let manifest = read(&blob(&index["manifests"][0])?)?;
    for layer in manifest["layers"].as_array().context("layers")? {
        unpack(workspace, &blob(layer)?, &root)?;
    }
    let config = read(&blob(&manifest["config"])?)?;
    let program = config["config"]["Entrypoint"][0].as_str().context("ENTRYPOINT")?;
    let printed = process::output(
        workspace
            .command("unshare")
            .args(UNSHARE)
            .arg(format!("--root={}", root.display()))
            .args([program, "--version"])
            .env_clear(),
    )?;
    let name = Path::new(program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    ensure!(
        printed.starts_with(&*name),
        "{program} --version says {printed:?}"
    );
    Ok(())
}

fn unpack(workspace: &Workspace, archive: &Path, directory: &Path) -> Result<()> {
    process::run(
        workspace
            .command("tar")
            .arg("--extract")
            .arg("--file")
            .arg(archive)
            .arg("--directory")
            .arg(directory),
    )
}
