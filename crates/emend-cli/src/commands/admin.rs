//! `emend admin`: tasks for operators that bypass the services: changes to the database itself, copies of it, and new tokens.

mod backup;

use std::path::PathBuf;

use clap::Subcommand;
use emend_core::{Epoch, InstallationId};
use emend_serve::auth::{TokenHash, mint};
use emend_store::{DatabaseUrl, sqlite::DataDir};
use serde_json::json;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::{FEEDBACK_FILE, LEARNING_FILE},
};

const NEW_EPOCH_HELP: &str = "\
A learning-svc database restored from a backup lacks revisions that search nodes have applied, and
will give their numbers to others. A new epoch makes every node take a snapshot of what the database
holds now. Without one, the difference is still found, by a replica that saw the lost revisions or
by a node whose digests differ, but later.

Restoring a backup, step by step:
  1. Stop feedback-svc and learning-svc, or `emend up`.
  2. Restore both databases from one backup. If each service has a database of its own,
     feedback-svc's backup must be the older one: what it had delivered is then in the other; what
     it had not, it delivers again, and that counts once.
  3. emend admin new-epoch --data-dir /var/lib/emend
     emend admin new-epoch --database-url postgres://emend:secret@db.example/emend
  4. emend doctor, with the same option, checks that the two databases agree.
  5. Start the services. Each node takes one snapshot (reason FOREIGN_EPOCH) and then equals the
     database.

On PostgreSQL it may be run while learning-svc serves: its replicas notice, and connected nodes get
the snapshot within their stream (reason NEW_EPOCH).

Exit codes: 0 done; 2 there is no database; 4 the data directory is in use.";

const ACCEPT_INSTALLATION_HELP: &str = "\
feedback-svc remembers to which installation of learning-svc it delivers. When another one answers,
as from a wrong or empty database, corrections wait in the outbox: see docs/operations.md. Accept
the other one only if it is meant to replace the old one for good. What waits in the outbox is
delivered to it; what the old one had learned is not there.

  emend admin accept-installation 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --data-dir /var/lib/emend
  emend admin accept-installation 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 \\
      --database-url postgres://emend:secret@db.example/emend

The id is in feedback-svc's log (INSTALLATION_MISMATCH), and in emend_installation_info of
learning-svc. On PostgreSQL it may be run while feedback-svc serves. Nodes are told separately.

Exit codes: 0 done; 2 there is no database; 4 the data directory is in use.";

/// The task.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

const BACKUP_HELP: &str = "\
It copies both databases of `emend up`, which may keep running, as they were at one moment: what
counts as delivered in feedback.db has been learned in learning.db, and what was learned is in
feedback.db. Submissions go on; learning waits for some milliseconds. Then it checks the copy as
`emend doctor` does.

  emend admin backup /var/backups/emend --data-dir /var/lib/emend
  emend admin backup /var/backups/emend --data-dir /var/lib/emend --keep 14

Each backup is a data directory, named by its time in UTC, such as 2026-11-25T18-00-00-250Z. To
restore one: stop `emend up`, put a copy of it in place of the data directory, then run `emend admin
new-epoch`. Copying the files of a running `emend up` by other means gives no sound backup. On
PostgreSQL use pg_dump, or a physical backup.

Exit codes: 0 done; 1 the copy has findings, and is kept as NAME.unsound; 2 there is no database;
4 another backup is being made; 5 the disk is full or can't be used.";

const TOKEN_HELP: &str = "\
The token is shown only this once. Keep it in a file that only its owner can read, for --token-file.
The hash goes into the file that --auth-config names, to the caller that the token authenticates.
What that caller may do is said there by its roles: reporter, subscriber, reviewer, operator, admin;
for programs evidence-writer (the evidence graph), and ingester (feedback-svc alone, for it can
speak for any caller). docs/security.md says which role each call needs.";

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a bearer token, and the hash by which a service recognises it
    #[command(after_help = TOKEN_HELP)]
    Token,
    /// Back up both databases of `emend up` while it runs, and check the copy
    #[command(after_help = BACKUP_HELP)]
    Backup(backup::Args),
    /// Begin a new epoch of the revision log, after a restore
    #[command(after_help = NEW_EPOCH_HELP)]
    NewEpoch {
        /// The data directory of `emend up`; it must not be in use
        #[arg(
            long,
            value_name = "DIR",
            default_value = "emend-data",
            env = "EMEND_DATA_DIR",
            conflicts_with = "database_url"
        )]
        data_dir: PathBuf,
        /// learning-svc's database, instead of a data directory: postgres://… or sqlite:PATH
        #[arg(long, value_name = "URL", env = "EMEND_DATABASE_URL", hide_env_values = true)]
        database_url: Option<DatabaseUrl>,
    },
    /// Deliver corrections to another installation of learning-svc from here on
    #[command(after_help = ACCEPT_INSTALLATION_HELP)]
    AcceptInstallation {
        /// The id of the installation
        #[arg(value_name = "INSTALLATION_ID", value_parser = installation)]
        installation: InstallationId,
        /// The data directory of `emend up`; it must not be in use
        #[arg(
            long,
            value_name = "DIR",
            default_value = "emend-data",
            env = "EMEND_DATA_DIR",
            conflicts_with = "database_url"
        )]
        data_dir: PathBuf,
        /// feedback-svc's database, instead of a data directory: postgres://… or sqlite:PATH
        #[arg(long, value_name = "URL", env = "EMEND_DATABASE_URL", hide_env_values = true)]
        database_url: Option<DatabaseUrl>,
    },
}

fn installation(text: &str) -> Result<InstallationId, String> {
    InstallationId::parse(text).map_err(|invalid| invalid.0)
}

/// Runs the task.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::Token => token(context, output),
        Action::Backup(args) => return backup::run(args, context, output).await,
        Action::NewEpoch {
            data_dir,
            database_url,
        } => new_epoch(data_dir, database_url, context, output).await,
        Action::AcceptInstallation {
            installation,
            data_dir,
            database_url,
        } => accept_installation(installation, data_dir, database_url, context, output).await,
    }
}

/// A database that is there, with the lock on its directory if it is a file: it must not be created.
fn held(database: &DatabaseUrl) -> Result<Option<DataDir>> {
    match database {
        DatabaseUrl::Postgres(_) => Ok(None),
        DatabaseUrl::Sqlite(path) if path.is_file() => DataDir::lock_parent(path)
            .map(Some)
            .map_err(|error| Failure::Conflict(error.to_string())),
        DatabaseUrl::Sqlite(path) => Err(Failure::usage(format!(
            "there is no database at {}",
            path.display()
        ))),
    }
}

async fn accept_installation(
    installation: InstallationId,
    data_dir: PathBuf,
    database_url: Option<DatabaseUrl>,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let database = database_url.unwrap_or_else(|| DatabaseUrl::sqlite(data_dir.join(FEEDBACK_FILE)));
    let _lock = held(&database)?;
    let accepted = feedback_svc::installation::accept(&database, installation, &context.entropy).await?;
    let before = accepted
        .before
        .map(|before| before.to_string())
        .unwrap_or_default();
    let json = json!({"installation": installation.to_string(), "oldInstallation": before});
    output.result(&json, || {
        format!("Corrections are delivered to installation {installation} from here on.")
    })
}

fn token(context: &Context, output: &mut Output<'_>) -> Result {
    let token = mint(&context.entropy);
    let hash = TokenHash::of(&token).to_string();
    if output.is_json() {
        return output.json_line(&json!({"token": token, "tokenSha256": hash}).to_string());
    }
    // Never broken into lines: both are copied.
    output.verbatim(&format!("{token}\ntoken_sha256 = [\"{hash}\"]\n"))
}

async fn new_epoch(
    data_dir: PathBuf,
    database_url: Option<DatabaseUrl>,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let database = database_url.unwrap_or_else(|| DatabaseUrl::sqlite(data_dir.join(LEARNING_FILE)));
    let _lock = held(&database)?;
    let store = learning_store::open(&database, 2).await;
    let store =
        store.map_err(|error| Failure::failed(format!("can't open the database {database}: {error}")))?;
    let Some(head) = store.find_head().await.map_err(anyhow::Error::from)? else {
        return Err(Failure::Conflict(format!(
            "the database {database} is empty: it has no log that could begin a new epoch. Restore the backup first"
        )));
    };
    let epoch = store
        .mint_epoch(head.epoch, Epoch(context.entropy.uuid_v4()))
        .await
        .map_err(anyhow::Error::from)?;
    let json =
        json!({"epoch": epoch.to_string(), "oldEpoch": head.epoch.to_string(), "revision": head.revision});
    output.result(&json, || {
        format!("The log is now at epoch {epoch}; every node will take a snapshot.")
    })
}
