//! What nodes and clients log, for a logger in JavaScript.

use std::{
    str::FromStr as _,
    sync::{Mutex, Once, PoisonError},
    thread,
    time::Duration,
};

use emend_binding::log::{Record, collect, next};
use napi::{
    Error, Result, Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;
use serde_json::json;
use tracing::Level;

/// Tells JavaScript of a record. It keeps no process from ending.
type Logger = ThreadsafeFunction<String, (), String, Status, false, true, 1024>;

/// The newest logger, and the least important level that it is told.
static LOGGER: Mutex<Option<(Logger, Level)>> = Mutex::new(None);
/// Whoever takes records from their queue.
static TAKING: Once = Once::new();
/// How long a thread waits for the next record.
const PATIENCE: Duration = Duration::from_hours(1);

/// See `lib/logger.js`.
#[napi]
pub(crate) fn set_logger(logger: Option<Logger>, level: String) -> Result<()> {
    let level = Level::from_str(&level).map_err(|error| Error::from_reason(error.to_string()))?;
    *LOGGER.lock().unwrap_or_else(PoisonError::into_inner) = logger.map(|logger| (logger, level));
    TAKING.call_once(|| {
        collect(Level::DEBUG);
        // It ends with the process.
        thread::spawn(|| {
            loop {
                if let Some(record) = next(PATIENCE) {
                    tell(&record);
                }
            }
        });
    });
    Ok(())
}

fn tell(record: &Record) {
    let logger = LOGGER.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted = |least: &Level| Level::from_str(record.level).is_ok_and(|level| level <= *least);
    if let Some((logger, _)) = logger.as_ref().filter(|(_, least)| is_wanted(least)) {
        let (target, message) = (&record.target, &record.message);
        let told = json!({ "level": record.level.to_lowercase(), "target": target, "message": message });
        // A logger that is slow, or whose thread has ended, misses some.
        let _ = logger.call(told.to_string(), ThreadsafeFunctionCallMode::NonBlocking);
    }
}
