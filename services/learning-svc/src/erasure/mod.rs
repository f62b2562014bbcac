//! Erasing a user: what was learned for that user alone goes, by a revision, and later every trace of the user's name.
//!
//! Feedback is redacted one by one, by events of its own ([`crate::ingest`]). What is left is what only the user had:
//! contests of its own, with everything proposed in them ([`erase`]), and the log, which names the user in its keys. Nodes
//! need those keys for as long as they may have to be told of the deletion; once its tombstones have expired, a worker
//! puts a pseudonym in their place and forgets the values ([`worker`]).

pub mod erase;
pub mod store;
pub mod worker;

use emend_core::{FeedbackId, Namespace, ReporterId, UserId, contest::Voter};
use emend_store::StoreError;

use crate::store::UnitOfWork;

/// Makes all others wait, until the unit of work ends, that erase the user or change what the user alone has. A pseudonym is
/// nobody to wait for.
pub(crate) async fn lock_user(
    tx: &mut dyn UnitOfWork,
    namespace: &Namespace,
    user: &UserId,
) -> Result<(), StoreError> {
    let Ok(reporter) = ReporterId::parse(user.as_str()) else {
        return Ok(());
    };
    // Events of this user alone lock the same id.
    let voter = Voter::Reporter(reporter).key(namespace);
    tx.inbox().lock_feedback(&[FeedbackId(voter.0)]).await
}
