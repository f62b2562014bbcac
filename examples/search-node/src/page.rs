//! A page to search on, with a place for ratings; what of its results is opened is recorded.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, Query, State},
    http::{
        HeaderMap, StatusCode,
        header::{COOKIE, SET_COOKIE},
    },
    response::{Html, IntoResponse as _, Response},
    routing::{get, post},
};
use emend_client::Violations;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::{
    backend::{Asked, Backend, Found, Title, VectorSearch},
    click::Click,
    corpus::Record,
};

const PAGE: &str = include_str!("page.html");
const TITLE: &str = "カード検索 · card search";
/// The most bytes of what a browser tells of a click.
const CLICK_BYTES: usize = 4 << 10;

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
        .route("/titles/{id}", get(title))
        .route("/clicks", post(clicked))
        .layer(DefaultBodyLimit::max(CLICK_BYTES))
        .with_state(Page { backend, ratings })
}

async fn page(State(state): State<Page>, headers: HeaderMap, Query(typed): Query<Typed>) -> Response {
    let known = session(&headers);
    let session_id = known.clone().unwrap_or_else(|| state.backend.new_session());
    let (status, results) = if typed.q.trim().is_empty() {
        (StatusCode::OK, String::new())
    } else {
        let asked = Asked {
            query: typed.q.clone(),
            query_type: typed.query_type,
            user_id: typed.user,
            session_id: session_id.clone(),
            ..Asked::default()
        };
        match state.backend.search(&asked).await {
            Ok(found) => (StatusCode::OK, results(&found, &state.ratings)),
            Err(error) => refused(&error),
        }
    };
    let page = (status, Html(filled(&typed.q, &results)));
    if known.is_some() {
        return page.into_response();
    }
    let cookie = format!("session={session_id}; Path=/; HttpOnly; SameSite=Lax");
    ([(SET_COOKIE, cookie)], page).into_response()
}

/// The session that the browser says it has: an id as [`Backend::new_session`] makes them.
fn session(headers: &HeaderMap) -> Option<String> {
    let cookies = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    let id = pairs.find_map(|pair| pair.trim().strip_prefix("session="))?;
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then(|| id.to_owned())
}

/// All texts of one card or product.
async fn title(State(state): State<Page>, Path(id): Path<String>) -> (StatusCode, Html<String>) {
    let (status, texts) = match state.backend.texts(&id) {
        Ok(texts) if texts.is_empty() => {
            let nothing = "<p class=\"nothing\">ありません。 There is no such title.</p>".to_owned();
            (StatusCode::NOT_FOUND, nothing)
        }
        Ok(texts) => (StatusCode::OK, whole(&texts)),
        Err(error) => refused(&error),
    };
    (status, Html(filled("", &texts)))
}

fn whole(texts: &[Record]) -> String {
    let title = texts.first().map_or("", |record| &*record.title);
    let mut html = format!("<h2>{}</h2>\n<ol>\n", escaped(title));
    for record in texts {
        let (text, id) = (escaped(&record.text), escaped(&record.id));
        let _ = writeln!(html, "<li><p>{text}</p><small>{id}</small></li>");
    }
    html.push_str("</ol>\n");
    html
}

/// Records a click. JSON of another origin does not get here: browsers ask first, and nobody answers.
async fn clicked(State(state): State<Page>, Json(click): Json<Click>) -> (StatusCode, String) {
    match state.backend.click(&click) {
        Ok(()) => (StatusCode::NO_CONTENT, String::new()),
        Err(error) => told(&error),
    }
}

fn refused(error: &anyhow::Error) -> (StatusCode, String) {
    let (status, why) = told(error);
    (status, format!("<p class=\"nothing\">{}</p>", escaped(&why)))
}

/// What the browser is told of an error.
fn told(error: &anyhow::Error) -> (StatusCode, String) {
    if let Some(invalid) = error.downcast_ref::<Violations>() {
        return (StatusCode::BAD_REQUEST, invalid.to_string());
    }
    tracing::error!("a request of the page failed: {error:#}");
    (StatusCode::INTERNAL_SERVER_ERROR, "It failed.".to_owned())
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
        let _ = writeln!(html, "<ol data-query=\"{}\">", escaped(&found.query_id));
        for (position, title) in (1..).zip(&found.titles) {
            item(&mut html, position, title);
        }
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

fn item(html: &mut String, position: usize, title: &Title) {
    let taught = if title.learned { " · taught" } else { "" };
    let confidence = match &*title.confidence {
        "" => String::new(),
        name => format!(" · {name}"),
    };
    let (id, path) = (
        escaped(title.record.of()),
        utf8_percent_encode(title.record.of(), NON_ALPHANUMERIC),
    );
    let _ = writeln!(
        html,
        "<li><h2><a href=\"/titles/{path}\" data-object=\"{id}\" data-position=\"{position}\">{}</a>\
         <small>{:.2}{taught}{}</small></h2><p>{}</p><small>{}</small></li>",
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
