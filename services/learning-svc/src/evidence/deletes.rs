//! Deleting what backends upserted, with what hangs on it.
//!
//! Done in steps, each of which is one transaction and leaves a graph that is whole: edges first, then what they led from and to. What
//! people decided about a claim or edge that is deleted is in force no longer in the same transaction, and waits for one of the
//! same id as if it had never been known.

use emend_base::Error;
use emend_core::{Event, Kind, ResourceKey, Revision, Target};
use learning_store::evidence::{
    DeleteStep, DeletionBatch,
    graph::{By, Deletion},
};

use crate::{
    decisions::{numbering::RevisionChoice, open::Attribution},
    evidence::Evidence,
    failure::{Failure, refused, subject},
};

/// Elements in one transaction: what people decided about them is one revision.
const STEP: usize = 500;

/// How many elements were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeletedElements {
    pub(crate) pages: usize,
    pub(crate) fragments: usize,
    pub(crate) claims: usize,
    pub(crate) edges: usize,
}

impl DeletedElements {
    fn add(&mut self, step: DeleteStep, count: usize) {
        match step {
            DeleteStep::Edges => self.edges += count,
            DeleteStep::Fragments => self.fragments += count,
            DeleteStep::Claims => self.claims += count,
            DeleteStep::ClaimsFound => {}
            DeleteStep::Pages => self.pages += count,
        }
    }
}

impl Evidence {
    /// Deletes elements with what hangs on them. What is not known is not deleted.
    pub(crate) async fn delete(&self, deletion: &Deletion) -> Result<DeletedElements, Error> {
        let by = By {
            actor: deletion.actor.clone(),
            reason: deletion.reason.clone(),
            at: self.decisions.clock.now(),
        };
        let mut deleted = DeletedElements::default();
        while let Some(batch) = self.graph().next_to_delete(deletion, STEP).await? {
            let (count, revision) = self
                .decisions
                .retry(|| self.try_delete(deletion, &batch, &by))
                .await?;
            self.decisions.publish(revision).await;
            deleted.add(batch.step, count);
        }
        self.decisions.evidence_changed.notify_one();
        Ok(deleted)
    }

    /// Contests are locked first, also those of what nobody said anything about: whoever corrects it meanwhile finds that it is gone.
    async fn try_delete(
        &self,
        deletion: &Deletion,
        batch: &DeletionBatch,
        by: &By,
    ) -> Result<(usize, Revision), Failure> {
        let kind = match batch.step {
            DeleteStep::Edges => Some(Kind::EdgeLabel),
            DeleteStep::Claims => Some(Kind::ClaimState),
            DeleteStep::Fragments | DeleteStep::ClaimsFound | DeleteStep::Pages => None,
        };
        let key = |kind, id: &str| {
            ResourceKey::parse(deletion.namespace.as_str(), Some(kind), id, "", "").map_err(Error::from)
        };
        let mut keys = Vec::new();
        if let Some(kind) = kind {
            for (_, id) in &batch.elements {
                keys.push(key(kind, id.as_str())?);
            }
        }
        let mut tx = self.database.begin_whole().await?;
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        let evidence = tx.evidence();
        let gone = evidence.delete(&deletion.namespace, batch, by).await?;
        let attribution = Attribution::by(by.actor.clone(), by.reason.clone());
        if let Some(kind) = kind {
            for id in &gone {
                let key = key(kind, id.as_str())?;
                let contest = key.contest_id();
                let is_known = unit
                    .found(contest)
                    .is_some_and(|found| found.row.is_stored && found.row.target != Target::Unknown);
                if is_known {
                    unit.decide(contest, &Event::TargetGone, &attribution, RevisionChoice::Shared)
                        .map_err(|refusal| refused(&refusal, &subject(&key)))?;
                }
            }
        }
        unit.forget_untouched(&mut *tx).await?;
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok((gone.len(), written.revisions.last()))
    }
}
