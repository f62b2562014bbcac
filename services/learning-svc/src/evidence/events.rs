//! Listing what was done to domains, claims and edges.

use emend_base::Error;

use crate::{
    app::App,
    evidence::{
        read::{Listed, up_to},
        store::{EventFilter, EventPosition, EventRecord},
    },
};

impl App {
    /// Events before a position, the newest first.
    pub(crate) async fn evidence_events(
        &self,
        filter: &EventFilter,
        before: Option<EventPosition>,
        limit: u32,
    ) -> Result<Listed<EventPosition, EventRecord>, Error> {
        let found = self.evidence()?.events(filter, before, limit + 1).await?;
        Ok(up_to(found, limit))
    }
}
