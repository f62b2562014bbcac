//! Who has a candidate open. It only shows: anybody may decide all the same, and deciding ends it.

use std::{collections::HashMap, time::Duration};

use emend_base::Error;
use emend_core::CandidateId;
use emend_serve::auth::Access;
use learning_store::{
    contests::CandidateRecord,
    queue::{Lease, MAX_LEASES},
};

use super::{Opened, ReviewQueue};

/// When a refused reviewer may try again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

impl ReviewQueue {
    /// Opens a candidate, or goes on to have it open. Returns the lease in force, and whether it is the actor's own.
    pub async fn acquire(&self, opened: &Opened, access: &Access) -> Result<(Lease, bool), Error> {
        self.candidate(opened, access).await?;
        let lease = self.store.acquire_lease(opened.candidate, &opened.actor).await?;
        let lease = lease.ok_or_else(|| Error::ResourceExhausted {
            reason: "LEASES_FULL",
            message: format!("{MAX_LEASES} candidates are open already, which is the maximum"),
            retry_after: Some(RETRY_AFTER),
        })?;
        self.feed.wake();
        let is_own = lease.actor == opened.actor;
        Ok((lease, is_own))
    }

    /// Closes a candidate, if the actor has it open.
    pub async fn release(&self, opened: &Opened, access: &Access) -> Result<(), Error> {
        self.candidate(opened, access).await?;
        self.store.release_lease(opened.candidate, &opened.actor).await?;
        self.feed.wake();
        Ok(())
    }

    /// Who has these candidates open.
    pub async fn leases(&self, records: &[CandidateRecord]) -> Result<HashMap<CandidateId, Lease>, Error> {
        let ids: Vec<CandidateId> = records.iter().map(|record| record.candidate.id).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        Ok(self.store.leases(&ids).await?)
    }
}
