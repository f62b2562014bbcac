//! Locks of users: what a user alone has is changed by one unit of work at a time, and not while the user is erased.

use emend_core::{FeedbackId, Namespace, ReporterId, ResourceKey, UserId, voter::Voter};
use emend_store::StoreError;
use learning_store::UnitOfWork;

/// Makes all others wait, until the unit of work ends, that erase one of the users whose own these keys are, or change what
/// such a user alone has. A pseudonym is nobody to wait for.
pub(crate) async fn lock_users<'a>(
    tx: &mut dyn UnitOfWork,
    keys: impl Iterator<Item = &'a ResourceKey>,
) -> Result<(), StoreError> {
    let lock = |key: &ResourceKey| user_lock(&key.namespace, key.user.as_ref()?);
    let locks: Vec<FeedbackId> = keys.filter_map(lock).collect();
    if locks.is_empty() {
        return Ok(());
    }
    tx.inbox().lock_feedback(&locks).await
}

/// The same for one user.
pub(crate) async fn lock_user(
    tx: &mut dyn UnitOfWork,
    namespace: &Namespace,
    user: &UserId,
) -> Result<(), StoreError> {
    match user_lock(namespace, user) {
        Some(lock) => tx.inbox().lock_feedback(&[lock]).await,
        None => Ok(()),
    }
}

/// What events of this user alone lock too; none of a pseudonym.
fn user_lock(namespace: &Namespace, user: &UserId) -> Option<FeedbackId> {
    let reporter = ReporterId::parse(user.as_str()).ok()?;
    Some(FeedbackId(Voter::Reporter(reporter).key(namespace).0))
}
