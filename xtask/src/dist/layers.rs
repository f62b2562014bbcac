//! Files and directories as a tar archive, without any trace of who packed them or when: sorted, with one time and given
//! owners. Layers of images are such archives, and so is what images are shipped in.

use std::{collections::BTreeMap, io::Write as _};

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use tar::{Builder, EntryType, Header};

use crate::digest::sha256;

/// Paths without a leading slash. Parents sort before what they hold.
#[derive(Default)]
pub(super) struct Tree(BTreeMap<String, Node>);

enum Node {
    Directory { mode: u32, owner: u64 },
    File { content: Vec<u8>, mode: u32 },
}

impl Tree {
    /// Adds a directory, and those above it. One that is there already gets these properties.
    pub(super) fn directory(&mut self, path: &str, mode: u32, owner: u64) {
        let path = path.trim_matches('/');
        self.parents(path);
        self.0.insert(path.to_owned(), Node::Directory { mode, owner });
    }

    /// Adds a file of root's, and the directories above it.
    pub(super) fn file(&mut self, path: &str, content: Vec<u8>, mode: u32) {
        let path = path.trim_matches('/');
        self.parents(path);
        self.0.insert(path.to_owned(), Node::File { content, mode });
    }

    fn parents(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            let above = path[..end].to_owned();
            self.0.entry(above).or_insert(Node::Directory {
                mode: 0o755,
                owner: 0,
            });
        }
    }

    /// The files' paths and contents.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().filter_map(|(path, node)| match node {
            Node::File { content, .. } => Some((&**path, &**content)),
            Node::Directory { .. } => None,
        })
    }

    /// The archive.
    pub(super) fn archive(&self) -> Result<Vec<u8>> {
        let mut archive = Builder::new(Vec::new());
        for (path, node) in &self.0 {
            let mut header = Header::new_ustar();
            header.set_mtime(0);
            match node {
                Node::Directory { mode, owner } => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_uid(*owner);
                    header.set_gid(*owner);
                    header.set_size(0);
                    archive.append_data(&mut header, format!("{path}/"), &[][..])?;
                }
                Node::File { content, mode } => {
                    header.set_entry_type(EntryType::Regular);
                    header.set_mode(*mode);
                    header.set_uid(0);
                    header.set_gid(0);
                    header.set_size(content.len() as u64);
                    archive.append_data(&mut header, path, &**content)?;
                }
            }
        }
        Ok(archive.into_inner()?)
    }
}

/// A layer of an image.
#[derive(Clone)]
pub(super) struct Layer {
    /// The archive, compressed by gzip.
    pub(super) compressed: Vec<u8>,
    /// The digest of the archive itself.
    pub(super) diff_id: String,
}

impl Layer {
    /// Packs the tree.
    pub(super) fn of(tree: &Tree) -> Result<Self> {
        let archive = tree.archive()?;
        // Its header has neither a name nor a time, unless one asks for them.
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&archive)?;
        Ok(Self {
            compressed: gzip.finish()?,
            diff_id: digest(&archive),
        })
    }
}

/// The digest of bytes, as images name their parts by: `sha256:` and 64 hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}
