//! Reading claims and edges as corrected.

use emend_base::Error;
use emend_core::{
    Namespace,
    evidence::{Combining, EvidenceId},
};

use crate::{
    app::App,
    evidence::store::{ClaimFilter, ClaimRecord, EdgeFilter, EdgePosition, EdgeRecord},
};

/// What was listed, each with its position, and whether there is more.
pub(crate) type Listed<P, T> = (Vec<(P, T)>, bool);

impl App {
    /// One claim.
    pub(crate) async fn claim(
        &self,
        namespace: &Namespace,
        claim: &EvidenceId,
    ) -> Result<ClaimRecord, Error> {
        let combining = self.combining(namespace).await?;
        let found = self.evidence()?.claim(namespace, claim, combining).await?;
        found.ok_or_else(|| Error::not_found("claim", claim.as_str()))
    }

    /// Claims after a position.
    pub(crate) async fn claims(
        &self,
        filter: &ClaimFilter,
        after: i64,
        limit: u32,
    ) -> Result<Listed<i64, ClaimRecord>, Error> {
        let combining = self.combining(&filter.namespace).await?;
        let found = self
            .evidence()?
            .claims(filter, combining, after, limit + 1)
            .await?;
        Ok(up_to(found, limit))
    }

    /// Edges after a position.
    pub(crate) async fn edges(
        &self,
        filter: &EdgeFilter,
        after: EdgePosition,
        limit: u32,
    ) -> Result<Listed<EdgePosition, EdgeRecord>, Error> {
        Ok(up_to(
            self.evidence()?.edges(filter, after, limit + 1).await?,
            limit,
        ))
    }

    /// What counts in a namespace where several edges come from one source.
    pub(super) async fn combining(&self, namespace: &Namespace) -> Result<Combining, Error> {
        let stored = self.evidence()?.stored_namespace_policy(namespace).await?;
        Ok(stored.policy.combining)
    }
}

pub(super) fn up_to<P, T>(mut found: Vec<(P, T)>, limit: u32) -> Listed<P, T> {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    (found, more)
}
