//! An image of each program that has a stage in deploy/docker/Dockerfile, made without an engine: this machine's C library
//! and, on top, the program. Its bill of materials and its provenance are with it.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    layers::{Layer, Tree},
    layout::{Document, Image, Layout},
    provenance::{self, Build},
    runtime::{Runtime, USER},
    sources::Sources,
    stage::Stage,
};

const CYCLONEDX: &str = "application/vnd.cyclonedx+json";
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The project's licence, and where an image has it.
const LICENCE: (&str, &[u8]) = (
    "/usr/share/doc/emend/copyright",
    include_bytes!("../../../LICENSE"),
);

/// How the files of images end.
pub(super) const SUFFIX: &str = ".oci.tar";

/// What all images of a release have in common.
pub(super) struct Images<'a> {
    sources: &'a Sources,
    build: &'a Build,
    dockerfile: &'a str,
    architecture: &'static str,
    runtime: Runtime,
    beneath: Layer,
}

/// An image, and what is saved beside it.
pub(super) struct Made {
    /// The layout.
    pub(super) archive: Vec<u8>,
    /// The statement in it.
    pub(super) provenance: Vec<u8>,
}

impl<'a> Images<'a> {
    /// Of these programs.
    pub(super) fn of(
        programs: &[PathBuf],
        dockerfile: &'a str,
        sources: &'a Sources,
        build: &'a Build,
    ) -> Result<Self> {
        let runtime = Runtime::of(programs)?;
        Ok(Self {
            sources,
            build,
            dockerfile,
            architecture: architecture(&build.host)?,
            beneath: Layer::of(&runtime.tree)?,
            runtime,
        })
    }

    /// What the file of a program's image is called.
    pub(super) fn file(&self, program: &str) -> String {
        let (version, architecture) = (&self.sources.version, self.architecture);
        format!("{program}-{version}-linux-{architecture}{SUFFIX}")
    }

    /// Makes the image of a program from its bill of materials and its content.
    pub(super) fn make(&self, program: &str, materials: &[u8], content: Vec<u8>) -> Result<Made> {
        let sources = self.sources;
        let arguments = BTreeMap::from([
            ("SOURCE", sources.url.clone().unwrap_or_default()),
            ("VERSION", sources.version.clone()),
            ("REVISION", sources.revision().unwrap_or_default()),
        ]);
        let stage = Stage::read(self.dockerfile, program, &arguments)?;
        ensure!(
            stage.user == format!("{USER}:{USER}"),
            "{program} runs as {}",
            stage.user
        );
        let mut tree = Tree::default();
        let path = stage.entrypoint.first().context("ENTRYPOINT")?;
        tree.file(path, content, 0o755);
        let (path, licence) = LICENCE;
        tree.file(path, licence.to_vec(), 0o644);
        for volume in &stage.volumes {
            tree.directory(volume, 0o755, USER);
        }
        let own = Layer::of(&tree)?;
        let image = Image {
            config: stage.config(),
            labels: &stage.labels,
            architecture: self.architecture,
            created: &sources.created,
            layers: &[(&self.beneath, "C library, certificates"), (&own, program)],
        };
        let mut layout = Layout::default();
        let image = layout.image(&image, &sources.tags())?;
        let provenance = provenance::statement(program, &image, sources, self.build, &self.runtime)?;
        for (media_type, kind, content) in [
            (CYCLONEDX, "cdx", materials),
            (IN_TOTO, "provenance", &provenance),
        ] {
            let file = format!("{program}.{kind}.json");
            let document = Document {
                media_type,
                file: &file,
                created: &sources.created,
                content,
            };
            layout.refer(&image, &document)?;
        }
        Ok(Made {
            archive: layout.archive()?,
            provenance,
        })
    }
}

/// What Go calls a platform's architecture.
fn architecture(host: &str) -> Result<&'static str> {
    match host.split_once('-') {
        Some(("x86_64", rest)) if rest.contains("linux") => Ok("amd64"),
        Some(("aarch64", rest)) if rest.contains("linux") => Ok("arm64"),
        _ => bail!("no image for {host}: x86_64 or aarch64, and Linux"),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        io::Read as _,
        sync::LazyLock,
    };

    use flate2::read::GzDecoder;
    use serde_json::{Value, json};
    use tar::Archive;

    use super::{Images, Made, architecture};
    use crate::{
        dist::{layers::digest, provenance::Build, sources::Sources},
        process,
    };

    const DOCKERFILE: &str = include_str!("../../../deploy/docker/Dockerfile");
    const PROGRAM: &str = "emend";
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    static MADE: LazyLock<Made> = LazyLock::new(|| made(&sources(false)));

    fn sources(modified: bool) -> Sources {
        Sources {
            version: "1.2.3".to_owned(),
            commit: Some(COMMIT.to_owned()),
            modified,
            committed: "0".to_owned(),
            created: "2026-11-26T12:00:00Z".to_owned(),
            url: Some("https://git.example/emend".to_owned()),
        }
    }

    /// The image of a small program of this machine that is linked to its C library.
    fn made(sources: &Sources) -> Made {
        let program = process::find_program("true").expect("coreutils");
        let build = Build {
            profile: "dist".to_owned(),
            host: "x86_64-unknown-linux-gnu".to_owned(),
            rustc: "1.95.0".to_owned(),
            builder: "https://ci.example".to_owned(),
            lock: b"crates".to_vec(),
        };
        let images = Images::of(std::slice::from_ref(&program), DOCKERFILE, sources, &build).unwrap();
        assert_eq!(images.file(PROGRAM), "emend-1.2.3-linux-amd64.oci.tar");
        images
            .make(PROGRAM, b"materials", fs::read(program).unwrap())
            .unwrap()
    }

    /// An archive's entries: what they contain, who owns them, and their modes.
    type Entries = BTreeMap<String, (Vec<u8>, u64, u32)>;

    fn entries(archive: &[u8]) -> Entries {
        let mut entries = Entries::new();
        for entry in Archive::new(archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            let path = entry.path().unwrap().display().to_string();
            let (owner, mode) = (entry.header().uid().unwrap(), entry.header().mode().unwrap());
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            entries.insert(path, (content, owner, mode));
        }
        entries
    }

    /// A layout, read back.
    struct Read(Entries);

    impl Read {
        fn json(&self, path: &str) -> Value {
            serde_json::from_slice(&self.0[path].0).unwrap()
        }

        /// What a descriptor describes.
        fn blob(&self, descriptor: &Value) -> &[u8] {
            let name = descriptor["digest"].as_str().unwrap();
            let content = &self.0[&format!("blobs/{}", name.replace(':', "/"))].0;
            assert_eq!(digest(content), name);
            assert_eq!(descriptor["size"], content.len());
            content
        }

        fn described(&self, descriptor: &Value) -> Value {
            serde_json::from_slice(self.blob(descriptor)).unwrap()
        }

        fn manifests(&self) -> Vec<Value> {
            let index = self.json("index.json");
            index["manifests"].as_array().unwrap().clone()
        }

        /// The archives that are the image's layers.
        fn layers(&self, manifest: &Value) -> Vec<Vec<u8>> {
            let layers = manifest["layers"].as_array().unwrap().iter();
            let unpacked = layers.map(|layer| {
                let mut archive = Vec::new();
                GzDecoder::new(self.blob(layer))
                    .read_to_end(&mut archive)
                    .unwrap();
                archive
            });
            unpacked.collect()
        }
    }

    fn read(made: &Made) -> Read {
        Read(entries(&made.archive))
    }

    #[test]
    fn every_digest_and_size_in_an_image_is_right() {
        let layout = read(&MADE);
        assert_eq!(layout.json("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}));
        let mut named = BTreeSet::new();
        for descriptor in layout.manifests() {
            let manifest = layout.described(&descriptor);
            assert_eq!(manifest["mediaType"], descriptor["mediaType"]);
            let parts = manifest["layers"].as_array().unwrap().iter();
            for part in parts.chain([&descriptor, &manifest["config"]]) {
                layout.blob(part);
                named.insert(format!(
                    "blobs/{}",
                    part["digest"].as_str().unwrap().replace(':', "/")
                ));
            }
        }
        let there = layout.0.keys().filter(|path| path.starts_with("blobs/sha256/"));
        let there: BTreeSet<String> = there.filter(|path| !path.ends_with('/')).cloned().collect();
        assert_eq!(named, there, "and nothing else is in it");

        let manifest = layout.described(&layout.manifests()[0]);
        let config = layout.described(&manifest["config"]);
        let digests: Vec<String> = layout
            .layers(&manifest)
            .iter()
            .map(|layer| digest(layer))
            .collect();
        assert_eq!(config["rootfs"], json!({"type": "layers", "diff_ids": digests}));
        assert_eq!(config["history"].as_array().unwrap().len(), digests.len());
    }

    #[test]
    fn an_image_is_tagged_with_its_version_and_its_commit() {
        let manifests = read(&MADE).manifests();
        let tags: Vec<&Value> = manifests
            .iter()
            .map(|descriptor| &descriptor["annotations"]["org.opencontainers.image.ref.name"])
            .collect();
        assert_eq!(
            tags,
            [
                &json!("1.2.3"),
                &json!("1.2.3-0123456789ab"),
                &Value::Null,
                &Value::Null
            ]
        );
        assert_eq!(manifests[0]["digest"], manifests[1]["digest"]);
        assert_eq!(sources(true).tags()[1], "1.2.3-0123456789ab-modified");
    }

    #[test]
    fn an_image_is_run_as_its_stage_says_on_what_its_program_needs() {
        let layout = read(&MADE);
        let manifest = layout.described(&layout.manifests()[0]);
        let config = layout.described(&manifest["config"]);
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(
            [&config["os"], &config["architecture"], &config["created"]],
            ["linux", "amd64", "2026-11-26T12:00:00Z"]
        );
        for labels in [&config["config"]["Labels"], &manifest["annotations"]] {
            assert_eq!(labels["org.opencontainers.image.title"], PROGRAM);
            assert_eq!(labels["org.opencontainers.image.version"], "1.2.3");
            assert_eq!(labels["org.opencontainers.image.revision"], COMMIT);
            assert_eq!(
                labels["org.opencontainers.image.source"],
                "https://git.example/emend"
            );
        }

        let layers = layout.layers(&manifest);
        let (beneath, own) = (entries(&layers[0]), entries(&layers[1]));
        let (program, owner, mode) = &own["usr/local/bin/emend"];
        assert_eq!((*owner, *mode), (0, 0o755));
        assert_eq!(
            *program,
            fs::read(process::find_program("true").unwrap()).unwrap()
        );
        assert!(own["usr/share/doc/emend/copyright"].0 == include_bytes!("../../../LICENSE"));
        assert_eq!(own["var/lib/emend/"].1, 65532, "the volume is the user's");
        let is_there = |end: &str| beneath.keys().any(|path| path.ends_with(end));
        assert!(is_there("/libc.so.6"), "{:?}", beneath.keys());
        assert!(
            beneath.keys().any(|path| path.contains("/ld-linux")),
            "{:?}",
            beneath.keys()
        );
        assert!(is_there("etc/ssl/certs/ca-certificates.crt"));
        if process::find_program("dpkg-query").is_some() {
            let described = ["var/lib/dpkg/status.d/libc6", "usr/share/doc/libc6/copyright"];
            assert!(described.into_iter().all(is_there), "its package and licence");
        }
        let passwd = String::from_utf8_lossy(&beneath["etc/passwd"].0);
        assert!(passwd.contains("nonroot:x:65532:65532:"), "{passwd}");
        assert_eq!(beneath["tmp/"].2, 0o1777);
    }

    #[test]
    fn materials_and_provenance_refer_to_the_image() {
        let layout = read(&MADE);
        let manifests = layout.manifests();
        let image = &manifests[0];
        let kinds = ["application/vnd.cyclonedx+json", "application/vnd.in-toto+json"];
        let contents: [&[u8]; 2] = [b"materials", &MADE.provenance];
        for ((descriptor, kind), content) in manifests[2..].iter().zip(kinds).zip(contents) {
            assert_eq!(descriptor["artifactType"], kind);
            let artifact = layout.described(descriptor);
            assert_eq!(artifact["artifactType"], kind);
            for key in ["mediaType", "digest", "size"] {
                assert_eq!(artifact["subject"][key], image[key]);
            }
            assert_eq!(layout.blob(&artifact["config"]), b"{}");
            assert_eq!(layout.blob(&artifact["layers"][0]), content);
        }
    }

    #[test]
    fn provenance_names_the_image_the_commit_and_what_was_taken_from_this_machine() {
        let made = made(&sources(true));
        for (made, is_of_a_commit) in [(&*MADE, true), (&made, false)] {
            let image = read(made).manifests()[0]["digest"].clone();
            let statement: Value = serde_json::from_slice(&made.provenance).unwrap();
            let digest = statement["subject"][0]["digest"]["sha256"].as_str().unwrap();
            assert_eq!(image, format!("sha256:{digest}"));
            let predicate = &statement["predicate"];
            assert_eq!(predicate["runDetails"]["builder"]["id"], "https://ci.example");
            let used = predicate["buildDefinition"]["resolvedDependencies"]
                .as_array()
                .unwrap();
            let commits = used.iter().filter(|one| one["digest"]["gitCommit"] == COMMIT);
            assert_eq!(commits.count(), usize::from(is_of_a_commit));
            let is_used = |end: &str| {
                used.iter()
                    .any(|one| one["name"].as_str().unwrap().ends_with(end))
            };
            for file in ["Cargo.lock", "/libc.so.6", "/ca-certificates.crt"] {
                assert!(is_used(file), "{file}: {used:?}");
            }
        }
    }

    #[test]
    fn an_image_is_the_same_whenever_it_is_made() {
        assert!(made(&sources(false)).archive == MADE.archive);
    }

    #[test]
    fn platforms_are_named_as_registries_name_them() {
        assert_eq!(architecture("aarch64-unknown-linux-gnu").unwrap(), "arm64");
        assert!(architecture("x86_64-apple-darwin").is_err());
        assert!(architecture("riscv64gc-unknown-linux-gnu").is_err());
    }
}
