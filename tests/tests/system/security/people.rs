//! Callers at work: who is named in the audit trail, what a reporter sees, whom nodes belong to, and what a changed
//! file does to streams and to imports in progress.

use emend_base::status::Explained;
use emend_proto::{
    common::v1::{OutcomeState, Scope},
    feedback::v1::{Feedback, GetFeedbackRequest, RetractFeedbackRequest, SubmitFeedbackRequest, Wait},
    learning::v1::{
        ApproveCandidateRequest, BatchApproveCandidatesRequest, BatchRejectCandidatesRequest, ImportHeader,
        ImportMode, ImportResourcesRequest, ImportResourcesResponse, ImportRow, ImportRows,
        ListCandidatesRequest, ListNodesRequest, ListRevisionsRequest, RejectCandidateRequest,
        ReportStatusRequest, RevertRevisionRequest, SubscribeResponse, import_resources_request::Message,
    },
};
use emend_tests::harness::{
    alias, answered, eventually,
    http::Scraped,
    refused,
    rpc::item_refusal,
    says,
    says::{decides, tunes},
    verb,
    wait::holds,
    within,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Response, Status, Streaming};

use super::{
    Caller, EVERYWHERE, FOREIGN, Guarded, IN_OWN, OWN, OWN_FOR_USERS, messages::subscription,
    on_both_databases, token_of, with_token,
};

const STAYING: Caller<'_> = ("staying", "subscriber", IN_OWN);
const OPS: Caller<'_> = ("ops", "operator", IN_OWN);

/// Imports a verb.
async fn teach(guarded: &Guarded, name: &str) {
    let header = ImportHeader {
        namespace: OWN.into(),
        ..Default::default()
    };
    let row = ImportRow {
        line: 1,
        correction: Some(verb("fly to the moon", "fly")),
        ..Default::default()
    };
    let messages = [
        Message::Header(header),
        Message::Rows(ImportRows { rows: vec![row] }),
    ]
    .map(|message| ImportResourcesRequest {
        message: Some(message),
    });
    let request = with_token(tokio_stream::iter(messages), Some(&token_of(name)));
    let mut resources = guarded.system.learning().resources;
    let imported = answered(resources.import_resources(request).await);
    assert_eq!(imported.applied_count, 1, "{imported:?}");
}

async fn stream_of(
    guarded: &Guarded,
    name: &str,
    namespaces: &[&str],
) -> Result<Streaming<SubscribeResponse>, Status> {
    let mut service = guarded.system.learning().subscriptions;
    let request = with_token(subscription(namespaces), Some(&token_of(name)));
    Ok(service.subscribe(request).await?.into_inner())
}

/// Reads until the stream ends.
async fn end_of(stream: &mut Streaming<SubscribeResponse>) -> Option<Status> {
    within("the stream ends", async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    })
    .await
}

/// What a caller is told when it reports for a node of this id, without the request id.
async fn report_status_of(guarded: &Guarded, name: &str, node_id: &str) -> Result<(), Explained> {
    let report = ReportStatusRequest {
        node_id: node_id.into(),
        ..ReportStatusRequest::default()
    };
    let mut service = guarded.system.learning().subscriptions;
    match service
        .report_status(with_token(report, Some(&token_of(name))))
        .await
    {
        Ok(_) => Ok(()),
        Err(status) => Err(Explained {
            request_id: None,
            ..Explained::from(status)
        }),
    }
}

/// An import in progress: its input and its answer.
struct ImportInProgress {
    messages: mpsc::Sender<ImportResourcesRequest>,
    answer: AbortOnDropHandle<Result<Response<ImportResourcesResponse>, Status>>,
}

impl ImportInProgress {
    /// Sends its header and one row.
    async fn begin(guarded: &Guarded, name: &str) -> Self {
        let (messages, sent) = mpsc::channel(4);
        let request = with_token(ReceiverStream::new(sent), Some(&token_of(name)));
        let mut resources = guarded.system.learning().resources;
        let answer = tokio::spawn(async move { resources.import_resources(request).await });
        let import = Self {
            messages,
            answer: AbortOnDropHandle::new(answer),
        };
        let header = ImportHeader {
            namespace: OWN.into(),
            mode: ImportMode::SkipInvalid.into(),
            ..Default::default()
        };
        import.send(Message::Header(header)).await;
        import.row(1).await;
        import
    }

    async fn send(&self, message: Message) {
        let message = ImportResourcesRequest {
            message: Some(message),
        };
        // A refused import accepts nothing more; its answer says so.
        let _ = self.messages.send(message).await;
    }

    async fn row(&self, line: i64) {
        let row = ImportRow {
            line,
            correction: Some(alias(&format!("name {line}"), "person-17")),
            ..Default::default()
        };
        self.send(Message::Rows(ImportRows { rows: vec![row] })).await;
    }

    /// Ends the input.
    async fn end(self) -> Result<ImportResourcesResponse, Status> {
        drop(self.messages);
        let answer = within("the import is answered", self.answer).await.unwrap();
        answer.map(Response::into_inner)
    }
}

/// Waits until this many imports are admitted and unanswered.
async fn until_under_way(guarded: &Guarded, imports: u32) {
    const SERIES: &str = "grpc_server_in_flight{grpc_type=\"client_stream\",\
                          grpc_service=\"emend.learning.v1.ResourceService\",grpc_method=\"ImportResources\"}";
    eventually("the imports are under way", || async {
        let found = Scraped(guarded.metrics.render()).value(SERIES);
        holds(found == Some(f64::from(imports)), || format!("{found:?}"))
    })
    .await;
}

on_both_databases! {
    async fn feedback_carries_its_caller_to_the_audit_trail_and_only_it_reads_it(guarded: [
        ("web", "reporter evidence-writer", IN_OWN),
        OPS,
        ("mobile", "reporter", IN_OWN),
        ("console", "reviewer", IN_OWN),
    ]) {
        let mut feedback = guarded.system.feedback().service;
        let (web, mobile, console) = (token_of("web"), token_of("mobile"), token_of("console"));
        let request = SubmitFeedbackRequest {
            namespace: OWN.into(),
            wait: Wait::Evaluated.into(),
            ..says("jane", verb("set up a csa", "create_csa"))
        };
        let stored = answered(feedback.submit_feedback(with_token(request, Some(&web))).await);
        let stored = stored.feedback.unwrap();
        assert!(
            stored.outcome.is_some(),
            "the relay is known to learning-svc: {stored:?}"
        );

        let get = || GetFeedbackRequest {
            namespace: OWN.into(),
            feedback_id: stored.feedback_id.clone(),
        };
        let retract = || RetractFeedbackRequest {
            namespace: OWN.into(),
            feedback_id: stored.feedback_id.clone(),
            ..Default::default()
        };
        for token in [&web, &console] {
            let seen = answered(feedback.get_feedback(with_token(get(), Some(token))).await);
            assert_eq!(seen.feedback.unwrap().caller, "web");
        }
        let other = refused(feedback.get_feedback(with_token(get(), Some(&mobile))).await);
        assert_eq!(other.code, Code::NotFound);
        let other = refused(
            feedback
                .retract_feedback(with_token(retract(), Some(&mobile)))
                .await,
        );
        assert_eq!(other.code, Code::NotFound);
        answered(feedback.retract_feedback(with_token(retract(), Some(&web))).await);

        teach(guarded, "ops").await;
        let mut resources = guarded.system.learning().resources;
        let trail = ListRevisionsRequest {
            namespace: OWN.into(),
            ..Default::default()
        };
        let trail = answered(resources.list_revisions(with_token(trail, Some(&console))).await);
        let newest = trail.revisions[0].actor.clone().unwrap();
        assert_eq!(newest.caller, "ops");
    }

    async fn only_callers_that_may_act_for_users_decide_on_users_own_values(guarded: [
        ("web", "reporter", OWN_FOR_USERS),
        ("console", "reviewer", IN_OWN),
        OPS,
        ("desk", "operator", OWN_FOR_USERS),
    ]) {
        let [web, console, ops, desk] = ["web", "console", "ops", "desk"].map(token_of);
        let mut feedback = guarded.system.feedback().service;
        let emend_tests::harness::Learning { mut candidates, mut resources, .. } = guarded.system.learning();
        let say = async |reporter: &str, scope: Scope| {
            let request = SubmitFeedbackRequest {
                namespace: OWN.into(),
                scope: scope.into(),
                wait: Wait::Evaluated.into(),
                ..says(reporter, verb("set up a csa", "create_csa"))
            };
            let mut feedback = feedback.clone();
            answered(feedback.submit_feedback(with_token(request, Some(&web))).await).feedback.unwrap()
        };
        let jane = say("jane", Scope::User).await;
        say("joe", Scope::Global).await;
        let list = ListCandidatesRequest { namespace: OWN.into(), ..Default::default() };
        let all = answered(candidates.list_candidates(with_token(list, Some(&console))).await).candidates;
        let id_of = |user: &str| {
            let found = all.iter().find(|candidate| candidate.key.as_ref().unwrap().user_id == user);
            found.unwrap_or_else(|| panic!("{user:?} in {all:?}")).candidate_id.clone()
        };
        let approve = |candidate_id: String| ApproveCandidateRequest {
            namespace: OWN.into(),
            candidate_id,
            ..Default::default()
        };
        let reject = |candidate_id: String| RejectCandidateRequest {
            namespace: OWN.into(),
            candidate_id,
            reason: "wrong".into(),
            ..Default::default()
        };
        let revert = RevertRevisionRequest {
            namespace: OWN.into(),
            revision: jane.outcome.as_ref().unwrap().revision,
            reason: "wrong".into(),
            ..Default::default()
        };
        let retract = RetractFeedbackRequest {
            namespace: OWN.into(),
            feedback_id: jane.feedback_id.clone(),
            ..Default::default()
        };

        let own = id_of("jane");
        let batch = BatchApproveCandidatesRequest { requests: vec![approve(own.clone()), approve(id_of(""))] };
        let approved = candidates.batch_approve_candidates(with_token(batch, Some(&console))).await;
        let approved = answered(approved).results;
        let batch = BatchRejectCandidatesRequest { requests: vec![reject(own.clone())] };
        let rejected = candidates.batch_reject_candidates(with_token(batch, Some(&console))).await;
        let rejected = answered(rejected).results;
        for refusal in [
            Some(refused(candidates.approve_candidate(with_token(approve(own.clone()), Some(&console))).await)),
            Some(refused(candidates.reject_candidate(with_token(reject(own.clone()), Some(&console))).await)),
            item_refusal(approved[0].status.as_ref()),
            item_refusal(rejected[0].status.as_ref()),
            Some(refused(resources.revert_revision(with_token(revert.clone(), Some(&ops))).await)),
            Some(refused(feedback.retract_feedback(with_token(retract.clone(), Some(&console))).await)),
        ] {
            let refusal = refusal.expect("refused");
            assert_eq!(
                (refusal.code, refusal.reason.as_deref()),
                (Code::PermissionDenied, Some("NOT_FOR_USERS"))
            );
            assert!(refusal.message.ends_with("its grant needs act_for_users"), "{}", refusal.message);
        }
        assert_eq!(item_refusal(approved[1].status.as_ref()), None, "everybody's");
        let unknown = candidates.reject_candidate(with_token(reject(jane.feedback_id.clone()), Some(&console)));
        assert_eq!(refused(unknown.await).code, Code::NotFound);

        let reverted = answered(resources.revert_revision(with_token(revert, Some(&desk))).await);
        assert!(reverted.revision > 0);
        answered(candidates.approve_candidate(with_token(approve(own), Some(&desk))).await);
        // The caller that submitted it may always retract it.
        guarded.rewrite(&[("web", "reporter", IN_OWN)]);
        answered(feedback.retract_feedback(with_token(retract, Some(&web))).await);
    }

    async fn who_may_decide_about_domains_is_said_by_the_callers_roles(guarded: [
        ("web", "reporter", IN_OWN),
        ("desk", "reporter reviewer", IN_OWN),
        ("console", "reviewer", IN_OWN),
    ]) {
        let [web, desk, console] = ["web", "desk", "console"].map(token_of);
        let mut feedback = guarded.system.feedback().service;
        let mut candidates = guarded.system.learning().candidates;
        let mut decide = async |token: &str, word: &str| {
            let request = SubmitFeedbackRequest {
                namespace: OWN.into(),
                ..decides("jane", "spam.example", word)
            };
            answered(feedback.submit_feedback(with_token(request, Some(token))).await).feedback.unwrap()
        };
        let outcome = |stored: &Feedback| {
            let outcome = stored.outcome.clone().unwrap();
            (outcome.state(), outcome.reason)
        };
        let asked = decide(&web, "block").await;
        assert_eq!(outcome(&asked), (OutcomeState::AwaitingReview, "NOT_ENTITLED".into()));
        let approval = ApproveCandidateRequest {
            namespace: OWN.into(),
            candidate_id: asked.outcome.as_ref().unwrap().candidate_id.clone(),
            ..Default::default()
        };
        let approved = answered(candidates.approve_candidate(with_token(approval, Some(&console))).await);
        let ruling = approved.candidate.unwrap().ruling.unwrap();
        assert_eq!((ruling.effective, ruling.sender_roles), (true, vec!["reporter".to_owned()]));
        assert_eq!(outcome(&decide(&desk, "low").await), (OutcomeState::Applied, String::new()));

        // What a reviewer approved, its reporter does not take back.
        let retract = RetractFeedbackRequest {
            namespace: OWN.into(),
            feedback_id: asked.feedback_id.clone(),
            wait: Wait::Evaluated.into(),
            ..Default::default()
        };
        let mut feedback = guarded.system.feedback().service;
        let kept = answered(feedback.retract_feedback(with_token(retract, Some(&web))).await).feedback.unwrap();
        assert_eq!(outcome(&kept), (OutcomeState::NoEffect, "NOT_ENTITLED".into()));
    }

    async fn only_who_sets_values_decides_how_queries_are_searched(guarded: [
        ("desk", "reporter reviewer", IN_OWN),
        ("ops", "reporter operator", IN_OWN),
    ]) {
        let mut feedback = guarded.system.feedback().service;
        let mut tune = async |caller: &str, line: &str| {
            let request = SubmitFeedbackRequest {
                namespace: OWN.into(),
                ..tunes("jane", "HYBRID", line)
            };
            let sent = with_token(request, Some(&token_of(caller)));
            let stored = answered(feedback.submit_feedback(sent).await).feedback.unwrap();
            let outcome = stored.outcome.unwrap();
            (outcome.state(), outcome.reason)
        };
        let waits = (OutcomeState::AwaitingReview, "NOT_ENTITLED".to_owned());
        assert_eq!(tune("desk", "top_k=20").await, waits);
        assert_eq!(tune("ops", "top_k=30").await, (OutcomeState::Applied, String::new()));
    }

    async fn a_changed_file_ends_only_the_streams_of_callers_that_lost_rights(guarded: [
        STAYING,
        ("leaving", "subscriber", IN_OWN),
        ("demoted", "subscriber", IN_OWN),
        ("moved", "subscriber", IN_OWN),
        OPS,
    ]) {
        let mut streams = Vec::new();
        for name in ["staying", "leaving", "demoted", "moved"] {
            let mut stream = stream_of(guarded, name, &[]).await.unwrap();
            within("it begins", stream.message()).await.unwrap();
            streams.push(stream);
        }
        guarded.rewrite(&[
            STAYING,
            ("demoted", "reporter", IN_OWN),
            ("moved", "subscriber", "[\"foreign\"]"),
            OPS,
        ]);
        let mut ended = Vec::new();
        for stream in &mut streams[1..] {
            ended.push(end_of(stream).await.map(|status| status.code()));
        }
        let expected = [Code::Unauthenticated, Code::PermissionDenied, Code::Unavailable];
        assert_eq!(ended, expected.map(Some));

        let stranger = stream_of(guarded, "leaving", &[]).await.map(drop);
        assert_eq!(refused(stranger).code, Code::Unauthenticated);
        let elsewhere = stream_of(guarded, "moved", &[OWN]).await.map(drop);
        assert_eq!(refused(elsewhere).code, Code::PermissionDenied);
        assert!(stream_of(guarded, "moved", &[FOREIGN]).await.is_ok());

        teach(guarded, "ops").await;
        within("who kept its rights is told of what is learned", async {
            loop {
                let message = streams[0].message().await.unwrap().expect("the stream goes on");
                if format!("{message:?}").contains("fly to the moon") {
                    return;
                }
            }
        })
        .await;
        drop(streams);
    }

    async fn callers_do_not_learn_the_nodes_of_others(guarded: [
        ("one", "subscriber", IN_OWN),
        ("other", "subscriber", IN_OWN),
        ("ops", "operator", EVERYWHERE),
    ]) {
        let nobodys = report_status_of(guarded, "other", "node").await.unwrap_err();
        assert_eq!(nobodys.reason.as_deref(), Some("NODE_NOT_SUBSCRIBED"));
        let mut first = stream_of(guarded, "one", &[]).await.unwrap();
        within("it begins", first.message()).await.unwrap();
        assert_eq!(report_status_of(guarded, "one", "node").await, Ok(()));
        let stored = || async {
            let mut service = guarded.system.learning().subscriptions;
            let request = with_token(ListNodesRequest::default(), Some(&token_of("ops")));
            let mut callers: Vec<_> = answered(service.list_nodes(request).await)
                .nodes
                .into_iter()
                .map(|node| (node.info.unwrap_or_default().id, node.caller, node.connected))
                .collect();
            callers.sort_unstable();
            callers
        };
        let node_of = |caller: &str| ("node".to_owned(), caller.to_owned(), true);
        eventually("the node is stored", || async {
            let stored = stored().await;
            holds(stored == [node_of("one")], || format!("{stored:?}"))
        })
        .await;
        let ones = report_status_of(guarded, "other", "node").await.unwrap_err();
        assert_eq!(ones, nobodys, "the same in every word");

        // A caller that subscribes with another's node id is not refused, learns nothing, and disturbs nobody.
        let mut second = stream_of(guarded, "other", &[]).await.unwrap();
        within("it begins", second.message()).await.unwrap();
        for caller in ["one", "other"] {
            assert_eq!(report_status_of(guarded, caller, "node").await, Ok(()));
        }
        eventually("they are two nodes", || async {
            let stored = stored().await;
            holds(stored == [node_of("one"), node_of("other")], || format!("{stored:?}"))
        })
        .await;
        drop(second);
        eventually("the other's is gone, and the one's is there", || async {
            let stored = stored().await;
            let gone = ("node".to_owned(), "other".to_owned(), false);
            holds(stored == [node_of("one"), gone], || format!("{stored:?}"))
        })
        .await;
        drop(first);
    }

    async fn an_import_in_progress_ends_with_the_rights_of_its_caller(guarded: [
        OPS,
        ("demoted", "operator", IN_OWN),
        ("leaving", "operator", IN_OWN),
    ]) {
        let demoted = ImportInProgress::begin(guarded, "demoted").await;
        let leaving = ImportInProgress::begin(guarded, "leaving").await;
        until_under_way(guarded, 2).await;
        guarded.rewrite(&[OPS, ("demoted", "reviewer", IN_OWN)]);
        // Whether rows keep arriving or all have come, nothing is written.
        demoted.row(2).await;
        let demoted = refused(demoted.end().await);
        assert_eq!((demoted.code, demoted.reason.as_deref()), (Code::PermissionDenied, Some("ROLE_MISSING")));
        let leaving = refused(leaving.end().await);
        assert_eq!(
            (leaving.code, leaving.reason.as_deref()),
            (Code::Unauthenticated, Some("CREDENTIALS_NOT_ACCEPTED"))
        );
        let mut resources = guarded.system.learning().resources;
        let trail = ListRevisionsRequest {
            namespace: OWN.into(),
            ..Default::default()
        };
        let trail = answered(resources.list_revisions(with_token(trail, Some(&token_of("ops")))).await);
        assert_eq!(trail.revisions, []);

        // Changed rights that still suffice let imports continue.
        let promoted = ImportInProgress::begin(guarded, "ops").await;
        let beside = ImportInProgress::begin(guarded, "ops").await;
        until_under_way(guarded, 2).await;
        guarded.rewrite(&[("ops", "admin", "[\"own\", \"foreign\"]")]);
        promoted.row(2).await;
        assert_eq!(promoted.end().await.unwrap().applied_count, 2);
        assert_eq!(beside.end().await.unwrap().unchanged_count, 1);
    }
}
