//! One runtime in the background, made when it is first needed.
//!
//! A fork copies the memory of a process but none of its threads. What was made before it has nobody who works for it in the
//! child: everything here remembers its process, and a child gets a runtime of its own.

use std::{process, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio::runtime::{Builder, Handle, Runtime};
use tonic::Code;

use crate::Error;

/// Enough to apply updates and to wait for answers side by side.
const WORKERS: usize = 2;

static CURRENT: ArcSwapOption<Background> = ArcSwapOption::const_empty();

struct Background {
    process: u32,
    runtime: Runtime,
}

/// The runtime of this process.
pub fn handle() -> Result<Handle, Error> {
    let found = CURRENT.load();
    if let Some(background) = &*found
        && background.process == process::id()
    {
        return Ok(background.runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("emend")
        .enable_all()
        .build()
        .map_err(|error| {
            let message = format!("can't start threads in the background: {error}");
            Error::new(Code::Internal, "NO_BACKGROUND", message)
        })?;
    let handle = runtime.handle().clone();
    let made = Arc::new(Background {
        process: process::id(),
        runtime,
    });
    let before = CURRENT.compare_and_swap(&found, Some(Arc::clone(&made)));
    let is_ours = match (&*before, &*found) {
        (None, None) => true,
        (Some(before), Some(found)) => Arc::ptr_eq(before, found),
        _ => false,
    };
    if is_ours {
        // The parent's, if there is one: its threads are not here, so nothing may wait for them.
        std::mem::forget(before.clone());
        return Ok(handle);
    }
    // Another thread was faster.
    if let Ok(made) = Arc::try_unwrap(made) {
        made.runtime.shutdown_background();
    }
    drop((before, found));
    self::handle()
}

/// Runs a future in the background and waits for it, in a thread that may be blocked.
pub fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
    let handle = handle()?;
    let task = handle.spawn(future);
    handle.block_on(task).map_err(|_| ended())
}

/// Runs a future in the background, whatever polls the one that is returned.
pub async fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
    handle()?.spawn(future).await.map_err(|_| ended())
}

/// Ends what runs in the background, when the program ends; waits so long for calls under way to be dropped. Whatever is used
/// after it begins anew.
pub fn shutdown(within: Duration) {
    let Some(background) = CURRENT.swap(None) else {
        return;
    };
    if background.process != process::id() {
        std::mem::forget(background);
        return;
    }
    if let Ok(background) = Arc::try_unwrap(background) {
        background.runtime.shutdown_timeout(within);
    }
}

/// Of what was given up because the program ends.
pub fn ended() -> Error {
    Error::new(Code::Cancelled, "CLOSED", "the program is ending")
}

/// Refuses what was made in another process.
pub(crate) fn check(made_in: u32, what: &str) -> Result<(), Error> {
    let here = process::id();
    if made_in == here {
        return Ok(());
    }
    let message = format!(
        "this {what} was made in process {made_in}, before the fork that made process {here}, where nothing keeps it up to \
         date: make it after the fork (gunicorn: in post_fork, or without --preload; Celery: in worker_process_init; \
         multiprocessing: in the worker's initializer)"
    );
    Err(Error::new(Code::FailedPrecondition, "FORKED", message))
}
