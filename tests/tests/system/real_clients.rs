//! Third-party clients that know Emend by reflection alone: they submit, subscribe, list, approve, and read the details
//! of an error.

use std::{env, ffi::OsString, path::PathBuf};

use emend_base::testing::skipped;
use emend_tests::harness::{
    System,
    process::{Process, run},
};
use serde_json::{Value, json};
use tokio::process::Command;

const FEEDBACK: &str = "emend.feedback.v1.FeedbackService";
const CANDIDATES: &str = "emend.learning.v1.CandidateService";
const SUBSCRIPTIONS: &str = "emend.learning.v1.SubscriptionService";

/// The tool that a variable names; `None` if it is unset, after one line of output that says so.
pub(crate) fn tool(variable: &str) -> Option<OsString> {
    let tool = env::var_os(variable).filter(|tool| !tool.is_empty());
    if tool.is_none() {
        skipped(format_args!("{variable} is not set"));
    }
    tool
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_grpcio_needs_nothing_but_reflection() {
    let Some(python) = tool("EMEND_TEST_PYTHON") else {
        return;
    };
    let system = System::sqlite().await;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/client.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(system.feedback[0].front.address().to_string())
        .arg(system.learning[0].front.address().to_string());
    let printed = run("client.py", command)
        .await
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(printed.contains("all as it should be"), "{printed}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpcurl_needs_nothing_but_reflection() {
    let Some(grpcurl) = tool("EMEND_TEST_GRPCURL") else {
        return;
    };
    let system = System::sqlite().await;
    needs_nothing_but_reflection(&system, |address, method, request| {
        let mut command = Command::new(&grpcurl);
        command.args(["-plaintext", "-format-error", "-d", request, address, method]);
        command
    })
    .await;
    let mut listing = Command::new(&grpcurl);
    listing.args([
        "-plaintext",
        &system.learning[0].front.address().to_string(),
        "list",
    ]);
    let listed = run("grpcurl list", listing).await.unwrap();
    assert!(listed.contains(SUBSCRIPTIONS), "{listed}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buf_curl_needs_nothing_but_reflection() {
    let Some(buf) = tool("EMEND_TEST_BUF") else { return };
    let system = System::sqlite().await;
    needs_nothing_but_reflection(&system, |address, method, request| {
        let mut command = Command::new(&buf);
        command
            .args([
                "curl",
                "--protocol",
                "grpc",
                "--http2-prior-knowledge",
                "--data",
                request,
            ])
            .arg(format!("http://{address}/{method}"));
        command
    })
    .await;
    system.stop().await;
}

/// `command` builds the command that calls a method at an address with a JSON request.
async fn needs_nothing_but_reflection(system: &System, command: impl Fn(&str, &str, &str) -> Command) {
    let feedback = system.feedback[0].front.address().to_string();
    let learning = system.learning[0].front.address().to_string();
    let call = async |address: &str, method: String, request: Value| -> Value {
        let printed = run(&method, command(address, &method, &request.to_string())).await;
        let printed = printed.unwrap_or_else(|failure| panic!("{failure}"));
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{method}: {error}: {printed}"))
    };
    let submission = json!({
        "namespace": "fund-admin",
        "reporter": {"id": "jane"},
        "wait": "WAIT_EVALUATED",
        "correction": {"verb": {"originalInput": "Set up a CSA", "correctChoice": "create_csa"}},
    });
    let submitted = call(&feedback, format!("{FEEDBACK}/SubmitFeedback"), submission).await;
    assert_eq!(
        submitted["feedback"]["outcome"]["state"], "OUTCOME_STATE_PENDING",
        "{submitted}"
    );

    let listing = json!({"namespace": "fund-admin"});
    let listed = call(&learning, format!("{CANDIDATES}/ListCandidates"), listing).await;
    let candidate = &listed["candidates"][0];
    let approval = json!({
        "namespace": "fund-admin",
        "candidateId": candidate["candidateId"],
        "etag": candidate["etag"],
        "onBehalfOf": "a reviewer",
    });
    let approved = call(&learning, format!("{CANDIDATES}/ApproveCandidate"), approval).await;
    assert_eq!(
        approved["candidate"]["status"], "CANDIDATE_STATUS_APPLIED",
        "{approved}"
    );

    let method = format!("{SUBSCRIPTIONS}/Subscribe");
    let subscription = json!({"node": {"id": "other-1"}, "bookmarkInterval": "1s"}).to_string();
    let mut stream = Process::spawn("a subscriber", command(&learning, &method, &subscription));
    for expected in ["snapshotBegin", "create_csa", "snapshotEnd", "bookmark"] {
        stream
            .says(expected, |line| line.contains(expected).then_some(()))
            .await;
    }
    stream.kill().await;

    let method = format!("{FEEDBACK}/SubmitFeedback");
    let bad = json!({"namespace": "Not OK", "requestId": "has space"}).to_string();
    let refusal = run(&method, command(&feedback, &method, &bad)).await.unwrap_err();
    for expected in ["google.rpc.BadRequest", "request_id", "namespace", "correction"] {
        assert!(refusal.contains(expected), "{expected} is not in:\n{refusal}");
    }
}
