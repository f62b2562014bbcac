//! Each package as a person gets it: installed from the checkout in a directory elsewhere, built for release; and the first program of
//! its guide, run there as it stands in the guide.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::id as process_id,
};

use anyhow::{Context as _, Result, ensure};

use super::pair::Pair;
use crate::process::{self, Workspace};

/// What the guides' first programs print once three people have said so.
const LEARNED: &str = "create_isda";

/// A guide, and how its first program is run.
pub(super) struct Guide {
    /// The document.
    pub(super) document: &'static str,
    /// What a person types to install the package, as it stands in the guide.
    pub(super) install: &'static str,
    /// What stands after the fence of the first program.
    pub(super) language: &'static str,
    /// What the program is saved as.
    pub(super) file: &'static str,
    /// The shell's command that runs it; the addresses of both services follow.
    pub(super) run: &'static str,
}

/// A new directory where nothing is but a way to the checkout's clients. Dropping it removes it.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn make(workspace: &Workspace, name: &str) -> Result<Self> {
        let directory = env::temp_dir().join(format!("emend-installed-{name}-{}", process_id()));
        fs::create_dir_all(&directory)?;
        let elsewhere = Self(directory);
        symlink(
            workspace.path("clients").canonicalize()?,
            elsewhere.0.join("clients"),
        )?;
        Ok(elsewhere)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // What is left is in the directory of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Guide {
    /// Does what the guide says, from its first command to its first program. `prepare` is given the new directory, and returns
    /// where the shell looks for programs first.
    pub(super) fn is_right(
        &self,
        workspace: &Workspace,
        prepare: impl FnOnce(&Path) -> Result<Option<PathBuf>>,
    ) -> Result<()> {
        let text = fs::read_to_string(workspace.path(self.document))?;
        for line in self.install.lines() {
            ensure!(text.contains(line), "{} does not say {line}", self.document);
        }
        let program = first_block(&text, self.language)
            .with_context(|| format!("{} has no block of {}", self.document, self.language))?;
        let elsewhere = Elsewhere::make(workspace, self.language)?;
        let first = prepare(&elsewhere.0)?;
        let known = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(first.into_iter().chain(env::split_paths(&known)))?;
        let shell = |script: &str| {
            let mut command = workspace.command("sh");
            command
                .args(["-ec", script])
                .current_dir(&elsewhere.0)
                .env("PATH", &path);
            command
        };
        process::run(&mut shell(self.install))?;
        fs::write(elsewhere.0.join(self.file), program)?;
        let pair = Pair::start(workspace)?;
        let line = format!("{} {} {}", self.run, pair.feedback, pair.learning);
        let printed = process::output(&mut shell(&line))?;
        eprintln!("{printed}");
        ensure!(
            printed.lines().any(|line| line == LEARNED),
            "the first program of {} does not print {LEARNED}",
            self.document
        );
        Ok(())
    }
}

/// The first fenced block of this language, without the fences.
fn first_block(text: &str, language: &str) -> Option<String> {
    let mut lines = text
        .lines()
        .skip_while(|line| line.strip_prefix("```") != Some(language));
    lines.next()?;
    Some(
        lines
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::first_block;

    #[test]
    fn the_first_block_of_a_language_is_found() {
        let text = "a\n```sh\nbuild\n```\n```js\none\n\ntwo\n```\n```js\nthree\n```\n";
        assert_eq!(first_block(text, "js").unwrap(), "one\n\ntwo\n");
        assert_eq!(first_block(text, "sh").unwrap(), "build\n");
        assert_eq!(first_block(text, "go"), None);
    }
}
