//! What has become of feedbacks: read, never written.
//!
//! What is told of an event when it is applied is stored with the event and stays. This is read from the candidates that a
//! feedback's ballots name, and from a rating's place in its window, as they are now.

pub mod grpc;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use emend_base::Error;
use emend_core::{FeedbackId, Kind, Namespace, Policy, Reason, Rule, Standing};
use emend_store::CorruptRow;
use learning_store::{
    Store,
    policies::PolicyKey,
    standings::{RatingNow, Supported},
};

/// The use case of standings.
#[derive(Debug, Clone)]
pub struct Standings {
    store: Arc<dyn Store>,
}

impl Standings {
    /// On one database.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// What has become of these feedbacks, in this order: a standing for each effect of which something is kept. Feedbacks of
    /// which nothing is kept in that namespace are left out.
    pub async fn read(
        &self,
        namespace: &Namespace,
        feedback: &[FeedbackId],
    ) -> Result<Vec<(FeedbackId, Vec<Standing>)>, Error> {
        let mut asked = feedback.to_vec();
        asked.sort_unstable();
        asked.dedup();
        let Supported {
            ballots,
            candidates,
            ratings,
            resources,
        } = self.store.supported(namespace, &asked).await?;
        let mut standings: HashMap<FeedbackId, Vec<Standing>> = HashMap::new();
        for ballot in ballots {
            let standing = match candidates.get(&ballot.candidate) {
                Some(now) => Standing::of(&now.candidate, ballot.retracted, now.resource),
                // A vote whose retraction came first made no candidate.
                None if ballot.retracted => {
                    Standing::without_effect(ballot.kind, Some(ballot.candidate), Reason::Retracted)
                }
                None => {
                    let missing = "of no candidate that is stored";
                    return Err(Error::internal(CorruptRow::new(
                        "ballots",
                        "candidate_id",
                        ballot.feedback,
                        missing,
                    )));
                }
            };
            standings.entry(ballot.feedback).or_default().push(standing);
        }
        let mut policies: HashMap<Kind, Policy> = HashMap::new();
        for RatingNow { known, place } in ratings {
            let kind = known.key.kind;
            let Rule::Window(rules) = &kind.rules().rule else {
                return Err(Error::internal(format!(
                    "feedback {} is a rating, and no window of ratings decides about {kind}",
                    known.rated.feedback
                )));
            };
            let policy = match policies.entry(kind) {
                Entry::Occupied(read) => read.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(self.store.policy(&PolicyKey::of(&known.key)).await?.policy)
                }
            };
            let resource = resources.get(&known.key.contest_id());
            let standing = Standing::of_rating(kind, rules, &known.rated, place, resource, policy);
            standings.entry(known.rated.feedback).or_default().push(standing);
        }
        Ok(feedback
            .iter()
            .filter_map(|id| Some((*id, standings.remove(id)?)))
            .collect())
    }
}
