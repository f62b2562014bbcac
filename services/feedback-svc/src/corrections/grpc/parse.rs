//! Requests → arguments of the use cases: a valid value, or every violated field at once.

use emend_core::{
    AcceptOrder, FeedbackId, Invalid, Namespace, ReporterId, RequestId, Violations,
    correction::{Form, scope_user},
    normalize::MAX_KEY_CHARS,
    ratings::{OwnTarget, target_name},
    violation::bounded_text,
};
use emend_proto::feedback::v1 as pb;
use emend_wire::{
    kinds::{form_of, search_rating},
    page::{self, QueryHash},
    parse,
};
use feedback_store::records::{
    feedback::{FeedbackQuery, RepeatedRequest, Submission},
    labels::Tag,
    outbox::DeliveryState,
    ratings::RatingFilter,
};
use jiff::Timestamp;

use crate::corrections::{day, plain_text};

const MAX_BATCH: usize = 100;
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 500;

/// When to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
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
pub(crate) struct Refused {
    /// All that is wrong with it.
    pub(crate) violations: Violations,
    /// The request, where only the settings of its namespace refuse what it rates. It may have been stored before.
    pub(crate) refused_by_settings: Option<(RepeatedRequest, Wait)>,
}

/// A request in a namespace that has these targets of its own.
pub(crate) fn submission(
    request: &pb::SubmitFeedbackRequest,
    own_targets: &[OwnTarget],
) -> Result<(Submission, Wait), Refused> {
    let mut violations = Violations::new();
    let request_id = violations.check("request_id", optional(&request.request_id, RequestId::parse));
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let reporter = violations.part("reporter", parse::reporter(request.reporter.as_ref()));
    let query_id = violations.check("query_id", bounded_text(&request.query_id, 0, 128));
    let correction = request.correction.as_ref();
    let form = correction
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
    let refused = match (parse::new_correction(correction, own_targets), request) {
        (Ok(correction), Some((request, wait))) => return Ok((request.with(correction), wait)),
        (Ok(_), None) => None,
        (Err(refused), request) => {
            violations.nest("correction", refused.violations);
            request.zip(refused.refused_by_settings)
        }
    };
    violations.nest("", together);
    Err(Refused {
        violations,
        refused_by_settings: refused
            .and_then(|((request, wait), rating)| Some((request.with(rating).repeated()?, wait))),
    })
}

/// Checks what belongs to no single item; each is parsed on its own.
pub(crate) fn batch(request: &pb::BatchSubmitFeedbackRequest) -> Result<Wait, Violations> {
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

pub(crate) fn redaction(
    request: &pb::RedactFeedbackRequest,
) -> Result<(Namespace, FeedbackId, Wait), Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let id = violations.check("feedback_id", FeedbackId::parse(&request.feedback_id));
    let wait = violations.check("wait", wait(request.wait));
    violations.finish((|| Some((namespace?, id?, wait?)))())
}

pub(crate) fn get(request: &pb::GetFeedbackRequest) -> Result<(Namespace, FeedbackId), Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let id = violations.check("feedback_id", FeedbackId::parse(&request.feedback_id));
    violations.finish(namespace.zip(id))
}

/// A valid request to retract feedback.
#[derive(Debug)]
pub(crate) struct Retraction {
    pub(crate) namespace: Namespace,
    pub(crate) id: FeedbackId,
    pub(crate) reason: String,
    pub(crate) wait: Wait,
}

pub(crate) fn retraction(request: &pb::RetractFeedbackRequest) -> Result<Retraction, Violations> {
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
pub(crate) fn list_hash(request: &pb::ListFeedbackRequest) -> QueryHash {
    let query = pb::ListFeedbackRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListFeedback", &query)
}

pub(crate) fn list(request: &pb::ListFeedbackRequest, hash: QueryHash) -> Result<FeedbackQuery, Violations> {
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
    let period = parse::period(
        "received",
        request.received_from.as_ref(),
        request.received_before.as_ref(),
    );
    let period = violations.part("", period);
    let target = violations.check(
        "rating_target",
        optional(target_name(&request.rating_target), rated),
    );
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
        search_ratings.map(|filter| violations.part("search_ratings", rating_filter(filter)));
    if search_ratings.is_some() && (request.kind != 0 || !request.rating_target.is_empty()) {
        violations.add(
            "search_ratings",
            "must be absent with kind and rating_target, which these ratings have not",
        );
    }
    let parsed = (|| {
        let (begins, ends) = day?.unzip();
        let (from, before) = period?;
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
            from: from.max(begins),
            before: [before, ends].into_iter().flatten().min(),
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

/// The longest query type that can be asked for, in characters.
const MAX_QUERY_TYPE_CHARS: usize = 256;

/// The longest text of a query that can be asked for, in characters: that of the longest query.
const MAX_QUERY_TEXT_CHARS: usize = 2_000;

/// Which ratings are asked for.
pub(crate) fn rating_filter(message: &pb::SearchRatingFilter) -> Result<RatingFilter, Violations> {
    let mut violations = Violations::new();
    let value = match message.value {
        0 => Some(None),
        number => violations.check("value", search_rating(number)).map(Some),
    };
    let query_type = violations.check(
        "query_type",
        bounded_text(&message.query_type, 0, MAX_QUERY_TYPE_CHARS),
    );
    let tag = match message.tag.as_str() {
        "" => Some(None),
        tag => violations.check("tag", Tag::parse(tag)).map(Some),
    };
    let query_text = violations.check(
        "query_text",
        bounded_text(&message.query_text, 0, MAX_QUERY_TEXT_CHARS),
    );
    let parsed = (|| {
        Some(RatingFilter {
            value: value?,
            query_type: query_type.map(|query_type| (!query_type.is_empty()).then_some(query_type))?,
            tag: tag?,
            processed: message.processed,
            query_text: query_text.map(|text| (!text.is_empty()).then_some(text))?,
            only_counting: message.counting,
        })
    })();
    violations.finish(parsed)
}
