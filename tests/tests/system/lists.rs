//! Lists: every page continues where the last one ended, nothing twice and nothing left out.

use std::collections::HashSet;

use emend_proto::{
    common::v1::ResourceKind,
    feedback::v1::ListFeedbackRequest,
    learning::v1::{CandidateStatus, ListCandidatesRequest, ListResourcesRequest, ListRevisionsRequest},
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, Subscriber, alias, answered, phrase, prohibit, says, subscriber::kinds},
};

both_databases! {
    async fn feedback_comes_in_pages_newest_first_and_by_filter(system) {
        let feedback = system.feedback();
        for n in 0..7 {
            let reporter = if n % 2 == 0 { "jane" } else { "tom" };
            let correction = if n < 5 { alias(&format!("name {n}"), "person-1") } else { phrase("a", "b") };
            feedback.learn(says(reporter, correction)).await;
        }
        let pages = ListFeedbackRequest { page_size: 2, ..feedback.list_request(NAMESPACE) };
        let all = feedback.list(pages.clone()).await;
        assert_eq!(all.len(), 7);
        assert!(all.is_sorted_by(|one, next| one.accept_order > next.accept_order));
        let janes = ListFeedbackRequest { reporter_id: "jane".into(), ..pages.clone() };
        assert_eq!(feedback.list(janes).await.len(), 4);
        let names = ListFeedbackRequest { kind: ResourceKind::EntityAlias.into(), ..pages.clone() };
        assert_eq!(feedback.list(names).await.len(), 5);
        let middle = all[3].received_at;
        let from = ListFeedbackRequest { received_from: middle, ..pages.clone() };
        let before = ListFeedbackRequest { received_before: middle, ..pages.clone() };
        let (from, before) = (feedback.list(from).await, feedback.list(before).await);
        assert_eq!(from.len() + before.len(), 7);
        assert!(from.iter().any(|stored| stored.feedback_id == all[3].feedback_id));
        let elsewhere = ListFeedbackRequest { namespace: "elsewhere".into(), ..pages };
        assert_eq!(feedback.list(elsewhere).await, []);
    }

    async fn candidates_come_in_pages_newest_first_and_by_filter(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for n in 0..5 {
            feedback.learn(says("jane", alias(&format!("name {n}"), "person-1"))).await;
            feedback.learn(says("jane", phrase(&format!("phrase {n}"), "verb"))).await;
        }
        let pages = ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            page_size: 3,
            ..ListCandidatesRequest::default()
        };
        let all = learning.list_candidates(pages.clone()).await;
        let ids: HashSet<_> = all.iter().map(|candidate| &candidate.candidate_id).collect();
        assert_eq!((all.len(), ids.len()), (10, 10));
        let created = |index: usize| all[index].created_at.map(|at| (at.seconds, at.nanos));
        assert!((1..10).all(|index| created(index - 1) >= created(index)));
        let applied = ListCandidatesRequest {
            statuses: vec![CandidateStatus::Applied.into()],
            ..pages.clone()
        };
        assert_eq!(learning.list_candidates(applied).await.len(), 5);
        let phrases = ListCandidatesRequest {
            kinds: kinds(&[ResourceKind::InvocationPhrase]),
            ..pages.clone()
        };
        assert_eq!(learning.list_candidates(phrases).await.len(), 5);
        let one = ListCandidatesRequest { key: " PHRASE 3".into(), ..pages };
        assert_eq!(learning.list_candidates(one).await.len(), 1);
    }

    async fn resources_come_in_pages_in_key_order_and_by_filter(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for name in ["b", "a", "ab", "c", "aa"] {
            feedback.learn(says("jane", alias(name, "person-1"))).await;
        }
        for (choice, reporters) in [("y", ["a", "b", "c"]), ("x", ["a", "b", "c"])] {
            for reporter in reporters {
                feedback.learn(says(reporter, prohibit("a", choice))).await;
            }
        }
        let pages = ListResourcesRequest {
            namespace: NAMESPACE.into(),
            page_size: 2,
            ..ListResourcesRequest::default()
        };
        let keys = async |request: ListResourcesRequest| -> Vec<String> {
            let resources = learning.list_resources(request).await;
            let keys = resources.into_iter().map(|resource| resource.key.unwrap());
            keys.map(|key| format!("{}{}", key.key, key.qualifier)).collect()
        };
        assert_eq!(keys(pages.clone()).await, ["a", "aa", "ab", "b", "c", "ax", "ay"]);
        let prefixed = ListResourcesRequest { key_prefix: "A".into(), ..pages.clone() };
        assert_eq!(keys(prefixed).await, ["a", "aa", "ab", "ax", "ay"]);
        let prohibitions = ListResourcesRequest {
            kinds: kinds(&[ResourceKind::Prohibition]),
            ..pages
        };
        assert_eq!(keys(prohibitions).await, ["ax", "ay"]);
    }

    async fn revisions_come_in_pages_newest_first_and_by_filter(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for n in 0..6 {
            feedback.learn(says("jane", alias(&format!("name {}", n % 2), &format!("person-{n}")))).await;
            feedback.learn(says(&format!("tom-{n}"), alias(&format!("other {n}"), "person-1"))).await;
        }
        let mut request = ListRevisionsRequest {
            namespace: NAMESPACE.into(),
            page_size: 2,
            ..ListRevisionsRequest::default()
        };
        let mut listed = Vec::new();
        loop {
            let page = answered(learning.resources.clone().list_revisions(request.clone()).await);
            assert!(page.revisions.len() <= 2);
            listed.extend(page.revisions.iter().map(|revision| revision.revision));
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        let head = learning.head().await;
        assert_eq!(listed, (1..=head).rev().collect::<Vec<_>>());
        let one = ListRevisionsRequest {
            namespace: NAMESPACE.into(),
            key: " Other 3".into(),
            ..ListRevisionsRequest::default()
        };
        assert_eq!(answered(learning.resources.clone().list_revisions(one).await).revisions.len(), 1);
    }

    async fn nodes_are_listed_with_what_they_applied(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", alias("jd", "person-1"))).await;
        let head = learning.head().await;
        let mut nodes = Vec::new();
        for id in ["n-2", "n-1", "n-3"] {
            let mut node = Subscriber::new(id);
            node.begin(&learning.channel).await;
            node.until(head).await;
            let report = emend_proto::learning::v1::ReportStatusRequest {
                node_id: id.into(),
                applied: Some(node.cursor().clone()),
                ..Default::default()
            };
            answered(learning.subscriptions.clone().report_status(report).await);
            nodes.push(node);
        }
        let listed = emend_tests::harness::eventually("all nodes are listed", || async {
            let mut request = emend_proto::learning::v1::ListNodesRequest { page_size: 2, ..Default::default() };
            let mut listed = Vec::new();
            loop {
                let page = answered(learning.subscriptions.clone().list_nodes(request.clone()).await);
                listed.extend(page.nodes);
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
            let applied = |node: &emend_proto::learning::v1::Node| {
                node.connected && node.applied.as_ref().is_some_and(|cursor| cursor.revision == head)
            };
            emend_tests::harness::wait::holds(listed.len() == 3 && listed.iter().all(applied), || {
                format!("{listed:?}")
            })?;
            Ok(listed)
        })
        .await;
        let ids: Vec<_> = listed.iter().map(|node| node.info.as_ref().unwrap().id.as_str()).collect();
        assert_eq!(ids, ["n-1", "n-2", "n-3"]);
        assert!(listed.iter().all(|node| node.caller == "anonymous" && node.lag_revisions == 0));
    }
}
