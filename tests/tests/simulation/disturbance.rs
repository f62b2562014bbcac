//! Faults of one process's calls to its database.

use std::sync::Arc;

use emend_store::{
    StoreError,
    simulation::{Interference, conflict, unavailable},
};
use futures::future::BoxFuture;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{weather::Place, world::World};

/// The disturbance of one process.
#[derive(Debug)]
pub(crate) struct Disturbance {
    pub(crate) world: Arc<World>,
    pub(crate) place: Place,
    /// Cancelled when the process is dead: its calls never complete.
    pub(crate) killed: CancellationToken,
}

impl Disturbance {
    async fn take_time(&self, call: &'static str) {
        // Leases and locks matter most when settling events and committing are late.
        let critical = matches!(call, "settle" | "commit");
        let delay = self.world.weather.delay(&self.world.dice, critical);
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if self.killed.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    /// Conflicts make whole use cases retry; feedback-svc's store retries by itself.
    fn conflicts(&self) -> bool {
        matches!(self.place, Place::Learning(_))
            && self.world.dice.chance(self.world.weather.rates().conflict)
    }
}

impl Interference for Disturbance {
    fn before<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.take_time(call).await;
            let world = &self.world;
            if world.weather.is_database_away(self.place) {
                return Err(unavailable());
            }
            if world.dice.chance(world.weather.rates().fail) {
                world.trace.note(format_args!("{:?}: {call} fails", self.place));
                return Err(unavailable());
            }
            if call == "lock_contests" && self.conflicts() {
                world
                    .trace
                    .note(format_args!("{:?}: {call} conflicts", self.place));
                return Err(conflict("simulated"));
            }
            Ok(())
        })
    }

    fn after<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            // Like NOTIFY: sent even if the caller never gets the answer.
            if call == "commit" && matches!(self.place, Place::Learning(_)) {
                self.world.notify(self.place);
            }
            self.take_time(call).await;
            let world = &self.world;
            if world.dice.chance(world.weather.rates().unanswered) {
                world
                    .trace
                    .note(format_args!("{:?}: the answer to {call} is lost", self.place));
                return Err(unavailable());
            }
            world.trace.note(format_args!("{:?}: {call}", self.place));
            Ok(())
        })
    }
}
