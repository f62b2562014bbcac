//! What was upserted wrongly is replaced, and what should not be there is deleted with what hangs on it: everything that follows is
//! derived anew, and each is an event.

use emend_base::Error;
use emend_core::{
    Correction, EdgeRelation,
    evidence::{ClaimStatus, EvidenceId},
};
use emend_proto::learning::v1 as pb;
use learning_store::evidence::{
    EventFilter, EvidenceAction, Period, ReviewFilter,
    graph::{Deletion, Element, ElementSort},
};

use crate::{
    capabilities::Capabilities,
    evidence::{deletes::DeletedElements, grpc::parse},
    tests::{
        erasure::assert_audited,
        evidence::{claim, correction, edge, support, upsert},
        evidence_levels::{settle, verified},
        on_both_databases,
        world::{World, assert_sound, head, namespace, one, operator},
    },
};

on_both_databases!(
    what_was_upserted_wrongly_is_replaced_and_everything_follows,
    a_page_goes_with_its_fragments_and_edges_and_a_claim_found_on_it_stays,
    what_people_said_of_a_deleted_claim_waits_until_it_comes_back,
    a_deleted_page_no_longer_joins_works,
    more_than_one_step_is_deleted_whole,
);

fn id(id: &str) -> EvidenceId {
    EvidenceId::parse(id).unwrap()
}

fn deletion() -> Deletion {
    Deletion {
        namespace: namespace(),
        pages: Vec::new(),
        fragments: Vec::new(),
        claims: Vec::new(),
        edges: Vec::new(),
        reason: "a mistake".into(),
        actor: operator(),
    }
}

async fn replace(app: &Capabilities, request: &pb::UpsertEvidenceRequest) -> Result<(), Error> {
    let upsert = parse::upsert(request).unwrap();
    app.evidence.replace(&upsert, operator()).await.map(|_| ())
}

/// What was done to an element, the newest first: what, before, after.
async fn events(
    app: &Capabilities,
    sort: ElementSort,
    element_id: &str,
) -> Vec<(EvidenceAction, String, String)> {
    let filter = EventFilter {
        namespace: namespace(),
        target: None,
        element: Some(Element {
            sort,
            id: id(element_id),
        }),
        task: None,
        caller: None,
        period: Period::default(),
    };
    let (events, _) = app.evidence.events(&filter, None, 100).await.unwrap();
    let told = events.into_iter().map(|(_, event)| {
        assert_eq!(event.actor, operator());
        (event.action, event.before, event.after)
    });
    told.collect()
}

fn told(action: EvidenceAction, before: &str, after: &str) -> (EvidenceAction, String, String) {
    (action, before.to_owned(), after.to_owned())
}

async fn what_was_upserted_wrongly_is_replaced_and_everything_follows(world: &World) {
    let app = world.instance().await;
    let mut first = support(1, "blog.example", "c1", 1, 0.9);
    first.claims[0].page_id = "p1".into();
    first.claims[0].dangerous_patterns = vec!["injection".into()];
    upsert(&app, &first).await;
    upsert(&app, &support(2, "other.example", "c2", 1, 0.9)).await;
    upsert(&app, &support(3, "third.example", "c2", 1, 0.9)).await;
    settle(&app).await;
    assert_eq!(
        verified(&app, "blog.example").await.as_deref(),
        Some("blocked dangerous_pattern c1")
    );
    assert_eq!(claim(&app, "c2").await.status, ClaimStatus::Verified);

    // The page's domain was another one.
    first.pages[0].domain = "www.spam.example".into();
    let refused = app
        .evidence
        .upsert(&parse::upsert(&first).unwrap())
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("unless `replace` is set"),
        "{refused}"
    );
    replace(&app, &first).await.unwrap();
    settle(&app).await;
    assert_eq!(verified(&app, "blog.example").await, None);
    assert_eq!(
        verified(&app, "spam.example").await.as_deref(),
        Some("blocked dangerous_pattern c1")
    );
    assert_eq!(
        edge(&app, "e1").await.source_host.unwrap().name,
        "www.spam.example"
    );
    assert_eq!(
        events(&app, ElementSort::Page, "p1").await,
        [told(EvidenceAction::Replaced, "blog.example", "www.spam.example")]
    );
    replace(&app, &first).await.unwrap();
    assert_eq!(
        events(&app, ElementSort::Page, "p1").await.len(),
        1,
        "nothing was replaced"
    );
    assert_audited(world).await;

    // The third fragment is of the second page: one source is left.
    let mut third = support(3, "third.example", "c2", 1, 0.9);
    third.fragments[0].page_id = "p2".into();
    replace(&app, &third).await.unwrap();
    settle(&app).await;
    let c2 = claim(&app, "c2").await;
    assert_eq!((c2.independent_sources, c2.status), (1, ClaimStatus::Pending));
    assert_eq!(verified(&app, "third.example").await, None);
    assert_eq!(
        events(&app, ElementSort::Fragment, "f3").await,
        [told(EvidenceAction::Replaced, "p3", "p2")]
    );
    assert_audited(world).await;

    // The second edge is about the first claim.
    let mut second = support(2, "other.example", "c1", 1, 0.9);
    second.claims.clear();
    replace(&app, &second).await.unwrap();
    settle(&app).await;
    let counted = async |claim_id| claim(&app, claim_id).await.evidence.supporting_count;
    assert_eq!((counted("c1").await, counted("c2").await), (2, 1));
    assert_eq!(
        events(&app, ElementSort::Edge, "e2").await,
        [told(
            EvidenceAction::Replaced,
            "fragment:f2 supports claim:c2",
            "fragment:f2 supports claim:c1"
        )]
    );
    assert_audited(world).await;
    assert_sound(&app).await;
}

async fn a_page_goes_with_its_fragments_and_edges_and_a_claim_found_on_it_stays(world: &World) {
    let app = world.instance().await;
    let mut first = support(1, "blog.example", "c1", 1, 0.9);
    first.claims[0].page_id = "p1".into();
    first.claims[0].dangerous_patterns = vec!["injection".into()];
    // The claim found on the page supports another one itself.
    let mut of_claim = support(9, "unused.example", "c2", 1, 0.9);
    of_claim.edges[0].source = Some(pb::NodeRef {
        node: Some(pb::node_ref::Node::ClaimId("c1".into())),
    });
    upsert(&app, &first).await;
    upsert(&app, &of_claim).await;
    upsert(&app, &support(2, "other.example", "c1", 1, 0.9)).await;
    settle(&app).await;
    assert_eq!(claim(&app, "c2").await.independent_sources, 1);

    let mut of_page = deletion();
    of_page.pages = vec![id("p1"), id("unknown")];
    let deleted = app.evidence.delete(&of_page).await.unwrap();
    let expected = DeletedElements {
        pages: 1,
        fragments: 1,
        claims: 0,
        edges: 1,
    };
    assert_eq!(deleted, expected);
    settle(&app).await;
    let c1 = claim(&app, "c1").await;
    assert_eq!(
        (c1.page.as_str(), c1.source, c1.evidence.supporting_count),
        ("", None, 1)
    );
    assert_eq!(
        verified(&app, "blog.example").await,
        None,
        "nobody knows where it was found"
    );
    let c2 = claim(&app, "c2").await;
    assert_eq!((c2.independent_sources, c2.evidence.supporting_count), (0, 1));
    assert_eq!(
        events(&app, ElementSort::Page, "p1").await,
        [told(EvidenceAction::Deleted, "blog.example", "")]
    );
    assert_eq!(
        events(&app, ElementSort::Fragment, "f1").await,
        [told(EvidenceAction::Deleted, "p1", "")]
    );
    assert_eq!(
        events(&app, ElementSort::Edge, "e1").await,
        [told(EvidenceAction::Deleted, "fragment:f1 supports claim:c1", "")]
    );
    assert_eq!(
        events(&app, ElementSort::Claim, "c1").await,
        [told(EvidenceAction::Replaced, "p1", "")]
    );
    assert_eq!(
        app.evidence.delete(&of_page).await.unwrap(),
        DeletedElements::default()
    );
    assert_audited(world).await;
    // It may come back, also elsewhere.
    first.pages[0].domain = "elsewhere.example".into();
    upsert(&app, &first).await;
    settle(&app).await;
    assert_eq!(
        verified(&app, "elsewhere.example").await.as_deref(),
        Some("blocked dangerous_pattern c1")
    );
    assert_audited(world).await;
    assert_sound(&app).await;
}

async fn what_people_said_of_a_deleted_claim_waits_until_it_comes_back(world: &World) {
    let app = world.instance().await;
    let request = support(1, "blog.example", "c1", 1, 0.9);
    upsert(&app, &request).await;
    let refutes = Correction::parse_edge("e1", Ok(EdgeRelation::Refutes), "").unwrap();
    one(&app, &correction(world, &refutes)).await;
    one(
        &app,
        &correction(world, &Correction::parse_claim_reject("c1", "SPAM", "").unwrap()),
    )
    .await;
    settle(&app).await;
    let before = head(&app).await;
    let reviewed = async || {
        let all = ReviewFilter {
            namespace: namespace(),
            task: None,
            predicted: None,
            correct: Vec::new(),
            period: Period::default(),
        };
        app.evidence.review_stats(&all).await.unwrap().reviewed
    };
    assert_eq!(reviewed().await, 1);

    let mut of_claim = deletion();
    of_claim.claims = vec![id("c1")];
    let deleted = app.evidence.delete(&of_claim).await.unwrap();
    assert_eq!((deleted.claims, deleted.edges), (1, 1));
    settle(&app).await;
    let gone = app.evidence.claim(&namespace(), &id("c1"), false).await;
    assert!(gone.is_err());
    assert_eq!(reviewed().await, 0);
    assert!(
        app.store.contents().await.unwrap().resources.is_empty(),
        "neither is in force"
    );
    assert_eq!(head(&app).await, before + 2, "one revision for each step");
    assert_audited(world).await;

    let done = app
        .evidence
        .upsert(&parse::upsert(&request).unwrap())
        .await
        .unwrap();
    assert_eq!((done.arrived.corrections, done.arrived.applied), (2, 2));
    settle(&app).await;
    assert_eq!(claim(&app, "c1").await.status, ClaimStatus::Rejected);
    assert_eq!(edge(&app, "e1").await.relation, EdgeRelation::Refutes);
    assert_eq!(reviewed().await, 1);
    assert_audited(world).await;
    assert_sound(&app).await;
}

async fn a_deleted_page_no_longer_joins_works(world: &World) {
    let app = world.instance().await;
    for (number, doi, pmid) in [(1, "10.1000/x", ""), (2, "", "7"), (3, "10.1000/x", "7")] {
        let mut request = support(number, &format!("host{number}.example"), "c1", 1, 0.9);
        request.pages[0].doi = doi.into();
        request.pages[0].pmid = pmid.into();
        upsert(&app, &request).await;
    }
    settle(&app).await;
    assert_eq!(claim(&app, "c1").await.independent_sources, 1);
    let mut of_page = deletion();
    of_page.pages = vec![id("p3")];
    app.evidence.delete(&of_page).await.unwrap();
    settle(&app).await;
    let c1 = claim(&app, "c1").await;
    assert_eq!((c1.independent_sources, c1.status), (2, ClaimStatus::Verified));
    assert_audited(world).await;
    assert_sound(&app).await;
}

async fn more_than_one_step_is_deleted_whole(world: &World) {
    let app = world.instance().await;
    let mut request = support(1, "blog.example", "c1", 1, 0.9);
    let edge = request.edges.remove(0);
    for number in 0..900 {
        let mut edge = edge.clone();
        edge.edge_id = format!("edge {number}");
        request.edges.push(edge);
    }
    upsert(&app, &request).await;
    let mut all = deletion();
    all.pages = vec![id("p1")];
    all.claims = vec![id("c1")];
    let deleted = app.evidence.delete(&all).await.unwrap();
    let expected = DeletedElements {
        pages: 1,
        fragments: 1,
        claims: 1,
        edges: 900,
    };
    assert_eq!(deleted, expected);
    settle(&app).await;
    assert_audited(world).await;
    assert_sound(&app).await;
}
