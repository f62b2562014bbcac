//! The relay's worker: takes a batch, sends it and settles the results. Several run concurrently, each with one batch
//! in flight.
//!
//! A step depends only on the leased events and the outbox, so any worker may take one at any time, any number of
//! times. While learning-svc is away, leased events wait in memory until their leases expire and are then claimed
//! again, which writes a new lease; all others wait in the outbox. Neither counts as an attempt or makes an event a
//! dead letter.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use emend_base::{
    Backoff, Entropy,
    backoff::delay_for_attempt,
    span::{self, Pending},
    status::code_name,
    traceparent::Traceparent,
};
use emend_core::{EventId, InstallationId};
use emend_proto::learning::v1::{Event, EventResult, event_result};
use emend_store::StoreError;
use feedback_store::{
    ports::{OutboxStore, Settlement},
    records::{event, outbox::Refusal},
};
use prost::Message as _;
use tokio::{
    sync::RwLock,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{Span, field::Empty, info_span};

use crate::{
    fail_points,
    installation::Target,
    outbox::{
        Delivered, Delivery, DeliveryError,
        config::RelayConfig,
        delivery_queue::{BatchLimit, DeliveryQueue, Leased},
        dispatch::Dispatch,
        verdict::{self, Verdict},
        waiters::{Answer, Waiters},
    },
};

/// The relay counts as dead if no worker has made progress for this long.
const STALL: Duration = Duration::from_mins(1);

/// What one step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// There was nothing to do.
    Idle,
    /// This many events were answered.
    Answered(usize),
    /// learning-svc does not answer.
    Away(String),
}

/// Begins a span for each event whose submission is traced. Attempts without an answer add none: there are many while
/// learning-svc is away.
fn begin_spans(batch: &[Leased]) -> Vec<Option<Pending>> {
    if !span::is_recorded() {
        return Vec::new();
    }
    let together = i64::try_from(batch.len()).unwrap_or(i64::MAX);
    let spans = batch.iter().map(|Leased { event, .. }| {
        let traceparent = Traceparent::parse_sampled(&event.traceparent)?;
        let span = info_span!(
            target: span::TARGET,
            parent: None,
            "deliver feedback",
            otel.kind = "producer",
            messaging.system = "emend",
            messaging.message.id = event.event_id,
            messaging.batch.message_count = together,
            otel.status_description = Empty,
        );
        Some(Pending::new(span, traceparent))
    });
    spans.collect()
}

/// Ends the spans of a batch that was answered.
fn end_spans(spans: Vec<Option<Pending>>, results: &[EventResult]) {
    let spans = spans
        .into_iter()
        .map(|span| span.map_or_else(Span::none, Pending::confirm));
    let spans: Vec<_> = spans.collect();
    span::link_batch(&spans);
    for (span, EventResult { result, .. }) in spans.into_iter().zip(results) {
        if let Some(event_result::Result::Error(error)) = result {
            span.record("otel.status_description", code_name(error.code.into()));
        }
    }
}

/// The reason of a refusal that says nothing is wrong: learning-svc makes a model first, which takes seconds.
const FITTING: &str = "NEAR_FITTING";

/// Whether to log an event whose delivery has failed this many times: not failures that pass by themselves, and the
/// others less and less often.
fn is_told(failed: u32, reason: Option<&str>) -> bool {
    if reason == Some(FITTING) {
        return failed >= 16 && failed.is_power_of_two();
    }
    failed == 3 || (failed > 3 && failed.is_power_of_two())
}

/// Delivers events to learning-svc.
#[derive(Debug)]
pub(crate) struct Relay {
    store: Arc<dyn OutboxStore>,
    delivery: Arc<dyn Delivery>,
    target: Target,
    delivery_queue: DeliveryQueue,
    dispatch: Dispatch,
    waiters: Waiters,
    entropy: Entropy,
    config: RelayConfig,
    /// Locked for writing to be sure that no other batch is in flight.
    under_way: RwLock<()>,
    started: Instant,
    /// When a worker last made progress, in milliseconds since `started`.
    moved: AtomicU64,
}

impl Relay {
    /// A relay that does nothing until its steps are taken.
    pub(crate) fn new(
        store: Arc<dyn OutboxStore>,
        delivery: Arc<dyn Delivery>,
        target: Target,
        delivery_queue: DeliveryQueue,
        waiters: Waiters,
        entropy: Entropy,
        config: RelayConfig,
    ) -> Self {
        Self {
            dispatch: Dispatch::new(delivery_queue.clone(), entropy.clone(), config),
            store,
            delivery,
            target,
            delivery_queue,
            waiters,
            entropy,
            config,
            under_way: RwLock::new(()),
            started: Instant::now(),
            moved: AtomicU64::new(0),
        }
    }

    /// Hands events over to this relay.
    pub(crate) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Whether its workers make progress.
    pub(crate) fn is_alive(&self) -> bool {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        now.saturating_sub(self.moved.load(Ordering::Relaxed))
            < u64::try_from(STALL.as_millis()).unwrap_or(u64::MAX)
    }

    /// Sends one batch: queued events, or else due events from the outbox if a claim was requested. An overdue claim is
    /// made first, and its events go to the end of the queue.
    pub(crate) async fn run_once(&self) -> Result<Step, StoreError> {
        let mut batch = self.take();
        if self.delivery_queue.take_claim(!batch.is_empty()) {
            if let Err(error) = self.claim().await {
                self.delivery_queue.put_back(batch);
                return Err(error);
            }
            if batch.is_empty() {
                batch = self.take();
            }
        }
        self.send(batch).await
    }

    /// Takes steps whenever there is work. Once `draining`, sends what is queued, releases what can't be sent, and
    /// returns.
    pub(crate) async fn run(self: Arc<Self>, draining: CancellationToken) {
        let mut backoff = Backoff::new(self.config.reconnect, self.entropy.clone());
        loop {
            let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.moved.store(elapsed, Ordering::Relaxed);
            let step = if draining.is_cancelled() {
                if self.delivery_queue.len() == 0 {
                    return;
                }
                self.send(self.take()).await
            } else {
                if !self.delivery_queue.has_work() {
                    tokio::select! {
                        () = draining.cancelled() => continue,
                        () = self.delivery_queue.work() => {}
                    }
                }
                self.run_once().await
            };
            let trouble = match step {
                Ok(Step::Idle) => continue,
                Ok(Step::Answered(_)) => {
                    if backoff.attempts() > 0 {
                        tracing::info!("learning-svc answers again");
                    }
                    backoff.reset();
                    continue;
                }
                Ok(Step::Away(reason)) => reason,
                Err(error) => error.to_string(),
            };
            if draining.is_cancelled() {
                tracing::warn!(%trouble, "shutting down; undelivered events stay in the outbox");
                self.release().await;
                return;
            }
            if backoff.attempts() == 0 {
                tracing::warn!(%trouble, "can't deliver events; they wait in the outbox");
            }
            tokio::select! {
                () = draining.cancelled() => {}
                () = sleep(backoff.next()) => {}
            }
        }
    }

    /// Releases the leases of all queued events, so that another replica or the next start need not wait for them to
    /// expire.
    async fn release(&self) {
        let released: Vec<_> = self
            .delivery_queue
            .take_all()
            .into_iter()
            .map(|Leased { event_id, token, .. }| Settlement::Released { event_id, token })
            .collect();
        if let Err(error) = self.store.settle(&released).await {
            tracing::warn!(%error, events = released.len(), "events stay leased until their leases expire");
        }
    }

    /// Releases what dead replicas had leased and requests a claim, periodically until `draining`, to find events that
    /// other replicas left behind or that are due for a retry.
    pub(crate) async fn ask_periodically(self: Arc<Self>, draining: CancellationToken) {
        let claims = async {
            loop {
                self.delivery_queue.remind_of_claim();
                self.pause().await;
            }
        };
        tokio::select! {
            // In this order, so that a simulation draws the same jitter for the same one.
            biased;
            () = draining.cancelled() => {}
            () = claims => {}
            () = self.release_periodically() => {}
        }
    }

    /// Until the next look at the outbox.
    async fn pause(&self) {
        sleep(self.config.poll.mul_f64(self.entropy.jitter(0.2))).await;
    }

    /// Makes what dead replicas had leased due. A failure costs only time: leases expire.
    async fn release_periodically(&self) {
        let mut is_told = false;
        loop {
            let released = self.store.release_abandoned(self.dispatch.holder()).await;
            match &released {
                Ok(0) => {}
                Ok(released) => {
                    tracing::info!(released, "events leased by replicas that are gone are due now");
                    self.delivery_queue.remind_of_claim();
                }
                Err(error) if !is_told => {
                    tracing::warn!(%error, "not known which replicas are gone: what those had leased waits for its leases to expire");
                }
                Err(_) => {}
            }
            is_told = released.is_err();
            self.pause().await;
        }
    }

    fn take(&self) -> Vec<Leased> {
        let limit = BatchLimit {
            events: self.config.batch_events,
            bytes: self.config.batch_bytes,
        };
        // An event whose lease would expire in flight is left to a claim: another replica would send it too.
        self.delivery_queue
            .take(limit, Instant::now() + self.config.answer_timeout)
    }

    /// Leases due events from the outbox and queues them.
    async fn claim(&self) -> Result<(), StoreError> {
        let lease = self.dispatch.lease();
        let expires = Instant::now() + lease.duration;
        let limit = u32::try_from(self.config.batch_events).unwrap_or(u32::MAX);
        let claimed = self.store.claim(limit, lease).await?;
        if !claimed.is_empty() {
            fail_points::EVENTS_CLAIMED.pass();
        }
        if claimed.len() >= self.config.batch_events {
            self.dispatch.due();
        }
        let seen = Instant::now();
        let mut leased = Vec::with_capacity(claimed.len());
        let mut unreadable = Vec::new();
        for entry in claimed {
            match Event::decode(&*entry.payload) {
                Ok(message) => leased.push(Leased {
                    event_id: entry.event_id,
                    size: entry.payload.len(),
                    event: event::complete(message, entry.accepted),
                    attempts: entry.attempts,
                    token: lease.token,
                    expires,
                    seen,
                }),
                Err(error) => unreadable.push(Settlement::Dead {
                    event_id: entry.event_id,
                    token: lease.token,
                    refusal: Refusal {
                        code: tonic::Code::DataLoss.into(),
                        error: format!("the stored event can't be read: {error}"),
                    },
                }),
            }
        }
        self.delivery_queue.append(leased);
        if !unreadable.is_empty() {
            tracing::error!(
                count = unreadable.len(),
                "events in the outbox can't be read: now dead letters"
            );
            self.store.settle(&unreadable).await?;
        }
        Ok(())
    }

    /// The events of a batch that are still in the outbox under their leases. One that has waited here for a while may
    /// not be: another replica leased it, or the database lost it in a failover to a standby. Lost events must not be
    /// delivered: learning-svc would count feedback that is stored nowhere.
    async fn confirm(&self, mut batch: Vec<Leased>) -> Result<Vec<Leased>, StoreError> {
        let now = Instant::now();
        let waited: Vec<_> = batch
            .iter()
            .filter(|leased| now.duration_since(leased.seen) > self.config.trusted)
            .map(|leased| (leased.event_id, leased.token))
            .collect();
        if waited.is_empty() {
            return Ok(batch);
        }
        let there: HashSet<EventId> = match self.store.still_leased(&waited).await {
            Ok(there) => there.into_iter().collect(),
            Err(error) => {
                self.delivery_queue.put_back(batch);
                return Err(error);
            }
        };
        let gone: HashSet<EventId> = waited
            .into_iter()
            .map(|(event_id, _)| event_id)
            .filter(|event_id| !there.contains(event_id))
            .collect();
        batch.retain(|leased| !gone.contains(&leased.event_id));
        for leased in &mut batch {
            if there.contains(&leased.event_id) {
                leased.seen = now;
            }
        }
        if !gone.is_empty() {
            tracing::warn!(
                events = gone.len(),
                "events are no longer in the outbox under their leases and were not sent"
            );
        }
        Ok(batch)
    }

    async fn send(&self, batch: Vec<Leased>) -> Result<Step, StoreError> {
        if batch.is_empty() {
            return Ok(Step::Idle);
        }
        // Read before the batch is confirmed: the database may take as long as a failover to answer.
        let meant = match self.target.known().await {
            Ok(known) => known,
            Err(error) => {
                self.delivery_queue.put_back(batch);
                return Err(error);
            }
        };
        let batch = self.confirm(batch).await?;
        if batch.is_empty() {
            return Ok(Step::Idle);
        }
        fail_points::BATCH_TAKEN.pass();
        let answered = {
            let _under_way = self.under_way.read().await;
            self.deliver(&batch, meant).await
        };
        match answered {
            Ok(results) => {
                fail_points::BATCH_ANSWERED.pass();
                let answered = batch
                    .into_iter()
                    .zip(results.into_iter().map(verdict::judge))
                    .collect();
                self.settle(answered).await
            }
            Err(DeliveryError::Refused { code, .. }) => {
                // The message is not logged, here or for any other refusal: it may quote what a caller sent.
                tracing::warn!(
                    code = code_name(code.into()),
                    events = batch.len(),
                    "a batch was refused: sending its events one by one"
                );
                self.send_alone(batch, meant).await
            }
            Err(away) => {
                self.delivery_queue.put_back(batch);
                Ok(Step::Away(away.to_string()))
            }
        }
    }

    /// Sends events one by one with nothing else in flight, so that a refusal that names no event can only mean this
    /// one.
    async fn send_alone(
        &self,
        batch: Vec<Leased>,
        meant: Option<InstallationId>,
    ) -> Result<Step, StoreError> {
        let _alone = self.under_way.write().await;
        let mut answered = Vec::with_capacity(batch.len());
        let mut away = None;
        let mut rest = batch.into_iter();
        while let Some(leased) = rest.next() {
            match self.deliver(std::slice::from_ref(&leased), meant).await {
                Ok(results) => {
                    answered.extend(
                        results
                            .into_iter()
                            .map(|result| (leased.clone(), verdict::judge(result))),
                    );
                }
                Err(DeliveryError::Refused { code, message }) => {
                    answered.push((leased, Verdict::Never(Refusal { code, error: message }, None)));
                }
                Err(error) => {
                    self.delivery_queue
                        .put_back(std::iter::once(leased).chain(rest).collect());
                    away = Some(error.to_string());
                    break;
                }
            }
        }
        let step = self.settle(answered).await?;
        Ok(away.map_or(step, Step::Away))
    }

    /// Sends a batch to the installation that it is meant for: one result per event, or none at all.
    async fn deliver(
        &self,
        batch: &[Leased],
        meant: Option<InstallationId>,
    ) -> Result<Vec<EventResult>, DeliveryError> {
        let failed = |error: StoreError| DeliveryError::Database(error.to_string());
        let spans = begin_spans(batch);
        let events = batch.iter().map(|leased| leased.event.clone()).collect();
        let Delivered { results, by } = match self.delivery.deliver(events, meant).await {
            Ok(delivered) => delivered,
            Err(error) => {
                if let DeliveryError::OtherInstallation(by) = error {
                    self.target.refused(meant, by).await.map_err(failed)?;
                }
                return Err(error);
            }
        };
        if !self.target.answered(meant, by).await.map_err(failed)? {
            return Err(DeliveryError::OtherInstallation(by));
        }
        let match_up = results.len() == batch.len()
            && results
                .iter()
                .zip(batch)
                .all(|(result, leased)| result.event_id == leased.event.event_id);
        if match_up {
            end_spans(spans, &results);
            Ok(results)
        } else {
            Err(DeliveryError::Unavailable(
                "its results do not match the events".to_owned(),
            ))
        }
    }

    async fn settle(&self, answered: Vec<(Leased, Verdict)>) -> Result<Step, StoreError> {
        if answered.is_empty() {
            return Ok(Step::Idle);
        }
        let count = answered.len();
        let mut settlements = Vec::with_capacity(count);
        let mut answers: Vec<(EventId, Answer)> = Vec::with_capacity(count);
        for (
            Leased {
                event_id,
                token,
                attempts,
                ..
            },
            verdict,
        ) in answered
        {
            settlements.push(match verdict {
                Verdict::Delivered(outcome) => {
                    answers.push((event_id, Answer::Evaluated(outcome.clone())));
                    Settlement::Delivered { event_id, outcome }
                }
                Verdict::Again(refusal, reason) => {
                    let failed = attempts.saturating_add(1);
                    if is_told(failed, reason.as_deref()) {
                        let code = code_name(refusal.code.into());
                        tracing::warn!(%event_id, attempts = failed, code, reason, "an event keeps failing and is retried");
                    }
                    Settlement::Failed {
                        event_id,
                        token,
                        retry_in: delay_for_attempt(attempts, &self.config.retry, self.entropy.fraction()),
                        refusal,
                    }
                }
                Verdict::Never(refusal, reason) => {
                    let code = code_name(refusal.code.into());
                    tracing::error!(%event_id, code, reason, "a dead letter");
                    answers.push((event_id, Answer::Refused));
                    Settlement::Dead {
                        event_id,
                        token,
                        refusal,
                    }
                }
            });
        }
        // Waiters are told even if this fails: the events were evaluated, and will be sent again when their leases
        // expire.
        let settled = self.store.settle(&settlements).await;
        fail_points::BATCH_SETTLED.pass();
        for (event_id, answer) in answers {
            self.waiters.tell(event_id, answer);
        }
        settled.map(|()| Step::Answered(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_not_logged() {
        let told = |reason| {
            (1..40)
                .filter(|failed| is_told(*failed, reason))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(Some("NOT_SO")), [3, 4, 8, 16, 32]);
        assert_eq!(told(None), [3, 4, 8, 16, 32]);
        assert_eq!(told(Some(FITTING)), [16, 32], "a model may take a minute");
    }
}
