//! How far was delivered, on disk.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use emend_client::prompt_files::replace;
use serde::{Deserialize, Serialize};

use crate::sinks::content::Mark;

/// Which log it is: a restored one has other revisions under the same numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    /// The epoch of the log.
    pub(super) epoch: String,
    /// The installation. Notes of older versions do not name it.
    #[serde(default, rename = "installation_id")]
    pub(super) installation: Option<String>,
}

impl History {
    /// Whether it is another one than what is known now.
    fn differs(&self, now: &Self) -> bool {
        let known = self.installation.as_ref().zip(now.installation.as_ref());
        self.epoch != now.epoch || known.is_some_and(|(one, other)| one != other)
    }
}

/// Why everything is delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anew {
    /// The log is of another epoch or installation.
    OtherLog,
    /// The log no longer has the revision that was delivered last, or another one in its place.
    RevisionsLost,
}

impl Anew {
    /// As receivers are told.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::OtherLog => "other_log",
            Self::RevisionsLost => "revisions_lost",
        }
    }
}

/// How far was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Of which log.
    #[serde(flatten)]
    pub(super) history: History,
    /// The newest revision that was delivered, by search application.
    pub(super) after: BTreeMap<String, i64>,
    /// When that revision was committed, as the log says: another one of its number was so at another time.
    #[serde(default)]
    committed_at: BTreeMap<String, String>,
}

impl Place {
    /// A place in these search applications.
    pub(super) fn new(history: History, namespaces: &[String], after: i64) -> Self {
        let mut place = Self {
            history,
            after: BTreeMap::new(),
            committed_at: BTreeMap::new(),
        };
        place.know(namespaces, after);
        place
    }

    /// The place that is kept in a file; none if there is no file.
    pub(super) fn read(file: &Path) -> io::Result<Option<Self>> {
        match fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps it in a file, which is replaced as a whole.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let (directory, name) = file
            .parent()
            .zip(file.file_name().and_then(|name| name.to_str()))
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "is no name of a file"))?;
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        replace(directory, name, &text)
    }

    /// Begins search applications that are new here.
    pub(super) fn know(&mut self, namespaces: &[String], after: i64) {
        for namespace in namespaces {
            self.after.entry(namespace.clone()).or_insert(after);
        }
    }

    pub(super) fn after(&self, namespace: &str) -> i64 {
        self.after.get(namespace).copied().unwrap_or_default()
    }

    /// The revision at or below which everything was delivered in all of these.
    pub(super) fn least(&self, namespaces: &[String]) -> i64 {
        let all = namespaces.iter().map(|namespace| self.after(namespace));
        all.min().unwrap_or_default()
    }

    /// A revision was delivered.
    pub(super) fn deliver(&mut self, namespace: &str, revision: i64, committed_at: &str) {
        self.after.insert(namespace.to_owned(), revision);
        self.committed_at
            .insert(namespace.to_owned(), committed_at.to_owned());
    }

    /// Whether this is another log than that of which was delivered. What is not known of the same one is noted.
    pub(super) fn meets(&mut self, now: &History) -> bool {
        let differs = self.history.differs(now);
        if !differs && self.history.installation.is_none() {
            self.history.installation.clone_from(&now.installation);
        }
        differs
    }

    /// Whether the log has lost what was delivered last; `listed` is when it says that the revision of that number was committed.
    pub(super) fn is_lost(&self, namespace: &str, listed: Option<&str>) -> bool {
        let known = self.committed_at.get(namespace);
        known.is_some_and(|known| listed != Some(known))
    }

    /// What tells one loss from another.
    pub(super) fn lost(&self, namespace: &str) -> String {
        let committed_at = self.committed_at.get(namespace).map_or("", String::as_str);
        let after = self.after(namespace).to_string();
        Mark::of([namespace, &after, committed_at]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(epoch: &str, installation: Option<&str>) -> History {
        History {
            epoch: epoch.to_owned(),
            installation: installation.map(str::to_owned),
        }
    }

    #[test]
    fn a_place_is_kept_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("webhook:audit.note");
        assert_eq!(Place::read(&file).unwrap(), None);
        let one = history("one", Some("here"));
        let mut place = Place::new(one.clone(), &["a".into(), "b".into()], 3);
        place.deliver("a", 9, "noon");
        place.write(&file).unwrap();
        let mut read = Place::read(&file).unwrap().unwrap();
        assert_eq!(read, place);
        read.know(&["b".into(), "c".into()], 5);
        assert_eq!((read.after("a"), read.after("b"), read.after("c")), (9, 3, 5));
        fs::write(&file, "half").unwrap();
        assert!(Place::read(&file).is_err(), "it does not begin anew by itself");
    }

    #[test]
    fn another_log_is_known_by_its_epoch_its_installation_and_what_was_delivered() {
        let mut place = Place::new(history("one", None), &["a".into()], 0);
        assert!(!place.meets(&history("one", Some("here"))));
        assert!(
            place.meets(&history("one", Some("there"))),
            "the installation was noted"
        );
        assert!(place.meets(&history("two", Some("here"))));
        assert!(!place.is_lost("a", None), "nothing was delivered");
        place.deliver("a", 9, "noon");
        assert!(!place.is_lost("a", Some("noon")));
        assert!(place.is_lost("a", Some("midnight")) && place.is_lost("a", None));
        let lost = place.lost("a");
        place.deliver("a", 9, "midnight");
        assert_ne!(place.lost("a"), lost);
    }

    #[test]
    fn a_note_of_an_older_version_is_read() {
        let place: Place = serde_json::from_str(r#"{"epoch": "one", "after": {"a": 9}}"#).unwrap();
        assert_eq!((place.after("a"), place.is_lost("a", None)), (9, false));
        assert_eq!(place.history, history("one", None));
    }
}
