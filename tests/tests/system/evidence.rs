//! Evidence over the wire: what is upserted and corrected is listed, counted and exported.

use std::collections::BTreeMap;

use emend_proto::{
    common::v1::{OutcomeState, ResourceKind, correction::Correction as Form},
    feedback::v1::{ListFeedbackRequest, RedactFeedbackRequest, Wait},
    learning::v1::{
        CorrectionSample, EvidenceAction, EvidenceEvent, ExportCorrectionsRequest, ExportMaterialsRequest,
        GetClaimRequest, GetReviewStatsRequest, GetReviewStatsResponse, ListEdgesRequest,
        ListEvidenceEventsRequest, export_materials_response::Line,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        Feedback, Learning, NAMESPACE, answered, refused,
        says::{corrects_edge, supports},
    },
};
use tonic::Code;

async fn samples(learning: &Learning) -> Vec<CorrectionSample> {
    let request = ExportCorrectionsRequest {
        namespace: NAMESPACE.into(),
        test_percent: Some(0),
        ..ExportCorrectionsRequest::default()
    };
    let mut stream = answered(learning.evidence.clone().export_corrections(request).await);
    let mut samples = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        samples.push(message.sample.unwrap());
    }
    samples
}

async fn stats(learning: &Learning) -> GetReviewStatsResponse {
    let request = GetReviewStatsRequest {
        namespace: NAMESPACE.into(),
        ..GetReviewStatsRequest::default()
    };
    answered(learning.evidence.clone().get_review_stats(request).await)
}

async fn events(learning: &Learning, mut request: ListEvidenceEventsRequest) -> Vec<EvidenceEvent> {
    request.namespace = NAMESPACE.into();
    request.page_size = 2;
    let mut events = Vec::new();
    loop {
        let page = answered(
            learning
                .evidence
                .clone()
                .list_evidence_events(request.clone())
                .await,
        );
        events.extend(page.events);
        if page.next_page_token.is_empty() {
            return events;
        }
        request.page_token = page.next_page_token;
    }
}

/// Reviewed and corrected edges, counted from what people submitted and did not take back; all edges were predicted to support.
async fn recount(feedback: &Feedback) -> (i64, i64) {
    let request = ListFeedbackRequest {
        namespace: NAMESPACE.into(),
        page_size: 100,
        ..ListFeedbackRequest::default()
    };
    let mut all = answered(feedback.service.clone().list_feedback(request).await).feedback;
    // The newest counts, whether they are listed so or not.
    all.sort_by_key(|feedback| {
        let at = feedback.received_at.unwrap();
        (at.seconds, at.nanos)
    });
    let mut newest: BTreeMap<String, &str> = BTreeMap::new();
    for stored in &all {
        let outcome = stored.outcome.as_ref().unwrap();
        let Some(Form::EdgeCorrect(of)) = stored.correction.as_ref().and_then(|of| of.correction.as_ref())
        else {
            continue;
        };
        if outcome.state() != OutcomeState::Withdrawn {
            newest.insert(of.edge_id.clone(), of.correct_relation().as_str_name());
        }
    }
    let corrected = newest
        .values()
        .filter(|label| !label.ends_with("SUPPORTS"))
        .count();
    (
        i64::try_from(newest.len()).unwrap(),
        i64::try_from(corrected).unwrap(),
    )
}

both_databases! {
    async fn corrected_edges_are_listed_counted_and_exported(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for (number, host) in ["blog.example.org", "example.net", "example.com"].into_iter().enumerate() {
            let request = supports(number, host, "c1", 0.9);
            let added = answered(learning.evidence.clone().upsert_evidence(request).await).added;
            assert_eq!(added, if number == 0 { 4 } else { 3 });
        }
        let mut refutes = corrects_edge("ana", "e0", "refutes");
        refutes.reason = "it says the opposite".into();
        let refuted = feedback.learn(refutes).await;
        feedback.learn(corrects_edge("ben", "e1", "supports")).await;
        let neutral = feedback.learn(corrects_edge("ben", "e2", "neutral")).await;

        let request = ListEdgesRequest {
            namespace: NAMESPACE.into(),
            corrected: Some(true),
            ..ListEdgesRequest::default()
        };
        let edges = answered(learning.evidence.clone().list_edges(request).await).edges;
        assert_eq!(edges.len(), 2, "{edges:#?}");

        let counted = stats(&learning).await;
        assert_eq!((counted.reviewed, counted.corrected), (3, 2));
        assert_eq!((counted.reviewed, counted.corrected), recount(&feedback).await);
        assert!((counted.error_rate - 2.0 / 3.0).abs() < 1e-9);
        let found = samples(&learning).await;
        assert_eq!(found.len(), 2);
        let sample = &found[0];
        assert_eq!((&*sample.edge_id, &*sample.sample_id), ("e0", &*refuted.feedback_id));
        assert_eq!((&*sample.premise, &*sample.hypothesis), ("what fragment 0 says", "what c1 says"));
        assert_eq!((&*sample.reason, &*sample.reporter), ("it says the opposite", "ana"));
        assert_eq!(sample.predicted_confidence, Some(0.9));
        assert!(found.iter().all(|sample| !sample.is_test), "0 of 100 are test samples");

        let request = ExportMaterialsRequest { namespace: NAMESPACE.into(), task_id: "t1".into(), both_readings: true };
        let mut stream = answered(learning.evidence.clone().export_materials(request).await);
        let mut lines = [0; 4];
        while let Some(message) = stream.message().await.unwrap() {
            match message.line.unwrap() {
                Line::Page(_) => lines[0] += 1,
                Line::Fragment(_) => lines[1] += 1,
                Line::Claim(claim) => {
                    lines[2] += 1;
                    let confidence = claim.confidence.unwrap();
                    assert_eq!((confidence.alpha, confidence.beta), (1.9, 2.0), "a person is sure");
                    assert_eq!(claim.count_all, Some(confidence));
                    assert_eq!(claim.one_per_source.unwrap().evidence_count, 3);
                }
                Line::Edge(_) => lines[3] += 1,
            }
        }
        assert_eq!(lines, [3, 3, 1, 3]);
        let request = GetClaimRequest { namespace: NAMESPACE.into(), claim_id: "c1".into(), both_readings: true };
        let read = answered(learning.evidence.clone().get_claim(request.clone()).await).claim.unwrap();
        assert_eq!((read.count_all, read.one_per_source.unwrap().evidence_count), (read.confidence, 3));
        let request = GetClaimRequest { both_readings: false, ..request };
        let read = answered(learning.evidence.clone().get_claim(request).await).claim.unwrap();
        assert_eq!((read.count_all, read.one_per_source), (None, None));
        let request = ExportMaterialsRequest { namespace: NAMESPACE.into(), task_id: "t9".into(), ..Default::default() };
        let refusal = refused(learning.evidence.clone().export_materials(request).await);
        assert_eq!(refusal.code, Code::NotFound);

        // Taken back: as before. Redacted: nobody says why any more.
        feedback.retract(&neutral).await;
        let counted = stats(&learning).await;
        assert_eq!((counted.reviewed, counted.corrected), (2, 1));
        assert_eq!((counted.reviewed, counted.corrected), recount(&feedback).await);
        let of_edge = ListEvidenceEventsRequest {
            kind: ResourceKind::EdgeLabel.into(),
            target: "e2".into(),
            ..ListEvidenceEventsRequest::default()
        };
        let told: Vec<_> = events(&learning, of_edge)
            .await
            .iter()
            .map(|event| (event.action(), event.before.clone(), event.after.clone()))
            .collect();
        let none = String::new;
        assert_eq!(told, [
            (EvidenceAction::Retracted, "neutral".to_owned(), none()),
            (EvidenceAction::Corrected, none(), "neutral".to_owned()),
        ]);
        // What the system made of it is told, too.
        let of_people = async || {
            let mut all = events(&learning, ListEvidenceEventsRequest::default()).await;
            all.retain(|event| event.actor.as_ref().is_some_and(|actor| actor.caller != "system"));
            all
        };
        let all = of_people().await;
        assert_eq!(all.len(), 4);
        assert_eq!(all[3].reason, "it says the opposite");
        let redaction = RedactFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: refuted.feedback_id.clone(),
            wait: Wait::Evaluated.into(),
        };
        answered(feedback.service.clone().redact_feedback(redaction).await);
        let found = samples(&learning).await;
        assert_eq!((&*found[0].reason, &*found[0].reporter), ("", ""));
        let all = of_people().await;
        assert!(all.iter().all(|event| event.reason.is_empty()), "{all:#?}");
        assert_eq!(found.len(), 1, "what it counted for stays");
    }
}
