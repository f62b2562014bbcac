//! What people and the operator do in a step, through the real services.

use emend_client::Submission;
use emend_core::{DomainRule, EdgeLabel, Invalid, Learned};
use emend_proto::{
    common::v1::OutcomeState,
    learning::v1::{ApproveCandidateRequest, ListCandidatesRequest, RevertRevisionRequest},
};
use tokio::time::Instant;

use super::{
    day::Day,
    nodes::TIMEOUT,
    script::{Action, Correction, NAMESPACE, Question, Step},
};
use crate::{
    commands::resources::put_request,
    evaluation::wait_until_evaluated,
    failure::{Failure, Result},
    view,
};

impl Day {
    /// Carries out the step's action, and notes what of it is to be shown. Returns the revision that it wrote, if any.
    pub(super) async fn act(
        &mut self,
        step: &Step,
        shown: &mut Vec<String>,
        deviations: &mut Vec<String>,
    ) -> Result<Option<i64>> {
        match &step.action {
            Action::Submit {
                reporters,
                correction,
                outcome,
            } => {
                self.submit(reporters, *correction, step, *outcome, deviations)
                    .await
            }
            Action::Retract { reporter } => {
                let feedback_id = self
                    .submitted
                    .remove(&(*reporter, step.ask.phrase))
                    .ok_or_else(|| Failure::failed(format!("{reporter} submitted nothing")))?;
                let retracted = self
                    .feedback
                    .retract(&self.namespace, feedback_id, "on reflection", true)
                    .await
                    .map_err(|error| Failure::Refused(Box::new(error.0)))?;
                let deadline = Instant::now() + TIMEOUT;
                let retracted =
                    wait_until_evaluated(&self.feedback, &self.namespace, retracted, deadline).await?;
                Ok(retracted.outcome().map(|outcome| outcome.revision))
            }
            Action::RateAndPropose(bad) => {
                let (revision, diff) = self.rate_and_propose(step.ask, bad).await?;
                *shown = diff;
                Ok(revision)
            }
            Action::ApproveProposal => self.approve_proposal().await.map(Some),
            Action::Approve { choice } => self.approve(step.ask, choice).await.map(Some),
            Action::Put { choice } => {
                let learned = Learned::of(step.ask.kind, (*choice).into())
                    .map_err(|Invalid(why)| Failure::failed(why))?;
                let mut request = put_request(NAMESPACE.into(), step.ask.phrase.into(), &learned);
                request.on_behalf_of = "dana".into();
                let mut client = self.context.resources().await?;
                Ok(Some(
                    client
                        .put_resource(self.context.request(request))
                        .await?
                        .into_inner()
                        .revision,
                ))
            }
            Action::RevertNewest => {
                let request = RevertRevisionRequest {
                    namespace: NAMESPACE.into(),
                    revision: self.newest,
                    reason: "the wrong one of two".into(),
                    on_behalf_of: "dana".into(),
                    ..RevertRevisionRequest::default()
                };
                let mut client = self.context.resources().await?;
                Ok(Some(
                    client
                        .revert_revision(self.context.request(request))
                        .await?
                        .into_inner()
                        .revision,
                ))
            }
        }
    }

    async fn submit(
        &mut self,
        reporters: &[&'static str],
        correction: Correction,
        step: &Step,
        outcome: OutcomeState,
        deviations: &mut Vec<String>,
    ) -> Result<Option<i64>> {
        let mut last = None;
        for &reporter in reporters {
            let recorded = self
                .feedback
                .submit(
                    submission(correction)?
                        .reporter(reporter)
                        .client("emend-demo")
                        .wait_evaluated(),
                )
                .await
                .map_err(|error| Failure::Refused(Box::new(error.0)))?;
            let recorded = wait_until_evaluated(
                &self.feedback,
                &self.namespace,
                recorded,
                Instant::now() + TIMEOUT,
            )
            .await?;
            self.submitted
                .insert((reporter, step.ask.phrase), recorded.feedback_id);
            last = Some(recorded);
        }
        let last = last.ok_or_else(|| Failure::failed("nobody submitted anything"))?;
        if last.state() != outcome {
            deviations.push(format!(
                "the outcome is {}, expected {}",
                last.state().as_str_name(),
                outcome.as_str_name()
            ));
        }
        Ok(last.applied_revision().map(|revision| revision.0))
    }

    async fn approve(&self, question: Question, choice: &str) -> Result<i64> {
        let mut client = self.context.candidates().await?;
        let request = ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            kinds: vec![question.kind.number()],
            key: question.phrase.into(),
            ..Default::default()
        };
        let page = client
            .list_candidates(self.context.request(request))
            .await?
            .into_inner();
        let candidate = page
            .candidates
            .into_iter()
            .find(|candidate| view::maps_to(candidate.value.as_ref()) == choice)
            .ok_or_else(|| Failure::failed(format!("nobody proposed {choice}")))?;
        let request = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id,
            etag: candidate.etag,
            reason: "no CSA without an ISDA".into(),
            on_behalf_of: "dana".into(),
            ..Default::default()
        };
        Ok(client
            .approve_candidate(self.context.request(request))
            .await?
            .into_inner()
            .revision)
    }
}

fn submission(correction: Correction) -> Result<Submission> {
    Ok(match correction {
        Correction::Verb {
            phrase,
            choice,
            instead_of,
        } => Submission::verb(NAMESPACE, phrase, choice).system_choice(instead_of),
        Correction::Entity {
            phrase,
            choice,
            instead_of,
        } => Submission::entity(NAMESPACE, phrase, choice).system_choice(instead_of),
        Correction::Never { phrase, choice } => Submission::prohibition(NAMESPACE, phrase, choice),
        Correction::ForMe { phrase, choice } => {
            Submission::phrase_mapping(NAMESPACE, phrase, choice).for_reporter_only()
        }
        Correction::StandsFor { term, representative } => {
            Submission::synonyms(NAMESPACE, representative, [term])
        }
        Correction::Label { edge, label } => {
            let label = EdgeLabel::new(label).map_err(|Invalid(why)| Failure::failed(why))?;
            Submission::edge(NAMESPACE, edge, label)
        }
        Correction::Block { pattern, reason } => {
            Submission::domain(NAMESPACE, pattern, DomainRule::Block, reason)
        }
    })
}
