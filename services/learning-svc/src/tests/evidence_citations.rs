//! Papers related to a paper, ranked.

use emend_base::Error;
use emend_core::{EdgeRelation, evidence::WorkId};
use emend_proto::learning::v1 as pb;
use learning_store::evidence::{EdgeFilter, EdgePosition, EdgeRecord};

use crate::{
    capabilities::Capabilities,
    evidence::{
        citations::RankedCitations,
        grpc::{citations, parse},
    },
    tests::{
        on_both_databases,
        world::{World, assert_sound, namespace},
    },
};

on_both_databases!(
    a_new_theory_is_not_left_an_isolated_node,
    ranking_again_changes_nothing,
    papers_with_an_id_in_common_are_one_page,
    the_best_come_first_and_equal_ones_as_given,
    an_unknown_paper_is_not_found,
    a_page_that_is_there_stays_as_it_is,
    a_page_without_a_domain_takes_the_first_that_is_known,
    what_only_leads_to_papers_is_the_source_of_none,
    a_page_that_is_there_under_another_id_is_used,
    an_abstract_is_a_fragment_whose_edges_can_be_labelled,
);

fn related(page: &str, influential: bool, relevance: f64) -> pb::RelatedPaper {
    pb::RelatedPaper {
        page: Some(pb::EvidencePage {
            page_id: page.into(),
            domain: "journal.example.org".into(),
            ..pb::EvidencePage::default()
        }),
        r#abstract: "What it says.".into(),
        is_influential: influential,
        similarity: 0.5,
        relevance,
        cites_the_paper: false,
        other_page_ids: Vec::new(),
    }
}

fn request(related: Vec<pb::RelatedPaper>) -> pb::RankCitationsRequest {
    pb::RankCitationsRequest {
        namespace: "fund-admin".into(),
        page_id: "paper".into(),
        related,
        keep: 0,
        task_id: "t1".into(),
    }
}

/// An instance that knows the paper.
async fn with_paper(world: &World) -> Capabilities {
    let app = world.instance().await;
    let paper = related("paper", false, 0.0).page;
    let upsert = pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        pages: paper.into_iter().collect(),
        ..pb::UpsertEvidenceRequest::default()
    };
    let upsert = parse::upsert(&upsert).unwrap();
    app.evidence.upsert(&upsert).await.unwrap();
    app
}

async fn rank(app: &Capabilities, related: Vec<pb::RelatedPaper>) -> Result<RankedCitations, Error> {
    app.evidence
        .rank_citations(&citations::parse(&request(related)).unwrap())
        .await
}

fn pages(ranked: &RankedCitations) -> Vec<&str> {
    ranked.best.iter().map(|paper| paper.page.as_str()).collect()
}

async fn edges(app: &Capabilities) -> Vec<EdgeRecord> {
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
    edges.into_iter().map(|(_, edge)| edge).collect()
}

async fn a_new_theory_is_not_left_an_isolated_node(world: &World) {
    let app = with_paper(world).await;
    let cited = related("cited", true, 0.5);
    let citing = pb::RelatedPaper {
        cites_the_paper: true,
        ..related("citing", false, 0.5)
    };
    let unread = pb::RelatedPaper {
        r#abstract: " ".into(),
        ..related("unread", true, 1.0)
    };
    let ranked = rank(&app, vec![citing, unread, cited]).await.unwrap();
    assert_eq!(pages(&ranked), ["cited", "citing"]);
    assert_eq!(ranked.to_fetch[0].as_str(), "unread");
    let edges = edges(&app).await;
    let ends: Vec<_> = ranked
        .best
        .iter()
        .map(|paper| {
            let edge = edges.iter().find(|edge| edge.id == paper.edge).unwrap();
            assert_eq!((edge.relation, edge.task.as_str()), (EdgeRelation::Cites, "t1"));
            (edge.source.to_string(), edge.target.to_string())
        })
        .collect();
    let end = |of: &str| format!("page:{of}");
    assert_eq!(
        ends,
        [(end("paper"), end("cited")), (end("citing"), end("paper"))],
        "who cites leads to who is cited"
    );
    assert_eq!(edges.len(), 2, "nothing of the paper without an abstract");
}

async fn ranking_again_changes_nothing(world: &World) {
    let app = with_paper(world).await;
    let papers = vec![related("a", true, 0.5), related("b", false, 0.5)];
    let ranked = rank(&app, papers.clone()).await.unwrap();
    let before = edges(&app).await;
    assert_eq!(rank(&app, papers.clone()).await.unwrap(), ranked);
    let after = edges(&app).await;
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    let again = pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        pages: papers.into_iter().filter_map(|paper| paper.page).collect(),
        ..pb::UpsertEvidenceRequest::default()
    };
    let again = app
        .evidence
        .upsert(&parse::upsert(&again).unwrap())
        .await
        .unwrap();
    assert_eq!(again.upserted.added, 0, "they are pages");
}

async fn papers_with_an_id_in_common_are_one_page(world: &World) {
    let app = with_paper(world).await;
    let with = |page: &str, doi: &str, pmid: &str, arxiv: &str| {
        let mut paper = related(page, false, 0.5);
        if let Some(page) = &mut paper.page {
            (page.doi, page.pmid, page.arxiv_id) = (doi.into(), pmid.into(), arxiv.into());
        }
        paper
    };
    let papers = vec![
        with("a", "10.1000/A", "", ""),
        with("b", "", "7", ""),
        with("other", "10.1000/z", "", ""),
        with("c", "", "", "2101.00001v2"),
        // These join those before; the last one repeats a page.
        with("d", "https://doi.org/10.1000/a", "7", ""),
        pb::RelatedPaper {
            cites_the_paper: true,
            is_influential: true,
            ..with("c", "", "pmid:7", "2101.00001")
        },
    ];
    let ranked = rank(&app, papers).await.unwrap();
    assert_eq!((pages(&ranked), ranked.merged), (vec!["a", "other"], 4));
    assert_eq!(ranked.best[0].score.to_string(), "0.75");
    let edges = edges(&app).await;
    assert_eq!(
        edges.len(),
        3,
        "where two cite each other there is an edge each way"
    );
    let first = edges.iter().find(|edge| edge.id == ranked.best[0].edge).unwrap();
    assert_eq!(first.source.to_string(), "page:paper");
}

async fn the_best_come_first_and_equal_ones_as_given(world: &World) {
    let app = with_paper(world).await;
    let mut papers = vec![
        related("third", false, 0.2),
        related("fourth", false, 0.2),
        related("first", true, 0.0),
        related("second", false, 1.0),
    ];
    papers.extend((0..9).map(|number| related(&format!("more{number}"), false, 0.1)));
    let ranked = rank(&app, papers.clone()).await.unwrap();
    assert_eq!(
        pages(&ranked)[..5],
        ["first", "second", "third", "fourth", "more0"]
    );
    assert_eq!(ranked.best.len(), 10, "unless another number is asked for");
    let two = pb::RankCitationsRequest {
        keep: 2,
        ..request(papers)
    };
    let two = app
        .evidence
        .rank_citations(&citations::parse(&two).unwrap())
        .await
        .unwrap();
    assert_eq!(pages(&two), ["first", "second"]);
}

async fn an_unknown_paper_is_not_found(world: &World) {
    let app = world.instance().await;
    let unread = pb::RelatedPaper {
        r#abstract: String::new(),
        ..related("unread", false, 0.0)
    };
    for papers in [vec![related("a", true, 0.5)], vec![unread]] {
        let refused = rank(&app, papers).await.unwrap_err();
        assert!(
            matches!(&refused, Error::NotFound { id, .. } if id == "paper"),
            "{refused}"
        );
    }
}

async fn what_only_leads_to_papers_is_the_source_of_none(world: &World) {
    let app = with_paper(world).await;
    let at = |page: &str, domain: &str, url: &str| {
        let mut paper = related(page, false, 0.5);
        if let Some(page) = &mut paper.page {
            (page.domain, page.url) = (domain.into(), url.into());
        }
        pb::RelatedPaper {
            cites_the_paper: true,
            ..paper
        }
    };
    let papers = vec![
        at("a", "", "https://doi.org/10.1000/a"),
        at("b", "dx.doi.org", ""),
        at("c", "", "https://openalex.org/W1"),
        at("d", "", ""),
        at("e", "", "https://journal.example.org/e"),
    ];
    let ranked = rank(&app, papers.clone()).await.unwrap();
    assert_eq!(pages(&ranked), ["a", "b", "c", "d", "e"]);
    let edges = edges(&app).await;
    let hosts: Vec<_> = ranked
        .best
        .iter()
        .map(|paper| {
            let edge = edges.iter().find(|edge| edge.id == paper.edge).unwrap();
            edge.source_host.as_ref().map(|host| host.name.as_str())
        })
        .collect();
    assert_eq!(hosts, [None, None, None, None, Some("journal.example.org")]);
    assert_eq!(
        rank(&app, papers).await.unwrap(),
        ranked,
        "again it changes nothing"
    );
    assert_sound(&app).await;
}

async fn a_page_that_is_there_under_another_id_is_used(world: &World) {
    let app = with_paper(world).await;
    let page = |id: &str, doi: &str, pmid: &str| pb::EvidencePage {
        page_id: id.into(),
        domain: "archive.example.org".into(),
        doi: doi.into(),
        pmid: pmid.into(),
        ..pb::EvidencePage::default()
    };
    let there = pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        pages: vec![
            page("web:1", "10.1000/x", ""),
            page("web:2", "", "7"),
            page("openalex:W3", "", ""),
            page("same", "10.1000/p", ""),
        ],
        ..pb::UpsertEvidenceRequest::default()
    };
    app.evidence
        .upsert(&parse::upsert(&there).unwrap())
        .await
        .unwrap();
    let given = |id: &str, doi: &str, pmid: &str, other: &str| {
        let mut paper = related(id, false, 0.5);
        if let Some(page) = &mut paper.page {
            (page.doi, page.pmid) = (doi.into(), pmid.into());
        }
        paper.other_page_ids = vec![other.to_owned()];
        paper
    };
    let papers = vec![
        given("doi:10.1000/x", "https://doi.org/10.1000/X", "", "openalex:W1"),
        given("pmid:7", "", "7", "semanticscholar:2"),
        given("doi:10.1000/z", "10.1000/z", "", "openalex:W3"),
        given("doi:10.1000/new", "10.1000/new", "", "openalex:W4"),
    ];
    let ranked = rank(&app, papers.clone()).await.unwrap();
    assert_eq!(
        pages(&ranked),
        ["web:1", "web:2", "openalex:W3", "doi:10.1000/new"]
    );
    assert_eq!(ranked.best[0].given.as_str(), "doi:10.1000/x");
    assert_eq!(rank(&app, papers).await.unwrap(), ranked);
    assert_eq!(edges(&app).await.len(), 4, "no page is there twice");
    // The paper itself, under another of its ids.
    let itself = pb::RankCitationsRequest {
        page_id: "same".into(),
        ..request(vec![given("doi:10.1000/p", "10.1000/p", "", "openalex:W9")])
    };
    let itself = app
        .evidence
        .rank_citations(&citations::parse(&itself).unwrap())
        .await
        .unwrap();
    assert_eq!(pages(&itself), [""; 0]);
}

async fn an_abstract_is_a_fragment_whose_edges_can_be_labelled(world: &World) {
    let app = with_paper(world).await;
    let ranked = rank(&app, vec![related("a", true, 0.5)]).await.unwrap();
    let fragment = ranked.best[0].fragment.to_string();
    let labelled = pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        fragments: vec![pb::EvidenceFragment {
            fragment_id: fragment.clone(),
            page_id: "a".into(),
            text: "What it says.".into(),
        }],
        claims: vec![pb::EvidenceClaim {
            claim_id: "c1".into(),
            text: "It holds.".into(),
            ..pb::EvidenceClaim::default()
        }],
        edges: vec![pb::EvidenceEdge {
            edge_id: "e1".into(),
            relation: EdgeRelation::Supports.number(),
            source: Some(pb::NodeRef {
                node: Some(pb::node_ref::Node::FragmentId(fragment)),
            }),
            target: Some(pb::NodeRef {
                node: Some(pb::node_ref::Node::ClaimId("c1".into())),
            }),
            ..pb::EvidenceEdge::default()
        }],
        ..pb::UpsertEvidenceRequest::default()
    };
    let added = app
        .evidence
        .upsert(&parse::upsert(&labelled).unwrap())
        .await
        .unwrap();
    assert_eq!(
        added.upserted.added, 2,
        "the fragment was there: only the claim and the edge are new"
    );
}

async fn a_page_that_is_there_stays_as_it_is(world: &World) {
    let app = with_paper(world).await;
    let page = |doi: &str, arxiv: &str, domain: &str| pb::EvidencePage {
        page_id: "a".into(),
        domain: domain.into(),
        doi: doi.into(),
        arxiv_id: arxiv.into(),
        ..pb::EvidencePage::default()
    };
    let there = pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        pages: vec![page("10.1000/x", "2101.00001", "journal.example.org")],
        ..pb::UpsertEvidenceRequest::default()
    };
    app.evidence
        .upsert(&parse::upsert(&there).unwrap())
        .await
        .unwrap();
    // Given without the arXiv id, with another domain, and once more by that id alone.
    let mut moved = related("a", false, 0.5);
    moved.page = Some(page("10.1000/x", "", "elsewhere.example.org"));
    let mut preprint = related("b", false, 0.4);
    if let Some(page) = &mut preprint.page {
        page.arxiv_id = "2101.00001".into();
    }
    let ranked = rank(&app, vec![moved, preprint]).await.unwrap();
    assert_eq!((pages(&ranked), ranked.merged), (vec!["a"], 1));
    let evidence = app.evidence.graph();
    let work = [WorkId::arxiv("2101.00001").unwrap()];
    let known = evidence.pages_known_as(&namespace(), &[], &work).await.unwrap();
    assert_eq!(known[0].id.as_str(), "a", "it kept its id");
    let edges = edges(&app).await;
    assert_eq!(edges[0].target_host.as_ref().unwrap().name, "journal.example.org");
    assert_sound(&app).await;
}

async fn a_page_without_a_domain_takes_the_first_that_is_known(world: &World) {
    let app = with_paper(world).await;
    let mut unknown = related("a", false, 0.5);
    if let Some(page) = &mut unknown.page {
        page.domain.clear();
    }
    rank(&app, vec![unknown]).await.unwrap();
    assert_eq!(edges(&app).await[0].target_host, None);
    let upsert = |domain: &str| {
        let mut page = related("a", false, 0.5).page.unwrap();
        page.domain = domain.into();
        let request = pb::UpsertEvidenceRequest {
            namespace: "fund-admin".into(),
            pages: vec![page],
            ..pb::UpsertEvidenceRequest::default()
        };
        parse::upsert(&request).unwrap()
    };
    app.evidence.upsert(&upsert("journal.example.org")).await.unwrap();
    let host = edges(&app).await.remove(0).target_host.unwrap();
    assert_eq!(host.name, "journal.example.org");
    assert!(
        app.evidence
            .upsert(&upsert("elsewhere.example.org"))
            .await
            .is_err()
    );
    assert_sound(&app).await;
}

#[test]
fn every_violation_of_a_request_is_named_at_once() {
    let mut wrong = related("a", false, f64::NAN);
    wrong.similarity = 1.1;
    let without_page = pb::RelatedPaper {
        page: None,
        ..related("", false, 0.0)
    };
    let refused = citations::parse(&pb::RankCitationsRequest {
        namespace: String::new(),
        keep: 101,
        ..request(vec![
            related("b", false, 0.0),
            related("b", false, 0.0),
            related("paper", false, 0.0),
            wrong,
            without_page,
        ])
    })
    .unwrap_err()
    .to_string();
    for part in [
        "namespace: must be 1 to 63 characters",
        "keep: must be 1 to 100",
        "related[1].page.page_id: is there twice",
        "related[2].page.page_id: must not be the paper itself",
        "related[3].similarity: must be a number from 0 to 1, is 1.1",
        "related[3].relevance: must be a number from 0 to 1, is NaN",
        "related[4].page: is required",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    for count in [0, 501] {
        let related = vec![related("a", false, 0.0); count];
        let refused = citations::parse(&request(related)).unwrap_err().to_string();
        assert!(refused.contains("must have 1 to 500 papers"), "{refused}");
    }
}
