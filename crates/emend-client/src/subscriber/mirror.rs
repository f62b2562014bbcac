//! The mirror of prompts in a directory: what it follows, and when it is written.

use std::{collections::BTreeMap, future::pending, io, path::PathBuf, sync::Arc, time::Duration};

use emend_core::{Kind, Learned, Namespace, Prompt};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    prompt_files::{Mirrored, PromptFile, file_name, synchronise},
    view::Fact,
};

/// How long until what could not be written is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// The prompts that are current under a label.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    namespace: Namespace,
    label: String,
    prompts: BTreeMap<String, Arc<Prompt>>,
    has_changed: bool,
}

impl Followed {
    pub(super) fn new(namespace: Namespace, label: String) -> Self {
        Self {
            namespace,
            label,
            prompts: BTreeMap::new(),
            has_changed: false,
        }
    }

    /// Notes what is learned, if it is a prompt under the label.
    pub(super) fn note(&mut self, fact: &Fact<'_>) {
        let is_followed = fact.kind == Kind::Prompt
            && fact.namespace == self.namespace.as_str()
            && fact.qualifier == self.label;
        if !is_followed {
            return;
        }
        self.has_changed = true;
        match fact.value.as_ref().map(|value| &value.learned) {
            Some(Learned::Prompt(prompt)) => {
                self.prompts.insert(fact.key.to_owned(), Arc::new(prompt.clone()));
            }
            _ => {
                self.prompts.remove(fact.key);
            }
        }
    }

    /// Forgets all: a complete new state follows.
    pub(super) fn clear(&mut self) {
        self.prompts.clear();
        self.has_changed = true;
    }

    /// Whether something has changed since this was asked last.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// The files that there should be, by name.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        let file = |(target, prompt): (&String, &Arc<Prompt>)| {
            (file_name(target), PromptFile::of(target, prompt).to_string())
        };
        self.prompts.iter().map(file).collect()
    }
}

/// Writes the mirror.
#[derive(Debug)]
pub(super) struct Mirror {
    directory: Option<PathBuf>,
    is_due: bool,
    not_before: Instant,
    in_flight: Option<JoinHandle<io::Result<Mirrored>>>,
}

/// Why [`Mirror::tick`] returned.
#[derive(Debug)]
pub(super) enum MirrorWake {
    /// The mirror is to be written: hand the files to [`Mirror::start`].
    Due,
    /// The write has finished.
    Written(io::Result<Mirrored>),
}

impl Mirror {
    /// Writes to `directory`; without one, never writes.
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            is_due: false,
            not_before: Instant::now(),
            in_flight: None,
        }
    }

    /// Notes that a prompt has changed.
    pub(super) fn note(&mut self) {
        self.is_due = true;
    }

    /// Waits until there is something to do. Cancel-safe.
    pub(super) async fn tick(&mut self) -> MirrorWake {
        if let Some(in_flight) = &mut self.in_flight {
            let written = in_flight.await;
            self.in_flight = None;
            let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
            if written.is_err() {
                self.is_due = true;
                self.not_before = Instant::now() + RETRY;
            }
            return MirrorWake::Written(written);
        }
        if self.directory.is_none() || !self.is_due {
            return pending().await;
        }
        sleep_until(self.not_before).await;
        MirrorWake::Due
    }

    /// Writes these files on a blocking thread.
    pub(super) fn start(&mut self, files: BTreeMap<String, String>) {
        let Some(directory) = self.directory.clone() else {
            return;
        };
        self.is_due = false;
        self.in_flight = Some(tokio::task::spawn_blocking(move || {
            synchronise(&directory, &files)
        }));
    }

    /// What is still to be done before the node ends, `None` if nothing is. What could not be written is not tried again.
    pub(super) async fn last(&mut self) -> Option<MirrorWake> {
        let is_retry = self.not_before > Instant::now();
        match self.in_flight {
            None if self.directory.is_none() || !self.is_due || is_retry => None,
            None => Some(MirrorWake::Due),
            Some(_) => Some(self.tick().await),
        }
    }
}
