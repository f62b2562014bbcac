//! Requests → arguments of the use cases: a valid value, or every violated field at once.

use emend_core::{
    AcceptOrder, EventId, FeedbackId, Invalid, Namespace, ReporterId, RequestId, Violations,
    correction::{Form, scope_user},
    normalize::MAX_KEY_CHARS,
    ratings::OwnTarget,
    violation::bounded_text,
};
use emend_proto::feedback::v1 as pb;
use emend_wire::{
    kinds::form_of,
    page::{self, QueryHash},
    parse,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    corrections::{
        day,
        feedback::{FeedbackQuery, RepeatedRequest, Submission},
    },
    outbox::entry::{DeadLetterPosition, DeadLetterQuery, DeliveryState, Redrive},
    ratings::{self, plain_text},
};

const MAX_BATCH: usize = 100;
const MAX_EVENT_IDS: usize = 500;
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 500;

/// When to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Recorded,
    Evaluated,
}

fn wait(number: i32) -> Result<Wait, Invalid> {
    match pb::Wait::try_from(number) {
        Ok(pb::Wait::Unspecified | pb::Wait::Recorded) => Ok(Wait::Recorded),
        Ok(pb::Wait::Evaluated) => Ok(Wait::Evaluated),
        Err(_) => Err(Invalid::new(format!("is not a known way to wait: {number}"))),
    }
}

/// A field that may be left empty.
fn optional<T>(raw: &str, parse: impl FnOnce(&str) -> Result<T, Invalid>) -> Result<Option<T>, Invalid> {
    if raw.is_empty() {
        Ok(None)
    } else {
        parse(raw).map(Some)
    }
}

fn reason(raw: &str) -> Result<String, Invalid> {
    parse::free_text(raw, parse::MAX_REASON_CHARS).map(Option::unwrap_or_default)
}

/// Why a request to submit is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// All that is wrong with it.
    pub(super) violations: Violations,
    /// The request, where only this is wrong: it rates what its namespace does not have. It may have been stored before.
    pub(super) of_unknown_target: Option<(RepeatedRequest, Wait)>,
}

/// A request in a namespace that has these targets of its own.
pub(super) fn submission(
    request: &pb::SubmitFeedbackRequest,
    own_targets: &[OwnTarget],
) -> Result<(Submission, Wait), Refused> {
    let mut violations = Violations::new();
    let request_id = violations.check("request_id", optional(&request.request_id, RequestId::parse));
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let reporter = violations.part("reporter", parse::reporter(request.reporter.as_ref()));
    let query_id = violations.check("query_id", bounded_text(&request.query_id, 0, 128));
    let said = request.correction.as_ref();
    let form = said
        .and_then(|correction| correction.correction.as_ref())
        .map(form_of);
    let is_search_rating = form == Some(Form::SearchRating);
    let reason = if is_search_rating {
        plain_text::reason(&request.reason)
    } else {
        reason(&request.reason)
    };
    let reason = violations.check("reason", reason);
    let context = violations.part("", parse::context(&request.context));
    let scope = violations.check("scope", parse::scope(request.scope));
    let wait = violations.check("wait", wait(request.wait));
    // What its parts must be together.
    let mut together = Violations::new();
    if is_search_rating && query_id.as_ref().is_some_and(String::is_empty) {
        together.add("query_id", "is required with search_rating: 1 to 128 characters");
    }
    if let (Some(scope), Some(reporter)) = (scope, &reporter) {
        together.check("reporter.id", scope_user(scope, reporter.id.as_ref()));
    }
    if let Some(form) = form {
        if form.needs_reason() && reason.as_ref().is_some_and(String::is_empty) {
            together.add(
                "reason",
                format!(
                    "is required with {}: 1 to {} characters",
                    form.name(),
                    parse::MAX_REASON_CHARS
                ),
            );
        }
        if let Some(scope) = scope {
            together.check("scope", form.check_scope(scope));
        }
    }
    let request = (|| {
        let request = Submission {
            request_id: request_id?,
            namespace: namespace?,
            reporter: reporter?,
            query_id: query_id?,
            reason: reason?,
            context: context?,
            scope: scope?,
            correction: (),
        };
        Some((request, wait?))
    })();
    let request = request.filter(|_| violations.is_empty() && together.is_empty());
    let refused = match (parse::new_correction(said, own_targets), request) {
        (Ok(correction), Some((request, wait))) => return Ok((request.with(correction), wait)),
        (Ok(_), None) => None,
        (Err(refused), request) => {
            violations.nest("correction", refused.violations);
            request.zip(refused.of_unknown_target)
        }
    };
    violations.nest("", together);
    Err(Refused {
        violations,
        of_unknown_target: refused
            .and_then(|((request, wait), rating)| Some((request.with(rating).repeated()?, wait))),
    })
}

/// Checks what belongs to no single item; each is parsed on its own.
pub(super) fn batch(request: &pb::BatchSubmitFeedbackRequest) -> Result<Wait, Violations> {
    let mut violations = Violations::new();
    let count = request.requests.len();
    if count == 0 || count > MAX_BATCH {
        violations.add(
            "requests",
            format!("must have 1 to {MAX_BATCH} items, has {count}"),
        );
    }
    let wait = violations.check("wait", wait(request.wait));
    violations.finish(wait)
}

pub(super) fn redaction(
    request: &pb::RedactFeedbackRequest,
) -> Result<(Namespace, FeedbackId, Wait), Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let id = violations.check("feedback_id", FeedbackId::parse(&request.feedback_id));
    let wait = violations.check("wait", wait(request.wait));
    violations.finish((|| Some((namespace?, id?, wait?)))())
}

pub(super) fn get(request: &pb::GetFeedbackRequest) -> Result<(Namespace, FeedbackId), Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let id = violations.check("feedback_id", FeedbackId::parse(&request.feedback_id));
    violations.finish(namespace.zip(id))
}

/// A valid request to retract feedback.
#[derive(Debug)]
pub(super) struct Retraction {
    pub(super) namespace: Namespace,
    pub(super) id: FeedbackId,
    pub(super) reason: String,
    pub(super) wait: Wait,
}

pub(super) fn retraction(request: &pb::RetractFeedbackRequest) -> Result<Retraction, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let id = violations.check("feedback_id", FeedbackId::parse(&request.feedback_id));
    let reason = violations.check("reason", reason(&request.reason));
    let wait = violations.check("wait", wait(request.wait));
    let parsed = (|| {
        Some(Retraction {
            namespace: namespace?,
            id: id?,
            reason: reason?,
            wait: wait?,
        })
    })();
    violations.finish(parsed)
}

/// Identifies a list of feedback, whatever the page.
pub(super) fn list_hash(request: &pb::ListFeedbackRequest) -> QueryHash {
    let query = pb::ListFeedbackRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListFeedback", &query)
}

pub(super) fn list(request: &pb::ListFeedbackRequest, hash: QueryHash) -> Result<FeedbackQuery, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let limit = violations.check(
        "page_size",
        parse::page_size(request.page_size, DEFAULT_PAGE, MAX_PAGE),
    );
    let after = violations.check("page_token", page::number_position(hash, &request.page_token));
    let reporter = violations.check("reporter_id", optional(&request.reporter_id, ReporterId::parse));
    let kind = violations.check("kind", parse::optional_kind(request.kind));
    let delivery = violations.check("delivery_state", delivery_state(request.delivery_state));
    let time = |at: &Option<prost_types::Timestamp>| at.as_ref().map(parse::timestamp).transpose();
    let from = violations.check("received_from", time(&request.received_from));
    let before = violations.check("received_before", time(&request.received_before));
    if let (Some(Some(from)), Some(Some(before))) = (from, before)
        && before <= from
    {
        violations.add("received_before", "must be later than received_from");
    }
    let target = violations.check("rating_target", optional(&request.rating_target, rated));
    let rating = violations.check("rating_value", optional(&request.rating_value, rated));
    if !request.rating_value.is_empty() && request.rating_target.is_empty() {
        violations.add(
            "rating_value",
            "must be empty without rating_target: a value is one of a target",
        );
    }
    let day = violations.part("", day_of(request));
    let search_ratings = request.search_ratings.as_ref();
    let search_ratings =
        search_ratings.map(|filter| violations.part("search_ratings", ratings::grpc::filter(filter)));
    if search_ratings.is_some() && (request.kind != 0 || !request.rating_target.is_empty()) {
        violations.add(
            "search_ratings",
            "must be absent with kind and rating_target, which these ratings have not",
        );
    }
    let parsed = (|| {
        let (begins, ends) = day?.unzip();
        Some(FeedbackQuery {
            namespace: namespace?,
            reporter: reporter?,
            kind: kind?,
            target: target?,
            rating: rating?,
            search_ratings: match search_ratings {
                None => None,
                Some(filter) => Some(filter?),
            },
            delivery: delivery?,
            from: from?.max(begins),
            before: [before?, ends].into_iter().flatten().min(),
            after: after?.map(AcceptOrder),
            limit: limit?,
        })
    })();
    violations.finish(parsed)
}

/// The name of a target or a value that may have been rated.
fn rated(raw: &str) -> Result<String, Invalid> {
    bounded_text(raw, 1, MAX_KEY_CHARS)
}

/// From when until when the day lasts that is asked for; none if none is.
fn day_of(request: &pb::ListFeedbackRequest) -> Result<Option<(Timestamp, Timestamp)>, Violations> {
    let mut violations = Violations::new();
    let date = violations.check("day", optional(&request.day, day::date));
    let zone = violations.check("time_zone", day::time_zone(&request.time_zone));
    if !request.time_zone.is_empty() && request.day.is_empty() {
        violations.add("time_zone", "must be empty without day");
    }
    let bounds = match (date.flatten(), zone) {
        (Some(date), Some(zone)) => violations.check("day", day::bounds(date, &zone)),
        _ => None,
    };
    violations.finish(Some(bounds))
}

fn delivery_state(number: i32) -> Result<Option<DeliveryState>, Invalid> {
    if number == 0 {
        return Ok(None);
    }
    DeliveryState::from_number(number.into())
        .map(Some)
        .ok_or_else(|| Invalid::new(format!("is not a known delivery state: {number}")))
}

/// Identifies a list of dead letters, whatever the page.
pub(super) fn dead_letters_hash(request: &pb::ListDeadLettersRequest) -> QueryHash {
    let query = pb::ListDeadLettersRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListDeadLetters", &query)
}

pub(super) fn dead_letters(
    request: &pb::ListDeadLettersRequest,
    hash: QueryHash,
) -> Result<DeadLetterQuery, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", optional(&request.namespace, Namespace::parse));
    let limit = violations.check(
        "page_size",
        parse::page_size(request.page_size, DEFAULT_PAGE, MAX_PAGE),
    );
    let after = violations.check("page_token", dead_letter_position(hash, &request.page_token));
    let parsed = (|| {
        Some(DeadLetterQuery {
            namespace: namespace?,
            after: after?,
            limit: limit?,
        })
    })();
    violations.finish(parsed)
}

fn dead_letter_position(hash: QueryHash, token: &str) -> Result<Option<DeadLetterPosition>, Invalid> {
    let Some(bytes) = page::position(hash, token)? else {
        return Ok(None);
    };
    let (time, id) = bytes
        .split_first_chunk::<8>()
        .and_then(|(time, id)| Some((*time, <[u8; 16]>::try_from(id).ok()?)))
        .ok_or_else(|| Invalid::new("is not a page token of this list"))?;
    Ok(Some(DeadLetterPosition {
        dead_at: i64::from_le_bytes(time),
        event_id: EventId(Uuid::from_bytes(id)),
    }))
}

pub(super) fn redrive(request: &pb::RedriveDeadLettersRequest) -> Result<Redrive, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", optional(&request.namespace, Namespace::parse));
    let count = request.event_ids.len();
    if count > MAX_EVENT_IDS {
        violations.add(
            "event_ids",
            format!("must be at most {MAX_EVENT_IDS}, has {count}"),
        );
    }
    let parsed = request.event_ids.iter().take(MAX_EVENT_IDS).enumerate();
    let events: Vec<_> = parsed
        .filter_map(|(index, id)| violations.check(&format!("event_ids[{index}]"), EventId::parse(id)))
        .collect();
    let which = match namespace {
        Some(Some(namespace)) if count == 0 => Some(Redrive::Namespace(namespace)),
        Some(None) if count == 0 => {
            violations.add("namespace", "is required unless event_ids are given");
            None
        }
        namespace => namespace.map(|namespace| Redrive::Events(events, namespace)),
    };
    violations.finish(which)
}
