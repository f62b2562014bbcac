//! Decisions about claims and labels of edges: what is in force, in which task it was said, and what a node answers.

use emend_core::{EdgeRelation, Kind, Namespace};
use emend_proto::{
    common::v1::{Cause, OutcomeState, ResourceKey, correction::Correction as Form},
    feedback::v1::{Feedback, GetFeedbackRequest},
    learning::v1::{CandidateStatus, DeleteResourceRequest, PutResourceRequest, Revision},
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, answered,
        clients::Learning,
        node::Node,
        refused,
        rpc::fields,
        says::{claim_key, corrects_edge, decides_claim, edge_key, supports, value_of},
    },
};

fn state(feedback: &Feedback) -> (OutcomeState, &str) {
    let outcome = feedback.outcome.as_ref().unwrap();
    (outcome.state(), &outcome.reason)
}

/// What a node answers about a claim, as one word.
fn claim(node: &Node, id: &str) -> Option<String> {
    let decided = node
        .view()
        .claim_state(&Namespace::parse(NAMESPACE).unwrap(), id)?;
    Some(decided.state.word().to_owned())
}

fn edge(node: &Node, id: &str) -> Option<EdgeRelation> {
    let decided = node
        .view()
        .edge_label(&Namespace::parse(NAMESPACE).unwrap(), id)?;
    Some(decided.relation)
}

/// Makes a claim and an edge to it known.
async fn upsert(learning: &Learning, claim_id: &str, edge_id: &str) {
    let mut graph = supports(1, "blog.example", claim_id, 0.9);
    graph.edges[0].edge_id = edge_id.into();
    answered(learning.evidence.clone().upsert_evidence(graph).await);
}

both_databases! {
    async fn the_newest_decision_about_a_claim_is_on_every_node(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        upsert(&learning, "Claim:12", "e1").await;
        let mut rejects = decides_claim("ana", " Claim:12", "rejected:SPAM");
        if let Some(Form::ClaimReject(of)) = rejects.correction.as_mut().unwrap().correction.as_mut() {
            of.task_id = "t-17".into();
        }
        let rejected = feedback.learn(rejects).await;
        let outcome = rejected.outcome.clone().unwrap();
        assert_eq!(outcome.state(), OutcomeState::Applied);
        assert_eq!(outcome.message, "Learned: claim “Claim:12” is rejected (SPAM). It applies.");
        let stored = GetFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: rejected.feedback_id.clone(),
        };
        let stored = answered(feedback.service.clone().get_feedback(stored).await).feedback.unwrap();
        let Some(Form::ClaimReject(of)) = stored.correction.unwrap().correction else { panic!("no rejection") };
        assert_eq!((&*of.claim_id, &*of.reason_code, &*of.task_id), ("Claim:12", "SPAM", "t-17"));
        node.until(outcome.revision).await;
        assert_eq!(claim(&node, "Claim:12").as_deref(), Some("rejected:SPAM"));
        assert_eq!(claim(&node, "claim:12"), None);

        let restored = feedback.learn(decides_claim("ben", "Claim:12", "restored")).await;
        node.until(learning.head().await).await;
        assert_eq!(claim(&node, "Claim:12").as_deref(), Some("restored"));
        // Each retraction brings back what was in force before.
        feedback.retract(&restored).await;
        node.until(learning.head().await).await;
        assert_eq!(claim(&node, "Claim:12").as_deref(), Some("rejected:SPAM"));
        let taken_back = feedback.retract(&rejected).await;
        assert_eq!(state(&taken_back), (OutcomeState::Withdrawn, "RETRACTED"));
        node.until(learning.head().await).await;
        assert_eq!(claim(&node, "Claim:12"), None);
        let causes: Vec<_> = learning.revisions().await.iter().map(Revision::cause).collect();
        assert_eq!(causes, [Cause::Retraction, Cause::Retraction, Cause::Ruling, Cause::Ruling]);
    }

    async fn an_edge_has_the_label_that_was_said_last(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        upsert(&learning, "c1", "edge:7").await;
        let first = feedback.learn(corrects_edge("ana", "edge:7", "refutes")).await;
        assert_eq!(state(&first), (OutcomeState::Applied, ""));
        feedback.learn(corrects_edge("ben", "edge:7", "neutral")).await;
        node.until(learning.head().await).await;
        assert_eq!(edge(&node, "edge:7"), Some(EdgeRelation::Neutral));
        // Who took back what is no longer in force changed nothing.
        assert_eq!(state(&feedback.retract(&first).await), (OutcomeState::NoEffect, "RETRACTED"));
        let candidates = learning.candidates_for("edge:7").await;
        assert_eq!(candidates.iter().filter(|of| of.status() == CandidateStatus::Applied).count(), 1);
    }

    async fn an_operator_puts_and_deletes_what_people_decided(system) {
        let learning = system.learning();
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        upsert(&learning, "c1", "c1").await;
        learning.put(claim_key("c1"), value_of(Kind::ClaimState, "rejected")).await;
        learning.put(edge_key("c1"), value_of(Kind::EdgeLabel, "supports")).await;
        node.until(learning.head().await).await;
        assert_eq!((claim(&node, "c1").as_deref(), edge(&node, "c1")), (Some("rejected"), Some(EdgeRelation::Supports)));
        let delete = async |key| {
            let request = DeleteResourceRequest { key: Some(key), ..DeleteResourceRequest::default() };
            answered(learning.resources.clone().delete_resource(request).await)
        };
        delete(claim_key("c1")).await;
        delete(edge_key("c1")).await;
        node.until(learning.head().await).await;
        assert_eq!((claim(&node, "c1"), edge(&node, "c1")), (None, None));
        // What deletes a label is no label, and an id has its bound.
        let put = async |key: ResourceKey, value| {
            let request = PutResourceRequest { key: Some(key), value: Some(value), ..PutResourceRequest::default() };
            refused(learning.resources.clone().put_resource(request).await)
        };
        let value = value_of(Kind::ClaimState, "rejected");
        assert_eq!(fields(&put(claim_key(&"x".repeat(257)), value).await), ["key.key"]);
    }
}
