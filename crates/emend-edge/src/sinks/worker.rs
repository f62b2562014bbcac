//! When a sink looks at its set, and what it reports.
//!
//! It takes no input: it reads the state that its node holds, and is woken by the stream and by time.

use emend_base::{Backoff, Entropy, SharedClock};
use emend_client::NodeHandle;
use tokio::time::Instant;

use super::{
    config::Common,
    content::Writer,
    error::Problem,
    keeper::{Keeper, Standing, Step},
    reporting::Reporting,
    selection::Selection,
    stepped::{BACKOFF, Next, Stepped},
    target::Target,
};

/// A sink that works.
pub(super) struct Worker<T> {
    /// Its id as a node.
    id: String,
    keeper: Keeper<T>,
    selection: Selection,
    node: NodeHandle,
    reporting: Reporting,
    backoff: Backoff,
}

impl<T: Target> Worker<T> {
    pub(super) fn new(
        id: String,
        target: T,
        node: NodeHandle,
        reporting: Reporting,
        common: &Common,
        (clock, entropy): (SharedClock, Entropy),
    ) -> Self {
        Self {
            id,
            selection: target.selection(&common.namespaces),
            keeper: Keeper::new(target, common, clock),
            node,
            reporting,
            backoff: Backoff::new(BACKOFF, entropy),
        }
    }
}

impl<T: Target> Stepped for Worker<T> {
    async fn run_once(&mut self) -> Next {
        let (node, selection) = (self.node.clone(), self.selection.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let state = node.learned();
            let wanted = selection.of(&state, node.view());
            (state.position, wanted)
        });
        let Ok((Some(position), mut wanted)) = reading.await else {
            // Nothing is held yet, or the process ends.
            return Next::idle(Instant::now() + self.keeper.check());
        };
        wanted.writer = Some(Writer::new(
            &self.id,
            self.selection.identity().iter().map(String::as_str),
            &position.epoch,
            position.revision,
        ));
        let standing = Standing {
            is_confirmed: self.reporting.is_confirmed(&position),
            is_connected: self.node.view().staleness().connected,
        };
        let outcome = Box::pin(self.keeper.step(wanted, standing, &self.reporting.gauges)).await;
        if outcome.is_ok() {
            self.backoff.reset();
        }
        let next = match outcome {
            Ok(Step::InForce(refused)) => {
                self.reporting.confirm(position.clone(), refused);
                Next::idle(self.keeper.next_check())
            }
            // It is looked at meanwhile as often as otherwise: a window may be a day away.
            Ok(Step::Later(wait)) => {
                self.reporting.waits(wait);
                Next::after(wait.min(self.keeper.check()))
            }
            Ok(Step::Left) => {
                self.reporting.report(Problem::Drift, None);
                Next::idle(self.keeper.next_check())
            }
            Ok(Step::Overtaken) => {
                tracing::info!("another edge has written a newer state");
                self.reporting.is_fine();
                Next::idle(self.keeper.next_check())
            }
            Err(error) => {
                let wait = error.wait(self.backoff.next());
                tracing::warn!(%error, retry_in = ?wait, "a sink can't be brought up to date");
                self.reporting.report(error.problem, None);
                Next::after(wait)
            }
        };
        self.reporting.show_lag(&position);
        next
    }
}
