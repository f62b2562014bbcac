//! Outputs, evidence and ratings without scripts: each page is read, and each of its forms sent.

use emend_proto::{
    common::v1::EdgeRelation,
    learning::v1::{
        Activity, EvidenceClaim, EvidenceEdge, EvidenceFragment, EvidencePage, NodeRef,
        RecordActivityRequest, UpsertEvidenceRequest, node_ref::Node,
    },
};
use emend_tests::harness::{
    Database, NAMESPACE, System, answered,
    console::{Console, Visitor, header},
    start::Settings,
};

/// The path of a form on a page, which begins and ends so, as tests send it.
pub(super) fn form(page: &str, begin: &str, end: &str) -> String {
    let begin = format!("action=\"/ns/{NAMESPACE}/{begin}");
    let mut forms = page.split(&*begin).skip(1);
    let rest = forms.find_map(|rest| {
        let rest = rest.split('"').next()?;
        rest.ends_with(end).then_some(rest)
    });
    let begin = begin
        .rsplit_once(&format!("{NAMESPACE}/"))
        .map_or("", |(_, begin)| begin);
    format!("{begin}{}", rest.expect("the page has the form"))
}

/// What a page's form sends to undo what the page tells of.
pub(super) fn told(page: &str) -> String {
    let form = page
        .split(&format!("action=\"/ns/{NAMESPACE}/undo\""))
        .nth(1)
        .expect("it can be undone");
    let told = form.split("name=\"told\" value=\"").nth(1);
    told.and_then(|rest| rest.split('"').next())
        .expect("it is sealed")
        .to_owned()
}

/// Sends a form and follows to the page after it.
pub(super) async fn done(visitor: &Visitor, page: &str, path: &str, fields: &[(&str, &str)]) -> String {
    let page = visitor.open(page).await;
    let sent = visitor.send(&page, path, fields).await;
    assert_eq!(sent.status, 303, "{path}: {}", sent.body);
    let next = visitor.ask("GET", &header(&sent, "location")[0], &[], "").await;
    assert_eq!(next.status, 200, "{path}: {}", next.body);
    next.body
}

/// What the first form of a page says about where it leads back to.
fn hidden_return(page: &str) -> String {
    let rest = page
        .split("name=\"return\" value=\"")
        .nth(1)
        .expect("a form leads back");
    rest.split('"').next().unwrap_or_default().replace("&#38;", "&")
}

async fn rates(visitor: &Visitor, number: usize, value: &str) {
    let output = format!("q-{number}");
    let fields = [
        ("target", "INTERPRET"),
        ("target_id", &*output),
        ("input", "how was Monday?"),
        ("output", "Quiet."),
        ("value", value),
        ("issues", "no figures\nno <b>day</b>"),
        ("corrected", "NAV 101.2"),
        ("reporter", "mia"),
    ];
    let thanks = done(
        visitor,
        "rate/interpret",
        &format!("rate/interpret/{output}"),
        &fields,
    )
    .await;
    assert!(thanks.contains("Thank you."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ratings_become_a_better_prompt() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let prompt = [
        ("target", "INTERPRET"),
        ("label", "production"),
        ("text", "Interpret {{input}}."),
    ];
    let target = "outputs/target?target=INTERPRET";
    done(&visitor, target, "outputs/INTERPRET/prompt", &prompt).await;
    for number in 0..3 {
        rates(&visitor, number, "BAD").await;
    }
    rates(&visitor, 3, "GOOD").await;
    let shown = visitor.open(target).await.body;
    assert!(shown.contains("Interpret {{input}}."), "{shown}");
    assert!(shown.contains("no &#60;b&#62;day&#60;/b&#62;"), "{shown}");
    let ratings = visitor
        .open("outputs/ratings?target=INTERPRET&value=GOOD")
        .await
        .body;
    assert!(ratings.contains("q-3") && !ratings.contains("q-2"), "{ratings}");

    let pending = done(
        &visitor,
        "outputs",
        "outputs/generate",
        &[("target", "INTERPRET")],
    )
    .await;
    assert!(pending.contains("class=\"plus\""), "{pending}");
    let approve = form(&pending, "review/", "/approve");
    // An approval is undone from the page that tells of it, and the prompt waits again.
    let waits = hidden_return(&pending);
    let approved = done(&visitor, "outputs/pending", &approve, &[("return", &waits)]).await;
    assert!(
        approved.contains("Approved.") && approved.contains("Nothing waits for you."),
        "{approved}"
    );
    let back = [
        ("told", &*told(&approved)),
        ("return", "/ns/fund-admin/outputs/pending"),
    ];
    let undone = done(&visitor, target, "undo", &back).await;
    assert!(
        undone.contains("Undone:") && undone.contains("class=\"plus\""),
        "{undone}"
    );
    let approve = form(&undone, "review/", "/approve");
    done(&visitor, "outputs/pending", &approve, &[]).await;
    let history = visitor.open("outputs/history?target=INTERPRET").await.body;
    let versions: Vec<_> = history.match_indices("outputs/versions/").collect();
    assert_eq!(versions.len(), 2, "{history}");
    // Versions are told apart by a line of their own, and the page of what is learned has the whole text.
    let lines: Vec<_> = history
        .split("<summary class=\"small\">")
        .skip(1)
        .filter_map(|rest| rest.split("</summary>").next())
        .collect();
    assert!(lines.len() == 2 && lines[0] != lines[1], "{lines:?}");
    let life = "learned/resource?kind=prompt&key=INTERPRET&qualifier=production";
    let life = visitor.open(life).await.body;
    let text = life.split("<pre class=\"block\"").nth(1).expect("the text");
    assert!(text.contains("Interpret {{input}}."), "{life}");
    let first = form(&history[versions[0].0..], "outputs/versions/", "/use");
    let again = done(&visitor, "outputs/history", &first, &[("label", "production")]).await;
    assert!(again.contains("current: production"), "{again}");
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_is_edited_and_suggestions_are_decided() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let activities = (0..3).map(|number| Activity {
        source_type: "GITHUB".into(),
        source_id: format!("pr-{number}"),
        technologies: vec!["Go".into()],
        ..Activity::default()
    });
    let request = RecordActivityRequest {
        namespace: NAMESPACE.into(),
        user_id: "mia".into(),
        activities: activities.collect(),
    };
    answered(system.learning().profiles.clone().record_activity(request).await);
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let page = "outputs/profiles?user=mia";
    let entries = [
        ("experience_years", "5"),
        ("known_technologies", "React\nBun"),
        ("learning_goals", "Rust"),
    ];
    let saved = done(&visitor, page, "outputs/profiles/mia/save", &entries).await;
    assert!(saved.contains("Bun\nReact"), "{saved}");
    let suggested = done(&visitor, page, "outputs/profiles/mia/generate", &[]).await;
    let accept = form(&suggested, "outputs/suggestions/", "/accept");
    let accepted = done(&visitor, page, &accept, &[("user", "mia")]).await;
    assert!(accepted.contains("Bun\nGo\nReact"), "{accepted}");
    // What was accepted is undone from the page that tells of it, and so is an edit.
    let back = ("return", "/ns/fund-admin/outputs/profiles?user=mia");
    let undone = done(&visitor, page, "undo", &[("told", &told(&accepted)), back]).await;
    assert!(undone.contains("Bun\nReact"), "{undone}");
    let edited = [
        ("experience_years", "5"),
        ("known_technologies", "Bun"),
        ("learning_goals", "Rust"),
    ];
    let edited = done(&visitor, page, "outputs/profiles/mia/save", &edited).await;
    let reverted = done(&visitor, page, "undo", &[("told", &told(&edited)), back]).await;
    assert!(reverted.contains("Bun\nReact"), "{reverted}");

    let learnings = "outputs/profiles?user=mia&learnings=react+basic%3A+React%0Aother%3A+SQL%0Arust%3A+Rust";
    let ranked = visitor.open(learnings).await.body;
    let at = |text: &str| ranked.find(text).unwrap_or_else(|| panic!("{text}: {ranked}"));
    assert!(at("<li class=\"wrap\">rust</li>") < at("<li class=\"wrap\">other</li>"));
    assert!(ranked.contains("<li class=\"wrap soft\">react</li>"), "{ranked}");
    console.stop().await;
    system.stop().await;
}

/// A claim that one source supports.
fn graph() -> UpsertEvidenceRequest {
    let node = |node| Some(NodeRef { node: Some(node) });
    UpsertEvidenceRequest {
        namespace: NAMESPACE.into(),
        pages: vec![EvidencePage {
            page_id: "page:1".into(),
            domain: "blog.example".into(),
            ..EvidencePage::default()
        }],
        fragments: vec![EvidenceFragment {
            fragment_id: "fragment:1".into(),
            page_id: "page:1".into(),
            text: "Coffee <i>dries</i> you out.".into(),
        }],
        claims: vec![EvidenceClaim {
            claim_id: "claim:1".into(),
            task_id: "t-1".into(),
            text: "Coffee dehydrates.".into(),
            page_id: "page:1".into(),
            ..EvidenceClaim::default()
        }],
        edges: vec![EvidenceEdge {
            edge_id: "edge:1".into(),
            relation: EdgeRelation::Supports as i32,
            source: node(Node::FragmentId("fragment:1".into())),
            target: node(Node::ClaimId("claim:1".into())),
            task_id: "t-1".into(),
            nli_confidence: Some(0.9),
            ..EvidenceEdge::default()
        }],
        ..UpsertEvidenceRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn domains_claims_and_edges_are_decided() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    answered(system.learning().evidence.clone().upsert_evidence(graph()).await);
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let block = [
        ("pattern", "spam.example"),
        ("decision", "block"),
        ("reason", "copies others"),
    ];
    done(&visitor, "evidence", "evidence/domains", &block).await;
    let blocked = visitor.open("evidence/blocked").await.body;
    assert!(
        blocked.contains("spam.example") && blocked.contains("copies others"),
        "{blocked}"
    );
    // The address of a page is no site: whoever gave it is told what the decision would cover, and nothing is decided yet.
    let page = visitor.open("evidence?layer=human").await;
    let pasted = [
        ("pattern", "https://many.example/users/mia?x=1"),
        ("decision", "block"),
        ("reason", "copies others"),
        ("return", "/ns/fund-admin/evidence?layer=human"),
    ];
    let asked = visitor.send(&page, "evidence/domains", &pasted).await;
    assert_eq!(asked.status, 400, "{}", asked.body);
    for part in [
        "the whole site many.example, with its subdomains",
        "name=\"pattern\" value=\"many.example\"",
        "name=\"reason\" value=\"copies others\"",
        "<td class=\"strong\">spam.example</td>",
    ] {
        assert!(asked.body.contains(part), "{part}: {}", asked.body);
    }
    let blocked = visitor.open("evidence/blocked").await.body;
    assert!(!blocked.contains("many.example"), "{blocked}");
    // The page after it names what was blocked, and lists what it listed before.
    let meant = [("pattern", "many.example"), pasted[1], pasted[2], pasted[3]];
    let blocked = done(&visitor, "evidence", "evidence/domains", &meant).await;
    assert!(
        blocked.contains("the whole site many.example, with its subdomains")
            && blocked.contains("<td class=\"strong\">spam.example</td>"),
        "{blocked}"
    );
    let undo = [("told", &*told(&blocked)), pasted[3]];
    done(&visitor, "evidence", "undo", &undo).await;
    // Nor is it a key of what people set by hand.
    let key = [
        ("kind", "domain_rule"),
        ("qualifier", "human"),
        ("key", "many.example/users/mia"),
        ("value", "block"),
    ];
    let page = visitor.open("learned").await;
    let refused = visitor.send(&page, "learned/set", &key).await;
    assert!(
        refused.status == 400 && refused.body.contains("whole sites"),
        "{}",
        refused.body
    );
    let restore = [
        ("decision", "unblock"),
        ("return", "/ns/fund-admin/evidence/blocked"),
        ("reason", "a mistake"),
    ];
    let restored = done(
        &visitor,
        "evidence/blocked",
        "evidence/domains/spam.example",
        &restore,
    )
    .await;
    assert!(restored.contains("Nothing is blocked."), "{restored}");

    let claim = visitor.open("evidence/claims/claim%3A1").await.body;
    assert!(claim.contains("0.655 ± 0.241"), "{claim}");
    let edge = visitor.open("evidence/edges?task=t-1").await.body;
    assert!(
        edge.contains("Coffee &#60;i&#62;dries&#60;/i&#62; you out."),
        "{edge}"
    );
    let label = [("label", "refutes"), ("return", "?task=t-1")];
    let labelled = done(&visitor, "evidence/edges", "evidence/edges/edge%3A1", &label).await;
    assert!(labelled.contains("100.0 %"), "{labelled}");
    let reject = [
        ("decision", "reject"),
        ("reason", "nobody says so"),
        ("reason_code", "SPAM"),
    ];
    let rejected = done(
        &visitor,
        "evidence/claims/claim%3A1",
        "evidence/claims/claim%3A1",
        &reject,
    )
    .await;
    assert!(rejected.contains("a person rejected it"), "{rejected}");
    let claim = "/ns/fund-admin/evidence/claims/claim%3A1";
    let undo = [("told", &*told(&rejected)), ("return", claim)];
    let undone = done(&visitor, "evidence/claims", "undo", &undo).await;
    assert!(!undone.contains("a person rejected it"), "{undone}");
    done(
        &visitor,
        "evidence/claims/claim%3A1",
        "evidence/claims/claim%3A1",
        &reject,
    )
    .await;
    let restore = [
        ("decision", "restore"),
        ("reason", "it does"),
        ("return", "/ns/fund-admin/evidence/claims"),
    ];
    let listed = visitor.open("evidence/claims?status=rejected").await.body;
    assert!(listed.contains("value=\"restore\""), "{listed}");
    let restored = done(&visitor, "evidence/claims", "evidence/claims/claim%3A1", &restore).await;
    assert!(
        restored.contains("Restored.") && !restored.contains("value=\"restore\""),
        "{restored}"
    );
    let events = visitor.open("evidence/events").await.body;
    for told in ["spam.example", "claim:1", "edge:1", "rejected (SPAM)"] {
        assert!(events.contains(told), "{told}: {events}");
    }
    console.stop().await;
    system.stop().await;
}
