//! `emend edge` as a process, and what the fleet says of its sinks.

use std::{fs, path::Path};

use emend_base::fail_point::{self, FailPoint};
use emend_proto::learning::v1::{ListNodesRequest, Node};
use tokio::process::Command;

use super::{
    Learning,
    process::{Process, binary},
    rpc::answered,
    wait::{eventually, holds},
};

/// Starts one with this configuration, which is written into a directory; armed, it dies at a step of its sinks.
///
/// # Panics
/// If it can't be started.
pub async fn start(config: &str, directory: &Path, armed: Option<FailPoint>) -> Process {
    let file = directory.join("edge.toml");
    fs::write(&file, config).expect("a file can be written");
    let mut command = Command::new(binary("emend").await);
    command.arg("edge").arg("--config").arg(file);
    if let Some(point) = armed {
        command.env(fail_point::VARIABLE, format!("{}:1", point.name()));
    }
    Process::spawn("emend", command)
}

/// A node of the fleet, as any replica lists it.
pub async fn node(learning: &Learning, id: &str) -> Option<Node> {
    let request = ListNodesRequest::default();
    let nodes = answered(learning.subscriptions.clone().list_nodes(request).await).nodes;
    nodes
        .into_iter()
        .find(|node| node.info.as_ref().is_some_and(|info| info.id == id))
}

/// The newest revision that it says is applied; 0: none.
pub async fn applied(learning: &Learning, id: &str) -> i64 {
    let node = node(learning, id).await;
    node.and_then(|node| node.applied)
        .map_or(0, |cursor| cursor.revision)
}

/// Waits until it says that the newest revision is applied, and that nothing is wrong.
pub async fn until_applied(learning: &Learning, id: &str) -> Node {
    let head = learning.head().await;
    eventually(&format!("{id} has applied revision {head}"), || async {
        let found = node(learning, id).await;
        let is_current = found.as_ref().is_some_and(|node| {
            node.problem.is_empty()
                && node
                    .applied
                    .as_ref()
                    .is_some_and(|applied| applied.revision >= head)
        });
        holds(is_current, || format!("{found:?}"))?;
        found.ok_or_else(String::new)
    })
    .await
}
