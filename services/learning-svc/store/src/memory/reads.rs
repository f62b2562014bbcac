//! What reviewers, auditors and re-evaluation read, from memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::Ordering,
};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{
    Ballot, CandidateId, Cause, ContestId, FeedbackId, Kind, Namespace, Revision, Status,
    digest::value_checksum,
};
use emend_store::Connections;
use jiff::{SignedDuration, Timestamp};

use super::{
    MemoryStore, Result, State, micros,
    tables::{Tables, kept_value, timestamp},
    work::Work,
};
use crate::{
    Store, UnitOfWork, codes,
    contents::{Contents, ContentsBallot},
    contests::{
        CandidateFilter, CandidateOrder, CandidatePosition, CandidateRecord, ContestStore, FeedbackRecord,
        Listing, Place, ToReevaluate, TransitionWrite, UndoableRecord,
    },
    log::{ChangeRecord, ChangeWrite, RevisionFilter, RevisionRecord},
    policies::{PolicyKey, PolicyStore, StoredPolicy},
    standings::{StandingStore, Supported},
};

#[async_trait]
impl ContestStore for MemoryStore {
    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>> {
        self.call("candidate", |state| {
            let tables = &state.tables;
            Ok(tables.candidates.get(&id).map(|write| tables.record(write)))
        })
        .await
    }

    async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        listing: &Listing,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<CandidateRecord>> {
        let descends = matches!(
            listing.order,
            CandidateOrder::NewestFirst | CandidateOrder::MostVotes
        );
        let waits = matches!(
            listing.order,
            CandidateOrder::MostVotes | CandidateOrder::MostControversial
        );
        self.call("list_candidates", |state| {
            let place = |record: &CandidateRecord| {
                let CandidatePosition { place, id } = CandidatePosition::by(listing.order, record);
                (place, id)
            };
            let follows = |record: &CandidateRecord, after: CandidatePosition| {
                let after = (after.place, after.id);
                if descends {
                    place(record) < after
                } else {
                    place(record) > after
                }
            };
            let records = state
                .tables
                .candidates
                .values()
                .map(|write| state.tables.record(write));
            let mut found: Vec<_> = records
                .filter(|record| {
                    record.key.namespace == filter.namespace
                        && (filter.kinds.is_empty() || filter.kinds.contains(&record.key.kind))
                        && (filter.statuses.is_empty() || filter.statuses.contains(&record.candidate.status))
                        && (filter.keys.is_empty() || filter.keys.contains(&record.key.key))
                        && (filter.user.is_none() || filter.user == record.key.user)
                        && (!waits || record.candidate.status == Status::AwaitingReview)
                        && listing
                            .created_after
                            .is_none_or(|after| record.kept.created_at >= after)
                        && listing
                            .created_before
                            .is_none_or(|before| record.kept.created_at < before)
                        && after.is_none_or(|after| follows(record, after))
                })
                .collect();
            found.sort_by_key(place);
            if descends {
                found.reverse();
            }
            found.truncate(limit as usize);
            Ok(found)
        })
        .await
    }

    async fn rivals(&self, candidate: &CandidateRecord, limit: u32) -> Result<Vec<CandidateRecord>> {
        self.call("rivals", |state| {
            let mut rivals = state.tables.candidates_of(candidate.key.contest_id());
            rivals.retain(|write| write.candidate.id != candidate.candidate.id);
            rivals.sort_by_key(|write| {
                let rival = &write.candidate;
                (std::cmp::Reverse((rival.net, rival.reporters)), rival.id)
            });
            rivals.truncate(limit as usize);
            Ok(rivals
                .into_iter()
                .map(|write| state.tables.record(write))
                .collect())
        })
        .await
    }

    async fn ballots(&self, contest: ContestId, limit: u32) -> Result<Vec<Ballot>> {
        self.call("ballots", |state| Ok(state.tables.newest_ballots(contest, limit)))
            .await
    }

    async fn reporters(&self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, String>> {
        self.call("reporters", |state| {
            let known = feedback.iter().filter_map(|id| {
                let reporter = state.tables.details.get(id)?.reporter.id.as_ref()?;
                Some((*id, reporter.as_str().to_owned()))
            });
            Ok(known.collect())
        })
        .await
    }

    async fn feedback(&self, candidate: CandidateId, limit: u32) -> Result<Vec<FeedbackRecord>> {
        self.call("feedback", |state| {
            let of_it = state
                .tables
                .ballots
                .values()
                .filter(|new| new.ballot.candidate == candidate);
            let mut ballots: Vec<_> = of_it.collect();
            ballots.sort_by_key(|new| (std::cmp::Reverse(new.ballot.accept_order), new.ballot.feedback_id));
            let records = ballots.into_iter().take(limit as usize).map(|new| {
                let id = new.ballot.feedback_id;
                let details = state.tables.details.get(&id);
                FeedbackRecord {
                    feedback: id,
                    system_choice: new.system_choice.clone(),
                    reason: details.map(|details| details.reason.clone()).unwrap_or_default(),
                    context: details.map(|details| details.context.clone()).unwrap_or_default(),
                    query_id: details
                        .map(|details| details.query_id.clone())
                        .unwrap_or_default(),
                    received_at: new.ballot.received_at,
                    retracted: new.retracted,
                }
            });
            Ok(records.collect())
        })
        .await
    }

    async fn transitions(&self, candidate: CandidateId, limit: u32) -> Result<Vec<TransitionWrite>> {
        self.call("transitions", |state| {
            let all = state
                .tables
                .transitions
                .range((candidate, i64::MIN)..=(candidate, i64::MAX));
            let newest = all.rev().take(limit as usize).map(|(_, write)| write.clone());
            let mut newest: Vec<TransitionWrite> = newest.collect();
            newest.reverse();
            Ok(newest)
        })
        .await
    }

    async fn reevaluation_remaining(&self, key: &PolicyKey, version: i64) -> Result<u64> {
        self.call("reevaluation_remaining", |state| {
            let waiting =
                state.tables.contests.values().filter(|row| {
                    row.pending && PolicyKey::of(&row.key) == *key && row.policy_version < version
                });
            Ok(waiting.count() as u64)
        })
        .await
    }

    async fn contests_to_reevaluate(&self, after: Option<Place>, limit: u32) -> Result<Vec<ToReevaluate>> {
        // Contests are not numbered here; where two had the same place, one would be passed over until the next pass.
        let place = |id: &ContestId| Place((id.0.as_u64_pair().0 >> 1).cast_signed());
        self.call("contests_to_reevaluate", |state| {
            let waiting = state.tables.contests.iter().filter(|(id, row)| {
                row.pending
                    && after.is_none_or(|after| place(id) > after)
                    && row.policy_version < state.tables.policy(&PolicyKey::of(&row.key)).policy.version
            });
            Ok(waiting
                .take(limit as usize)
                .map(|(id, row)| (place(id), Ok(row.key.clone())))
                .collect())
        })
        .await
    }

    async fn forget_undoable_after(&self, age: SignedDuration) -> Result<u64> {
        let now = self.now(&self.state());
        self.call("forget_undoable_after", |state| {
            let undoable = &mut state.tables.undoable;
            let is_old = |record: &UndoableRecord| record.made_at.as_microsecond() < now - micros(age);
            let old = undoable.values().filter(|record| is_old(record));
            let old: Vec<ContestId> = old.map(|record| record.contest).collect();
            for contest in &old {
                undoable.remove(contest);
            }
            Ok(old.len() as u64)
        })
        .await
    }

    async fn waiting(&self, namespace: &Namespace) -> Result<Vec<(Kind, u64, Timestamp)>> {
        self.call("waiting", |state| {
            let mut waiting = BTreeMap::<i32, (Kind, u64, Timestamp)>::new();
            for write in state.tables.candidates.values() {
                let is_there = write.key.namespace == *namespace;
                if is_there && write.candidate.status == Status::AwaitingReview {
                    let (kind, created_at) = (write.key.kind, write.kept.created_at);
                    let counted = waiting.entry(kind.number()).or_insert((kind, 0, created_at));
                    counted.1 += 1;
                    counted.2 = counted.2.min(created_at);
                }
            }
            Ok(waiting.into_values().collect())
        })
        .await
    }

    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>> {
        self.call("count_candidates", |state| {
            let mut counts = BTreeMap::<_, (Kind, Status, u64)>::new();
            for write in state.tables.candidates.values() {
                let (kind, status) = (write.key.kind, write.candidate.status);
                let count = counts.entry((kind, codes::status(status)));
                count.or_insert((kind, status, 0)).2 += 1;
            }
            Ok(counts.into_values().collect())
        })
        .await
    }
}

#[async_trait]
impl PolicyStore for MemoryStore {
    async fn policy(&self, key: &PolicyKey) -> Result<StoredPolicy> {
        self.call("policy", |state| Ok(state.tables.policy(key))).await
    }

    async fn frozen(&self, namespace: &Namespace) -> Result<Vec<Kind>> {
        self.call("frozen", |state| {
            let frozen = Kind::ALL.into_iter().filter(|kind| {
                let key = PolicyKey {
                    namespace: namespace.clone(),
                    kind: *kind,
                };
                state.tables.policy(&key).policy.frozen
            });
            Ok(frozen.collect())
        })
        .await
    }
}

/// This store is asked for no standings.
#[async_trait]
impl StandingStore for MemoryStore {
    async fn supported(&self, _namespace: &Namespace, _feedback: &[FeedbackId]) -> Result<Supported> {
        Ok(Supported::default())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>> {
        Ok(Box::new(Work::begin(self).await?))
    }

    async fn begin_group(&self) -> Result<Box<dyn UnitOfWork>> {
        self.begin().await
    }

    fn group(&self) -> usize {
        64
    }

    async fn contents(&self) -> Result<Contents> {
        self.call("contents", |state| contents(&state.tables)).await
    }

    fn connections(&self) -> Connections {
        Connections::default()
    }

    async fn ping(&self) -> Result<()> {
        self.call("ping", |_| Ok(())).await
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// Revisions as auditors see them, newest first; whether there are more.
pub(super) fn list_revisions(
    state: &State,
    filter: &RevisionFilter,
    before: Option<Revision>,
    limit: u32,
) -> Result<(Vec<RevisionRecord>, bool)> {
    let tables = &state.tables;
    let mut found = Vec::new();
    for (revision, (write, committed_at)) in tables.revisions.iter().rev() {
        let changes = changes_of(tables, *revision);
        let matches = changes.iter().any(|change| {
            change.key.namespace == filter.namespace
                && filter.kind.is_none_or(|kind| change.key.kind == kind)
                && (filter.keys.is_empty() || filter.keys.contains(&change.key.key))
        });
        if !matches
            || before.is_some_and(|before| *revision >= before)
            || filter
                .operation
                .is_some_and(|asked| write.operation != Some(asked))
        {
            continue;
        }
        if found.len() >= limit as usize {
            return Ok((found, true));
        }
        let said = |change: &&ChangeWrite| {
            let feedback = change.trigger.as_ref()?.feedback;
            Some(tables.details.get(&feedback)?.reason.clone())
        };
        let reason = match write.cause {
            Cause::Ruling => changes.iter().find_map(said).unwrap_or_default(),
            _ => write.reason.clone(),
        };
        let shown = changes
            .into_iter()
            .filter(|change| change.key.namespace == filter.namespace);
        found.push(RevisionRecord {
            revision: *revision,
            operation: write.operation.map(|id| id.to_string()).unwrap_or_default(),
            cause: write.cause,
            actor: write.actor.clone(),
            reason,
            committed_at: timestamp(*committed_at)?,
            changes: shown
                .map(|change| change_record(tables, change))
                .collect::<Result<_>>()?,
        });
    }
    Ok((found, false))
}

fn changes_of(tables: &Tables, revision: Revision) -> Vec<&ChangeWrite> {
    let changes = tables.changes.range((revision, i32::MIN)..=(revision, i32::MAX));
    changes.map(|(_, change)| change).collect()
}

fn change_record(tables: &Tables, change: &ChangeWrite) -> Result<ChangeRecord> {
    let contest = change.key.contest_id();
    let parsed = |bytes: Option<&[u8]>| kept_value(bytes, "changes", contest);
    let trigger = change.trigger.as_ref();
    Ok(ChangeRecord {
        key: change.key.clone(),
        before: parsed(change.before.as_deref())?,
        after: parsed(change.value.as_deref())?,
        is_dropped: change.value.as_ref().is_some_and(Bytes::is_empty),
        checksum: change.value.as_deref().map_or(0, value_checksum),
        candidate: change.candidate.map(|id| id.to_string()).unwrap_or_default(),
        feedback: trigger
            .map(|trigger| trigger.feedback.to_string())
            .unwrap_or_default(),
        policy_version: change.policy_version,
        changed_since: tables
            .changes
            .values()
            .any(|other| other.key == change.key && other.revision > change.revision),
    })
}

fn contents(tables: &Tables) -> Result<Contents> {
    let mut records = Contents {
        head: Revision(tables.head()?.revision),
        revisions: tables.revisions.keys().copied().collect(),
        ..Contents::default()
    };
    for change in tables.changes.values() {
        let value = change.value.as_ref().map(|value| value.to_vec());
        records
            .changes
            .push((change.key.contest_id(), change.revision, value));
    }
    for (contest, (resource, _)) in &tables.resources {
        let value = resource
            .value
            .as_ref()
            .map(|value| value.to_vec())
            .unwrap_or_default();
        records.resources.push((*contest, resource.revision, value));
        *records.present.entry(PolicyKey::of(&resource.key)).or_default() += 1;
    }
    for write in tables.candidates.values() {
        let candidate = &write.candidate;
        let counted = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        records.candidates.push((
            write.key.contest_id(),
            candidate.id,
            counted(candidate.occurrences),
            counted(candidate.reporters),
            candidate.ruling.is_some(),
        ));
    }
    for new in tables.ballots.values().filter(|new| !new.retracted) {
        records.ballots.push(ContentsBallot {
            contest: new.contest,
            candidate: new.ballot.candidate,
            voter: new.ballot.voter,
            accept_order: new.ballot.accept_order,
            identified: new.ballot.identified,
        });
    }
    for (key, count) in &tables.counts {
        records
            .counted
            .insert(key.clone(), u64::try_from(*count).unwrap_or(0));
    }
    Ok(records)
}
