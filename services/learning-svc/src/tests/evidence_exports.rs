//! Exports of a task's materials.

use std::collections::BTreeMap;

use emend_core::{
    EdgeRelation,
    evidence::{EvidenceId, TrustLevel},
};
use emend_proto::learning::v1::{self as pb, export_materials_response::Line as PbLine, node_ref::Node};
use futures::TryStreamExt as _;

use crate::{
    capabilities::Capabilities,
    evidence::grpc::{parse, reads},
    export_slots::ExportSlots,
    tests::{
        evidence::{support, upsert},
        evidence_reads::{all_reviews, edge_is, materials},
        on_both_databases,
        world::{World, namespace, one},
    },
};

on_both_databases!(
    an_export_has_everything_of_the_task_and_nothing_else,
    an_export_is_one_state_whatever_changes_meanwhile,
    a_task_of_ten_thousand_edges_is_exported_in_pages,
    no_more_exports_run_at_once_than_there_are_slots,
);

/// The ids of an export's lines by sort, which come in this order.
fn ids(lines: &[PbLine]) -> BTreeMap<&'static str, Vec<String>> {
    let mut ids: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for line in lines {
        let (sort, id) = match line {
            PbLine::Page(page) => ("1 pages", page.page.clone().unwrap().page_id),
            PbLine::Fragment(fragment) => ("2 fragments", fragment.fragment_id.clone()),
            PbLine::Claim(claim) => ("3 claims", claim.claim_id.clone()),
            PbLine::Edge(edge) => ("4 edges", edge.edge_id.clone()),
        };
        assert!(
            ids.last_key_value().is_none_or(|(last, _)| *last <= sort),
            "{sort} come before what names them"
        );
        ids.entry(sort).or_default().push(id);
    }
    ids
}

async fn an_export_has_everything_of_the_task_and_nothing_else(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    upsert(&app, &support(2, "example.net", "c1", 2, 0.8)).await;
    let mut other = support(3, "other.example", "c2", 1, 0.9);
    other.claims[0].task_id = "t2".into();
    other.edges[0].task_id = "t2".into();
    upsert(&app, &other).await;
    // A claim of another task that one of this task's edges names, found on a page of its own.
    let mut between = support(4, "linked.example", "c3", 1, 0.7);
    between.fragments.clear();
    between.claims[0].task_id = "t2".into();
    between.claims[0].page_id = "p4".into();
    between.edges[0].source = Some(pb::NodeRef {
        node: Some(Node::ClaimId("c1".into())),
    });
    upsert(&app, &between).await;
    one(&app, &edge_is(world, "e1", EdgeRelation::Refutes)).await;

    let lines = materials(&app, "t1").await;
    let found: Vec<Vec<String>> = ids(&lines).into_values().collect();
    assert_eq!(
        found,
        [
            vec!["p1", "p2", "p4"],
            vec!["f1", "f2"],
            vec!["c1", "c3"],
            vec!["e1", "e2", "e4"],
        ]
    );
    for line in &lines {
        match line {
            PbLine::Claim(claim) if claim.claim_id == "c1" => {
                let confidence = claim.confidence.as_ref().unwrap();
                assert_eq!((confidence.refuting_count, confidence.evidence_count), (2, 2));
            }
            PbLine::Edge(edge) if edge.edge_id == "e4" => {
                assert_eq!(edge.target_domain, "linked.example");
                assert_eq!(edge.target_level, TrustLevel::Unverified.number());
            }
            PbLine::Edge(edge) if edge.edge_id == "e1" => {
                assert!(edge.corrected && edge.confidence == Some(1.0));
                assert_eq!(edge.source_level, TrustLevel::Unverified.number());
            }
            _ => {}
        }
    }
    let slot = ExportSlots::default().take().unwrap();
    let unknown = EvidenceId::parse("t9").unwrap();
    let refused = app
        .evidence
        .export_materials(&namespace(), &unknown, false, slot)
        .await;
    assert!(refused.is_err(), "nothing was upserted for it");
}

async fn an_export_is_one_state_whatever_changes_meanwhile(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let slot = ExportSlots::default().take().unwrap();
    let task = EvidenceId::parse("t1").unwrap();
    let export = app
        .evidence
        .export_materials(&namespace(), &task, false, slot)
        .await
        .unwrap();
    upsert(&app, &support(2, "example.net", "c1", 1, 0.9)).await;
    one(&app, &edge_is(world, "e1", EdgeRelation::Refutes)).await;
    let pages: Vec<Vec<_>> = export.pages().try_collect().await.unwrap();
    let lines = pages.into_iter().flatten();
    let lines: Vec<PbLine> = lines.filter_map(|line| reads::line(line).line).collect();
    assert_eq!(lines.len(), 4, "as of when it began");
    for line in lines {
        match line {
            PbLine::Claim(claim) => assert_eq!(claim.confidence.unwrap().supporting_count, 1),
            PbLine::Edge(edge) => assert!(!edge.reviewed),
            _ => {}
        }
    }
}

/// Edges of fragments of two hundred pages to fifty claims.
async fn large_task(app: &Capabilities, edges: usize) {
    for first in (0..edges).step_by(400) {
        let numbers = first..(first + 400).min(edges);
        let mut request = pb::UpsertEvidenceRequest {
            namespace: "fund-admin".into(),
            ..pb::UpsertEvidenceRequest::default()
        };
        if first == 0 {
            let pages = (0..200).map(|number| support(number, "example.org", "c0", 1, 0.9).pages.remove(0));
            request.pages.extend(pages);
            let claims = (0..50).map(|number| {
                let claim = format!("c{number}");
                support(0, "example.org", &claim, 1, 0.9).claims.remove(0)
            });
            request.claims.extend(claims);
        }
        for number in numbers {
            let claim = format!("c{}", number % 50);
            let mut one = support(number, "example.org", &claim, 1, 0.9);
            one.fragments[0].page_id = format!("p{}", number % 200);
            request.fragments.append(&mut one.fragments);
            request.edges.append(&mut one.edges);
        }
        if first == 0 {
            let nodes = pb::UpsertEvidenceRequest {
                fragments: Vec::new(),
                edges: Vec::new(),
                ..request.clone()
            };
            upsert(app, &nodes).await;
            request.pages.clear();
            request.claims.clear();
        }
        app.evidence
            .upsert(&parse::upsert(&request).unwrap())
            .await
            .unwrap();
    }
}

async fn a_task_of_ten_thousand_edges_is_exported_in_pages(world: &World) {
    let app = world.instance().await;
    large_task(&app, 10_000).await;
    let lines = materials(&app, "t1").await;
    let counts: Vec<usize> = ids(&lines).into_values().map(|ids| ids.len()).collect();
    assert_eq!(counts, [200, 10_000, 50, 10_000]);
    let distinct: std::collections::BTreeSet<String> = ids(&lines).into_values().flatten().collect();
    assert_eq!(distinct.len(), 20_250, "nothing twice");
}

async fn no_more_exports_run_at_once_than_there_are_slots(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let slots = ExportSlots::default();
    let mut exports = Vec::new();
    for _ in 0..2 {
        let slot = slots.take().unwrap();
        exports.push(
            app.evidence
                .export_corrections(all_reviews(), slot)
                .await
                .unwrap()
                .pages(),
        );
    }
    assert_eq!(slots.take().unwrap_err().reason(), "EXPORTS_BUSY");
    exports.pop();
    assert!(slots.take().is_ok(), "its client went away");
}
