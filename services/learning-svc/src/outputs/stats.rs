//! What is said of a target's outputs, and whether a better prompt can be generated.

use emend_base::Error;
use emend_core::{CandidateId, ContestId, Namespace, ResourceKey, kinds::PRODUCTION};
use jiff::Timestamp;
use learning_store::{
    outputs::improvements::{Arrival, Counts, CurrentVersion, VersionStats},
    policies::PolicyKey,
};

use crate::outputs::{
    Outputs,
    improve::{Hindrance, counting, prompt_key, window_of},
};

/// Versions shown at most.
const SHOWN: u32 = 100;

/// The ratings of a target.
#[derive(Debug, Clone)]
pub struct OutputStats {
    /// By version of the prompt, that with the newest rating first.
    pub versions: Vec<VersionStats>,
    /// The number of the version that is current; 0: none is.
    pub current: u32,
    /// What an improvement would be made of: those of the current version, and all since it was made current.
    pub counted: Counts,
    /// Since the newest proposal.
    pub since: Counts,
    /// When that was made.
    pub proposed_at: Option<Timestamp>,
    /// How many more bad ones an improvement needs.
    pub missing: u64,
    /// Why none would be generated, in `UPPER_SNAKE_CASE`; none if one would.
    pub hindrance: Option<&'static str>,
    /// The improvement that awaits review.
    pub open: Option<CandidateId>,
}

impl Outputs {
    /// The ratings of a prompt's target, under whichever label, and whether that prompt can be improved.
    pub async fn stats(&self, prompt: &ResourceKey) -> Result<OutputStats, Error> {
        let outputs = self.stored();
        let (target, window) = (counting(prompt), window_of(prompt).contest_id());
        let policy = self.database.policy(&PolicyKey::of(prompt)).await?.policy;
        let progress = outputs.progress(target.contest_id()).await?;
        let current = outputs.current_version(prompt.contest_id()).await?;
        let counted = self.counted(window, current).await?;
        let missing = u64::from(policy.review.min_bad).saturating_sub(counted.bad);
        let hindrance = Hindrance::of(current.is_some(), &progress, missing);
        Ok(OutputStats {
            versions: outputs.version_stats(window, SHOWN).await?,
            current: current.map_or(0, |version| version.number),
            counted,
            since: outputs.count_ratings(window, progress.since()).await?,
            proposed_at: progress.newest.map(|newest| newest.proposed_at),
            missing,
            hindrance: hindrance.as_ref().map(Hindrance::reason),
            open: progress.open(),
        })
    }

    /// The same of the targets of a namespace that were rated or have a prompt, in their order, after one of them; and whether
    /// there are more.
    pub async fn all_stats(
        &self,
        namespace: &Namespace,
        after: &str,
        limit: u32,
    ) -> Result<(Vec<(String, OutputStats)>, bool), Error> {
        let limit = limit as usize;
        let mut targets = self
            .stored()
            .targets(namespace, after, u32::try_from(limit + 1).unwrap_or(u32::MAX))
            .await?;
        let has_more = targets.len() > limit;
        targets.truncate(limit);
        let mut found = Vec::with_capacity(targets.len());
        for target in targets {
            let key = prompt_key(namespace.as_str(), &target, PRODUCTION)
                .map_err(|violations| Error::internal(format!("the target {target:?}: {violations}")))?;
            found.push((target, self.stats(&key).await?));
        }
        Ok((found, has_more))
    }

    /// Whether a prompt is to be improved without a request: nothing hinders it, and since the newest proposal somebody found
    /// something wrong. What a person rejected is not proposed again of the same ratings.
    pub(crate) async fn is_due(&self, prompt: &ResourceKey) -> Result<bool, Error> {
        let outputs = self.stored();
        let window = window_of(prompt).contest_id();
        let policy = self.database.policy(&PolicyKey::of(prompt)).await?.policy;
        let progress = outputs.progress(counting(prompt).contest_id()).await?;
        let current = outputs.current_version(prompt.contest_id()).await?;
        let counted = self.counted(window, current).await?;
        let missing = u64::from(policy.review.min_bad).saturating_sub(counted.bad);
        if Hindrance::of(current.is_some(), &progress, missing).is_some() {
            return Ok(false);
        }
        let since = outputs.count_ratings(window, progress.since()).await?;
        Ok(since.bad > 0)
    }

    /// What an improvement of a version would be made of; without a version, all ratings.
    async fn counted(&self, window: ContestId, current: Option<CurrentVersion>) -> Result<Counts, Error> {
        let outputs = self.stored();
        Ok(match current {
            Some(version) => outputs.count_for(window, version).await?,
            None => outputs.count_ratings(window, Arrival::default()).await?,
        })
    }
}
