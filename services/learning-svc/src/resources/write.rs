//! People set and delete values.

use emend_base::Error;
use emend_core::{Event, Origin, ResourceKey, ResourceValue, Revision};
use emend_store::retry_conflicts;

use crate::{
    actor::Actor,
    app::App,
    contests::open::{Attribution, OpenContests},
    erasure::lock_user,
    etag,
    failure::{Failure, refused, value_too_large},
    log::numbering::RevisionChoice,
};

/// A value a person sets.
#[derive(Debug, Clone)]
pub struct Put {
    /// The resource.
    pub key: ResourceKey,
    /// The value.
    pub value: ResourceValue,
    /// Only if the resource still has this etag.
    pub etag: Option<String>,
    /// The reason given.
    pub reason: Option<String>,
    /// Who sets it.
    pub actor: Actor,
}

/// A value a person deletes.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The resource.
    pub key: ResourceKey,
    /// Only if the resource still has this etag.
    pub etag: Option<String>,
    /// The reason given.
    pub reason: Option<String>,
    /// Who deletes it.
    pub actor: Actor,
}

/// A resource after a person has set it.
#[derive(Debug, Clone)]
pub struct PutResource {
    /// The revision that gave it its value.
    pub resource_revision: Revision,
    /// What applies now; it may take a part from what was decided before.
    pub value: ResourceValue,
    /// When that was committed, in microseconds since 1970 by the database's clock.
    pub committed_at: i64,
    /// The revision written; 0 where the value applied already.
    pub revision: Revision,
}

impl App {
    /// Sets a value as a person's decision and pins its contest.
    pub async fn put(&self, put: &Put) -> Result<PutResource, Error> {
        let done = retry_conflicts::<_, Failure, _>(&self.entropy, || self.try_put(put)).await?;
        self.publish(done.revision).await;
        Ok(done)
    }

    async fn try_put(&self, put: &Put) -> Result<PutResource, Failure> {
        let contest = put.key.contest_id();
        let mut tx = self.store.begin().await?;
        if let Some(user) = &put.key.user {
            lock_user(&mut *tx, &put.key.namespace, user).await?;
        }
        let mut unit =
            OpenContests::open(&mut *tx, &self.hot, self.clock.now(), [put.key.clone()], 0).await?;
        etag::check(put.etag.as_deref(), &current_etag(&unit, &put.key))?;
        unit.check_size(&put.key, &put.value).map_err(value_too_large)?;
        let event = Event::Put {
            value: put.value.clone(),
            origin: Origin::Operator,
            reason: put.reason.clone(),
        };
        let attribution = attribution(&put.actor, put.reason.as_deref());
        let made = unit
            .decide(contest, &event, &attribution, RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &subject(&put.key)))?;
        let written = self.commit(tx, &mut unit).await?;
        let revision = written.revisions.of(made.revision);
        let before = unit.found(contest).map_or(0, |found| found.committed_at);
        let resource = unit.state(contest).and_then(|state| state.resource.as_ref());
        Ok(PutResource {
            resource_revision: resource.map_or(revision, |resource| resource.revision),
            value: resource.map_or_else(|| put.value.clone(), |resource| resource.value.clone()),
            committed_at: if revision.0 > 0 {
                written.revisions.committed_at
            } else {
                before
            },
            revision,
        })
    }

    /// Deletes a value; returns the revision written.
    pub async fn delete(&self, delete: &Delete) -> Result<Revision, Error> {
        let revision = retry_conflicts::<_, Failure, _>(&self.entropy, || self.try_delete(delete)).await?;
        self.publish(revision).await;
        Ok(revision)
    }

    async fn try_delete(&self, delete: &Delete) -> Result<Revision, Failure> {
        let contest = delete.key.contest_id();
        let mut tx = self.store.begin().await?;
        if let Some(user) = &delete.key.user {
            lock_user(&mut *tx, &delete.key.namespace, user).await?;
        }
        let mut unit =
            OpenContests::open(&mut *tx, &self.hot, self.clock.now(), [delete.key.clone()], 0).await?;
        if unit.state(contest).is_some_and(|state| state.resource.is_some()) {
            etag::check(delete.etag.as_deref(), &current_etag(&unit, &delete.key))?;
        }
        let event = Event::Delete {
            reason: delete.reason.clone(),
        };
        let attribution = attribution(&delete.actor, delete.reason.as_deref());
        let made = unit
            .decide(contest, &event, &attribution, RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &subject(&delete.key)))?;
        let written = self.commit(tx, &mut unit).await?;
        Ok(written.revisions.of(made.revision))
    }
}

fn attribution(actor: &Actor, reason: Option<&str>) -> Attribution {
    Attribution {
        actor: actor.clone(),
        reason: reason.unwrap_or_default().to_owned(),
        operation: None,
        trigger: None,
        task: None,
    }
}

/// The current etag; where there is no resource, one that no resource has.
fn current_etag(unit: &OpenContests, key: &ResourceKey) -> String {
    unit.state(key.contest_id())
        .and_then(|state| state.resource.as_ref())
        .map_or_else(String::new, |resource| etag::of_revision(resource.revision.0))
}

/// The name of a resource in errors: its parts, joined by slashes.
pub fn subject(key: &ResourceKey) -> String {
    let mut subject = format!("{}/{}/{}", key.namespace, key.kind, key.key);
    for part in [key.qualifier.as_str(), key.user_id()] {
        if !part.is_empty() {
            subject.push('/');
            subject.push_str(part);
        }
    }
    subject
}
