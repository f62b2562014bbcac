//! Pages that share an id are one work and one source, also by way of other pages, in whatever order they are upserted.

use emend_base::Entropy;
use emend_core::evidence::{ClaimStatus, Combining, EvidenceId, joined};
use emend_proto::learning::v1 as pb;

use crate::{
    capabilities::Capabilities,
    tests::{
        erasure::assert_audited,
        evidence::{claim, support, upsert},
        evidence_levels::{settle, update_policy, verified},
        on_both_databases,
        world::{World, assert_sound, namespace},
    },
};

on_both_databases!(
    a_preprint_and_its_article_are_one_source_once_a_third_page_joins_them,
    what_a_page_is_no_longer_is_a_work_of_its_own_again,
    every_order_of_upserts_ends_in_the_same_works,
    pages_that_two_replicas_add_at_once_are_one_work,
);

/// A page that supports a claim, with its DOI, PubMed id and arXiv id.
fn paper(number: usize, claim: &str, [doi, pmid, arxiv]: [&str; 3]) -> pb::UpsertEvidenceRequest {
    let mut request = support(number, &format!("host{number}.example"), claim, 1, 0.9);
    request.pages[0].doi = doi.into();
    request.pages[0].pmid = pmid.into();
    request.pages[0].arxiv_id = arxiv.into();
    request
}

/// How many independent sources support a claim, what they weigh together, and where the claim stands.
async fn stands(app: &Capabilities, id: &str) -> (u64, u64, ClaimStatus) {
    let claim = claim(app, id).await;
    (claim.independent_sources, claim.evidence.supports, claim.status)
}

async fn a_preprint_and_its_article_are_one_source_once_a_third_page_joins_them(world: &World) {
    let app = world.instance().await;
    update_policy(&app, |policy| policy.combining = Combining::OnePerSource).await;
    upsert(&app, &paper(1, "c1", ["", "", "2101.00001"])).await;
    upsert(&app, &paper(2, "c1", ["10.1000/x", "", ""])).await;
    settle(&app).await;
    assert_eq!(stands(&app, "c1").await, (2, 1_800_000, ClaimStatus::Verified));
    assert_eq!(
        verified(&app, "host1.example").await.as_deref(),
        Some("low independent_support c1")
    );

    // An index has both ids, and says nothing itself.
    let mut index = paper(3, "c9", ["10.1000/x", "7", "2101.00001"]);
    index.fragments.clear();
    index.claims.clear();
    index.edges.clear();
    upsert(&app, &index).await;
    settle(&app).await;
    assert_eq!(stands(&app, "c1").await, (1, 900_000, ClaimStatus::Pending));
    assert_eq!(verified(&app, "host1.example").await, None, "its cause ended");
    // What comes later with any of the ids is the same source.
    upsert(&app, &paper(4, "c1", ["", "7", ""])).await;
    settle(&app).await;
    assert_eq!(stands(&app, "c1").await, (1, 900_000, ClaimStatus::Pending));
    assert_audited(world).await;
}

async fn what_a_page_is_no_longer_is_a_work_of_its_own_again(world: &World) {
    let app = world.instance().await;
    for (number, ids) in [
        (1, ["", "", "2101.00001"]),
        (2, ["10.1000/x", "", ""]),
        (3, ["10.1000/x", "", "2101.00001"]),
        (4, ["", "7", ""]),
    ] {
        upsert(&app, &paper(number, "c1", ids)).await;
    }
    assert_eq!(claim(&app, "c1").await.independent_sources, 2);
    // The third was mistaken: it is the fourth's work, and joins nothing else.
    upsert(&app, &paper(3, "c1", ["", "7", ""])).await;
    settle(&app).await;
    assert_eq!(claim(&app, "c1").await.independent_sources, 3);
    assert_audited(world).await;
    // Now it joins all of them, and then it is no work at all.
    upsert(&app, &paper(3, "c1", ["10.1000/x", "7", "2101.00001"])).await;
    settle(&app).await;
    assert_eq!(claim(&app, "c1").await.independent_sources, 1);
    assert_audited(world).await;
    upsert(&app, &paper(3, "c1", ["", "", ""])).await;
    settle(&app).await;
    assert_eq!(claim(&app, "c1").await.independent_sources, 4);
    assert_audited(world).await;
    assert_sound(&app).await;
}

async fn every_order_of_upserts_ends_in_the_same_works(world: &World) {
    let app = world.instance().await;
    let seed = std::env::var("EMEND_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| Entropy::system().uuid_v4().as_u64_pair().0);
    let dice = Entropy::seeded(seed);
    let draw = |sides: usize| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "0 <= fraction < 1, and few sides"
        )]
        let drawn = (dice.fraction() * sides as f64) as usize;
        drawn
    };
    let mut told = 0;
    for story in 0..12 {
        // Each page has some of the ids of its story, or none.
        let pages: Vec<[usize; 3]> = (0..8).map(|_| [draw(6), draw(6), draw(12)]).collect();
        let ids = |of: &[usize; 3]| -> Vec<(usize, usize)> {
            of.iter().copied().enumerate().filter(|(_, id)| *id < 3).collect()
        };
        let first = joined(pages.iter().map(ids));
        let of_claim: Vec<Vec<usize>> = (0..3)
            .map(|_| (0..8).filter(|_| draw(2) == 0).collect())
            .collect();
        let mut endings = Vec::new();
        for _ in 0..3 {
            told += 1;
            let mut order: Vec<usize> = (0..8).collect();
            for place in (1..8).rev() {
                order.swap(place, draw(place + 1));
            }
            for page in order {
                let [doi, pmid, arxiv] = pages[page];
                let named = |id: usize, text: String| if id < 3 { text } else { String::new() };
                let mut request = paper(
                    told * 100 + page,
                    "replaced below",
                    [
                        &named(doi, format!("10.1000/{told}-{doi}")),
                        &named(pmid, (told * 10 + pmid).to_string()),
                        &named(arxiv, format!("2101.{:05}", told * 10 + arxiv)),
                    ],
                );
                let (claims, edges) = (request.claims.remove(0), request.edges.remove(0));
                for (number, supporters) in of_claim.iter().enumerate() {
                    let mut claim = claims.clone();
                    claim.claim_id = format!("{told}-{number}");
                    if supporters.contains(&page) {
                        let mut edge = edges.clone();
                        edge.edge_id = format!("{}-{number}", edge.edge_id);
                        edge.target = Some(pb::NodeRef {
                            node: Some(pb::node_ref::Node::ClaimId(claim.claim_id.clone())),
                        });
                        request.edges.push(edge);
                    }
                    request.claims.push(claim);
                }
                upsert(&app, &request).await;
                if draw(3) == 0 {
                    app.evidence.verify_claims_once().await.unwrap();
                }
            }
            settle(&app).await;
            let mut ending = Vec::new();
            for number in 0..of_claim.len() {
                ending.push(stands(&app, &format!("{told}-{number}")).await);
            }
            endings.push(ending);
        }
        let due: Vec<u64> = of_claim
            .iter()
            .map(|supporters| {
                // A page without an id is a source by its domain: each has its own.
                let works: std::collections::BTreeSet<usize> =
                    supporters.iter().map(|page| first[*page]).collect();
                works.len() as u64
            })
            .collect();
        for ending in &endings {
            let counted: Vec<u64> = ending.iter().map(|(sources, ..)| *sources).collect();
            assert_eq!(counted, due, "EMEND_TEST_SEED={seed}, story {story}: {pages:?}");
            assert_eq!(
                ending, &endings[0],
                "EMEND_TEST_SEED={seed}, story {story}: {pages:?}"
            );
        }
    }
    assert_audited(world).await;
}

async fn pages_that_two_replicas_add_at_once_are_one_work(world: &World) {
    let (first, second) = (world.instance().await, world.instance().await);
    let add = |app: Capabilities, from: usize| async move {
        for number in (from..40).step_by(2) {
            // Each is joined with the one before it, which the other replica adds.
            let ids = [format!("10.1000/{}", number / 2), String::new(), String::new()];
            let mut request = paper(number, "c1", [&ids[0], "", ""]);
            request.pages[0].pmid = (number.div_ceil(2) + 1).to_string();
            upsert(&app, &request).await;
        }
    };
    tokio::join!(add(first.clone(), 0), add(second, 1));
    settle(&first).await;
    let c1 = claim(&first, "c1").await;
    assert_eq!((c1.evidence.supporting_count, c1.independent_sources), (40, 1));
    let evidence = first.evidence.graph();
    let last = [EvidenceId::parse("p39").unwrap()];
    let known = evidence.pages_known_as(&namespace(), &last, &[]).await.unwrap();
    assert_eq!(known.len(), 1);
    assert_audited(world).await;
}
