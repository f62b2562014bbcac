//! Typed clients that make the tests' commonest calls in one line each. An unexpected refusal fails the test.

use emend_proto::{
    common::v1::{Resource, ResourceKey, ResourceKind, ResourceValue},
    feedback::v1::{
        DeliveryState, GetFeedbackRequest, ListFeedbackRequest, RetractFeedbackRequest,
        SubmitFeedbackRequest, Wait, feedback_service_client::FeedbackServiceClient,
        query_service_client::QueryServiceClient,
    },
    learning::v1::{
        ApproveCandidateRequest, Candidate, DeleteResourceRequest, GetCandidateRequest, GetCandidateResponse,
        ImportHeader, ImportResourcesRequest, ImportResourcesResponse, ImportRow, ImportRows,
        ListCandidatesRequest, ListNodesRequest, ListResourcesRequest, ListRevisionsRequest,
        PutResourceRequest, PutResourceResponse, RejectCandidateRequest, ResolveRequest, ResolveResponse,
        RevertRevisionRequest, Revision, UndoDecisionRequest,
        candidate_service_client::CandidateServiceClient, evidence_service_client::EvidenceServiceClient,
        import_resources_request::Message, ingest_service_client::IngestServiceClient,
        output_service_client::OutputServiceClient, policy_service_client::PolicyServiceClient,
        profile_service_client::ProfileServiceClient, resource_service_client::ResourceServiceClient,
        subscription_service_client::SubscriptionServiceClient,
    },
};
use tonic::{Status, transport::Channel};

use super::{
    rpc::{answered, channel},
    says::NAMESPACE,
    wait::{eventually, holds},
};

/// A client of one feedback-svc.
#[derive(Debug, Clone)]
pub struct Feedback {
    /// For calls that are not spelled out here.
    pub service: FeedbackServiceClient<Channel>,
    /// Queries.
    pub queries: QueryServiceClient<Channel>,
    /// The same, for calls by path.
    pub channel: Channel,
}

impl Feedback {
    /// A client of the service at `address`.
    pub fn at(address: impl std::fmt::Display) -> Self {
        let channel = channel(address);
        Self {
            service: FeedbackServiceClient::new(channel.clone()),
            queries: QueryServiceClient::new(channel.clone()),
            channel,
        }
    }

    /// Submits and answers with what is stored.
    pub async fn submit(&self, request: SubmitFeedbackRequest) -> emend_proto::feedback::v1::Feedback {
        answered(self.service.clone().submit_feedback(request).await)
            .feedback
            .expect("an answer has the feedback")
    }

    /// Submits and waits, however long it takes, until the feedback is evaluated.
    pub async fn learn(&self, request: SubmitFeedbackRequest) -> emend_proto::feedback::v1::Feedback {
        let stored = self.submit(request).await;
        self.delivered(&stored.namespace, &stored.feedback_id).await
    }

    /// Submits one after the other, each evaluated before the next; answers with the last.
    pub async fn learn_all(
        &self,
        requests: impl IntoIterator<Item = SubmitFeedbackRequest>,
    ) -> emend_proto::feedback::v1::Feedback {
        let mut last = None;
        for request in requests {
            last = Some(self.learn(request).await);
        }
        last.expect("at least one request")
    }

    /// Waits until the feedback's newest event is delivered, and so evaluated.
    pub async fn delivered(&self, namespace: &str, feedback_id: &str) -> emend_proto::feedback::v1::Feedback {
        eventually("the feedback is delivered", || async {
            let feedback = self.get(namespace, feedback_id).await;
            let state = feedback.delivery_state();
            holds(state == DeliveryState::Delivered, || format!("{feedback:?}"))?;
            Ok(feedback)
        })
        .await
    }

    /// Waits until the newest event of each piece of feedback in a namespace is delivered; answers with all of it,
    /// newest first, as it is stored. Where a retraction overtook its feedback, the feedback's own event may still be
    /// waiting.
    pub async fn all_delivered(&self, namespace: &str) -> Vec<emend_proto::feedback::v1::Feedback> {
        eventually("all feedback is delivered", || async {
            let waiting = ListFeedbackRequest {
                delivery_state: DeliveryState::Pending.into(),
                ..self.list_request(namespace)
            };
            let waiting = answered(self.service.clone().list_feedback(waiting).await).feedback;
            holds(waiting.is_empty(), || format!("{} at least wait", waiting.len()))
        })
        .await;
        let all = self.list(self.list_request(namespace)).await;
        all.into_iter().map(as_stored).collect()
    }

    /// Lists a whole namespace, in pages of the maximum size.
    pub fn list_request(&self, namespace: &str) -> ListFeedbackRequest {
        ListFeedbackRequest {
            namespace: namespace.into(),
            page_size: 500,
            ..ListFeedbackRequest::default()
        }
    }

    /// One feedback.
    pub async fn get(&self, namespace: &str, feedback_id: &str) -> emend_proto::feedback::v1::Feedback {
        let request = GetFeedbackRequest {
            namespace: namespace.into(),
            feedback_id: feedback_id.into(),
        };
        answered(self.service.clone().get_feedback(request).await)
            .feedback
            .expect("an answer has the feedback")
    }

    /// All pages.
    pub async fn list(&self, mut request: ListFeedbackRequest) -> Vec<emend_proto::feedback::v1::Feedback> {
        let mut all = Vec::new();
        loop {
            let page = answered(self.service.clone().list_feedback(request.clone()).await);
            all.extend(page.feedback);
            if page.next_page_token.is_empty() {
                return all;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Retracts feedback and waits until the retraction is evaluated.
    pub async fn retract(
        &self,
        feedback: &emend_proto::feedback::v1::Feedback,
    ) -> emend_proto::feedback::v1::Feedback {
        let request = RetractFeedbackRequest {
            namespace: feedback.namespace.clone(),
            feedback_id: feedback.feedback_id.clone(),
            reason: "said in error".into(),
            wait: Wait::Evaluated.into(),
        };
        answered(self.service.clone().retract_feedback(request).await);
        self.delivered(&feedback.namespace, &feedback.feedback_id).await
    }
}

/// Feedback without what has become of it: that is stored nowhere, changes with what others say, and may be absent.
#[must_use]
pub fn as_stored(feedback: emend_proto::feedback::v1::Feedback) -> emend_proto::feedback::v1::Feedback {
    emend_proto::feedback::v1::Feedback {
        present: None,
        ..feedback
    }
}

/// Clients of one learning-svc.
#[derive(Debug, Clone)]
pub struct Learning {
    /// For calls that are not spelled out here.
    pub candidates: CandidateServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub resources: ResourceServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub policies: PolicyServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub subscriptions: SubscriptionServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub ingest: IngestServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub evidence: EvidenceServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub outputs: OutputServiceClient<Channel>,
    /// For calls that are not spelled out here.
    pub profiles: ProfileServiceClient<Channel>,
    /// The same, for calls by path.
    pub channel: Channel,
}

impl Learning {
    /// Clients of the service at `address`.
    pub fn at(address: impl std::fmt::Display) -> Self {
        let channel = channel(address);
        Self {
            candidates: CandidateServiceClient::new(channel.clone()),
            resources: ResourceServiceClient::new(channel.clone()),
            policies: PolicyServiceClient::new(channel.clone()),
            subscriptions: SubscriptionServiceClient::new(channel.clone()),
            ingest: IngestServiceClient::new(channel.clone()),
            evidence: EvidenceServiceClient::new(channel.clone()),
            outputs: OutputServiceClient::new(channel.clone()),
            profiles: ProfileServiceClient::new(channel.clone()),
            channel,
        }
    }

    /// The database's head.
    pub async fn head(&self) -> i64 {
        let request = ListNodesRequest::default();
        answered(self.subscriptions.clone().list_nodes(request).await).head_revision
    }

    /// All candidates that match, across pages.
    pub async fn list_candidates(&self, mut request: ListCandidatesRequest) -> Vec<Candidate> {
        let mut all = Vec::new();
        loop {
            let page = answered(self.candidates.clone().list_candidates(request.clone()).await);
            all.extend(page.candidates);
            if page.next_page_token.is_empty() {
                return all;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// The candidates for a key.
    pub async fn candidates_for(&self, key: &str) -> Vec<Candidate> {
        self.list_candidates(ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            key: key.into(),
            ..ListCandidatesRequest::default()
        })
        .await
    }

    /// The only candidate for a key with this value.
    pub async fn candidate_for(&self, key: &str, maps_to: &str) -> Candidate {
        let candidates = self.candidates_for(key).await;
        let mut matching: Vec<Candidate> = candidates
            .iter()
            .filter(|candidate| super::says::maps_to(candidate.value.as_ref()) == maps_to)
            .cloned()
            .collect();
        assert_eq!(
            matching.len(),
            1,
            "one candidate {key} → {maps_to}: {candidates:?}"
        );
        matching.remove(0)
    }

    /// One candidate with everything that a reviewer sees.
    pub async fn candidate(&self, candidate_id: &str) -> GetCandidateResponse {
        let request = GetCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate_id.into(),
        };
        answered(self.candidates.clone().get_candidate(request).await)
    }

    /// Approves a candidate unedited.
    pub async fn approve(&self, candidate: &Candidate) -> Result<(Candidate, i64), Status> {
        let request = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id.clone(),
            on_behalf_of: "a reviewer".into(),
            ..ApproveCandidateRequest::default()
        };
        let answer = self
            .candidates
            .clone()
            .approve_candidate(request)
            .await?
            .into_inner();
        let candidate = answer.candidate.expect("an answer has the candidate");
        Ok((candidate, answer.revision))
    }

    /// Rejects a candidate, with a reason.
    pub async fn reject(&self, candidate: &Candidate, reason: &str) -> Result<(Candidate, i64), Status> {
        let request = RejectCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id.clone(),
            reason: reason.into(),
            on_behalf_of: "a reviewer".into(),
            ..RejectCandidateRequest::default()
        };
        let answer = self
            .candidates
            .clone()
            .reject_candidate(request)
            .await?
            .into_inner();
        let candidate = answer.candidate.expect("an answer has the candidate");
        Ok((candidate, answer.revision))
    }

    /// Undoes the last decision on a candidate, for the reviewer who made it.
    pub async fn undo(&self, candidate: &Candidate) -> Result<(Candidate, i64), Status> {
        let request = UndoDecisionRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id.clone(),
            on_behalf_of: "a reviewer".into(),
            ..UndoDecisionRequest::default()
        };
        let answer = self.candidates.clone().undo_decision(request).await?.into_inner();
        let candidate = answer.candidate.expect("an answer has the candidate");
        Ok((candidate, answer.revision))
    }

    /// Sets a value as an operator.
    pub async fn put(&self, key: ResourceKey, value: ResourceValue) -> PutResourceResponse {
        let request = PutResourceRequest {
            key: Some(key),
            value: Some(value),
            reason: "an operator's decision".into(),
            ..PutResourceRequest::default()
        };
        answered(self.resources.clone().put_resource(request).await)
    }

    /// Deletes a value as an operator; answers with the revision.
    pub async fn delete(&self, key: ResourceKey) -> Result<i64, Status> {
        let request = DeleteResourceRequest {
            key: Some(key),
            reason: "an operator's decision".into(),
            ..DeleteResourceRequest::default()
        };
        let answer = self.resources.clone().delete_resource(request).await?;
        Ok(answer.into_inner().revision)
    }

    /// Reverts a revision; answers with the new one.
    pub async fn revert(&self, revision: i64) -> Result<i64, Status> {
        let request = RevertRevisionRequest {
            namespace: NAMESPACE.into(),
            revision,
            reason: "it was wrong".into(),
            ..RevertRevisionRequest::default()
        };
        let answer = self.resources.clone().revert_revision(request).await?;
        Ok(answer.into_inner().revision)
    }

    /// All pages, from a state at least as new as the database was at the time of the call.
    pub async fn list_resources(&self, request: ListResourcesRequest) -> Vec<Resource> {
        let mut request = ListResourcesRequest {
            min_revision: self.head().await,
            ..request
        };
        let mut all = Vec::new();
        loop {
            let page = answered(self.resources.clone().list_resources(request.clone()).await);
            all.extend(page.resources);
            if page.next_page_token.is_empty() {
                return all;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// All resources in a namespace that apply to everybody.
    pub async fn resources_in(&self, namespace: &str) -> Vec<Resource> {
        self.list_resources(ListResourcesRequest {
            namespace: namespace.into(),
            page_size: 1_000,
            ..ListResourcesRequest::default()
        })
        .await
    }

    /// The whole audit trail of the tests' namespace, newest first.
    pub async fn revisions(&self) -> Vec<Revision> {
        let mut request = ListRevisionsRequest {
            namespace: NAMESPACE.into(),
            page_size: 500,
            ..ListRevisionsRequest::default()
        };
        let mut all = Vec::new();
        loop {
            let page = answered(self.resources.clone().list_revisions(request.clone()).await);
            all.extend(page.revisions);
            if page.next_page_token.is_empty() {
                return all;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// What a node answers for a phrase or a name, from a state at least as new as the database was at the time of the
    /// call.
    pub async fn resolve(&self, kind: ResourceKind, phrase: &str, user_id: &str) -> ResolveResponse {
        let request = ResolveRequest {
            namespace: NAMESPACE.into(),
            kind: kind.into(),
            phrase: phrase.into(),
            user_id: user_id.into(),
            min_revision: self.head().await,
            ..ResolveRequest::default()
        };
        answered(self.resources.clone().resolve(request).await)
    }

    /// What everybody gets for a phrase; empty if nothing was learned.
    pub async fn verb_for(&self, phrase: &str) -> String {
        let resolved = self.resolve(ResourceKind::InvocationPhrase, phrase, "").await;
        resolved.r#match.map_or_else(String::new, |found| found.value)
    }

    /// What everybody gets for a name; empty if nothing was learned.
    pub async fn entity_for(&self, alias: &str) -> String {
        let resolved = self.resolve(ResourceKind::EntityAlias, alias, "").await;
        resolved.r#match.map_or_else(String::new, |found| found.value)
    }

    /// Imports rows under a header.
    pub async fn import(
        &self,
        header: ImportHeader,
        rows: Vec<ImportRow>,
    ) -> Result<ImportResourcesResponse, Status> {
        let mut messages = vec![ImportResourcesRequest {
            message: Some(Message::Header(header)),
        }];
        messages.extend(rows.chunks(1_000).map(|rows| ImportResourcesRequest {
            message: Some(Message::Rows(ImportRows { rows: rows.to_vec() })),
        }));
        let answer = self
            .resources
            .clone()
            .import_resources(tokio_stream::iter(messages))
            .await?;
        Ok(answer.into_inner())
    }
}
