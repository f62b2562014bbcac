//! How a process, or a service within one, shuts down: first softly, then hard, always within a bounded time.
//!
//! A [`Lifecycle`] is a scope that owns tasks. The soft token asks them to finish: servers stop accepting, streams send
//! Drain, workers complete their current step. The hard token, after a grace period, stops them wherever they are.
//! There is no global token: every service gets a child scope, and several services may live in one process, as in
//! tests.
//!
//! A task that panics is a defect, and restarting that task alone can't be trusted to repair it. The panic is logged,
//! the whole tree of scopes shuts down softly, and the process exits with an error so that its supervisor starts it
//! afresh.

use std::{
    any::Any,
    future::Future,
    io,
    panic::AssertUnwindSafe,
    process::ExitCode,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::FutureExt as _;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// How long tasks have to be dropped once the hard token is cancelled.
const HARD_STOP: Duration = Duration::from_secs(1);

/// A scope that owns tasks and ends them. Clones share the scope.
#[derive(Debug, Clone)]
pub struct Lifecycle(Arc<Scope>);

#[derive(Debug)]
struct Scope {
    soft: CancellationToken,
    hard: CancellationToken,
    tasks: TaskTracker,
    parent: Option<Arc<Scope>>,
    /// The first failure in the whole tree.
    failure: Arc<OnceLock<String>>,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Every task ended within the grace period.
    Graceful,
    /// Some tasks had to be stopped by the hard token.
    Forced,
    /// This many tasks did not stop even then and are abandoned.
    Abandoned(usize),
}

impl Lifecycle {
    /// A new root scope.
    #[expect(
        clippy::new_without_default,
        reason = "a new scope is a decision, not a default"
    )]
    pub fn new() -> Self {
        Self(Arc::new(Scope {
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            tasks: TaskTracker::new(),
            parent: None,
            failure: Arc::default(),
        }))
    }

    /// A child scope: it ends with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Scope {
            soft: self.0.soft.child_token(),
            hard: self.0.hard.child_token(),
            tasks: TaskTracker::new(),
            parent: Some(Arc::clone(&self.0)),
            failure: Arc::clone(&self.0.failure),
        }))
    }

    /// Cancelled to ask tasks to finish.
    pub fn soft(&self) -> &CancellationToken {
        &self.0.soft
    }

    /// Cancelled to stop tasks wherever they are.
    pub fn hard(&self) -> &CancellationToken {
        &self.0.hard
    }

    /// Whether tasks have been asked to finish.
    pub fn is_stopping(&self) -> bool {
        self.0.soft.is_cancelled()
    }

    /// Runs `task` in this scope. It should end soon after the soft token is cancelled, and is dropped when the hard
    /// token is. If it panics, the whole tree shuts down with an error.
    pub fn spawn<F>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let scope = self.clone();
        self.spawn_owned(async move {
            tokio::select! {
                biased;
                () = scope.0.hard.cancelled() => tracing::warn!(task = name, "stopped by the hard deadline"),
                ended = AssertUnwindSafe(task).catch_unwind() => {
                    if let Err(panic) = ended {
                        scope.fail(format!("task {name} panicked: {}", panic_message(&*panic)));
                    }
                }
            }
        })
    }

    /// Like [`Lifecycle::spawn`], for a task that returns an error if it can't go on; that too shuts the tree down.
    pub fn spawn_fallible<F, E>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let scope = self.clone();
        self.spawn(name, async move {
            if let Err(error) = task.await {
                scope.fail(format!("task {name} failed: {error}"));
            }
        })
    }

    /// Runs a future that handles both tokens itself and whose panic affects nothing else, such as a connection.
    pub fn spawn_owned<F>(&self, task: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let owners = self.owners();
        // The owners are released when the future ends or is dropped. Not an async block, which would reserve space for
        // two copies of the task: that matters with thousands of connections.
        tokio::spawn(task.map(move |()| drop(owners)))
    }

    /// Shuts the whole tree down softly after an unrecoverable failure. The first failure is the one reported.
    pub fn fail(&self, reason: impl Into<String>) {
        let reason = reason.into();
        tracing::error!(%reason, "shutting down");
        // Keep only the first failure: later ones are usually its consequence.
        let _ = self.0.failure.set(reason);
        let mut root = &self.0;
        while let Some(parent) = &root.parent {
            root = parent;
        }
        root.soft.cancel();
    }

    /// Why the tree is shutting down, if something failed.
    pub fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
    }

    /// Ends this scope: asks the tasks to finish, waits up to `grace`, then stops the rest hard. Returns within `grace`
    /// plus one second, whatever the tasks do. May be called again; tasks already stopped hard do not get that second
    /// again.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let Scope {
            soft, hard, tasks, ..
        } = &*self.0;
        let stopped_before = hard.is_cancelled();
        soft.cancel();
        tasks.close();
        let graceful = timeout(grace, tasks.wait()).await.is_ok();
        hard.cancel();
        if graceful {
            return Shutdown::Graceful;
        }
        tracing::warn!(
            tasks = tasks.len(),
            ?grace,
            "not finished within the grace; stopping hard"
        );
        let left = if stopped_before { Duration::ZERO } else { HARD_STOP };
        if timeout(left, tasks.wait()).await.is_ok() {
            return Shutdown::Forced;
        }
        tracing::error!(tasks = tasks.len(), "abandoning tasks that do not stop");
        Shutdown::Abandoned(tasks.len())
    }

    fn owners(&self) -> Vec<TaskTrackerToken> {
        let mut owners = vec![self.0.tasks.token()];
        let mut scope = &self.0;
        while let Some(parent) = &scope.parent {
            owners.push(parent.tasks.token());
            scope = parent;
        }
        owners
    }
}

/// A panic's message, if it has one.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals no longer end the process by themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// For `main`: the result of `start`, or `None` if a signal arrives first. Then `start` is dropped where it is, and
    /// everything it spawned in the scope is stopped.
    pub async fn during<T>(&mut self, lifecycle: &Lifecycle, start: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            started = start => return Some(started),
            name = self.recv() => tracing::info!(signal = name, "ending before it has started"),
        }
        lifecycle.shutdown(Duration::ZERO).await;
        None
    }
}

/// For `main`: runs until a signal arrives or the scope is asked to stop, then shuts it down within `grace` (and at
/// most two seconds more). A second signal ends the process at once, with exit code 130. Fails if anything in the scope
/// did.
pub async fn run_until_signal(signals: &mut Signals, lifecycle: &Lifecycle, grace: Duration) -> ExitCode {
    tokio::select! {
        name = signals.recv() => tracing::info!(signal = name, ?grace, "shutting down; once more to end at once"),
        () = lifecycle.soft().cancelled() => {}
    }
    let outcome = tokio::select! {
        outcome = lifecycle.shutdown(grace) => outcome,
        name = signals.recv() => {
            tracing::warn!(signal = name, "ending at once");
            // Returning would still wait for the runtime's blocking threads.
            std::process::exit(130);
        }
    };
    match (lifecycle.failure(), outcome) {
        (None, Shutdown::Graceful | Shutdown::Forced) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicBool, Ordering},
    };

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_on_the_soft_token_makes_the_shutdown_graceful() {
        let lifecycle = Lifecycle::new();
        let soft = lifecycle.soft().clone();
        lifecycle.spawn("polite", async move {
            soft.cancelled().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
        });
        let start = Instant::now();
        assert_eq!(
            lifecycle.shutdown(Duration::from_secs(10)).await,
            Shutdown::Graceful
        );
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        assert_eq!(lifecycle.failure(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_task_is_cut_at_the_hard_deadline() {
        let lifecycle = Lifecycle::new();
        let dropped = Arc::new(AtomicBool::new(false));
        let guard = SetOnDrop(Arc::clone(&dropped));
        lifecycle.spawn("stuck", async move {
            let _guard = guard;
            pending::<()>().await;
        });
        let start = Instant::now();
        assert_eq!(
            lifecycle.shutdown(Duration::from_secs(10)).await,
            Shutdown::Forced
        );
        assert_eq!(start.elapsed(), Duration::from_secs(10));
        assert!(dropped.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_that_ignores_even_the_hard_token_is_abandoned_after_a_bounded_time() {
        let lifecycle = Lifecycle::new();
        let task = lifecycle.spawn_owned(pending());
        let start = Instant::now();
        assert_eq!(
            lifecycle.shutdown(Duration::from_secs(10)).await,
            Shutdown::Abandoned(1)
        );
        assert_eq!(start.elapsed(), Duration::from_secs(10) + HARD_STOP);
        assert_eq!(lifecycle.shutdown(Duration::ZERO).await, Shutdown::Abandoned(1));
        assert_eq!(
            start.elapsed(),
            Duration::from_secs(10) + HARD_STOP,
            "no second time"
        );
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_ends_alone_and_its_siblings_keep_running() {
        let parent = Lifecycle::new();
        let (ending, staying) = (parent.child(), parent.child());
        for child in [&ending, &staying] {
            let soft = child.soft().clone();
            child.spawn("polite", async move { soft.cancelled().await });
        }
        assert_eq!(ending.shutdown(Duration::from_secs(1)).await, Shutdown::Graceful);
        assert!(!staying.is_stopping());
        assert!(!parent.is_stopping());
    }

    #[tokio::test(start_paused = true)]
    async fn a_parent_waits_for_the_tasks_of_its_children() {
        let parent = Lifecycle::new();
        parent
            .child()
            .child()
            .spawn("slow", tokio::time::sleep(Duration::from_secs(4)));
        let start = Instant::now();
        assert_eq!(parent.shutdown(Duration::from_secs(10)).await, Shutdown::Graceful);
        assert_eq!(start.elapsed(), Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_a_child_shuts_the_whole_tree_down_with_an_error() {
        let parent = Lifecycle::new();
        let (child, sibling) = (parent.child(), parent.child());
        child.spawn("faulty", async { panic!("the invariant is gone") });
        sibling.soft().cancelled().await;
        assert_eq!(
            parent.failure(),
            Some("task faulty panicked: the invariant is gone")
        );
        assert_eq!(
            run_until_signal(&mut Signals::listen().unwrap(), &parent, Duration::from_secs(1)).await,
            ExitCode::FAILURE
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_a_task_ends_with_shuts_down_too() {
        let lifecycle = Lifecycle::new();
        lifecycle.spawn_fallible("tailer", async { Err("the log is gone") });
        lifecycle.soft().cancelled().await;
        assert_eq!(lifecycle.failure(), Some("task tailer failed: the log is gone"));
    }

    struct SetOnDrop(Arc<AtomicBool>);

    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
