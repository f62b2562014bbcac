//! Faults of in-memory stores: a call is slow, fails, or takes effect while its answer is lost.
//!
//! The services' in-memory stores ask an [`Interference`] before and after each call; the deterministic simulation
//! answers from its seeded randomness. None of this is in a released binary.

use std::{borrow::Cow, error::Error, fmt};

use futures::future::{BoxFuture, ready};
use sqlx::error::{DatabaseError, ErrorKind};

use crate::StoreError;

/// Decides what happens to calls.
pub trait Interference: Send + Sync + fmt::Debug + 'static {
    /// Runs before the call. An error becomes the call's answer, and the call has no effect.
    fn before<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Runs after the call took effect and before it answers. An error becomes the answer although the effect stays.
    fn after<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Leaves every call alone.
#[derive(Debug, Clone, Copy)]
pub struct NoInterference;

impl Interference for NoInterference {
    fn before<'a>(&'a self, _call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn after<'a>(&'a self, _call: &'static str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}

/// The database can't be reached.
pub fn unavailable() -> StoreError {
    StoreError::Unavailable(sqlx::Error::PoolClosed)
}

/// Another transaction won; the use case starts over.
pub fn conflict(reason: &str) -> StoreError {
    StoreError::Conflict(sqlx::Error::Protocol(reason.to_owned()))
}

/// A unique index refuses a row.
pub fn unique_violation(index: &'static str) -> StoreError {
    StoreError::Sqlx(sqlx::Error::Database(Box::new(UniqueViolation(index))))
}

#[derive(Debug)]
struct UniqueViolation(&'static str);

impl fmt::Display for UniqueViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the unique index of {} refuses the row", self.0)
    }
}

impl Error for UniqueViolation {}

impl DatabaseError for UniqueViolation {
    fn message(&self) -> &str {
        self.0
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::UniqueViolation
    }
}
