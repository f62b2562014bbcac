//! For each RPC a request that names a namespace, and what its items were answered.

use bytes::Bytes;
use emend_proto::{
    common::v1::{ItemStatus, ResourceKey},
    feedback::v1 as feedback,
    learning::v1 as learning,
};
use emend_tests::harness::{says, verb};
use prost::Message;

const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// The method's name without its service.
pub(super) fn method(path: &str) -> &str {
    path.rsplit_once('/').unwrap().1
}

fn submission(namespace: &str) -> feedback::SubmitFeedbackRequest {
    feedback::SubmitFeedbackRequest {
        namespace: namespace.into(),
        ..says("jane", verb("set up a csa", "create_csa"))
    }
}

/// A message with just a namespace.
trait FromNamespace {
    fn from_namespace(namespace: String) -> Self;
}

macro_rules! from_namespace {
    ($($message:ty),+ $(,)?) => { $( impl FromNamespace for $message {
        fn from_namespace(namespace: String) -> Self {
            Self { namespace, ..Self::default() }
        }
    } )+ };
}
from_namespace!(
    feedback::ListFeedbackRequest,
    feedback::ListDeadLettersRequest,
    feedback::RedactFeedbackRequest,
    feedback::RedactReporterRequest,
    feedback::RedriveDeadLettersRequest,
    feedback::RecordQueryRequest,
    feedback::RecordInteractionRequest,
    feedback::ListQueriesRequest,
    feedback::GetFeedbackStatsRequest,
    feedback::ListNegativeTermsRequest,
    learning::Event,
    learning::GetStandingsRequest,
    learning::ListCandidatesRequest,
    learning::ApproveCandidateRequest,
    learning::RejectCandidateRequest,
    learning::GetPolicyRequest,
    learning::ListResourcesRequest,
    learning::ResolveRequest,
    learning::ImportHeader,
    learning::ListRevisionsRequest,
    learning::RevertRevisionRequest,
    learning::UpsertEvidenceRequest,
    learning::DeleteEvidenceRequest,
    learning::GetClaimRequest,
    learning::ListClaimsRequest,
    learning::ListEdgesRequest,
    learning::ListDomainRulesRequest,
    learning::ListBlockedDomainsRequest,
    learning::ListEvidenceEventsRequest,
    learning::GetReviewStatsRequest,
    learning::ExportMaterialsRequest,
    learning::ExportCorrectionsRequest,
    learning::RankCitationsRequest,
    learning::RenderPromptRequest,
    learning::GetOutputStatsRequest,
    learning::ListPromptVersionsRequest,
    learning::PreviewImprovementRequest,
    learning::GenerateImprovementRequest,
    learning::UsePromptVersionRequest,
    learning::ExportExamplesRequest,
    learning::GetProfileRequest,
    learning::RecordActivityRequest,
    learning::GenerateSuggestionsRequest,
    learning::ListSuggestionsRequest,
    learning::AcceptSuggestionRequest,
    learning::RejectSuggestionRequest,
);

impl FromNamespace for learning::GetNamespacePolicyRequest {
    fn from_namespace(namespace: String) -> Self {
        Self { namespace }
    }
}

/// A request that names this namespace wherever it can. It may lack what matters only to an authorized caller.
pub(super) fn message(path: &str, namespace: &str) -> Bytes {
    let ns = || namespace.to_owned();
    let key = || {
        Some(ResourceKey {
            namespace: namespace.to_owned(),
            ..ResourceKey::default()
        })
    };
    macro_rules! naming {
        ($message:ty) => {
            <$message>::encode_to_vec(&<$message>::from_namespace(ns()))
        };
    }
    let bytes = match method(path) {
        "SubmitFeedback" => submission(namespace).encode_to_vec(),
        "BatchSubmitFeedback" => feedback::BatchSubmitFeedbackRequest {
            requests: vec![submission(namespace)],
            ..Default::default()
        }
        .encode_to_vec(),
        "GetFeedback" => feedback::GetFeedbackRequest {
            namespace: ns(),
            feedback_id: NOBODY.into(),
        }
        .encode_to_vec(),
        "RetractFeedback" => feedback::RetractFeedbackRequest {
            namespace: ns(),
            feedback_id: NOBODY.into(),
            ..Default::default()
        }
        .encode_to_vec(),
        "ListFeedback" => naming!(feedback::ListFeedbackRequest),
        "ListDeadLetters" => naming!(feedback::ListDeadLettersRequest),
        "RedriveDeadLetters" => naming!(feedback::RedriveDeadLettersRequest),
        "RedactFeedback" => naming!(feedback::RedactFeedbackRequest),
        "ExportFeedback" => feedback::ExportFeedbackRequest {
            namespace: ns(),
            format: feedback::ExportFormat::Csv.into(),
            ..Default::default()
        }
        .encode_to_vec(),
        "UpdateFeedbackLabels" => feedback::UpdateFeedbackLabelsRequest {
            namespace: ns(),
            feedback_id: NOBODY.into(),
            processed: Some(true),
            ..Default::default()
        }
        .encode_to_vec(),
        "RedactReporter" => naming!(feedback::RedactReporterRequest),
        "RecordQuery" => naming!(feedback::RecordQueryRequest),
        "RecordInteraction" => naming!(feedback::RecordInteractionRequest),
        "ListQueries" => naming!(feedback::ListQueriesRequest),
        "GetFeedbackStats" => naming!(feedback::GetFeedbackStatsRequest),
        "ListNegativeTerms" => naming!(feedback::ListNegativeTermsRequest),
        "GetSettings" => feedback::GetSettingsRequest { namespace: ns() }.encode_to_vec(),
        "UpdateSettings" => feedback::UpdateSettingsRequest {
            settings: Some(feedback::Settings {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        "Ingest" => learning::IngestRequest {
            events: vec![learning::Event::from_namespace(ns())],
            ..Default::default()
        }
        .encode_to_vec(),
        "GetStandings" => naming!(learning::GetStandingsRequest),
        "ListCandidates" => naming!(learning::ListCandidatesRequest),
        "GetCandidate" => learning::GetCandidateRequest {
            namespace: ns(),
            candidate_id: NOBODY.into(),
        }
        .encode_to_vec(),
        "ApproveCandidate" => naming!(learning::ApproveCandidateRequest),
        "RejectCandidate" => naming!(learning::RejectCandidateRequest),
        "BatchApproveCandidates" => learning::BatchApproveCandidatesRequest {
            requests: vec![learning::ApproveCandidateRequest::from_namespace(ns())],
        }
        .encode_to_vec(),
        "BatchRejectCandidates" => learning::BatchRejectCandidatesRequest {
            requests: vec![learning::RejectCandidateRequest::from_namespace(ns())],
        }
        .encode_to_vec(),
        "GetNamespacePolicy" => naming!(learning::GetNamespacePolicyRequest),
        "UpdateNamespacePolicy" => learning::UpdateNamespacePolicyRequest {
            policy: Some(learning::NamespacePolicy {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        "GetPolicy" => naming!(learning::GetPolicyRequest),
        "UpdatePolicy" => learning::UpdatePolicyRequest {
            policy: Some(learning::Policy {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        "GetResource" => learning::GetResourceRequest {
            key: key(),
            ..Default::default()
        }
        .encode_to_vec(),
        "PutResource" => learning::PutResourceRequest {
            key: key(),
            ..Default::default()
        }
        .encode_to_vec(),
        "DeleteResource" => learning::DeleteResourceRequest {
            key: key(),
            ..Default::default()
        }
        .encode_to_vec(),
        "ListResources" => naming!(learning::ListResourcesRequest),
        "Resolve" => naming!(learning::ResolveRequest),
        "ImportResources" => learning::ImportResourcesRequest {
            message: Some(learning::import_resources_request::Message::Header(
                learning::ImportHeader::from_namespace(ns()),
            )),
        }
        .encode_to_vec(),
        "ListRevisions" => naming!(learning::ListRevisionsRequest),
        "RevertRevision" => naming!(learning::RevertRevisionRequest),
        "UpsertEvidence" => naming!(learning::UpsertEvidenceRequest),
        "DeleteEvidence" => naming!(learning::DeleteEvidenceRequest),
        "GetClaim" => naming!(learning::GetClaimRequest),
        "ListClaims" => naming!(learning::ListClaimsRequest),
        "ListEdges" => naming!(learning::ListEdgesRequest),
        "ListDomainRules" => naming!(learning::ListDomainRulesRequest),
        "ListBlockedDomains" => naming!(learning::ListBlockedDomainsRequest),
        "ListEvidenceEvents" => naming!(learning::ListEvidenceEventsRequest),
        "GetReviewStats" => naming!(learning::GetReviewStatsRequest),
        "ExportMaterials" => naming!(learning::ExportMaterialsRequest),
        "ExportCorrections" => naming!(learning::ExportCorrectionsRequest),
        "RankCitations" => naming!(learning::RankCitationsRequest),
        "RenderPrompt" => naming!(learning::RenderPromptRequest),
        "GetOutputStats" => naming!(learning::GetOutputStatsRequest),
        "ListPromptVersions" => naming!(learning::ListPromptVersionsRequest),
        "PreviewImprovement" => naming!(learning::PreviewImprovementRequest),
        "GenerateImprovement" => naming!(learning::GenerateImprovementRequest),
        "UsePromptVersion" => naming!(learning::UsePromptVersionRequest),
        "ExportExamples" => naming!(learning::ExportExamplesRequest),
        "GetProfile" => naming!(learning::GetProfileRequest),
        "RecordActivity" => naming!(learning::RecordActivityRequest),
        "GenerateSuggestions" => naming!(learning::GenerateSuggestionsRequest),
        "ListSuggestions" => naming!(learning::ListSuggestionsRequest),
        "AcceptSuggestion" => naming!(learning::AcceptSuggestionRequest),
        "RejectSuggestion" => naming!(learning::RejectSuggestionRequest),
        "UpdateProfile" => learning::UpdateProfileRequest {
            profile: Some(learning::Profile {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        "ApplyTrustFile" => learning::ApplyTrustFileRequest {
            content: format!("namespaces: [{namespace}]\nversion: 1\n"),
            format: learning::TrustFileFormat::Yaml.into(),
            ..Default::default()
        }
        .encode_to_vec(),
        "Subscribe" => subscription(&[namespace]).encode_to_vec(),
        "ReportStatus" => learning::ReportStatusRequest {
            node_id: "node".into(),
            ..Default::default()
        }
        .encode_to_vec(),
        "ListNodes" => learning::ListNodesRequest::default().encode_to_vec(),
        other => panic!("no message of {other}: say which"),
    };
    bytes.into()
}

/// A subscription to these namespaces.
pub(super) fn subscription(namespaces: &[&str]) -> learning::SubscribeRequest {
    learning::SubscribeRequest {
        node: Some(learning::NodeInfo {
            id: "node".into(),
            ..Default::default()
        }),
        namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
        ..Default::default()
    }
}

/// Why the first item of an answer was refused.
pub(super) fn item(path: &str, answer: &Bytes) -> Option<ItemStatus> {
    let of_review = |results: Vec<learning::ReviewResult>| results.into_iter().next()?.status;
    match method(path) {
        "BatchSubmitFeedback" => {
            let answer = feedback::BatchSubmitFeedbackResponse::decode(&answer[..]).unwrap();
            answer.results.into_iter().next()?.status
        }
        "BatchApproveCandidates" => of_review(
            learning::BatchApproveCandidatesResponse::decode(&answer[..])
                .unwrap()
                .results,
        ),
        "BatchRejectCandidates" => of_review(
            learning::BatchRejectCandidatesResponse::decode(&answer[..])
                .unwrap()
                .results,
        ),
        "Ingest" => {
            let answer = learning::IngestResponse::decode(&answer[..]).unwrap();
            match answer.results.into_iter().next()?.result? {
                learning::event_result::Result::Error(status) => Some(status),
                learning::event_result::Result::Outcome(_) => None,
            }
        }
        _ => None,
    }
}
