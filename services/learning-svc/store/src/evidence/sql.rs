//! The evidence graph in a unit of work, in SQL.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use emend_core::{
    CandidateId, ContestId, EdgeRelation, Kind, Namespace, ResourceKey, Target,
    evidence::{Covering, EvidenceId},
};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::{
    batches::batches,
    evidence::{
        DeletionBatch, EventWrite, EvidenceAction, EvidenceRepository, RulingRepository, RulingWrite,
        deletes_sql,
        disagreements::Disagreement,
        graph::{By, Upsert, Upserted},
        rows::reversed,
        upsert_sql,
    },
    rows::optional_id,
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl EvidenceRepository for Work {
    async fn upsert(
        &mut self,
        upsert: &Upsert,
        replaced: Option<&By>,
    ) -> Result<std::result::Result<Upserted, Vec<Disagreement>>> {
        upsert_sql::upsert(self, upsert, replaced).await
    }

    async fn delete(
        &mut self,
        namespace: &Namespace,
        batch: &DeletionBatch,
        by: &By,
    ) -> Result<Vec<EvidenceId>> {
        deletes_sql::delete(self, namespace, batch, by).await
    }
}

#[async_trait]
impl RulingRepository for Work {
    async fn known_targets(&mut self, keys: &[&ResourceKey]) -> Result<HashMap<ContestId, Target>> {
        let mut known = HashMap::new();
        for (kind, find) in [(Kind::ClaimState, KNOWN_CLAIMS), (Kind::EdgeLabel, KNOWN_EDGES)] {
            let of_kind: Vec<&ResourceKey> = keys.iter().copied().filter(|key| key.kind == kind).collect();
            for of_kind in batches(&of_kind) {
                let found = self.rows::<(String, String, i32)>(named(find, of_kind)).await?;
                let found: HashMap<(&str, &str), Target> = found
                    .iter()
                    .map(|(namespace, target, given)| {
                        // Nobody corrects a citation.
                        let is_citation = *given == EdgeRelation::Cites.number();
                        let found = if is_citation {
                            Target::NotCorrectable
                        } else {
                            Target::Known
                        };
                        ((namespace.as_str(), target.as_str()), found)
                    })
                    .collect();
                known.extend(of_kind.iter().filter_map(|key| {
                    let target = found.get(&(key.namespace.as_str(), key.key.as_str()))?;
                    Some((key.contest_id(), *target))
                }));
            }
        }
        Ok(known)
    }

    async fn save_rulings(&mut self, rulings: &[RulingWrite]) -> Result<()> {
        let about =
            |kind| -> Vec<&RulingWrite> { rulings.iter().filter(|ruling| ruling.key.kind == kind).collect() };
        for rulings in batches(&about(Kind::ClaimState)) {
            self.rule(CLAIMS_RULED, rulings).await?;
        }
        for rulings in batches(&about(Kind::EdgeLabel)) {
            // Claims before edges, as in an upsert.
            self.rule(CLAIMS_OF_EDGES, rulings).await?;
            self.rule(EDGES_RULED, rulings).await?;
        }
        Ok(())
    }

    async fn note_rules(&mut self, changed: &[(Namespace, String)]) -> Result<()> {
        // Also where there is no evidence: an upsert under way may be adding the first of it, by the rules of before.
        let spaces: BTreeSet<&str> = changed.iter().map(|(namespace, _)| namespace.as_str()).collect();
        for spaces in batches(&spaces.into_iter().collect::<Vec<_>>()) {
            let mut query = Statement::new("INSERT INTO evidence_spaces (namespace, rules) ");
            query.push_values(spaces, |mut row, namespace| {
                row.push_bind(*namespace).push("1");
            });
            query.push(" ON CONFLICT (namespace) DO UPDATE SET rules = evidence_spaces.rules + 1");
            self.run(query).await?;
        }
        for changed in batches(changed) {
            let mut query = Statement::new(
                "INSERT INTO evidence_stale_names (space, reversed, done) SELECT s.space, written.column2, '' FROM (",
            );
            query.push_values(changed, |mut row, (namespace, pattern)| {
                row.push_bind(namespace.as_str())
                    .push_bind(reversed(Covering::of(pattern).name));
            });
            query.push(") AS written JOIN evidence_spaces AS s ON s.namespace = written.column1");
            self.run(query).await?;
        }
        Ok(())
    }

    async fn save_events(&mut self, events: &[EventWrite]) -> Result<()> {
        // Those of one transaction are written together: what is in none of them is stored.
        let mut tasks: HashMap<CandidateId, &str> = HashMap::new();
        for events in batches(events) {
            let mut rows = Vec::with_capacity(events.len());
            for event in events {
                let known = event.correction.and_then(|correction| tasks.get(&correction));
                let task = if event.task.is_empty() {
                    known.copied().unwrap_or_default()
                } else {
                    &event.task
                };
                if let (EvidenceAction::Corrected, Some(candidate)) = (event.action, event.candidate) {
                    tasks.insert(candidate, task);
                }
                rows.push((self.keys.contest(event.key.contest_id())?, task, event));
            }
            let mut query = Statement::new(
                "INSERT INTO evidence_events (namespace, contest, element_sort, element_id, action, task_id, caller, on_behalf_of, reason, \
                 value_before, value_after, proposed, feedback_id, candidate_id, revision, made_at) ",
            );
            query.push_values(rows, |mut row, (contest, task, event)| {
                row.push_bind(event.key.namespace.as_str())
                    .push_bind(contest)
                    .push("0, ''")
                    .push_bind(event.action.number())
                    .push("COALESCE(NULLIF(")
                    .push_bind_unseparated(task)
                    .push_unseparated(TASK_OF_CORRECTION)
                    .push_bind_unseparated(contest)
                    .push_unseparated(" AND e.candidate_id = ")
                    .push_bind_unseparated(optional_id(event.correction.map(|correction| correction.0)))
                    .push_unseparated(" ORDER BY e.event LIMIT 1), '')")
                    .push_bind(event.actor.caller.as_str())
                    .push_bind(event.actor.on_behalf_of.as_str())
                    .push_bind(event.reason.as_str())
                    .push_bind(event.before.as_str())
                    .push_bind(event.after.as_str())
                    .push_bind(event.proposed.as_str())
                    .push_bind(optional_id(event.feedback.map(|feedback| feedback.0)))
                    .push_bind(optional_id(event.candidate.map(|candidate| candidate.0)))
                    .push_bind(event.revision.0)
                    .push_bind(event.at.as_microsecond());
            });
            self.run(query).await?;
        }
        Ok(())
    }
}

/// The task of a correction is that of the event by which it was recorded.
const TASK_OF_CORRECTION: &str =
    ", ''), (SELECT e.task_id FROM evidence_events AS e WHERE e.action = 1 AND e.contest = ";

// From what is asked for to what is there: SQLite would pass over all claims and edges instead.
pub(crate) const KNOWN_CLAIMS: [&str; 2] = [
    "SELECT s.namespace, t.claim_id, 0 FROM (",
    ") AS asked CROSS JOIN evidence_spaces AS s CROSS JOIN evidence_claims AS t \
     WHERE s.namespace = asked.column1 AND t.space = s.space AND t.claim_id = asked.column2",
];
pub(crate) const KNOWN_EDGES: [&str; 2] = [
    "SELECT s.namespace, t.edge_id, t.given FROM (",
    ") AS asked CROSS JOIN evidence_spaces AS s CROSS JOIN evidence_edges AS t \
     WHERE s.namespace = asked.column1 AND t.space = s.space AND t.edge_id = asked.column2",
];

/// The claims or edges that keys name.
pub(crate) fn named([before, after]: [&'static str; 2], keys: &[&ResourceKey]) -> Statement {
    let mut query = Statement::new(before);
    query.push_values(keys, |mut row, key| {
        row.push_bind(key.namespace.as_str().to_owned())
            .push_bind(key.key.as_str().to_owned());
    });
    query.push(after);
    query
}

/// A claim that is not rejected may be verified: that is to be found out.
pub(crate) const CLAIMS_RULED: [&str; 2] = [
    "UPDATE evidence_claims SET ruled = written.column3, stale = 1, \
     status = CASE WHEN written.column3 = 1 OR (written.column3 = 0 AND patterns <> '[]') THEN 3 \
     WHEN status = 3 THEN 1 ELSE status END FROM (",
    ") AS written JOIN evidence_spaces AS s ON s.namespace = written.column1 \
     WHERE evidence_claims.space = s.space AND evidence_claims.claim_id = written.column2",
];

pub(crate) const CLAIMS_OF_EDGES: [&str; 2] = [
    "UPDATE evidence_claims SET stale = 1 WHERE claim IN (SELECT e.target FROM (",
    ") AS written JOIN evidence_spaces AS s ON s.namespace = written.column1 \
     JOIN evidence_edges AS e ON e.space = s.space AND e.edge_id = written.column2 WHERE e.target_sort = 3)",
];

pub(crate) const EDGES_RULED: [&str; 2] = [
    "UPDATE evidence_edges SET ruled = written.column3, ruled_at = written.column4, \
     ruled_by = (SELECT b.feedback_id FROM ballots AS b WHERE b.contest = written.column5 \
     AND b.candidate_id = written.column6), relation = CASE WHEN written.column3 = 0 THEN given ELSE written.column3 END, \
     weight = CASE WHEN written.column3 <> 0 AND written.column3 <> (CASE WHEN label = 0 THEN given ELSE label END) \
     THEN 1000000 ELSE model_weight END FROM (",
    ") AS written JOIN evidence_spaces AS s ON s.namespace = written.column1 \
     WHERE evidence_edges.space = s.space AND evidence_edges.edge_id = written.column2 AND evidence_edges.given <> 4",
];

/// A statement over rows of namespace, target, what is ruled, when, in which contest and by which candidate.
pub(crate) fn ruled([before, after]: [&'static str; 2], rulings: &[(i64, &RulingWrite)]) -> Statement {
    let mut query = Statement::new(before);
    query.push_values(rulings, |mut row, (contest, ruling)| {
        row.push_bind(ruling.key.namespace.as_str().to_owned())
            .push_bind(ruling.key.key.as_str().to_owned())
            .push_bind(ruling.ruled)
            .push_bind(ruling.accept_order.0)
            .push_bind(*contest)
            .push_bind(optional_id(ruling.candidate.map(|candidate| candidate.0)));
    });
    query.push(after);
    query
}

impl Work {
    async fn rule(&mut self, statement: [&'static str; 2], rulings: &[&RulingWrite]) -> Result<()> {
        let mut rows = Vec::with_capacity(rulings.len());
        for ruling in rulings {
            rows.push((self.keys.contest(ruling.key.contest_id())?, *ruling));
        }
        self.run(ruled(statement, &rows)).await?;
        Ok(())
    }
}
