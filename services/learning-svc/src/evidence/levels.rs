//! Bringing the levels of hosts up to date after rules changed: in batches, resumable, on any number of replicas.

use emend_base::Error;
use learning_store::evidence::Refreshed;

use crate::{evidence::Evidence, failure::Failure};

/// Hosts at most in one transaction, during which nobody adds evidence to their namespace.
const HOSTS: usize = 1_000;
/// Domains at most that one transaction marks after a policy changed.
const DOMAINS: u32 = 1_000;

impl Evidence {
    /// Brings the next batch of hosts up to date below the names whose rules changed first. None: no name is left.
    pub async fn refresh_levels_once(&self) -> Result<Option<Refreshed>, Error> {
        Ok(self.decisions.retry(|| self.try_refresh_levels(HOSTS)).await?)
    }

    async fn try_refresh_levels(&self, hosts: usize) -> Result<Option<Refreshed>, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let evidence = tx.evidence();
        let refreshed = evidence.refresh_levels(hosts).await?;
        tx.commit().await?;
        Ok(refreshed)
    }

    /// Marks the next batch of domains of a namespace whose policy changed, so that they are verified anew. None: nothing is left.
    pub(super) async fn mark_domains_once(&self) -> Result<Option<u64>, Error> {
        Ok(self.decisions.retry(|| self.try_mark_domains()).await?)
    }

    async fn try_mark_domains(&self) -> Result<Option<u64>, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let evidence = tx.evidence();
        let marked = evidence.mark_domains_of_policies(DOMAINS).await?;
        tx.commit().await?;
        Ok(marked)
    }
}
