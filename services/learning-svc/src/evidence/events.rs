//! Listing what was done to domains, claims and edges.

use emend_base::Error;
use learning_store::evidence::{EventFilter, EventPosition, EventRecord};

use crate::evidence::{
    Evidence,
    read::{Listed, up_to},
};

impl Evidence {
    /// Events before a position, the newest first.
    pub(crate) async fn events(
        &self,
        filter: &EventFilter,
        before: Option<EventPosition>,
        limit: u32,
    ) -> Result<Listed<EventPosition, EventRecord>, Error> {
        let found = self.graph().events(filter, before, limit + 1).await?;
        Ok(up_to(found, limit))
    }
}
