//! Writing what was decided, in one go.

use std::collections::HashMap;

use bytes::Bytes;
use emend_core::{Cause, ContestId, ContestState, Kind, Revision, Status};
use emend_store::StoreError;
use emend_wire::value;
use jiff::Timestamp;
use learning_store::{
    UnitOfWork, conflict,
    contests::{CandidateWrite, TransitionWrite},
    evidence::EventWrite,
    ingest::InboxWrite,
    log::LogWrites,
    outputs::RatingWrites,
    policies::PolicyKey,
    queue::{DayFigures, QueueCount, day},
    resources::{ResourceWrite, ResourceWrites},
};
use prost::Message as _;

use super::{OpenContests, Written, working::Working};
use crate::{
    decisions::{evidence, numbering::Numbers},
    fail_points,
};

/// What is written under the head's lock.
#[derive(Debug, Default)]
struct Decisions {
    candidates: Vec<CandidateWrite>,
    transitions: Vec<(ContestId, TransitionWrite)>,
    log: LogWrites,
    resources: ResourceWrites,
    applied: Vec<InboxWrite>,
    evidence_events: Vec<EventWrite>,
}

impl OpenContests {
    /// Writes everything. The head is locked last, and only while rows that name revisions are written.
    pub async fn finish(&mut self, tx: &mut dyn UnitOfWork) -> Result<Written, StoreError> {
        self.votes.contests = self.contests.values().filter_map(Working::row).collect();
        tx.contests().save_votes(&self.votes).await?;
        tx.inbox().save_marks(&self.marks).await?;
        let ratings = self.rating_writes();
        if ratings != RatingWrites::default() {
            tx.ratings().save(&ratings).await?;
        }
        let rules = self.read_contests(|working| working.resource_changed, evidence::changed_rules);
        // A newer ruling may say the same: then it is another that is in force.
        let rulings = self.read_contests(|working| working.decided, evidence::ruling);
        let is_about_evidence = !(rules.is_empty() && rulings.is_empty());
        if is_about_evidence {
            tx.rulings().note_rules(&rules).await?;
            tx.rulings().save_rulings(&rulings).await?;
        }
        fail_points::VOTES_WRITTEN.pass();

        let mut written = Written {
            revisions: Numbers::default(),
            outcomes: Vec::with_capacity(self.answers.len()),
            promoted: std::mem::take(&mut self.promoted),
            moved: !self.transitions.is_empty(),
            evidence: is_about_evidence,
        };
        let count = self.revisions.count();
        if count > 0 {
            let head = tx.log().advance_head(count).await?;
            written.revisions = Numbers::newest(count, head);
            fail_points::HEAD_LOCKED.pass();
        }
        let Decisions {
            candidates,
            transitions,
            log,
            resources,
            applied,
            evidence_events,
        } = self.decisions(&mut written);
        tx.contests().save_candidates(&candidates, &transitions).await?;
        for record in std::mem::take(&mut self.undoable) {
            tx.contests().save_undoable(&record).await?;
        }
        let counts = self.counts(&transitions);
        if !counts.is_empty() {
            tx.contests().count(&counts).await?;
        }
        tx.log().append(&log).await?;
        let counts = tx.resources().save(&resources).await?;
        tx.inbox().save(&applied).await?;
        if !evidence_events.is_empty() {
            tx.rulings().save_events(&evidence_events).await?;
        }
        if count > 0 {
            fail_points::REVISIONS_WRITTEN.pass();
        }
        for (scope, count) in counts {
            let grew = resources.counts.get(&scope).is_some_and(|by| *by > 0);
            let limit = self
                .policies
                .get(&scope)
                .map_or(u64::MAX, |policy| policy.max_resources);
            if grew && count > limit {
                return Err(conflict("concurrent writes reached the limit of resources"));
            }
        }
        Ok(written)
    }

    /// How much happens in the review queue, by kind and UTC day. What is a user's profile is nobody else's concern.
    fn counts(&self, transitions: &[(ContestId, TransitionWrite)]) -> Vec<QueueCount> {
        let mut figures = HashMap::<(PolicyKey, i64), DayFigures>::new();
        let mut on = |contest: ContestId, at: Timestamp, count: &dyn Fn(&mut DayFigures)| {
            let Some(working) = self.contests.get(&contest) else {
                return;
            };
            let scope = PolicyKey::of(&working.state.key);
            if scope.kind != Kind::Profile {
                count(figures.entry((scope, day(at))).or_default());
            }
        };
        for new in &self.votes.ballots {
            on(new.contest, new.ballot.received_at, &|day| day.received += 1);
        }
        for (contest, moved) in transitions {
            match moved.to {
                Status::Applied => on(*contest, moved.at, &|day| day.applied += 1),
                Status::Rejected => on(*contest, moved.at, &|day| day.rejected += 1),
                Status::Withdrawn => on(*contest, moved.at, &|day| day.withdrawn += 1),
                // What a person took back may wait for another look, or another version is current in its place.
                Status::AwaitingReview | Status::Superseded
                    if moved.from == Some(Status::Applied)
                        && matches!(moved.cause, Cause::Revert | Cause::Undo) =>
                {
                    on(*contest, moved.at, &|day| day.withdrawn += 1);
                }
                Status::Pending | Status::AwaitingReview | Status::Superseded => {}
            }
        }
        let counts = figures.into_iter().map(|((scope, day), figures)| QueueCount {
            namespace: scope.namespace,
            day,
            kind: scope.kind,
            figures,
        });
        counts.collect()
    }

    /// What `read` finds in the contests that `is_concerned`.
    fn read_contests<T>(
        &self,
        is_concerned: fn(&Working) -> bool,
        read: fn(&ContestState) -> Option<T>,
    ) -> Vec<T> {
        let chosen = self.contests.values().filter(|working| is_concerned(working));
        chosen.filter_map(|working| read(&working.state)).collect()
    }

    fn rating_writes(&self) -> RatingWrites {
        let mut writes = RatingWrites::default();
        for working in self.contests.values().filter(|working| working.is_window()) {
            working.write_ratings(&mut writes);
        }
        writes
    }

    /// What is written under the head's lock.
    fn decisions(&mut self, written: &mut Written) -> Decisions {
        let numbers = written.revisions;
        let mut writes = Decisions {
            transitions: std::mem::take(&mut self.transitions),
            log: self.revisions.take(&numbers),
            ..Decisions::default()
        };
        for (_, transition) in &mut writes.transitions {
            transition.revision = numbers.of(transition.revision);
        }
        writes.evidence_events = std::mem::take(&mut self.evidence_events);
        for event in &mut writes.evidence_events {
            event.revision = numbers.of(event.revision);
        }
        writes.resources.committed_at = numbers.committed_at;
        for working in self.contests.values_mut().filter(|working| working.decided) {
            working.number(&numbers);
            writes.candidates.extend(working.changed_candidates(self.now));
            if working.resource_changed {
                let key = &working.state.key;
                let now = working.state.resource.as_ref();
                writes.resources.resources.push(ResourceWrite {
                    key: key.clone(),
                    revision: now.map_or(Revision::default(), |resource| resource.revision),
                    value: now.map(|resource| value::encode(&resource.value)),
                });
                let by = i64::from(now.is_some()) - i64::from(working.before.state.resource.is_some());
                *writes.resources.counts.entry(PolicyKey::of(key)).or_default() += by;
            }
        }
        for (event, feedback, mut outcome) in self.answers.drain(..) {
            let effects = outcome.effects.iter_mut().map(|effect| &mut effect.revision);
            for revision in effects.chain([&mut outcome.revision]) {
                *revision = numbers.of(Revision(*revision)).0;
            }
            writes.applied.push(InboxWrite {
                event,
                feedback,
                at: self.now,
                outcome: Bytes::from(outcome.encode_to_vec()),
            });
            written.outcomes.push(outcome);
        }
        writes
    }
}
