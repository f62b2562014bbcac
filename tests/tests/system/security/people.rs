//! Callers at work: whom the audit trail names, what a reporter sees, what a changed file does to streams.

use emend_proto::{
    feedback::v1::{GetFeedbackRequest, RetractFeedbackRequest, SubmitFeedbackRequest, Wait},
    learning::v1::{
        ImportHeader, ImportResourcesRequest, ImportRow, ImportRows, ListRevisionsRequest, SubscribeResponse,
        import_resources_request::Message,
    },
};
use emend_tests::harness::{answered, refused, says, verb, within};
use tonic::{Code, Status, Streaming};

use super::{FOREIGN, Guarded, OWN, messages::subscription, token_of, with_token};

const IN_OWN: &str = "[\"own\"]";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_carries_its_caller_to_the_audit_trail_and_only_he_sees_it() {
    let guarded = Guarded::start(&[
        ("web", "reporter", IN_OWN),
        ("ops", "operator", IN_OWN),
        ("mobile", "reporter", IN_OWN),
        ("console", "reviewer", IN_OWN),
    ])
    .await;
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

    teach(&guarded, "ops").await;
    let mut resources = guarded.system.learning().resources;
    let trail = ListRevisionsRequest {
        namespace: OWN.into(),
        ..Default::default()
    };
    let trail = answered(resources.list_revisions(with_token(trail, Some(&console))).await);
    let newest = trail.revisions[0].actor.clone().unwrap();
    assert_eq!(newest.caller, "ops");
    guarded.system.stop().await;
}

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

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_ends_the_streams_of_who_lost_rights_and_no_other() {
    let staying = ("staying", "subscriber", IN_OWN);
    let guarded = Guarded::start(&[
        staying,
        ("leaving", "subscriber", IN_OWN),
        ("demoted", "subscriber", IN_OWN),
        ("moved", "subscriber", IN_OWN),
        ("ops", "operator", IN_OWN),
    ])
    .await;
    let mut streams = Vec::new();
    for name in ["staying", "leaving", "demoted", "moved"] {
        let mut stream = stream_of(&guarded, name, &[]).await.unwrap();
        within("it begins", stream.message()).await.unwrap();
        streams.push(stream);
    }
    guarded.rewrite(&[
        staying,
        ("demoted", "reporter", IN_OWN),
        ("moved", "subscriber", "[\"foreign\"]"),
        ("ops", "operator", IN_OWN),
    ]);
    let mut ended = Vec::new();
    for stream in &mut streams[1..] {
        ended.push(end_of(stream).await.map(|status| status.code()));
    }
    let expected = [Code::Unauthenticated, Code::PermissionDenied, Code::Unavailable];
    assert_eq!(ended, expected.map(Some));

    let stranger = stream_of(&guarded, "leaving", &[]).await.map(drop);
    assert_eq!(refused(stranger).code, Code::Unauthenticated);
    let elsewhere = stream_of(&guarded, "moved", &[OWN]).await.map(drop);
    assert_eq!(refused(elsewhere).code, Code::PermissionDenied);
    assert!(stream_of(&guarded, "moved", &[FOREIGN]).await.is_ok());

    teach(&guarded, "ops").await;
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
    guarded.system.stop().await;
}
