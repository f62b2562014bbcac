//! `emend admin backup`: a sound copy of the two databases of `emend up`, made while it runs.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use emend_audit::{Databases, audit};
use emend_store::{
    DatabaseUrl, StoreError,
    audit::IgnoreProgress,
    copies::{FileCopy, copy_together},
    sqlite::DataDir,
};
use jiff::civil::DateTime;
use serde_json::json;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted},
    pair::{FEEDBACK_FILE, LEARNING_FILE},
};

/// How a backup is named.
const NAME: &str = "%Y-%m-%dT%H-%M-%S-%3fZ";
/// What follows the name of a copy that is not complete.
const PARTIAL: &str = "partial";
/// What follows the name of a complete copy that has findings.
const UNSOUND: &str = "unsound";

/// What is copied, and where to.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory of the backups, which is made if it is missing; each is a directory in it
    #[arg(value_name = "DIR")]
    into: PathBuf,
    /// The data directory of `emend up`, which may run
    #[arg(
        long,
        value_name = "DIR",
        default_value = "emend-data",
        env = "EMEND_DATA_DIR"
    )]
    data_dir: PathBuf,
    /// Delete the oldest sound backups beyond this many, the new one included, 1 to 10000
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    keep: Option<u16>,
}

pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let Args { into, data_dir, keep } = args;
    for file in [FEEDBACK_FILE, LEARNING_FILE] {
        if !data_dir.join(file).is_file() {
            let data_dir = data_dir.display();
            return Err(Failure::usage(format!("there is no {file} in {data_dir}")));
        }
    }
    let _lock = DataDir::lock(&into).map_err(|error| Failure::Conflict(error.to_string()))?;
    let name = context.clock.now().strftime(NAME).to_string();
    let (partial, done) = (into.join(format!("{name}.{PARTIAL}")), into.join(&name));
    // What a backup that was ended left behind: the lock says that none is being made.
    for left in named(&into, PARTIAL)? {
        fs::remove_dir_all(left)?;
    }
    fs::DirBuilder::new().mode(0o700).create(&partial)?;
    if let Err(error) = copy(&data_dir, &partial).await {
        fs::remove_dir_all(&partial)?;
        let message = format!("the copy could not be made: {error}");
        return Err(match error {
            StoreError::Conflict(_) | StoreError::Unavailable(_) | StoreError::Full(_) => {
                Failure::Unavailable(message)
            }
            StoreError::TooMuch(_) | StoreError::Corrupt(_) | StoreError::Sqlx(_) => Failure::failed(message),
        });
    }
    let copied = |file: &str| DatabaseUrl::sqlite(partial.join(file));
    let databases = Databases {
        feedback: copied(FEEDBACK_FILE),
        learning: copied(LEARNING_FILE),
    };
    let report = audit(&databases, &mut IgnoreProgress, &mut |_| {})
        .await
        .context("the copy can't be checked")?;
    if !report.findings.is_empty() {
        let kept = into.join(format!("{name}.{UNSOUND}"));
        settle(&partial, &kept, &into)?;
        let kept = kept.display();
        return Err(Failure::failed(format!(
            "the copy has findings, which `emend doctor --data-dir {kept}` shows. No older backup was deleted"
        )));
    }
    settle(&partial, &done, &into)?;
    let mut deleted = 0;
    if let Some(keep) = keep {
        let mut all = backups(&into)?;
        all.sort();
        let surplus = all.len().saturating_sub(keep.into());
        for old in &all[..surplus] {
            fs::remove_dir_all(old)?;
            deleted += 1;
        }
    }
    let head = report.learning.head;
    let path = done.display().to_string();
    let json = json!({
        "backup": path, "feedback": report.feedback, "undelivered": report.undelivered, "revision": head.0, "deleted": deleted,
    });
    output.result(&json, || {
        format!(
            "{path}: {}, {} not delivered, revision {head}. It is sound.",
            counted(report.feedback, "correction", "corrections"),
            report.undelivered
        )
    })
}

/// Nothing is learned until both copies have begun, so that learning.db's knows of no correction that feedback.db's lacks, and
/// lacks none that counts as delivered there.
async fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let [learning, feedback] = [LEARNING_FILE, FEEDBACK_FILE].map(|file| (from.join(file), to.join(file)));
    let of_learning = FileCopy {
        from: &learning.0,
        to: &learning.1,
    };
    let of_feedback = FileCopy {
        from: &feedback.0,
        to: &feedback.1,
    };
    copy_together(of_learning, of_feedback).await
}

/// Gives a complete copy its name, on disk.
fn settle(partial: &Path, name: &Path, into: &Path) -> io::Result<()> {
    fs::File::open(partial)?.sync_all()?;
    fs::rename(partial, name)?;
    fs::File::open(into)?.sync_all()
}

/// The directories in `into` whose name ends with this extension.
fn named(into: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(into)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) && path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

/// The sound backups in `into`, which have nothing in their name but a time.
fn backups(into: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(into)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_time = name
            .to_str()
            .is_some_and(|name| DateTime::strptime(NAME, name).is_ok());
        if is_time && entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}
