//! Files: synonyms, lists of domains, prompts. Each is replaced as a whole; a program may run after it.

#[cfg(test)]
mod tests;
mod text;

use std::{collections::BTreeMap, io, path::Path, process::Stdio, time::Duration};

use emend_client::prompt_files::{self, Mirrored};
use jiff::Timestamp;
use tokio::process::Command;

pub(super) use self::text::TextFile;
use super::{
    config::{FileConfig, Format},
    content::{Content, Mark, Seen, Wanted},
    error::SinkError,
    fail_points,
    selection::{Selection, What},
    target::Target,
};

/// How long the program may take that runs after a file was written.
const PATIENCE: Duration = Duration::from_mins(1);
/// The most characters that are shown of what it says.
const MAX_WORDS: usize = 300;

/// A file, or a directory of prompts.
pub(super) struct FileSink {
    config: FileConfig,
    /// What the program ran for last.
    ran_for: Option<Mark>,
    /// The prompts as they were written last.
    kept: Option<BTreeMap<String, String>>,
}

impl FileSink {
    pub(super) fn new(config: FileConfig) -> Self {
        Self {
            config,
            ran_for: None,
            kept: None,
        }
    }

    fn text(&self, format: Format) -> TextFile {
        TextFile {
            path: self.config.path.clone(),
            format,
        }
    }

    async fn prompts(&self) -> Result<BTreeMap<String, String>, SinkError> {
        let directory = self.config.path.clone();
        blocking(&self.config.path, move || prompt_files::mirrored(&directory)).await
    }

    async fn write_prompts(&mut self, files: BTreeMap<String, String>) -> Result<(), SinkError> {
        let (directory, due) = (self.config.path.clone(), files.clone());
        let written = blocking(&self.config.path, move || {
            prompt_files::synchronise(&directory, &due)
        });
        let Mirrored { foreign, .. } = written.await?;
        let mut kept = files;
        kept.retain(|name, _| !foreign.contains(name));
        self.kept = Some(kept);
        Ok(())
    }

    /// Runs the program, if there is one: at least once for each state of the file, also where this process ended before it did.
    async fn run(&mut self, mark: &Mark) -> Result<(), SinkError> {
        let Some((program, arguments)) = self.config.command.split_first() else {
            return Ok(());
        };
        let running = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .output();
        let ended = tokio::time::timeout(PATIENCE, running)
            .await
            .map_err(|_| SinkError::refused(format!("{program} does not end within {PATIENCE:?}")))?
            .map_err(|error| SinkError::refused(format!("{program} can't be run: {error}")))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said: String = said.trim().chars().take(MAX_WORDS).collect();
            return Err(SinkError::refused(format!(
                "{program} ended with {}: {said}",
                ended.status
            )));
        }
        self.ran_for = Some(mark.clone());
        Ok(())
    }
}

impl Target for FileSink {
    fn selection(&self, namespaces: &[String]) -> Selection {
        Selection {
            namespaces: namespaces.to_owned(),
            what: match self.config.of_text {
                None => What::Prompts(self.config.label.clone()),
                Some(Format::Solr | Format::Json) => What::Synonyms,
                Some(format) => What::Domains(format),
            },
        }
    }

    async fn accept(&mut self, wanted: &mut Wanted) -> Result<(), SinkError> {
        let Content::Files(files) = &wanted.content else {
            return Ok(());
        };
        let (directory, files) = (self.config.path.clone(), files.clone());
        let foreign = blocking(&self.config.path, move || {
            prompt_files::foreign(&directory, &files)
        })
        .await?;
        for name in foreign {
            wanted.refuse(&name, "a file of that name is there that no sink wrote");
        }
        Ok(())
    }

    async fn read(&mut self, wanted: &Wanted) -> Result<Seen, SinkError> {
        if let Some(format) = self.config.of_text {
            return self.text(format).seen().await;
        }
        let found = self.prompts().await?;
        let Content::Files(files) = &wanted.content else {
            return Ok(Seen::Empty);
        };
        Ok(match &self.kept {
            Some(kept) if found != *kept => Seen::Changed(format!("{} files, changed", found.len())),
            _ if found == *files => Seen::Intact(wanted.stamp()),
            _ => Seen::Unfinished,
        })
    }

    fn wait(&self, _now: Timestamp) -> Option<Duration> {
        None
    }

    async fn write(&mut self, wanted: &Wanted) -> Result<(), SinkError> {
        match (self.config.of_text, &wanted.content) {
            (Some(format), _) => self.text(format).write(wanted).await?,
            (None, Content::Files(files)) => self.write_prompts(files.clone()).await?,
            (None, _) => {}
        }
        fail_points::WRITTEN.pass();
        self.load(wanted).await
    }

    async fn load(&mut self, wanted: &Wanted) -> Result<(), SinkError> {
        self.run(&wanted.mark).await?;
        fail_points::LOADED.pass();
        Ok(())
    }

    async fn probe(&mut self, wanted: &Wanted) -> Result<bool, SinkError> {
        let has_run = self.config.command.is_empty() || self.ran_for.as_ref() == Some(&wanted.mark);
        let found = match (self.config.of_text, &wanted.content) {
            (Some(format), _) => self.text(format).seen().await?.is_intact(&wanted.mark),
            (None, Content::Files(files)) => {
                let is_kept = self.prompts().await? == *files;
                if is_kept {
                    self.kept = Some(files.clone());
                }
                is_kept
            }
            (None, _) => false,
        };
        Ok(has_run && found)
    }
}

/// What is done with files, where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, SinkError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| SinkError::refused(format!("{}: {error}", path.display())))
}
