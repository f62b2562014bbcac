//! For each RPC a request that names a namespace, and what its items were answered.

use std::sync::LazyLock;

use bytes::Bytes;
use emend_proto::{
    DESCRIPTOR_SET,
    common::v1::{ItemStatus, ResourceKey},
    feedback::v1 as feedback,
    learning::v1 as learning,
};
use emend_tests::harness::{says, verb};
use prost::Message;
use prost_types::{FileDescriptorSet, field_descriptor_proto::Type};

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

static DESCRIPTORS: LazyLock<FileDescriptorSet> =
    LazyLock::new(|| FileDescriptorSet::decode(DESCRIPTOR_SET).expect("the descriptor set"));

/// A request of an RPC that has only its field `namespace`.
fn with_namespace(path: &str, namespace: &str) -> Vec<u8> {
    let files = || DESCRIPTORS.file.iter();
    let services = files().flat_map(|file| file.service.iter().map(move |service| (file, service)));
    let request = services
        .filter(|(file, service)| path.starts_with(&format!("/{}.{}/", file.package(), service.name())))
        .flat_map(|(_, service)| &service.method)
        .find(|rpc| rpc.name() == method(path))
        .unwrap_or_else(|| panic!("no RPC {path}"))
        .input_type();
    let field = files()
        .flat_map(|file| file.message_type.iter().map(move |message| (file, message)))
        .filter(|(file, message)| request == format!(".{}.{}", file.package(), message.name()))
        .flat_map(|(_, message)| &message.field)
        .find(|field| field.name() == "namespace" && field.r#type() == Type::String)
        .unwrap_or_else(|| panic!("{path} has no field namespace: say how its request names one"));
    let number = u32::try_from(field.number()).expect("a number of a field");
    let mut bytes = Vec::new();
    prost::encoding::string::encode(number, &namespace.to_owned(), &mut bytes);
    bytes
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
        "UpdateSettings" => feedback::UpdateSettingsRequest {
            settings: Some(feedback::Settings {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        "Ingest" => learning::IngestRequest {
            events: vec![learning::Event {
                namespace: ns(),
                ..Default::default()
            }],
            ..Default::default()
        }
        .encode_to_vec(),
        "GetCandidate" => learning::GetCandidateRequest {
            namespace: ns(),
            candidate_id: NOBODY.into(),
        }
        .encode_to_vec(),
        "BatchApproveCandidates" => learning::BatchApproveCandidatesRequest {
            requests: vec![learning::ApproveCandidateRequest {
                namespace: ns(),
                ..Default::default()
            }],
        }
        .encode_to_vec(),
        "BatchRejectCandidates" => learning::BatchRejectCandidatesRequest {
            requests: vec![learning::RejectCandidateRequest {
                namespace: ns(),
                ..Default::default()
            }],
        }
        .encode_to_vec(),
        "UpdateNamespacePolicy" => learning::UpdateNamespacePolicyRequest {
            policy: Some(learning::NamespacePolicy {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        "PreviewPolicy" => learning::PreviewPolicyRequest {
            policy: Some(learning::Policy {
                namespace: ns(),
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec(),
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
        "ImportResources" => learning::ImportResourcesRequest {
            message: Some(learning::import_resources_request::Message::Header(
                learning::ImportHeader {
                    namespace: ns(),
                    ..Default::default()
                },
            )),
        }
        .encode_to_vec(),
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
        _ => with_namespace(path, namespace),
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
