//! Parses requests for events, figures of reviews and exports, and renders the answers.

use emend_core::{
    Caller, Invalid, Key, Kind, Namespace, Violations,
    evidence::{EvidenceId, Split},
};
use emend_proto::learning::v1::{
    self as pb, evidence_element::Element as PbElement, export_materials_response::Line as PbLine,
};
use emend_wire::{
    page::QueryHash,
    parse as wire,
    render::{resource_key, saturated, timestamp},
};
use learning_store::evidence::{
    EventFilter, EventPosition, EventRecord, Line, PageRecord, Period, ReviewFilter, SampleRecord,
    graph::{Element, ElementSort},
};
use prost_types::Timestamp;

use super::{
    parse::{Listed, filter, label, pair_position, pair_token},
    render,
};
use crate::{
    decisions::evidence::is_about_evidence,
    evidence::stats::ReviewStats,
    grpc::{parse, render::actor},
};

/// Of 100 samples, how many are test samples where nobody says.
const TEST_PERCENT: u8 = 20;

fn period(violations: &mut Violations, from: Option<&Timestamp>, to: Option<&Timestamp>) -> Option<Period> {
    let mut end = |field, message: Option<&Timestamp>| match message {
        None => Some(None),
        Some(message) => violations.check(field, wire::timestamp(message)).map(Some),
    };
    let (from, to) = (end("from", from), end("to", to));
    let period = Period { from: from?, to: to? };
    if period.from.zip(period.to).is_some_and(|(from, to)| to <= from) {
        violations.add("to", "must be after from");
        return None;
    }
    Some(period)
}

pub(crate) fn events_query(request: &pb::ListEvidenceEventsRequest) -> QueryHash {
    QueryHash::of(
        "ListEvidenceEvents",
        &pb::ListEvidenceEventsRequest {
            page_size: 0,
            page_token: String::new(),
            ..request.clone()
        },
    )
}

pub(crate) fn list_events(
    request: &pb::ListEvidenceEventsRequest,
    query: QueryHash,
) -> Result<Listed<EventFilter, Option<EventPosition>>, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let target = target(&mut violations, request.kind, &request.target);
    let (target, element) = about(&mut violations, target, request.element.as_ref());
    let task = violations.check("task_id", EvidenceId::parse_optional(&request.task_id));
    let caller = match request.caller.as_str() {
        "" => Some(None),
        caller => violations.check("caller", Caller::parse(caller)).map(Some),
    };
    let period = period(&mut violations, request.from.as_ref(), request.to.as_ref());
    let limit = violations.check("page_size", wire::page_size(request.page_size, 100, 1_000));
    let before = violations.check("page_token", pair_position(query, &request.page_token));
    let parsed = (|| {
        let filter = EventFilter {
            namespace: namespace?,
            target: target?,
            element: element?,
            task: task?,
            caller: caller?,
            period: period?,
        };
        let before = before?.map(|(at, event)| EventPosition { at, event });
        Some((filter, before, limit?))
    })();
    violations.finish(parsed)
}

/// What events are about: both fields or none.
#[expect(
    clippy::option_option,
    reason = "the outer option is none if invalid, the inner if none was sent"
)]
fn target(violations: &mut Violations, kind: i32, target: &str) -> Option<Option<(Kind, Key)>> {
    if kind == 0 && target.is_empty() {
        return Some(None);
    }
    let kind = match kind {
        0 => Err(Invalid::new("is required with target")),
        kind => wire::kind(kind).and_then(|kind| {
            let about = is_about_evidence(kind).then_some(kind);
            about.ok_or_else(|| {
                Invalid::new(format!(
                    "must be DOMAIN_RULE, CLAIM_STATE or EDGE_LABEL, is {kind}"
                ))
            })
        }),
    };
    let kind = violations.check("kind", kind)?;
    if target.is_empty() {
        violations.add("target", "is required with kind");
        return None;
    }
    let key = violations.check("target", Key::parse(kind.rules().key, target))?;
    Some(Some((kind, key)))
}

/// What events are about: a contest's kind and key, and an element of the graph. None if invalid; `Some(None)` if not asked for.
type About = (Option<Option<(Kind, Key)>>, Option<Option<Element>>);

/// Decisions about a claim or edge, and what was done to the element that it is, go together, whichever was asked for.
#[expect(
    clippy::option_option,
    reason = "the outer option is none if invalid, the inner if none was sent"
)]
fn about(
    violations: &mut Violations,
    target: Option<Option<(Kind, Key)>>,
    element: Option<&pb::EvidenceElement>,
) -> About {
    let Some(element) = element else {
        let of_target = target.as_ref().map(|target| {
            let (kind, key) = target.as_ref()?;
            let sort = match kind {
                Kind::ClaimState => ElementSort::Claim,
                Kind::EdgeLabel => ElementSort::Edge,
                _ => return None,
            };
            let id = EvidenceId::parse(key.as_str()).ok()?;
            Some(Element { sort, id })
        });
        return (target, of_target);
    };
    if target.as_ref().is_some_and(Option::is_some) {
        violations.add("element", "must not be set together with target");
        return (target, None);
    }
    let (sort, field, kind, id) = match &element.element {
        Some(PbElement::PageId(id)) => (ElementSort::Page, "page_id", None, id),
        Some(PbElement::FragmentId(id)) => (ElementSort::Fragment, "fragment_id", None, id),
        Some(PbElement::ClaimId(id)) => (ElementSort::Claim, "claim_id", Some(Kind::ClaimState), id),
        Some(PbElement::EdgeId(id)) => (ElementSort::Edge, "edge_id", Some(Kind::EdgeLabel), id),
        None => {
            let why = "must have one of page_id, fragment_id, claim_id, edge_id";
            violations.add("element", why);
            return (target, None);
        }
    };
    let id = violations.check(&format!("element.{field}"), EvidenceId::parse(id));
    let of_element = id.as_ref().map(|id| {
        let kind = kind?;
        Some((kind, Key::parse(kind.rules().key, id.as_str()).ok()?))
    });
    (of_element, id.map(|id| Some(Element { sort, id })))
}

pub(crate) fn event_token(query: QueryHash, position: EventPosition) -> String {
    pair_token(query, (position.at, position.event))
}

pub(crate) fn event(event: EventRecord) -> pb::EvidenceEvent {
    pb::EvidenceEvent {
        event_id: event.event,
        action: event.action.number(),
        key: event.key.as_ref().map(resource_key),
        element: event.element.map(|Element { sort, id }| {
            let id = id.to_string();
            pb::EvidenceElement {
                element: Some(match sort {
                    ElementSort::Page => PbElement::PageId(id),
                    ElementSort::Fragment => PbElement::FragmentId(id),
                    ElementSort::Claim => PbElement::ClaimId(id),
                    ElementSort::Edge => PbElement::EdgeId(id),
                }),
            }
        }),
        task_id: event.task,
        actor: Some(actor(&event.actor)),
        reason: event.reason,
        before: event.before,
        after: event.after,
        proposed: event.proposed,
        feedback_id: event.feedback,
        candidate_id: event.candidate,
        revision: event.revision.0,
        at: Some(timestamp(event.at)),
        reporter: event.reporter,
    }
}

pub(crate) fn review_stats(request: &pb::GetReviewStatsRequest) -> Result<ReviewFilter, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let task = violations.check("task_id", EvidenceId::parse_optional(&request.task_id));
    let predicted = match request.predicted_label {
        0 => Some(None),
        number => violations.check("predicted_label", label(number)).map(Some),
    };
    let period = period(&mut violations, request.from.as_ref(), request.to.as_ref());
    let parsed = (|| {
        Some(ReviewFilter {
            namespace: namespace?,
            task: task?,
            predicted: predicted?,
            correct: Vec::new(),
            period: period?,
        })
    })();
    violations.finish(parsed)
}

pub(crate) fn stats(stats: &ReviewStats) -> pb::GetReviewStatsResponse {
    let pairs = stats.pairs.iter().map(|pair| pb::LabelStats {
        predicted_label: pair.predicted.number(),
        correct_label: pair.correct.number(),
        edges: saturated(pair.edges),
    });
    pb::GetReviewStatsResponse {
        reviewed: saturated(stats.reviewed),
        corrected: saturated(stats.corrected),
        error_rate: stats.error_rate(),
        labels: pairs.collect(),
    }
}

pub(crate) fn export_materials(
    request: &pb::ExportMaterialsRequest,
) -> Result<(Namespace, EvidenceId), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let task = violations.check("task_id", EvidenceId::parse(&request.task_id));
    violations.finish(namespace.zip(task))
}

pub(crate) fn line(line: Line) -> pb::ExportMaterialsResponse {
    let line = match line {
        Line::Page(page) => PbLine::Page(exported_page(page)),
        Line::Fragment(fragment) => PbLine::Fragment(pb::EvidenceFragment {
            fragment_id: fragment.id.to_string(),
            page_id: fragment.page.to_string(),
            text: fragment.text,
        }),
        Line::Claim(claim) => PbLine::Claim(render::claim(*claim)),
        Line::Edge(edge) => PbLine::Edge(render::edge(*edge)),
    };
    pb::ExportMaterialsResponse { line: Some(line) }
}

fn exported_page(page: PageRecord) -> pb::ExportedPage {
    let [doi, pmid, arxiv_id] = page.works;
    let (domain, level) = render::host(page.host);
    pb::ExportedPage {
        page: Some(pb::EvidencePage {
            page_id: page.id.to_string(),
            domain,
            url: page.url,
            title: page.title,
            doi,
            pmid,
            arxiv_id,
        }),
        level,
    }
}

/// Which samples, and how many of 100 are test samples.
pub(crate) fn export_corrections(
    request: &pb::ExportCorrectionsRequest,
) -> Result<(ReviewFilter, u8), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let task = violations.check("task_id", EvidenceId::parse_optional(&request.task_id));
    let correct = filter(&mut violations, "correct_labels", &request.correct_labels, label);
    let period = period(&mut violations, request.from.as_ref(), request.to.as_ref());
    let percent = match request.test_percent {
        None => Some(TEST_PERCENT),
        Some(percent) => {
            let parsed = u8::try_from(percent).ok().filter(|percent| *percent <= 99);
            let parsed = parsed.ok_or_else(|| Invalid::new(format!("must be 0 to 99, is {percent}")));
            violations.check("test_percent", parsed)
        }
    };
    let parsed = (|| {
        let filter = ReviewFilter {
            namespace: namespace?,
            task: task?,
            predicted: None,
            correct,
            period: period?,
        };
        Some((filter, percent?))
    })();
    violations.finish(parsed)
}

/// A sample; none where the person agrees with the model.
pub(crate) fn sample(sample: SampleRecord, test_percent: u8) -> Option<pb::ExportCorrectionsResponse> {
    let edge = sample.edge;
    let correction = edge.labels().correction()?;
    let feedback = edge.reviewed_by.map(|feedback| feedback.to_string());
    let sample = pb::CorrectionSample {
        sample_id: feedback.unwrap_or_else(|| edge.id.to_string()),
        premise: sample.premise,
        hypothesis: sample.hypothesis,
        predicted_label: correction.predicted.number(),
        predicted_confidence: edge.confidence,
        correct_label: correction.correct.number(),
        reason: edge.review_reason,
        reporter: sample.reporter,
        corrected_at: edge.reviewed_at.map(timestamp),
        is_test: Split::of(edge.id.as_str(), test_percent) == Split::Test,
        edge_id: edge.id.to_string(),
        task_id: edge.task,
    };
    Some(pb::ExportCorrectionsResponse { sample: Some(sample) })
}
