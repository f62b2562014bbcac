//! Queries that found nothing: what they are near to, before the events that came with them are applied. No correction waits for a
//! model here.

use emend_base::Error;
use emend_core::{Correction, Kind, Proposal};

use crate::{
    decisions::answers::no_effect,
    ingest::{
        Ingest,
        event::{EventResult, FeedbackChange, IngestEvent},
    },
};

/// What becomes of an event before it is applied.
pub(super) enum Guessed {
    /// It is applied: with proposals in place of a query that found nothing.
    Event(Box<IngestEvent>),
    /// It is answered, and nothing is written: the same query comes again as long as it finds nothing.
    Answer(Box<EventResult>),
}

impl Ingest {
    /// What an event proposes, if it is of a query that found nothing.
    pub(super) async fn guess(&self, event: &IngestEvent) -> Guessed {
        let FeedbackChange::Unanswered {
            phrase,
            display,
            evidence,
        } = &event.change
        else {
            return Guessed::Event(Box::new(event.clone()));
        };
        let found = match self.guesses.get() {
            Some(near) => near.guess(&event.namespace, phrase).await,
            None => Ok(Vec::new()),
        };
        let found = match found {
            Ok(found) => found,
            // It can't be said now: the event is refused, and comes again.
            Err(error) => return Guessed::Answer(Box::new(Err(error))),
        };
        let now = self.decisions.clock.now();
        let nothing = |message| Guessed::Answer(Box::new(Ok(no_effect(None, "", message, now))));
        if found.is_empty() {
            return nothing("It is near to nothing that was learned.");
        }
        let reason = found.iter().fold(evidence.clone(), |reason, guess| {
            format!("{reason}; {}", guess.because)
        });
        let corrections = found.iter().filter_map(|guess| match guess.kind {
            Kind::EntityAlias => Correction::parse_entity(display, "", &guess.choice).ok(),
            _ => Correction::parse_phrase_mapping(display, &guess.choice).ok(),
        });
        let proposals = corrections.flat_map(|correction| correction.effects(&event.namespace, None));
        let effects = match self.not_proposed_before(proposals).await {
            Ok(effects) => effects,
            Err(error) => return Guessed::Answer(Box::new(Err(error))),
        };
        if effects.is_empty() {
            return nothing("It was proposed before.");
        }
        Guessed::Event(Box::new(IngestEvent {
            change: FeedbackChange::Mined { effects, reason },
            ..event.clone()
        }))
    }

    /// What was proposed before stays as it is, whatever became of it.
    async fn not_proposed_before(
        &self,
        proposals: impl Iterator<Item = Proposal> + Send,
    ) -> Result<Vec<Proposal>, Error> {
        let mut new = Vec::new();
        for proposal in proposals {
            let candidate = proposal.value.candidate_id(proposal.key.contest_id());
            if self.store.candidate(candidate).await?.is_none() {
                new.push(proposal);
            }
        }
        Ok(new)
    }
}
