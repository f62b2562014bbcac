//! Dead letters, the events that learning-svc refused for good: listing and redriving them.

use std::sync::Arc;

use emend_base::Error;
use emend_core::Namespace;
use feedback_store::{
    ports::OutboxStore,
    records::outbox::{DeadLetter, DeadLetterPosition, DeadLetterQuery, Redrive},
};

use crate::{outbox::dispatch::Dispatch, page::Page};

/// How many dead letters are made due in one transaction.
const REDRIVEN_AT_ONCE: u32 = 500;

/// Lists and redrives dead letters.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) dispatch: Dispatch,
}

impl DeadLetters {
    /// A page of dead letters, oldest first.
    pub(crate) async fn list(&self, query: DeadLetterQuery) -> Result<Page<DeadLetter>, Error> {
        let limit = query.limit;
        let query = DeadLetterQuery {
            limit: limit.saturating_add(1),
            ..query
        };
        Ok(Page::cut(self.store.dead_letters(&query).await?, limit))
    }

    /// Makes dead letters due and has them sent; returns how many.
    pub(crate) async fn redrive(&self, which: &Redrive) -> Result<u64, Error> {
        match which {
            Redrive::Namespace(namespace) => self.redrive_all(namespace).await,
            Redrive::Events(events, namespace) => {
                let redriven = self.store.redrive(events, namespace.as_ref()).await?;
                if redriven > 0 {
                    self.dispatch.due();
                }
                Ok(redriven)
            }
        }
    }

    /// In batches, so that nobody waits for long. Stops after as many dead letters as there were at the start: those
    /// that fail again meanwhile, or are new, come after them and are left to the next call.
    async fn redrive_all(&self, namespace: &Namespace) -> Result<u64, Error> {
        let there = self.store.backlog().await?.dead_letters;
        let (mut seen, mut redriven, mut after) = (0, 0, None);
        while seen < there {
            let query = DeadLetterQuery {
                namespace: Some(namespace.clone()),
                after,
                limit: u32::try_from(there - seen)
                    .map_or(REDRIVEN_AT_ONCE, |left| left.min(REDRIVEN_AT_ONCE)),
            };
            let part = self.store.dead_letters(&query).await?;
            let Some(last) = part.last() else {
                break;
            };
            after = Some(DeadLetterPosition {
                dead_at: last.dead_at,
                event_id: last.event_id,
            });
            seen += part.len() as u64;
            let events: Vec<_> = part.iter().map(|letter| letter.event_id).collect();
            redriven += self.store.redrive(&events, Some(namespace)).await?;
            self.dispatch.due();
        }
        Ok(redriven)
    }
}
