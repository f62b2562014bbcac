//! Tools that say something: corrections, decisions about evidence, ratings, and taking back.

use emend_base::Error;
use emend_proto::{
    common::v1::{
        Correction, Rating, Reporter, ResourceKey, ResourceKind, Scope, SearchRating, SearchRatingValue,
        correction::Correction as Variant,
    },
    feedback::v1::{Feedback, RetractFeedbackRequest, SubmitFeedbackRequest, Wait},
    learning::v1::GetResourceRequest,
};
use serde_json::Value;
use tonic::{Code, Status};

use super::{
    CLIENT, Server,
    arguments::{
        EvidenceAction, EvidenceArguments, FeedbackArguments, FeedbackType, RateArguments, RatingArgument,
        RetractArguments, ScopeArgument, SearchArguments,
    },
    correction::{correction, named, voter_id},
    evidence,
    results::{self, Said, Voter},
    tools::SUBMIT,
};
use crate::{
    commands::feedback,
    failure::{Failure, Result},
    view, words,
};

/// The layer of domain rules that people decide.
const HUMAN: &str = "human";

impl Server {
    pub(super) async fn submit(&self, arguments: FeedbackArguments) -> Result<Value> {
        let correction =
            correction(&arguments).map_err(|wrong| Status::from(Error::InvalidArgument(wrong)))?;
        let said = said(&arguments);
        let user_scoped = arguments.scope == ScopeArgument::User;
        if user_scoped {
            self.may_for_users("scope", SUBMIT).await?;
        }
        let mut context = arguments.context.other;
        for (name, value) in [
            ("cbu_id", arguments.context.cbu_id),
            ("domain", arguments.context.domain),
        ] {
            if let Some(value) = value {
                context.insert(name.to_owned(), value);
            }
        }
        let session = named(arguments.context.session_id, &self.session);
        let (reporter, voter) = self.voter(arguments.context.reporter, session, user_scoped).await;
        let request = SubmitFeedbackRequest {
            reporter: Some(reporter),
            reason: arguments.user_explanation.unwrap_or_default(),
            context: context.into_iter().collect(),
            scope: words::scope(user_scoped) as i32,
            correction: Some(correction),
            ..self.saying(arguments.request_id)
        };
        Ok(results::recorded(&self.send(request).await?, &voter, &said))
    }

    pub(super) async fn decide(&self, arguments: EvidenceArguments) -> Result<Value> {
        let correction =
            evidence::decision(&arguments).map_err(|wrong| Status::from(Error::InvalidArgument(wrong)))?;
        let target = match arguments.action {
            EvidenceAction::ClaimReject | EvidenceAction::ClaimRestore => {
                arguments.args.claim_id.map(|id| format!("claim “{id}”"))
            }
            EvidenceAction::EdgeCorrect => arguments.args.edge_id.map(|id| format!("edge “{id}”")),
            _ => None,
        };
        let (reporter, _) = self
            .voter(arguments.args.reporter, self.session.clone(), false)
            .await;
        let request = SubmitFeedbackRequest {
            reporter: Some(reporter),
            reason: arguments.args.reason.unwrap_or_default(),
            correction: Some(correction),
            ..self.saying(arguments.request_id)
        };
        let feedback = self.send(request).await?;
        Ok(results::decision_recorded(&feedback, target.as_deref()))
    }

    pub(super) async fn rate_search(&self, arguments: SearchArguments) -> Result<Value> {
        let value = match arguments.rating {
            RatingArgument::Up => SearchRatingValue::Up,
            RatingArgument::Neutral => SearchRatingValue::Neutral,
            RatingArgument::Down => SearchRatingValue::Down,
        };
        let session = named(arguments.session_id, &self.session);
        let (reporter, _) = self.voter(arguments.reporter, session, false).await;
        let request = SubmitFeedbackRequest {
            reporter: Some(reporter),
            query_id: arguments.query_id,
            reason: arguments.reason.unwrap_or_default(),
            correction: Some(Correction {
                correction: Some(Variant::SearchRating(SearchRating { value: value as i32 })),
            }),
            ..self.saying(arguments.request_id)
        };
        Ok(results::rated(&self.send(request).await?))
    }

    pub(super) async fn rate_output(&self, arguments: RateArguments) -> Result<Value> {
        let rating = Rating {
            target: arguments.target,
            value: arguments.value,
            target_id: arguments.target_id,
            input_text: arguments.input_text,
            output_text: arguments.output_text,
            prompt_version: arguments.prompt_version.unwrap_or_default(),
            issues: arguments.issues,
            corrected_text: arguments.corrected_text.unwrap_or_default(),
            correct_judgement: arguments.correct_judgement.unwrap_or_default(),
            ..Rating::default()
        };
        let session = named(arguments.session_id, &self.session);
        let (reporter, _) = self.voter(arguments.reporter, session, false).await;
        let request = SubmitFeedbackRequest {
            reporter: Some(reporter),
            reason: arguments.reason.unwrap_or_default(),
            correction: Some(Correction {
                correction: Some(Variant::Rating(rating)),
            }),
            ..self.saying(arguments.request_id)
        };
        Ok(results::rated(&self.send(request).await?))
    }

    pub(super) async fn take_back(&self, arguments: RetractArguments) -> Result<Value> {
        let request = RetractFeedbackRequest {
            namespace: self.context.namespace(),
            feedback_id: arguments.feedback_id,
            reason: arguments.reason.unwrap_or_default(),
            wait: Wait::Evaluated as i32,
        };
        let mut client = self.context.feedback().await?;
        let response = client
            .retract_feedback(self.context.request(request))
            .await
            .map_err(|status| may_be_done(status, "it may be taken back"))?
            .into_inner();
        let feedback = feedback::required(response.feedback)?;
        self.saw(feedback.outcome.as_ref().map_or(0, |outcome| outcome.revision));
        // It is taken back, whatever can be said of what follows from that.
        let (still_applies, why) = match self.what_became(&feedback).await {
            Ok(became) => became,
            Err(failure) => (None, format!("it can't be looked up now ({failure})")),
        };
        Ok(results::retracted(&feedback, still_applies, &why))
    }

    /// A request without what is said, which may be sent again.
    fn saying(&self, request_id: Option<String>) -> SubmitFeedbackRequest {
        SubmitFeedbackRequest {
            request_id: named(request_id, &self.context.request_id()),
            namespace: self.context.namespace(),
            wait: Wait::Evaluated as i32,
            ..SubmitFeedbackRequest::default()
        }
    }

    /// Who says it, and as whom that votes: a caller that may not speak for others has one vote, whatever ids it names.
    async fn voter(
        &self,
        reporter: Option<String>,
        session_id: String,
        user_scoped: bool,
    ) -> (Reporter, Voter) {
        let reporter = named(reporter, &self.reporter);
        let (id, voter) = if self.rights.may_for_users(&self.context, SUBMIT).await {
            (voter_id(reporter, &session_id, user_scoped), Voter::Named)
        } else {
            let caller = self.rights.caller(&self.context, SUBMIT).await;
            (String::new(), Voter::Caller(caller))
        };
        let reporter = Reporter {
            id,
            session_id,
            client: CLIENT.to_owned(),
            ..Reporter::default()
        };
        (reporter, voter)
    }

    async fn send(&self, request: SubmitFeedbackRequest) -> Result<Feedback> {
        let request_id = request.request_id.clone();
        let mut client = self.context.feedback().await.map_err(not_sent)?;
        let response = match client.submit_feedback(self.context.request(request)).await {
            Ok(response) => response.into_inner(),
            Err(status) => {
                let may_be_stored = may_be_stored(&status);
                return Err(match Failure::from(status) {
                    failure @ (Failure::Unreachable { .. } | Failure::Untrusted { .. }) => not_sent(failure),
                    failure if may_be_stored => Failure::Unavailable(format!(
                        "feedback-svc did not answer in time, and it may be stored: call again with the same arguments and \
                         \"request_id\": \"{request_id}\", which stores it once ({failure})"
                    )),
                    failure => failure,
                });
            }
        };
        let feedback = feedback::required(response.feedback)?;
        self.saw(feedback.outcome.as_ref().map_or(0, |outcome| outcome.revision));
        Ok(feedback)
    }

    /// Whether the value of a correction that was taken back still applies (`None`: it is not known), and why.
    async fn what_became(&self, feedback: &Feedback) -> Result<(Option<bool>, String)> {
        let outcome = feedback.outcome.clone().unwrap_or_default();
        let Some(learned) = outcome.what_was_learned else {
            return Ok((None, "learning-svc has not evaluated it yet".to_owned()));
        };
        let is_prohibition = learned.kind == ResourceKind::Prohibition as i32;
        let qualifier = match ResourceKind::try_from(learned.kind) {
            Ok(ResourceKind::Prohibition) => learned.maps_to.clone(),
            Ok(ResourceKind::DomainRule) => HUMAN.to_owned(),
            _ => String::new(),
        };
        let user_id = match feedback.scope {
            scope if scope == Scope::User as i32 => feedback.reporter.clone().unwrap_or_default().id,
            _ => String::new(),
        };
        let request = GetResourceRequest {
            key: Some(ResourceKey {
                namespace: self.context.namespace(),
                kind: learned.kind,
                key: learned.input,
                qualifier,
                user_id,
            }),
            min_revision: outcome.revision,
        };
        let mut client = self.context.resources().await?;
        let applies = match client.get_resource(self.context.request(request)).await {
            Ok(found) => {
                let value = found.into_inner().resource.and_then(|resource| resource.value);
                is_prohibition || view::maps_to(value.as_ref()) == learned.maps_to
            }
            Err(status) if status.code() == Code::NotFound => false,
            Err(status) if status.code() == Code::PermissionDenied => {
                return Ok((None, format!("to look it up {}", status.message())));
            }
            Err(status) => return Err(status.into()),
        };
        let others = outcome.reporter_count;
        let voters = match others {
            1 => "1 other voter supports it".to_owned(),
            others => format!("{others} other voters support it"),
        };
        let why = match applies {
            true if others > 0 && others >= i64::from(outcome.threshold_applied) => voters,
            true => "a person decided it, or an older decision says the same".to_owned(),
            false if outcome.threshold_applied > 0 => {
                format!("{voters}, and {} are needed", outcome.threshold_applied)
            }
            false => "nothing else that was said puts it in force".to_owned(),
        };
        Ok((Some(applies), why))
    }
}

/// The failure of a call that was not sent.
fn not_sent(failure: Failure) -> Failure {
    match failure {
        unreached @ Failure::Unreachable { .. } => {
            Failure::Unavailable(format!("Nothing was stored: {unreached}"))
        }
        other => other,
    }
}

/// The failure of a call that changes something once, however often it is made.
pub(super) fn may_be_done(status: Status, what: &str) -> Failure {
    let is_unclear = may_be_stored(&status);
    match Failure::from(status) {
        failure @ Failure::Refused(_) if is_unclear => Failure::Unavailable(format!(
            "There was no answer, and {what}: call again with the same arguments, which does it once ({failure})"
        )),
        failure => failure,
    }
}

/// Whether a call that failed may have stored what it said.
fn may_be_stored(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::DeadlineExceeded | Code::Cancelled | Code::Unknown | Code::Internal | Code::Unavailable
    )
}

fn said(arguments: &FeedbackArguments) -> Said {
    let maps_to = match arguments.feedback_type {
        FeedbackType::Prohibition => &arguments.system_choice,
        _ => &arguments.correct_choice,
    };
    Said {
        input: arguments.original_input.clone(),
        maps_to: maps_to.clone().unwrap_or_default(),
        feedback_type: arguments.feedback_type,
        names_reporter: arguments.context.reporter.is_some(),
        is_users_own: arguments.scope == ScopeArgument::User,
    }
}
