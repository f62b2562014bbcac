//! What has become of feedback since it was evaluated, as learning-svc says now.
//!
//! An outcome is stored with the feedback and stays as it was. What is read here is stored nowhere: a reader gets it with
//! the feedback if learning-svc answers in time, and else the feedback without it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use emend_core::{FeedbackId, Kind, Namespace, OutcomeState, Reason, Scope, Standing};
use emend_proto::{
    common::v1 as pb,
    learning::v1::{FeedbackStandings, GetStandingsRequest},
};
use emend_wire::{parse, render};
use feedback_store::records::feedback::Feedback;
use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use crate::{
    installation::Target,
    outbox::{Delivery, DeliveryError},
};

/// Asks learning-svc. Clones share its connection, which is that of the relay.
#[derive(Debug, Clone)]
pub(crate) struct PresentState {
    delivery: Arc<dyn Delivery>,
    target: Target,
}

/// What learning-svc answered: of each feedback that it was asked for the standings of its effects, in any order; none if
/// nothing is kept of it there.
#[derive(Debug, Default)]
pub(crate) struct Standings(HashMap<FeedbackId, Vec<pb::Standing>>);

impl PresentState {
    /// Asks over `delivery`, and only the installation that is `target`.
    pub(crate) fn new(delivery: Arc<dyn Delivery>, target: Target) -> Self {
        Self { delivery, target }
    }

    /// Asks about these feedbacks, with one call for each namespace. What has not been answered by `until` is left out.
    pub(crate) async fn of(
        &self,
        feedback: impl IntoIterator<Item = &Feedback> + Send,
        until: Instant,
    ) -> Standings {
        let mut asked: BTreeMap<&Namespace, Vec<FeedbackId>> = BTreeMap::new();
        let delivered = feedback.into_iter().filter(|it| it.submission.is_delivered());
        for feedback in delivered {
            let namespace = &feedback.submission.namespace;
            asked.entry(namespace).or_default().push(feedback.id);
        }
        let answers = asked.into_iter().map(|(namespace, ids)| async move {
            let answer = timeout_at(until, self.ask(namespace, &ids, until)).await;
            let trouble = match answer {
                Ok(Ok(standings)) => return answered(&ids, standings),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            tracing::debug!(%namespace, %trouble, "feedback is returned without what has become of it");
            HashMap::new()
        });
        Standings(join_all(answers).await.into_iter().flatten().collect())
    }

    async fn ask(
        &self,
        namespace: &Namespace,
        ids: &[FeedbackId],
        until: Instant,
    ) -> Result<Vec<FeedbackStandings>, DeliveryError> {
        let target = self.target.known().await;
        let target = target.map_err(|error| DeliveryError::Database(error.to_string()))?;
        let Some(target) = target else {
            return Err(DeliveryError::Unavailable("it has never answered".to_owned()));
        };
        let request = GetStandingsRequest {
            namespace: namespace.to_string(),
            feedback_ids: ids.iter().map(ToString::to_string).collect(),
            installation_id: target.to_string(),
        };
        self.delivery.standings(request, until).await
    }
}

fn answered(
    asked: &[FeedbackId],
    standings: Vec<FeedbackStandings>,
) -> HashMap<FeedbackId, Vec<pb::Standing>> {
    let mut answered: HashMap<FeedbackId, Vec<pb::Standing>> =
        asked.iter().map(|id| (*id, Vec::new())).collect();
    for FeedbackStandings { feedback_id, effects } in standings {
        if let Some(standings) = FeedbackId::parse(&feedback_id)
            .ok()
            .and_then(|id| answered.get_mut(&id))
        {
            *standings = effects;
        }
    }
    answered
}

impl Standings {
    /// What has become of a feedback with this outcome, if learning-svc has said.
    pub(crate) fn of(&self, feedback: &Feedback, outcome: &pb::Outcome) -> Option<pb::Standing> {
        let mut now = self.0.get(&feedback.id)?.clone();
        let evaluated = match &outcome.effects[..] {
            [] => std::slice::from_ref(outcome),
            effects => effects,
        };
        let mut effects = Vec::with_capacity(evaluated.len());
        for effect in evaluated {
            let place = now.iter().position(|now| now.candidate_id == effect.candidate_id);
            if let Some(place) = place {
                effects.push(now.remove(place));
            } else if is_final(effect) {
                effects.push(as_evaluated(effect));
            }
        }
        effects.append(&mut now);
        if effects.is_empty() && feedback.redaction.is_some() && feedback.submission.scope == Scope::User {
            // Of what was evaluated nothing is kept once the user whose own it was has been erased.
            let kind = Kind::from_number(outcome.kind)?;
            effects.push(render::standing(&Standing::without_effect(
                kind,
                None,
                Reason::Erased,
            )));
        }
        of_effects(effects)
    }
}

/// Whether an effect stays what it was when it was evaluated: learning-svc keeps nothing of what is refused, nor of a
/// retraction that found nothing to take back.
fn is_final(effect: &pb::Outcome) -> bool {
    effect.state() == pb::OutcomeState::Refused || effect.reason == Reason::Retracted.name()
}

fn as_evaluated(effect: &pb::Outcome) -> pb::Standing {
    pb::Standing {
        state: effect.state,
        reason: effect.reason.clone(),
        candidate_id: effect.candidate_id.clone(),
        kind: effect.kind,
        message: effect.message.clone(),
        ..pb::Standing::default()
    }
}

/// The standing of a correction with these effects, as [`Outcome::of_effects`](emend_core::Outcome::of_effects) composes
/// outcomes: that of the least advanced one.
fn of_effects(mut effects: Vec<pb::Standing>) -> Option<pb::Standing> {
    if effects.len() <= 1 {
        return effects.pop();
    }
    // A state that only a newer learning-svc knows counts as less advanced than all others.
    let advancement =
        |effect: &&pb::Standing| parse::outcome_state(effect.state).map(OutcomeState::advancement);
    let mut standing = effects.iter().min_by_key(advancement)?.clone();
    let applied = effects
        .iter()
        .filter(|effect| effect.state() == pb::OutcomeState::Applied);
    standing.message = format!(
        "{} of {} apply. {}",
        applied.count(),
        effects.len(),
        standing.message
    );
    standing.revision = effects.iter().map(|effect| effect.revision).max().unwrap_or(0);
    standing.effects = effects;
    Some(standing)
}

#[cfg(test)]
mod tests {
    use emend_core::{AcceptOrder, voter::VoterKey};
    use feedback_store::records::{erasure::Redaction, feedback::Accepted, outbox::DeliveryState};
    use feedback_store::testing;
    use jiff::Timestamp;

    use super::*;

    fn stored() -> Feedback {
        let new = testing::feedback("a");
        Feedback {
            id: new.id,
            submission: new.submission,
            caller: new.caller,
            accepted: Accepted {
                order: AcceptOrder(1),
                at: Timestamp::UNIX_EPOCH,
            },
            retraction: None,
            outcome: None,
            delivery: DeliveryState::Delivered,
            redaction: None,
            search_rating: None,
        }
    }

    fn evaluated(candidate: &str, state: pb::OutcomeState) -> pb::Outcome {
        pb::Outcome {
            candidate_id: candidate.to_owned(),
            state: state.into(),
            kind: Kind::InvocationPhrase.number(),
            message: format!("{candidate} as it was."),
            ..pb::Outcome::default()
        }
    }

    fn now(candidate: &str, state: pb::OutcomeState, revision: i64) -> pb::Standing {
        pb::Standing {
            candidate_id: candidate.to_owned(),
            state: state.into(),
            revision,
            message: format!("{candidate} as it is."),
            ..pb::Standing::default()
        }
    }

    /// What is said of a feedback with this outcome once learning-svc has answered this.
    fn standing_of(feedback: &Feedback, outcome: &pb::Outcome, now: &[pb::Standing]) -> Option<pb::Standing> {
        Standings([(feedback.id, now.to_vec())].into()).of(feedback, outcome)
    }

    use pb::OutcomeState::{Applied, Pending, Refused};

    #[test]
    fn nothing_is_said_unless_learning_svc_has_answered_and_knows_it() {
        let (feedback, outcome) = (stored(), evaluated("a", Applied));
        assert_eq!(Standings::default().of(&feedback, &outcome), None);
        assert_eq!(standing_of(&feedback, &outcome, &[]), None);
        let standing = now("a", Pending, 0);
        assert_eq!(
            standing_of(&feedback, &outcome, std::slice::from_ref(&standing)),
            Some(standing)
        );
    }

    #[test]
    fn the_least_advanced_effect_decides_and_what_was_refused_stays_refused() {
        let outcome = pb::Outcome {
            effects: vec![
                evaluated("a", Pending),
                evaluated("b", Refused),
                evaluated("c", Applied),
            ],
            ..evaluated("a", Refused)
        };
        let effects = [now("c", Pending, 0), now("a", Applied, 7)];
        let standing = standing_of(&stored(), &outcome, &effects).unwrap();
        assert_eq!((standing.state(), standing.revision), (Refused, 7));
        assert_eq!(standing.message, "1 of 3 apply. b as it was.");
        let states: Vec<_> = standing
            .effects
            .iter()
            .map(|it| (&*it.candidate_id, it.state()))
            .collect();
        assert_eq!(states, [("a", Applied), ("b", Refused), ("c", Pending)]);
        // The outcome of a retraction need not name every effect.
        let effects = [now("a", Applied, 7), now("c", Pending, 0)];
        let standing = standing_of(&stored(), &evaluated("", Pending), &effects).unwrap();
        assert_eq!((standing.state(), standing.effects.len()), (Pending, 2));
    }

    #[test]
    fn of_what_was_a_users_own_nothing_is_left_once_the_user_has_been_erased() {
        let mut feedback = stored();
        feedback.submission.scope = Scope::User;
        assert_eq!(standing_of(&feedback, &evaluated("a", Applied), &[]), None);
        feedback.redaction = Some(Redaction {
            at: Timestamp::UNIX_EPOCH,
            voter: VoterKey(uuid::Uuid::nil()),
            identified: true,
        });
        let standing = standing_of(&feedback, &evaluated("a", Applied), &[]).unwrap();
        assert_eq!(
            (standing.state(), &*standing.reason),
            (pb::OutcomeState::NoEffect, "ERASED")
        );
        assert_eq!(standing.message, "Without effect: its reporter has been erased.");
    }
}
