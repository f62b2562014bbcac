//! What is read of contests that are locked, before events are decided.

use std::{cmp::Reverse, collections::HashMap};

use emend_core::{
    Ballots, ContestId, OutputTally, Rated, RatedId, RatingClass, ResourceKey, Target, WindowPolicy,
    ratings::voices,
};
use emend_store::StoreError;
use learning_store::{
    UnitOfWork,
    contests::Named,
    outputs::{OfClass, OfOutput, OfVoter},
};

use super::{OpenContests, SPARE};

/// What the events ahead are about, where windows of ratings decide.
#[derive(Debug, Clone, Default)]
pub struct RatingsAhead {
    /// The ratings that they exclude.
    pub known: Vec<(ContestId, Rated)>,
    /// The raters and outputs that they are about, and which ratings may be live after them.
    pub voters: Vec<OfVoter>,
    /// How many of them are about each output.
    pub outputs: HashMap<(ContestId, RatedId), u32>,
}

impl OpenContests {
    /// Finds out whether the targets are known that were not when the contests were last decided.
    pub(super) async fn read_targets(&mut self, tx: &mut dyn UnitOfWork) -> Result<(), StoreError> {
        let unknown = self
            .contests
            .values()
            .filter(|working| working.state.target == Target::Unknown);
        let unknown: Vec<&ResourceKey> = unknown.map(|working| &working.before.row.key).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        for (contest, target) in tx.rulings().known_targets(&unknown).await? {
            if let Some(working) = self.contests.get_mut(&contest) {
                working.state.target = target;
            }
        }
        Ok(())
    }

    /// Takes the contests' ballots from the cache where they are still valid, and reads the others.
    pub(super) async fn read_ballots(
        &mut self,
        tx: &mut dyn UnitOfWork,
        leaving: u32,
    ) -> Result<(), StoreError> {
        let counted = self
            .policies
            .values()
            .map(|policy| policy.votes.max_counted_feedback)
            .max();
        let enough = counted.unwrap_or(0).saturating_add(leaving);
        let mut missing = Vec::new();
        // A contest without candidates has no ballots to count, and rulings are not counted.
        for (contest, working) in self
            .contests
            .iter_mut()
            .filter(|(_, working)| !working.state.candidates.is_empty() && working.is_by_votes())
        {
            match self.cache.take(*contest, || working.found_fingerprint()) {
                Some(ballots) if ballots.cover(enough as usize) => working.state.ballots = ballots,
                _ => missing.push(*contest),
            }
        }
        if !missing.is_empty() {
            let limit = counted.unwrap_or(0).saturating_add(SPARE.max(leaving));
            for (contest, newest) in tx.contests().newest_ballots(&missing, limit).await? {
                let complete = newest.len() < limit as usize;
                if let Some(working) = self.contests.get_mut(&contest) {
                    working.state.ballots = Ballots::new(newest, complete);
                }
            }
        }
        Ok(())
    }

    /// Reads, where a window of ratings decides, what a decision on the events ahead needs: see [`mod@emend_core::decide`].
    pub(super) async fn read_windows(
        &mut self,
        tx: &mut dyn UnitOfWork,
        ahead: RatingsAhead,
    ) -> Result<(), StoreError> {
        let max_text_chars = self.max_text_chars();
        let windows = self.contests.iter().filter(|(_, working)| working.is_window());
        let windows: Vec<(ContestId, WindowPolicy)> = windows
            .map(|(contest, working)| (*contest, self.policy(&working.state.key).window))
            .collect();
        if windows.is_empty() {
            return Ok(());
        }
        let stored = tx.ratings();
        let RatingsAhead {
            known,
            voters,
            outputs,
        } = ahead;
        let classes = [RatingClass::Good, RatingClass::Bad];
        let about: Vec<(ContestId, RatedId)> = outputs.keys().copied().collect();
        for (contest, output) in stored.outputs(&about).await? {
            self.add_output(contest, output);
        }
        // Of the newest of a class, those that the events are about may leave it.
        let mut newest: Vec<OfClass> = Vec::new();
        for (contest, window) in &windows {
            let touched = about.iter().filter(|(touched, _)| touched == contest).count();
            newest.extend(classes.map(|class| {
                OfClass {
                    contest: *contest,
                    class,
                    limit: window
                        .room(class)
                        .saturating_add(u32::try_from(touched).unwrap_or(u32::MAX)),
                }
            }));
        }
        let mut examples: Vec<OfOutput> = Vec::new();
        for (&(contest, rated), &events) in &outputs {
            examples.extend(classes.map(|class| OfOutput {
                contest,
                rated,
                class,
                limit: voices(class).saturating_add(events),
            }));
        }
        let rooms: HashMap<ContestId, WindowPolicy> = windows.into_iter().collect();
        let mut shown: HashMap<(ContestId, RatingClass), u32> = HashMap::new();
        let mut newest = stored.newest_outputs(&newest).await?;
        newest.sort_unstable_by_key(|(_, output)| Reverse(output.place));
        for (contest, output) in newest {
            let (Some(class), Some(window)) = (output.class(), rooms.get(&contest)) else {
                continue;
            };
            let shown = shown.entry((contest, class)).or_default();
            if outputs.contains_key(&(contest, output.rated)) || *shown >= window.room(class) {
                continue;
            }
            *shown += 1;
            examples.push(OfOutput {
                contest,
                rated: output.rated,
                class,
                limit: voices(class),
            });
            self.add_output(contest, output);
        }
        for (contest, rated) in stored.of_outputs(&examples, max_text_chars).await? {
            self.add_rating(contest, rated);
        }
        // What was known before the contests were locked says nothing of which are live: those come first, read under the locks.
        let known = known
            .into_iter()
            .map(|(contest, rated)| (contest, Rated { live: false, ..rated }));
        let by_voters = stored.of_voters(&voters, max_text_chars).await?;
        for (contest, rated) in by_voters.into_iter().chain(known) {
            self.add_rating(contest, rated);
        }
        Ok(())
    }

    /// Reads a candidate that an event is about to name, unless it is there already.
    pub async fn read_named(
        &mut self,
        tx: &mut dyn UnitOfWork,
        contest: ContestId,
        which: Named,
    ) -> Result<(), StoreError> {
        let Some(working) = self.contests.get_mut(&contest) else {
            return Ok(());
        };
        let is_there = working.state.candidates.iter().any(|candidate| match which {
            Named::Candidate(id) => candidate.id == id,
            Named::Version(version) => candidate.proposal.is_some_and(|kept| kept.version == version),
        });
        if is_there || working.state.key.kind.rules().rule.depends_on_the_decided() {
            return Ok(());
        }
        if let Some((candidate, kept)) = tx.contests().named(contest, which).await? {
            working.before.kept.insert(candidate.id, kept.clone());
            working.before.state.candidates.push(candidate.clone());
            working.kept.insert(candidate.id, kept);
            working.state.candidates.push(candidate);
        }
        Ok(())
    }

    /// The characters of a text that the policies show at most.
    fn max_text_chars(&self) -> u32 {
        let shown = self.policies.values().map(|policy| policy.window.max_text_chars);
        shown.max().unwrap_or(0)
    }

    /// Adds an output as found.
    fn add_output(&mut self, contest: ContestId, output: OutputTally) {
        if let Some(working) = self.contests.get_mut(&contest) {
            working.add_output(output);
        }
    }

    /// Adds a rating as found, unless it is there already.
    fn add_rating(&mut self, contest: ContestId, rated: Rated) {
        if let Some(working) = self.contests.get_mut(&contest) {
            working.add_rating(rated);
        }
    }
}
