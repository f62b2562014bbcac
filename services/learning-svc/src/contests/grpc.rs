//! The candidate service: the review queue.

pub(crate) mod render;

use std::slice;

use emend_base::{Error, error::to_item_status};
use emend_core::{
    Caller, CandidateId, Invalid, Key, Kind, Namespace, OperationId, Violations,
    violation::{bounded_prose, bounded_text},
};
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
use futures::{StreamExt as _, stream, stream::BoxStream};
use jiff::{SignedDuration, Timestamp};
use learning_store::{
    contests::{
        Asked, CandidateFilter, CandidateOrder, CandidatePosition, CandidateRecord, Involvement, Listing,
    },
    queue::MAX_DAYS,
};
use tonic::{Request, Response, Status};

use crate::{
    contests::{
        Contests,
        candidates::{QueueQuery, SearchText},
        queue::{Opened, ReviewQueue, watch::Watched},
    },
    decisions::{
        Decisions,
        review::{Review, Reviewed, Verdict},
        undo::Undo,
    },
    grpc::{
        candidates::{self, FILTER, position, statuses, token, too_many},
        parse,
    },
    lookups::{
        Previews,
        preview::{self, Searched, Trial},
    },
    outputs::{Outputs, grpc::render as outputs},
    roles::{Messages, admit, open},
};

/// Days of which figures are shown where none are asked for.
const DEFAULT_DAYS: u32 = 30;
/// Characters of a text that is looked for at most.
const MAX_TEXT: usize = 200;
/// Characters of a reviewer's name at most.
const MAX_NAME: usize = 128;
/// For how long a reviewer's decisions are listed where no time is given, and at most.
const DECIDED_WITHIN: (SignedDuration, SignedDuration) =
    (SignedDuration::from_hours(24), SignedDuration::from_hours(7 * 24));
/// Items in a batch at most.
const BATCH: usize = 100;
/// Serves the use cases of the review queue.
#[derive(Debug, Clone)]
pub struct CandidateHandler {
    contests: Contests,
    queue: ReviewQueue,
    outputs: Outputs,
    previews: Previews,
}

impl CandidateHandler {
    /// Serves the use cases of `contests` and of the `queue`, what `outputs` knows of candidates that are prompts, and what
    /// candidates would change.
    pub fn new(contests: Contests, queue: ReviewQueue, outputs: Outputs, previews: Previews) -> Self {
        Self {
            contests,
            queue,
            outputs,
            previews,
        }
    }

    fn decisions(&self) -> &Decisions {
        &self.contests.decisions
    }

    /// Candidates with all that is shown of them beside what is kept of their contests.
    async fn shown(&self, records: &[CandidateRecord]) -> Result<Vec<pb::Candidate>, Error> {
        let redacted = self.outputs.redactions(records).await?;
        let leases = self.queue.leases(records).await?;
        let approvals = self.queue.first_approvals(records).await?;
        let questions = self.queue.questions(records).await?;
        let shown = records.iter().map(|record| {
            let id = &record.candidate.id;
            pb::Candidate {
                lease: leases.get(id).map(render::lease),
                first_approval: approvals.get(id).map(render::first_approval),
                second_opinion: questions.get(id).map(render::comment),
                ..render::counted(record, &redacted)
            }
        });
        Ok(shown.collect())
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

/// Which candidate is tried on which queries.
pub(crate) fn previewed(
    request: &pb::PreviewCandidateRequest,
) -> Result<(Namespace, CandidateId, Vec<Searched>), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let candidate = parse::candidate_id(&mut violations, &request.candidate_id);
    let queries = preview::queries(&request.queries, &mut violations);
    violations.finish((|| Some((namespace?, candidate?, queries?)))())
}

pub(crate) fn undo(caller: &Caller, request: &pb::UndoDecisionRequest) -> Result<Undo, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let candidate = parse::candidate_id(&mut violations, &request.candidate_id);
    let etag = parse::etag(&mut violations, "etag", &request.etag);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let parsed = (|| {
        Some(Undo {
            namespace: namespace?,
            candidate: candidate?,
            etag: etag?,
            actor: actor?,
        })
    })();
    violations.finish(parsed)
}

/// A candidate that the caller opens or closes: its namespace, its id, and on whose behalf.
pub(crate) fn opened(
    caller: &Caller,
    (namespace, candidate_id, on_behalf_of): (&str, &str, &str),
) -> Result<Opened, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, namespace);
    let candidate = parse::candidate_id(&mut violations, candidate_id);
    let actor = parse::actor(&mut violations, caller, on_behalf_of);
    let parsed = (|| {
        Some(Opened {
            namespace: namespace?,
            candidate: candidate?,
            actor: actor?,
        })
    })();
    violations.finish(parsed)
}

pub(crate) fn watched(request: &pb::WatchQueueRequest) -> Result<Watched, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    if request.kinds.len() > FILTER {
        violations.add("kinds", too_many(request.kinds.len()));
    }
    let kinds = &request.kinds[..request.kinds.len().min(FILTER)];
    let kinds = wire::kinds("kinds", kinds, &mut violations);
    violations.finish(namespace.map(|namespace| Watched { namespace, kinds }))
}

/// What a reviewer writes about a candidate.
pub(crate) fn written(
    caller: &Caller,
    (namespace, candidate_id, on_behalf_of): (&str, &str, &str),
    comment: &str,
    asked: &str,
) -> Result<(Opened, String, String), Violations> {
    let mut violations = Violations::new();
    let about = opened(caller, (namespace, candidate_id, on_behalf_of));
    let about = violations.part("", about);
    let comment = violations.check("comment", bounded_prose(comment, 1, parse::REASON));
    let asked = violations.check("asked", bounded_text(asked, 0, MAX_NAME));
    let parsed = (|| Some((about?, comment?, asked?)))();
    violations.finish(parsed)
}

/// Of which namespace figures are wanted, and of how many days.
pub(crate) fn stats(request: &pb::GetQueueStatsRequest) -> Result<(Namespace, u32), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let days = match u32::try_from(request.days) {
        Ok(0) => Ok(DEFAULT_DAYS),
        Ok(days) if days <= MAX_DAYS => Ok(days),
        _ => Err(Invalid::new(format!(
            "must be 1 to {MAX_DAYS}, is {}",
            request.days
        ))),
    };
    let days = violations.check("days", days);
    violations.finish(namespace.zip(days))
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
    type WatchQueueStream = BoxStream<'static, Result<pb::WatchQueueResponse, Status>>;

    async fn list_candidates(
        &self,
        request: Request<pb::ListCandidatesRequest>,
    ) -> Result<Response<pb::ListCandidatesResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let query = query(&request);
        let now = self.decisions().clock.now();
        let (asked, after, limit) = list(&request, query, now).map_err(Error::from)?;
        let found = self.contests.queue(&asked, after, limit).await?;
        let (candidates, was_cut) = page::cut(self.shown(&found.candidates).await?);
        let last = found.candidates.iter().take(candidates.len()).next_back();
        let next = if was_cut {
            last.map(|last| CandidatePosition::by(asked.listing.order, last))
        } else {
            found.rest
        };
        Ok(Response::new(pb::ListCandidatesResponse {
            candidates,
            searched_count: i32::try_from(found.searched).unwrap_or(i32::MAX),
            next_page_token: next.map(|next| token(query, next)).unwrap_or_default(),
        }))
    }

    async fn preview_candidate(
        &self,
        request: Request<pb::PreviewCandidateRequest>,
    ) -> Result<Response<pb::PreviewCandidateResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let (namespace, candidate, queries) = previewed(&request).map_err(Error::from)?;
        let record = self.decisions().candidate(&namespace, candidate).await?;
        let kinds = preview::kinds_of(record.key.kind);
        if kinds.is_empty() {
            let name = record.key.kind.name();
            let message = format!("is of kind {name}, which no phrase is looked up as");
            return Err(Error::invalid("candidate_id", message).into());
        }
        let learned = record.candidate.value.learned;
        let trial = Trial {
            namespace,
            kinds,
            user: record.key.user.clone(),
            changes: [(record.key, Some(learned))].into(),
            setting: None,
            queries,
        };
        let changes = self.previews.compare(trial).await?;
        Ok(Response::new(pb::PreviewCandidateResponse {
            changes: Some(changes),
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
        let comments = self.queue.comments(candidate).await?;
        Ok(Response::new(pb::GetCandidateResponse {
            candidate: self.shown(slice::from_ref(&details.record)).await?.pop(),
            comments: comments.iter().map(render::comment).collect(),
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

    async fn undo_decision(
        &self,
        request: Request<pb::UndoDecisionRequest>,
    ) -> Result<Response<pb::UndoDecisionResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let undo = undo(&caller, &message).map_err(Error::from)?;
        let undone = self.decisions().undo(&undo, &access).await?;
        Ok(Response::new(pb::UndoDecisionResponse {
            candidate: Some(candidates::candidate(&undone.candidate)),
            revision: undone.revision.0,
        }))
    }

    async fn acquire_review_lease(
        &self,
        request: Request<pb::AcquireReviewLeaseRequest>,
    ) -> Result<Response<pb::AcquireReviewLeaseResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let opened = opened(
            &caller,
            (&message.namespace, &message.candidate_id, &message.on_behalf_of),
        )
        .map_err(Error::from)?;
        let (lease, acquired) = self.queue.acquire(&opened, &access).await?;
        Ok(Response::new(pb::AcquireReviewLeaseResponse {
            lease: Some(render::lease(&lease)),
            acquired,
        }))
    }

    async fn release_review_lease(
        &self,
        request: Request<pb::ReleaseReviewLeaseRequest>,
    ) -> Result<Response<pb::ReleaseReviewLeaseResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let opened = opened(
            &caller,
            (&message.namespace, &message.candidate_id, &message.on_behalf_of),
        )
        .map_err(Error::from)?;
        self.queue.release(&opened, &access).await?;
        Ok(Response::new(pb::ReleaseReviewLeaseResponse {}))
    }

    async fn ask_second_opinion(
        &self,
        request: Request<pb::AskSecondOpinionRequest>,
    ) -> Result<Response<pb::AskSecondOpinionResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let candidate = (
            &*message.namespace,
            &*message.candidate_id,
            &*message.on_behalf_of,
        );
        let (about, comment, asked) =
            written(&caller, candidate, &message.comment, &message.asked).map_err(Error::from)?;
        let comment = self.queue.ask(&about, (&comment, &asked), &access).await?;
        Ok(Response::new(pb::AskSecondOpinionResponse {
            comment: Some(render::comment(&comment)),
        }))
    }

    async fn comment_on_candidate(
        &self,
        request: Request<pb::CommentOnCandidateRequest>,
    ) -> Result<Response<pb::CommentOnCandidateResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let candidate = (
            &*message.namespace,
            &*message.candidate_id,
            &*message.on_behalf_of,
        );
        let (about, comment, _) = written(&caller, candidate, &message.comment, "").map_err(Error::from)?;
        let comment = self.queue.comment(&about, &comment, &access).await?;
        Ok(Response::new(pb::CommentOnCandidateResponse {
            comment: Some(render::comment(&comment)),
        }))
    }

    async fn watch_queue(
        &self,
        request: Request<pb::WatchQueueRequest>,
    ) -> Result<Response<Self::WatchQueueStream>, Status> {
        let Call { message, .. } = open(request)?;
        let watched = watched(&message).map_err(Error::from)?;
        let watch = self.queue.watch(watched).await?;
        let messages = stream::unfold(watch, |mut watch| async move {
            let message = watch.next().await?;
            Some((Ok(render::watching(message)), watch))
        });
        Ok(Response::new(messages.boxed()))
    }

    async fn get_queue_stats(
        &self,
        request: Request<pb::GetQueueStatsRequest>,
    ) -> Result<Response<pb::GetQueueStatsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let (namespace, days) = stats(&message).map_err(Error::from)?;
        let stats = self.queue.stats(&namespace, days).await?;
        Ok(Response::new(render::stats(stats)))
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

/// The order of a list; newest first where none is given.
fn order(number: i32) -> Result<CandidateOrder, Invalid> {
    use pb::CandidateOrder as Wire;
    match Wire::try_from(number) {
        Ok(Wire::Unspecified | Wire::NewestFirst) => Ok(CandidateOrder::NewestFirst),
        Ok(Wire::OldestFirst) => Ok(CandidateOrder::OldestFirst),
        Ok(Wire::MostVotes) => Ok(CandidateOrder::MostVotes),
        Ok(Wire::MostControversial) => Ok(CandidateOrder::MostControversial),
        Err(_) => Err(Invalid::new(format!("is not a known order: {number}"))),
    }
}

/// What reviewers did about the candidates to list.
fn reviewed(
    request: &pb::ListCandidatesRequest,
    now: Timestamp,
    violations: &mut Violations,
) -> Option<Involvement> {
    let mut name = |field: &str, name: &str| violations.check(field, bounded_text(name, 0, MAX_NAME));
    let asked = match &request.second_opinion {
        None => Some(None),
        Some(filter) => {
            let of = name("second_opinion.asked", &filter.asked);
            let by = name("second_opinion.asked_by", &filter.asked_by);
            of.zip(by).map(|(of, by)| Some(Asked { of, by }))
        }
    };
    let decider = name("decided_by", &request.decided_by);
    let (usual, longest) = DECIDED_WITHIN;
    let since = match &request.decided_after {
        None => Some(now.checked_sub(usual).unwrap_or(Timestamp::UNIX_EPOCH)),
        Some(_) if request.decided_by.is_empty() => {
            violations.add("decided_after", "is for decided_by, which is not given");
            None
        }
        Some(time) => violations.check(
            "decided_after",
            wire::timestamp(time).and_then(|since| {
                if now.duration_since(since) <= longest {
                    Ok(since)
                } else {
                    let days = longest.as_hours() / 24;
                    Err(Invalid::new(format!("must be at most {days} days ago")))
                }
            }),
        ),
    };
    Some(Involvement {
        asked: asked?,
        decided: Some((decider?, since?)).filter(|(name, _)| !name.is_empty()),
        approved_once: request.needs_second_reviewer,
    })
}

pub(crate) fn list(
    request: &pb::ListCandidatesRequest,
    query: QueryHash,
    now: Timestamp,
) -> Result<(QueueQuery, Option<CandidatePosition>, u32), Violations> {
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
    let order = violations.check("order", order(request.order));
    if matches!(
        order,
        Some(CandidateOrder::MostVotes | CandidateOrder::MostControversial)
    ) && statuses != [emend_core::Status::AwaitingReview]
    {
        violations.add(
            "statuses",
            "must be AWAITING_REVIEW alone in this order, which nothing else has",
        );
    }
    let mut time = |field: &str, time: Option<&prost_types::Timestamp>| match time {
        None => Some(None),
        Some(time) => violations.check(field, wire::timestamp(time)).map(Some),
    };
    let created_after = time("created_after", request.created_after.as_ref());
    let created_before = time("created_before", request.created_before.as_ref());
    let text = violations.check("text", bounded_text(&request.text, 0, MAX_TEXT));
    let reviewed = reviewed(request, now, &mut violations);
    let parsed = (|| {
        let text = text?;
        let asked = QueueQuery {
            filter: CandidateFilter {
                namespace: namespace?,
                kinds,
                statuses,
                keys: key?,
                user: user?,
                reviewed: reviewed?,
            },
            listing: Listing {
                order: order?,
                created_after: created_after?,
                created_before: created_before?,
            },
            text: (!text.is_empty()).then(|| SearchText::new(&text)),
        };
        Some((asked, after?, limit?))
    })();
    violations.finish(parsed)
}
