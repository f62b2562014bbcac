//! Which installation of learning-svc events are delivered to.
//!
//! The first that answers is remembered in the database, and from then on each batch names it. When another one answers,
//! as from a wrong or empty database, events stay in the outbox until the known one answers again, or until an operator
//! accepts the other: nothing is learned twice by accident, and nothing is lost. Submissions are stored all the while, and
//! replicas stay ready.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use emend_base::{Entropy, telemetry::metrics::prometheus::Gauge};
use emend_core::InstallationId;
use emend_store::{DatabaseUrl, StoreError};
use feedback_store::{
    self,
    ports::{Connected, InstallationStore},
};

/// Makes sure that the database was begun. An empty one is if it is a file, or if told to.
pub(crate) async fn begun(
    store: &dyn InstallationStore,
    database: &DatabaseUrl,
    init: bool,
) -> anyhow::Result<()> {
    if store.installation().await?.is_some() {
        return Ok(());
    }
    anyhow::ensure!(
        init || matches!(database, DatabaseUrl::Sqlite(_)),
        "the database {database} is empty. If this is the very first start, start once with --init \
         (EMEND_FEEDBACK_INIT=true), or `emend up` with --accept-new-installation. If it is not, this is the wrong \
         database, or the stored corrections are lost: correct its URL, or restore a backup"
    );
    Ok(store.begin().await?)
}

/// A change of the installation that events are delivered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The one before; none if learning-svc had never answered.
    pub before: Option<InstallationId>,
}

/// Makes feedback-svc deliver to that installation from here on, whichever it knew. On PostgreSQL its replicas may be
/// running; of a SQLite file the caller holds the lock on its directory. Fails if the database is empty.
pub async fn accept(
    database: &DatabaseUrl,
    installation: InstallationId,
    entropy: &Entropy,
) -> anyhow::Result<Accepted> {
    let store = feedback_store::open(database, 1, entropy)
        .await
        .with_context(|| format!("can't open the database {database}"))?;
    let known = store.installation().await?;
    let accepted = match known {
        Some(known) => store.accept(installation).await.map(|()| Accepted {
            before: known.delivers_to,
        }),
        None => anyhow::bail!("the database {database} is empty: no feedback-svc has started on it"),
    };
    store.close().await;
    Ok(accepted?)
}

/// The installation that this replica delivers to. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    store: Arc<dyn InstallationStore>,
    state: Arc<Mutex<State>>,
    /// 1 while another installation answers; by default nowhere visible.
    mismatch: Gauge,
}

#[derive(Debug, Default)]
struct State {
    /// As far as this replica has read it.
    known: Option<InstallationId>,
    /// Another one has answered last.
    mismatch: bool,
}

impl Target {
    /// Nothing is known until it is read from `store`.
    pub(crate) fn new(store: Arc<dyn InstallationStore>, mismatch: Gauge) -> Self {
        Self {
            store,
            state: Arc::default(),
            mismatch,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The installation that the next batch is meant for; none before learning-svc has answered for the first time.
    pub(crate) async fn known(&self) -> Result<Option<InstallationId>, StoreError> {
        if let Some(known) = self.state().known {
            return Ok(Some(known));
        }
        let known = self
            .store
            .installation()
            .await?
            .and_then(|begun| begun.delivers_to);
        self.state().known = known;
        Ok(known)
    }

    /// That a batch meant for `meant` was answered by `by`. Returns whether its results count: not if another
    /// installation was to answer.
    pub(crate) async fn answered(
        &self,
        meant: Option<InstallationId>,
        by: Option<InstallationId>,
    ) -> Result<bool, StoreError> {
        let expected = match (meant, by) {
            (None, Some(by)) => {
                let expected = self.store.deliver_to(by).await?;
                if expected == by {
                    tracing::info!(installation = %by, "events are delivered to this installation");
                }
                Some(expected)
            }
            _ => meant,
        };
        if by.is_some() && by != expected {
            self.refused(expected, by).await?;
            return Ok(false);
        }
        let mut state = self.state();
        state.known = expected;
        if std::mem::take(&mut state.mismatch) {
            tracing::info!(
                installation = expected.map(tracing::field::display),
                "the known installation answers again"
            );
        }
        self.mismatch.set(0);
        Ok(true)
    }

    /// That a batch meant for `meant` was refused because another installation answers. That is logged once, until the
    /// known one answers again.
    pub(crate) async fn refused(
        &self,
        meant: Option<InstallationId>,
        by: Option<InstallationId>,
    ) -> Result<(), StoreError> {
        // An operator may have accepted another one meanwhile, or will.
        self.state().known = None;
        if self.known().await? != meant {
            return Ok(());
        }
        let text = |id: Option<InstallationId>| id.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
        let mut state = self.state();
        if !std::mem::replace(&mut state.mismatch, true) {
            tracing::error!(
                delivers_to = text(meant),
                answering = text(by),
                "INSTALLATION_MISMATCH: another installation of learning-svc answers; events wait in the outbox. Correct \
                 --learning-addr or learning-svc's database, or accept it with `emend admin accept-installation`"
            );
        }
        state.known = None;
        self.mismatch.set(1);
        Ok(())
    }
}
