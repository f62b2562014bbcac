//! Trust files, and what is blocked and why.

use std::{fs, sync::Arc};

use emend_base::{reload::Reload as _, reload::When, telemetry::metrics::prometheus::Gauge};
use emend_core::{
    Correction, Kind, Learned, ResourceKey, ResourceValue,
    evidence::{DomainDecision, DomainRule, DomainRuleValue, Finding, Layer, RuleCause, TrustLevel},
};
use emend_serve::health::Readiness;
use learning_store::log::{RevisionFilter, RevisionRecord};

use crate::{
    capabilities::Capabilities,
    evidence::{
        mounted::MountedTrustFile,
        rules::{BlockedDomain, RuleFilter},
        trust_file::{Format, ReadTrustFile, TrustFileApplied},
    },
    resources::write::Put,
    tests::{
        evidence::{correction, edge, support, upsert},
        logged::Logged,
        on_both_databases,
        world::{World, assert_sound, head, namespace, one, operator},
    },
};

on_both_databases!(
    replicas_that_apply_a_file_at_once_do_it_once_as_one_operation,
    an_older_or_equal_version_does_nothing,
    a_rule_that_left_the_file_ends_and_others_change,
    a_large_file_is_several_revisions_of_one_operation,
    the_file_comes_before_what_is_verified_and_people_before_the_file,
    decisions_are_listed_newest_first_with_reasons_and_filters,
    blocked_domains_page_and_leave_the_list_when_restored,
    what_decides_elsewhere_is_not_listed_as_blocked,
    each_decision_is_listed_with_how_far_its_pattern_is_trusted_by_all_of_them,
    a_block_by_the_system_says_what_it_found,
    a_mounted_file_is_applied_when_it_changes_and_a_broken_one_is_told,
    a_changed_file_with_the_version_in_force_is_told,
);

/// A thousand rules are a revision. `EMEND_TEST_LONG=1` applies a hundred thousand, which takes ten times as long as ten thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_very_many_domains_is_applied() {
    let is_long = std::env::var_os("EMEND_TEST_LONG").is_some_and(|long| long == "1");
    let count = if is_long { 100_000 } else { 10_000 };
    let world = World::sqlite();
    let app = world.instance().await;
    let rules: Vec<String> = (0..count)
        .map(|number| format!("site-{number}.example low"))
        .collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let done = apply(&app, &file(1, &rules)).await;
    assert_eq!((done.set, done.ended), (count, 0));
    assert_eq!(usize::try_from(done.revision.0).unwrap(), count / 1_000);
    assert_eq!(head(&app).await, done.revision.0);
    let last = format!("site-{}.example", count - 1);
    let last = listed(&app, Some(&last), None, false).await;
    assert!(last[0].contains(" file low "), "{last:?}");
}

/// A file in which each rule is `pattern level` or `pattern block`.
fn text(version: u64, rules: &[&str]) -> String {
    let (mut domains, mut blocked) = (String::new(), String::new());
    for rule in rules {
        match rule.split_once(' ') {
            Some((pattern, "block")) => blocked.extend(["  - '", pattern, "'\n"]),
            Some((pattern, level)) => {
                domains.extend(["  - { pattern: '", pattern, "', level: ", level, " }\n"]);
            }
            None => unreachable!("{rule}"),
        }
    }
    let lists = [("domains", domains), ("blocked", blocked)].map(|(name, entries)| match entries.as_str() {
        "" => format!("{name}: []\n"),
        entries => format!("{name}:\n{entries}"),
    });
    format!(
        "namespaces: [fund-admin]\nversion: {version}\n{}dangerous_patterns: [prompt_injection]\n",
        lists.concat()
    )
}

fn file(version: u64, rules: &[&str]) -> ReadTrustFile {
    ReadTrustFile::read(&text(version, rules), Format::Yaml).unwrap()
}

async fn apply(app: &Capabilities, file: &ReadTrustFile) -> TrustFileApplied {
    app.evidence
        .apply_trust_file(file, &namespace(), &operator())
        .await
        .unwrap()
}

/// What is in force, as `pattern layer decision`, by pattern.
async fn in_force(app: &Capabilities) -> Vec<String> {
    let mut rules: Vec<String> = listed(app, None, None, false)
        .await
        .into_iter()
        .map(|line| line.split(" | ").next().unwrap().to_owned())
        .collect();
    rules.sort_unstable();
    rules
}

/// Decisions, newest first, as `pattern layer decision | active | reason | caller`.
async fn listed(
    app: &Capabilities,
    pattern: Option<&str>,
    layer: Option<Layer>,
    with_ended: bool,
) -> Vec<String> {
    let filter = RuleFilter {
        namespace: namespace(),
        pattern: pattern
            .map(|pattern| emend_core::Key::parse(Kind::DomainRule.rules().key, pattern).unwrap()),
        layer,
        with_ended,
    };
    let (rules, next) = app.evidence.domain_rules(&filter, None, 1_000).await.unwrap();
    assert_eq!(next, None);
    let lines = rules.iter().map(|rule| {
        let word = rule.record.candidate.value.learned.maps_to();
        let layer = &rule.record.key.qualifier;
        let (pattern, active) = (rule.pattern(), rule.is_active());
        format!(
            "{pattern} {layer} {word} | {active} | {} | {}",
            rule.reason, rule.actor.caller
        )
    });
    lines.collect()
}

async fn blocked(app: &Capabilities) -> Vec<BlockedDomain> {
    let (blocked, next) = app
        .evidence
        .blocked_domains(&namespace(), None, 1_000)
        .await
        .unwrap();
    assert_eq!(next, None);
    blocked
}

async fn blocked_names(app: &Capabilities) -> Vec<String> {
    let mut names: Vec<String> = blocked(app)
        .await
        .iter()
        .map(|row| format!("{} {}", row.rule.pattern(), row.rule.record.key.qualifier))
        .collect();
    names.sort_unstable();
    names
}

async fn revisions(app: &Capabilities, file: &ReadTrustFile) -> Vec<RevisionRecord> {
    let filter = RevisionFilter {
        namespace: namespace(),
        kind: None,
        keys: Vec::new(),
        operation: Some(file.operation),
    };
    app.store.list_revisions(&filter, None, 100).await.unwrap().0
}

/// A decision by a reviewer, with the reason "because".
async fn decide(world: &World, app: &Capabilities, rule: DomainRule, pattern: &str) {
    let decision = Correction::parse_domain(pattern, Ok(rule), "").unwrap();
    one(app, &correction(world, &decision)).await;
}

async fn verified(app: &Capabilities, pattern: &str, value: DomainRuleValue) {
    let layer = Layer::Verified.name();
    let put = Put {
        key: ResourceKey::parse(namespace().as_str(), Some(Kind::DomainRule), pattern, layer, "").unwrap(),
        value: ResourceValue::new(pattern.to_owned(), Learned::DomainRule(value)),
        etag: None,
        reason: None,
        actor: operator(),
    };
    app.resources.put(&put).await.unwrap();
}

fn block(cause: Option<(Finding, &str)>) -> DomainRuleValue {
    DomainRuleValue {
        rule: DomainRule::new(DomainDecision::Block, None).unwrap(),
        cause: cause.map(|(found, claim)| RuleCause::parse(found, claim).unwrap()),
    }
}

async fn replicas_that_apply_a_file_at_once_do_it_once_as_one_operation(world: &World) {
    let (first, second) = (world.instance().await, world.instance().await);
    let file = file(3, &["gov government", "wikipedia.org low", "spam.example block"]);
    let (one, other) = tokio::join!(apply(&first, &file), apply(&second, &file));
    assert!(one.applied != other.applied, "{one:?} {other:?}");
    assert_eq!((one.version, other.version), (3, 3));
    assert_eq!(one.set + other.set, 3);
    assert!(!one.differs && !other.differs);
    assert_eq!(head(&first).await, 1);
    let written = revisions(&first, &file).await;
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].changes.len(), 3);
    assert_eq!(written[0].reason, "trust file version 3");
    assert_eq!(written[0].actor, operator());
    assert_eq!(
        in_force(&second).await,
        [
            "gov file government",
            "spam.example file block",
            "wikipedia.org file low"
        ]
    );
    assert_sound(&first).await;
}

async fn an_older_or_equal_version_does_nothing(world: &World) {
    let app = world.instance().await;
    apply(&app, &file(5, &["a.example low"])).await;
    for (version, rules, differs, is_older) in [
        (5, &["a.example low"][..], false, false),
        (5, &["a.example trusted"], true, false),
        (4, &["b.example low"], false, true),
    ] {
        let done = apply(&app, &file(version, rules)).await;
        assert_eq!((done.version, done.applied, done.differs), (5, false, differs));
        assert_eq!(done.is_older, is_older);
        assert_eq!((done.set, done.ended, done.revision.0), (0, 0, 0));
    }
    assert_eq!(head(&app).await, 1);
    let same = apply(&app, &file(6, &["a.example low"])).await;
    assert_eq!((same.version, same.applied, same.revision.0), (6, true, 0));
    assert!(!apply(&app, &file(5, &["c.example low"])).await.applied);
    assert_eq!(head(&app).await, 1, "a version alone is no revision");
}

async fn a_rule_that_left_the_file_ends_and_others_change(world: &World) {
    let app = world.instance().await;
    apply(
        &app,
        &file(1, &["a.example low", "b.example block", "c.example low"]),
    )
    .await;
    world.clock.advance(jiff::SignedDuration::from_secs(1));
    let next = file(2, &["b.example academic", "c.example low", "d.example low"]);
    let done = apply(&app, &next).await;
    assert_eq!((done.set, done.ended, done.revision.0), (2, 1, 2));
    assert_eq!(
        in_force(&app).await,
        [
            "b.example file academic",
            "c.example file low",
            "d.example file low"
        ]
    );
    assert_eq!(revisions(&app, &next).await[0].changes.len(), 3);
    let ended = listed(&app, Some("A.example."), None, true).await;
    assert_eq!(
        ended,
        [
            "a.example file clear | false | trust file version 2 | console",
            "a.example file low | false | trust file version 1 | console",
        ]
    );
    // What ended may come back.
    apply(&app, &file(3, &["a.example low"])).await;
    assert_eq!(in_force(&app).await, ["a.example file low"]);
    assert_sound(&app).await;
}

async fn a_large_file_is_several_revisions_of_one_operation(world: &World) {
    let app = world.instance().await;
    let rules: Vec<String> = (0..2_500)
        .map(|number| format!("d{number}.example low"))
        .collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let large = file(1, &rules);
    let done = apply(&app, &large).await;
    assert_eq!((done.set, done.revision.0), (2_500, 3));
    let mut changes: Vec<usize> = Vec::new();
    for revision in revisions(&app, &large).await {
        assert_eq!(revision.operation, large.operation.to_string());
        changes.push(revision.changes.len());
    }
    let counted = app.store.contents().await.unwrap().resources.len();
    assert_eq!(counted, 2_500);
    assert!(changes.iter().all(|count| *count <= 1_000), "{changes:?}");
    assert_eq!(apply(&app, &file(2, &[])).await.ended, 2_500);
    assert!(in_force(&app).await.is_empty());
}

async fn the_file_comes_before_what_is_verified_and_people_before_the_file(world: &World) {
    let app = world.instance().await;
    let mut number = 0;
    let mut level = async |app: &Capabilities| {
        number += 1;
        let domain = format!("h{number}.a.example");
        upsert(app, &support(number, &domain, "c", 1, 0.9)).await;
        edge(app, &format!("e{number}")).await.source_host.unwrap().level
    };
    verified(&app, "a.example", DomainRule::parse("low").unwrap().into()).await;
    assert_eq!(level(&app).await, TrustLevel::Low);
    apply(&app, &file(1, &["example academic"])).await;
    assert_eq!(
        level(&app).await,
        TrustLevel::Academic,
        "above, and of a stronger layer"
    );
    decide(
        world,
        &app,
        DomainRule::SetTrust(TrustLevel::Trusted),
        "a.example",
    )
    .await;
    assert_eq!(level(&app).await, TrustLevel::Trusted);
    apply(&app, &file(2, &["a.example block"])).await;
    assert_eq!(level(&app).await, TrustLevel::Trusted);
    assert!(blocked(&app).await.is_empty(), "people say otherwise");
    decide(world, &app, DomainRule::Clear, "a.example").await;
    assert_eq!(level(&app).await, TrustLevel::Blocked);
    assert_sound(&app).await;
}

async fn decisions_are_listed_newest_first_with_reasons_and_filters(world: &World) {
    let app = world.instance().await;
    apply(&app, &file(1, &["a.example low"])).await;
    world.clock.advance(jiff::SignedDuration::from_secs(1));
    decide(world, &app, DomainRule::Block, "a.example").await;
    world.clock.advance(jiff::SignedDuration::from_secs(1));
    decide(
        world,
        &app,
        DomainRule::SetTrust(TrustLevel::Trusted),
        "a.example",
    )
    .await;
    let of_people = [
        "a.example human trusted | true | because | backend",
        "a.example human block | false | because | backend",
    ];
    let of_file = "a.example file low | true | trust file version 1 | console";
    assert_eq!(listed(&app, None, None, false).await, [of_people[0], of_file]);
    assert_eq!(
        listed(&app, None, None, true).await,
        [of_people[0], of_people[1], of_file]
    );
    assert_eq!(listed(&app, None, Some(Layer::Human), true).await, of_people);
    assert_eq!(
        listed(&app, Some("a.example"), Some(Layer::File), false).await,
        [of_file]
    );
    assert!(listed(&app, Some("b.example"), None, true).await.is_empty());

    let mut page = (Vec::new(), None);
    let filter = RuleFilter {
        namespace: namespace(),
        pattern: None,
        layer: None,
        with_ended: true,
    };
    for _ in 0..4 {
        let (rules, next) = app.evidence.domain_rules(&filter, page.1, 1).await.unwrap();
        page.0.extend(
            rules
                .iter()
                .map(|rule| rule.record.candidate.value.learned.maps_to().to_owned()),
        );
        page.1 = next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(
        (page.0, page.1),
        (["trusted", "block", "low"].map(str::to_owned).to_vec(), None)
    );
}

async fn blocked_domains_page_and_leave_the_list_when_restored(world: &World) {
    let app = world.instance().await;
    let rules: Vec<String> = (0..25).map(|number| format!("d{number}.example block")).collect();
    let mut rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    rules.push("fine.example low");
    apply(&app, &file(1, &rules)).await;
    decide(
        world,
        &app,
        DomainRule::SetTrust(TrustLevel::Academic),
        "own.example",
    )
    .await;
    decide(world, &app, DomainRule::Block, "own.example").await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, next) = app
            .evidence
            .blocked_domains(&namespace(), after, 10)
            .await
            .unwrap();
        assert!(page.len() <= 10);
        found.extend(page.iter().map(|row| row.rule.pattern().to_owned()));
        after = next;
        if after.is_none() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 26);

    let all = blocked(&app).await;
    let of = |pattern: &str| all.iter().find(|of| of.rule.pattern() == pattern).unwrap();
    let (own, d3) = (of("own.example"), of("d3.example"));
    assert_eq!(
        (own.reason.as_str(), own.original),
        ("because", TrustLevel::Academic)
    );
    assert_eq!(
        own.cause_id(),
        own.rule.decision.as_ref().unwrap().feedback.unwrap().to_string()
    );
    assert_eq!(
        (d3.reason.as_str(), d3.original),
        ("trust file version 1", TrustLevel::Unverified)
    );
    assert_eq!(d3.cause_id(), d3.rule.record.candidate.id.to_string());

    for pattern in ["own.example", "d3.example"] {
        decide(world, &app, DomainRule::Unblock(None), pattern).await;
    }
    let names = blocked_names(&app).await;
    assert_eq!(names.len(), 24);
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("own.") || name.starts_with("d3."))
    );
}

async fn each_decision_is_listed_with_how_far_its_pattern_is_trusted_by_all_of_them(world: &World) {
    let app = world.instance().await;
    let rules = [
        "example.org academic",
        "docs.example.org trusted",
        "other.example low",
    ];
    apply(&app, &file(1, &rules)).await;
    let block = Correction::parse_domain("example.org", Ok(DomainRule::Block), "").unwrap();
    let block = correction(world, &block);
    one(&app, &block).await;
    let filter = RuleFilter {
        namespace: namespace(),
        pattern: None,
        layer: None,
        with_ended: true,
    };
    let effective = async || {
        let (rules, _) = app.evidence.domain_rules(&filter, None, 100).await.unwrap();
        let lines = rules.iter().map(|rule| {
            let (level, layer) = rule.effective;
            let own = &rule.record.key.qualifier;
            format!(
                "{} {own}: {level} by {}",
                rule.pattern(),
                layer.map_or("nobody", Layer::name)
            )
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort_unstable();
        // What ended is listed with what ended it.
        lines.dedup();
        lines
    };
    assert_eq!(
        effective().await,
        [
            // What people decided comes before the file, however specific that is.
            "docs.example.org file: blocked by human",
            "example.org file: blocked by human",
            "example.org human: blocked by human",
            "other.example file: low by file",
        ]
    );
    one(&app, &world.retraction_by_reviewer(&block)).await;
    apply(&app, &file(2, &rules[..2])).await;
    assert_eq!(
        effective().await,
        [
            "docs.example.org file: trusted by file",
            "example.org file: academic by file",
            "example.org human: academic by file",
            "other.example file: unverified by nobody",
        ],
        "what ended is listed with what applies instead"
    );
}

async fn what_decides_elsewhere_is_not_listed_as_blocked(world: &World) {
    let app = world.instance().await;
    verified(&app, "a.example", block(None)).await;
    apply(
        &app,
        &file(
            1,
            &[
                "a.example block",
                "*.b.example block",
                "b.example low",
                "x.c.example block",
            ],
        ),
    )
    .await;
    assert_eq!(
        blocked_names(&app).await,
        ["*.b.example file", "a.example file", "x.c.example file"],
        "once, by the layer that decides"
    );
    let wildcard = blocked(&app).await;
    let wildcard = wildcard
        .iter()
        .find(|row| row.rule.pattern() == "*.b.example")
        .unwrap();
    assert_eq!(wildcard.original, TrustLevel::Low);
    // Somebody decided about all below c.example.
    decide(world, &app, DomainRule::Unblock(None), "c.example").await;
    decide(world, &app, DomainRule::Block, "a.example").await;
    assert_eq!(blocked_names(&app).await, ["*.b.example file", "a.example human"]);
}

async fn a_block_by_the_system_says_what_it_found(world: &World) {
    let app = world.instance().await;
    for number in 1..=5 {
        upsert(
            &app,
            &support(number, "www.bad.example", &format!("c{number}"), 1, 0.9),
        )
        .await;
    }
    upsert(&app, &support(6, "www.bad.example", "c6", 2, 0.9)).await;
    for claim in ["c2", "c4", "c6"] {
        one(
            &app,
            &correction(world, &Correction::parse_claim_reject(claim, "", "").unwrap()),
        )
        .await;
    }
    verified(&app, "bad.example", block(Some((Finding::RejectedShare, "")))).await;
    let mut dangerous = support(7, "evil.example", "c7", 1, 0.9);
    dangerous.claims[0].dangerous_patterns = vec!["prompt_injection".into()];
    upsert(&app, &dangerous).await;
    verified(
        &app,
        "evil.example",
        block(Some((Finding::DangerousPattern, "c7"))),
    )
    .await;
    let found = blocked(&app).await;
    let of = |pattern: &str| found.iter().find(|of| of.rule.pattern() == pattern).unwrap();
    let (bad, evil) = (of("bad.example"), of("evil.example"));
    assert_eq!(bad.reason, "more than 30 % of its claims are rejected (2 of 5)");
    assert_eq!(bad.contradicting, ["c2", "c4"], "c6 it refutes");
    assert_eq!(bad.cause_id(), bad.rule.record.candidate.id.to_string());
    assert_eq!(
        evil.reason,
        "the claim c7 has a dangerous pattern: prompt_injection"
    );
    assert_eq!(
        (evil.contradicting.as_slice(), evil.cause_id()),
        (&["c7".to_owned()][..], "c7".to_owned())
    );
}

async fn a_mounted_file_is_applied_when_it_changes_and_a_broken_one_is_told(world: &World) {
    let (app, other) = (world.instance().await, world.instance().await);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trust.yaml");
    let mount = |readiness: &Readiness, errors: &Gauge| {
        Arc::new(MountedTrustFile::new(
            path.clone(),
            readiness.clone(),
            errors.clone(),
        ))
    };
    let (readiness, errors) = (Readiness::new(), Gauge::default());
    let mounted = mount(&readiness, &errors);
    assert!(!mounted.reload(When::Requested));
    assert!(mounted.is_failing(), "there is no file");

    fs::write(&path, text(2, &["a.example low"])).unwrap();
    assert!(mounted.reload(When::Changed) && mounted.apply_once(&app.evidence).await);
    assert_eq!(
        (mounted.is_failing(), errors.get(), readiness.notes().len()),
        (false, 0, 0)
    );
    assert_eq!(in_force(&app).await, ["a.example file low"]);
    assert_eq!(
        app.evidence.graph().trust_versions(9).await.unwrap(),
        [(namespace(), 2)]
    );
    assert!(!mounted.reload(When::Changed), "nothing changed");

    fs::write(&path, text(3, &["com block", "b.example high"])).unwrap();
    let reported = Logged::default();
    tracing::subscriber::with_default(reported.clone(), || {
        for _ in 0..3 {
            assert!(!mounted.reload(When::Changed));
        }
    });
    let lines = reported.lines();
    let errors_reported = lines.iter().filter(|line| line.starts_with("ERROR"));
    assert_eq!(
        errors_reported.count(),
        1,
        "it is logged once, however often it is read"
    );
    assert!(mounted.apply_once(&app.evidence).await);
    assert_eq!((mounted.is_failing(), errors.get()), (true, 2));
    let notes = readiness.notes().concat();
    for place in ["trust file: ", "domains[0].level: ", "blocked[0]: "] {
        assert!(notes.contains(place), "{notes}");
    }
    assert_eq!(
        in_force(&app).await,
        ["a.example file low"],
        "a broken file changes nothing"
    );

    fs::write(&path, text(3, &["b.example low"])).unwrap();
    assert!(mounted.reload(When::Changed) && mounted.apply_once(&app.evidence).await);
    assert_eq!(
        (mounted.is_failing(), errors.get(), readiness.notes().len()),
        (false, 0, 0)
    );
    assert_eq!(in_force(&app).await, ["b.example file low"]);

    // A replica that comes up with the same file, and one with an older one.
    let late = mount(&readiness, &errors);
    assert!(late.reload(When::Requested) && late.apply_once(&other.evidence).await);
    fs::write(&path, text(2, &["a.example low"])).unwrap();
    assert!(late.reload(When::Changed) && late.apply_once(&other.evidence).await);
    assert!(!late.is_failing());
    assert_eq!(in_force(&app).await, ["b.example file low"]);
    assert_eq!(head(&app).await, 2);
}

async fn a_changed_file_with_the_version_in_force_is_told(world: &World) {
    let app = world.instance().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trust.yaml");
    let (readiness, errors) = (Readiness::new(), Gauge::default());
    let mounted = MountedTrustFile::new(path.clone(), readiness.clone(), errors.clone());
    fs::write(&path, text(1, &["a.example low"])).unwrap();
    assert!(mounted.reload(When::Requested) && mounted.apply_once(&app.evidence).await);
    fs::write(&path, text(1, &["a.example academic"])).unwrap();
    assert!(mounted.reload(When::Changed) && !mounted.apply_once(&app.evidence).await);
    assert_eq!((mounted.is_failing(), errors.get()), (true, 1));
    let notes = readiness.notes().concat();
    assert!(
        notes.contains("must be raised when the file is changed"),
        "{notes}"
    );
    fs::write(&path, text(2, &["a.example academic"])).unwrap();
    assert!(mounted.reload(When::Changed) && mounted.apply_once(&app.evidence).await);
    assert!(!mounted.is_failing() && readiness.notes().is_empty());
    assert_eq!(in_force(&app).await, ["a.example file academic"]);
}
