//! Reverts a whole operation, such as an import: each of its revisions by a new one, in a transaction of its own.
//!
//! What reverts an operation is itself an operation, whose id follows from that of the first. So a call that is repeated
//! knows what the calls before it did, and what others changed since is told apart from that.

use emend_base::Error;
use emend_core::{Event, Learned, Namespace, OperationId, ResourceKey, Revision};
use emend_serve::auth::Access;
use learning_store::{actor::Actor, contests::Named, log::WrittenChange};
use uuid::Uuid;

use crate::{
    decisions::{numbering::RevisionChoice, open::Attribution, users::lock_user},
    failure::Failure,
    log::{
        Log,
        revert::{owners, why_not},
    },
};

/// The UUID namespace for the ids of operations that revert others (RFC 9562, version 5).
const REVERTS: Uuid = Uuid::from_u128(0x6b1e_5f2c_8d0a_4f6e_a3c4_51b7_0c2d_9e18);
/// Revisions looked up at once.
const REVISIONS: u32 = 1_000;
/// Changes that are left and reported at most.
const REPORTED: usize = 100;

/// Which operation to revert, and who does it.
#[derive(Debug, Clone)]
pub struct RevertOperation {
    /// The namespace everything the operation changed must be in.
    pub namespace: Namespace,
    /// The operation to revert.
    pub operation: OperationId,
    /// Whether it is only counted.
    pub preview: bool,
    /// The reason given.
    pub reason: String,
    /// Who reverts it.
    pub actor: Actor,
}

/// A change that was not reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The resource.
    pub key: ResourceKey,
    /// The revision of the operation that changed it.
    pub revision: Revision,
    /// Why it is left.
    pub why: String,
}

/// What reverting an operation came to, or would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevertedOperation {
    /// The operation that reverts it.
    pub operation: OperationId,
    /// The first revision written; 0 if none was.
    pub first: Revision,
    /// The last revision written; 0 if none was.
    pub last: Revision,
    /// Changes that were reverted.
    pub reverted: u64,
    /// Changes that this same operation had reverted before.
    pub already: u64,
    /// Changes that were left.
    pub left_count: u64,
    /// The first of them.
    pub left: Vec<Left>,
}

impl RevertedOperation {
    fn leave(&mut self, change: &WrittenChange, revision: Revision, why: String) {
        self.left_count += 1;
        if self.left.len() < REPORTED {
            self.left.push(Left {
                key: change.key.clone(),
                revision,
                why,
            });
        }
    }

    fn add(&mut self, part: Self) {
        if self.first == Revision::default() {
            self.first = part.first;
        }
        self.last = self.last.max(part.last);
        self.reverted += part.reverted;
        self.already += part.already;
        self.left_count += part.left_count;
        self.left.extend(part.left);
        self.left.truncate(REPORTED);
    }
}

/// The operation that reverts this one.
pub fn reverting(operation: OperationId) -> OperationId {
    OperationId(Uuid::new_v5(&REVERTS, operation.0.as_bytes()))
}

/// What is to be done about a change of an operation.
enum Due {
    /// It is in force, and what was there before can be restored.
    Now,
    /// It was reverted before.
    Already,
    /// It stays as it is.
    Left(String),
}

fn due(change: &WrittenChange, revert: &RevertOperation) -> Due {
    if change.newest_operation == Some(revert.operation) {
        why_not(change).map_or(Due::Now, Due::Left)
    } else if change.newest_operation == Some(reverting(revert.operation)) {
        Due::Already
    } else {
        Due::Left(format!("changed again by revision {}", change.newest))
    }
}

impl Log {
    /// Reverts an operation if `access` permits: changes to users' own resources need the right to act for users. The oldest
    /// of its revisions comes first, so that a key that it changed several times gets the value from before the operation.
    pub async fn revert_operation(
        &self,
        revert: &RevertOperation,
        access: &Access,
    ) -> Result<RevertedOperation, Error> {
        let mut done = nothing(revert);
        let mut after = Revision::default();
        let mut found = false;
        loop {
            let revisions = self
                .store
                .revisions_of(revert.operation, after, REVISIONS)
                .await?;
            let Some(last) = revisions.last().copied() else {
                break;
            };
            found = true;
            after = last;
            for revision in revisions {
                let part = self
                    .decisions
                    .retry(|| self.try_revert_part(revert, revision, access));
                let part = part.await?;
                if part.last > Revision::default() {
                    self.decisions.wake();
                }
                done.add(part);
            }
        }
        if !found {
            return Err(Error::not_found("operation", revert.operation.to_string()));
        }
        self.decisions.publish(done.last).await;
        Ok(done)
    }

    /// Reverts one revision of an operation.
    async fn try_revert_part(
        &self,
        revert: &RevertOperation,
        revision: Revision,
        access: &Access,
    ) -> Result<RevertedOperation, Failure> {
        let mut tx = self.store.begin().await?;
        let changes = tx.log().changes_of(revision).await?;
        if changes
            .iter()
            .any(|change| change.key.namespace != revert.namespace)
        {
            return Err(Error::not_found("operation", revert.operation.to_string()).into());
        }
        if changes.iter().any(|change| change.key.user.is_some()) {
            access.as_of_now()?.speaks_for_users(revert.namespace.as_str())?;
        }
        if revert.preview {
            return Ok(previewed(revert, revision, &changes));
        }
        let due_now = |change: &&WrittenChange| matches!(due(change, revert), Due::Now);
        let keys: Vec<ResourceKey> = changes
            .iter()
            .filter(due_now)
            .map(|change| change.key.clone())
            .collect();
        if keys.is_empty() {
            return Ok(previewed(revert, revision, &changes));
        }
        for user in owners(&changes) {
            lock_user(&mut *tx, &revert.namespace, user).await?;
        }
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        // Read again, now that nobody else can write to these keys.
        let changes = tx.log().changes_of(revision).await?;
        let attribution = Attribution {
            actor: revert.actor.clone(),
            reason: revert.reason.clone(),
            operation: Some(reverting(revert.operation)),
            trigger: None,
            task: None,
        };
        let mut part = nothing(revert);
        for change in changes {
            let contest = change.key.contest_id();
            match due(&change, revert) {
                // What came to be due only now was not locked: a repeated call finds it.
                Due::Now if unit.state(contest).is_none() => {
                    part.leave(&change, revision, "changed meanwhile: repeat the call".to_owned());
                }
                Due::Now => {
                    if let Some(Learned::Prompt(before)) = change.before.as_ref().map(|value| &value.learned)
                    {
                        unit.read_named(&mut *tx, contest, Named::Version(before.version))
                            .await?;
                    }
                    let event = Event::Revert {
                        revision,
                        restore: change.before.clone(),
                        reason: revert.reason.clone(),
                    };
                    match unit.decide(contest, &event, &attribution, RevisionChoice::Shared) {
                        Ok(_) => part.reverted += 1,
                        Err(refusal) => part.leave(&change, revision, format!("is refused: {refusal}")),
                    }
                }
                Due::Already => part.already += 1,
                Due::Left(why) => part.leave(&change, revision, why),
            }
        }
        let written = self.decisions.commit(tx, &mut unit).await?;
        part.first = written.revisions.first();
        part.last = written.revisions.last();
        Ok(part)
    }
}

fn nothing(revert: &RevertOperation) -> RevertedOperation {
    RevertedOperation {
        operation: reverting(revert.operation),
        first: Revision::default(),
        last: Revision::default(),
        reverted: 0,
        already: 0,
        left_count: 0,
        left: Vec::new(),
    }
}

fn previewed(revert: &RevertOperation, revision: Revision, changes: &[WrittenChange]) -> RevertedOperation {
    let mut part = nothing(revert);
    for change in changes {
        match due(change, revert) {
            Due::Now => part.reverted += 1,
            Due::Already => part.already += 1,
            Due::Left(why) => part.leave(change, revision, why),
        }
    }
    part
}
