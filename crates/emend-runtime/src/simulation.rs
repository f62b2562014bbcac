//! What may befall a call of an in-memory store: that it takes its time, that it fails, that it is done and its answer lost.
//!
//! The services' in-memory stores ask an [`Interference`] before and after each call; the deterministic simulation answers
//! from its seeded dice. Nothing of this is in a binary that ships. It must know nothing of what the calls do.

use std::{borrow::Cow, error::Error, fmt};

use futures::future::{BoxFuture, ready};
use sqlx::error::{DatabaseError, ErrorKind};

use crate::store::StoreError;

/// Decides what befalls calls.
pub trait Interference: Send + Sync + fmt::Debug + 'static {
    /// Before the call has any effect. An error is its answer, and it has none.
    fn before<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// After it took effect, before it is answered. An error is its answer all the same.
    fn after<'a>(&'a self, call: &'static str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Nothing ever happens to a call.
#[derive(Debug, Clone, Copy)]
pub struct Undisturbed;

impl Interference for Undisturbed {
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

/// Another transaction was faster; the use case begins anew.
pub fn conflict(what: &str) -> StoreError {
    StoreError::Conflict(sqlx::Error::Protocol(what.to_owned()))
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
