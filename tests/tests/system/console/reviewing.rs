//! Two reviewers with a keyboard each, at the same queue at the same time.

use std::collections::{BTreeMap, BTreeSet};

use emend_browser::{Browser, keys};
use emend_proto::{
    common::v1::Cause,
    learning::v1::{CandidateStatus, ListCandidatesRequest},
};
use emend_tests::{
    faults::runs::short_or_long,
    harness::{Database, NAMESPACE, System, console::Console, eventually, start::Settings},
};

use super::{everything_waits, outages::until, waiting};

/// What a page shows once it is there.
struct Shown {
    /// The item that can be decided; empty if there is none.
    item: String,
    /// Whether it was not: somebody else was faster.
    was_refused: bool,
    /// How many wait.
    waiting: u64,
    /// The addresses that it was come by and that tell of a decision.
    told: BTreeSet<String>,
}

/// What the page shows; none while it is on its way.
async fn shown(browser: &Browser) -> Option<Shown> {
    let found = browser
        .evaluate(
            "const form = document.querySelector('form#approve');
             return document.readyState === 'complete' ? {
                 item: form && form.querySelector('[data-key=a]') ? form.action.split('/').at(-2) : '',
                 refused: document.querySelector('[role=alert]') !== null,
                 waiting: document.querySelectorAll('.queue li').length,
                 told: navigation.entries().map(entry => entry.url).filter(url => url.includes('told=')),
             } : null",
        )
        .await;
    Some(Shown {
        item: found.get("item")?.as_str()?.to_owned(),
        was_refused: found.get("refused")?.as_bool()?,
        waiting: found.get("waiting")?.as_u64()?,
        told: serde_json::from_value(found.get("told")?.clone()).ok()?,
    })
}

/// Decides what is open until nothing waits: every fourth item is rejected with a reason, the others are approved. Returns the
/// addresses of the pages that told of a decision. The driver sends keys again where a page went away under them, so that one press may
/// decide two items: the browser knows where it was.
async fn decide(browser: &Browser, console: &Console, name: &str) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    browser.open(&console.url("review")).await;
    let mut turn = 0;
    loop {
        let before = loop {
            let Some(before) = shown(browser).await else {
                continue;
            };
            told.extend(before.told.clone());
            if !before.item.is_empty() && !before.was_refused {
                break before;
            }
            if before.waiting == 0 && !before.was_refused {
                return told;
            }
            // It was decided by the other one meanwhile.
            browser.open(&console.url("review")).await;
        };
        if turn % 4 == 3 {
            browser
                .press(&format!("rnot as {name} reads it{}", keys::ENTER))
                .await;
        } else {
            browser.press("a").await;
        }
        eventually("the next item is shown", async || match shown(browser).await {
            Some(after) if after.item != before.item || after.was_refused => Ok(()),
            Some(_) => Err("the same one".to_owned()),
            None => Err("none yet".to_owned()),
        })
        .await;
        turn += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_reviewers_decide_a_hundred_none_twice_and_undo_on_sqlite() {
    Box::pin(two_reviewers(Database::sqlite(), 100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_reviewers_decide_some_none_twice_and_undo_on_postgresql() {
    if let Some(database) = Database::postgres().await {
        Box::pin(two_reviewers(database, short_or_long(10, 100))).await;
    }
}

/// Both decide this many together, then take all of it back.
async fn two_reviewers(database: Database, decisions: usize) {
    let (Some(one), Some(two)) = (Browser::start().await, Browser::start().await) else {
        return;
    };
    let system = System::start(database, 1, 1, Settings::default()).await;
    everything_waits(&system).await;
    waiting(&system, decisions).await;
    let console = Console::beside(&system).await;
    let began = tokio::time::Instant::now();
    let (by_one, by_two) = tokio::join!(decide(&one, &console, "Rita"), decide(&two, &console, "Rob"));
    println!(
        "{decisions} decisions of two reviewers took {:.1?}",
        began.elapsed()
    );
    let learning = system.learning();
    let candidates = learning
        .list_candidates(ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            ..ListCandidatesRequest::default()
        })
        .await;
    assert_eq!(candidates.len(), decisions);
    let mut own: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for candidate in &candidates {
        let id = &candidate.candidate_id;
        let history = learning.candidate(id).await.history;
        let reviews = history
            .iter()
            .filter(|step| step.cause() == Cause::Review)
            .count();
        assert_eq!(reviews, 1, "{id} is decided once: {history:?}");
        match candidate.status() {
            CandidateStatus::Applied => {}
            CandidateStatus::Rejected => {
                let reason = &candidate.decision_reason;
                assert!(
                    ["not as Rita reads it", "not as Rob reads it"].contains(&&**reason),
                    "no typed text is lost: {reason}"
                );
            }
            other => panic!("{id} is {other:?}"),
        }
        let by = candidate.decided_by.clone().unwrap_or_default().on_behalf_of;
        own.entry(by).or_default().push(id.clone());
    }
    assert_eq!(own.len(), 2, "both decide: {own:?}");
    assert_eq!(
        by_one.len() + by_two.len(),
        decisions,
        "each is told what they decided"
    );
    // Each takes everything back, one by one, from the pages that told of it.
    let undone = async |browser: &Browser, told: &BTreeSet<String>| {
        for address in told {
            browser.open(address).await;
            browser.find("[data-key=u]").await;
            browser.press("u").await;
            until(
                browser,
                "it is undone",
                "document.querySelector('[data-done]')?.innerText.includes('Undone')",
            )
            .await;
        }
    };
    tokio::join!(undone(&one, &by_one), undone(&two, &by_two));
    let waiting = ListCandidatesRequest {
        namespace: NAMESPACE.into(),
        statuses: vec![CandidateStatus::AwaitingReview.into()],
        ..ListCandidatesRequest::default()
    };
    assert_eq!(
        learning.list_candidates(waiting).await.len(),
        decisions,
        "all wait again"
    );
    assert_eq!(
        learning.resources_in(NAMESPACE).await,
        [],
        "nothing is learned any more"
    );
    one.close().await;
    two.close().await;
    console.stop().await;
    system.stop().await;
}
