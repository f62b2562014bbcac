//! What the console lets nobody do: another host's name, another site's forms, frames, other sites' addresses, and what the
//! services would refuse.

use emend_proto::{
    common::v1::{Correction, DomainBlock, EdgeRelation, Rating, correction::Correction as Variant},
    learning::v1::{
        EvidenceClaim, EvidenceEdge, EvidenceFragment, EvidencePage, NodeRef, UpsertEvidenceRequest,
        node_ref::Node,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        Database, NAMESPACE, answered,
        console::{Console, Visitor, form_token, header},
        says, verb,
    },
};

use super::{acting::told, everything_waits, learned, waiting};
use crate::security::{EVERYWHERE, Guarded, token_of};

both_databases! {
    async fn every_answer_says_what_browsers_must_keep_to(system) {
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        for path in ["today", "review", "learned", "log"] {
            let page = visitor.open(path).await;
            assert_eq!(page.status, 200, "{path}: {}", page.body);
            let policy = header(&page, "content-security-policy").join("");
            for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'"] {
                assert!(policy.contains(part), "{path}: {part} in {policy}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(header(&page, "x-frame-options"), ["DENY"], "{path}");
            assert_eq!(header(&page, "x-content-type-options"), ["nosniff"], "{path}");
            assert_eq!(header(&page, "cache-control"), ["no-store"], "{path}");
        }
        let cookies = header(&console.visitor().open("today").await, "set-cookie").join("\n");
        for flag in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(cookies.contains(flag), "{flag} in {cookies}");
        }
        console.stop().await;
    }

    async fn another_host_name_and_another_sites_form_are_refused(system) {
        everything_waits(system).await;
        waiting(system, 1).await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        for host in ["evil.example", "localhost.evil.example", "10.0.0.1"] {
            let page = visitor.ask("GET", &format!("/ns/{NAMESPACE}/today"), &[("Host", host)], "").await;
            assert_eq!(page.status, 421, "{host}");
        }
        let page = visitor.open("review").await;
        let id = system.learning().candidate_for("phrase 0", "verb_0").await.candidate_id;
        let path = format!("/ns/{NAMESPACE}/review/{id}/approve");
        let token = form_token(&page).unwrap();
        let body = format!("form_token={token}");
        for header in [("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")] {
            let refused = visitor.ask("POST", &path, &[header], &body).await;
            assert_eq!(refused.status, 421, "{header:?}");
        }
        // Without the token of the session, and with that of another one.
        assert_eq!(visitor.ask("POST", &path, &[], "").await.status, 403);
        let other = console.visitor();
        other.open("review").await;
        assert_eq!(other.ask("POST", &path, &[], &body).await.status, 403);
        assert_eq!(system.learning().head().await, 0, "nothing was decided");
        let done = visitor.send(&page, &format!("review/{id}/approve"), &[]).await;
        assert_eq!(done.status, 303, "{}", done.body);
        assert_eq!(system.learning().verb_for("phrase 0").await, "verb_0");
        console.stop().await;
    }

    async fn nobody_is_sent_to_another_site(system) {
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        for back in ["//evil.example", "https://evil.example/", "/\\evil.example"] {
            let body = format!("language=ja&back={}", back.replace('/', "%2F").replace('\\', "%5C"));
            let sent = visitor.ask("POST", "/preferences", &[], &body).await;
            assert_eq!(header(&sent, "location"), ["/"], "{back}");
        }
        console.stop().await;
    }

    async fn only_what_a_page_tells_its_own_reader_of_is_undone(system) {
        everything_waits(system).await;
        waiting(system, 2).await;
        let console = Console::beside(system).await;
        let (visitor, other) = (console.visitor(), console.visitor());
        let learning = system.learning();
        let id = learning.candidate_for("phrase 0", "verb_0").await.candidate_id;
        let open = async |visitor: &Visitor| visitor.open(&format!("review?item={id}")).await;
        let approve = async |visitor: &Visitor| {
            let page = open(visitor).await;
            let sent = visitor.send(&page, &format!("review/{id}/approve"), &[]).await;
            header(&sent, "location")[0].clone()
        };
        let address = approve(&visitor).await;
        let page = visitor.ask("GET", &address, &[], "").await;
        let approved = told(&page.body);
        assert!(page.body.contains("phrase 0 → verb_0"), "it says what is undone: {}", page.body);
        // Somebody else to whom the address is sent is told nothing, and can undo nothing by it.
        let theirs = other.ask("GET", &address, &[], "").await;
        assert!(!theirs.body.contains("Approved.") && !theirs.body.contains("/undo\""), "{}", theirs.body);
        let refused = other.send(&theirs, "undo", &[("told", &approved)]).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        // Nor does an address that somebody made up.
        let mut changed = approved.clone();
        changed.replace_range(20..21, if &approved[20..21] == "A" { "B" } else { "A" });
        for made_up in [&*changed, "", &*id] {
            let address = format!("review?item={id}&told={made_up}&done=rejected&undo={id}&revision=1&can_revert=1");
            let page = visitor.open(&address).await;
            assert!(!page.body.contains("/undo\""), "{}", page.body);
            let refused = visitor.send(&page, "undo", &[("told", made_up), ("undo", &id)]).await;
            assert_eq!(refused.status, 403, "{}", refused.body);
        }
        assert_eq!(learning.verb_for("phrase 0").await, "verb_0", "nothing was undone");
        // A page that was left open undoes its own decision, not a later one on the same item; a vote is no decision.
        let undone = visitor.send(&page, "undo", &[("told", &approved)]).await;
        assert_eq!(undone.status, 303, "{}", undone.body);
        assert_eq!(learning.verb_for("phrase 0").await, "");
        let address = approve(&visitor).await;
        let stale = visitor.send(&page, "undo", &[("told", &approved)]).await;
        assert_eq!(stale.status, 409, "{}", stale.body);
        assert_eq!(learning.verb_for("phrase 0").await, "verb_0");
        system.feedback().learn(says("late", verb("phrase 0", "verb_0"))).await;
        let page = visitor.ask("GET", &address, &[], "").await;
        let undone = visitor.send(&page, "undo", &[("told", &told(&page.body))]).await;
        assert_eq!(undone.status, 303, "{}", undone.body);
        assert_eq!(learning.verb_for("phrase 0").await, "");
        console.stop().await;
    }

    async fn what_was_decided_without_scripts_is_undone_without_scripts(system) {
        everything_waits(system).await;
        waiting(system, 2).await;
        learned(system, "phrase 1", "before").await;
        let console = Console::beside(system).await;
        let visitor = console.visitor();
        let learning = system.learning();
        let id = learning.candidate_for("phrase 1", "verb_1").await.candidate_id;
        let page = visitor.open(&format!("review?item={id}")).await;
        assert!(page.body.contains("verb_1"), "{}", page.body);
        // Without a reason nothing is rejected, and the page says so.
        let refused = visitor.send(&page, &format!("review/{id}/reject"), &[("reason", "")]).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(refused.body.contains("reason"), "{}", refused.body);
        // With a change.
        let done = visitor.send(&page, &format!("review/{id}/approve"), &[("value", "edited")]).await;
        assert_eq!(done.status, 303, "{}", done.body);
        assert_eq!(learning.verb_for("phrase 1").await, "edited");
        let next = visitor.ask("GET", &header(&done, "location")[0], &[], "").await;
        assert!(next.body.contains("Approved with your change."), "{}", next.body);
        let undone = visitor.send(&next, "undo", &[("told", &told(&next.body))]).await;
        assert_eq!(undone.status, 303, "{}", undone.body);
        assert_eq!(learning.verb_for("phrase 1").await, "before");
        // Somebody else decides first: what was typed is shown again.
        let seen = visitor.open(&format!("review?item={id}")).await;
        let etag = seen.body.split("name=\"etag\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let other = console.visitor();
        let theirs = other.open("review").await;
        let rejected = other.send(&theirs, &format!("review/{id}/reject"), &[("reason", "no")]).await;
        assert_eq!(rejected.status, 303, "{}", rejected.body);
        let typed = "what I had typed & <b>more</b>";
        let late = visitor.send(&seen, &format!("review/{id}/reject"), &[("etag", &etag), ("reason", typed)]).await;
        assert_eq!(late.status, 409, "{}", late.body);
        assert!(late.body.contains("Somebody was faster"), "{}", late.body);
        assert!(late.body.contains("what I had typed &#38; &#60;b&#62;more&#60;/b&#62;"), "{}", late.body);
        console.stop().await;
    }
}

/// As reviewer, as reporter, and without a session: buttons, refusals, and that what was sent is kept.
async fn by_rights(database: Database) {
    let callers = [
        ("rita", "reviewer", EVERYWHERE),
        ("rob", "reporter", EVERYWHERE),
        ("olga", "operator", EVERYWHERE),
    ];
    Guarded::check(database, &callers, async |guarded| {
        let system = &guarded.system;
        let console = Console::beside(system).await;
        let stranger = console.visitor();
        let page = stranger.open("review").await;
        assert_eq!(page.status, 401);
        assert!(page.body.contains("name=\"token\""), "{}", page.body);
        // In a frame nobody can sign in: the way there is shown, and may itself be framed.
        let framed = stranger.open("rate/interpret?frame=1&target_id=q-1").await;
        assert_eq!(framed.status, 401);
        let alone = format!("href=\"/ns/{NAMESPACE}/rate/interpret?target_id=q-1\" target=\"_blank\"");
        assert!(framed.body.contains(&alone), "{}", framed.body);
        assert!(!framed.body.contains("name=\"token\""), "{}", framed.body);
        assert!(
            header(&framed, "content-security-policy")
                .join("")
                .contains("frame-ancestors 'self'")
        );
        assert_eq!(stranger.sign_in("wrong").await.status, 401);
        assert_eq!(stranger.sign_in(&"x".repeat(3_000)).await.status, 401);

        let reporter = console.visitor();
        assert_eq!(reporter.sign_in(&token_of("rob")).await.status, 303);
        let page = reporter.open("rate").await;
        assert_eq!(page.status, 200, "{}", page.body);
        for hidden in ["/review\"", "/log\"", "/policies\""] {
            assert!(
                !page.body.contains(&format!("href=\"/ns/{NAMESPACE}{hidden}")),
                "{hidden}"
            );
        }
        assert_eq!(reporter.open("review").await.status, 403);
        let refused = reporter
            .send(
                &page,
                "review/0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10/approve",
                &[("reason", "I insist")],
            )
            .await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(
            refused.body.contains("I insist"),
            "what was typed is shown: {}",
            refused.body
        );

        let reviewer = console.visitor();
        assert_eq!(reviewer.sign_in(&token_of("rita")).await.status, 303);
        let page = reviewer.open("review").await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(!page.body.contains("rita-token"), "no secret in a page");
        assert!(page.body.contains(">rita<"), "{}", page.body);
        assert!(
            !reviewer.open("log").await.body.contains("/revert\""),
            "reverting is an operator's"
        );

        // The token is revoked in the middle of an edit.
        guarded.rewrite(&callers[1..]);
        let path = format!("/ns/{NAMESPACE}/review/0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10/reject");
        let body = format!("form_token={}&reason=typed+before", form_token(&page).unwrap());
        let ended = reviewer.ask("POST", &path, &[], &body).await;
        assert_eq!(ended.status, 401, "{}", ended.body);
        assert!(ended.body.contains("typed before"), "{}", ended.body);
        assert!(ended.body.contains("sign in"), "{}", ended.body);
        let again = format!(
            "form_token=&resume={path}&resume.reason=typed+before&token={}",
            token_of("olga")
        );
        let resumed = reviewer.ask("POST", "/sign-in", &[], &again).await;
        assert_eq!(resumed.status, 200, "{}", resumed.body);
        assert!(
            resumed.body.contains("typed before") && resumed.body.contains(&path),
            "{}",
            resumed.body
        );
        console.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_what_one_may_do_and_refuses_the_rest_on_sqlite() {
    by_rights(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_what_one_may_do_and_refuses_the_rest_on_postgresql() {
    if let Some(database) = Database::postgres().await {
        by_rights(database).await;
    }
}

/// Texts that would be markup, or leave their place, on a page that trusted them.
pub(super) const HOSTILE: [&str; 8] = [
    "<script>window.hacked=1</script>",
    "\"><img src=x onerror=\"window.hacked=1\">",
    "'-window.hacked=1-'",
    "</textarea><script>window.hacked=1</script>",
    "</title><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "{{7*7}}${7*7}",
    "<!--<style>*{display:none}",
];

/// Fills every place that strangers write to.
pub(super) async fn fill_with_hostile(system: &emend_tests::harness::System) {
    for (number, text) in HOSTILE.into_iter().enumerate() {
        let mut request = says(&format!("<b>mallory {number}"), verb(text, text));
        request.reason = text.into();
        request.context.insert("page".into(), text.into());
        system.feedback().learn(request).await;
        let rating = correction(Variant::Rating(Rating {
            target: "INTERPRET".into(),
            value: "BAD".into(),
            target_id: text.into(),
            input_text: text.into(),
            output_text: text.into(),
            prompt_version: text.into(),
            issues: vec![text.into()],
            corrected_text: text.into(),
            ..Rating::default()
        }));
        system.feedback().learn(says(text, rating)).await;
        let block = correction(Variant::DomainBlock(DomainBlock {
            pattern: format!("mallory-{number}.example"),
            task_id: text.into(),
        }));
        let mut request = says(text, block);
        request.reason = text.into();
        system.feedback().learn(request).await;
        let graph = hostile_graph(number, text);
        answered(system.learning().evidence.clone().upsert_evidence(graph).await);
    }
}

fn correction(variant: Variant) -> Correction {
    Correction {
        correction: Some(variant),
    }
}

/// A claim that a fragment supports, both saying the text.
fn hostile_graph(number: usize, text: &str) -> UpsertEvidenceRequest {
    let node = |node| Some(NodeRef { node: Some(node) });
    let id = format!("{number} {text}");
    UpsertEvidenceRequest {
        namespace: NAMESPACE.into(),
        pages: vec![EvidencePage {
            page_id: id.clone(),
            domain: "blog.example".into(),
            title: text.into(),
            ..EvidencePage::default()
        }],
        fragments: vec![EvidenceFragment {
            fragment_id: id.clone(),
            page_id: id.clone(),
            text: text.into(),
        }],
        claims: vec![EvidenceClaim {
            claim_id: id.clone(),
            task_id: text.into(),
            text: text.into(),
            page_id: id.clone(),
            ..EvidenceClaim::default()
        }],
        edges: vec![EvidenceEdge {
            edge_id: id.clone(),
            relation: EdgeRelation::Supports as i32,
            source: node(Node::FragmentId(id.clone())),
            target: node(Node::ClaimId(id)),
            task_id: text.into(),
            ..EvidenceEdge::default()
        }],
        ..UpsertEvidenceRequest::default()
    }
}
