//! The rating dialogs in somebody else's page, put there as the documentation says.

use emend_browser::Browser;
use emend_proto::feedback::v1::ListFeedbackRequest;
use emend_tests::harness::{Database, System, answered, console::Console, start::Settings};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::task::AbortOnDropHandle;

use crate::documents;

/// Serves one page to whoever asks.
fn serve(listener: TcpListener, page: String) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a browser connects");
            let mut request = [0; 4096];
            // What is asked for does not matter, and a browser that only opens a connection asks for nothing.
            if stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len(),
                );
                // A browser that has left again needs no answer.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_shows_a_dialog_as_documented_and_hears_of_the_rating() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let application = format!("http://{}", listener.local_addr().expect("an address"));
    let console = Console::framed_by(&system, &[&application]).await;
    let documented = documents::block(documents::CONSOLE, "html")
        .replace("https://emend.example", &format!("http://{}", console.address));
    let heard = "<script>addEventListener('emend-rated', event => document.body.append(Object.assign(document.createElement('output'), {id: event.detail.targetId})))</script>";
    let _application = serve(
        listener,
        format!("<!doctype html><title>Shop</title>{heard}{documented}"),
    );

    browser.open(&application).await;
    browser.find("emend-rate-output").await;
    let frame = browser
        .driver()
        .execute(
            "return document.querySelector('emend-rate-output').shadowRoot.querySelector('iframe')",
            Vec::new(),
        )
        .await
        .expect("the element has a frame")
        .element()
        .expect("an element");
    frame
        .clone()
        .enter_frame()
        .await
        .expect("the frame can be entered");
    browser.find("[name=input][readonly]").await;
    let filled = browser
        .evaluate("return ['input', 'output', 'target_id', 'prompt_version', 'reporter'].map(name => document.querySelector(`[name=${name}]`).value)")
        .await;
    assert_eq!(
        filled,
        serde_json::json!(["how was Monday?", "Quiet.", "query-17", "3", "mia"])
    );
    let good = browser.find(".choice.good input").await;
    good.click().await.expect("it can be chosen");
    let submit = browser.find("form.rate button.primary").await;
    submit.click().await.expect("it can be sent");
    browser.find("[data-done]").await;
    browser.driver().enter_default_frame().await.expect("back");
    browser.find("output#query-17").await;

    let request = ListFeedbackRequest {
        namespace: "shop".into(),
        ..ListFeedbackRequest::default()
    };
    let stored = answered(system.feedback().service.clone().list_feedback(request).await).feedback;
    assert_eq!(stored.len(), 1, "{stored:?}");
    let reporter = stored[0].reporter.as_ref().map(|reporter| &*reporter.id);
    assert_eq!(reporter, Some("mia"));

    browser.close().await;
    console.stop().await;
    system.stop().await;
}
