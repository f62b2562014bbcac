//! A search node: answers with learned answers first, then from its own search, and submits users' corrections.
//!
//! It reads commands from standard input and answers each with one line of JSON:
//!
//! ```text
//! search PHRASE                       what the node answers
//! correct REPORTER PHRASE = VERB      a user says what is right
//! status                              what the node holds
//! ```
//!
//! docs/integration/rust.md explains it.

mod index;
mod node;

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use emend_client::{FeedbackClient, InstallationId, Lifecycle, Namespace};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, stdin, stdout};

use node::SearchNode;

/// A search node that uses learned answers.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where feedback-svc is
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7401")]
    feedback: String,
    /// Where learning-svc is
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7402")]
    learning: String,
    /// The search application
    #[arg(long, value_name = "NAME", default_value = "fund-admin")]
    namespace: String,
    /// This node's id
    #[arg(long, value_name = "ID", default_value = "search-1")]
    node: String,
    /// Where to keep a copy of what was learned
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Id of an installation to accept instead of the one that the copy is of
    #[arg(long, value_name = "ID", value_parser = |id: &str| InstallationId::parse(id).map_err(|invalid| invalid.to_string()))]
    accept_installation: Option<InstallationId>,
    /// How often to be told that nothing is missing, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    bookmark_seconds: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let namespace = Namespace::parse(&arguments.namespace).context("--namespace")?;
    let lifecycle = Lifecycle::new();
    // [start]
    let feedback = FeedbackClient::new(format!("http://{}", arguments.feedback))?;
    let node = SearchNode::start(&arguments, namespace, feedback, &lifecycle).await?;
    // A node that is up to date answers best, but one that is not still answers.
    let _ = tokio::time::timeout(Duration::from_secs(10), node.current()).await;
    // [/start]

    let mut commands = BufReader::new(stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        let answer = answer(&node, command.trim()).await;
        let answer = answer.unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
        stdout().write_all(format!("{answer}\n").as_bytes()).await?;
        stdout().flush().await?;
    }
    // [end]
    // Writes the copy to disk and closes the stream.
    lifecycle.shutdown(Duration::from_secs(5)).await;
    // [/end]
    Ok(())
}

async fn answer(node: &SearchNode, command: &str) -> anyhow::Result<Value> {
    match command.split_once(' ').unwrap_or((command, "")) {
        ("search", phrase) => Ok(node.search(phrase)?.json()),
        ("correct", rest) => {
            let (reporter, correction) = rest.split_once(' ').context("correct REPORTER PHRASE = VERB")?;
            let (phrase, right) = correction
                .split_once(" = ")
                .context("correct REPORTER PHRASE = VERB")?;
            node.correct(reporter, phrase, right).await
        }
        ("status", _) => Ok(node.status()),
        (unknown, _) => anyhow::bail!("unknown command {unknown}"),
    }
}
