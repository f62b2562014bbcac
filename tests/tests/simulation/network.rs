//! The network: messages take time, are lost with their connection, arrive twice, or overtake each other on another
//! connection.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use emend_proto::learning::v1::{Event, EventResult, IngestRequest, event_result};
use feedback_svc::simulation::Learning;
use futures::future::BoxFuture;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use crate::{
    weather::Place,
    world::{ANSWER_TIMEOUT, Running, World, lock},
};

/// A message did not arrive, and its connection is gone.
#[derive(Debug)]
pub(crate) struct Lost;

impl World {
    /// Delivers a message from one place to another.
    pub(crate) async fn travel(&self, from: Place, to: Place) -> Result<(), Lost> {
        sleep(self.weather.delay(&self.dice, false)).await;
        let lost = self.dice.chance(self.weather.rates().lose);
        if lost || self.weather.is_cut(from, to) {
            self.trace
                .note(format_args!("what {from:?} sent to {to:?} is lost"));
            // Sometimes the loss goes unnoticed for a while.
            let silence = if self.dice.chance(0.2) { 6_000 } else { 50 };
            sleep(self.some_millis(silence)).await;
            return Err(Lost);
        }
        Ok(())
    }

    /// Does something within a process; it comes to nothing if the process is killed.
    pub(crate) async fn within<R, T>(running: &Running<R>, work: impl Future<Output = T>) -> Result<T, Lost> {
        tokio::select! {
            biased;
            () = running.killed.cancelled() => Err(Lost),
            done = work => Ok(done),
        }
    }
}

/// A relay's link to learning-svc: one connection at a time, to any replica.
#[derive(Debug)]
pub(crate) struct Route {
    world: Weak<World>,
    from: Place,
    connection: Mutex<Option<usize>>,
}

impl Route {
    pub(crate) fn new(world: &Arc<World>, from: Place) -> Self {
        Self {
            world: Arc::downgrade(world),
            from,
            connection: Mutex::default(),
        }
    }

    async fn attempt(&self, world: &Arc<World>, events: Vec<Event>) -> Result<Vec<EventResult>, Lost> {
        let number = *lock(&self.connection).get_or_insert_with(|| world.dice.below(world.learning.len()));
        let slot = &world.learning[number];
        world.travel(self.from, slot.place).await?;
        let running = slot.running().ok_or(Lost)?;
        let (answer, answered) = oneshot::channel();
        serve(world, &running, events.clone(), Some(answer));
        if world.dice.chance(world.weather.rates().duplicate) {
            world.trace.note(format_args!(
                "what {:?} sent comes twice: {} events",
                self.from,
                events.len()
            ));
            let other = &world.learning[world.dice.below(world.learning.len())];
            if let Some(other) = other.running() {
                serve(world, &other, events, None);
            }
        }
        let results = answered.await.map_err(|_| Lost)?;
        world.travel(slot.place, self.from).await?;
        Ok(results)
    }
}

/// Applies a batch within a replica, whether or not the sender still waits for it.
fn serve(
    world: &Arc<World>,
    running: &Running<learning_svc::simulation::Replica>,
    events: Vec<Event>,
    answer: Option<oneshot::Sender<Vec<EventResult>>>,
) {
    let (world, running) = (Arc::clone(world), running.clone());
    tokio::spawn(async move {
        if answer.is_none() {
            sleep(world.some_millis(2_000)).await;
        }
        let request = IngestRequest {
            events,
            ..Default::default()
        };
        let Ok(response) = World::within(&running, running.replica.ingest(request)).await else {
            return;
        };
        if running.killed.is_cancelled() {
            return;
        }
        match response {
            Ok(response) => {
                for result in &response.results {
                    if let Some(event_result::Result::Outcome(outcome)) = &result.result {
                        world.check_outcome(&result.event_id, outcome);
                    }
                }
                if let Some(answer) = answer {
                    // The sender may have given up.
                    let _ = answer.send(response.results);
                }
            }
            Err(status) => world.violation(format!("a batch was refused: {status}")),
        }
    });
}

impl Learning for Route {
    fn deliver(&self, events: Vec<Event>) -> BoxFuture<'_, Result<Vec<EventResult>, String>> {
        Box::pin(async move {
            let world = self.world.upgrade().ok_or("the world has ended")?;
            if let Ok(Ok(results)) = timeout(ANSWER_TIMEOUT, self.attempt(&world, events)).await {
                return Ok(results);
            }
            lock(&self.connection).take();
            Err("no answer".to_owned())
        })
    }
}

/// How long a client waits for an answer before it retries.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
