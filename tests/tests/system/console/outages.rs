//! What people at a browser see when something goes away: a service, their session, their token's rights. Nothing that they typed
//! is lost, the page says what happened, and comes back by itself where it can.

use std::{net::SocketAddr, sync::Arc};

use emend_base::{Clock, ManualClock, SystemClock};
use emend_browser::{Browser, keys};
use emend_proto::{
    feedback::v1::{SubmitFeedbackRequest, Wait},
    learning::v1::{Candidate, CandidateStatus, GetCandidateRequest, ListCandidatesRequest},
};
use emend_tests::{
    both_databases,
    harness::{Database, NAMESPACE, System, answered, console::Console, eventually, says, verb},
};
use jiff::SignedDuration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{everything_waits, high_risk, waiting};
use crate::security::{Caller, EVERYWHERE, Guarded, token_of, with_token};

/// A reviewer, an operator, and somebody who reports.
const CALLERS: [Caller<'_>; 3] = [
    ("rita", "reviewer", EVERYWHERE),
    ("olga", "operator admin", EVERYWHERE),
    ("bob", "reporter", EVERYWHERE),
];

/// Waits until the page answers this expression with true.
pub(super) async fn until(browser: &Browser, what: &str, expression: &str) {
    eventually(what, async || {
        let found = browser.evaluate(&format!("return Boolean({expression})")).await;
        if found == serde_json::json!(true) {
            return Ok(());
        }
        let text = browser.evaluate("return document.body.innerText").await;
        Err(text.as_str().unwrap_or_default().to_owned())
    })
    .await;
}

fn shows(class: &str) -> String {
    format!("document.querySelector('.{class}').offsetParent !== null")
}

both_databases! {
    async fn pages_say_that_learning_svc_is_away_and_come_back_by_themselves(system) {
        let (Some(open), Some(opened)) = (Browser::start().await, Browser::start().await) else {
            return;
        };
        everything_waits(system).await;
        waiting(system, 3).await;
        let console = Console::beside(system).await;
        open.open(&console.url("review")).await;
        open.find(".queue li").await;
        // Who was there before it went away keeps what is known, is told since when it stands, and loses nothing typed.
        let item = open.evaluate("return document.querySelector('form#approve').action.split('/').at(-2)").await;
        let item = item.as_str().expect("an id").to_owned();
        open.press("rnot so").await;
        system.stop_learning().await;
        until(&open, "the open page says so", &shows("away")).await;
        let told = open.evaluate("return document.querySelector('.away').innerText").await;
        assert!(told.as_str().is_some_and(|told| told.contains("since ") && told.contains(':')), "{told}");
        until(&open, "what is known stays", "document.querySelectorAll('.queue li').length === 3").await;
        // A decision that can't be made says so, and is not lost.
        open.press(keys::ENTER).await;
        until(&open, "the reason is shown", "document.querySelector('[role=alert]') && document.body.innerText.includes('Why\\nnot so')").await;
        // Who comes meanwhile is told, and finds the way around.
        opened.open(&console.url("review")).await;
        until(&opened, "the new page says so", "document.querySelector('[role=alert]')").await;
        let told = opened.evaluate("return document.querySelector('main').innerText").await;
        let told = told.as_str().expect("a text");
        assert!(told.contains("learning-svc can't be reached.") && !told.contains("os error"), "{told}");
        until(&opened, "the parts are there", "document.querySelectorAll('nav[aria-label=Parts] a').length > 5").await;
        system.start_learning().await;
        system.feedback().learn(says("late", verb("phrase 3", "verb_3"))).await;
        until(&opened, "it comes back by itself", "document.querySelectorAll('.queue li').length === 4").await;
        open.open(&console.url(&format!("review?item={item}"))).await;
        until(&open, "what was typed is there still", "document.querySelector('#reason').value === 'not so'").await;
        until(&open, "the notice is gone", &format!("!({})", shows("away"))).await;
        open.close().await;
        opened.close().await;
        console.stop().await;
    }
}

/// Signs in at the page that asks for a token.
pub(super) async fn sign_in(browser: &Browser, name: &str) {
    browser.find("#token").await;
    browser.press(&format!("{}{}", token_of(name), keys::ENTER)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_in_the_middle_of_an_edit_loses_nothing() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    Guarded::check(Database::sqlite(), &CALLERS, async |guarded| {
        let system = &guarded.system;
        let [candidate, other] = two_wait(system).await;
        let clock = Arc::new(ManualClock::new(SystemClock::shared().now()));
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let console = Console::beside_with(system, shared, |_| {}).await;
        browser
            .open(&console.url(&format!("review?item={candidate}")))
            .await;
        sign_in(&browser, "rita").await;
        browser.find("[data-key=r]").await;
        browser.press("rthe desk decided otherwise").await;
        clock.advance(SignedDuration::from_hours(13));
        browser.press(keys::ENTER).await;
        until(
            &browser,
            "the page says what happened",
            "document.querySelector('[role=alert]')?.innerText.includes('is kept')",
        )
        .await;
        sign_in(&browser, "rita").await;
        until(
            &browser,
            "it shows what was typed",
            "document.body.innerText.includes('the desk decided otherwise')",
        )
        .await;
        // Nothing was sent by itself.
        assert_eq!(
            stored(system, &candidate).await.status(),
            CandidateStatus::AwaitingReview
        );
        browser.press(keys::ENTER).await;
        until(&browser, "it is sent", "document.querySelector('[data-done]')").await;
        let decided = stored(system, &candidate).await;
        assert_eq!(decided.status(), CandidateStatus::Rejected);
        assert_eq!(decided.decision_reason, "the desk decided otherwise");

        // A token that is revoked while somebody types: the page that is open says so, and keeps the text.
        browser.open(&console.url(&format!("review?item={other}"))).await;
        browser.find("[data-key=r]").await;
        browser.press("rhalf a sent").await;
        guarded.rewrite(&CALLERS[1..]);
        until(
            &browser,
            "the text stays",
            "document.querySelector('#reason').value === 'half a sent'",
        )
        .await;
        browser.press(keys::ESCAPE).await;
        until(&browser, "the open page says so", &shows("ended")).await;
        until(
            &browser,
            "the text stays",
            "document.querySelector('#reason').value === 'half a sent'",
        )
        .await;
        browser
            .find(".ended a")
            .await
            .click()
            .await
            .expect("it can be pressed");
        sign_in(&browser, "olga").await;
        until(
            &browser,
            "the text is there again",
            "document.querySelector('#reason')?.value === 'half a sent'",
        )
        .await;
        browser.close().await;
        console.stop().await;
    })
    .await;
}

/// A proxy as it stands before a console: it adds a header to each request of whoever it has signed in.
async fn signing_proxy(listener: TcpListener, console: SocketAddr, header: &'static str) {
    while let Ok((mut browser, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                // The head alone: what follows it is handed on as it is.
                head.push(browser.read_u8().await?);
            }
            head.truncate(head.len() - 2);
            head.extend_from_slice(format!("{header}Connection: close\r\n\r\n").as_bytes());
            let mut service = TcpStream::connect(console).await?;
            service.write_all(&head).await?;
            copy_bidirectional(&mut browser, &mut service).await
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_signs_people_in_is_believed_and_nobody_else() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    Guarded::check(Database::sqlite(), &CALLERS, async |guarded| {
        let system = &guarded.system;
        let [candidate, _] = two_wait(system).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let proxy = listener.local_addr().expect("an address");
        let console = |trusted: &'static str| {
            Console::beside_with(system, SystemClock::shared(), move |config| {
                let url = format!("http://{proxy}").parse().expect("an address");
                config.public_urls = vec![url];
                let header = "x-forwarded-access-token".parse().expect("a name");
                config.token_header = Some((header, vec![trusted.parse().expect("a network")]));
            })
        };
        let (believes, doubts) = (console("127.0.0.0/8").await, console("192.0.2.0/24").await);
        // Whoever comes past the proxy is nobody, and can't sign in with a form.
        browser.open(&believes.url("today")).await;
        until(
            &browser,
            "nobody is signed in",
            "!document.querySelector('#token') && document.body.innerText.includes('proxy')",
        )
        .await;
        let proxying = AbortOnDropHandle::new(tokio::spawn(signing_proxy(
            listener,
            believes.address,
            "X-Forwarded-Access-Token: rita-token\r\n",
        )));
        browser
            .open(&format!("http://{proxy}/ns/{NAMESPACE}/review?item={candidate}"))
            .await;
        until(
            &browser,
            "it is rita",
            "document.querySelector('.who')?.innerText === 'rita'",
        )
        .await;
        until(
            &browser,
            "she can't sign out here",
            "!document.querySelector('form[action=\"/sign-out\"]')",
        )
        .await;
        browser.find("[data-key=a]").await;
        browser.press("a").await;
        until(
            &browser,
            "it is approved",
            "document.querySelector('[data-done]')",
        )
        .await;
        let decided = stored(system, &candidate).await;
        assert_eq!(decided.decided_by.expect("somebody").caller, "rita");
        let named = [("X-Forwarded-Access-Token", "rita-token")];
        let path = format!("/ns/{NAMESPACE}/today");
        assert_eq!(doubts.visitor().ask("GET", &path, &named, "").await.status, 401);
        assert_eq!(believes.visitor().ask("GET", &path, &named, "").await.status, 200);
        drop(proxying);
        browser.close().await;
        believes.stop().await;
        doubts.stop().await;
    })
    .await;
}

/// Two phrases that wait for a person, by the ids of their candidates.
pub(super) async fn two_wait(system: &System) -> [String; 2] {
    let (olga, bob) = (token_of("olga"), token_of("bob"));
    let policies = system.learning().policies;
    answered(
        policies
            .clone()
            .update_policy(with_token(high_risk(), Some(&olga)))
            .await,
    );
    for phrase in ["one", "two"] {
        let request = SubmitFeedbackRequest {
            wait: Wait::Evaluated.into(),
            ..says("bob", verb(phrase, "create_isda"))
        };
        answered(
            system
                .feedback()
                .service
                .submit_feedback(with_token(request, Some(&bob)))
                .await,
        );
    }
    let request = ListCandidatesRequest {
        namespace: NAMESPACE.into(),
        ..ListCandidatesRequest::default()
    };
    let candidates = system.learning().candidates;
    let listed = answered(
        candidates
            .clone()
            .list_candidates(with_token(request, Some(&olga)))
            .await,
    )
    .candidates;
    let ids: Vec<String> = listed
        .into_iter()
        .map(|candidate| candidate.candidate_id)
        .collect();
    ids.try_into().expect("two wait")
}

async fn stored(system: &System, candidate: &str) -> Candidate {
    let request = GetCandidateRequest {
        namespace: NAMESPACE.into(),
        candidate_id: candidate.into(),
    };
    let candidates = system.learning().candidates;
    let request = with_token(request, Some(&token_of("olga")));
    let answer = answered(candidates.clone().get_candidate(request).await);
    answer.candidate.expect("it is there")
}
