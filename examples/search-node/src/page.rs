//! A page to search on, with a place for ratings.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    Router,
    extract::{Query, State},
    http::StatusCode,
    response::Html,
    routing::get,
};
use emend_client::Violations;
use serde::Deserialize;

use crate::backend::{Asked, Backend, Found, Title, VectorSearch};

const PAGE: &str = include_str!("page.html");
const TITLE: &str = "カード検索 · card search";

/// What is typed into the page.
#[derive(Debug, Default, Deserialize)]
struct Typed {
    #[serde(default)]
    q: String,
    #[serde(default, rename = "type")]
    query_type: String,
    #[serde(default)]
    user: String,
}

/// What the page is made of.
#[derive(Debug, Clone)]
struct Page {
    backend: Arc<Backend>,
    /// Where ratings are taken, with the widget; empty: nowhere.
    ratings: Arc<str>,
}

/// The page's routes. `ratings` is where feedback-svc takes ratings over HTTP, such as `http://127.0.0.1:7403`; empty: the page has
/// no thumbs.
pub fn routes(backend: Arc<Backend>, ratings: &str) -> Router {
    let ratings = ratings.trim_end_matches('/').into();
    Router::new()
        .route("/", get(page))
        .with_state(Page { backend, ratings })
}

async fn page(State(state): State<Page>, Query(typed): Query<Typed>) -> (StatusCode, Html<String>) {
    let (status, results) = if typed.q.trim().is_empty() {
        (StatusCode::OK, String::new())
    } else {
        let asked = Asked {
            query: typed.q.clone(),
            query_type: typed.query_type,
            user_id: typed.user,
            ..Asked::default()
        };
        match state.backend.search(&asked).await {
            Ok(found) => (StatusCode::OK, results(&found, &state.ratings)),
            Err(error) => refused(&error),
        }
    };
    (status, Html(filled(&typed.q, &results)))
}

fn refused(error: &anyhow::Error) -> (StatusCode, String) {
    let (status, why) = if let Some(invalid) = error.downcast_ref::<Violations>() {
        (StatusCode::BAD_REQUEST, invalid.to_string())
    } else {
        tracing::error!("a search failed: {error:#}");
        (StatusCode::INTERNAL_SERVER_ERROR, "The search failed.".to_owned())
    };
    (status, format!("<p class=\"nothing\">{}</p>", escaped(&why)))
}

/// The page with what was typed and what was found.
fn filled(query: &str, results: &str) -> String {
    let mut page = String::new();
    let mut rest = PAGE;
    for (name, value) in [
        ("{title}", TITLE),
        ("{title}", TITLE),
        ("{query}", &*escaped(query)),
        ("{results}", results),
    ] {
        if let Some((before, after)) = rest.split_once(name) {
            page.push_str(before);
            page.push_str(value);
            rest = after;
        }
    }
    page.push_str(rest);
    page
}

fn results(found: &Found, ratings: &str) -> String {
    let mut html = format!(
        "<p class=\"meta\">{}<br>{} · {} · score ≥ {:.2}{}</p>\n",
        escaped(&found.expanded),
        escaped(
            &found
                .namespaces
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        ),
        if found.attempts == 1 {
            "1 search".to_owned()
        } else {
            format!("{} searches", found.attempts)
        },
        found.min_score,
        match found.vector_search {
            VectorSearch::Off => "",
            VectorSearch::Done => " · words and vectors",
            VectorSearch::Unanswered => " · words only: the embedding server does not answer",
            VectorSearch::NoVectors => " · words only: the index has no vectors of this model",
        },
    );
    if found.titles.is_empty() {
        let _ = writeln!(html, "<p class=\"nothing\">{}</p>", escaped(&found.suggestion));
    } else {
        html.push_str("<ol>\n");
        found.titles.iter().for_each(|title| item(&mut html, title));
        html.push_str("</ol>\n");
    }
    let ask = if found.feedback_hint {
        "この結果で合っていますか。 Is this what you meant?"
    } else {
        ""
    };
    let _ = writeln!(html, "<p>{ask}</p>");
    if !ratings.is_empty() {
        let _ = writeln!(
            html,
            "<script src=\"{}/widget.js\"></script>\n<emend-rating query-id=\"{}\"></emend-rating>",
            escaped(ratings),
            escaped(&found.query_id)
        );
    }
    html
}

fn item(html: &mut String, title: &Title) {
    let taught = if title.learned { " · taught" } else { "" };
    let confidence = match &*title.confidence {
        "" => String::new(),
        name => format!(" · {name}"),
    };
    let _ = writeln!(
        html,
        "<li><h2>{}<small>{:.2}{taught}{}</small></h2><p>{}</p><small>{}</small></li>",
        escaped(&title.record.title),
        title.score,
        escaped(&confidence),
        escaped(&title.record.text),
        escaped(&title.record.id),
    );
}

/// As text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_text_on_the_page() {
        let page = filled("\"><script>{results}", "<p>found</p>");
        assert!(
            page.contains("value=\"&quot;&gt;&lt;script&gt;{results}\""),
            "{page}"
        );
        assert!(page.contains("<main>\n<p>found</p>\n</main>"), "{page}");
    }
}
