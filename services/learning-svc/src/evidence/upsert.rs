//! Taking evidence from backends, and giving effect to corrections that came before what they are about.
//!
//! An upsert is one transaction. Corrections that waited for what it brought take effect in another one right after it. A correction
//! that was stored while the upsert was under way may see nothing of it, nor the upsert of the correction: so a worker looks for
//! what waits though its target is known.

use emend_base::Error;
use emend_core::{
    Candidate, ContestId, Event, Kind, ResourceKey, Revision, Status, Target, Violations, candidate::Reason,
    evidence::EvidenceId,
};
use learning_store::{
    actor::Actor,
    evidence::{
        disagreements::{Disagreement, Part, Why},
        graph::{By, Upsert, Upserted},
    },
};

use crate::{
    decisions::{
        numbering::RevisionChoice,
        open::{Attribution, OpenContests},
    },
    evidence::Evidence,
    failure::{Failure, refused, subject},
};

/// Contests that are decided in one transaction at most: their changes are one revision.
const ARRIVING: u32 = 500;

/// What a request to upsert did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpsertResult {
    /// What it added.
    pub upserted: Upserted,
    /// The corrections that had waited for what it brought.
    pub arrived: Arrived,
}

/// Corrections that had waited for their targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrived {
    /// How many there are.
    pub corrections: usize,
    /// How many of them are in force now: of several about one target the newest.
    pub applied: usize,
}

impl std::ops::AddAssign for Arrived {
    fn add_assign(&mut self, other: Self) {
        self.corrections += other.corrections;
        self.applied += other.applied;
    }
}

impl Evidence {
    /// Adds nodes and edges, or replaces what is known of them, and gives effect to what waited for them.
    pub async fn upsert(&self, upsert: &Upsert) -> Result<UpsertResult, Error> {
        self.upsert_or_replace(upsert, None).await
    }

    /// The same, by somebody who may also replace what is otherwise as before: the domain of a page, the page of a fragment or claim,
    /// the ends of an edge.
    pub async fn replace(&self, upsert: &Upsert, actor: Actor) -> Result<UpsertResult, Error> {
        let by = By {
            actor,
            reason: String::new(),
            at: self.decisions.clock.now(),
        };
        self.upsert_or_replace(upsert, Some(&by)).await
    }

    async fn upsert_or_replace(&self, upsert: &Upsert, replaced: Option<&By>) -> Result<UpsertResult, Error> {
        let upserted = self
            .decisions
            .retry(|| self.try_upsert_evidence(upsert, replaced))
            .await?;
        let claims = upsert.claims.iter().map(|claim| claim.id.clone()).collect();
        let edges = upsert.edges.iter().map(|edge| edge.id.clone()).collect();
        let mut arrived = Arrived::default();
        for (kind, targets) in [(Kind::ClaimState, claims), (Kind::EdgeLabel, edges)] {
            let targets: Vec<EvidenceId> = targets;
            if targets.is_empty() {
                continue;
            }
            let waiting = self
                .graph()
                .contests_without_target(&upsert.namespace, kind, &targets)
                .await?;
            for waiting in waiting.chunks(ARRIVING as usize) {
                arrived += self.arrive(waiting).await?;
            }
        }
        self.decisions.evidence_changed.notify_one();
        Ok(UpsertResult { upserted, arrived })
    }

    async fn try_upsert_evidence(&self, upsert: &Upsert, replaced: Option<&By>) -> Result<Upserted, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let upserted = tx.evidence().upsert(upsert, replaced).await?;
        let upserted = upserted.map_err(|found| Error::from(violations(&found)))?;
        tx.commit().await?;
        Ok(upserted)
    }

    /// Gives effect to the next batch of what waits though its target is known, after the contest `after`. Returns the last one
    /// tried; none at the end of a pass.
    pub async fn arrive_once(&self, after: Option<ContestId>) -> Result<Option<ContestId>, Error> {
        let waiting = self.graph().contests_to_arrive(after, ARRIVING).await?;
        if !waiting.is_empty() {
            self.arrive(&waiting).await?;
        }
        Ok(waiting.last().map(ResourceKey::contest_id))
    }

    /// Decides contests whose target may be known now. Returns the corrections that had waited for it.
    async fn arrive(&self, waiting: &[ResourceKey]) -> Result<Arrived, Error> {
        let (arrived, revision) = self.decisions.retry(|| self.try_arrive(waiting)).await?;
        self.decisions.publish(revision).await;
        Ok(arrived)
    }

    async fn try_arrive(&self, waiting: &[ResourceKey]) -> Result<(Arrived, Revision), Failure> {
        let mut tx = self.database.begin_whole().await?;
        let mut unit = self.decisions.open(&mut *tx, waiting.iter().cloned()).await?;
        let attribution = Attribution::system();
        let mut arrived = Arrived::default();
        for key in waiting {
            let contest = key.contest_id();
            let waited = unit
                .found(contest)
                .is_some_and(|found| found.row.target == Target::Unknown);
            let is_known = unit
                .state(contest)
                .is_some_and(|state| state.target != Target::Unknown);
            if waited && is_known {
                let with = |unit: &OpenContests, is: fn(&Candidate) -> bool| {
                    let state = unit.state(contest);
                    state.map_or(0, |state| {
                        state.candidates.iter().filter(|candidate| is(candidate)).count()
                    })
                };
                let corrections = with(&unit, |candidate| {
                    candidate.reason == Some(Reason::TargetNotFound)
                });
                unit.decide(
                    contest,
                    &Event::TargetArrived,
                    &attribution,
                    RevisionChoice::Shared,
                )
                .map_err(|refusal| refused(&refusal, &subject(key)))?;
                arrived += Arrived {
                    corrections,
                    applied: with(&unit, |candidate| candidate.status == Status::Applied),
                };
            }
        }
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok((arrived, written.revisions.last()))
    }
}

/// What is wrong with an upsert that disagrees with what is known, by the fields of the request.
fn violations(found: &[Disagreement]) -> Violations {
    let mut violations = Violations::new();
    for Disagreement { part, index, why } in found {
        let (field, keeps) = match part {
            Part::PageHost => (format!("pages[{index}].domain"), "a page keeps its domain"),
            Part::FragmentPage => (format!("fragments[{index}].page_id"), "a fragment keeps its page"),
            Part::ClaimPage => (format!("claims[{index}].page_id"), "a claim keeps its page"),
            Part::EdgeSource => (format!("edges[{index}].source"), "an edge keeps its ends"),
            Part::EdgeTarget => (format!("edges[{index}].target"), "an edge keeps its ends"),
        };
        let wrong = match why {
            Why::Unknown(node) => format!("is not known, and not in this request: {node}"),
            Why::OtherHost { before } => {
                format!("must be as before, {before}, unless `replace` is set: {keeps}")
            }
            Why::Other => format!("must be as before, unless `replace` is set: {keeps}"),
            Why::OtherSort => "must be a node of the same sort as before".to_owned(),
        };
        violations.add(field, wrong);
    }
    violations
}

#[cfg(test)]
mod tests {
    use emend_core::evidence::{EvidenceId, NodeRef, NodeType};

    use super::*;

    #[test]
    fn what_disagrees_is_told_by_its_field_and_what_it_was() {
        let id = EvidenceId::parse("p9").unwrap();
        let sort = NodeType::Page;
        let before = "a.example".to_owned();
        for (part, why, field, wrong) in [
            (
                Part::PageHost,
                Why::OtherHost { before },
                "pages[2].domain",
                "must be as before, a.example, unless `replace` is set: a page keeps its domain",
            ),
            (
                Part::ClaimPage,
                Why::Unknown(NodeRef { sort, id }),
                "claims[2].page_id",
                "is not known, and not in this request: page:p9",
            ),
            (
                Part::FragmentPage,
                Why::Other,
                "fragments[2].page_id",
                "must be as before, unless `replace` is set: a fragment keeps its page",
            ),
            (
                Part::EdgeSource,
                Why::Other,
                "edges[2].source",
                "must be as before, unless `replace` is set: an edge keeps its ends",
            ),
            (
                Part::EdgeTarget,
                Why::OtherSort,
                "edges[2].target",
                "must be a node of the same sort as before",
            ),
        ] {
            let mut told = Violations::new();
            told.add(field, wrong);
            let index = 2;
            assert_eq!(violations(&[Disagreement { part, index, why }]), told);
        }
    }
}
