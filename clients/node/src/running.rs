//! What runs in the background while JavaScript goes on: each under an id, by which it can be cancelled.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use emend_binding::{Error, background};
use emend_client::Code;
use napi::{Env, Result, bindgen_prelude::Object};
use tokio_util::sync::CancellationToken;

use crate::answer::{refused, thrown};

/// What runs now, by id, for all threads of the process.
static RUNNING: LazyLock<Mutex<HashMap<u32, CancellationToken>>> = LazyLock::new(Mutex::default);

/// What settles a promise.
type Settle = Box<dyn FnOnce(Env) -> Result<String> + Send>;

pub(crate) fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn cancel(id: u32) {
    if let Some(token) = running().remove(&id) {
        token.cancel();
    }
}

/// Runs something in the background, and gives its answer, JSON, to a promise. Until then the process does not end by itself. If it is
/// cancelled, or what it belongs to is closed, the answer says so at once.
pub(crate) fn run<'env>(
    env: &'env Env,
    id: u32,
    open: &CancellationToken,
    work: impl Future<Output = String> + Send + 'static,
) -> Result<Object<'env>> {
    let background = background::handle().map_err(|error| thrown(&error))?;
    let (deferred, promise) = env.create_deferred::<String, Settle>()?;
    let token = open.child_token();
    running().insert(id, token.clone());
    background.spawn(async move {
        let answer = tokio::select! {
            biased;
            () = token.cancelled() => refused(&closed()),
            answer = work => answer,
        };
        running().remove(&id);
        deferred.resolve(Box::new(move |_| Ok(answer)));
    });
    Ok(promise)
}

/// It is closed, or the call was given up.
pub(crate) fn closed() -> Error {
    Error::new(
        Code::Cancelled,
        "CLOSED",
        "it was closed, or the call was given up",
    )
}

fn running() -> MutexGuard<'static, HashMap<u32, CancellationToken>> {
    // Nothing panics while it is held.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
