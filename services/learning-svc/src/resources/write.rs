//! People set and delete values, one call alone or several together in one transaction ([`super::queue`]).
//!
//! Each keeps its own outcome: one that is refused changes nothing for the others and leaves nothing behind. Each has a
//! revision of its own, in the order in which they are given.

use emend_base::Error;
use emend_core::{Event, Origin, ResourceKey, ResourceValue, Revision};
use learning_store::{UnitOfWork, actor::Actor};

use crate::{
    decisions::{
        numbering::RevisionChoice,
        open::{Attribution, OpenContests},
        users::lock_users,
    },
    etag,
    failure::{Failure, refused, subject, value_too_large},
    resources::Resources,
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

/// What a person does to a value.
#[derive(Debug, Clone)]
pub enum Act {
    /// Sets it.
    Put(Put),
    /// Deletes it.
    Delete(Delete),
}

/// A resource after what a person did to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acted {
    /// The revision written; 0 where nothing changed.
    pub revision: Revision,
    /// What applies now, with the revision that gave it its value and when that was committed, in microseconds since 1970
    /// by the database's clock; none where nothing applies.
    pub applies: Option<(ResourceValue, Revision, i64)>,
}

/// A resource after a person has set it.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl PutResource {
    /// What came of a put.
    pub(super) fn of(acted: Acted) -> Result<Self, Error> {
        let Some((value, resource_revision, committed_at)) = acted.applies else {
            return Err(Error::internal("nothing applies after a value was set"));
        };
        Ok(Self {
            resource_revision,
            value,
            committed_at,
            revision: acted.revision,
        })
    }
}

impl Act {
    fn key(&self) -> &ResourceKey {
        match self {
            Self::Put(put) => &put.key,
            Self::Delete(delete) => &delete.key,
        }
    }

    /// Its event, once it may be decided on the resource as it is now.
    fn event(&self, unit: &OpenContests) -> Result<Event, Error> {
        match self {
            Self::Put(put) => {
                etag::check(put.etag.as_deref(), &current_etag(unit, &put.key))?;
                unit.check_size(&put.key, &put.value).map_err(value_too_large)?;
                Ok(Event::Put {
                    value: put.value.clone(),
                    origin: Origin::Operator,
                    reason: put.reason.clone(),
                })
            }
            Self::Delete(delete) => {
                let resource = unit.state(delete.key.contest_id()).map(|state| &state.resource);
                if resource.is_some_and(Option::is_some) {
                    etag::check(delete.etag.as_deref(), &current_etag(unit, &delete.key))?;
                }
                Ok(Event::Delete {
                    reason: delete.reason.clone(),
                })
            }
        }
    }

    fn attribution(&self) -> Attribution {
        let (actor, reason) = match self {
            Self::Put(put) => (&put.actor, &put.reason),
            Self::Delete(delete) => (&delete.actor, &delete.reason),
        };
        Attribution::by(actor.clone(), reason.clone().unwrap_or_default())
    }

    /// Decides it. The revisions in the result are provisional.
    fn decide(&self, unit: &mut OpenContests) -> Result<Acted, Error> {
        let (key, contest) = (self.key(), self.key().contest_id());
        let event = self.event(unit)?;
        let made = unit
            .decide(contest, &event, &self.attribution(), RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &subject(key)))?;
        let found = unit.found(contest).map_or(0, |found| found.committed_at);
        let resource = unit.state(contest).and_then(|state| state.resource.as_ref());
        Ok(Acted {
            revision: made.revision,
            applies: resource.map(|resource| (resource.value.clone(), resource.revision, found)),
        })
    }
}

impl Resources {
    /// Sets a value as a person's decision and pins its contest.
    pub async fn put(&self, put: &Put) -> Result<PutResource, Error> {
        let acted = self.act(&Act::Put(put.clone())).await?;
        self.decisions.publish(acted.revision).await;
        PutResource::of(acted)
    }

    /// Deletes a value; returns the revision written.
    pub async fn delete(&self, delete: &Delete) -> Result<Revision, Error> {
        let acted = self.act(&Act::Delete(delete.clone())).await?;
        self.decisions.publish(acted.revision).await;
        Ok(acted.revision)
    }

    /// Commits what one person does, in a transaction of its own.
    pub(super) async fn act(&self, act: &Act) -> Result<Acted, Error> {
        let attempt = || async {
            let tx = self.store.begin().await?;
            self.try_acts(tx, std::slice::from_ref(act)).await
        };
        let mut acted = self.decisions.retry(attempt).await?;
        acted
            .pop()
            .unwrap_or_else(|| Err(Error::internal("what a person did has no result")))
    }

    /// Commits what people do, in order, in one transaction, and announces it; each has a result. Nobody is kept waiting for a
    /// lock, and nothing is tried again: if it fails as a whole nothing is written.
    pub(super) async fn act_together(&self, acts: &[Act]) -> Result<Vec<Result<Acted, Error>>, Failure> {
        let results = self.try_acts(self.store.begin_group().await?, acts).await?;
        self.decisions.wake();
        Ok(results)
    }

    /// Commits what people do, in order, all in `tx`; each has a result. If that fails as a whole nothing is written.
    pub(super) async fn try_acts(
        &self,
        mut tx: Box<dyn UnitOfWork>,
        acts: &[Act],
    ) -> Result<Vec<Result<Acted, Error>>, Failure> {
        lock_users(&mut *tx, acts.iter().map(Act::key)).await?;
        let keys = acts.iter().map(|act| act.key().clone());
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        let mut results: Vec<Result<Acted, Error>> = acts.iter().map(|act| act.decide(&mut unit)).collect();
        if results.iter().all(Result::is_err) {
            return Ok(results);
        }
        if results.iter().any(Result::is_err) {
            unit.forget_untouched(&mut *tx).await?;
        }
        let numbers = self.decisions.commit(tx, &mut unit).await?.revisions;
        for acted in results.iter_mut().flatten() {
            acted.revision = numbers.of(acted.revision);
            if let Some((_, revision, committed_at)) = &mut acted.applies {
                let number = numbers.of(*revision);
                if number != *revision {
                    *committed_at = numbers.committed_at;
                }
                *revision = number;
            }
        }
        Ok(results)
    }
}

/// The current etag; where there is no resource, that of revision 0, which no resource has. So it can be asked that a value is
/// only set where there is none.
fn current_etag(unit: &OpenContests, key: &ResourceKey) -> String {
    unit.state(key.contest_id())
        .and_then(|state| state.resource.as_ref())
        .map_or_else(
            || etag::of_revision(0),
            |resource| etag::of_revision(resource.revision.0),
        )
}
