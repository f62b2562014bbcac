//! Images in an OCI image layout, packed into one file (`oci-archive:` to skopeo): what a registry holds of a release,
//! ready to be copied there. What is known of an image is in the layout, too, as manifests that refer to the image's.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::layers::{Layer, Tree, digest};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Of a configuration that says nothing, `{}`.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The annotation that names a manifest within a layout: its tag in a registry.
const TAG: &str = "org.opencontainers.image.ref.name";

/// What an image is made of.
pub(super) struct Image<'a> {
    /// The object `config` of its configuration.
    pub(super) config: Value,
    pub(super) labels: &'a BTreeMap<String, String>,
    /// As Go names it.
    pub(super) architecture: &'a str,
    /// The time of the sources, in the form of RFC 3339.
    pub(super) created: &'a str,
    /// The lowest first, each with what it holds.
    pub(super) layers: &'a [(&'a Layer, &'a str)],
}

/// What is known of an image.
pub(super) struct Document<'a> {
    pub(super) media_type: &'a str,
    /// The name of the file that it is saved to.
    pub(super) file: &'a str,
    /// The time of the sources, in the form of RFC 3339.
    pub(super) created: &'a str,
    pub(super) content: &'a [u8],
}

/// A layout: blobs by their digests, and an index of manifests.
#[derive(Default)]
pub(super) struct Layout {
    /// By `sha256/` and digits.
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: Vec<Value>,
}

impl Layout {
    /// Adds an image under some tags. Returns its descriptor.
    pub(super) fn image(&mut self, image: &Image<'_>, tags: &[String]) -> Result<Value> {
        let created = image.created;
        let (mut layers, mut diff_ids, mut history) = (Vec::new(), Vec::new(), Vec::new());
        for (layer, what) in image.layers {
            layers.push(self.blob(LAYER, layer.compressed.clone()));
            diff_ids.push(&*layer.diff_id);
            history.push(json!({ "created": created, "created_by": "cargo xtask dist", "comment": what }));
        }
        let config = json!({
            "created": created,
            "architecture": image.architecture,
            "os": "linux",
            "config": image.config,
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
            "history": history,
        });
        let config = self.blob(CONFIG, serde_json::to_vec(&config)?);
        let mut annotations = image.labels.clone();
        annotations.insert("org.opencontainers.image.created".to_owned(), created.to_owned());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
            "annotations": annotations,
        });
        let descriptor = self.blob(MANIFEST, serde_json::to_vec(&manifest)?);
        for tag in tags {
            let mut tagged = descriptor.clone();
            tagged["platform"] = json!({ "architecture": image.architecture, "os": "linux" });
            tagged["annotations"] = json!({ TAG: tag });
            self.manifests.push(tagged);
        }
        Ok(descriptor)
    }

    /// Adds a document about the image that a descriptor names: an artifact that refers to it.
    pub(super) fn refer(&mut self, subject: &Value, document: &Document<'_>) -> Result<()> {
        let Document {
            media_type,
            file,
            created,
            content,
        } = document;
        let empty = self.blob(EMPTY, b"{}".to_vec());
        let mut content = self.blob(media_type, content.to_vec());
        content["annotations"] = json!({ "org.opencontainers.image.title": file });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": media_type,
            "config": empty,
            "layers": [content],
            "subject": subject,
            "annotations": { "org.opencontainers.image.created": created },
        });
        let mut descriptor = self.blob(MANIFEST, serde_json::to_vec(&manifest)?);
        descriptor["artifactType"] = json!(media_type);
        self.manifests.push(descriptor);
        Ok(())
    }

    /// Keeps a blob; returns its descriptor.
    fn blob(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let digest = digest(&content);
        let descriptor = json!({ "mediaType": media_type, "digest": digest, "size": content.len() });
        self.blobs.insert(digest.replace(':', "/"), content);
        descriptor
    }

    /// The layout as one file.
    pub(super) fn archive(self) -> Result<Vec<u8>> {
        let mut tree = Tree::default();
        let mut file = |path: &str, content| tree.file(path, content, 0o644);
        for (name, content) in self.blobs {
            file(&format!("blobs/{name}"), content);
        }
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests });
        file("index.json", serde_json::to_vec(&index)?);
        file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
        tree.archive()
    }
}
