//! Synonyms: one correction with several effects, rivals of one pair, and what a node expands a term to.

use emend_core::Namespace;
use emend_proto::{
    common::v1::{
        Cause, OutcomeState, ResourceKey, ResourceKind, ResourceValue, SynonymRelation, SynonymValue,
        resource_value::Value,
    },
    learning::v1::{CandidateStatus, ImportAs, ImportHeader, ImportMode, ImportRow, PutResourceRequest},
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, node::Node, refused, rpc::fields, says, says::synonyms},
};
use tonic::Code;

const EQUIVALENT: SynonymRelation = SynonymRelation::Equivalent;

fn key(term: &str, representative: &str) -> ResourceKey {
    ResourceKey {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::Synonym.into(),
        key: term.into(),
        qualifier: representative.into(),
        user_id: String::new(),
    }
}

fn value(relation: SynonymRelation, representative: &str) -> ResourceValue {
    ResourceValue {
        value: Some(Value::Synonym(SynonymValue {
            relation: relation.into(),
            representative: representative.into(),
        })),
        ..ResourceValue::default()
    }
}

fn expanded(node: &Node, term: &str) -> Vec<String> {
    let namespace = Namespace::parse(NAMESPACE).unwrap();
    node.view().synonyms(&namespace, term, None).unwrap()
}

both_databases! {
    async fn three_people_teach_a_set_and_one_takes_it_back(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        let board = || synonyms("フィールド", &["盤面", "ボード", "Field"], EQUIVALENT);
        let first = feedback.learn(says("ana", board())).await.outcome.unwrap();
        assert_eq!((first.state(), first.confirmations_needed), (OutcomeState::Pending, 2));
        feedback.learn(says("ben", board())).await;
        let third = feedback.learn(says("cai", board())).await;
        let outcome = third.outcome.clone().unwrap();
        assert_eq!(outcome.state(), OutcomeState::Applied);
        assert_eq!(outcome.effects.len(), 3);
        for (effect, term) in outcome.effects.iter().zip(["盤面", "ボード", "Field"]) {
            assert_eq!((effect.state(), effect.revision), (OutcomeState::Applied, outcome.revision));
            let learned = effect.what_was_learned.as_ref().unwrap();
            assert_eq!((learned.input.as_str(), learned.maps_to.as_str()), (term, "フィールド"));
        }
        let revisions = learning.revisions().await;
        assert_eq!(revisions[0].changes.len(), 3, "all of it is one revision");
        node.until(outcome.revision).await;
        assert_eq!(expanded(&node, "盤面"), ["フィールド", "Field", "ボード"]);
        assert_eq!(expanded(&node, "フィールド"), ["Field", "ボード", "盤面"]);

        let outcome = feedback.retract(&third).await.outcome.unwrap();
        assert_eq!(outcome.state(), OutcomeState::Withdrawn);
        assert_eq!(learning.revisions().await[0].changes.len(), 3);
        assert_eq!(learning.resources_in(NAMESPACE).await, []);
        node.until(outcome.revision).await;
        assert!(expanded(&node, "盤面").is_empty());
    }

    async fn the_relations_of_one_pair_are_rivals(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for reporter in ["ana", "ben", "cai"] {
            feedback.learn(says(reporter, synonyms("follower", &["minion"], EQUIVALENT))).await;
        }
        // Another pair of the same term is another contest.
        for reporter in ["ana", "ben", "cai"] {
            feedback.learn(says(reporter, synonyms("Helper", &["minion"], EQUIVALENT))).await;
        }
        let read = learning.resources_in(NAMESPACE).await;
        let pairs: Vec<_> = read.iter().filter_map(|resource| resource.key.as_ref()).collect();
        assert_eq!(pairs, [&key("minion", "follower"), &key("minion", "helper")]);
        for reporter in ["dee", "eli", "fay", "gus", "hal", "ida"] {
            feedback.learn(says(reporter, synonyms("Follower", &["Minion"], SynonymRelation::OneWay))).await;
        }
        let candidates = learning.candidates_for("minion").await;
        let applied: Vec<_> = candidates
            .iter()
            .filter(|candidate| candidate.status() == CandidateStatus::Applied)
            .filter(|candidate| candidate.key.as_ref().unwrap().qualifier == "follower")
            .map(|candidate| candidate.value.clone().unwrap().value.unwrap())
            .collect();
        assert_eq!(applied, [value(SynonymRelation::OneWay, "Follower").value.unwrap()]);
    }

    async fn operators_put_import_delete_and_revert_synonyms(system) {
        let learning = system.learning();
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        learning.put(key("minion", "Follower"), value(SynonymRelation::Unspecified, "Follower")).await;
        let rows = (1..).zip([
            synonyms("Follower", &["unit", "UNIT ALLY"], EQUIVALENT),
            synonyms("Follower", &["folower"], SynonymRelation::Typo),
        ]);
        let rows: Vec<_> = rows
            .map(|(line, correction)| ImportRow { line, correction: Some(correction), user_id: String::new() })
            .collect();
        let header = ImportHeader {
            namespace: NAMESPACE.into(),
            mode: ImportMode::AllOrNothing.into(),
            import_as: ImportAs::Decision.into(),
            ..ImportHeader::default()
        };
        let done = learning.import(header.clone(), rows.clone()).await.unwrap();
        assert_eq!((done.applied_count, done.unchanged_count), (3, 0));
        let again = learning.import(header, rows).await.unwrap();
        assert_eq!((again.applied_count, again.unchanged_count), (0, 3));
        node.until(learning.head().await).await;
        assert_eq!(expanded(&node, "folower"), ["Follower", "minion", "unit", "UNIT ALLY"]);
        assert_eq!(expanded(&node, "follower"), ["minion", "unit", "UNIT ALLY"]);

        let deleted = learning.delete(key("Minion ", "follower")).await.unwrap();
        node.until(deleted).await;
        assert_eq!(expanded(&node, "unit"), ["Follower", "UNIT ALLY"]);
        let reverted = learning.revert(deleted).await.unwrap();
        node.until(reverted).await;
        assert_eq!(expanded(&node, "unit"), ["Follower", "minion", "UNIT ALLY"]);
        assert_eq!(learning.revisions().await[0].cause(), Cause::Revert);
        node.assert_answers_by(&system.stored().resources().await, &["minion"]);
    }

    async fn a_synonym_that_says_nothing_is_refused_by_field(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let submit = |correction| {
            let feedback = feedback.clone();
            async move { refused(feedback.service.clone().submit_feedback(says("ana", correction)).await) }
        };
        let empty = submit(synonyms("board", &[], EQUIVALENT)).await;
        assert_eq!(fields(&empty), ["correction.term.equivalents"]);
        let same = submit(synonyms("Board", &["field", "ｂｏａｒｄ", "FIELD"], EQUIVALENT)).await;
        assert_eq!(fields(&same), ["correction.term.equivalents[1]", "correction.term.equivalents[2]"]);
        let put = PutResourceRequest {
            key: Some(key("minion", "follower")),
            value: Some(value(EQUIVALENT, "fighter")),
            ..PutResourceRequest::default()
        };
        let other = refused(learning.resources.clone().put_resource(put).await);
        assert_eq!((other.code, fields(&other)), (Code::InvalidArgument, vec!["value.synonym.representative"]));
        assert_eq!(learning.head().await, 0);
    }
}
