//! `emend doctor`: checks that what each service stored is consistent, in itself and with the other's.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use emend_audit::{AuditError, Databases, Report, audit, checks};
use emend_store::{
    DatabaseUrl, StoreError,
    audit::{OpenError, Watch},
    sqlite::{DataDir, DataDirError},
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::{
    failure::{Exit, Failure, Result},
    output::{Column, Output, Table, counted},
    pair::{FEEDBACK_FILE, LEARNING_FILE},
};

/// The databases to check.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The data directory of `emend up`; it must not be in use
    #[arg(
        long,
        value_name = "DIR",
        default_value = "emend-data",
        env = "EMEND_DATA_DIR"
    )]
    data_dir: PathBuf,
    /// The database of both services, which may keep serving, instead of a data directory: postgres://…
    #[arg(long, value_name = "URL", env = "EMEND_DATABASE_URL", hide_env_values = true)]
    database_url: Option<DatabaseUrl>,
    /// feedback-svc's database, if it has one of its own
    #[arg(long, value_name = "URL", requires = "database_url", hide_env_values = true)]
    feedback_database_url: Option<DatabaseUrl>,
    /// List all checks without running them
    #[arg(long)]
    list: bool,
}

const AFTER_HELP: &str = "\
Examples:
  emend doctor                                      the data of a stopped `emend up`
  emend doctor --data-dir /var/lib/emend --json
  emend doctor --database-url postgres://emend:secret@db.example/emend
  emend doctor --list                               every check, with its code

What it does: it reads feedback, inbox, ballots, candidates, resources and the revision log, each
database in one consistent state, and compares them: every stored correction is delivered or on its
way, took effect exactly once, and is counted; the log replayed from nothing gives the resources,
byte by byte. Nothing is changed.

On PostgreSQL the services may keep serving: what is under way between them is not taken for an
error. While it runs, the database keeps old versions of rows; run it on a standby that has both
schemas to spare the primary. A data directory belongs to one process: stop `emend up` first.

What it prints: only counts if all is well. A finding has the code of the check, the ids of the rows
and a sentence that says what is wrong; never what somebody said. Codes do not change: scripts may
depend on them.

Exit codes:
  0  all agrees
  1  findings
  2  there is no database
  4  the data directory is in use, or the tables are of another version
  5  the database can't be reached

What to do with a finding: keep a copy of the database, and restore the newest backup without
findings; then run `emend admin new-epoch`, so that search nodes take a snapshot.";

/// Runs the checks and prints the report.
pub async fn run(args: Args, output: &mut Output<'_>) -> Result<ExitCode> {
    if args.list {
        return list(output);
    }
    let (databases, _locks) = databases(args)?;
    let mut progress = Progress(ProgressBar::hidden());
    let report = audit(&databases, &mut progress, &mut |_| {}).await;
    progress.0.finish_and_clear();
    let report = report.map_err(|error| failure(&error))?;
    output.result(&to_json(&report), || text(&report))?;
    Ok(if report.findings.is_empty() {
        Exit::Ok.into()
    } else {
        Exit::Failed.into()
    })
}

fn list(output: &mut Output<'_>) -> Result<ExitCode> {
    let checks: Vec<_> = checks().collect();
    output.results(
        &checks,
        |check| json!({"code": check.code, "holds": check.holds}),
        |checks| {
            Table::new([("CODE", Column::Fixed), ("HOLDS", Column::Fixed)])
                .with_rows(checks, |check| [check.code.to_owned(), check.holds.to_owned()])
        },
        "",
    )?;
    Ok(Exit::Ok.into())
}

/// The databases to check, and the locks that keep other processes from their files until dropped.
fn databases(args: Args) -> Result<(Databases, Vec<DataDir>)> {
    let databases = match (args.database_url, args.feedback_database_url) {
        (None, _) => Databases {
            feedback: DatabaseUrl::sqlite(args.data_dir.join(FEEDBACK_FILE)),
            learning: DatabaseUrl::sqlite(args.data_dir.join(LEARNING_FILE)),
        },
        (Some(DatabaseUrl::Sqlite(_)), None) => {
            return Err(Failure::usage(
                "--database-url sqlite:… is learning-svc's alone: give --feedback-database-url, too",
            ));
        }
        (Some(learning), feedback) => Databases {
            feedback: feedback.unwrap_or_else(|| learning.clone()),
            learning,
        },
    };
    let mut directories = BTreeSet::new();
    for url in [&databases.feedback, &databases.learning] {
        if let DatabaseUrl::Sqlite(path) = url {
            // Opening the database must not create one.
            if !path.is_file() {
                let path = path.display();
                return Err(Failure::usage(format!(
                    "there is no database at {path}: name the directory of `emend up` with --data-dir, or a database \
                     on PostgreSQL with --database-url"
                )));
            }
            directories.insert(path.parent().unwrap_or(Path::new("")).to_path_buf());
        }
    }
    let locks: Result<Vec<DataDir>> = directories
        .into_iter()
        .map(|directory| {
            // An empty parent path is the current directory.
            DataDir::lock_parent(directory.join("emend.lock")).map_err(|error| {
                Failure::Conflict(match error {
                    DataDirError::InUse(directory) => format!(
                        "the data directory {} is in use: stop the `emend up` that runs there, then check it",
                        directory.display()
                    ),
                    error @ DataDirError::Io { .. } => error.to_string(),
                })
            })
        })
        .collect();
    Ok((databases, locks?))
}

fn failure(error: &AuditError) -> Failure {
    let message = error.to_string();
    match error {
        AuditError::Open {
            error: OpenError::Schema { .. },
            ..
        } => Failure::Conflict(message),
        AuditError::Open {
            error: OpenError::Store(StoreError::Unavailable(_)),
            ..
        }
        | AuditError::Read {
            error: StoreError::Unavailable(_),
            ..
        } => Failure::Unavailable(message),
        AuditError::Open { .. } | AuditError::Read { .. } => Failure::failed(message),
    }
}

/// Progress on standard error, if that is a terminal.
struct Progress(ProgressBar);

impl Watch for Progress {
    fn begins(&mut self, name: &'static str, total: u64) {
        self.0.finish_and_clear();
        self.0 = ProgressBar::new(total).with_message(name);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} {msg}") {
            self.0.set_style(style);
        }
    }

    fn went_on(&mut self, by: u64) {
        self.0.inc(by);
    }
}

fn to_json(report: &Report) -> Value {
    let learning = &report.learning;
    let findings: Vec<Value> = report
        .findings
        .kept()
        .iter()
        .map(|finding| {
            json!({"code": finding.check.code, "evidence": finding.evidence, "message": finding.message})
        })
        .collect();
    let digests: Vec<Value> = learning
        .digests
        .iter()
        .map(|((namespace, kind, user_scoped), digest)| {
            json!({
                "namespace": namespace,
                "kind": kind,
                "userScoped": user_scoped,
                "count": digest.count,
                "hash": format!("{:032x}", digest.sum),
            })
        })
        .collect();
    json!({
        "sound": report.findings.is_empty(),
        "findings": findings,
        "findingsByCode": report.findings.counts(),
        "feedback": report.feedback,
        "undelivered": report.undelivered,
        "deadLetters": report.dead,
        "events": learning.events,
        "ballots": learning.ballots,
        "candidates": learning.candidates,
        "contests": learning.contests,
        "contestsToReevaluate": learning.to_reevaluate,
        "resources": resources(report),
        "changes": learning.changes,
        "head": learning.head.0,
        "horizon": learning.horizon.0,
        "epoch": learning.epoch.map(|epoch| epoch.to_string()),
        "digests": digests,
    })
}

fn resources(report: &Report) -> i64 {
    report.learning.digests.values().map(|digest| digest.count).sum()
}

fn text(report: &Report) -> String {
    use std::fmt::Write as _;
    let learning = &report.learning;
    let mut text = format!(
        "feedback   {}, {} not delivered, {} among them\n\
         learning   {} applied, {} counted\n\
         contests   {} in {}, {} waiting for reevaluation\n\
         resources  {}, by {} in {}\n\n",
        counted(report.feedback, "correction", "corrections"),
        report.undelivered,
        counted(report.dead, "dead letter", "dead letters"),
        counted(learning.events, "event", "events"),
        counted(learning.ballots, "ballot", "ballots"),
        counted(learning.candidates, "candidate", "candidates"),
        counted(learning.contests, "contest", "contests"),
        learning.to_reevaluate,
        counted(resources(report), "resource", "resources"),
        counted(learning.changes, "change", "changes"),
        counted(learning.head.0, "revision", "revisions"),
    );
    if report.findings.is_empty() {
        text.push_str("No findings: all stored data agrees.");
        return text;
    }
    let mut table = Table::new([
        ("CODE", Column::Fixed),
        ("WHICH", Column::Fixed),
        ("WHAT IS WRONG", Column::Fixed),
    ]);
    for finding in report.findings.kept() {
        table.row([
            finding.check.code.to_owned(),
            finding.evidence.clone(),
            finding.message.clone(),
        ]);
    }
    text.push_str(&table.render(usize::MAX));
    let all: usize = report.findings.counts().values().sum();
    let more = all - report.findings.kept().len();
    if more > 0 {
        // Writing to a String can't fail.
        let _ = writeln!(text, "… and {more} more");
    }
    let findings = counted(all, "finding", "findings");
    text + &format!("{findings}. `emend doctor --list` lists what each check requires.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_is_called_one_thing() {
        let mut report = Report {
            feedback: 1,
            undelivered: 1,
            dead: 1,
            ..Report::default()
        };
        let learning = &mut report.learning;
        for count in [
            &mut learning.events,
            &mut learning.ballots,
            &mut learning.candidates,
            &mut learning.contests,
            &mut learning.changes,
        ] {
            *count = 1;
        }
        learning.head.0 = 1;
        let text = text(&report);
        for said in [
            "1 correction, 1 not delivered, 1 dead letter among them\n",
            "1 event applied, 1 ballot counted\n",
            "1 candidate in 1 contest, 0 waiting for reevaluation\n",
            "0 resources, by 1 change in 1 revision\n",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
