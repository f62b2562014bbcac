//! Parses the subscription service's requests into what the stream understands, or reports every violation.

use std::time::Duration;

use emend_base::Error;
use emend_core::violation::bounded_text;
use emend_core::{Caller, Epoch, Invalid, Namespace, NodeId, Violations, violation::bounded_prose};
use emend_proto::{common::v1 as common, learning::v1 as pb};
use emend_serve::{auth::Access, fair_semaphore::ClientKey};
use emend_stream::{filter::Filter, opening::Cursor};
use emend_wire::{
    page::{self, QueryHash},
    parse,
};
use jiff::SignedDuration;

use crate::{
    nodes::{ListNodes, NodeFilter},
    stream::Subscription,
};

const MAX_NAMESPACES: usize = 1_000;
const MAX_KINDS: usize = 64;
const MAX_LABELS: usize = 16;
const MAX_REJECTED: usize = 100;
/// Traces in one report at most.
const MAX_TRACES: usize = 32;
const MAX_BOUNDS: usize = 32;
const MAX_PROBLEM: usize = 64;

const DEFAULT_BOOKMARK: Duration = Duration::from_secs(30);
const BOOKMARK_BOUNDS: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(1), SignedDuration::from_hours(1));

const DEFAULT_BATCH: usize = 1024 * 1024;
const BATCH_BOUNDS: std::ops::RangeInclusive<i32> = 64 * 1024..=3 * 1024 * 1024;

const DEFAULT_SEEN_WITHIN: SignedDuration = SignedDuration::from_hours(24);
const SEEN_BOUNDS: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(1), SignedDuration::from_hours(366 * 24));

/// A `SubscribeRequest`, with its filter narrowed to what the caller may see.
pub(super) fn subscription(
    request: pb::SubscribeRequest,
    (caller, client): (Caller, ClientKey),
    access: &Access,
) -> Result<Subscription, Error> {
    let mut violations = Violations::new();
    let info = request.node.unwrap_or_default();
    let node_id = node(&info, &mut violations);
    let namespaces = namespaces(&request.namespaces, &mut violations);
    kinds(&request.kinds, &mut violations);
    let cursor = request
        .cursor
        .map(|message| cursor("cursor", &message, &mut violations));
    let bookmark_interval = match &request.bookmark_interval {
        Some(message) => violations
            .check(
                "bookmark_interval",
                parse::duration(message, BOOKMARK_BOUNDS.0, BOOKMARK_BOUNDS.1),
            )
            .map(SignedDuration::unsigned_abs),
        None => Some(DEFAULT_BOOKMARK),
    };
    let max_batch_bytes = violations.check("max_batch_bytes", batch_bytes(request.max_batch_bytes));
    let parsed = (|| {
        let cursor = match cursor {
            Some(cursor) => Some(cursor?),
            None => None,
        };
        Some((node_id?, cursor, bookmark_interval?, max_batch_bytes?))
    })();
    let (node_id, cursor, bookmark_interval, max_batch_bytes) = violations.finish(parsed)?;
    let namespaces = access.narrow(namespaces)?;
    Ok(Subscription {
        node_id,
        caller,
        info,
        stream: emend_stream::Subscription {
            client,
            access: access.clone(),
            filter: Filter::new(&namespaces, &request.kinds, request.include_user_scoped),
            cursor,
            bookmark_interval,
            max_batch_bytes,
        },
    })
}

/// A `ReportStatusRequest` and its node.
pub(super) fn report(
    request: pb::ReportStatusRequest,
) -> Result<(NodeId, pb::ReportStatusRequest), Violations> {
    let mut violations = Violations::new();
    let node_id = violations.check("node_id", NodeId::parse(&request.node_id));
    if let Some(applied) = &request.applied {
        cursor("applied", applied, &mut violations);
    }
    if request.rejected.len() > MAX_REJECTED {
        let count = request.rejected.len();
        violations.add(
            "rejected",
            format!("must have at most {MAX_REJECTED} entries, has {count}"),
        );
    }
    for (index, rejected) in request.rejected.iter().take(MAX_REJECTED).enumerate() {
        let mut part = Violations::new();
        rejection(rejected, &mut part);
        violations.nest(&format!("rejected[{index}]"), part);
    }
    let listed = i64::try_from(request.rejected.len()).unwrap_or(i64::MAX);
    if request.rejected_count < listed {
        violations.add(
            "rejected_count",
            format!(
                "must be at least {listed}, the number that are listed, is {}",
                request.rejected_count
            ),
        );
    }
    if let Some(delays) = &request.delays {
        let mut part = Violations::new();
        histogram(delays, &mut part);
        violations.nest("delays", part);
    }
    if let Some(delays) = &request.effect_delays {
        let mut part = Violations::new();
        histogram(delays, &mut part);
        violations.nest("effect_delays", part);
    }
    effect_traces(&request.effect_traces, &mut violations);
    violations.check("problem", problem(&request.problem));
    violations.finish(node_id.map(|node_id| (node_id, request)))
}

/// A `ListNodesRequest`.
pub(super) fn list_nodes(mut request: pb::ListNodesRequest) -> Result<ListNodes, Violations> {
    let mut violations = Violations::new();
    let limit = violations.check(
        "page_size",
        parse::page_size(std::mem::take(&mut request.page_size), 100, 1_000),
    );
    let token = std::mem::take(&mut request.page_token);
    let hash = QueryHash::of("ListNodes", &request);
    let after = violations.check("page_token", node_position(hash, &token));
    let seen_within = match &request.seen_within {
        Some(message) => violations.check(
            "seen_within",
            parse::duration(message, SEEN_BOUNDS.0, SEEN_BOUNDS.1),
        ),
        None => Some(DEFAULT_SEEN_WITHIN),
    };
    let filter = node_filter(&mut request, &mut violations);
    let parsed = (|| {
        Some(ListNodes {
            hash,
            limit: limit?,
            after: after?,
            seen_within: seen_within?,
            filter: filter?,
        })
    })();
    violations.finish(parsed)
}

fn node_filter(request: &mut pb::ListNodesRequest, violations: &mut Violations) -> Option<NodeFilter> {
    let state = pb::NodeState::try_from(request.state);
    let state = state.map_err(|_| Invalid(format!("must be one of the states, is {}", request.state)));
    let state = violations.check("state", state);
    violations.check("zone", bounded_text(&request.zone, 0, 64));
    let labels = std::mem::take(&mut request.labels);
    if labels.len() > MAX_LABELS {
        let count = labels.len();
        violations.add(
            "labels",
            format!("must have at most {MAX_LABELS} entries, has {count}"),
        );
    }
    let labels = labels.into_iter().take(MAX_LABELS).enumerate();
    let labels = labels
        .map(|(place, label)| {
            let (key, value) = match label.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (&*label, None),
            };
            let field = format!("labels[{place}]");
            violations.check(
                &field,
                bounded_text(key, 1, 63).map_err(|Invalid(why)| Invalid(format!("key {why}"))),
            );
            violations.check(&field, bounded_text(value.unwrap_or_default(), 0, 128));
            (key.to_owned(), value.map(str::to_owned))
        })
        .collect();
    Some(NodeFilter {
        state: state?,
        zone: std::mem::take(&mut request.zone),
        labels,
    })
}

fn node(info: &pb::NodeInfo, violations: &mut Violations) -> Option<NodeId> {
    let node_id = violations.check("node.id", NodeId::parse(&info.id));
    violations.check("node.version", bounded_text(&info.version, 0, 64));
    violations.check("node.zone", bounded_text(&info.zone, 0, 64));
    if info.labels.len() > MAX_LABELS {
        let count = info.labels.len();
        violations.add(
            "node.labels",
            format!("must have at most {MAX_LABELS} entries, has {count}"),
        );
        return None;
    }
    let mut labels: Vec<_> = info.labels.iter().collect();
    labels.sort_unstable();
    for (key, value) in labels {
        let shown: String = key.chars().take(63).collect();
        let field = format!("node.labels[{shown:?}]");
        violations.check(
            &field,
            bounded_text(key, 1, 63).map_err(|Invalid(why)| Invalid(format!("key {why}"))),
        );
        violations.check(&field, bounded_text(value, 0, 128));
    }
    node_id
}

fn namespaces(names: &[String], violations: &mut Violations) -> Vec<Namespace> {
    if names.len() > MAX_NAMESPACES {
        let count = names.len();
        violations.add(
            "namespaces",
            format!("must have at most {MAX_NAMESPACES} entries, has {count}"),
        );
        return Vec::new();
    }
    let parsed = names.iter().enumerate();
    parsed
        .filter_map(|(index, name)| violations.check(&format!("namespaces[{index}]"), Namespace::parse(name)))
        .collect()
}

/// A subscriber to all kinds also gets kinds unknown to this version; naming an unknown kind is a violation.
fn kinds(numbers: &[i32], violations: &mut Violations) {
    if numbers.len() > MAX_KINDS {
        let count = numbers.len();
        violations.add(
            "kinds",
            format!("must have at most {MAX_KINDS} entries, has {count}"),
        );
        return;
    }
    parse::kinds("kinds", numbers, violations);
}

fn cursor(path: &str, message: &pb::Cursor, violations: &mut Violations) -> Option<Cursor> {
    let epoch = violations.check(&format!("{path}.epoch"), Epoch::parse(&message.epoch));
    let revision = violations.check(&format!("{path}.revision"), parse::revision(message.revision));
    Some(Cursor {
        epoch: epoch?,
        revision: revision?.0,
        filter_hash: message.filter_hash,
    })
}

fn batch_bytes(raw: i32) -> Result<usize, Invalid> {
    if raw == 0 {
        return Ok(DEFAULT_BATCH);
    }
    usize::try_from(raw)
        .ok()
        .filter(|_| BATCH_BOUNDS.contains(&raw))
        .ok_or_else(|| {
            Invalid::new(format!(
                "must be 65,536 (64 KiB) to 3,145,728 (3 MiB), or 0 for 1,048,576 (1 MiB); is {raw}"
            ))
        })
}

/// Any positive kind is valid: a node may reject a resource of a kind that neither side knows.
fn rejection(rejected: &pb::RejectedResource, violations: &mut Violations) {
    let absent = common::ResourceKey::default();
    let key = rejected.key.as_ref().unwrap_or(&absent);
    violations.check("key.namespace", Namespace::parse(&key.namespace));
    if key.kind <= 0 {
        violations.add("key.kind", format!("is not a resource kind: {}", key.kind));
    }
    violations.check("key.key", bounded_prose(&key.key, 1, 512));
    violations.check("key.qualifier", bounded_text(&key.qualifier, 0, 512));
    violations.check("key.user_id", bounded_text(&key.user_id, 0, 128));
    violations.check("revision", parse::revision(rejected.revision));
    violations.check("error", bounded_prose(&rejected.error, 0, 512));
}

fn histogram(delays: &pb::DelayHistogram, violations: &mut Violations) {
    let bounds = &delays.bounds_ms;
    if bounds.len() > MAX_BOUNDS {
        let count = bounds.len();
        violations.add(
            "bounds_ms",
            format!("must have at most {MAX_BOUNDS} entries, has {count}"),
        );
    } else if bounds.iter().any(|bound| *bound < 0) || !bounds.is_sorted_by(|a, b| a < b) {
        violations.add("bounds_ms", "must be 0 or more and increase");
    }
    if delays.counts.len() != bounds.len() + 1 && !(bounds.is_empty() && delays.counts.is_empty()) {
        violations.add(
            "counts",
            format!(
                "must have one entry more than the {} bounds, has {}",
                bounds.len(),
                delays.counts.len()
            ),
        );
    } else if delays.counts.iter().any(|count| *count < 0) {
        violations.add("counts", "must be 0 or more");
    }
    if delays.sum_ms < 0 {
        violations.add("sum_ms", format!("must be 0 or more, is {}", delays.sum_ms));
    }
}

fn effect_traces(traces: &[pb::EffectTrace], violations: &mut Violations) {
    if traces.len() > MAX_TRACES {
        let count = traces.len();
        violations.add(
            "effect_traces",
            format!("must have at most {MAX_TRACES} entries, has {count}"),
        );
        return;
    }
    for (index, pb::EffectTrace { delay_ms, trace_id }) in traces.iter().enumerate() {
        if *delay_ms < 0 {
            violations.add(
                format!("effect_traces[{index}].delay_ms"),
                format!("must be 0 or more, is {delay_ms}"),
            );
        }
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if trace_id.len() != 32 || !trace_id.bytes().all(is_hex) {
            violations.add(
                format!("effect_traces[{index}].trace_id"),
                "must be 32 lower-case hexadecimal digits",
            );
        }
    }
}

fn problem(raw: &str) -> Result<(), Invalid> {
    let valid = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if raw.len() <= MAX_PROBLEM && raw.chars().all(valid) {
        Ok(())
    } else {
        Err(Invalid::new(format!(
            "must be at most {MAX_PROBLEM} characters in UPPER_SNAKE_CASE"
        )))
    }
}

fn node_position(hash: QueryHash, token: &str) -> Result<Option<(String, String)>, Invalid> {
    let Some(position) = page::position(hash, token)? else {
        return Ok(None);
    };
    String::from_utf8(position)
        .ok()
        .and_then(|position| {
            let (node_id, caller) = position.split_once('\0')?;
            Some((node_id.to_owned(), caller.to_owned()))
        })
        .map(Some)
        .ok_or_else(|| Invalid::new("is not a page token of this list"))
}
