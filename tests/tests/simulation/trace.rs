//! What happened in a schedule, line by line, with virtual times.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

/// The lines. They are kept only on demand: thousands of schedules are run, and few are looked at.
#[derive(Debug)]
pub(crate) struct Trace {
    started: Instant,
    kept: Option<Mutex<Vec<String>>>,
}

impl Trace {
    pub(crate) fn new(kept: bool) -> Self {
        Self {
            started: Instant::now(),
            kept: kept.then(Mutex::default),
        }
    }

    /// Adds a line.
    pub(crate) fn note(&self, line: fmt::Arguments<'_>) {
        if let Some(lines) = &self.kept {
            let at = self.started.elapsed().as_millis();
            lock(lines).push(format!("{at:>7} ms  {line}"));
        }
    }

    /// All lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept
            .as_ref()
            .map(|lines| lock(lines).clone())
            .unwrap_or_default()
    }
}

fn lock<T>(lines: &Mutex<T>) -> MutexGuard<'_, T> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}
