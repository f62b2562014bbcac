//! Reviewing edges one by one, and how often the model was wrong.

mod texts;

use askama::Template;
use emend_proto::{
    common::v1::EdgeRelation,
    learning::v1::{Edge, GetReviewStatsRequest, ListEdgesRequest, NodeRef, node_ref::Node},
};
use http::StatusCode;
use tonic::{Code, Status};

use self::texts::Texts;
use super::{claims, may_decide, tabs, words};
use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{Choice, tabs::Tab},
    text::{Moment, moment},
};

/// How many pages without an edge are passed over: a page of edges may be empty before the last one.
const EMPTY_PAGES: usize = 20;

/// The page.
#[derive(Debug, Template)]
#[template(path = "edges.html")]
struct Edges {
    page: Page,
    tabs: Vec<Tab>,
    task: String,
    relations: Vec<Choice>,
    levels: Vec<Choice>,
    edge: Option<Shown>,
    /// The edge that was labelled just now.
    last: String,
    /// The next edge, without deciding this one.
    skip: String,
    /// As forms carry the filters and the place in the list.
    kept: String,
    stats: Stats,
    labels: Vec<(&'static str, &'static str, &'static str)>,
    may_decide: bool,
    is_filtered: bool,
}

/// An edge, with what it joins.
#[derive(Debug)]
struct Shown {
    id: String,
    task: String,
    relation: (&'static str, &'static str),
    predicted: &'static str,
    predicted_confidence: String,
    source: End,
    target: End,
    texts: Texts,
    is_reviewed: bool,
    is_corrected: bool,
    can_label: bool,
    reason: String,
    at: Moment,
}

/// What an edge leads from or to.
#[derive(Debug)]
struct End {
    sort: &'static str,
    id: String,
    /// Where it is shown; empty if nowhere.
    href: String,
    domain: String,
    level: &'static str,
}

/// How often the model was wrong.
#[derive(Debug)]
struct Stats {
    reviewed: i64,
    corrected: i64,
    /// In percent.
    rate: String,
    /// What the model said, what people say, how often.
    pairs: Vec<(&'static str, &'static str, i64)>,
}

/// The address of an edge.
pub(crate) fn address(visitor: &Visitor, id: &str) -> String {
    visitor.within(Part::Evidence, &["edges"], &Fields::default().with("edge", id))
}

fn end(visitor: &Visitor, node: Option<&NodeRef>, domain: &str, level: i32) -> End {
    let (sort, id) = words::node(visitor.language, node);
    let is_claim = matches!(node.and_then(|node| node.node.as_ref()), Some(Node::ClaimId(_)));
    End {
        sort,
        href: if is_claim {
            claims::address(visitor, &id)
        } else {
            String::new()
        },
        id,
        domain: domain.to_owned(),
        level: visitor.language.level(level),
    }
}

async fn shown(visitor: &Visitor, edge: Edge) -> Result<Shown, Status> {
    let language = visitor.language;
    let percent = edge.predicted_confidence;
    Ok(Shown {
        texts: Texts::read(visitor, &edge).await?,
        relation: (
            language.relation(edge.relation),
            words::relation_class(edge.relation),
        ),
        predicted: language.relation(edge.predicted_label),
        predicted_confidence: percent.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0)),
        source: end(
            visitor,
            edge.source.as_ref(),
            &edge.source_domain,
            edge.source_level,
        ),
        target: end(
            visitor,
            edge.target.as_ref(),
            &edge.target_domain,
            edge.target_level,
        ),
        is_reviewed: edge.reviewed,
        is_corrected: edge.corrected,
        can_label: edge.relation() != EdgeRelation::Cites,
        at: moment(edge.reviewed_at.as_ref()),
        id: edge.edge_id,
        task: edge.task_id,
        reason: edge.review_reason,
    })
}

async fn stats(visitor: &Visitor, task: &str) -> Result<Stats, Status> {
    let request = visitor.services.call(GetReviewStatsRequest {
        namespace: visitor.namespace.clone(),
        task_id: task.to_owned(),
        ..GetReviewStatsRequest::default()
    });
    let answer = visitor.services.evidence().get_review_stats(request).await?;
    let answer = answer.into_inner();
    let pairs = answer.labels.iter().map(|pair| {
        (
            visitor.language.relation(pair.predicted_label),
            visitor.language.relation(pair.correct_label),
            pair.edges,
        )
    });
    Ok(Stats {
        reviewed: answer.reviewed,
        corrected: answer.corrected,
        rate: if answer.reviewed == 0 {
            "–".to_owned()
        } else {
            format!("{:.1} %", answer.error_rate * 100.0)
        },
        pairs: pairs.collect(),
    })
}

/// The edge that is asked for, else the first one that nobody reviewed; and where the list goes on.
async fn find(
    visitor: &Visitor,
    fields: &Fields,
    request: ListEdgesRequest,
) -> Result<(Option<Edge>, String), Refused> {
    let mut request = ListEdgesRequest {
        namespace: visitor.namespace.clone(),
        page_size: 1,
        ..request
    };
    let id = fields.get("edge");
    if id.is_empty() {
        fields.get("page").clone_into(&mut request.page_token);
        request.reviewed = Some(false);
    } else {
        request = ListEdgesRequest {
            namespace: request.namespace,
            edge_id: id.to_owned(),
            ..ListEdgesRequest::default()
        };
    }
    for _ in 0..EMPTY_PAGES {
        let call = visitor.services.call(request.clone());
        let answer = visitor.services.evidence().list_edges(call).await?;
        let answer = answer.into_inner();
        let edge = answer.edges.into_iter().next();
        if edge.is_some() || answer.next_page_token.is_empty() {
            return Ok((edge, answer.next_page_token));
        }
        request.page_token = answer.next_page_token;
    }
    Ok((None, request.page_token))
}

/// Shows one edge to be labelled.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let (task, relation, level) = (fields.get("task"), fields.get("relation"), fields.get("level"));
    let wanted: Vec<i32> = words::LABELS
        .iter()
        .filter(|(name, _)| relation.is_empty() || *name == relation)
        .map(|(_, relation)| *relation as i32)
        .collect();
    let levels: Vec<i32> = words::LEVELS
        .iter()
        .filter(|(name, _)| *name == level)
        .map(|(_, level)| *level as i32)
        .collect();
    let request = ListEdgesRequest {
        task_id: task.to_owned(),
        relations: wanted,
        levels,
        ..ListEdgesRequest::default()
    };
    let (edge, next) = find(visitor, fields, request).await?;
    if edge.is_none() && !fields.get("edge").is_empty() {
        return Err(Refused::Failed(Failure::new(
            StatusCode::NOT_FOUND,
            visitor.t("There is no such edge.", "そのエッジは見つかりません。"),
        )));
    }
    let kept = fields.without(&TOLD).without(&["edge", "last"]);
    let edges_address = visitor.within(Part::Evidence, &["edges"], &Fields::default());
    let skip = if next.is_empty() {
        String::new()
    } else {
        format!("{edges_address}{}", kept.with("page", &next).query())
    };
    let edge = match edge {
        Some(edge) => Some(shown(visitor, edge).await?),
        None => None,
    };
    let choice = |name: &str, label: &str, chosen: &str| Choice {
        value: name.to_owned(),
        label: label.to_owned(),
        is_chosen: name == chosen,
    };
    let language = visitor.language;
    let last = fields.get("last");
    let shown = Edges {
        tabs: tabs(visitor, "edges"),
        task: task.to_owned(),
        relations: words::LABELS
            .iter()
            .map(|(name, number)| choice(name, language.relation(*number as i32), relation))
            .collect(),
        levels: words::LEVELS
            .iter()
            .map(|(name, number)| choice(name, language.level(*number as i32), level))
            .collect(),
        edge,
        last: if last.is_empty() {
            String::new()
        } else {
            address(visitor, last)
        },
        skip,
        is_filtered: !kept.without(&["page"]).query().is_empty(),
        kept: kept.query(),
        stats: stats(visitor, task).await?,
        labels: words::LABELS
            .map(|(name, number)| {
                let class = words::relation_class(number as i32);
                (name, language.relation(number as i32), class)
            })
            .to_vec(),
        may_decide: may_decide(visitor),
        page: visitor.page(
            Part::Evidence,
            visitor.t("Review edges", "エッジのレビュー"),
            fields,
        ),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// Whether a text is only missing, which hinders nobody from labelling the edge.
fn is_missing(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::NotFound | Code::ResourceExhausted | Code::PermissionDenied | Code::DeadlineExceeded
    )
}
