//! Whether the database answers: one of the checks on which readiness hangs.

use std::{sync::Arc, time::Duration};

use emend_runtime::health::Readiness;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::store::Store;

/// The check that the database answers.
pub(crate) const DATABASE: &str = "database";
/// The check that changed policies are worked on.
pub(crate) const REEVALUATION: &str = "reevaluation";

/// How often it is asked.
const PERIOD: Duration = Duration::from_secs(2);
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the database until `soft` is cancelled.
pub(crate) async fn watch_database(store: Arc<dyn Store>, readiness: Readiness, soft: CancellationToken) {
    loop {
        let answers = matches!(timeout(PATIENCE, store.ping()).await, Ok(Ok(())));
        readiness.set(DATABASE, answers);
        tokio::select! {
            () = soft.cancelled() => return,
            () = sleep(PERIOD) => {}
        }
    }
}
