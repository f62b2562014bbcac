//! What is said of a target's outputs, and whether a better prompt can be generated.

use emend_base::Error;
use emend_core::{CandidateId, ResourceKey};
use jiff::Timestamp;
use learning_store::{
    outputs::improvements::{Counts, VersionStats},
    policies::PolicyKey,
};

use crate::outputs::{
    Outputs,
    improve::{Hindrance, counting, window_of},
};

/// Versions shown at most.
const SHOWN: u32 = 100;

/// The ratings of a target.
#[derive(Debug, Clone)]
pub struct OutputStats {
    /// By version of the prompt, that with the newest rating first.
    pub versions: Vec<VersionStats>,
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
        let since = outputs.count_ratings(window, progress.since()).await?;
        let missing = u64::from(policy.review.min_bad).saturating_sub(since.bad);
        let current = outputs.current_version(prompt.contest_id()).await?;
        let hindrance = Hindrance::of(current > 0, &progress, missing);
        Ok(OutputStats {
            versions: outputs.version_stats(window, SHOWN).await?,
            since,
            proposed_at: progress.newest.map(|newest| newest.proposed_at),
            missing,
            hindrance: hindrance.as_ref().map(Hindrance::reason),
            open: progress.open(),
        })
    }

    /// What hinders improving a prompt now, if anything does.
    pub(crate) async fn hindrance(&self, prompt: &ResourceKey) -> Result<Option<Hindrance>, Error> {
        let outputs = self.stored();
        let policy = self.database.policy(&PolicyKey::of(prompt)).await?.policy;
        let progress = outputs.progress(counting(prompt).contest_id()).await?;
        let window = window_of(prompt).contest_id();
        let since = outputs.count_ratings(window, progress.since()).await?;
        let missing = u64::from(policy.review.min_bad).saturating_sub(since.bad);
        let current = outputs.current_version(prompt.contest_id()).await?;
        Ok(Hindrance::of(current > 0, &progress, missing))
    }
}
