//! The review queue in figures.

use emend_base::Error;
use emend_core::{Kind, Namespace};
use jiff::Timestamp;
use learning_store::queue::{QueueCount, day};

use super::ReviewQueue;

/// The review queue of a namespace in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    /// What happened each day, by day and kind.
    pub days: Vec<QueueCount>,
    /// How much waits of each kind, and since when the oldest was proposed.
    pub waiting: Vec<(Kind, u64, Timestamp)>,
    /// The kinds of which nothing is learned now.
    pub frozen: Vec<Kind>,
}

impl ReviewQueue {
    /// The figures of the last `days` UTC days, today included.
    pub async fn stats(&self, namespace: &Namespace, days: u32) -> Result<QueueStats, Error> {
        let first = day(self.decisions.clock.now()) - i64::from(days) + 1;
        let mut waiting = self.store.waiting(namespace).await?;
        waiting.retain(|(kind, ..)| *kind != Kind::Profile);
        Ok(QueueStats {
            days: self.store.queue_days(namespace, first).await?,
            waiting,
            frozen: self.store.frozen(namespace).await?,
        })
    }
}
