//! Of which version each file of a directory is, noted beside them, so that a push notices what others set since the pull.

use std::{collections::BTreeMap, fs, io, path::Path};

use emend_client::prompt_files::replace;

use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// The file's name.
const NAME: &str = ".emend-pulled";

/// By namespace, label and target.
type Versions = BTreeMap<String, BTreeMap<String, BTreeMap<String, u32>>>;

/// The versions that the files of a directory were made of, under one label of a namespace.
pub(super) struct Pulled<'a> {
    directory: &'a Path,
    namespace: String,
    label: &'a str,
    all: Versions,
    has_changed: bool,
}

impl<'a> Pulled<'a> {
    /// Reads what is noted; nothing is where nothing was pulled or pushed yet.
    pub(super) fn read(directory: &'a Path, label: &'a str, context: &Context) -> Result<Self> {
        let path = directory.join(NAME);
        let unreadable = |why: String| {
            let path = path.display();
            Failure::usage(format!(
                "{path}: {why}; without it, what others set is not noticed"
            ))
        };
        let all = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Versions::new(),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        Ok(Self {
            directory,
            namespace: context.namespace(),
            label: label.trim(),
            all,
            has_changed: false,
        })
    }

    /// The version of a target that its file was made of, if that is known.
    pub(super) fn version(&self, target: &str) -> Option<u32> {
        let of_label = self.all.get(&self.namespace)?.get(self.label)?;
        of_label.get(target).copied()
    }

    /// Notes that a file says this version.
    pub(super) fn note(&mut self, target: &str, version: u32) {
        let of_namespace = self.all.entry(self.namespace.clone()).or_default();
        let of_label = of_namespace.entry(self.label.to_owned()).or_default();
        self.has_changed |= of_label.insert(target.to_owned(), version) != Some(version);
    }

    /// Writes what was noted.
    pub(super) fn write(&mut self) -> Result {
        if !std::mem::take(&mut self.has_changed) {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.all)
            .map_err(|error| Failure::failed(format!("{NAME}: {error}")))?;
        replace(self.directory, NAME, &format!("{text}\n"))
            .map_err(|error| Failure::failed(format!("{}: {error}", self.directory.join(NAME).display())))
    }
}
