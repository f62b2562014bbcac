//! A query tried out: what a node would search for, without and with what was learned. As `emend search synonyms expand` does it: by a
//! view that knows the namespace's synonyms and nothing else.

use askama::Template;
use emend_client::{ExpandMode, ExpandedText, LearnedView, view::TaughtSynonym};
use emend_core::{Invalid, Kind, Namespace, violation::bounded_text};
use emend_proto::learning::v1::ListResourcesRequest;
use http::StatusCode;
use tonic::Status;

use super::{tabs, tuning};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::tabs::Tab,
};

/// The longest query, as a search node takes it.
const MAX_QUERY: usize = 1_000;
/// How many synonyms are read for one try: that many at once, so often.
const PAGE: i32 = 1_000;
const PAGES: usize = 20;

/// The page.
#[derive(Debug, Template)]
#[template(path = "search_try.html")]
struct Try {
    page: Page,
    tabs: Vec<Tab>,
    query: String,
    query_type: String,
    tried: Option<Tried>,
}

/// What a node would make of a query.
#[derive(Debug)]
struct Tried {
    keyword: String,
    embedding: String,
    is_unchanged: bool,
    groups: Vec<Group>,
    /// With what it would be searched; none where the type is not known.
    settings: Vec<(String, String)>,
    is_tuned: bool,
    /// How many synonyms were considered, where that is not all.
    considered: Option<usize>,
    teach: String,
    words: String,
}

/// A term of the query, and what else is searched for.
#[derive(Debug, PartialEq)]
struct Group {
    term: String,
    alternatives: Vec<String>,
}

/// The terms of a query for which there is something else to search.
fn groups(expanded: &ExpandedText) -> Vec<Group> {
    let groups = expanded.groups.iter();
    groups
        .map(|group| {
            let term = expanded.original.get(group.span.clone()).unwrap_or_default();
            let others = group.alternatives.iter().filter(|other| *other != term);
            Group {
                term: term.to_owned(),
                alternatives: others.cloned().collect(),
            }
        })
        .collect()
}

/// The synonyms of the namespace, and whether these are all.
async fn synonyms(visitor: &Visitor) -> Result<(Vec<TaughtSynonym>, bool), Status> {
    let (mut synonyms, mut token) = (Vec::new(), String::new());
    for _ in 0..PAGES {
        let request = visitor.services.call(ListResourcesRequest {
            namespace: visitor.namespace.clone(),
            kinds: vec![Kind::Synonym.number()],
            page_size: PAGE,
            page_token: token,
            ..ListResourcesRequest::default()
        });
        let answer = visitor.services.resources().list_resources(request).await?;
        let answer = answer.into_inner();
        let listed = answer.resources.into_iter();
        // A newer service may have relations that this version does not know: nodes of this version don't expand them either.
        synonyms.extend(listed.filter_map(|resource| TaughtSynonym::listed(resource).ok()));
        token = answer.next_page_token;
        if token.is_empty() {
            return Ok((synonyms, true));
        }
    }
    Ok((synonyms, false))
}

async fn tried(visitor: &Visitor, query: &str, query_type: &str) -> Result<Tried, Status> {
    let invalid =
        |field: &'static str| move |Invalid(why)| Status::from(emend_base::Error::invalid(field, why));
    let query = bounded_text(query, 1, MAX_QUERY).map_err(invalid("query"))?;
    let namespace = Namespace::parse(&visitor.namespace).map_err(invalid("namespace"))?;
    let (synonyms, are_all) = synonyms(visitor).await?;
    let console = &visitor.console;
    let view = LearnedView::of_synonyms(
        namespace.as_str(),
        &synonyms,
        &console.entropy,
        console.clock.clone(),
    );
    let keyword = view.expand(&namespace, &query, ExpandMode::Keyword, None);
    let embedding = view.expand(&namespace, &query, ExpandMode::Embedding, None);
    let own = match query_type {
        "" => None,
        query_type => tuning::in_force(visitor, query_type).await?,
    };
    let is_tuned = own.is_some();
    let (_, in_force) = own.unwrap_or_default();
    let only = |name, value| Fields::default().with(name, value);
    Ok(Tried {
        is_unchanged: keyword.is_unchanged(),
        groups: groups(&keyword),
        keyword: keyword.render(),
        embedding: embedding.render(),
        settings: tuning::settings(&in_force),
        is_tuned,
        considered: (!are_all).then_some(synonyms.len()),
        teach: visitor.within(
            Part::Search,
            &["words"],
            &only("term", &query)
                .with("query", &query)
                .with("type", query_type),
        ) + "#term",
        words: visitor.within(Part::Search, &["tuning"], &only("type", query_type)),
    })
}

/// Shows what a node would search for.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let (query, query_type) = (fields.get("query"), fields.get("type"));
    let tried = match query {
        "" => None,
        query => Some(tried(visitor, query, query_type).await?),
    };
    let shown = Try {
        tabs: tabs(visitor, "try"),
        query: query.to_owned(),
        query_type: query_type.to_owned(),
        tried,
        page: visitor.page(Part::Search, visitor.t("Try a query", "クエリを試す"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}

#[cfg(test)]
mod tests {
    use emend_core::search::OrGroup;

    use super::*;

    #[test]
    fn a_term_is_shown_with_what_else_is_searched() {
        let expanded = ExpandedText {
            original: "leader effects".to_owned(),
            mode: ExpandMode::Keyword,
            groups: vec![OrGroup {
                span: 0..6,
                alternatives: vec!["face".to_owned(), "leader".to_owned()],
            }],
        };
        let group = Group {
            term: "leader".to_owned(),
            alternatives: vec!["face".to_owned()],
        };
        assert_eq!(groups(&expanded), [group]);
    }
}
