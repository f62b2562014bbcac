//! Signing in and out, by a token.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse as _, Redirect, Response},
};
use http::{HeaderMap, StatusCode, header::SET_COOKIE};

use crate::{
    access::Access,
    failure::Failure,
    page::{SignIn, html},
    pages,
    server::{Shared, fields, own_address, peer},
    session::{self, MAX_TOKEN, Session},
};

fn sign_in_form(
    console: &Arc<Shared>,
    headers: &HeaderMap,
    session: &Session,
    back: &str,
    why: &str,
) -> SignIn {
    SignIn {
        language: session::language(headers),
        theme: session::theme(headers),
        assets: Arc::clone(&console.assets),
        form_token: console.sessions.form_token(session),
        back: own_address(back).to_owned(),
        why: why.to_owned(),
        by_proxy: session.by_proxy,
        resume: None,
    }
}

pub(crate) async fn sign_in_page(State(console): State<Arc<Shared>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let session = console.sessions.of(&headers, peer(&request));
    let page = sign_in_form(&console, &headers, &session, "/", "");
    let mut response = html(StatusCode::OK, &page);
    if session.is_new {
        let cookie = console.sessions.keep_anonymous(&session.id);
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

pub(crate) async fn sign_in(State(console): State<Arc<Shared>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let session = console.sessions.of(&headers, peer(&request));
    let language = session::language(&headers);
    let fields = match fields(request).await {
        Ok(fields) => fields,
        Err(why) => return (StatusCode::PAYLOAD_TOO_LARGE, why).into_response(),
    };
    let resume = fields.has("resume").then(|| {
        let carried = fields.pairs().iter();
        let carried = carried.filter_map(|(name, value)| {
            let name = name.strip_prefix("resume.")?;
            Some((name.to_owned(), value.clone()))
        });
        (own_address(fields.get("resume")).to_owned(), carried.collect())
    });
    let again = |why: &str| {
        let mut page = sign_in_form(&console, &headers, &session, fields.get("back"), why);
        page.resume.clone_from(&resume);
        html(StatusCode::UNAUTHORIZED, &page)
    };
    // The session that the form is of may have ended meanwhile: then a new one is begun, for which the origin was checked.
    let token = fields.get("token");
    if token.is_empty() {
        return again(language.t("Paste a token.", "トークンを貼り付けてください。"));
    }
    if token.len() > MAX_TOKEN {
        let why = language.t(
            "token: at most 2,800 characters fit into a session; use --console-token-header with a proxy for longer ones.",
            "token: 2,800 文字までです。長いトークンには --console-token-header とプロキシを使ってください。",
        );
        return again(why);
    }
    let (begun, cookie) = console.sessions.begin(Some(token));
    if begun.authorization.is_none() {
        return again(language.t("That is no token.", "トークンの形式が正しくありません。"));
    }
    let services = console.services.by(begun.authorization.clone());
    if let Err(status) = Access::read(&services, "").await {
        let failure = Failure::of(&status, language, &[]);
        return again(&failure.sentences());
    }
    let mut response = match resume {
        // The form is shown once more, under the new session, and only sent by the person.
        Some(resume) => {
            let mut page = sign_in_form(&console, &headers, &begun, fields.get("back"), "");
            page.resume = Some(resume);
            html(StatusCode::OK, &pages::resume::Resume { page })
        }
        None => Redirect::to(own_address(fields.get("back"))).into_response(),
    };
    response.headers_mut().append(SET_COOKIE, cookie);
    response
}

pub(crate) async fn sign_out(State(console): State<Arc<Shared>>, request: Request) -> Response {
    let session = console.sessions.of(request.headers(), peer(&request));
    let fields = fields(request).await.unwrap_or_default();
    if !console.sessions.is_form_token(&session, fields.get("form_token")) {
        return (StatusCode::FORBIDDEN, "this form is of another session\n").into_response();
    }
    let mut response = Redirect::to("/sign-in").into_response();
    response.headers_mut().append(SET_COOKIE, console.sessions.end());
    response
}
