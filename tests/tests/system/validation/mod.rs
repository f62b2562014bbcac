//! Bad input of every kind on every RPC: `INVALID_ARGUMENT` that names every violated field at once, and nothing is
//! written.
//!
//! The tables beside this module hold, for each RPC, requests and the exact fields that each violates.

mod citations;
mod evidence;
mod feedback;
mod items;
mod outputs;
mod policies;
mod profiles;
mod queries;
mod resources;
mod review;
mod streams;
mod trust;

use std::collections::BTreeSet;

use bytes::Bytes;
use emend_base::status::Explained;
use emend_proto::{
    DESCRIPTOR_SET,
    common::v1::{Resource, ResourceKind},
    learning::v1::{Candidate, GetPolicyRequest, ListCandidatesRequest, ListNodesRequest, Policy},
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, System, alias, answered,
        rpc::{call, fields},
        says, verb,
    },
};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::Code;

/// A bad request and the fields that it violates.
pub(crate) struct Case {
    /// `/package.Service/Method`.
    path: &'static str,
    what: String,
    messages: Vec<Bytes>,
    /// Sorted.
    fields: Vec<String>,
}

/// Collects the cases of one RPC.
pub(crate) struct Rpc {
    path: &'static str,
    cases: Vec<Case>,
}

impl Rpc {
    fn of(path: &'static str) -> Self {
        Self {
            path,
            cases: Vec::new(),
        }
    }

    /// One message that violates exactly these fields.
    #[must_use]
    fn case(self, what: impl Into<String>, request: &impl Message, fields: &[&str]) -> Self {
        self.stream(what, &[request], fields)
    }

    /// Several messages that violate exactly these fields.
    #[must_use]
    fn stream(mut self, what: impl Into<String>, requests: &[&impl Message], fields: &[&str]) -> Self {
        let mut fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
        fields.sort_unstable();
        self.cases.push(Case {
            path: self.path,
            what: what.into(),
            messages: requests
                .iter()
                .map(|request| request.encode_to_vec().into())
                .collect(),
            fields,
        });
        self
    }
}

/// A text with this many characters.
fn long(length: usize) -> String {
    "x".repeat(length)
}

/// Contains a character that no text may.
const NUL: &str = "a\0b";
/// Invalid namespaces.
const BAD_NAMESPACES: [&str; 8] = ["Fund", "-a", "a-", "a_b", "a.b", " a", "a\0b", "é"];
/// Invalid ids.
const BAD_IDS: [&str; 5] = [
    "",
    "x",
    "00000000-0000-0000-0000-000000000000",
    "0192d3c57a0e7b519c553d5f0a4e8f10",
    "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f\0",
];
/// A valid id of nothing that exists.
const NOBODY: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";
/// A number that no enum has.
const UNKNOWN: i32 = 99;
/// The stable reason of every refusal here.
const REASON: &str = "INVALID_FIELDS";

fn table() -> Vec<Case> {
    let tables = [
        citations::cases(),
        evidence::cases(),
        feedback::cases(),
        queries::cases(),
        outputs::cases(),
        policies::cases(),
        profiles::cases(),
        resources::cases(),
        review::cases(),
        streams::cases(),
        trust::cases(),
    ];
    tables.into_iter().flatten().flat_map(|rpc| rpc.cases).collect()
}

#[test]
fn every_rpc_is_tested_with_bad_requests() {
    let descriptors = FileDescriptorSet::decode(DESCRIPTOR_SET).expect("the descriptor set");
    let mut rpcs = BTreeSet::new();
    for file in &descriptors.file {
        // It has one field, which the server's own tests cover.
        if file.package() == "emend.access.v1" {
            continue;
        }
        for service in &file.service {
            for method in &service.method {
                rpcs.insert(format!(
                    "/{}.{}/{}",
                    file.package(),
                    service.name(),
                    method.name()
                ));
            }
        }
    }
    let covered: BTreeSet<String> = table().into_iter().map(|case| case.path.to_owned()).collect();
    assert_eq!(covered, rpcs);
}

/// Everything that a request could have written.
#[derive(Debug, PartialEq)]
struct Written {
    head: i64,
    feedback: Vec<emend_proto::feedback::v1::Feedback>,
    candidates: Vec<Candidate>,
    resources: Vec<Resource>,
    policies: Vec<Policy>,
    nodes: Vec<String>,
}

async fn written(system: &System) -> Written {
    let (feedback, learning) = (system.feedback(), system.learning());
    let mut policies = Vec::new();
    for kind in [
        ResourceKind::InvocationPhrase,
        ResourceKind::EntityAlias,
        ResourceKind::Prohibition,
    ] {
        let request = GetPolicyRequest {
            namespace: NAMESPACE.into(),
            kind: kind.into(),
        };
        policies.extend(answered(learning.policies.clone().get_policy(request).await).policy);
    }
    let nodes = answered(
        learning
            .subscriptions
            .clone()
            .list_nodes(ListNodesRequest::default())
            .await,
    )
    .nodes;
    Written {
        head: learning.head().await,
        feedback: feedback.all_delivered(NAMESPACE).await,
        candidates: learning
            .list_candidates(ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                ..ListCandidatesRequest::default()
            })
            .await,
        resources: learning.resources_in(NAMESPACE).await,
        policies,
        nodes: nodes
            .into_iter()
            .filter_map(|node| node.info)
            .map(|info| info.id)
            .collect(),
    }
}

both_databases! {
    async fn every_violation_of_a_bad_request_is_named_and_nothing_is_written(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        // State that a bad request could spoil.
        feedback.learn(says("jane", alias("jd", "person-17"))).await;
        feedback.learn(says("jane", verb("set up a csa", "create_csa"))).await;
        let before = written(system).await;
        let mut wrong = Vec::new();
        for Case { path, what, messages, fields: expected } in table() {
            let channel = if path.starts_with("/emend.feedback.") { &feedback.channel } else { &learning.channel };
            let answer = tokio::time::timeout(
                std::time::Duration::from_secs(10),
                call(channel, path, messages),
            )
            .await;
            match answer {
                Err(_) => wrong.push(format!("{path}: {what}: no answer")),
                Ok(Ok(answer)) => wrong.push(format!("{path}: {what}: taken: {answer:?}")),
                Ok(Err(status)) => {
                    let refusal = Explained::from(status);
                    let named = fields(&refusal);
                    if refusal.code != Code::InvalidArgument {
                        wrong.push(format!("{path}: {what}: {refusal}"));
                    } else if named != expected {
                        wrong.push(format!("{path}: {what}:\n  expected {expected:?}\n  named    {named:?}"));
                    } else if refusal.reason.as_deref() != Some(REASON) || refusal.domain.is_none() {
                        wrong.push(format!("{path}: {what}: not for the stable reason: {refusal}"));
                    } else if refusal.field_violations.iter().any(|violation| violation.description.is_empty()) {
                        wrong.push(format!("{path}: {what}: a field without a description"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert_eq!(written(system).await, before, "nothing was written");
    }
}
