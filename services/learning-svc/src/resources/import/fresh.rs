//! Rows whose keys nothing is known of: no contest, no candidate, no resource. Most rows of a first import are such.
//!
//! What a person puts at such a key is decided alike for all keys and values of a kind, so it is decided once for each
//! kind, and written in few statements. Everything else goes the way of every other decision.

use std::collections::{BTreeMap, HashMap};

use emend_core::{
    ContestState, Kind, Namespace, Policy, Revision, Rule, decide, decide::Cause, policy::MAX_SCOPES,
};
use emend_store::StoreError;
use emend_wire::value;
use jiff::Timestamp;
use learning_store::{
    UnitOfWork, WholeUnit, conflict,
    contests::{KeptCandidate, TransitionWrite},
    log::{LogWrites, RevisionWrite},
    policies::PolicyKey,
    queue::{DayFigures, QueueCount, day},
    resources::{FreshKind, FreshRow, PER_REVISION, ResourceWrites},
};

use super::{Import, ImportAs, Imported, Keyed};
use crate::{
    decisions::{numbering::Numbers, open::Attribution},
    fail_points,
};

/// What is put at keys that nothing is known of.
#[derive(Default)]
pub(super) struct Fresh {
    rows: Vec<FreshRow>,
    kinds: HashMap<Kind, FreshKind>,
    policies: HashMap<Kind, Policy>,
    decided_at: Timestamp,
    created_at: Timestamp,
}

/// Divides rows, which are in order of their contests, into those whose keys nothing is known of and the others.
pub(super) async fn divide<'r>(
    tx: &mut dyn WholeUnit,
    import: &Import,
    attribution: &Attribution,
    rows: &'r [Keyed],
    now: Timestamp,
) -> Result<(Fresh, Vec<&'r Keyed>), StoreError> {
    let of_few_words = |row: &&Keyed| {
        let key = &row.row.proposal.key;
        key.user.is_none() && matches!(key.kind.rules().rule, Rule::Votes { .. })
    };
    let (fresh, mut others): (Vec<&Keyed>, Vec<&Keyed>) = match import.import_as {
        ImportAs::Decision => rows.iter().partition(of_few_words),
        ImportAs::Votes => (Vec::new(), rows.iter().collect()),
    };
    if fresh.is_empty() {
        return Ok((Fresh::default(), others));
    }
    let ids: Vec<_> = fresh.iter().map(|row| row.contest).collect();
    let known = tx.bulk().known(&ids).await?;
    let decided_at = tx.bulk().now().await?;
    let mut kinds: Vec<Kind> = fresh.iter().map(|row| row.row.proposal.key.kind).collect();
    kinds.sort_unstable_by_key(|kind| kind.number());
    kinds.dedup();
    let mut room = Room::read(tx, &import.namespace, &kinds).await?;
    let mut part = Fresh {
        rows: Vec::with_capacity(fresh.len()),
        decided_at,
        created_at: now,
        ..Fresh::default()
    };
    for keyed in fresh {
        let proposal = &keyed.row.proposal;
        let kind = proposal.key.kind;
        let value = value::encode(&proposal.value);
        let policy = room.policy(kind);
        let fits = value.len() <= policy.max_value_bytes as usize && room.has_another(kind);
        let is_new = !known.contains(&keyed.contest) && proposal.value.learned.kind() == kind;
        if fits && is_new && part.knows(kind, keyed, attribution, policy) {
            room.take(kind);
            part.rows.push(FreshRow {
                contest: keyed.contest,
                key: proposal.key.clone(),
                candidate: proposal.value.candidate_id(keyed.contest),
                value,
            });
        } else {
            others.push(keyed);
        }
    }
    others.sort_unstable_by_key(|row| row.contest);
    part.policies = room.policies;
    Ok((part, others))
}

impl Fresh {
    /// Whether it is known what a put at a key of this kind comes to; if it was not yet, it is decided for this one.
    fn knows(&mut self, kind: Kind, first: &Keyed, attribution: &Attribution, policy: &Policy) -> bool {
        if !self.kinds.contains_key(&kind)
            && let Some(decided) = self.decide(first, attribution, policy)
        {
            self.kinds.insert(kind, decided);
        }
        self.kinds.contains_key(&kind)
    }

    /// Decides what a put at a key that nothing is known of comes to; nothing if that is more than one candidate that applies.
    fn decide(&self, first: &Keyed, attribution: &Attribution, policy: &Policy) -> Option<FreshKind> {
        let proposal = &first.row.proposal;
        let event = super::put(attribution, &proposal.value);
        let state = ContestState::new(proposal.key.clone());
        let decision = decide(state, &event, policy, self.created_at).ok()?;
        let [candidate] = &decision.after.candidates[..] else {
            return None;
        };
        let applies = decision.resource.as_ref()?.candidate() == Some(candidate.id)
            && decision.after.pinned
            && candidate.policy_version == decision.policy_version
            && candidate.value == proposal.value;
        let writes = decision
            .transitions
            .iter()
            .zip(0..)
            .map(|(transition, sequence)| TransitionWrite {
                candidate: candidate.id,
                sequence,
                from: transition.from,
                to: transition.to,
                cause: decision.cause,
                reason: match transition.reason {
                    Some(reason) if attribution.reason.is_empty() => reason.name().to_owned(),
                    _ => attribution.reason.clone(),
                },
                actor: attribution.actor.clone(),
                at: self.created_at,
                revision: Revision::default(),
                policy_version: decision.policy_version,
            });
        let transitions: Vec<TransitionWrite> = writes.collect();
        applies.then(|| FreshKind {
            candidate: candidate.clone(),
            kept: KeptCandidate {
                decided_by: attribution.actor.clone(),
                created_at: self.created_at,
                updated_at: self.created_at,
                transitions: i64::try_from(transitions.len()).unwrap_or(i64::MAX),
                version: 1,
            },
            transitions,
        })
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What was applied, by kind and cause.
    pub(super) fn promoted(&self) -> Vec<(Kind, Cause)> {
        let kinds = self.rows.iter().map(|row| row.key.kind);
        kinds.map(|kind| (kind, Cause::Import)).collect()
    }

    /// Creates the contests, which locks them.
    pub(super) async fn create(&self, tx: &mut dyn WholeUnit) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        tx.bulk()
            .create(&self.rows, &self.kinds, self.decided_at, self.created_at)
            .await
    }

    /// Writes everything else, with the head locked.
    pub(super) async fn save(
        &self,
        tx: &mut dyn WholeUnit,
        attribution: &Attribution,
    ) -> Result<Imported, StoreError> {
        if self.rows.is_empty() {
            return Ok(Imported::default());
        }
        let count = self.rows.len().div_ceil(PER_REVISION);
        let head = tx.log().advance_head(count).await?;
        fail_points::HEAD_LOCKED.pass();
        let numbers = Numbers::newest(count, head);
        let revisions = (numbers.first().0..=numbers.last().0).map(|revision| RevisionWrite {
            revision: Revision(revision),
            operation: attribution.operation,
            cause: Cause::Import,
            actor: attribution.actor.clone(),
            reason: attribution.reason.clone(),
        });
        let log = LogWrites {
            revisions: revisions.collect(),
            changes: Vec::new(),
            committed_at: numbers.committed_at,
        };
        tx.log().append(&log).await?;
        tx.bulk()
            .save(&self.rows, &self.kinds, numbers.first(), numbers.committed_at)
            .await?;
        let mut counts: BTreeMap<PolicyKey, i64> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(PolicyKey::of(&row.key)).or_default() += 1;
        }
        let applied = counts.iter().map(|(scope, count)| QueueCount {
            namespace: scope.namespace.clone(),
            day: day(self.created_at),
            kind: scope.kind,
            figures: DayFigures {
                applied: count.unsigned_abs(),
                ..DayFigures::default()
            },
        });
        tx.contests().count(&applied.collect::<Vec<_>>()).await?;
        let writes = ResourceWrites {
            resources: Vec::new(),
            counts,
            committed_at: numbers.committed_at,
        };
        for (scope, count) in tx.resources().save(&writes).await? {
            let limit = self
                .policies
                .get(&scope.kind)
                .map_or(u64::MAX, |policy| policy.max_resources);
            if count > limit {
                return Err(conflict("concurrent writes reached the limit of resources"));
            }
        }
        fail_points::REVISIONS_WRITTEN.pass();
        Ok(Imported {
            applied: self.rows.len() as u64,
            first: numbers.first(),
            last: numbers.last(),
            ..Imported::default()
        })
    }
}

/// How many more resources there is room for.
struct Room {
    policies: HashMap<Kind, Policy>,
    counts: HashMap<Kind, u64>,
    scopes: u64,
}

impl Room {
    async fn read(
        tx: &mut dyn UnitOfWork,
        namespace: &Namespace,
        kinds: &[Kind],
    ) -> Result<Self, StoreError> {
        let scopes: Vec<PolicyKey> = kinds
            .iter()
            .map(|kind| PolicyKey {
                namespace: namespace.clone(),
                kind: *kind,
            })
            .collect();
        let policies = tx.policies().in_force(&scopes).await?;
        let counts = tx.resources().counts(&scopes).await?;
        let scopes = if counts.values().any(|count| *count == 0) {
            tx.resources().scopes_in_use().await?
        } else {
            0
        };
        let mut policies: HashMap<Kind, Policy> = policies
            .into_iter()
            .map(|(scope, policy)| (scope.kind, policy))
            .collect();
        for kind in kinds {
            policies
                .entry(*kind)
                .or_insert_with(|| Policy::default_for(*kind));
        }
        Ok(Self {
            policies,
            counts: counts
                .into_iter()
                .map(|(scope, count)| (scope.kind, count))
                .collect(),
            scopes,
        })
    }

    fn policy(&self, kind: Kind) -> &Policy {
        &self.policies[&kind]
    }

    fn has_another(&self, kind: Kind) -> bool {
        let count = self.counts.get(&kind).copied().unwrap_or(0);
        count < self.policy(kind).max_resources && (count > 0 || self.scopes < MAX_SCOPES)
    }

    fn take(&mut self, kind: Kind) {
        let count = self.counts.entry(kind).or_default();
        self.scopes += u64::from(*count == 0);
        *count += 1;
    }
}
