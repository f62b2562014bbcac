//! A value of which each process has its own: after a fork the child makes another, and leaves the parent's alone.

use std::{fmt, mem, process, sync::Arc};

use arc_swap::ArcSwap;

use crate::Error;

/// Makes a process's own value.
type Make<T> = Box<dyn Fn() -> Result<T, Error> + Send + Sync>;

/// The value of this process.
pub(crate) struct PerProcess<T> {
    held: ArcSwap<Held<T>>,
    make: Make<T>,
}

pub(crate) struct Held<T> {
    process: u32,
    pub(crate) value: T,
}

impl<T> PerProcess<T> {
    /// Makes the first one now, so that a mistake is noticed where it is made.
    pub(crate) fn new(make: impl Fn() -> Result<T, Error> + Send + Sync + 'static) -> Result<Self, Error> {
        let held = ArcSwap::from_pointee(Held::make(&make)?);
        let make = Box::new(make);
        Ok(Self { held, make })
    }

    /// This process's.
    pub(crate) fn get(&self) -> Result<Arc<Held<T>>, Error> {
        let found = self.held.load_full();
        if found.is_ours() {
            return Ok(found);
        }
        let made = Arc::new(Held::make(&self.make)?);
        let before = self.held.compare_and_swap(&found, Arc::clone(&made));
        if Arc::ptr_eq(&before, &found) {
            // To end the parent's might wait for threads that are not here.
            mem::forget(found);
            return Ok(made);
        }
        Ok(self.held.load_full())
    }
}

impl<T> Held<T> {
    fn make(make: &impl Fn() -> Result<T, Error>) -> Result<Self, Error> {
        let value = make()?;
        Ok(Self {
            process: process::id(),
            value,
        })
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let held = self.held.load_full();
        if !held.is_ours() {
            mem::forget(held);
        }
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}
