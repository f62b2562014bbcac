//! Many new resources at once, in SQL.
//!
//! What all rows have in common is bound once for a statement, and what follows from rows that are there already is
//! selected from them.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use emend_core::{ContestId, Kind, Revision, Target, key_hash};
use emend_store::sql::Statement;
use emend_store::{CorruptRow, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use crate::database::bytes;
use crate::database::new_keys;
use crate::database::push_contests;
use crate::work::Work;
use crate::{
    Keyed,
    batches::{batches, in_bulk},
    codes, conflict,
    integers::{checksum, saturated, small},
    resources::{BulkRepository, FreshKind, FreshRow, PER_REVISION},
    rows::optional_id,
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl BulkRepository for Work {
    async fn known(&mut self, contests: &[ContestId]) -> Result<HashSet<ContestId>> {
        let mut known = HashSet::new();
        for contests in in_bulk(contests) {
            let mut query = Statement::new("SELECT contest_id, contest FROM contests WHERE ");
            push_contests(&mut query, contests.iter().copied());
            for (id, contest) in self.rows::<(Vec<u8>, i64)>(query).await? {
                let id = Uuid::from_slice(&id)
                    .map_err(|error| CorruptRow::new("contests", "contest_id", contest, error))?;
                known.insert(ContestId(id));
            }
        }
        Ok(known)
    }

    async fn now(&mut self) -> Result<Timestamp> {
        self.database_time().await
    }

    async fn create(
        &mut self,
        rows: &[FreshRow],
        kinds: &HashMap<Kind, FreshKind>,
        decided_at: Timestamp,
        created_at: Timestamp,
    ) -> Result<()> {
        let keys = new_keys(self.transaction().await?, Keyed::Contests, rows.len()).await?;
        for (row, key) in rows.iter().zip(&keys) {
            self.keys.note_contest(row.contest, *key);
        }
        let rows: Vec<(i64, &FreshRow)> = keys.into_iter().zip(rows).collect();
        for rows in in_bulk(&rows) {
            let mut query = Statement::new(
                "INSERT INTO contests (contest, contest_id, namespace, kind, key, key_hash, qualifier, policy_version, \
                 target_known, user_id, pinned, pending, current_version, last_version, highest_accept_order, created_at) \
                 SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, '', 1, 0, 0, 0, ",
            );
            query.push_bind(decided_at.as_microsecond());
            query.push(", ").push_bind(created_at.as_microsecond());
            query.push(" FROM (");
            query.push_values(rows, |mut row, (contest, fresh)| {
                let key = &fresh.key;
                row.push_bind(*contest)
                    .push_bind(bytes(fresh.contest.0))
                    .push_bind(key.namespace.as_str())
                    .push_bind(key.kind.number())
                    .push_bind(key.key.as_str())
                    .push_bind(key_hash(key.key.as_str()))
                    .push_bind(key.qualifier.as_str())
                    .push_bind(
                        kinds
                            .get(&key.kind)
                            .map_or(0, |kind| kind.candidate.policy_version),
                    )
                    .push_bind(Target::at_first(key.kind).number());
            });
            query.push(") AS fresh WHERE true ON CONFLICT DO NOTHING");
            if self.run(query).await? < rows.len() as u64 {
                return Err(conflict("a contest was created by somebody else"));
            }
        }
        Ok(())
    }

    async fn save(
        &mut self,
        rows: &[FreshRow],
        kinds: &HashMap<Kind, FreshKind>,
        first: Revision,
        committed_at: i64,
    ) -> Result<()> {
        let keys = new_keys(self.transaction().await?, Keyed::Candidates, rows.len()).await?;
        let mut placed = Vec::with_capacity(rows.len());
        for (candidate, row) in keys.into_iter().zip(rows) {
            placed.push(Placed {
                candidate,
                contest: self.keys.contest(row.contest)?,
                row,
            });
        }
        let mut revision = first;
        for rows in placed.chunks(PER_REVISION) {
            save_revision(self, kinds, rows, revision).await?;
            revision = Revision(revision.0 + 1);
        }
        save_what_follows(self, kinds, (first, revision), committed_at).await
    }
}

/// A row with the keys under which it is stored.
#[derive(Clone, Copy)]
struct Placed<'a> {
    candidate: i64,
    contest: i64,
    row: &'a FreshRow,
}

/// Writes the candidates that one revision applies, and its changes.
async fn save_revision(
    work: &mut Work,
    kinds: &HashMap<Kind, FreshKind>,
    rows: &[Placed<'_>],
    revision: Revision,
) -> Result<()> {
    let mut of_kinds: BTreeMap<(&str, i32), Vec<Placed<'_>>> = BTreeMap::new();
    for placed in rows {
        let key = &placed.row.key;
        let of_kind = of_kinds.entry((key.namespace.as_str(), key.kind.number()));
        of_kind.or_default().push(*placed);
    }
    let seen: Vec<(&str, i32)> = of_kinds.keys().copied().collect();
    for seen in batches(&seen) {
        let mut query = Statement::new("INSERT INTO revision_kinds (namespace, kind, revision) ");
        query.push_values(seen, |mut row, (namespace, kind)| {
            row.push_bind(*namespace).push_bind(*kind).push_bind(revision.0);
        });
        work.run(query).await?;
    }
    for rows in of_kinds.values() {
        let shared = rows.first().and_then(|placed| kinds.get(&placed.row.key.kind));
        if let Some(shared) = shared {
            save_candidates(work, shared, rows, revision).await?;
        }
    }
    let rows: Vec<(usize, &Placed<'_>)> = rows.iter().enumerate().collect();
    for rows in in_bulk(&rows) {
        let mut query = Statement::new(
            "INSERT INTO changes (ordinal, contest, value, value_checksum, candidate, revision, before_value, feedback_id, \
             feedback_received_at, traceparent, policy_version) SELECT column1, column2, column3, column4, column5, ",
        );
        query.push_bind(revision.0);
        query.push(", NULL, NULL, 0, '', 0 FROM (");
        query.push_values(rows, |mut values, (ordinal, placed)| {
            values
                .push_bind(i32::try_from(*ordinal).unwrap_or(i32::MAX))
                .push_bind(placed.contest)
                .push_bind(placed.row.value.to_vec())
                .push_bind(checksum(&placed.row.value))
                .push_bind(placed.candidate);
        });
        query.push(") AS fresh");
        work.run(query).await?;
    }
    Ok(())
}

/// Writes candidates of one kind in one namespace, which a revision applies: their values are not written again beside its
/// changes.
async fn save_candidates(
    work: &mut Work,
    shared: &FreshKind,
    rows: &[Placed<'_>],
    revision: Revision,
) -> Result<()> {
    let FreshKind { candidate, kept, .. } = shared;
    for rows in in_bulk(rows) {
        let Some(Placed {
            row: FreshRow { key, .. },
            ..
        }) = rows.first()
        else {
            continue;
        };
        let mut query = Statement::new(
            "INSERT INTO candidates (candidate, contest, candidate_id, namespace, kind, status, status_reason, \
             origin, edited_from, hold, decision_reason, decided_caller, decided_for, occurrences, reporters, net, risk, \
             threshold, policy_version, applied_threshold, applied_revision, created_at, updated_at, transitions, version, \
             ruling_order, ruling_roles, ruling_approved, ruling_taken_back, proposal_version, proposal_base, \
             proposal_verdict, proposal_decided_at) SELECT column1, column2, column3, ",
        );
        let mut values = query.separated(", ");
        values
            .push_bind(key.namespace.as_str())
            .push_bind(key.kind.number())
            .push_bind(codes::status(candidate.status))
            .push_bind(codes::reason(candidate.reason))
            .push_bind(codes::origin(candidate.origin))
            .push_bind(optional_id(candidate.edited_from.map(|id| id.0)))
            .push_bind(codes::hold(candidate.hold))
            .push_bind(candidate.decision_reason.as_deref().unwrap_or_default())
            .push_bind(kept.decided_by.caller.as_str())
            .push_bind(kept.decided_by.on_behalf_of.as_str())
            .push_bind(saturated(candidate.occurrences))
            .push_bind(saturated(candidate.reporters))
            .push_bind(candidate.net)
            .push_bind(codes::risk(candidate.risk))
            .push_bind(small(candidate.threshold))
            .push_bind(candidate.policy_version)
            .push_bind(small(candidate.applied_threshold.unwrap_or(0)))
            .push_bind(revision.0)
            .push_bind(kept.created_at.as_microsecond())
            .push_bind(kept.updated_at.as_microsecond())
            .push_bind(kept.transitions)
            .push_bind(kept.version);
        query.push(", 0, '', 0, 0, 0, 0, 0, 0 FROM (");
        query.push_values(rows, |mut values, placed| {
            values
                .push_bind(placed.candidate)
                .push_bind(placed.contest)
                .push_bind(bytes(placed.row.candidate.0));
        });
        query.push(") AS fresh");
        work.run(query).await?;
    }
    Ok(())
}

/// Writes what follows from the changes of some revisions (the last of them excluded): what applies, and how its candidates came to be
/// applied.
async fn save_what_follows(
    work: &mut Work,
    kinds: &HashMap<Kind, FreshKind>,
    (first, beyond): (Revision, Revision),
    committed_at: i64,
) -> Result<()> {
    let mut query = Statement::new(
        "INSERT INTO resources (contest, revision, value, value_checksum, committed_at) \
         SELECT contest, revision, NULL, value_checksum, ",
    );
    query.push_bind(committed_at);
    push_revisions(&mut query, " FROM changes AS h WHERE", first, beyond);
    work.run(query).await?;
    for (kind, shared) in kinds {
        for transition in &shared.transitions {
            let mut query = Statement::new(
                "INSERT INTO transitions (candidate, sequence, from_status, to_status, cause, reason, caller, \
                 on_behalf_of, made_at, policy_version, revision) SELECT h.candidate, ",
            );
            let mut values = query.separated(", ");
            values
                .push_bind(transition.sequence)
                .push_bind(transition.from.map_or(0, codes::status))
                .push_bind(codes::status(transition.to))
                .push_bind(transition.cause.number())
                .push_bind(transition.reason.as_str())
                .push_bind(transition.actor.caller.as_str())
                .push_bind(transition.actor.on_behalf_of.as_str())
                .push_bind(transition.at.as_microsecond())
                .push_bind(transition.policy_version);
            query.push(
                ", h.revision FROM changes AS h JOIN contests AS c ON c.contest = h.contest WHERE c.kind = ",
            );
            query.push_bind(kind.number());
            push_revisions(&mut query, " AND", first, beyond);
            work.run(query).await?;
        }
    }
    Ok(())
}

/// Appends a condition on the revision of a change `h`.
fn push_revisions(query: &mut Statement, before: &str, first: Revision, beyond: Revision) {
    query.push(before).push(" h.revision >= ").push_bind(first.0);
    query.push(" AND h.revision < ").push_bind(beyond.0);
}
