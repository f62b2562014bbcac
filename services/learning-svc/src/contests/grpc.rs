//! The candidate service: the review queue.

pub(crate) mod render;

use std::slice;

use emend_base::{Error, error::to_item_status};
use emend_core::{Caller, Key, Kind, OperationId, Violations};
use emend_proto::{
    common::v1::{ItemStatus, ResourceValue},
    learning::v1::{self as pb, candidate_service_server::CandidateService},
};
use emend_serve::{
    auth::{Access, Addresses, Call},
    caller::caller_of,
};
use emend_wire::{
    page::{self, QueryHash},
    parse as wire,
};
use learning_store::contests::{CandidateFilter, CandidatePosition};
use tonic::{Request, Response, Status};

use crate::{
    contests::Contests,
    decisions::{
        Decisions,
        review::{Review, Reviewed, Verdict},
    },
    grpc::{
        candidates::{self, FILTER, position, statuses, token, too_many},
        parse,
    },
    outputs::{Outputs, grpc::render as outputs},
    roles::{Messages, admit, open},
};

/// Items in a batch at most.
const BATCH: usize = 100;
/// Serves the use cases of the review queue.
#[derive(Debug, Clone)]
pub struct CandidateHandler {
    contests: Contests,
    outputs: Outputs,
}

impl CandidateHandler {
    /// Serves the use cases of `contests`, and what `outputs` knows of candidates that are prompts.
    pub fn new(contests: Contests, outputs: Outputs) -> Self {
        Self { contests, outputs }
    }

    fn decisions(&self) -> &Decisions {
        &self.contests.decisions
    }

    async fn approve(
        &self,
        caller: &Caller,
        access: &Access,
        request: pb::ApproveCandidateRequest,
        operation: Option<OperationId>,
    ) -> Result<Reviewed, Error> {
        let mut violations = Violations::new();
        let namespace = parse::namespace(&mut violations, &request.namespace);
        let candidate = parse::candidate_id(&mut violations, &request.candidate_id);
        let etag = parse::etag(&mut violations, "etag", &request.etag);
        let reason = parse::reason(&mut violations, &request.reason);
        let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
        // Which edited values are valid depends on the candidate's contest.
        let edited = match (&request.edited_value, &namespace, candidate) {
            (None, _, _) => Some(None),
            (Some(edited), Some(namespace), Some(candidate)) => {
                match self.decisions().candidate(namespace, candidate).await {
                    Ok(record) => {
                        let display = record.candidate.value.written(record.key.key.as_str());
                        let edited = wire::resource_value(Some(edited), Some(&record.key), display);
                        violations.part("edited_value", edited).map(Some)
                    }
                    Err(error) if violations.is_empty() => return Err(error),
                    Err(_) => without_contest(&mut violations, edited),
                }
            }
            (Some(edited), _, _) => without_contest(&mut violations, edited),
        };
        let review = (|| {
            Some(Review {
                namespace: namespace?,
                candidate: candidate?,
                etag: etag?,
                actor: actor?,
                operation,
                verdict: Verdict::Approve {
                    edited: edited?,
                    reason: reason?,
                    accept_redacted: request.accept_redacted,
                },
            })
        })();
        self.decisions().review(&violations.finish(review)?, access).await
    }

    async fn reject(
        &self,
        caller: &Caller,
        access: &Access,
        request: pb::RejectCandidateRequest,
        operation: Option<OperationId>,
    ) -> Result<Reviewed, Error> {
        let mut violations = Violations::new();
        let namespace = parse::namespace(&mut violations, &request.namespace);
        let candidate = parse::candidate_id(&mut violations, &request.candidate_id);
        let etag = parse::etag(&mut violations, "etag", &request.etag);
        let reason = parse::required_reason(&mut violations, &request.reason);
        let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
        let review = (|| {
            Some(Review {
                namespace: namespace?,
                candidate: candidate?,
                etag: etag?,
                actor: actor?,
                operation,
                verdict: Verdict::Reject { reason: reason? },
            })
        })();
        self.decisions().review(&violations.finish(review)?, access).await
    }

    /// The operation id that the revisions of one batch share.
    fn operation(&self, items: usize) -> Result<OperationId, Error> {
        if (1..=BATCH).contains(&items) {
            Ok(OperationId(
                self.decisions().entropy.uuid_v7(self.decisions().clock.now()),
            ))
        } else {
            Err(Error::invalid(
                "requests",
                format!("must have 1 to {BATCH} entries, has {items}"),
            ))
        }
    }
}

fn result(reviewed: Result<Reviewed, Error>) -> pb::ReviewResult {
    match reviewed {
        Ok(Reviewed { candidate, revision }) => pb::ReviewResult {
            status: Some(ItemStatus::default()),
            candidate: Some(candidates::candidate(&candidate)),
            revision: revision.0,
        },
        Err(error) => pb::ReviewResult {
            status: Some(to_item_status(&error)),
            ..pb::ReviewResult::default()
        },
    }
}

#[tonic::async_trait]
impl CandidateService for CandidateHandler {
    async fn list_candidates(
        &self,
        request: Request<pb::ListCandidatesRequest>,
    ) -> Result<Response<pb::ListCandidatesResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let query = query(&request);
        let (filter, after, limit) = list(&request, query).map_err(Error::from)?;
        let (records, more) = self.contests.list_candidates(&filter, after, limit).await?;
        let redacted = self.outputs.redactions(&records).await?;
        let rendered = records.iter().map(|record| render::counted(record, &redacted));
        let (candidates, was_cut) = page::cut(rendered.collect());
        let last = records.iter().take(candidates.len()).next_back();
        let next = last.filter(|_| more || was_cut).map(CandidatePosition::of);
        Ok(Response::new(pb::ListCandidatesResponse {
            candidates,
            next_page_token: next.map(|next| token(query, next)).unwrap_or_default(),
        }))
    }

    async fn get_candidate(
        &self,
        request: Request<pb::GetCandidateRequest>,
    ) -> Result<Response<pb::GetCandidateResponse>, Status> {
        let Call {
            access,
            message: request,
        } = open(request)?;
        let mut violations = Violations::new();
        let namespace = parse::namespace(&mut violations, &request.namespace);
        let candidate = parse::candidate_id(&mut violations, &request.candidate_id);
        let (namespace, candidate) = violations.finish(namespace.zip(candidate)).map_err(Error::from)?;
        let details = self
            .contests
            .candidate_details(&namespace, candidate, &access)
            .await?;
        let improvement = self.outputs.improvement(&details.record).await?;
        let redacted = self.outputs.redactions(slice::from_ref(&details.record)).await?;
        Ok(Response::new(pb::GetCandidateResponse {
            candidate: Some(render::counted(&details.record, &redacted)),
            improvement: improvement.map(outputs::improvement),
            ..render::candidate_details(details)
        }))
    }

    async fn approve_candidate(
        &self,
        request: Request<pb::ApproveCandidateRequest>,
    ) -> Result<Response<pb::ApproveCandidateResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let reviewed = self.approve(&caller, &access, message, None).await?;
        Ok(Response::new(pb::ApproveCandidateResponse {
            candidate: Some(candidates::candidate(&reviewed.candidate)),
            revision: reviewed.revision.0,
        }))
    }

    async fn reject_candidate(
        &self,
        request: Request<pb::RejectCandidateRequest>,
    ) -> Result<Response<pb::RejectCandidateResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let reviewed = self.reject(&caller, &access, message, None).await?;
        Ok(Response::new(pb::RejectCandidateResponse {
            candidate: Some(candidates::candidate(&reviewed.candidate)),
            revision: reviewed.revision.0,
        }))
    }

    async fn batch_approve_candidates(
        &self,
        request: Request<pb::BatchApproveCandidatesRequest>,
    ) -> Result<Response<pb::BatchApproveCandidatesResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let requests = message.requests;
        let operation = self.operation(requests.len())?;
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            let reviewed = match admitted(&access, &request) {
                Ok(now) => self.approve(&caller, &now, request, Some(operation)).await,
                Err(refused) => Err(refused),
            };
            results.push(result(reviewed));
        }
        Ok(Response::new(pb::BatchApproveCandidatesResponse { results }))
    }

    async fn batch_reject_candidates(
        &self,
        request: Request<pb::BatchRejectCandidatesRequest>,
    ) -> Result<Response<pb::BatchRejectCandidatesResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let requests = message.requests;
        let operation = self.operation(requests.len())?;
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            let reviewed = match admitted(&access, &request) {
                Ok(now) => self.reject(&caller, &now, request, Some(operation)).await,
                Err(refused) => Err(refused),
            };
            results.push(result(reviewed));
        }
        Ok(Response::new(pb::BatchRejectCandidatesResponse { results }))
    }
}

/// The caller's current rights, if they allow this item of a batch.
fn admitted<T>(access: &Access, item: &T) -> Result<Access, Error>
where
    Messages: Addresses<T>,
{
    let now = access.as_of_now()?;
    admit(&now, item)?;
    Ok(now)
}

/// Adds the violations an edited value has whatever its contest.
fn without_contest<T>(violations: &mut Violations, edited: &ResourceValue) -> Option<T> {
    violations.part("edited_value", wire::resource_value(Some(edited), None, ""));
    None
}

pub(crate) fn query(request: &pb::ListCandidatesRequest) -> QueryHash {
    let without_page = pb::ListCandidatesRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListCandidates", &without_page)
}

pub(crate) fn list(
    request: &pb::ListCandidatesRequest,
    query: QueryHash,
) -> Result<(CandidateFilter, Option<CandidatePosition>, u32), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    if request.kinds.len() > FILTER {
        violations.add("kinds", too_many(request.kinds.len()));
    }
    let kinds = &request.kinds[..request.kinds.len().min(FILTER)];
    let mut kinds = wire::kinds("kinds", kinds, &mut violations);
    let user = violations.check("user_id", parse::user(&request.user_id));
    if user == Some(None) {
        if !kinds.is_empty() && kinds.iter().all(|kind| *kind == Kind::Profile) {
            violations.add(
                "user_id",
                "is required: entries of profiles are listed user by user",
            );
        }
        let asked = if kinds.is_empty() {
            Kind::ALL.to_vec()
        } else {
            kinds
        };
        kinds = asked.into_iter().filter(|kind| *kind != Kind::Profile).collect();
    }
    let statuses = statuses(&request.statuses, &mut violations);
    let key = match request.key.as_str() {
        "" => Some(Vec::new()),
        key => {
            let kinds = if kinds.is_empty() { &Kind::ALL[..] } else { &kinds };
            violations.check("key", Key::of_any(kinds, key))
        }
    };
    let limit = violations.check("page_size", wire::page_size(request.page_size, 50, 500));
    let after = violations.check("page_token", page::position(query, &request.page_token));
    let after = after.and_then(|after| match after {
        None => Some(None),
        Some(bytes) => violations.check("page_token", position(&bytes)).map(Some),
    });
    let parsed = (|| {
        let filter = CandidateFilter {
            namespace: namespace?,
            kinds,
            statuses,
            keys: key?,
            user: user?,
        };
        Some((filter, after?, limit?))
    })();
    violations.finish(parsed)
}
