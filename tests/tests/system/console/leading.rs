//! How pages lead on and back: from a bad search to a synonym, from a row of Today to a decision and back, from what was deleted to
//! its nodes and to reverting it, and to what one decided oneself.

use emend_browser::{Browser, keys};
use emend_proto::{
    common::v1::SearchRatingValue,
    feedback::v1::{Query, QueryResult, RecordQueryRequest, query_service_client::QueryServiceClient},
    learning::v1::{CandidateStatus, GetQueueStatsRequest, ListCandidatesRequest},
};
use emend_tests::{
    both_databases,
    harness::{
        Database, NAMESPACE, Subscriber, System, answered,
        console::{Console, Visitor, header},
        eventually,
        says::search_rates,
        start::Settings,
        wait::holds,
    },
};

use super::{
    acting::{done, form, told},
    everything_waits, learned,
    outages::{sign_in, two_wait, until},
    waiting,
};
use crate::security::{EVERYWHERE, Guarded};

/// The address of the first link on a page that begins so, as tests open it.
fn link(page: &str, begin: &str) -> String {
    let begin = format!("href=\"/ns/{NAMESPACE}/{begin}");
    let rest = page
        .split(&*begin)
        .nth(1)
        .unwrap_or_else(|| panic!("no {begin}: {page}"));
    let begin = begin.trim_start_matches(&*format!("href=\"/ns/{NAMESPACE}/"));
    format!("{begin}{}", rest.split('"').next().unwrap_or_default()).replace("&#38;", "&")
}

/// What a hidden field of a page holds.
fn hidden(page: &str, name: &str) -> String {
    let begin = format!("name=\"{name}\" value=\"");
    let rest = page
        .split(&*begin)
        .nth(1)
        .unwrap_or_else(|| panic!("no {name}: {page}"));
    rest.split('"').next().unwrap_or_default().replace("&#38;", "&")
}

/// Approves the item that an address opens, as its form does; returns where that leads to.
async fn approved(visitor: &Visitor, address: &str) -> String {
    let page = visitor.open(address).await;
    let path = form(&page.body, "review/", "/approve");
    let fields = [
        ("return", &*hidden(&page.body, "return")),
        ("next", &*hidden(&page.body, "next")),
    ];
    let sent = visitor.send(&page, &path, &fields).await;
    assert_eq!(sent.status, 303, "{}", sent.body);
    header(&sent, "location")[0].clone()
}

both_databases! {
    async fn mine_has_what_one_decided_and_nobody_changed_since(system) {
        everything_waits(system).await;
        waiting(system, 3).await;
        let console = Console::beside(system).await;
        let (visitor, other) = (console.visitor(), console.visitor());
        let learning = system.learning();
        for number in 0..2 {
            let id = learning.candidate_for(&format!("phrase {number}"), &format!("verb_{number}")).await.candidate_id;
            done(&visitor, &format!("review?item={id}"), &format!("review/{id}/approve"), &[]).await;
        }
        let theirs = learning.candidate_for("phrase 1", "verb_1").await.candidate_id;
        done(&other, &format!("review?item={theirs}"), &format!("review/{theirs}/reject"), &[("reason", "no")]).await;
        // An address that is pasted is read as its domain.
        let block = [("pattern", "https://spam.example/"), ("decision", "block"), ("reason", "copies others")];
        let blocked = done(&visitor, "evidence", "evidence/domains", &block).await;
        assert!(blocked.contains("<td class=\"strong\">spam.example</td>"), "{blocked}");
        let synonym = [("term", "bounce"), ("relation", "one_way"), ("representative", "return")];
        let made = done(&visitor, "search/words", "search/synonyms", &synonym).await;
        let mine = visitor.open("mine").await.body;
        for own in ["phrase 0", "spam.example", "bounce"] {
            assert!(mine.contains(own), "{own}: {mine}");
        }
        for theirs in ["phrase 1", "phrase 2"] {
            assert!(!mine.contains(theirs), "{theirs}: {mine}");
        }
        // What is in force is reverted from here, once seen what that touches.
        let preview = visitor.open(&link(&mine, "log/1/revert")).await.body;
        assert!(preview.contains("phrase 0") && preview.contains("← Mine"), "{preview}");
        let own = other.open("mine").await.body;
        assert!(own.contains("phrase 1") && !own.contains("spam.example"), "{own}");

        // What only its maker proposed is withdrawn once it is taken back, and waits for nobody.
        let undone = done(&visitor, "search/words", "undo", &[("told", &*told(&made))]).await;
        assert!(undone.contains("Reverted."), "{undone}");
        let synonyms = ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            key: "bounce".into(),
            ..ListCandidatesRequest::default()
        };
        let [candidate] = &learning.list_candidates(synonyms).await[..] else {
            panic!("one synonym");
        };
        assert_eq!(candidate.status(), CandidateStatus::Withdrawn);
        let stats = GetQueueStatsRequest { namespace: NAMESPACE.into(), days: 1 };
        let stats = answered(learning.candidates.clone().get_queue_stats(stats).await);
        assert_eq!(stats.days.iter().map(|day| day.withdrawn_count).sum::<i64>(), 1);
        let mine = visitor.open("mine").await.body;
        assert!(mine.contains("bounce") && mine.contains("withdrawn"), "{mine}");
        console.stop().await;
    }

    /// Or each look at it would be a change, after which every open page, its own too, is shown anew: without an end.
    async fn looking_again_at_an_item_that_one_has_open_changes_nothing(system) {
        everything_waits(system).await;
        waiting(system, 1).await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let lease = async || system.learning().candidate_for("phrase 0", "verb_0").await.lease;
        assert_eq!(lease().await, None);
        visitor.open("review").await;
        let own = lease().await;
        assert!(own.is_some());
        visitor.open("review").await;
        assert_eq!(lease().await, own);
        console.stop().await;
    }

    async fn what_was_edited_and_reverted_is_in_the_queue_again(system) {
        everything_waits(system).await;
        waiting(system, 1).await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let id = system.learning().candidate_for("phrase 0", "verb_0").await.candidate_id;
        let review = format!("review?item={id}");
        done(&visitor, &review, &format!("review/{id}/approve"), &[("value", "edited")]).await;
        assert_eq!(system.learning().verb_for("phrase 0").await, "edited");
        let reason = [("reason", "wrong after all"), ("return", "/ns/fund-admin/review")];
        let reverted = done(&visitor, "log/1/revert", "log/1/revert", &reason).await;
        assert!(reverted.contains("Reverted.") && reverted.contains("<span class=\"strong\">phrase 0</span>"), "{reverted}");
        assert!(reverted.contains("verb_0"), "the proposal waits again: {reverted}");
        // It keeps the filters while somebody looks what it would change.
        let page = visitor.open(&format!("review?order=oldest&item={id}")).await.body;
        let mut links = page.split("href=\"/ns/fund-admin/").filter_map(|rest| rest.split('"').next());
        let attempt = links.find(|link| link.contains("preview=1")).expect("it can be tried");
        let attempt = attempt.replace("&#38;", "&").replace("#preview", "");
        assert!(attempt.contains("order=oldest") && !attempt.contains("status="), "{attempt}");
        let tried = visitor.open(&attempt).await.body;
        let (before, live) = tried.split_once("<div id=\"live\">").expect("what is live");
        assert!(before.contains("nothing to compare") && !live.contains("nothing to compare"), "{tried}");
        // What was withdrawn is approved as it is, too.
        let edited = system.learning().candidate_for("phrase 0", "edited").await;
        assert_eq!(edited.status(), CandidateStatus::Withdrawn);
        let anew = visitor.open(&format!("review?status=any&item={}", edited.candidate_id)).await.body;
        let approve = form(&anew, "review/", "/approve");
        done(&visitor, "review", &approve, &[]).await;
        assert_eq!(system.learning().verb_for("phrase 0").await, "edited");
        console.stop().await;
    }

    async fn who_decides_from_a_row_of_today_comes_back(system) {
        everything_waits(system).await;
        waiting(system, 2).await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let today = format!("/ns/{NAMESPACE}/today");
        let row = link(&visitor.open("today").await.body, "review?kind=");
        let next = approved(&visitor, &row).await;
        assert!(next.contains("/review?") && next.contains("back="), "there is another one: {next}");
        let last = approved(&visitor, &row).await;
        assert!(last.starts_with(&today), "{last}");
        let page = visitor.ask("GET", &last, &[], "").await;
        assert!(page.body.contains("Approved.") && page.body.contains("Undo"), "{}", page.body);
        let undo = [("told", &*told(&page.body)), ("return", &*today)];
        let undone = visitor.send(&page, "undo", &undo).await;
        assert!(header(&undone, "location")[0].starts_with(&today), "{}", undone.head);
        // By way of a resource's page, the decision leads back to that.
        let resource = link(&visitor.open("today").await.body, "learned/resource?");
        let life = visitor.open(&resource).await.body;
        assert!(life.contains("← Today"), "{life}");
        console.stop().await;
    }

    async fn a_deleted_value_says_who_has_the_deletion_and_is_reverted_from_its_page(system) {
        learned(system, "Set up a CSA", "create_csa").await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let life = link(&visitor.open("learned").await.body, "learned/resource?");
        let fields = [("kind", "invocation_phrase"), ("key", "set up a csa"), ("reason", "not so")];
        done(&visitor, &life, "learned/delete", &fields).await;
        let mut node = Subscriber::new("search-1");
        node.begin(&system.learning().channel).await;
        node.until(2).await;
        let page = visitor.open(&life).await.body;
        assert!(page.contains("Which nodes have the deletion") && page.contains("search-1"), "{page}");
        assert!(page.contains("<h1 class=\"wrap\">Set up a CSA</h1>"), "as it was spelled: {page}");
        // Only the newest change of a key can be reverted: no other is offered.
        let log = visitor.open("log").await.body;
        assert!(log.contains("log/2/revert") && !log.contains("log/1/revert"), "{log}");
        let preview = link(&page, "log/2/revert");
        let reverted = visitor.open(&preview).await;
        let sent = visitor
            .send(&reverted, "log/2/revert", &[("reason", "it was"), ("return", &hidden(&reverted.body, "return"))])
            .await;
        assert!(header(&sent, "location")[0].contains("learned/resource?"), "{}", sent.head);
        assert_eq!(system.learning().verb_for("set up a csa").await, "create_csa");
        node.disconnect();
        console.stop().await;
    }
}

async fn searched(system: &System, id: &str, text: &str) {
    let query = Query {
        query_id: id.into(),
        query_text: text.into(),
        query_type: "HYBRID".into(),
        answer_text: format!("An answer to {id}."),
        hit_count: Some(1),
        top_results: vec![QueryResult {
            title: "Settlement of collateral".into(),
            score: 0.5,
            object_id: "d1".into(),
        }],
        ..Query::default()
    };
    let request = RecordQueryRequest {
        namespace: NAMESPACE.into(),
        queries: vec![query],
    };
    let mut queries = QueryServiceClient::new(system.feedback().channel);
    answered(queries.record_query(request).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_query_leads_to_a_synonym_and_to_its_answers() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    for (id, text) in [("q-1", "csa set-up"), ("q-2", "CSA set-up"), ("q-3", "netting")] {
        searched(&system, id, text).await;
    }
    // Mia rates one query in two wordings: she is one person.
    for (reporter, id) in [
        ("mia", "q-1"),
        ("tom", "q-2"),
        ("eve", "q-1"),
        ("mia", "q-2"),
        ("mia", "q-3"),
    ] {
        let mut feedback = system.feedback().service;
        let rated = search_rates(reporter, id, SearchRatingValue::Down);
        answered(feedback.submit_feedback(rated).await);
    }
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    eventually("ratings know their queries", async || {
        let page = visitor.open("search").await.body;
        // Of one query in several wordings the page shows one.
        let shown = page.to_lowercase();
        holds(shown.contains("netting") && shown.contains("csa set-up"), || page)
    })
    .await;
    let page = visitor.open("search").await.body;
    let (_, worst) = page.split_once("Worst queries").expect("a list");
    let (first, second) = (worst.find("set-up"), worst.find("netting"));
    assert!(first < second, "what most rated down stands first: {page}");
    assert!(
        worst.contains("<td class=\"num\">3</td>"),
        "three people did: {worst}"
    );
    let answers = visitor.open(&link(worst, "search/queue?")).await.body;
    assert!(
        answers.contains("An answer to q-1.")
            && answers.contains("An answer to q-2.")
            && !answers.contains("netting"),
        "{answers}"
    );
    let words = visitor.open(&link(worst, "search/words?")).await.body;
    assert!(
        words
            .to_lowercase()
            .contains("name=\"term\" value=\"csa set-up\"")
            && words.contains("try it"),
        "{words}"
    );
    let queue = visitor.open("search/queue").await;
    for part in ["3 × down", "1 × down", "An answer to q-1.", "An answer to q-2."] {
        assert!(queue.body.contains(part), "{part}: {}", queue.body);
    }
    let tried = visitor.open(&link(&queue.body, "search/try?")).await.body;
    assert!(tried.contains("Without what was learned"), "{tried}");
    // The group is dealt with as one.
    let ids = queue.body.split("name=\"feedback\" value=\"").nth(1).unwrap();
    let ids = ids.split('"').next().unwrap();
    assert_eq!(ids.split(',').count(), 4, "{ids}");
    let dealt = [("feedback", ids), ("mark", "processed"), ("tags", "synonym_miss")];
    let left = done(&visitor, "search/queue", "search/queue", &dealt).await;
    assert!(!left.contains("set-up") && left.contains("netting"), "{left}");
    // However many rated a query, it is one of as many queries.
    let page = visitor.open("search/words").await.body;
    assert!(page.contains("queries rated down: 3"), "{page}");
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_opinion_is_asked_and_answered_by_keyboard() {
    let (Some(one), Some(two)) = (Browser::start().await, Browser::start().await) else {
        return;
    };
    let callers = [
        ("rita", "reviewer", EVERYWHERE),
        ("rob", "reviewer", EVERYWHERE),
        ("olga", "operator admin", EVERYWHERE),
        ("bob", "reporter", EVERYWHERE),
    ];
    Guarded::check(Database::sqlite(), &callers, async |guarded| {
        let system = &guarded.system;
        let [item, _] = two_wait(system).await;
        let console = Console::beside(system).await;
        one.open(&console.url(&format!("review?item={item}"))).await;
        sign_in(&one, "rita").await;
        one.find("[data-key=c]").await;
        one.press("cis this <b>still</b> so?").await;
        one.press(&format!("{0}rob{0}{0}{1}", keys::TAB, keys::ENTER))
            .await;
        until(
            &one,
            "it is asked",
            "document.querySelector('[data-done]')?.innerText.includes('Asked')",
        )
        .await;
        two.open(&console.url("mine")).await;
        sign_in(&two, "rob").await;
        until(
            &two,
            "he sees the question as it was typed",
            "document.querySelector('#live')?.innerText.includes('rita: is this <b>still</b> so?')",
        )
        .await;
        assert_eq!(two.barriers().await, Vec::<String>::new());
        two.find("#live td a")
            .await
            .click()
            .await
            .expect("it can be pressed");
        two.find("[data-key=c]").await;
        two.press("cit is").await;
        two.press(&format!("{0}{0}{1}", keys::TAB, keys::ENTER)).await;
        until(
            &two,
            "it is kept",
            "document.querySelector('[data-done]')?.innerText.includes('kept')",
        )
        .await;
        assert_eq!(two.barriers().await, Vec::<String>::new());
        one.open(&console.url(&format!("review?item={item}&status=any")))
            .await;
        until(
            &one,
            "she reads the answer",
            "document.querySelector('#live').innerText.includes('it is')",
        )
        .await;
        one.close().await;
        two.close().await;
        console.stop().await;
    })
    .await;
}
