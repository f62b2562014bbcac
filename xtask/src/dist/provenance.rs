//! How an image was made, as an in-toto statement with SLSA's provenance (v1). It is not signed: whoever publishes an
//! image signs it, and so vouches for it.

use anyhow::Result;
use serde_json::{Value, json};

use super::{runtime::Runtime, sources::Sources};
use crate::digest::sha256;

/// What kind of build the parameters are of; docs/deploy.md says what they mean.
const BUILD_TYPE: &str = "urn:emend:cargo-xtask-dist:1";

/// How and where the programs were built.
pub(super) struct Build {
    pub(super) profile: String,
    /// The platform, as rustc names it.
    pub(super) host: String,
    /// The compiler's version.
    pub(super) rustc: String,
    /// Who built, a URI.
    pub(super) builder: String,
    /// The content of Cargo.lock.
    pub(super) lock: Vec<u8>,
}

/// The statement about the image with this digest.
pub(super) fn statement(
    program: &str,
    image: &Value,
    sources: &Sources,
    build: &Build,
    runtime: &Runtime,
) -> Result<Vec<u8>> {
    let digest = image["digest"].as_str().unwrap_or_default();
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": program, "digest": { "sha256": digest.trim_start_matches("sha256:") } }],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": { "program": program, "profile": build.profile, "source": sources.url },
                "internalParameters": { "platform": build.host, "revision": sources.revision() },
                "resolvedDependencies": dependencies(sources, build, runtime),
            },
            "runDetails": { "builder": { "id": build.builder, "version": { "rustc": build.rustc } } },
        },
    });
    let mut text = serde_json::to_vec_pretty(&statement)?;
    text.push(b'\n');
    Ok(text)
}

/// The sources, the list of crates, and what was taken from the machine that built.
fn dependencies(sources: &Sources, build: &Build, runtime: &Runtime) -> Vec<Value> {
    let mut dependencies = Vec::new();
    // Modified sources are those of no commit.
    if let Some(commit) = sources.commit.as_ref().filter(|_| !sources.modified) {
        let mut source = json!({ "name": "sources", "digest": { "gitCommit": commit } });
        if let Some(url) = &sources.url {
            source["uri"] = json!(format!("git+{url}@{commit}"));
        }
        dependencies.push(source);
    }
    dependencies.push(json!({ "name": "Cargo.lock", "digest": { "sha256": sha256(&build.lock) } }));
    for (path, content) in runtime.tree.files() {
        let Some(package) = runtime.taken.get(path) else {
            continue;
        };
        let mut file = json!({ "name": format!("/{path}"), "digest": { "sha256": sha256(content) } });
        if let Some(package) = package {
            file["uri"] = json!(package.url());
        }
        dependencies.push(file);
    }
    dependencies
}
