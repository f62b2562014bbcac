//! What is read of contests that are locked, before events are decided.

use emend_core::{Ballots, ContestId, Rated, RatingClass, ResourceKey, Target};
use emend_store::StoreError;

use super::{OpenContests, SPARE};
use crate::{
    contests::store::Named,
    outputs::store::{OfClass, OfVoter},
    store::UnitOfWork,
};

impl OpenContests {
    /// Finds out whether the targets are known that were not when the contests were last decided.
    pub(super) async fn read_targets(&mut self, tx: &mut dyn UnitOfWork) -> Result<(), StoreError> {
        let unknown = self
            .contests
            .values()
            .filter(|working| working.state.target == Target::Unknown);
        let unknown: Vec<&ResourceKey> = unknown.map(|working| &working.before.row.key).collect();
        let (Some(evidence), false) = (tx.evidence(), unknown.is_empty()) else {
            return Ok(());
        };
        for (contest, target) in evidence.known_targets(&unknown).await? {
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
            match self.hot.take(*contest, || working.found_fingerprint()) {
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

    /// Reads what is shown where a window of ratings decides, and what takes its place if `leaving` ratings leave it.
    pub(super) async fn read_windows(
        &mut self,
        tx: &mut dyn UnitOfWork,
        leaving: u32,
    ) -> Result<(), StoreError> {
        let mut wanted = Vec::new();
        let max_text_chars = self.max_text_chars();
        for (contest, working) in self.contests.iter().filter(|(_, working)| working.is_window()) {
            let window = self.policy(&working.state.key).window;
            for (class, count) in [(RatingClass::Good, window.good), (RatingClass::Bad, window.bad)] {
                wanted.push(OfClass {
                    contest: *contest,
                    class,
                    limit: count.saturating_add(leaving),
                });
            }
        }
        if let (Some(ratings), false) = (tx.ratings(), wanted.is_empty()) {
            for (contest, rated) in ratings.of_classes(&wanted, max_text_chars).await? {
                self.add_rating(contest, rated);
            }
        }
        Ok(())
    }

    /// Reads, for events ahead, the ratings that they exclude (`known`) and, for each output and voter that they are about,
    /// which ratings may be live after them.
    pub async fn read_ratings(
        &mut self,
        tx: &mut dyn UnitOfWork,
        known: Vec<(ContestId, Rated)>,
        wanted: Vec<OfVoter>,
    ) -> Result<(), StoreError> {
        let max_text_chars = self.max_text_chars();
        let Some(ratings) = tx.ratings() else {
            return Ok(());
        };
        // What was known before the contests were locked says nothing of which are live: those come first, read under the locks.
        let known = known
            .into_iter()
            .map(|(contest, rated)| (contest, Rated { live: false, ..rated }));
        for (contest, rated) in ratings
            .of_voters(&wanted, max_text_chars)
            .await?
            .into_iter()
            .chain(known)
        {
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
        let is_there = working.state.candidates.iter().any(|of| match which {
            Named::Candidate(id) => of.id == id,
            Named::Version(version) => of.proposal.is_some_and(|kept| kept.version == version),
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

    /// Adds a rating as found, unless it is there already.
    fn add_rating(&mut self, contest: ContestId, rated: Rated) {
        if let Some(working) = self.contests.get_mut(&contest) {
            working.add_rating(rated);
        }
    }
}
