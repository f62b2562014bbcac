//! What owners of a search and operators do, without scripts: tuning, synonyms, settings, policies, the log and the fleet.

use emend_base::telemetry::Metrics;
use emend_browser::Browser;
use emend_proto::{
    common::v1::{ResourceKind, SynonymRelation},
    learning::v1::{
        GetPolicyRequest, ImportAs, ImportHeader, ImportMode, ImportRow, NodeInfo, SubscribeRequest,
    },
};
use emend_tests::harness::{
    Database, NAMESPACE, Subscriber, System, answered,
    console::Console,
    eventually, says,
    says::{synonyms, verb},
    start::Settings,
};

use super::acting::{done, form, told};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_are_tuned_tried_and_given_synonyms() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let tuning = "search/tuning?type=HYBRID";
    let defaults = visitor.open(tuning).await.body;
    assert!(defaults.contains("the defaults"), "{defaults}");
    let fields = [
        ("type", "HYBRID"),
        ("etag", "0"),
        ("top_k", "25"),
        ("retry", "none"),
        ("weights", "keyword=0.7"),
    ];
    let set = done(&visitor, tuning, "search/tuning", &fields).await;
    assert!(set.contains("weight.keyword=0.7 retry=none"), "{set}");
    // Somebody who saw the defaults is told that they are no longer in force.
    let page = visitor.open(tuning).await;
    let late = visitor.send(&page, "search/tuning", &fields).await;
    assert_eq!(late.status, 409, "{}", late.body);
    let wrong = visitor
        .send(&page, "search/tuning", &[("type", "HYBRID"), ("top_k", "1000")])
        .await;
    assert!(
        wrong.status == 400 && wrong.body.contains("must be 1 to 100, is 1000"),
        "{}",
        wrong.body
    );
    let undone = done(&visitor, tuning, "undo", &[("told", &*told(&set))]).await;
    assert!(undone.contains("Reverted."), "{undone}");
    assert!(visitor.open(tuning).await.body.contains("the defaults"));

    // A proposal becomes a synonym, which the query tried out then has.
    let term = synonyms("face", &["leader"], SynonymRelation::Equivalent);
    system.feedback().learn(says("mia", term)).await;
    let tried = "search/try?query=leader+effects";
    assert!(
        visitor
            .open(tried)
            .await
            .body
            .contains("no term of it has a synonym")
    );
    let words = visitor.open("search/words").await.body;
    let made = done(
        &visitor,
        "search/words",
        &form(&words, "search/rewrites/", ""),
        &[],
    )
    .await;
    assert!(made.contains("Approved."), "{made}");
    let expanded = visitor.open(tried).await.body;
    assert!(expanded.contains("(face OR leader) effects"), "{expanded}");

    let kept = [
        ("etag", "0"),
        ("personal_retention", "90d"),
        ("rated_targets", "TRIAGE=RIGHT:good,WRONG:bad"),
    ];
    let saved = done(&visitor, "search/settings", "search/settings", &kept).await;
    assert!(
        saved.contains("value=\"90d\"") && saved.contains("TRIAGE=RIGHT:good,WRONG:bad"),
        "{saved}"
    );
    // Who opened the settings before that overwrites nothing.
    let page = visitor.open("search/settings").await;
    let late = visitor
        .send(
            &page,
            "search/settings",
            &[("etag", "0"), ("max_queries", "2000")],
        )
        .await;
    assert_eq!(late.status, 409, "{}", late.body);
    let blind = visitor
        .send(&page, "search/settings", &[("max_queries", "2000")])
        .await;
    assert!(
        blind.status == 400 && blind.body.contains("etag"),
        "{}",
        blind.body
    );
    assert!(
        visitor
            .open("search/settings")
            .await
            .body
            .contains("value=\"90d\"")
    );
    let period = visitor.open("search?from=2020-01-01&to=2020-01-31").await.body;
    assert!(period.contains("Look at another period"), "{period}");
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_changed_and_a_kind_is_frozen_for_a_reason() {
    let metrics = Metrics::new();
    let settings = Settings {
        learning_metrics: Some(metrics.clone()),
        ..Settings::default()
    };
    let system = System::start(Database::sqlite(), 1, 1, settings).await;
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let path = "policies/invocation_phrase";
    let fields = [
        ("etag", "0"),
        ("risk_level", "medium"),
        ("threshold", "5"),
        ("counting", "voters"),
        ("half_life", "90d"),
        ("max_derived_voters", "2"),
        ("max_counted_feedback", "500"),
        ("reviewers_needed", "1"),
        ("max_resources", "1000"),
        ("max_value_bytes", "2000"),
    ];
    let saved = done(&visitor, "policies", path, &fields).await;
    assert!(saved.contains("5 more people support it"), "{saved}");
    let request = GetPolicyRequest {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::InvocationPhrase as i32,
    };
    let policy = answered(system.learning().policies.clone().get_policy(request).await)
        .policy
        .unwrap();
    assert_eq!(policy.half_life.unwrap().seconds, 90 * 86_400);
    assert_eq!((policy.max_resources, policy.max_derived_voters), (1_000, 2));

    // Who opened the page before that is told, and so is a form that does not say what it saw.
    let page = visitor.open("policies").await;
    let late = visitor
        .send(
            &page,
            path,
            &fields.map(|field| {
                if field.0 == "threshold" {
                    ("threshold", "9")
                } else {
                    field
                }
            }),
        )
        .await;
    assert!(
        late.status == 409 && late.body.contains("Somebody was faster"),
        "{}",
        late.body
    );
    let blind = visitor.send(&page, path, &fields[1..]).await;
    assert!(
        blind.status == 400 && blind.body.contains("etag"),
        "{}",
        blind.body
    );
    let whole = [
        ("combining", "count_all"),
        ("min_claims", "5"),
        ("rejected_permille", "400"),
    ];
    let blind = visitor.send(&page, "policies", &whole).await;
    assert!(
        blind.status == 400 && blind.body.contains("etag"),
        "{}",
        blind.body
    );
    assert!(
        visitor
            .open("policies")
            .await
            .body
            .contains("5 more people support it")
    );
    let refused = visitor.send(&page, path, &[("frozen", "true")]).await;
    assert!(
        refused.status == 400 && refused.body.contains("why it is stopped"),
        "{}",
        refused.body
    );
    let frozen = done(
        &visitor,
        "policies",
        path,
        &[("etag", "1"), ("frozen", "true"), ("reason", "a flood")],
    )
    .await;
    assert!(
        frozen.contains(">frozen<") && frozen.contains("Learn again"),
        "{frozen}"
    );
    // Today names what is frozen, and says of a name that nobody uses that nothing is learned in it.
    let asked = || {
        let metrics = metrics.render();
        let started =
            |line: &&str| line.starts_with("grpc_server_started_total{") && line.contains("PolicyService");
        let mut asked: Vec<_> = metrics.lines().filter(started).map(str::to_owned).collect();
        asked.sort_unstable();
        asked
    };
    let before = asked();
    let today = visitor.open("today").await.body;
    // Whatever the number of kinds, no policy is asked for.
    assert_eq!((before.is_empty(), asked()), (false, before));
    assert!(
        today.contains("Frozen: Phrase.") && !today.contains("Nothing is learned yet"),
        "{today}"
    );
    let mistyped = visitor.ask("GET", "/ns/fund-adnim/today", &[], "").await;
    assert!(
        mistyped.status == 200 && mistyped.body.contains("Nothing is learned yet in the namespace"),
        "{}",
        mistyped.body
    );
    // What applications copy names this console.
    let rate = visitor.open("rate").await.body;
    assert!(
        rate.contains(&format!("http://{}/rate.js", console.address)),
        "{rate}"
    );
    console.stop().await;
    system.stop().await;
}

fn import() -> (ImportHeader, Vec<ImportRow>) {
    let header = ImportHeader {
        namespace: NAMESPACE.into(),
        mode: ImportMode::AllOrNothing.into(),
        import_as: ImportAs::Decision.into(),
        ..ImportHeader::default()
    };
    let rows = (1..).zip(["one", "two"]).map(|(line, phrase)| ImportRow {
        line,
        correction: Some(verb(phrase, "imported_verb")),
        user_id: String::new(),
    });
    (header, rows.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_is_previewed_before_it_is_reverted() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let (header, rows) = import();
    system
        .learning()
        .import(header, rows)
        .await
        .expect("it is imported");
    let log = visitor.open("log").await.body;
    let operation = log
        .split("log?operation=")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("an operation");
    let path = format!("log/operations/{operation}/revert");
    let head = system.learning().head().await;
    let preview = visitor.open(&path).await.body;
    assert!(
        preview.contains("<dd class=\"strong\">2</dd>") && preview.contains("imported_verb"),
        "{preview}"
    );
    let one = visitor.open(&format!("log/{head}/revert")).await.body;
    assert!(
        one.contains("Would be reverted") && one.contains("taken away"),
        "{one}"
    );
    assert_eq!(system.learning().head().await, head, "a preview writes nothing");
    let reverted = done(&visitor, &path, &path, &[("reason", "the wrong file")]).await;
    assert!(reverted.contains("Reverted."), "{reverted}");
    assert_eq!(system.learning().verb_for("one").await, "");
    let again = visitor.open(&format!("log/{head}/revert")).await.body;
    assert!(
        again.contains("changed again by revision") && !again.contains("name=\"reason\""),
        "{again}"
    );
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_shows_in_an_open_log() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let console = Console::beside(&system).await;
    browser.open(&console.url("log")).await;
    browser.find("main h1").await;
    let (header, rows) = import();
    system
        .learning()
        .import(header, rows)
        .await
        .expect("it is imported");
    eventually("the import is shown", async || {
        let text = browser
            .evaluate("return document.querySelector('#live').textContent")
            .await;
        match text.as_str() {
            Some(text) if text.contains("imported_verb") => Ok(()),
            text => Err(format!("{text:?}")),
        }
    })
    .await;
    browser.close().await;
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_looked_for_by_zone_and_label() {
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let mut nodes = Vec::new();
    for (id, zone, tier) in [("gold-1", "eu-1", "gold"), ("blue-1", "us-1", "blue")] {
        let mut node = Subscriber::of(SubscribeRequest {
            node: Some(NodeInfo {
                id: id.into(),
                zone: zone.into(),
                labels: [("tier".to_owned(), tier.to_owned())].into(),
                ..NodeInfo::default()
            }),
            ..SubscribeRequest::default()
        });
        node.connect(&system.learning().channel)
            .await
            .expect("it subscribes");
        nodes.push(node);
    }
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    let shows = async |page: &str| {
        let body = visitor.open(page).await.body;
        (body.contains(">gold-1<"), body.contains(">blue-1<"))
    };
    eventually("both nodes are known", async || match shows("fleet").await {
        (true, true) => Ok(()),
        known => Err(format!("{known:?}")),
    })
    .await;
    for (page, found) in [
        ("fleet?label=tier%3Dgold", (true, false)),
        ("fleet?label=tier", (true, true)),
        ("fleet?zone=us-1", (false, true)),
        ("fleet?show=away", (false, false)),
    ] {
        assert_eq!(shows(page).await, found, "{page}");
    }
    let listed = visitor.open("fleet?zone=us-1").await.body;
    assert!(listed.contains("tier=blue"), "{listed}");
    console.stop().await;
    system.stop().await;
}
