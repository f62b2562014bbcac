//! Generates improvements without a request, where the policy says so: for the label production, as soon as there are enough
//! bad ratings.
//!
//! It keeps nothing but when it tries a target again after a failure, and which ratings say nothing to improve: which targets are due is read each time, and that no
//! two replicas improve one at once is [`improve`](super::improve)'s.

use std::{collections::HashMap, time::Duration};

use emend_base::{BackoffConfig, Error, Lifecycle, backoff};
use emend_core::{Caller, ContestId, FeedbackId, RatingClass, ResourceKey, kinds::PRODUCTION};
use learning_store::actor::Actor;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    generator::REFUSED,
    outputs::{
        Outputs,
        improve::{UNIMPROVED, window_of},
    },
};

/// How often it looks without being woken: another replica may have been.
const PERIOD: Duration = Duration::from_secs(30);
/// How long it rests after each look: ratings may come all the time.
const REST: Duration = Duration::from_secs(1);
/// Targets read at once.
const PAGE: u32 = 100;
/// After failures of a target it is left alone for longer and longer.
const BACKOFF: BackoffConfig = BackoffConfig {
    initial: Duration::from_mins(1),
    max: Duration::from_hours(1),
    multiplier: 2.0,
};

/// The ratings that say what is wrong may be of these classes.
const TELLING: [(RatingClass, u32); 2] = [(RatingClass::Bad, 1), (RatingClass::Neutral, 1)];

/// Targets that are left alone for now.
#[derive(Debug, Default)]
pub struct Failing(HashMap<ContestId, Rest>);

/// Why a target is left alone.
#[derive(Debug)]
enum Rest {
    /// The generator failed so often in a row: until then.
    Until(u32, Instant),
    /// Nothing better can be made of what was read: until other ratings or another version are there.
    Unimproved(Read),
}

/// What an improvement would be made of: the newest ratings and the current version.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    newest: Vec<FeedbackId>,
    version: u32,
}

impl Outputs {
    /// Generates what is due now. Returns how many improvements it proposed.
    pub async fn improve_once(&self, failing: &mut Failing) -> Result<usize, Error> {
        let outputs = self.stored();
        let mut proposed = 0;
        for namespace in outputs.automatic_namespaces().await? {
            let mut after = 0;
            loop {
                let page = outputs
                    .current_prompts(&namespace, PRODUCTION, after, PAGE)
                    .await?;
                let Some((last, _)) = page.last() else { break };
                after = *last;
                for (_, key) in page {
                    proposed += usize::from(self.improve_if_due(&key, failing).await?);
                }
            }
        }
        Ok(proposed)
    }

    async fn improve_if_due(&self, key: &ResourceKey, failing: &mut Failing) -> Result<bool, Error> {
        let target = key.contest_id();
        let now = Instant::now();
        if matches!(failing.0.get(&target), Some(Rest::Until(_, until)) if now < *until) {
            return Ok(false);
        }
        if !self.is_due(key).await? {
            return Ok(false);
        }
        let read = self.read_of(key).await?;
        if matches!(failing.0.get(&target), Some(Rest::Unimproved(before)) if *before == read) {
            return Ok(false);
        }
        match self
            .generate_improvement(key, &Actor::caller(Caller::system()))
            .await
        {
            Ok(_) => {
                failing.0.remove(&target);
                Ok(true)
            }
            Err(error @ Error::FailedPrecondition { .. }) if UNIMPROVED.contains(&error.reason()) => {
                tracing::info!(target = %key.key, %error, "waiting for other ratings");
                failing.0.insert(target, Rest::Unimproved(read));
                Ok(false)
            }
            // Somebody else was faster, or the prompt changed.
            Err(Error::FailedPrecondition { reason, .. }) if reason != REFUSED => Ok(false),
            Err(Error::Aborted { .. }) => Ok(false),
            Err(error) => {
                let failures = match failing.0.get(&target) {
                    Some(Rest::Until(failures, _)) => *failures,
                    _ => 0,
                };
                let delay = backoff::delay_for_attempt(failures, &BACKOFF, self.decisions.entropy.fraction());
                let rest = Rest::Until(failures.saturating_add(1), now + delay);
                failing.0.insert(target, rest);
                if error.reason() == REFUSED {
                    tracing::warn!(target = %key.key, %error, ?delay, "no improvement until the generator's settings are mended");
                } else {
                    tracing::warn!(target = %key.key, %error, ?delay, "can't generate an improvement; trying again later");
                }
                Ok(false)
            }
        }
    }

    /// What an improvement would be made of now.
    async fn read_of(&self, key: &ResourceKey) -> Result<Read, Error> {
        let outputs = self.stored();
        let newest = outputs
            .newest_ratings(window_of(key).contest_id(), &TELLING)
            .await?;
        Ok(Read {
            newest: newest.into_iter().map(|rated| rated.feedback).collect(),
            version: outputs
                .current_version(key.contest_id())
                .await?
                .map_or(0, |version| version.number),
        })
    }

    /// Works until the lifecycle ends.
    pub(crate) async fn improve_until_stopped(self, lifecycle: Lifecycle) {
        let mut failing = Failing::default();
        loop {
            let look = async {
                if let Err(error) = self.improve_once(&mut failing).await {
                    tracing::warn!(%error, "can't see which prompts can be improved; trying again");
                }
                sleep(REST).await;
                let _ = timeout(PERIOD, self.rated.notified()).await;
            };
            tokio::select! {
                () = lifecycle.soft().cancelled() => return,
                () = look => {}
            }
        }
    }
}
