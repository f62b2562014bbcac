//! What a query that found nothing most likely means: what is proposed for it.

use std::{fmt, sync::Arc};

use emend_base::Error;
use emend_core::{Kind, Namespace, NormalizedKey, generalise::Near};
use emend_proto::learning::v1::NearStatus;
use emend_stream::state::ReplicaState;

use super::{
    NearModels,
    exact::{self, ResolveQuery},
};
use crate::stream::Stream;

/// Guesses what queries mean. Clones share everything.
#[derive(Clone)]
pub struct Guesses {
    stream: Stream,
    models: NearModels,
}

impl fmt::Debug for Guesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guesses").finish_non_exhaustive()
    }
}

/// What a query most likely means.
#[derive(Debug)]
pub(crate) struct Guess {
    pub kind: Kind,
    pub choice: String,
    /// How likely, and because of which phrase, for people.
    pub because: String,
}

impl Guesses {
    /// Guesses by `models` of the newest state of `stream`.
    pub fn new(stream: Stream, models: NearModels) -> Self {
        Self { stream, models }
    }

    /// What a phrase most likely means, as each kind that phrases are looked up as. Nothing where anything was learned for the phrase
    /// itself, and where nothing is near; an error while that can't be said.
    pub(crate) async fn guess(
        &self,
        namespace: &Namespace,
        phrase: &NormalizedKey,
    ) -> Result<Vec<Guess>, Error> {
        let state = self.stream.state()?;
        let mut guesses = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.rules().is_answer) {
            if let Some(near) = self.near(&state, namespace, kind, phrase).await? {
                guesses.push(Guess {
                    kind,
                    choice: near.choice.to_string(),
                    because: because(&near),
                });
            }
        }
        Ok(guesses)
    }

    async fn near(
        &self,
        state: &Arc<ReplicaState>,
        namespace: &Namespace,
        kind: Kind,
        phrase: &NormalizedKey,
    ) -> Result<Option<Near>, Error> {
        let query = ResolveQuery {
            namespace: namespace.clone(),
            kind,
            phrase: phrase.clone(),
            user_id: String::new(),
            backend: Vec::new(),
        };
        let exact = exact::resolve(state, &query)?;
        // Corrections wait behind this: no model is waited for.
        let answering = self.models.answering_now(state, namespace, kind).await?;
        if answering.status == NearStatus::Fitting {
            return Err(Error::unavailable(
                "NEAR_FITTING",
                "the model of near answers is being made",
            ));
        }
        answering.near_beside(&query, &exact).await
    }
}

fn because(near: &Near) -> String {
    let nearest = near.because.first();
    let nearest = nearest.map_or_else(String::new, |learned| format!(" to “{}”", learned.phrase));
    format!(
        "near{nearest}, right with a probability of {:.2}",
        near.confidence
    )
}
