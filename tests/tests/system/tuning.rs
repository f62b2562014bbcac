//! How queries are searched: who decides it, what a node searches with, and texts expanded in a node.

use emend_client::{ExpandMode, RetryPlan, Step};
use emend_core::{Kind, Namespace, search::Tuning};
use emend_proto::{
    common::v1::{
        Correction, OutcomeState, ResourceKey, SearchTuningValue, SynonymRelation, TuningCorrection,
        correction::Correction as Form, resource_value::Value,
    },
    learning::v1::{
        EntitledRole, GetPolicyRequest, ImportAs, ImportHeader, ImportMode, ImportRow, PutResourceRequest,
        policy,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, answered,
        node::Node,
        refused,
        rpc::fields,
        says,
        says::{synonyms, tunes, tuning_key, value_of},
    },
};

fn tuning(node: &Node, query_type: &str) -> String {
    let namespace = Namespace::parse(NAMESPACE).unwrap();
    node.view().tuning(&namespace, query_type).to_string()
}

fn whole(line: &str) -> String {
    Tuning::parse(line).unwrap().to_string()
}

both_databases! {
    async fn the_next_query_is_searched_as_an_operator_set_it(system) {
        let learning = system.learning();
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        assert_eq!(tuning(&node, "HYBRID"), Tuning::default().to_string());
        let set = "top_k=20 min_score=0.3 namespaces=effects suggestion=Try fewer words.";
        let put = learning.put(tuning_key("HYBRID"), value_of(Kind::SearchTuning, set)).await;
        let stored = put.resource.unwrap().value.unwrap().value;
        let Some(Value::SearchTuning(stored)) = stored else { panic!("another kind") };
        assert_eq!((stored.top_k, stored.retry.unwrap().steps.len()), (Some(20), 2), "defaults are filled in");
        node.until(put.revision).await;
        assert_eq!(tuning(&node, "HYBRID"), whole(set));
        assert_eq!(tuning(&node, "hybrid"), Tuning::default().to_string(), "another query type");
        let namespace = Namespace::parse(NAMESPACE).unwrap();
        let tuned = node.view().tuning(&namespace, "HYBRID");
        let plan: Vec<String> = RetryPlan::new(&tuned)
            .map(|step| match step {
                Step::Search(of) => format!("{} from {} top {} {:?}", of.number, of.min_score, of.top_k, of.more_namespaces),
                Step::Suggest(text) => text.to_owned(),
            })
            .collect();
        assert_eq!(
            plan,
            ["1 from 0.3 top 20 []", "2 from 0.2 top 20 [\"combined\"]", "3 from 0.2 top 20 [\"combined\"]", "Try fewer words."]
        );
        let deleted = learning.delete(tuning_key("HYBRID")).await.unwrap();
        node.until(deleted).await;
        assert_eq!(tuning(&node, "HYBRID"), Tuning::default().to_string());
        let reverted = learning.revert(deleted).await.unwrap();
        node.until(reverted).await;
        assert_eq!(tuning(&node, "HYBRID"), whole(set));
    }

    async fn a_tuning_that_is_invalid_is_refused_field_by_field(system) {
        let learning = system.learning();
        let put = async |key: ResourceKey, value: SearchTuningValue| {
            let mut of = value_of(Kind::SearchTuning, "top_k=10");
            of.value = Some(Value::SearchTuning(value.into()));
            let request = PutResourceRequest { key: Some(key), value: Some(of), ..PutResourceRequest::default() };
            refused(learning.resources.clone().put_resource(request).await)
        };
        let invalid = SearchTuningValue {
            top_k: Some(101),
            min_score: Some(-0.1),
            namespaces: vec!["a b".into()],
            ..SearchTuningValue::default()
        };
        let refusal = put(tuning_key("HYBRID"), invalid).await;
        assert_eq!(
            fields(&refusal),
            ["value.search_tuning.min_score", "value.search_tuning.namespaces[0]", "value.search_tuning.top_k"]
        );
        let of_a_user = ResourceKey { user_id: "jane".into(), ..tuning_key("HYBRID") };
        assert_eq!(fields(&put(of_a_user, SearchTuningValue::default()).await), ["key.user_id"]);
        let qualified = ResourceKey { qualifier: "x".into(), ..tuning_key("HYBRID") };
        assert_eq!(fields(&put(qualified, SearchTuningValue::default()).await), ["key.qualifier"]);
    }

    async fn the_newest_tuning_is_in_force_and_a_retraction_brings_back_the_one_before(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        feedback.learn(tunes("ana", "HYBRID", "top_k=20")).await;
        let newer = feedback.learn(tunes("ben", "HYBRID", "top_k=30 retry=none")).await;
        let outcome = newer.outcome.clone().unwrap();
        assert_eq!(outcome.state(), OutcomeState::Applied);
        assert_eq!(
            outcome.message,
            "Learned: queries of type “HYBRID” are searched with top_k=30 min_score=0.4 retry=none. It applies."
        );
        node.until(outcome.revision).await;
        assert_eq!(tuning(&node, "HYBRID"), whole("top_k=30 retry=none"));
        feedback.retract(&newer).await;
        node.until(learning.head().await).await;
        assert_eq!(tuning(&node, "HYBRID"), whole("top_k=20"));
        let asked = GetPolicyRequest { namespace: NAMESPACE.into(), kind: Kind::SearchTuning.number() };
        let policy = answered(learning.policies.clone().get_policy(asked).await).policy.unwrap();
        let Some(policy::Rule::Ruling(ruling)) = policy.rule else { panic!("another rule") };
        assert_eq!(ruling.entitled_role(), EntitledRole::Operator);
    }

    async fn an_import_of_tunings_changes_nothing_the_second_time(system) {
        let learning = system.learning();
        let row = |line, query_type: &str, tuning: &str| ImportRow {
            line,
            correction: tunes("", query_type, tuning).correction,
            user_id: String::new(),
        };
        let rows = vec![row(1, "HYBRID", "top_k=20"), row(2, "SEMANTIC", "min_score=0.5 retry=none")];
        let header = ImportHeader {
            namespace: NAMESPACE.into(),
            mode: ImportMode::AllOrNothing.into(),
            import_as: ImportAs::Decision.into(),
            ..ImportHeader::default()
        };
        let done = learning.import(header.clone(), rows.clone()).await.unwrap();
        assert_eq!((done.applied_count, done.unchanged_count), (2, 0));
        let again = learning.import(header.clone(), rows).await.unwrap();
        assert_eq!((again.applied_count, again.unchanged_count), (0, 2));
        let cleared = ImportRow {
            correction: Some(Correction {
                correction: Some(Form::Tuning(TuningCorrection {
                    query_type: "HYBRID".into(),
                    tuning: Some(SearchTuningValue { cleared: true, ..SearchTuningValue::default() }),
                })),
            }),
            ..row(1, "HYBRID", "top_k=20")
        };
        let refusal = refused(learning.import(header, vec![cleared]).await);
        assert_eq!(refusal.field_violations.len(), 1, "{refusal}");
    }

    async fn a_query_is_expanded_in_a_node_once_its_synonyms_are_learned(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        let namespace = Namespace::parse(NAMESPACE).unwrap();
        let expand = |text: &str, mode| node.view().expand(&namespace, text, mode, None).render();
        let text = "相手のﾌｫﾛｰを登場させる";
        assert_eq!(expand(text, ExpandMode::Keyword), text);
        for reporter in ["ana", "ben", "cai"] {
            let set = synonyms("フォロワー", &["フォロー", "フォロワ"], SynonymRelation::Equivalent);
            feedback.learn(says(reporter, set)).await;
            let field = synonyms("フィールド", &["場"], SynonymRelation::Equivalent);
            feedback.learn(says(reporter, field)).await;
        }
        node.until(learning.head().await).await;
        assert_eq!(
            expand(text, ExpandMode::Keyword),
            "相手の (フォロワー OR ﾌｫﾛｰ OR フォロワ) を登場させる"
        );
        assert_eq!(expand("場のフォロー", ExpandMode::Embedding), "場のフォロー フィールド フォロワー");
    }
}
