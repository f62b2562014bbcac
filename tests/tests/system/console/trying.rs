//! What people try before they decide: a phrase as a node answers it, and what an item of the queue would change.

use emend_browser::{Browser, keys};
use emend_proto::{
    common::v1::ResourceKey,
    feedback::v1::{ListQueriesRequest, Query, RecordQueryRequest},
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, System, answered,
        console::Console,
        eventually,
        says::{phrase_key, verb_value},
        wait::holds,
    },
};

use super::{everything_waits, outages::until, waiting};
use crate::near::{ASKED, LOST, teach};

/// Records queries and waits until they are stored.
async fn searched(system: &System, texts: &[&str]) {
    let queries = texts.iter().enumerate().map(|(number, text)| Query {
        query_id: format!("q-{number}"),
        query_text: (*text).into(),
        ..Query::default()
    });
    let request = RecordQueryRequest {
        namespace: NAMESPACE.into(),
        queries: queries.collect(),
    };
    let feedback = system.feedback();
    answered(feedback.queries.clone().record_query(request).await);
    eventually("they are stored", async || {
        let request = ListQueriesRequest {
            namespace: NAMESPACE.into(),
            ..ListQueriesRequest::default()
        };
        let stored = answered(feedback.queries.clone().list_queries(request).await).queries;
        holds(stored.len() == texts.len(), || {
            format!("{} of {}", stored.len(), texts.len())
        })
    })
    .await;
}

both_databases! {
    async fn an_item_of_the_queue_shows_which_answers_it_would_change(system) {
        everything_waits(system).await;
        waiting(system, 1).await;
        searched(system, &["Phrase 0", "phrase  0", "something else"]).await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let id = system.learning().candidate_for("phrase 0", "verb_0").await.candidate_id;
        let tried = visitor.open(&format!("review?item={id}&preview=1")).await.body;
        assert!(tried.contains("1 of the 2 recorded queries of the last 7 days would be answered differently (searched 2 times)."), "{tried}");
        assert!(tried.contains("What people said about these answers: 1 for the change, 0 against it."), "{tried}");
        let row = "<td>–</td><td>verb_0</td><td class=\"num\">1</td><td class=\"num\">0</td></tr>";
        let (before, _) = tried.split_once(row).unwrap_or_else(|| panic!("{tried}"));
        assert!(before.to_lowercase().ends_with("<td class=\"num\">2</td>"), "{tried}");
        assert!(!tried.contains("<td>something else</td>"), "{tried}");
        // What somebody types beside is judged by what they say is right, and is there to be changed.
        let page = visitor.open(&format!("review?item={id}&preview=1")).await;
        let attempt = format!("review/{id}/preview");
        let typed = "PHRASE 0, verb_0\r\nsomething else\tother";
        let judged = visitor.send(&page, &attempt, &[("judged", typed)]).await.body;
        assert!(judged.contains("1 of the 2 judged queries and recorded ones of the last 7 days would be answered differently"), "{judged}");
        assert!(judged.contains("Of the judged queries, 1 would become right, and 0 would be right no more."), "{judged}");
        assert!(judged.contains("<td class=\"num\">2</td><td class=\"num\">0</td></tr>"), "{judged}");
        assert!(judged.contains("something else\tother</textarea>"), "{judged}");
        let refused = visitor.send(&page, &attempt, &[("judged", "a, b\nno choice")]).await;
        assert_eq!(refused.status, 400);
        let refused = refused.body;
        assert!(refused.contains("Line 2 must be a query") && refused.contains("no choice</textarea>"), "{refused}");
        // What only learning-svc refuses leaves the item where it was, beside what is wrong.
        let refused = visitor.send(&page, &attempt, &[("judged", "\u{200d}, verb_0")]).await.body;
        let says_why = refused.contains("role=\"alert\"");
        assert!(says_why && refused.contains("aria-label=\"Item\"") && refused.contains("verb_0</textarea>"), "{refused}");
        assert_eq!(system.learning().verb_for("phrase 0").await, "", "nothing was decided");
        console.stop().await;
    }

    async fn a_phrase_that_is_tried_shows_what_is_near_and_because_of_what(system) {
        teach(system).await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let tried = visitor.open(&format!("learned?phrase={}", ASKED.replace(' ', "+"))).await.body;
        let (_, near) = tried.split_once("near:</span>").unwrap_or_else(|| panic!("{tried}"));
        assert!(near.trim_start().starts_with(&format!("<span class=\"strong\">{LOST}</span>")), "{near}");
        assert!(near.contains("confidence 0.") && near.contains("because of “i lost my card” (0."), "{near}");
        let tried = visitor.open("learned?phrase=will+it+rain+tomorrow").await.body;
        assert!(tried.contains("nothing that was learned is similar enough"), "{tried}");
        // How much is users' own is told, and not whose it is.
        let listed = visitor.open("learned").await.body;
        assert!(!listed.contains("not in this list"), "{listed}");
        for user in ["mia-7", "ben-7"] {
            let own = ResourceKey { user_id: user.into(), ..phrase_key("my list") };
            system.learning().put(own, verb_value("show_watchlist")).await;
        }
        eventually("both are counted", || async {
            let listed = visitor.open("learned").await.body;
            let is_told = listed.contains("not in this list: <strong>2</strong>");
            holds(is_told && !["mia-7", "ben-7", "my list"].iter().any(|own| listed.contains(own)), || listed.clone())
        })
        .await;
        let synonyms = visitor.open("learned?kind=synonym").await.body;
        assert!(!synonyms.contains("not in this list"), "{synonyms}");
        console.stop().await;
    }
}

/// A tab between two columns, as tables have it, leads to the button: the letters after it are no keys of the page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_typed_beyond_a_field_decides_nothing() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let system = System::sqlite().await;
    everything_waits(&system).await;
    waiting(&system, 1).await;
    let console = Console::beside(&system).await;
    let id = &system.learning().candidates_for("phrase 0").await[0].candidate_id;
    browser
        .open(&console.url(&format!("review?item={id}&preview=1")))
        .await;
    browser
        .evaluate("document.querySelector('#judged').closest('details').open = true")
        .await;
    let field = browser.find("#judged").await;
    field.click().await.expect("it can be pressed");
    browser.press(&format!("phrase 0{}aa", keys::TAB)).await;
    until(
        &browser,
        "the page is as it was",
        "document.querySelector('#judged').value === 'phrase 0' && document.querySelector('[data-key=a]')",
    )
    .await;
    assert_eq!(system.learning().verb_for("phrase 0").await, "");
    // Outside of it they are.
    browser
        .find("main h1")
        .await
        .click()
        .await
        .expect("it can be pressed");
    browser.press("a").await;
    eventually("it is approved", async || {
        let verb = system.learning().verb_for("phrase 0").await;
        holds(!verb.is_empty(), || "nothing".to_owned())
    })
    .await;
    browser.close().await;
    console.stop().await;
    system.stop().await;
}
