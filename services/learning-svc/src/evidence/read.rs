//! Reading claims and edges as corrected.

use emend_base::Error;
use emend_core::{
    Namespace,
    evidence::{Combining, EvidenceId},
};
use learning_store::evidence::{ClaimFilter, ClaimRecord, EdgeFilter, EdgePosition, EdgeRecord, Weighing};

use crate::evidence::Evidence;

/// Queries for one page of claims at most.
const BATCHES: usize = 10;

/// What was listed, each with its position, and whether there is more.
pub(crate) type Listed<P, T> = (Vec<(P, T)>, bool);

impl Evidence {
    /// One claim; `both`: with both readings of its edges.
    pub(crate) async fn claim(
        &self,
        namespace: &Namespace,
        claim: &EvidenceId,
        both: bool,
    ) -> Result<ClaimRecord, Error> {
        let combining = self.combining(namespace).await?;
        let weighing = Weighing { combining, both };
        let found = self.graph().claim(namespace, claim, weighing).await?;
        found.ok_or_else(|| Error::not_found("claim", claim.as_str()))
    }

    /// Claims after a position, at most `limit`, and where the next page begins if there is one. Of a status are those that have it by
    /// the sources that they have now: what is stored of one that is to be verified anew may be another.
    pub(crate) async fn claims(
        &self,
        filter: &ClaimFilter,
        after: i64,
        limit: u32,
    ) -> Result<(Vec<(i64, ClaimRecord)>, Option<i64>), Error> {
        let combining = self.combining(&filter.namespace).await?;
        let (mut found, mut last) = (Vec::new(), after);
        for _ in 0..BATCHES {
            let wanted = limit + 1 - u32::try_from(found.len()).unwrap_or(limit);
            let batch = self.graph().claims(filter, combining, last, wanted).await?;
            let is_last = batch.len() < wanted as usize;
            for (key, claim) in batch {
                if filter.status.is_none_or(|status| status == claim.status) {
                    if found.len() == limit as usize {
                        return Ok((found, Some(last)));
                    }
                    found.push((key, claim));
                }
                last = key;
            }
            if is_last {
                return Ok((found, None));
            }
        }
        Ok((found, Some(last)))
    }

    /// Edges after a position.
    pub(crate) async fn edges(
        &self,
        filter: &EdgeFilter,
        after: EdgePosition,
        limit: u32,
    ) -> Result<Listed<EdgePosition, EdgeRecord>, Error> {
        Ok(up_to(self.graph().edges(filter, after, limit + 1).await?, limit))
    }

    /// What counts in a namespace where several edges come from one source.
    pub(super) async fn combining(&self, namespace: &Namespace) -> Result<Combining, Error> {
        let stored = self.graph().stored_namespace_policy(namespace).await?;
        Ok(stored.policy.combining)
    }
}

pub(super) fn up_to<P, T>(mut found: Vec<(P, T)>, limit: u32) -> Listed<P, T> {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    (found, more)
}
