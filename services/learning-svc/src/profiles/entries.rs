//! Reading and changing a profile as its user's own decision.

use std::collections::BTreeMap;

use emend_base::Error;
use emend_core::{ContestId, Event, Namespace, Origin, ResourceKey, ResourceValue, Revision, UserId};
use learning_store::{actor::Actor, profiles::StoredProfile};

use crate::{
    decisions::{numbering::RevisionChoice, open::Attribution, users::lock_user},
    etag,
    failure::{Failure, refused, subject, value_too_large},
    profiles::Profiles,
};

/// Entries that one revision changes at most.
const MAX_CHANGES: usize = 1_000;

/// How a user changes a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileUpdate {
    /// The search application.
    pub namespace: Namespace,
    /// The user.
    pub user: UserId,
    /// The fields that become exactly what `entries` have of them.
    pub fields: Vec<&'static str>,
    /// The entries of these fields, each once.
    pub entries: Vec<(ResourceKey, ResourceValue)>,
    /// Only if the profile still has this etag.
    pub etag: Option<String>,
    /// The reason given.
    pub reason: Option<String>,
    /// The client, on behalf of the user.
    pub actor: Actor,
}

impl Profiles {
    /// What a user knows and wants to learn.
    pub async fn profile(&self, namespace: &Namespace, user: &UserId) -> Result<StoredProfile, Error> {
        Ok(self.stored().stored_profile(namespace, user).await?)
    }

    /// Changes a profile. Returns it, and the revision written; 0 if nothing changed.
    pub async fn update_profile(&self, update: &ProfileUpdate) -> Result<(StoredProfile, Revision), Error> {
        let revision = self.decisions.retry(|| self.try_update(update)).await?;
        self.decisions.publish(revision).await;
        Ok((self.profile(&update.namespace, &update.user).await?, revision))
    }

    async fn try_update(&self, update: &ProfileUpdate) -> Result<Revision, Failure> {
        let mut tx = self.database.begin_whole().await?;
        lock_user(&mut *tx, &update.namespace, &update.user).await?;
        let found = tx.entries().stored(&update.namespace, &update.user).await?;
        etag::check(update.etag.as_deref(), &etag::of_revision(found.revision.0))?;
        let mut wanted: BTreeMap<ContestId, (ResourceKey, Option<ResourceValue>)> = BTreeMap::new();
        for (key, _) in found.entries {
            if update.fields.contains(&key.key.as_str()) {
                wanted.insert(key.contest_id(), (key, None));
            }
        }
        for (key, value) in &update.entries {
            wanted.insert(key.contest_id(), (key.clone(), Some(value.clone())));
        }
        let keys = wanted.values().map(|(key, _)| key.clone());
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        wanted.retain(|contest, (_, value)| {
            let applies = unit.state(*contest).and_then(|state| state.resource.as_ref());
            applies.map(|resource| &resource.value) != value.as_ref()
        });
        if wanted.len() > MAX_CHANGES {
            let most = format!(
                "changes {} entries, and must change at most {MAX_CHANGES}",
                wanted.len()
            );
            return Err(Error::invalid("profile", most).into());
        }
        let attribution = Attribution::by(update.actor.clone(), update.reason.clone().unwrap_or_default());
        let mut shared = Revision::default();
        for (contest, (key, value)) in wanted {
            let reason = update.reason.clone();
            let event = match value {
                Some(value) => {
                    unit.check_size(&key, &value).map_err(value_too_large)?;
                    Event::Put {
                        value,
                        origin: Origin::Operator,
                        reason,
                    }
                }
                None => Event::Delete { reason },
            };
            let made = unit
                .decide(contest, &event, &attribution, RevisionChoice::Shared)
                .map_err(|refusal| refused(&refusal, &subject(&key)))?;
            shared = shared.max(made.revision);
        }
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok(written.revisions.of(shared))
    }
}
