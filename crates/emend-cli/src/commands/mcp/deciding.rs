//! Tools that only a person may use: the person is shown what changes and answers, and nothing is done otherwise.

use std::time::Duration;

use emend_base::Error;
use emend_core::{
    FieldViolation, Kind, Refusal, Status, Violations,
    decide::Decidable,
    evidence::{DomainPattern, Suffix},
    violation::bounded_prose,
};
use emend_proto::learning::v1::{
    ApproveCandidateRequest, Candidate, GetCandidateResponse, GetPolicyRequest, RejectCandidateRequest,
};
use emend_wire::parse::{self, MAX_REASON_CHARS};
use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
        InputResponses, ProtocolVersion, RequestId, SealOptions, ServerRequest,
    },
    service::{Peer, PeerRequestOptions, RequestContext, ServiceError},
};
use serde_json::Value;

use super::{
    Server,
    arguments::{ApproveArguments, EvidenceAction, EvidenceArguments, RejectArguments},
    question::{Shown, question},
    results,
    saying::may_be_done,
    tools::{APPROVE, REJECT},
    watching::Watches,
};
use crate::{
    failure::{Failure, Result},
    words,
};

/// How long a person may think.
const THINKING: Duration = Duration::from_mins(10);
/// The name of the question, and of its only field.
const QUESTION: &str = "decision";
const CONFIRMED: &str = "confirmed";

/// Where else a reviewer decides, and how else a shared suffix is blocked: told to front ends that can't ask a person.
const BY_A_REVIEWER: &str = "a reviewer can decide it in the console, or with `emend candidates approve` or `emend candidates reject`";
const WITHOUT_AN_ASSISTANT: &str =
    "a person can say it with `emend evidence domains block`, and a reviewer then approves it";

/// What a call comes with, besides its arguments.
pub(super) struct Asking<'a> {
    context: &'a RequestContext<RoleServer>,
    /// The call, as far as an answer belongs to it.
    call: String,
    responses: Option<InputResponses>,
    state: Option<String>,
}

/// What came of a call.
pub(super) enum Done {
    Answer(Value),
    /// A person is asked first; the call comes again with the answer.
    Asked(Box<InputRequiredResult>),
}

/// What came of a question.
enum Consent {
    /// Yes, to what was shown: of a candidate with this etag.
    Given(String),
    Asked(Box<InputRequiredResult>),
}

impl<'a> Asking<'a> {
    pub(super) fn of(call: &mut CallToolRequestParams, context: &'a RequestContext<RoleServer>) -> Self {
        let arguments = call.arguments.clone().unwrap_or_default();
        Self {
            context,
            call: format!("{} {}", call.name, Value::Object(arguments)),
            responses: call.input_responses.take(),
            state: call.request_state.take(),
        }
    }

    fn can_ask(&self) -> bool {
        let capabilities = self.context.client_capabilities();
        let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
        // Older clients do not say in which ways they ask; all that did asked by a form.
        elicitation.is_some_and(|ways| ways.form.is_some() || ways.url.is_none())
    }
}

impl Server {
    pub(super) async fn approve(&self, arguments: ApproveArguments, asking: &Asking<'_>) -> Result<Done> {
        let on_behalf_of = self.decider(arguments.by, APPROVE).await?;
        let reason = arguments.reason.as_deref();
        let shown = self.candidate(arguments.candidate_id.clone()).await?;
        let etag = etag(&shown, arguments.etag.as_deref())?;
        let candidate = shown.candidate.clone().unwrap_or_default();
        can_be_applied(&candidate, arguments.accept_redacted)?;
        let decision = Shown {
            verb: "Apply",
            reason,
            on_behalf_of: &on_behalf_of,
            accepts_redacted: arguments.accept_redacted,
            is_first_of_two: self.needs_second(&candidate).await?,
        };
        let question = question(&self.context.namespace(), &shown, &decision)?;
        let etag = match Box::pin(self.consent(asking, &question, &etag, BY_A_REVIEWER)).await? {
            Consent::Given(etag) => etag,
            Consent::Asked(asked) => return Ok(Done::Asked(asked)),
        };
        let request = ApproveCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id: arguments.candidate_id,
            etag,
            reason: arguments.reason.unwrap_or_default(),
            on_behalf_of,
            accept_redacted: arguments.accept_redacted,
            ..ApproveCandidateRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let response = client
            .approve_candidate(self.context.request(request))
            .await
            .map_err(|status| may_be_done(status, "it may be applied"))?
            .into_inner();
        self.saw(response.revision);
        let decided = results::decided(response.candidate.as_ref(), response.revision);
        Ok(Done::Answer(decided))
    }

    pub(super) async fn reject(&self, arguments: RejectArguments, asking: &Asking<'_>) -> Result<Done> {
        let on_behalf_of = self.decider(arguments.by, REJECT).await?;
        let shown = self.candidate(arguments.candidate_id.clone()).await?;
        let etag = etag(&shown, arguments.etag.as_deref())?;
        can_be_decided(shown.candidate.as_ref(), |decidable| decidable.reject)?;
        let decision = Shown {
            verb: "Reject",
            reason: Some(&arguments.reason),
            on_behalf_of: &on_behalf_of,
            accepts_redacted: false,
            is_first_of_two: false,
        };
        let question = question(&self.context.namespace(), &shown, &decision)?;
        let etag = match Box::pin(self.consent(asking, &question, &etag, BY_A_REVIEWER)).await? {
            Consent::Given(etag) => etag,
            Consent::Asked(asked) => return Ok(Done::Asked(asked)),
        };
        let request = RejectCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id: arguments.candidate_id,
            etag,
            reason: arguments.reason,
            on_behalf_of,
        };
        let mut client = self.context.candidates().await?;
        let response = client
            .reject_candidate(self.context.request(request))
            .await
            .map_err(|status| may_be_done(status, "it may be rejected"))?
            .into_inner();
        self.saw(response.revision);
        let decided = results::decided(response.candidate.as_ref(), response.revision);
        Ok(Done::Answer(decided))
    }

    /// Whether one approval of the candidate is not enough, and it has none yet.
    async fn needs_second(&self, candidate: &Candidate) -> Result<bool> {
        let key = candidate.key.clone().unwrap_or_default();
        // One reviewer is enough for what is one user's own.
        if candidate.first_approval.is_some() || !key.user_id.is_empty() {
            return Ok(false);
        }
        let request = GetPolicyRequest {
            namespace: self.context.namespace(),
            kind: key.kind,
        };
        let mut client = self.context.policies().await?;
        let policy = client
            .get_policy(self.context.request(request))
            .await?
            .into_inner();
        Ok(policy.policy.is_some_and(|policy| policy.reviewers_needed > 1))
    }

    /// A decision about evidence. Below a private suffix there are names of many owners: a person is asked before somebody is asked
    /// to block all of them. It is always for a reviewer to decide, whoever says it.
    pub(super) async fn decide_evidence(
        &self,
        arguments: EvidenceArguments,
        asking: &Asking<'_>,
    ) -> Result<Done> {
        let pattern = arguments.args.domain_pattern.as_deref().unwrap_or_default();
        let is_private =
            DomainPattern::parse(pattern).is_ok_and(|pattern| pattern.suffix() == Suffix::Private);
        if arguments.action == EvidenceAction::DomainBlock && is_private {
            let question = format!(
                "Propose to block {pattern} in the namespace {:?}? It is a shared suffix: everybody's names below it would be blocked.\n\
                 Yes blocks nothing yet: the proposal awaits review, and blocks once a reviewer has approved it.",
                self.context.namespace()
            );
            let asked = self.consent(asking, &question, "", WITHOUT_AN_ASSISTANT);
            if let Consent::Asked(asked) = Box::pin(asked).await? {
                return Ok(Done::Asked(asked));
            }
        }
        Ok(Done::Answer(Box::pin(self.decide(arguments)).await?))
    }

    /// The person on whose behalf it is decided; none where the caller may not act for users and names nobody.
    async fn decider(&self, by: Option<String>, method: &str) -> Result<String> {
        match by.filter(|by| !by.trim().is_empty()) {
            Some(by) => {
                self.may_for_users("by", method).await?;
                Ok(by)
            }
            None if self.rights.may_for_users(&self.context, method).await => Ok(self.by.clone()),
            None => Ok(String::new()),
        }
    }

    /// What the front end answers to a question. If the call is cancelled meanwhile, the question is taken back.
    async fn answered(
        &self,
        context: &RequestContext<RoleServer>,
        question: ElicitRequest,
    ) -> std::result::Result<ClientResult, ServiceError> {
        let options = PeerRequestOptions::with_timeout(THINKING);
        let question = ServerRequest::ElicitRequest(question);
        let asked = context.peer.send_request_with_option(question, options).await?;
        let mut open = Open {
            peer: context.peer.clone(),
            id: asked.id.clone(),
            watches: &self.watches,
            is_waiting: true,
        };
        let answered = asked.await_response().await;
        open.is_waiting = false;
        answered
    }

    /// Asks the person, and takes nothing but yes as consent. `otherwise` says how it can be done where no person can be asked.
    async fn consent(
        &self,
        asking: &Asking<'_>,
        question: &str,
        etag: &str,
        otherwise: &str,
    ) -> Result<Consent> {
        if !asking.can_ask() {
            return Err(undone(
                "PERSON_NOT_ASKED",
                &format!(
                    "nothing was done: a person has to agree first, and your front end can't ask one, since it has no elicitation; \
                     {otherwise}"
                ),
            ));
        }
        let request = elicitation(question)?;
        let is_stateless = asking
            .context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        if !is_stateless {
            return match self.answered(asking.context, request).await {
                Ok(ClientResult::ElicitResult(result)) => given(&result, etag),
                Ok(_) => Err(no_answer("the front end answered something else")),
                Err(error) => Err(no_answer(&error.to_string())),
            };
        }
        let bound = format!(
            "{} {} {}",
            self.context.namespace(),
            self.rights.caller(&self.context, APPROVE).await,
            asking.call
        );
        let (Some(responses), Some(state)) = (&asking.responses, &asking.state) else {
            let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(THINKING);
            let state = self.seal.seal_with(etag.as_bytes(), &options);
            let requests = InputRequests::from([(QUESTION.to_owned(), InputRequest::Elicitation(request))]);
            let asked = InputRequiredResult::new(Some(requests), Some(state));
            return Ok(Consent::Asked(Box::new(asked)));
        };
        let seen = self
            .seal
            .open_with(state, bound.as_bytes())
            .map_err(|error| no_answer(&format!("the state of the request is not this call's: {error}")))?;
        let seen = String::from_utf8(seen).map_err(|_| no_answer("the state of the request is not valid"))?;
        let response = responses.get(QUESTION).cloned().unwrap_or_default();
        let result: ElicitResult = serde_json::from_value(response)
            .map_err(|error| no_answer(&format!("the answer can't be read: {error}")))?;
        given(&result, &seen)
    }
}

/// A question that is put to a person, until there is an answer.
struct Open<'a> {
    peer: Peer<RoleServer>,
    id: RequestId,
    watches: &'a Watches,
    is_waiting: bool,
}

impl Drop for Open<'_> {
    /// Takes it back: nobody waits for the answer any more.
    fn drop(&mut self) {
        if self.is_waiting {
            let (peer, id) = (self.peer.clone(), self.id.clone());
            let why = "the call that asked was cancelled".to_owned();
            self.watches.spawn(async move {
                let cancelled = CancelledNotificationParam::new(Some(id), Some(why));
                // Its front end may have gone, too.
                let _ = peer.notify_cancelled(cancelled).await;
            });
        }
    }
}

/// What the service would refuse of a reason, said before a person is asked.
pub(super) fn wrong_reason(reason: Option<&str>, least: usize) -> Vec<FieldViolation> {
    let mut violations = Violations::new();
    let checked = bounded_prose(reason.unwrap_or_default(), least, MAX_REASON_CHARS);
    violations.check("reason", checked);
    violations.into_vec()
}

/// Refuses what the service would refuse whatever the person answered.
fn can_be_decided(candidate: Option<&Candidate>, may: fn(&Decidable) -> bool) -> Result {
    let candidate = candidate.cloned().unwrap_or_default();
    let kind = candidate.key.as_ref().and_then(|key| Kind::from_number(key.kind));
    let status = parse::candidate_status(candidate.status);
    let Some(status) = status.filter(|&status| !may(&Decidable::of(kind, status))) else {
        return Ok(());
    };
    Err(match status {
        Status::Applied => undone("ALREADY_APPLIED", &Refusal::AlreadyApplied.to_string()),
        Status::Rejected => undone("ALREADY_REJECTED", &Refusal::AlreadyRejected.to_string()),
        Status::Pending | Status::AwaitingReview | Status::Superseded | Status::Withdrawn => undone(
            "ALREADY_DECIDED",
            &format!(
                "the candidate is {} and can't be decided any more",
                words::status_name(candidate.status).replace('_', " ")
            ),
        ),
    })
}

/// The same of applying it.
fn can_be_applied(candidate: &Candidate, accepts_redacted: bool) -> Result {
    can_be_decided(Some(candidate), |decidable| decidable.approve)?;
    let proposal = candidate.proposal.as_ref();
    let redacted = proposal.map_or(0, |proposal| proposal.redacted_count);
    if redacted > 0 && !accepts_redacted {
        return Err(undone(
            "RATINGS_REDACTED",
            &format!(
                "{redacted} of the ratings that it was made of have been erased since, and its text may still repeat them: nothing \
                 was done. Read the text to the person, then call again with accept_redacted"
            ),
        ));
    }
    Ok(())
}

/// The etag of what the person is shown. It is decided only as it was shown: one that the call names must be the same.
fn etag(shown: &GetCandidateResponse, named: Option<&str>) -> Result<String> {
    let read = shown.candidate.as_ref().map_or("", |candidate| &candidate.etag);
    match named.filter(|named| !named.is_empty()) {
        Some(named) if named != read => Err(tonic::Status::from(Error::Aborted {
            reason: "ETAG_MISMATCH",
            message: "the candidate was changed since you read it: nothing was done. Read it again with intent_list".to_owned(),
        })
        .into()),
        Some(_) | None => Ok(read.to_owned()),
    }
}

fn elicitation(question: &str) -> Result<ElicitRequest> {
    let schema = ElicitationSchema::builder()
        .required_bool_property(CONFIRMED, |confirmed| {
            confirmed.title("Yes, do it").description(
                "Tick this and send the form to agree. Anything else leaves everything as it is.",
            )
        })
        .build()
        .map_err(Failure::failed)?;
    Ok(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.to_owned(),
        requested_schema: schema,
    }))
}

fn given(result: &ElicitResult, etag: &str) -> Result<Consent> {
    let is_confirmed = result
        .content
        .as_ref()
        .is_some_and(|content| content[CONFIRMED] == true);
    let why = match result.action {
        ElicitationAction::Accept if is_confirmed => return Ok(Consent::Given(etag.to_owned())),
        ElicitationAction::Accept => "the form came back without the tick that says yes",
        ElicitationAction::Cancel => "the question was closed without an answer",
        _ => "the person did not agree",
    };
    Err(undone("PERSON_DECLINED", &format!("{why}: nothing was done")))
}

fn no_answer(why: &str) -> Failure {
    undone(
        "PERSON_NOT_ASKED",
        &format!("nothing was done, since no person answered: {why}"),
    )
}

pub(super) fn undone(reason: &'static str, message: &str) -> Failure {
    let error = Error::FailedPrecondition {
        reason,
        message: message.to_owned(),
        violations: Vec::new(),
    };
    tonic::Status::from(error).into()
}
