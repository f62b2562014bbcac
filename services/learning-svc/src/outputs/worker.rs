//! Generates improvements without a request, where the policy says so: for the label production, as soon as there are enough
//! bad ratings.
//!
//! It keeps nothing but when it tries a target again after a failure: which targets are due is read each time, and that no
//! two replicas improve one at once is [`improve`](super::improve)'s.

use std::{collections::HashMap, time::Duration};

use emend_base::{BackoffConfig, Error, Lifecycle, backoff};
use emend_core::{Caller, ContestId, ResourceKey, kinds::PRODUCTION};
use tokio::time::{Instant, sleep, timeout};

use crate::{actor::Actor, app::App};

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

/// Targets that failed: how often in a row, and until when each is left alone.
#[derive(Debug, Default)]
pub struct Failing(HashMap<ContestId, (u32, Instant)>);

impl App {
    /// Generates what is due now. Returns how many improvements it proposed.
    pub async fn improve_once(&self, failing: &mut Failing) -> Result<usize, Error> {
        let Some(outputs) = self.store.outputs() else {
            return Ok(0);
        };
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
        if failing.0.get(&target).is_some_and(|(_, until)| now < *until) {
            return Ok(false);
        }
        if self.hindrance(key).await?.is_some() {
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
            // Somebody else was faster, or the prompt changed.
            Err(Error::FailedPrecondition { .. } | Error::Aborted { .. }) => Ok(false),
            Err(error) => {
                let (failures, until) = failing.0.entry(target).or_insert((0, now));
                let delay = backoff::delay_for_attempt(*failures, &BACKOFF, self.entropy.fraction());
                *failures = failures.saturating_add(1);
                *until = now + delay;
                tracing::warn!(target = %key.key, %error, ?delay, "can't generate an improvement; trying again later");
                Ok(false)
            }
        }
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
