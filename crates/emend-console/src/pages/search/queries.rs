//! What was searched: by period, type, and whether anything was found.

use askama::Template;
use emend_proto::feedback::v1::ListQueriesRequest;
use http::StatusCode;

use super::{
    period::Period,
    ratings::{Asked, asked},
    tabs,
};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{links, tabs::Tab},
    text::{Moment, moment},
};

const PAGE: i32 = 50;

/// The page.
#[derive(Debug, Template)]
#[template(path = "search_queries.html")]
struct Queries {
    page: Page,
    tabs: Vec<Tab>,
    id: String,
    query_type: String,
    period: Period,
    only_without_hits: bool,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
}

/// A query.
#[derive(Debug)]
struct Row {
    id: String,
    asked: Asked,
    clicks: usize,
    at: Moment,
}

/// Lists the queries.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let period = Period::of(fields)?;
    let request = ListQueriesRequest {
        namespace: visitor.namespace.clone(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        query_id: fields.get("id").to_owned(),
        query_type: fields.get("type").to_owned(),
        only_without_hits: fields.has("zero"),
        searched_from: period.from,
        searched_before: period.before,
    };
    let mut client = visitor.services.queries();
    let answer = client
        .list_queries(visitor.services.call(request))
        .await?
        .into_inner();
    let address = visitor.within(Part::Search, &["queries"], &Fields::default());
    let (first, next) = links(&address, fields, &answer.next_page_token);
    let rows = answer.queries.into_iter().map(|query| Row {
        id: query.query_id.clone(),
        clicks: query
            .interactions
            .iter()
            .filter(|interaction| interaction.action.contains("click"))
            .count(),
        at: moment(query.searched_at.as_ref().or(query.recorded_at.as_ref())),
        asked: asked(query),
    });
    let queries = Queries {
        tabs: tabs(visitor, "queries"),
        id: fields.get("id").to_owned(),
        query_type: fields.get("type").to_owned(),
        period,
        only_without_hits: fields.has("zero"),
        rows: rows.collect(),
        first,
        next,
        page: visitor.page(Part::Search, visitor.t("Queries", "クエリ"), fields),
    };
    Ok(html(StatusCode::OK, &queries))
}
