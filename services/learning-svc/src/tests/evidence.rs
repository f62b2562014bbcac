//! Evidence as upserted and as corrected.

use emend_core::{
    Correction, EdgeRelation, Kind, Roles, Status,
    evidence::{ClaimStatus, EvidenceId},
};
use emend_proto::{
    common::v1::OutcomeState,
    learning::v1::{self as pb, node_ref::Node},
};
use learning_store::{
    contests::{CandidateFilter, Listing},
    evidence::{ClaimRecord, EdgeFilter, EdgePosition, EdgeRecord},
    testing::somebody_waits,
};

use crate::{
    capabilities::Capabilities,
    evidence::grpc::parse,
    ingest::event::{FeedbackChange, IngestEvent},
    tests::{
        erasure::assert_audited,
        on_both_databases,
        votes::state,
        world::{World, assert_sound, head, namespace, one},
    },
};

on_both_databases!(
    evidence_gives_the_confidence_of_the_table,
    a_claim_says_what_supports_it_and_an_upsert_repeated_changes_nothing,
    what_is_not_known_or_leads_elsewhere_is_refused_whole,
    a_corrected_edge_keeps_what_the_model_said,
    a_correction_that_comes_first_takes_effect_with_its_target,
    corrections_that_waited_are_counted_and_of_them_those_that_took_effect,
    a_rejected_claim_stays_rejected_whatever_is_upserted,
    a_correction_of_a_citation_never_takes_effect_and_says_so,
    a_page_that_becomes_another_work_while_an_edge_from_it_is_added_is_counted_as_that,
);

/// A page, a fragment of it and an edge from that to the claim, by one number.
pub(crate) fn support(
    number: usize,
    domain: &str,
    claim: &str,
    relation: i32,
    weight: f64,
) -> pb::UpsertEvidenceRequest {
    pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        pages: vec![pb::EvidencePage {
            page_id: format!("p{number}"),
            domain: domain.into(),
            ..pb::EvidencePage::default()
        }],
        fragments: vec![pb::EvidenceFragment {
            fragment_id: format!("f{number}"),
            page_id: format!("p{number}"),
            text: format!("fragment {number}"),
        }],
        claims: vec![pb::EvidenceClaim {
            claim_id: claim.into(),
            task_id: "t1".into(),
            text: "the claim".into(),
            ..pb::EvidenceClaim::default()
        }],
        edges: vec![pb::EvidenceEdge {
            edge_id: format!("e{number}"),
            relation,
            source: Some(pb::NodeRef {
                node: Some(Node::FragmentId(format!("f{number}"))),
            }),
            target: Some(pb::NodeRef {
                node: Some(Node::ClaimId(claim.into())),
            }),
            task_id: "t1".into(),
            nli_confidence: Some(weight),
            ..pb::EvidenceEdge::default()
        }],
        replace: false,
    }
}

pub(crate) async fn upsert(app: &Capabilities, request: &pb::UpsertEvidenceRequest) -> (usize, usize) {
    let done = app
        .evidence
        .upsert(&parse::upsert(request).unwrap())
        .await
        .unwrap();
    (done.upserted.added, done.arrived.corrections)
}

pub(crate) async fn claim(app: &Capabilities, claim: &str) -> ClaimRecord {
    app.evidence
        .claim(&namespace(), &EvidenceId::parse(claim).unwrap(), true)
        .await
        .unwrap()
}

pub(crate) async fn edge(app: &Capabilities, edge: &str) -> EdgeRecord {
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
    let found = edges.into_iter().find(|(_, record)| record.id.as_str() == edge);
    found.unwrap().1
}

/// A correction by a reviewer.
pub(crate) fn correction(world: &World, correction: &Correction) -> IngestEvent {
    let mut event = world.phrase("ann", "replaced below", "x");
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    recorded.effects = correction.effects(&namespace(), None);
    recorded.sender = Roles::parse(["reporter", "reviewer"].into_iter()).unwrap();
    event
}

fn edge_is(world: &World, edge: &str, relation: EdgeRelation) -> IngestEvent {
    correction(world, &Correction::parse_edge(edge, Ok(relation), "").unwrap())
}

async fn evidence_gives_the_confidence_of_the_table(world: &World) {
    let app = world.instance().await;
    let mut number = 0;
    for (name, supports, refutes, expected) in [
        ("one", 1, 0, [1.9, 1.0, 0.655, 0.241, 0.0]),
        ("three", 3, 0, [3.7, 1.0, 0.787, 0.171, 0.0]),
        ("three-one", 3, 1, [3.7, 1.9, 0.661, 0.184, 0.25]),
        ("five-five", 5, 5, [5.5, 5.5, 0.5, 0.144, 0.5]),
    ] {
        for relation in std::iter::repeat_n(1, supports).chain(std::iter::repeat_n(2, refutes)) {
            number += 1;
            upsert(&app, &support(number, "blog.example.org", name, relation, 0.9)).await;
        }
        let reported = claim(&app, name).await.evidence.reported();
        let found = [
            reported.alpha,
            reported.beta,
            reported.confidence,
            reported.uncertainty,
            reported.controversy,
        ];
        assert_eq!(
            found.map(|number| number.to_string()),
            expected.map(|number| number.to_string()),
            "{name}"
        );
    }
}

async fn a_claim_says_what_supports_it_and_an_upsert_repeated_changes_nothing(world: &World) {
    let app = world.instance().await;
    let request = support(1, "blog.example.org", "c1", 1, 0.9);
    assert_eq!(upsert(&app, &request).await, (4, 0));
    assert_eq!(upsert(&app, &request).await, (0, 0));
    upsert(&app, &support(2, "www.example.org", "c1", 1, 0.8)).await;
    upsert(&app, &support(3, "example.net", "c1", 3, 0.8)).await;
    let c1 = claim(&app, "c1").await;
    assert_eq!(c1.task, "t1");
    assert_eq!(c1.evidence.supporting_count, 2);
    assert_eq!(c1.evidence.neutral_count, 1);
    assert_eq!(c1.independent_sources, 1, "two hosts of one registrable domain");
    let e1 = edge(&app, "e1").await;
    assert_eq!(e1.source.to_string(), "fragment:f1");
    assert_eq!(e1.target.to_string(), "claim:c1");
    assert_eq!(e1.source_host.unwrap().name, "blog.example.org");
}

async fn what_is_not_known_or_leads_elsewhere_is_refused_whole(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let mut elsewhere = support(1, "other.example.org", "c2", 1, 0.9);
    elsewhere.fragments[0].page_id = "p9".into();
    elsewhere.edges[0].source = Some(pb::NodeRef {
        node: Some(Node::ClaimId("c9".into())),
    });
    let refused = app
        .evidence
        .upsert(&parse::upsert(&elsewhere).unwrap())
        .await
        .unwrap_err();
    let refused = refused.to_string();
    for field in [
        "pages[0].domain",
        "fragments[0].page_id",
        "edges[0].source",
        "edges[0].target",
    ] {
        assert!(refused.contains(field), "{field}: {refused}");
    }
    assert!(
        app.evidence
            .claim(&namespace(), &EvidenceId::parse("c2").unwrap(), false)
            .await
            .is_err()
    );
}

async fn a_corrected_edge_keeps_what_the_model_said(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let refutes = edge_is(world, "e1", EdgeRelation::Refutes);
    assert_eq!(state(&one(&app, &refutes).await), OutcomeState::Applied);
    let e1 = edge(&app, "e1").await;
    assert_eq!(
        (e1.relation, e1.predicted()),
        (EdgeRelation::Refutes, EdgeRelation::Supports)
    );
    assert!(e1.is_corrected() && e1.reviewed_at.is_some());
    assert_eq!(e1.reviewed_by, Some(refutes.feedback));
    assert_eq!(
        claim(&app, "c1").await.evidence.refutes,
        1_000_000,
        "a person is sure"
    );

    // The model changes its mind; the person's label stays.
    upsert(&app, &support(1, "blog.example.org", "c1", 3, 0.4)).await;
    let e1 = edge(&app, "e1").await;
    assert_eq!(
        (e1.relation, e1.predicted()),
        (EdgeRelation::Refutes, EdgeRelation::Neutral)
    );

    let same = edge_is(world, "e1", EdgeRelation::Neutral);
    one(&app, &same).await;
    let e1 = edge(&app, "e1").await;
    assert!(
        e1.ruled.is_some() && !e1.is_corrected(),
        "reviewed, and as the model says"
    );
    one(&app, &world.retraction_by_reviewer(&same)).await;
    assert!(
        edge(&app, "e1").await.is_corrected(),
        "the correction before it is in force again"
    );
    one(&app, &world.retraction_by_reviewer(&refutes)).await;
    let e1 = edge(&app, "e1").await;
    assert_eq!((e1.relation, e1.ruled), (EdgeRelation::Neutral, None));
    assert_eq!(claim(&app, "c1").await.evidence.neutral_count, 1);
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn a_correction_that_comes_first_takes_effect_with_its_target(world: &World) {
    let app = world.instance().await;
    let refutes = edge_is(world, "e1", EdgeRelation::Refutes);
    let outcome = one(&app, &refutes).await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str()),
        (OutcomeState::Pending, "TARGET_NOT_FOUND")
    );
    assert_eq!(head(&app).await, 0);
    assert_eq!(
        upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await,
        (4, 1)
    );
    assert!(edge(&app, "e1").await.is_corrected());
    assert_eq!(head(&app).await, 1);
    assert_eq!(
        app.evidence.arrive_once(None).await.unwrap(),
        None,
        "nothing waits any more"
    );
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn corrections_that_waited_are_counted_and_of_them_those_that_took_effect(world: &World) {
    let app = world.instance().await;
    for relation in [EdgeRelation::Refutes, EdgeRelation::Neutral] {
        one(&app, &edge_is(world, "e1", relation)).await;
    }
    let taken_back = edge_is(world, "e1", EdgeRelation::Refutes);
    one(&app, &taken_back).await;
    one(&app, &world.retraction_by_reviewer(&taken_back)).await;
    // It awaits review, not its target.
    let mut unentitled = edge_is(world, "e1", EdgeRelation::Supports);
    if let FeedbackChange::Recorded(recorded) = &mut unentitled.change {
        recorded.sender = Roles::parse(["reporter"].into_iter()).unwrap();
    }
    one(&app, &unentitled).await;
    let reject = Correction::parse_claim_reject("c1", "SPAM", "").unwrap();
    one(&app, &correction(world, &reject)).await;
    // A citation is never corrected.
    one(&app, &edge_is(world, "e2", EdgeRelation::Refutes)).await;

    let mut request = support(1, "blog.example.org", "c1", 1, 0.9);
    request.pages.push(pb::EvidencePage {
        page_id: "p2".into(),
        domain: "other.example".into(),
        ..pb::EvidencePage::default()
    });
    let page = |id: &str| {
        Some(pb::NodeRef {
            node: Some(Node::PageId(id.into())),
        })
    };
    request.edges.push(pb::EvidenceEdge {
        edge_id: "e2".into(),
        relation: 4,
        source: page("p1"),
        target: page("p2"),
        ..pb::EvidenceEdge::default()
    });
    let done = app
        .evidence
        .upsert(&parse::upsert(&request).unwrap())
        .await
        .unwrap();
    let counted = (done.arrived.corrections, done.arrived.applied);
    assert_eq!(
        counted,
        (4, 2),
        "of four the newest about the edge, and that about the claim"
    );
    assert_eq!(edge(&app, "e1").await.relation, EdgeRelation::Neutral);
    assert_eq!(upsert(&app, &request).await, (0, 0));
}

async fn a_rejected_claim_stays_rejected_whatever_is_upserted(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let reject = correction(world, &Correction::parse_claim_reject("c1", "SPAM", "").unwrap());
    one(&app, &reject).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Rejected);
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Rejected);
    one(&app, &world.retraction_by_reviewer(&reject)).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Pending);

    let mut dangerous = support(1, "blog.example.org", "c1", 1, 0.9);
    dangerous.claims[0].dangerous_patterns = vec!["prompt injection".into()];
    upsert(&app, &dangerous).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Rejected);
    let restore = correction(world, &Correction::parse_claim_restore("c1", "").unwrap());
    one(&app, &restore).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Pending);
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn a_correction_of_a_citation_never_takes_effect_and_says_so(world: &World) {
    let app = world.instance().await;
    let early = edge_is(world, "cites:1", EdgeRelation::Refutes);
    let outcome = one(&app, &early).await;
    assert_eq!(outcome.reason, "TARGET_NOT_FOUND");
    let page = |id: &str| pb::NodeRef {
        node: Some(Node::PageId(id.into())),
    };
    let mut cites = support(1, "blog.example.org", "c1", 1, 0.9);
    cites.pages.push(pb::EvidencePage {
        page_id: "p2".into(),
        domain: "journal.example.org".into(),
        ..pb::EvidencePage::default()
    });
    cites.edges = vec![pb::EvidenceEdge {
        edge_id: "cites:1".into(),
        relation: 4,
        source: Some(page("p1")),
        target: Some(page("p2")),
        ..pb::EvidenceEdge::default()
    }];
    upsert(&app, &cites).await;
    assert_eq!(
        app.evidence.arrive_once(None).await.unwrap(),
        None,
        "nothing waits for ever"
    );
    let late = edge_is(world, "cites:1", EdgeRelation::Refutes);
    let outcome = one(&app, &late).await;
    assert_eq!(
        (state(&outcome), outcome.reason.as_str(), outcome.message.as_str()),
        (
            OutcomeState::NoEffect,
            "NOT_CORRECTABLE",
            "Without effect: the label of edge “cites:1” is refutes; it is a citation, which nobody corrects."
        )
    );
    let standing = app
        .store
        .list_candidates(&waiting(), &Listing::default(), None, 10)
        .await
        .unwrap();
    assert_eq!(standing.len(), 0, "the one that came first waits no more");
    let cites = edge(&app, "cites:1").await;
    assert_eq!((cites.relation, cites.ruled), (EdgeRelation::Cites, None));
    assert_eq!(head(&app).await, 0);
    assert_sound(&app).await;
    assert_audited(world).await;
}

fn waiting() -> CandidateFilter {
    CandidateFilter {
        reviewed: learning_store::contests::Involvement::default(),
        namespace: namespace(),
        kinds: vec![Kind::EdgeLabel],
        statuses: vec![Status::Pending, Status::AwaitingReview],
        keys: Vec::new(),
        user: None,
    }
}

/// A page of a work, and edges from it to a claim.
fn of_work(number: usize, doi: &str, claims: &[&str]) -> pb::UpsertEvidenceRequest {
    let mut request = support(number, "journal.example.org", "other", 1, 0.9);
    request.pages[0].doi = doi.into();
    request.claims.clear();
    request.edges.clear();
    for claim in claims {
        let more = support(number, "journal.example.org", claim, 1, 0.9);
        request.claims.extend(more.claims);
        request
            .edges
            .extend(more.edges.into_iter().map(|edge| pb::EvidenceEdge {
                edge_id: format!("{}-{claim}", edge.edge_id),
                ..edge
            }));
    }
    request
}

async fn a_page_that_becomes_another_work_while_an_edge_from_it_is_added_is_counted_as_that(world: &World) {
    if somebody_waits(&world.url).await.is_none() {
        return;
    }
    let (app, other) = (world.instance().await, world.instance().await);
    for number in [1, 2] {
        upsert(&app, &of_work(number, "10.1000/one", &[])).await;
    }
    upsert(&app, &of_work(1, "10.1000/one", &["c1"])).await;
    while app.evidence.follow_once().await.unwrap() {}
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Pending, "one work");

    // One adds an edge from the second page, another says that this page is a work of its own.
    let mut adds = app.store.begin_whole().await.unwrap();
    let mut edge = of_work(2, "", &["c1"]);
    edge.pages.clear();
    edge.fragments.clear();
    let edge = parse::upsert(&edge).unwrap();
    let evidence = adds.evidence();
    evidence.upsert(&edge, None).await.unwrap().unwrap();
    let (changes, has_begun) = (
        other.store.begin_whole().await.unwrap(),
        tokio::sync::oneshot::channel(),
    );
    let changing = tokio::spawn(async move {
        let mut changes = changes;
        let mut page = of_work(2, "10.1000/two", &[]);
        page.fragments.clear();
        let page = parse::upsert(&page).unwrap();
        let evidence = changes.evidence();
        has_begun.0.send(()).unwrap();
        evidence.upsert(&page, None).await.unwrap().unwrap();
        changes
    });
    has_begun.1.await.unwrap();
    while !changing.is_finished() && somebody_waits(&world.url).await == Some(false) {
        tokio::task::yield_now().await;
    }
    let has_not_waited = changing.is_finished();
    adds.commit().await.unwrap();
    // Without a wait for each other, the claim could be verified now, by the work of before.
    if has_not_waited {
        while app.evidence.verify_claims_once().await.unwrap() > 0 {}
    }
    let changes = changing.await.unwrap();
    changes.commit().await.unwrap();
    while app.evidence.follow_once().await.unwrap() {}
    assert_eq!(claim(&app, "c1").await.independent_sources, 2);
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Verified);
    assert_audited(world).await;
}
