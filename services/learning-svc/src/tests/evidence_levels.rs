//! What is computed later than its cause: levels of hosts, statuses of claims, verified rules of domains.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use emend_core::{
    Correction, DomainRule, DomainRuleValue, Kind, Learned, ResourceKey, ResourceValue,
    evidence::{
        BlockingPolicy, ClaimFacts, ClaimRuling, ClaimStatus, ClaimsOfDomain, Combining, Covering,
        EdgeRelation, EvidenceId, Layer, Layers, NamespacePolicy, RulesOfName, SourceKey, TrustLevel, WorkId,
        deciding, joined, registrable_domain,
    },
};
use emend_proto::learning::v1 as pb;
use learning_store::evidence::{ClaimFilter, EdgeFilter, EdgePosition};

use crate::{
    capabilities::Capabilities,
    evidence::grpc::parse,
    ingest::event::IngestEvent,
    policies::namespaces::NamespacePolicyUpdate,
    resources::write::{Delete, Put},
    tests::{
        erasure::assert_audited,
        evidence::{claim, correction, edge, support, upsert},
        on_both_databases,
        world::{World, assert_sound, head, namespace, one, operator},
    },
};

on_both_databases!(
    levels_follow_the_rules_in_batches_and_go_on_after_one_that_was_abandoned,
    people_come_before_the_file_and_that_before_what_was_verified,
    an_academic_source_that_refutes_another_blocks_nobody,
    more_than_three_of_ten_and_at_least_five_claims_block_a_domain_until_they_are_restored,
    a_domain_that_a_person_restores_stays_restored,
    a_dangerous_pattern_blocks_a_domain_until_the_claim_is_restored,
    a_dangerous_claim_blocks_the_domain_that_it_was_found_on_and_nobody_who_quotes_it,
    a_claim_is_read_with_the_status_that_its_sources_give_before_it_is_verified_anew,
    five_pages_of_one_blog_are_one_source_and_two_papers_are_two,
    one_edge_of_each_source_weighs_where_the_policy_says_so_at_every_level,
    a_changed_policy_is_applied_to_domains_of_before,
    the_verified_layer_equals_its_recomputation_whatever_happens_in_whatever_order,
    replicas_that_work_at_once_lose_nothing,
);

/// Works until nothing is left.
pub(super) async fn settle(app: &Capabilities) {
    while app.evidence.follow_once().await.unwrap() {}
}

fn human(world: &World, rule: DomainRule, pattern: &str) -> IngestEvent {
    correction(world, &Correction::parse_domain(pattern, Ok(rule), "").unwrap())
}

fn key(pattern: &str, layer: Layer) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::DomainRule), pattern, layer.name(), "").unwrap()
}

async fn put(app: &Capabilities, pattern: &str, layer: Layer, what: &str) {
    let put = Put {
        key: key(pattern, layer),
        value: ResourceValue::new(pattern, Learned::of(Kind::DomainRule, what.to_owned()).unwrap()),
        etag: None,
        reason: None,
        actor: operator(),
    };
    app.resources.put(&put).await.unwrap();
}

async fn delete(app: &Capabilities, pattern: &str, layer: Layer) {
    let delete = Delete {
        key: key(pattern, layer),
        etag: None,
        reason: None,
        actor: operator(),
    };
    // Where there is none, nothing happens.
    let _ = app.resources.delete(&delete).await;
}

/// The rules in force of these patterns, in all layers.
async fn rules(app: &Capabilities, patterns: &[&str]) -> HashMap<(String, &'static str), DomainRuleValue> {
    let contents = app.store.contents().await.unwrap();
    let mut rules = HashMap::new();
    for pattern in patterns {
        for layer in Layer::ALL {
            let contest = key(pattern, layer).contest_id();
            if let Some((.., value)) = contents.resources.iter().find(|(id, ..)| *id == contest)
                && let Learned::DomainRule(rule) = emend_wire::value::decode(value).unwrap().learned
            {
                rules.insert(((*pattern).to_owned(), layer.name()), rule);
            }
        }
    }
    rules
}

/// What the system says of a domain: decision, cause and claim.
pub(super) async fn verified(app: &Capabilities, domain: &str) -> Option<String> {
    let mut rules = rules(app, &[domain]).await;
    let rule = rules.remove(&(domain.to_owned(), Layer::Verified.name()))?;
    let cause = rule.cause.unwrap();
    let words = [rule.rule.trust().name(), cause.found.name(), &cause.claim_id];
    Some(words.join(" ").trim_end().to_owned())
}

async fn level(app: &Capabilities, of_edge: usize) -> TrustLevel {
    edge(app, &format!("e{of_edge}")).await.source_host.unwrap().level
}

async fn reject(world: &World, app: &Capabilities, claim: &str) -> IngestEvent {
    let event = correction(world, &Correction::parse_claim_reject(claim, "SPAM", "").unwrap());
    one(app, &event).await;
    event
}

pub(super) async fn update_policy(app: &Capabilities, change: fn(&mut NamespacePolicy)) {
    let update = NamespacePolicyUpdate {
        namespace: namespace(),
        etag: None,
        actor: operator(),
        reason: None,
        change: Box::new(change),
    };
    app.namespaces.update(&update).await.unwrap();
}

/// Pages on so many hosts below a domain.
fn hosts(count: usize, domain: &str) -> Vec<pb::UpsertEvidenceRequest> {
    let numbers: Vec<usize> = (0..count).collect();
    let requests = numbers.chunks(1_000).map(|numbers| {
        let pages = numbers.iter().map(|number| pb::EvidencePage {
            page_id: format!("{domain} {number}"),
            domain: format!("h{number}.{domain}"),
            ..pb::EvidencePage::default()
        });
        pb::UpsertEvidenceRequest {
            namespace: "fund-admin".into(),
            pages: pages.collect(),
            ..pb::UpsertEvidenceRequest::default()
        }
    });
    requests.collect()
}

async fn levels_follow_the_rules_in_batches_and_go_on_after_one_that_was_abandoned(world: &World) {
    let app = world.instance().await;
    for request in hosts(10_000, "example.org") {
        upsert(&app, &request).await;
    }
    upsert(&app, &support(1, "h7.example.org", "c1", 1, 0.9)).await;
    upsert(&app, &support(2, "h9999.example.org", "c1", 1, 0.9)).await;
    // It sorts between the name and what is below it.
    upsert(&app, &support(3, "example-site.org", "c2", 1, 0.9)).await;
    upsert(&app, &support(4, "example.org", "c1", 1, 0.9)).await;
    settle(&app).await;
    let before = head(&app).await;
    put(&app, "example.org", Layer::File, "academic").await;
    assert_eq!(
        level(&app, 1).await,
        TrustLevel::Unverified,
        "nothing is computed at once"
    );

    let mut steps = 0;
    loop {
        let mut tx = app.store.begin_whole().await.unwrap();
        let abandoned = tx.evidence().refresh_levels(1_000).await.unwrap();
        drop(tx);
        let done = app.evidence.refresh_levels_once().await.unwrap();
        assert_eq!(done, abandoned, "what was abandoned is done again");
        let Some(done) = done else { break };
        assert!(done.hosts <= 1_000);
        steps += 1;
    }
    assert_eq!(steps, 11);
    for (number, expected) in [
        (1, TrustLevel::Academic),
        (2, TrustLevel::Academic),
        (3, TrustLevel::Unverified),
        (4, TrustLevel::Academic),
    ] {
        assert_eq!(level(&app, number).await, expected, "{number}");
    }
    settle(&app).await;
    assert_eq!(
        app.evidence.graph().backlog(9).await.unwrap(),
        learning_store::evidence::Backlog::default()
    );
    assert_eq!(head(&app).await, before + 1, "one revision, however many hosts");
    assert_eq!(
        claim(&app, "c1").await.independent_sources,
        3,
        "each page of an academic host is one"
    );
}

async fn people_come_before_the_file_and_that_before_what_was_verified(world: &World) {
    let app = world.instance().await;
    for (number, domain) in [(1, "www.blog.example"), (2, "other.example")] {
        upsert(&app, &support(number, domain, "c1", 1, 0.9)).await;
    }
    settle(&app).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Verified);
    let verified_by = |domain| verified(&app, domain);
    assert_eq!(
        verified_by("blog.example").await.as_deref(),
        Some("low independent_support c1")
    );
    assert_eq!(level(&app, 1).await, TrustLevel::Low);
    let before = head(&app).await;

    put(&app, "example", Layer::File, "trusted").await;
    settle(&app).await;
    assert_eq!(level(&app, 1).await, TrustLevel::Trusted);
    assert_eq!(verified_by("blog.example").await, None, "the file covers it");
    assert_eq!(head(&app).await, before + 2, "one revision for both domains");

    let block = human(world, DomainRule::Block, "blog.example");
    one(&app, &block).await;
    settle(&app).await;
    assert_eq!(level(&app, 1).await, TrustLevel::Blocked);
    assert_eq!(level(&app, 2).await, TrustLevel::Trusted);
    assert_eq!(
        claim(&app, "c1").await.status,
        ClaimStatus::Verified,
        "edges of blocked domains count"
    );

    delete(&app, "example", Layer::File).await;
    settle(&app).await;
    assert_eq!(level(&app, 1).await, TrustLevel::Blocked);
    assert_eq!(level(&app, 2).await, TrustLevel::Low);
    one(&app, &world.retraction_by_reviewer(&block)).await;
    settle(&app).await;
    assert_eq!(level(&app, 1).await, TrustLevel::Low);
    let before = head(&app).await;
    settle(&app).await;
    assert_eq!(
        head(&app).await,
        before,
        "nothing is written where it is already so"
    );
    assert_sound(&app).await;
}

async fn an_academic_source_that_refutes_another_blocks_nobody(world: &World) {
    let app = world.instance().await;
    put(&app, "uni.example", Layer::File, "academic").await;
    for number in 0..6 {
        let claim = format!("c{number}");
        upsert(&app, &support(number, "blog.example", &claim, 1, 0.9)).await;
        upsert(&app, &support(10 + number, "uni.example", &claim, 2, 0.99)).await;
    }
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None);
    assert_eq!(level(&app, 0).await, TrustLevel::Unverified);
    assert_eq!(claim(&app, "c0").await.status, ClaimStatus::Pending);
}

async fn more_than_three_of_ten_and_at_least_five_claims_block_a_domain_until_they_are_restored(
    world: &World,
) {
    let app = world.instance().await;
    for number in 0..10 {
        upsert(
            &app,
            &support(number, "www.blog.example", &format!("c{number}"), 1, 0.9),
        )
        .await;
    }
    for number in 10..14 {
        upsert(
            &app,
            &support(number, "four.example", &format!("c{number}"), 1, 0.9),
        )
        .await;
    }
    for number in [0, 1, 2, 10, 11] {
        reject(world, &app, &format!("c{number}")).await;
    }
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None, "3 of 10");
    assert_eq!(verified(&app, "four.example").await, None, "2 of 4");

    upsert(&app, &support(14, "four.example", "c14", 1, 0.9)).await;
    let fourth = reject(world, &app, "c3").await;
    settle(&app).await;
    for domain in ["blog.example", "four.example"] {
        assert_eq!(
            verified(&app, domain).await.as_deref(),
            Some("blocked rejected_share"),
            "{domain}"
        );
    }
    assert_eq!(level(&app, 0).await, TrustLevel::Blocked);

    one(&app, &world.retraction_by_reviewer(&fourth)).await;
    one(
        &app,
        &correction(world, &Correction::parse_claim_restore("c10", "").unwrap()),
    )
    .await;
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None, "the cause ended");
    assert_eq!(verified(&app, "four.example").await, None);
    assert_eq!(level(&app, 0).await, TrustLevel::Unverified);
    assert_sound(&app).await;
}

async fn a_domain_that_a_person_restores_stays_restored(world: &World) {
    let app = world.instance().await;
    for number in 0..5 {
        upsert(
            &app,
            &support(number, "blog.example", &format!("c{number}"), 1, 0.9),
        )
        .await;
        reject(world, &app, &format!("c{number}")).await;
    }
    settle(&app).await;
    assert_eq!(level(&app, 0).await, TrustLevel::Blocked);
    one(&app, &human(world, DomainRule::Unblock(None), "blog.example")).await;
    settle(&app).await;
    assert_eq!(level(&app, 0).await, TrustLevel::Unverified);
    assert_eq!(verified(&app, "blog.example").await, None);
    upsert(&app, &support(5, "blog.example", "c5", 1, 0.9)).await;
    reject(world, &app, "c5").await;
    settle(&app).await;
    assert_eq!(
        level(&app, 0).await,
        TrustLevel::Unverified,
        "whatever else is rejected"
    );
    assert_eq!(verified(&app, "blog.example").await, None);
}

async fn a_dangerous_pattern_blocks_a_domain_until_the_claim_is_restored(world: &World) {
    let app = world.instance().await;
    let mut dangerous = support(1, "blog.example", "c1", 1, 0.9);
    dangerous.claims[0].dangerous_patterns = vec!["prompt injection".into()];
    dangerous.claims[0].page_id = "p1".into();
    upsert(&app, &dangerous).await;
    settle(&app).await;
    assert_eq!(
        verified(&app, "blog.example").await.as_deref(),
        Some("blocked dangerous_pattern c1")
    );
    one(
        &app,
        &correction(world, &Correction::parse_claim_restore("c1", "").unwrap()),
    )
    .await;
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None);
}

async fn a_dangerous_claim_blocks_the_domain_that_it_was_found_on_and_nobody_who_quotes_it(world: &World) {
    let app = world.instance().await;
    // A newspaper and an academic quote what a blog says; nobody supports it.
    for (number, domain) in [(1, "newspaper.example"), (2, "uni.example")] {
        upsert(&app, &support(number, domain, "c1", 1, 0.9)).await;
    }
    let mut found = support(3, "www.blog.example", "c1", 3, 0.9);
    found.claims[0].dangerous_patterns = vec!["prompt injection".into()];
    found.claims[0].page_id = "p3".into();
    upsert(&app, &found).await;
    // Nobody knows where it was found.
    let mut homeless = support(4, "other.example", "c2", 1, 0.9);
    homeless.claims[0].dangerous_patterns = vec!["prompt injection".into()];
    upsert(&app, &homeless).await;
    settle(&app).await;
    for (domain, expected) in [
        ("blog.example", Some("blocked dangerous_pattern c1")),
        ("newspaper.example", None),
        ("uni.example", None),
        ("other.example", None),
    ] {
        assert_eq!(verified(&app, domain).await.as_deref(), expected, "{domain}");
    }
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Rejected);
    assert_audited(world).await;

    // The pattern was a mistake of the backend's.
    found.claims[0].dangerous_patterns.clear();
    upsert(&app, &found).await;
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None);
    assert_eq!(
        verified(&app, "uni.example").await.as_deref(),
        Some("low independent_support c1")
    );
    assert_audited(world).await;
}

/// The ids of the claims that are listed with a status.
async fn of_status(app: &Capabilities, status: ClaimStatus, task: Option<&str>) -> Vec<String> {
    let filter = ClaimFilter {
        namespace: namespace(),
        task: task.map(|task| EvidenceId::parse(task).unwrap()),
        status: Some(status),
        adopted: None,
    };
    let (mut ids, mut after) = (Vec::new(), 0);
    loop {
        let (claims, next) = app.evidence.claims(&filter, after, 2).await.unwrap();
        ids.extend(claims.into_iter().map(|(_, claim)| claim.id.to_string()));
        match next {
            Some(next) => after = next,
            None => return ids,
        }
    }
}

async fn a_claim_is_read_with_the_status_that_its_sources_give_before_it_is_verified_anew(world: &World) {
    let app = world.instance().await;
    for number in 0..10 {
        upsert(
            &app,
            &support(number, "blog.example", &format!("c{number}"), 1, 0.9),
        )
        .await;
    }
    settle(&app).await;
    // Nothing is computed from here on.
    for number in [2, 5, 7] {
        upsert(
            &app,
            &support(10 + number, "other.example", &format!("c{number}"), 1, 0.9),
        )
        .await;
    }
    for (claim_id, expected) in [("c5", ClaimStatus::Verified), ("c6", ClaimStatus::Pending)] {
        assert_eq!(claim(&app, claim_id).await.status, expected, "{claim_id}");
    }
    for task in [None, Some("t1")] {
        assert_eq!(
            of_status(&app, ClaimStatus::Verified, task).await,
            ["c2", "c5", "c7"]
        );
        let pending = of_status(&app, ClaimStatus::Pending, task).await;
        assert_eq!(pending, ["c0", "c1", "c3", "c4", "c6", "c8", "c9"]);
    }
    // A label that a person corrected, and a rejection.
    let event = Correction::parse_edge("e15", Ok(EdgeRelation::Refutes), "").unwrap();
    one(&app, &correction(world, &event)).await;
    reject(world, &app, "c7").await;
    assert_eq!(of_status(&app, ClaimStatus::Verified, None).await, ["c2"]);
    assert_eq!(of_status(&app, ClaimStatus::Rejected, None).await, ["c7"]);
    settle(&app).await;
    assert_eq!(
        of_status(&app, ClaimStatus::Verified, None).await,
        ["c2"],
        "as it was read before"
    );
    // Where levels are not up to date, status and sources still go together.
    put(&app, "blog.example", Layer::Human, "academic").await;
    upsert(&app, &support(30, "blog.example", "c0", 1, 0.9)).await;
    loop {
        let c0 = claim(&app, "c0").await;
        let due = if c0.independent_sources > 1 {
            ClaimStatus::Verified
        } else {
            ClaimStatus::Pending
        };
        assert_eq!(c0.status, due, "{} sources", c0.independent_sources);
        if app.evidence.refresh_levels_once().await.unwrap().is_none() {
            break;
        }
    }
    assert_eq!(claim(&app, "c0").await.status, ClaimStatus::Verified);
}

async fn five_pages_of_one_blog_are_one_source_and_two_papers_are_two(world: &World) {
    let app = world.instance().await;
    for number in 0..5 {
        upsert(&app, &support(number, "www.blog.example", "copied", 1, 0.9)).await;
    }
    for number in 5..7 {
        let mut paper = support(number, "arxiv.org", "found", 1, 0.9);
        paper.pages[0].arxiv_id = format!("2101.0000{number}");
        upsert(&app, &paper).await;
    }
    settle(&app).await;
    let of = |claim_id| claim(&app, claim_id);
    let (copied, found) = (of("copied").await, of("found").await);
    assert_eq!(
        (copied.independent_sources, copied.status),
        (1, ClaimStatus::Pending)
    );
    assert_eq!(
        (found.independent_sources, found.status),
        (2, ClaimStatus::Verified)
    );
    assert_eq!(copied.evidence.supporting_count, 5);

    // A trusted site is one source, an academic one as many as it has pages: a rule changes a status.
    put(&app, "blog.example", Layer::Human, "academic").await;
    settle(&app).await;
    let copied = claim(&app, "copied").await;
    assert_eq!(
        (copied.independent_sources, copied.status),
        (5, ClaimStatus::Verified)
    );
    put(&app, "blog.example", Layer::Human, "trusted").await;
    settle(&app).await;
    assert_eq!(claim(&app, "copied").await.status, ClaimStatus::Pending);
}

async fn one_edge_of_each_source_weighs_where_the_policy_says_so_at_every_level(world: &World) {
    let app = world.instance().await;
    for (number, weight) in [(0, 0.5), (1, 0.9), (2, 0.7)] {
        upsert(&app, &support(number, "www.blog.example", "c1", 1, weight)).await;
    }
    upsert(&app, &support(3, "other.example", "c1", 1, 0.4)).await;
    let all = claim(&app, "c1").await;
    assert_eq!(all.evidence.supports, 2_500_000);
    let both = all.readings.unwrap();
    assert_eq!(both.count_all, all.evidence);
    assert_eq!(both.one_per_source.supports, 1_300_000);
    update_policy(&app, |policy| policy.combining = Combining::OnePerSource).await;
    let one = claim(&app, "c1").await;
    assert_eq!(one.readings, Some(both), "whatever the policy");
    let one_per_source = one.evidence;
    assert_eq!(one_per_source, both.one_per_source);
    assert_eq!(one_per_source.supporting_count, 4, "all are counted");
    put(&app, "blog.example", Layer::Human, "academic").await;
    settle(&app).await;
    assert_eq!(
        claim(&app, "c1").await.evidence,
        one_per_source,
        "a level changes no confidence"
    );
}

async fn a_changed_policy_is_applied_to_domains_of_before(world: &World) {
    let app = world.instance().await;
    for number in 0..4 {
        let domain = if number == 3 {
            "other.example"
        } else {
            "blog.example"
        };
        upsert(&app, &support(number, domain, &format!("c{number}"), 1, 0.9)).await;
    }
    reject(world, &app, "c0").await;
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None);
    update_policy(&app, |policy| {
        policy.blocking = BlockingPolicy::new(3, 100).unwrap();
    })
    .await;
    assert_eq!(
        app.namespaces.policy(&namespace()).await.unwrap().policy.version,
        1
    );
    settle(&app).await;
    assert_eq!(
        verified(&app, "blog.example").await.as_deref(),
        Some("blocked rejected_share")
    );
    assert_eq!(verified(&app, "other.example").await, None);
    update_policy(&app, |policy| policy.blocking = BlockingPolicy::default()).await;
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None);
}

const HOSTS: [&str; 6] = [
    "blog.example",
    "www.blog.example",
    "a.b.blog.example",
    "uni.example",
    "jane.github.io",
    "other.test",
];
const PATTERNS: [&str; 7] = [
    "blog.example",
    "*.blog.example",
    "www.blog.example",
    "uni.example",
    "jane.github.io",
    "other.test",
    "test",
];

/// Page `number`, an edge from it to one of the claims, and the work that it publishes.
fn random_support(draw: &mut impl FnMut(usize) -> usize) -> pb::UpsertEvidenceRequest {
    let number = draw(24);
    let claim = format!("c{}", number % 7);
    let mut request = support(number, HOSTS[number % 6], &claim, [1, 1, 1, 2, 3][draw(5)], 0.9);
    // Some pages have two ids, and join what has one of them.
    if draw(4) == 0 {
        request.pages[0].doi = format!("10.1000/{}", draw(3));
    }
    if draw(5) == 0 {
        request.pages[0].pmid = (1 + draw(3)).to_string();
    }
    if draw(3) == 0 {
        request.claims[0].dangerous_patterns = vec!["injection".into()];
    }
    // The first pages are those on which the claims were found.
    if number < 7 {
        request.claims[0].page_id = format!("p{number}");
    }
    request
}

async fn the_verified_layer_equals_its_recomputation_whatever_happens_in_whatever_order(world: &World) {
    let app = world.instance().await;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut works: BTreeMap<String, Vec<WorkId>> = BTreeMap::new();
    let mut said: Vec<IngestEvent> = Vec::new();
    let mut seen = BTreeSet::new();
    for round in 0..12 {
        for _ in 0..25 {
            match draw(16) {
                0..=4 => {
                    let request = random_support(&mut draw);
                    let ids = parse::upsert(&request).unwrap().pages.remove(0).works;
                    works.insert(request.pages[0].page_id.clone(), ids);
                    upsert(&app, &request).await;
                }
                5 => {
                    let relation = [
                        EdgeRelation::Supports,
                        EdgeRelation::Refutes,
                        EdgeRelation::Neutral,
                    ];
                    let event = Correction::parse_edge(&format!("e{}", draw(24)), Ok(relation[draw(3)]), "");
                    said.push(correction(world, &event.unwrap()));
                    one(&app, said.last().unwrap()).await;
                }
                6 | 7 => said.push(reject(world, &app, &format!("c{}", draw(7))).await),
                8 => {
                    let event = Correction::parse_claim_restore(&format!("c{}", draw(7)), "").unwrap();
                    said.push(correction(world, &event));
                    one(&app, said.last().unwrap()).await;
                }
                9 => {
                    let rule = [
                        DomainRule::Block,
                        DomainRule::Unblock(None),
                        DomainRule::SetTrust(TrustLevel::Academic),
                        DomainRule::Clear,
                    ][draw(4)];
                    said.push(human(world, rule, PATTERNS[draw(6)]));
                    one(&app, said.last().unwrap()).await;
                }
                10 => {
                    let level = ["academic", "low", "unverified"][draw(3)];
                    put(&app, PATTERNS[draw(7)], Layer::File, level).await;
                }
                11 => delete(&app, PATTERNS[draw(7)], Layer::File).await,
                12 if !said.is_empty() => {
                    let event = said.swap_remove(draw(said.len()));
                    one(&app, &world.retraction_by_reviewer(&event)).await;
                }
                13 => drop(app.evidence.refresh_levels_once().await.unwrap()),
                14 => drop(app.evidence.verify_claims_once().await.unwrap()),
                _ => drop(app.evidence.verify_domains_once(0).await.unwrap()),
            }
        }
        if round == 6 {
            update_policy(&app, |policy| {
                policy.blocking = BlockingPolicy::new(2, 250).unwrap();
            })
            .await;
        }
        if round == 9 {
            delete_all_rules(&app).await;
        }
        settle(&app).await;
        assert_recomputed(&app, &works, &mut seen).await;
    }
    assert_sound(&app).await;
    assert_audited(world).await;
    // The story is no trivial one.
    for expected in ["dangerous_pattern", "rejected_share", "independent_support"] {
        assert!(seen.contains(expected), "{expected} never came up: {seen:?}");
    }
}

async fn delete_all_rules(app: &Capabilities) {
    for pattern in PATTERNS {
        for layer in [Layer::Human, Layer::File] {
            if layer == Layer::File || pattern != "test" {
                delete(app, pattern, layer).await;
            }
        }
    }
}

/// Statuses, verified rules and levels are what the core makes of the edges, rulings and rules that are stored.
async fn assert_recomputed(
    app: &Capabilities,
    works: &BTreeMap<String, Vec<WorkId>>,
    seen: &mut BTreeSet<&'static str>,
) {
    let first: BTreeMap<&String, usize> = works.keys().zip(joined(works.values())).collect();
    let stored = rules(app, &PATTERNS[1..])
        .await
        .into_iter()
        .chain(rules(app, &PATTERNS[..1]).await);
    let stored: HashMap<_, _> = stored.collect();
    let mut of_names: HashMap<String, RulesOfName<()>> = HashMap::new();
    for ((pattern, layer), rule) in &stored {
        let layer = Layer::parse(layer).unwrap();
        let name = of_names.entry(Covering::of(pattern).name.to_owned()).or_default();
        name.set(pattern, layer, Some((rule.rule, ())));
    }
    let decided = |host: &str, layers| {
        let found = deciding(host, layers, |name| of_names.get(name));
        found.map(|decision| (decision.layer, decision.level))
    };
    let set_level =
        |host: &str| decided(host, Layers::WithoutVerified).map_or_else(Default::default, |(_, level)| level);

    let all = EdgeFilter {
        namespace: namespace(),
        claim: None,
        relations: Vec::new(),
        levels: Vec::new(),
        reviewed: None,
        corrected: None,
        task: None,
        edge: None,
    };
    let (edges, _) = app
        .evidence
        .edges(&all, EdgePosition::default(), 1_000)
        .await
        .unwrap();
    let mut supporters: HashMap<String, Vec<(String, SourceKey<usize>)>> = HashMap::new();
    for (_, edge) in &edges {
        let host = edge.source_host.as_ref().unwrap();
        let level = decided(&host.name, Layers::All).map_or_else(Default::default, |(_, level)| level);
        assert_eq!(host.level, level, "{}", host.name);
        if edge.relation == EdgeRelation::Supports {
            let page = edge.source.id.as_str().replace('f', "p");
            let has_ids = works.get(&page).is_some_and(|ids| !ids.is_empty());
            let work = first.get(&page).copied().filter(|_| has_ids);
            let source = SourceKey::of(&page, work, &host.name, set_level(&host.name));
            supporters
                .entry(edge.target.id.as_str().to_owned())
                .or_default()
                .push((registrable_domain(&host.name).to_owned(), source));
        }
    }
    let filter = ClaimFilter {
        namespace: namespace(),
        task: None,
        status: None,
        adopted: None,
    };
    let mut domains: HashMap<String, ClaimsOfDomain> = HashMap::new();
    for (_, claim) in app.evidence.claims(&filter, 0, 100).await.unwrap().0 {
        let of_claim = supporters.remove(claim.id.as_str()).unwrap_or_default();
        let sources: BTreeSet<String> = of_claim.iter().map(|(_, source)| source.to_string()).collect();
        let facts = ClaimFacts {
            ruling: [None, Some(ClaimRuling::Rejected), Some(ClaimRuling::Restored)]
                [usize::try_from(claim.ruled).unwrap()],
            has_dangerous_pattern: !claim.patterns.is_empty(),
            supporting_sources: sources.len() as u64,
        };
        assert_eq!(claim.status, facts.status(), "{} {facts:?}", claim.id);
        let of: BTreeSet<String> = of_claim.into_iter().map(|(domain, _)| domain).collect();
        for domain in of {
            domains.entry(domain).or_default().add(claim.id.as_str(), facts);
        }
        if let Some(source) = &claim.source {
            let found_on = domains.entry(registrable_domain(&source.name).to_owned());
            found_on.or_default().add_found(claim.id.as_str(), facts);
        }
    }
    let policy = app.namespaces.policy(&namespace()).await.unwrap().policy.blocking;
    for domain in ["blog.example", "uni.example", "jane.github.io", "other.test"] {
        let is_set = decided(domain, Layers::WithoutVerified).is_some();
        let claims = domains.remove(domain).unwrap_or_default();
        let expected = claims.rule(domain, set_level(domain), is_set, policy);
        if let Some(rule) = &expected {
            seen.insert(rule.cause.as_ref().unwrap().found.name());
        }
        let found = stored.get(&(domain.to_owned(), Layer::Verified.name()));
        assert_eq!(found, expected.as_ref(), "{domain}: {claims:?}, set: {is_set}");
    }
}

async fn replicas_that_work_at_once_lose_nothing(world: &World) {
    let first = world.instance().await;
    let (second, third) = (world.instance().await, world.instance().await);
    let writes = async {
        for number in 0..24 {
            let claim = format!("c{}", number % 7);
            upsert(&first, &support(number, HOSTS[number % 6], &claim, 1, 0.9)).await;
            if number % 5 == 0 {
                reject(world, &first, &claim).await;
            }
            if number % 7 == 0 {
                let level = ["academic", "low"][number % 2];
                put(&first, PATTERNS[number % 7], Layer::File, level).await;
            }
        }
    };
    let works = |app: Capabilities| async move {
        for _ in 0..12 {
            app.evidence.follow_once().await.unwrap();
        }
    };
    tokio::join!(writes, works(second), works(third));
    settle(&first).await;
    let works = (0..24).map(|number| (format!("p{number}"), Vec::new())).collect();
    assert_recomputed(&first, &works, &mut BTreeSet::new()).await;
    assert_sound(&first).await;
}
