//! Callers that lose their rights during a call.

use std::{fs, path::Path, sync::Arc, task::Poll};

use emend_base::{reload::Reload as _, status::Explained};
use emend_proto::{
    common::v1 as common,
    learning::v1::{
        self as pb, candidate_service_server::CandidateService as _, import_resources_request::Message,
    },
};
use emend_serve::{
    auth::{Access, Authenticator, TokenHash, testing::access_of},
    caller::Caller,
};
use futures::stream;
use tempfile::TempDir;
use tonic::{Code, Status};

use super::served::{Database, Served};
use crate::{
    contests::grpc::CandidateHandler,
    ingest::{grpc::IngestHandler, queue::IngestQueue},
    lookups::{NearModels, Previews},
    resources::grpc::import,
};

const NAMESPACE: &str = "fund-admin";

/// A caller with one role, which it can lose.
struct RevocableCaller {
    authenticator: Arc<Authenticator>,
    directory: TempDir,
}

impl RevocableCaller {
    fn new(role: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), role);
        let authenticator = Authenticator::load(&directory.path().join("auth.toml")).unwrap();
        Self {
            authenticator: Arc::new(authenticator),
            directory,
        }
    }

    async fn access(&self, path: &'static str) -> Access {
        access_of(&self.authenticator, &crate::roles::RULES, path, "secret").await
    }

    /// From now on it is only a reporter.
    fn revoke(&self) {
        write(self.directory.path(), "reporter");
        assert!(self.authenticator.reload_if_changed());
    }
}

fn write(directory: &Path, role: &str) {
    let hash = TokenHash::of("secret");
    let text = format!(
        "[[principals]]\nname = \"client\"\ntoken_sha256 = [\"{hash}\"]\n\
         grants = [{{ roles = [\"{role}\"], namespaces = [\"{NAMESPACE}\"] }}]\n"
    );
    fs::write(directory.join("auth.toml"), text).unwrap();
}

#[tokio::test]
async fn a_batch_from_a_sender_that_lost_the_ingester_role_is_refused() {
    let database = Database::sqlite();
    let served = Served::on(&database).await;
    let sender = RevocableCaller::new("ingester");
    let access = sender.access("/emend.learning.v1.IngestService/Ingest").await;
    let lifecycle = emend_base::Lifecycle::new();
    let capabilities = served.handle.capabilities();
    let ingest = IngestHandler::new(
        IngestQueue::start(&capabilities.ingest, 1, &lifecycle),
        capabilities.standings.clone(),
        served.handle.installation(),
        lifecycle.soft().clone(),
    );
    let batch = || pb::IngestRequest {
        events: vec![pb::Event {
            namespace: NAMESPACE.into(),
            ..pb::Event::default()
        }],
        ..pb::IngestRequest::default()
    };
    let answered = ingest.clone().batch(access.clone(), Ok(batch())).await.unwrap();
    assert_eq!(answered.results.len(), 1, "one result for each event");
    sender.revoke();
    // Refusing only the event would make it a dead letter.
    let refused = ingest.batch(access, Ok(batch())).await.unwrap_err();
    assert_eq!(Explained::from(refused).reason.as_deref(), Some("ROLE_MISSING"));
    lifecycle.shutdown(std::time::Duration::from_secs(20)).await;
    served.stop().await;
}

#[tokio::test]
async fn batch_items_are_refused_after_the_caller_lost_the_reviewer_role() {
    let database = Database::sqlite();
    let served = Served::on(&database).await;
    let reviewer = RevocableCaller::new("reviewer");
    let capabilities = served.handle.capabilities().clone();
    let near = NearModels::new(Arc::clone(&capabilities.decisions.clock), None);
    let previews = Previews::new(served.handle.stream().clone(), near, capabilities.store);
    let candidates = CandidateHandler::new(
        capabilities.contests,
        capabilities.queue,
        capabilities.outputs,
        previews,
    );
    let none = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (is_revoked, expected) in [(false, Code::NotFound), (true, Code::PermissionDenied)] {
        let path = "/emend.learning.v1.CandidateService/BatchRejectCandidates";
        let access = if is_revoked {
            let access = reviewer.access(path).await;
            reviewer.revoke();
            access
        } else {
            reviewer.access(path).await
        };
        let reject = pb::RejectCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: none.into(),
            reason: "wrong desk".into(),
            ..Default::default()
        };
        let approve = pb::ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: none.into(),
            ..Default::default()
        };
        let to_reject = pb::BatchRejectCandidatesRequest {
            requests: vec![reject],
        };
        let to_approve = pb::BatchApproveCandidatesRequest {
            requests: vec![approve],
        };
        let rejected = candidates
            .batch_reject_candidates(access.clone().request(to_reject))
            .await;
        let approved = candidates
            .batch_approve_candidates(access.request(to_approve))
            .await;
        for results in [
            rejected.unwrap().into_inner().results,
            approved.unwrap().into_inner().results,
        ] {
            assert_eq!(results[0].status.clone().unwrap().code, i32::from(expected));
        }
    }
    served.stop().await;
}

fn row(line: i64) -> pb::ImportRow {
    let entity = common::EntityCorrection {
        original_input: format!("name {line}"),
        correct_choice: "person-17".into(),
        ..Default::default()
    };
    pb::ImportRow {
        line,
        correction: Some(common::Correction {
            correction: Some(common::correction::Correction::Entity(entity)),
        }),
        ..Default::default()
    }
}

#[tokio::test]
async fn an_import_fails_when_its_caller_loses_the_right_to_import() {
    let database = Database::sqlite();
    let served = Served::on(&database).await;
    let header = Message::Header(pb::ImportHeader {
        namespace: NAMESPACE.into(),
        ..Default::default()
    });
    let messages: Vec<_> = [header]
        .into_iter()
        .chain((1..=3).map(|line| {
            Message::Rows(pb::ImportRows {
                rows: vec![row(line)],
            })
        }))
        .collect();
    // The rights are lost before a message of rows, and before the end of the import.
    for last in [2, messages.len() + 1] {
        let operator = RevocableCaller::new("operator");
        let access = operator
            .access("/emend.learning.v1.ResourceService/ImportResources")
            .await;
        let mut coming = messages.clone().into_iter();
        let mut asked = 0;
        let rows = stream::poll_fn(|_| {
            asked += 1;
            assert!(asked <= last, "it stops reading once the right is lost");
            if asked == last {
                operator.revoke();
            }
            let message = coming.next().map(Some);
            Poll::Ready(message.map(|message| Ok::<_, Status>(pb::ImportResourcesRequest { message })))
        });
        let caller = Caller::parse("client").unwrap();
        let app = served.handle.capabilities();
        let imported = import::run(
            &app.imports,
            &import::Slots::new(1 << 20),
            (&caller, &access),
            rows,
        )
        .await;
        assert_eq!(imported.unwrap_err().reason(), "ROLE_MISSING", "{last}");
        assert_eq!(app.store.contents().await.unwrap().head.0, 0);
    }
    served.stop().await;
}
