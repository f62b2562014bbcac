//! Every RPC × every role × own and foreign namespace. The expectations are read from the table in docs/security.md,
//! which a test in `roles` compares with the rules in force.

use bytes::Bytes;
use emend_base::status::Explained;
use emend_proto::frame::{Frame, FrameCodec};
use emend_serve::auth::Role;
use emend_tests::harness::rpc::{channel, item_refusal};
use tonic::{Code, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel};

use super::{
    Caller, EVERYWHERE, EVERYWHERE_FOR_USERS, FOREIGN, Guarded, OWN, OWN_FOR_USERS, authorize,
    messages::{item, message, method},
    on_both_databases, token_of,
};

/// A row of the table.
struct Row {
    path: String,
    /// In the order of [`Role::ALL`].
    may: Vec<bool>,
    namespace: String,
}

fn documented() -> Vec<Row> {
    let text = include_str!("../../../../docs/security.md");
    let rows: Vec<Row> = text
        .lines()
        .filter(|line| line.starts_with("| `/emend."))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [path, may @ .., namespace] = &cells[..] else {
                panic!("no row: {line}")
            };
            Row {
                path: path.trim_matches('`').to_owned(),
                may: may.iter().map(|&cell| cell == "yes").collect(),
                namespace: (*namespace).to_owned(),
            }
        })
        .collect();
    assert!(rows.len() > 20, "the table is there");
    rows
}

/// Calls any RPC by its path with one encoded message; answers with the first response message, if any.
async fn call(
    channel: &Channel,
    path: &str,
    message: Bytes,
    token: Option<&str>,
) -> Result<Option<Bytes>, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let mut request = tonic::Request::new(tokio_stream::iter([Frame(message)]));
    authorize(request.metadata_mut(), token);
    let path: PathAndQuery = path.parse().unwrap();
    let codec = FrameCodec::<Frame, Frame>::default();
    let mut answers = grpc.streaming(request, path, codec).await?.into_inner();
    Ok(answers.message().await?.map(|Frame(bytes)| bytes))
}

/// The reason why the caller was refused access; `None` if it was let through, whatever became of the request.
fn denied(path: &str, answer: Result<Option<Bytes>, Status>) -> Option<String> {
    let refusal = match answer {
        Err(status) => Some(Explained::from(status)),
        Ok(answer) => item_refusal(answer.and_then(|answer| item(path, &answer)).as_ref()),
    };
    refusal
        .filter(|refusal| matches!(refusal.code, Code::PermissionDenied | Code::Unauthenticated))
        .map(|refusal| format!("{:?} {}", refusal.code, refusal.reason.unwrap_or_default()))
}

/// What the table says.
fn expected(row: &Row, role: usize, namespace: &str) -> Option<String> {
    if !row.may[role] {
        return Some("PermissionDenied ROLE_MISSING".to_owned());
    }
    let is_refused = match row.namespace.as_str() {
        "named" | "named, or all" | "named by each item" | "named, or those of the caller" => {
            namespace == FOREIGN
        }
        "all" => true,
        // A caller can't report for a node that another caller subscribed, or that does not exist.
        "none" => return Some("PermissionDenied NODE_NOT_SUBSCRIBED".to_owned()),
        other => panic!("{other:?} is not explained"),
    };
    is_refused.then(|| "PermissionDenied NAMESPACE_DENIED".to_owned())
}

fn channels(guarded: &Guarded) -> impl Fn(&str) -> Channel + use<> {
    let feedback = channel(guarded.system.feedback[0].front.address());
    let learning = channel(guarded.system.learning[0].front.address());
    move |path| {
        if path.starts_with("/emend.feedback.") {
            feedback.clone()
        } else {
            learning.clone()
        }
    }
}

/// A caller with each role in its own namespace, which may act for users there, and one that may do everything everywhere.
fn one_of_each_role() -> Vec<Caller<'static>> {
    let of_each = Role::ALL
        .iter()
        .map(|role| (role.name(), role.name(), OWN_FOR_USERS));
    of_each
        .chain([("everywhere", "admin", EVERYWHERE_FOR_USERS)])
        .collect()
}

/// Everything by which a stranger could tell two refusals apart.
fn details(answer: Result<Option<Bytes>, Status>) -> (Code, String, Option<String>) {
    let refusal = Explained::from(answer.unwrap_err());
    (refusal.code, refusal.message, refusal.reason)
}

on_both_databases! {
    async fn every_rpc_answers_every_role_as_documented(guarded: one_of_each_role()) {
        let channel_of = channels(guarded);
        let mut wrong = Vec::new();
        for row in documented() {
            let channel = channel_of(&row.path);
            for (place, role) in Role::ALL.into_iter().enumerate() {
                for namespace in [OWN, FOREIGN] {
                    let sent = message(&row.path, namespace);
                    let answer = call(&channel, &row.path, sent, Some(&token_of(role.name()))).await;
                    let (found, expected) = (denied(&row.path, answer), expected(&row, place, namespace));
                    if found != expected {
                        wrong.push(format!(
                            "{} as {role} in {namespace}: {found:?}, not {expected:?}",
                            row.path
                        ));
                    }
                }
            }
            // A caller with access to all namespaces may do everywhere what its role may.
            if row.may[Role::ALL.len() - 1] && row.namespace != "none" {
                let sent = message(&row.path, FOREIGN);
                let answer = call(&channel, &row.path, sent, Some(&token_of("everywhere"))).await;
                if let Some(found) = denied(&row.path, answer) {
                    wrong.push(format!("{} as an admin of all: {found}", row.path));
                }
            }
            // No namespace stands for all, and is refused to callers without access to all.
            if row.namespace == "named, or all" {
                let sent = message(&row.path, "");
                let answer = call(&channel, &row.path, sent, Some(&token_of("admin"))).await;
                if denied(&row.path, answer).is_none() {
                    wrong.push(format!("{} of all namespaces as an admin of one", row.path));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    async fn a_stranger_gets_the_same_answer_whatever_it_asks_for(guarded: [("admin", "admin", EVERYWHERE)]) {
        let channel_of = channels(guarded);
        let missing = (
            Code::Unauthenticated,
            "the call needs a bearer token or a client certificate".to_owned(),
            Some("CREDENTIALS_MISSING".to_owned()),
        );
        let bad = (
            Code::Unauthenticated,
            "the credentials are not accepted".to_owned(),
            Some("CREDENTIALS_NOT_ACCEPTED".to_owned()),
        );
        for row in documented() {
            let channel = channel_of(&row.path);
            let forgotten = row.path.replace(method(&row.path), "Forgotten");
            for namespace in [OWN, FOREIGN, "No Name"] {
                for path in [&row.path, &forgotten] {
                    let sent = || message(&row.path, namespace);
                    assert_eq!(details(call(&channel, path, sent(), None).await), missing, "{path}");
                    for token in ["guessed", "admin-tokem", "", "admin-token admin-token"] {
                        let answer = call(&channel, path, sent(), Some(token)).await;
                        assert_eq!(details(answer), bad, "{path} {token}");
                    }
                }
            }
        }
    }
}
