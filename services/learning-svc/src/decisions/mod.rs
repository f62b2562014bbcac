//! Decisions: contests opened, decided on and written, in one unit of work. Every change of what nodes answer goes this way.
//!
//! [`open`] locks contests and decides on them in memory, one event after another, before they are written in one go;
//! [`ballot_cache`] keeps the ballots of contests with many votes from one transaction to the next. Revisions get their numbers
//! last ([`numbering`]). What a decision means for the evidence graph is written with it ([`evidence`]), and a list of a profile
//! has room for it ([`profile_room`]). [`review`] is how people decide on candidates, whatever these are.

pub(crate) mod answers;
pub mod ballot_cache;
pub(crate) mod evidence;
pub mod metrics;
pub mod numbering;
pub mod open;
pub(crate) mod profile_room;
pub mod review;
pub(crate) mod users;

use async_trait::async_trait;
use emend_core::Revision;

/// The log follower of this process.
#[async_trait]
pub trait Follower: Send + Sync {
    /// Signals that revisions were committed.
    fn wake(&self);

    /// Completes once this process's readers see the revision.
    async fn reached(&self, revision: Revision);
}
