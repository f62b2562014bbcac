//! Reverts a revision: the state before it is restored, as a new revision.

mod operation;

use std::collections::BTreeSet;

use emend_base::{Error, error::PreconditionViolation};
use emend_core::{Event, Invalid, Kind, Learned, Namespace, Refusal, Revision, UserId};
use emend_serve::auth::Access;
use learning_store::{UnitOfWork, actor::Actor, contests::Named, log::WrittenChange};

use crate::{
    decisions::{
        numbering::RevisionChoice,
        open::{Attribution, OpenContests},
        users::lock_user,
    },
    failure::{Failure, refused, subject},
    log::Log,
};

pub use self::operation::{Left, RevertOperation, RevertedOperation, reverting};

/// A status travels in HTTP/2 headers, which clients limit to 8 to 16 KiB: violations stop here, and the message says
/// how many there are.
const VIOLATIONS_BYTES: usize = 4 * 1024;

/// Which revision to revert, and who does it.
#[derive(Debug, Clone)]
pub struct Revert {
    /// The namespace everything the revision changed must be in.
    pub namespace: Namespace,
    /// The revision to revert.
    pub revision: Revision,
    /// The reason given.
    pub reason: String,
    /// Who reverts it.
    pub actor: Actor,
}

impl Log {
    /// Reverts a revision if `access` permits: changes to a user's own resources need the right to act for users.
    /// Returns the new revision.
    pub async fn revert(&self, revert: &Revert, access: &Access) -> Result<Revision, Error> {
        let revision = self.decisions.retry(|| self.try_revert(revert, access)).await?;
        self.decisions.publish(revision).await;
        Ok(revision)
    }

    /// How many changes reverting a revision would revert; fails as reverting would. Writes nothing.
    pub async fn preview(&self, revert: &Revert, access: &Access) -> Result<u64, Error> {
        let previewed = self.decisions.retry(|| async {
            let mut tx = self.store.begin().await?;
            let (_, count) = self.prepare(&mut *tx, revert, access).await?;
            Ok(count)
        });
        Ok(previewed.await?)
    }

    async fn try_revert(&self, revert: &Revert, access: &Access) -> Result<Revision, Failure> {
        let mut tx = self.store.begin().await?;
        let (mut unit, _) = self.prepare(&mut *tx, revert, access).await?;
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok(written.revisions.last())
    }

    /// Decides everything that reverting comes to, and how many changes it reverts.
    async fn prepare(
        &self,
        tx: &mut dyn UnitOfWork,
        revert: &Revert,
        access: &Access,
    ) -> Result<(OpenContests, u64), Failure> {
        let changes = tx.log().changes_of(revert.revision).await?;
        if changes.is_empty()
            || changes
                .iter()
                .any(|change| change.key.namespace != revert.namespace)
        {
            return Err(Error::not_found("revision", revert.revision.to_string()).into());
        }
        if changes.iter().any(|change| change.key.user.is_some()) {
            access.speaks_for_users(revert.namespace.as_str())?;
        }
        if let Some(shown) = changes
            .iter()
            .find(|change| !change.key.kind.rules().rule.keeps_history())
        {
            return Err(refused(&Refusal::Window, &subject(&shown.key)).into());
        }
        if let Some((change, Invalid(why))) = changes
            .iter()
            .find_map(|change| Some((change, change.key.check_by_hand().err()?)))
        {
            return Err(Error::FailedPrecondition {
                reason: "SYSTEM_LAYER",
                message: format!(
                    "revision {} can't be reverted: the qualifier of {} {why}",
                    revert.revision,
                    subject(&change.key),
                ),
                violations: Vec::new(),
            }
            .into());
        }
        if changes.iter().any(|change| change.by_erasure) {
            return Err(Error::FailedPrecondition {
                reason: "ERASED",
                message: format!(
                    "revision {} can't be reverted: it erased a user's own values",
                    revert.revision
                ),
                violations: Vec::new(),
            }
            .into());
        }
        for user in owners(&changes) {
            lock_user(tx, &revert.namespace, user).await?;
        }
        let keys = changes.into_iter().map(|change| change.key);
        let mut unit = self.decisions.open(tx, keys).await?;
        // Read again, now that nobody else can write to these keys.
        let changes = tx.log().changes_of(revert.revision).await?;
        let newer: Vec<&WrittenChange> = changes
            .iter()
            .filter(|change| change.newest != revert.revision)
            .collect();
        if !newer.is_empty() {
            return Err(newer_revisions(&newer, revert.revision).into());
        }
        let count = changes.len() as u64;
        let attribution = Attribution::by(revert.actor.clone(), revert.reason.clone());
        for change in changes {
            let contest = change.key.contest_id();
            if let Some(Learned::Prompt(before)) = change.before.as_ref().map(|value| &value.learned) {
                unit.read_named(tx, contest, Named::Version(before.version))
                    .await?;
            }
            let event = Event::Revert {
                revision: revert.revision,
                restore: change.before,
                reason: revert.reason.clone(),
            };
            unit.decide(contest, &event, &attribution, RevisionChoice::Shared)
                .map_err(|refusal| refused(&refusal, &subject(&change.key)))?;
        }
        Ok((unit, count))
    }
}

/// The users whose profiles are changed.
fn owners(changes: &[WrittenChange]) -> BTreeSet<&UserId> {
    let profiles = changes.iter().filter(|change| change.key.kind == Kind::Profile);
    profiles.filter_map(|change| change.key.user.as_ref()).collect()
}

/// Why a change can't be reverted, whoever made it last; nothing if it can.
fn why_not(change: &WrittenChange) -> Option<String> {
    if !change.key.kind.rules().rule.keeps_history() {
        return Some(Refusal::Window.to_string());
    }
    if let Err(Invalid(why)) = change.key.check_by_hand() {
        return Some(format!("its qualifier {why}"));
    }
    change
        .by_erasure
        .then(|| "it erased a user's own value".to_owned())
}

fn newer_revisions(newer: &[&WrittenChange], revision: Revision) -> Error {
    let mut violations = Vec::new();
    let mut bytes = 0;
    for change in newer {
        let violation = PreconditionViolation {
            kind: "NEWER_REVISION".into(),
            subject: subject(&change.key),
            description: format!("changed again by revision {}", change.newest),
        };
        bytes += violation.subject.len() + violation.description.len() + 32;
        if bytes > VIOLATIONS_BYTES && !violations.is_empty() {
            break;
        }
        violations.push(violation);
    }
    let keys = if newer.len() == 1 { "key has" } else { "keys have" };
    Error::FailedPrecondition {
        reason: "NEWER_REVISION",
        message: format!(
            "revision {revision} can't be reverted: {} {keys} a newer revision",
            newer.len()
        ),
        violations,
    }
}
