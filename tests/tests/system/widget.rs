//! The rating widget in a browser, by keyboard and by pointer.

use std::net::SocketAddr;

use emend_browser::{Browser, By, keys};
use emend_proto::{
    common::v1::{SearchRatingValue, correction},
    feedback::v1::{Feedback, ListFeedbackRequest},
};
use emend_tests::harness::{Database, NAMESPACE, System, answered, eventually, start::Settings};
use feedback_svc::RatingHttp;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::task::AbortOnDropHandle;

/// A page of search results on an origin of its own, with the widget for the query that its path names.
struct Page {
    address: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

impl Page {
    fn serve(listener: TcpListener, ratings: SocketAddr, language: &'static str) -> Self {
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = vec![0; 8192];
                let read = stream.read(&mut asked).await.unwrap_or(0);
                let asked = String::from_utf8_lossy(&asked[..read]);
                let query = asked
                    .split(' ')
                    .nth(1)
                    .unwrap_or_default()
                    .trim_start_matches('/');
                let body = format!(
                    "<!DOCTYPE html><html lang=\"{language}\"><head><title>Results</title></head><body><main><h1>Results</h1>\
                     <script src=\"http://{ratings}/widget.js\"></script>\
                     <emend-rating query-id=\"{query}\"></emend-rating></main></body></html>"
                );
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self {
            address,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    async fn open(&self, browser: &Browser, query: &str) {
        browser.open(&format!("http://{}/{query}", self.address)).await;
        browser.find("emend-rating").await;
    }
}

async fn started(page: &TcpListener) -> System {
    let settings = Settings {
        rating_http: RatingHttp {
            bindings: vec![format!("127.0.0.1:0={NAMESPACE}/web").parse().unwrap()],
            origins: vec![format!("http://{}", page.local_addr().unwrap())],
            ..RatingHttp::default()
        },
        ..Settings::default()
    };
    System::start(Database::sqlite(), 1, 1, settings).await
}

async fn stored(system: &System) -> Vec<Feedback> {
    let all = ListFeedbackRequest {
        namespace: NAMESPACE.into(),
        ..ListFeedbackRequest::default()
    };
    answered(system.feedback().service.clone().list_feedback(all).await).feedback
}

/// Those that no newer one has replaced.
async fn counting(system: &System) -> Vec<Feedback> {
    let mut stored = stored(system).await;
    stored.retain(|of| of.search_rating.as_ref().is_some_and(|rating| !rating.replaced));
    stored
}

fn rating(feedback: &Feedback) -> SearchRatingValue {
    match feedback
        .correction
        .as_ref()
        .and_then(|correction| correction.correction.as_ref())
    {
        Some(correction::Correction::SearchRating(rating)) => rating.value(),
        other => panic!("another correction: {other:?}"),
    }
}

/// Waits until the widget says this.
async fn says(browser: &Browser, expected: &str) {
    let toast =
        "return document.querySelector('emend-rating').shadowRoot.querySelector('[role=status]').textContent";
    eventually(expected, async || match browser.evaluate(toast).await {
        said if said == expected => Ok(()),
        other => Err(format!("it says {other}")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thumb_down_with_a_reason_is_given_by_keyboard_alone() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let system = started(&listener).await;
    let page = Page::serve(listener, system.feedback[0].rating_address(), "en");
    page.open(&browser, "q-17").await;
    assert_eq!(browser.barriers().await, [""; 0]);
    // To the first thumb, to the second, and press it: it is stored, and the reason has the focus.
    browser
        .press(&format!("{}{}{}", keys::TAB, keys::TAB, keys::ENTER))
        .await;
    says(&browser, "Thank you for your feedback.").await;
    assert_eq!(browser.barriers().await, [""; 0]);
    let first = stored(&system).await;
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(
        (rating(&first[0]), first[0].query_id.as_str(), &*first[0].reason),
        (SearchRatingValue::Down, "q-17", "")
    );
    browser
        .press(&format!("no ward <b>cards</b>{}{}", keys::TAB, keys::ENTER))
        .await;
    says(&browser, "Thank you, your comment was added.").await;
    assert_eq!(browser.barriers().await, [""; 0]);
    // There is no further rating of the same results.
    browser.press(&format!("{}{}", keys::ENTER, keys::ENTER)).await;
    let all = stored(&system).await;
    assert_eq!(all.len(), 2, "{all:?}");
    let live: Vec<_> = counting(&system).await;
    assert_eq!(live.len(), 1, "the comment replaced the rating: {all:?}");
    assert_eq!(
        (rating(&live[0]), &*live[0].reason),
        (SearchRatingValue::Down, "no ward cards")
    );
    browser.close().await;
    system.stop().await;
}

/// Sets the id of the query that the element is for, as an application of one page does.
async fn shows_results_of(browser: &Browser, query: &str) {
    let script = format!("document.querySelector('emend-rating').setAttribute('query-id', '{query}')");
    browser.evaluate(&script).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_query_starts_anew_and_what_was_not_sent_is_not_stored() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let system = started(&listener).await;
    let page = Page::serve(listener, system.feedback[0].rating_address(), "en");
    page.open(&browser, "q-1").await;
    browser
        .press(&format!("{}{}{}", keys::TAB, keys::TAB, keys::ENTER))
        .await;
    says(&browser, "Thank you for your feedback.").await;
    // Typed and not sent when the next results come.
    browser.press("too old").await;
    shows_results_of(&browser, "q-2").await;
    says(&browser, "").await;
    let is_open = "const root = document.querySelector('emend-rating').shadowRoot;
        return [...root.querySelectorAll('[aria-pressed=true], [aria-disabled=true]')].length === 0
            && root.querySelector('form').hidden && root.querySelector('textarea').value === ''";
    assert_eq!(browser.evaluate(is_open).await, true);
    // The same id again is no other query.
    let up = "document.querySelector('emend-rating').shadowRoot.querySelector('button').click()";
    browser.evaluate(up).await;
    says(&browser, "Thank you for your feedback.").await;
    shows_results_of(&browser, "q-2").await;
    browser.evaluate(up).await;
    says(&browser, "Thank you for your feedback.").await;
    let mut found: Vec<_> = counting(&system)
        .await
        .into_iter()
        .map(|of| (of.query_id.clone(), rating(&of), of.reason))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            ("q-1".to_owned(), SearchRatingValue::Down, String::new()),
            ("q-2".to_owned(), SearchRatingValue::Up, String::new()),
        ]
    );
    assert_eq!(stored(&system).await.len(), 2);
    browser.close().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thumb_up_by_pointer_counts_once_and_the_eleventh_is_told_to_wait() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let system = started(&listener).await;
    let page = Page::serve(listener, system.feedback[0].rating_address(), "ja");
    for query in 1..=11 {
        page.open(&browser, &format!("q-{query}")).await;
        let root = browser
            .find("emend-rating")
            .await
            .get_shadow_root()
            .await
            .unwrap();
        let up = root.find(By::Css("button")).await.unwrap();
        assert_eq!(up.attr("aria-label").await.unwrap().as_deref(), Some("良い結果"));
        up.click().await.unwrap();
        // The button may be disabled by now.
        let _ = up.click().await;
        let expected = match query {
            11 => "評価が多すぎます。しばらくしてからお試しください。",
            _ => "ご協力ありがとうございます。",
        };
        says(&browser, expected).await;
    }
    let stored = stored(&system).await;
    assert_eq!(stored.len(), 10, "{stored:?}");
    assert!(stored.iter().all(|of| rating(of) == SearchRatingValue::Up));
    browser.close().await;
    system.stop().await;
}
