//! Where a sink keeps its set: what every engine has to be able to do.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    content::{Seen, Wanted},
    error::SinkError,
    selection::Selection,
};

/// Where a set is kept.
pub(super) trait Target: Send + Sync + 'static {
    /// What is kept there of a state.
    fn selection(&self, namespaces: &[String]) -> Selection;

    /// Takes out of what is wanted what is refused there, part by part.
    fn accept(&mut self, wanted: &mut Wanted) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// What is kept there now.
    fn read(&mut self, wanted: &Wanted) -> impl Future<Output = Result<Seen, SinkError>> + Send;

    /// How long until it may be written, from this moment; none: now.
    fn wait(&self, now: Timestamp) -> Option<Duration>;

    /// Writes what is wanted, and has it loaded. What is there is no set of another's.
    fn write(&mut self, wanted: &Wanted) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Has loaded what is there already.
    fn load(&mut self, wanted: &Wanted) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Whether a query is answered by what is wanted.
    fn probe(&mut self, wanted: &Wanted) -> impl Future<Output = Result<bool, SinkError>> + Send;
}
