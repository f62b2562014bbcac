//! Assistants by the official Python SDK, over both transports.

use std::path::PathBuf;

use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, answered,
        process::{Process, binary, run},
        says::supports,
    },
};
use tokio::process::Command;

use crate::real_clients::tool;

both_databases! {
    async fn the_official_python_sdk_calls_the_tools_as_applications_write_them(system) {
        let Some(python) = tool("EMEND_TEST_PYTHON") else { return };
        let mut graph = supports(1, "legitimate-site.com", "claim_abc123", 0.9);
        graph.edges[0].edge_id = "edge_xyz789".into();
        graph.edges[0].task_id = "task_001".into();
        graph.claims[0].task_id = "task_001".into();
        answered(system.learning().evidence.clone().upsert_evidence(graph).await);
        let feedback = system.feedback[0].front.address().to_string();
        let learning = system.learning[0].front.address().to_string();
        let services = ["--feedback-addr", &feedback, "--learning-addr", &learning, "--namespace", NAMESPACE];
        let mut served = Process::start("emend", [&["mcp", "--http", "127.0.0.1:0"], &services[..]].concat()).await;
        let url = served
            .says("that it is ready", |line| line.strip_prefix("emend: ready mcp=").map(ToOwned::to_owned))
            .await;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/assistant.py");
        let mut command = Command::new(python);
        command.arg(script).arg(binary("emend").await);
        command.args([&feedback, &learning, NAMESPACE, &url]);
        let printed = run("assistant.py", command)
            .await
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert!(printed.contains("all as it should be"), "{printed}");
    }
}
