//! The configurations that docs/mcp.md shows, tried.

use serde_json::{Map, Value};

use super::Assistant;
use crate::harness::Up;

const PAGE: &str = include_str!("../../../../../docs/mcp.md");

/// The server of each configuration in the page: what is written in JSON, and what is written in TOML.
pub(super) fn servers() -> Vec<Value> {
    let blocks = |language: &str| {
        let opened = format!("```{language}\n");
        let blocks = PAGE.split(&opened).skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        blocks.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let in_json = blocks("json").into_iter().map(|block| {
        let configuration: Value = serde_json::from_str(&block).expect("JSON");
        let servers = configuration.get("mcpServers").or(configuration.get("servers"));
        servers.expect("servers")["emend"].clone()
    });
    let in_toml = blocks("toml").into_iter().map(|block| {
        let (table, lines) = block.split_once('\n').expect("a table");
        assert_eq!(table, "[mcp_servers.emend]");
        // Its texts and lists are written as in JSON.
        let fields = lines.lines().map(|line| {
            let (name, value) = line.split_once(" = ").expect("a field");
            (name.to_owned(), serde_json::from_str(value).expect("a value"))
        });
        Value::Object(fields.collect::<Map<_, _>>())
    });
    in_json.chain(in_toml).collect()
}

#[tokio::test]
async fn what_is_documented_over_stdio_starts_the_tools() {
    let up = Up::ephemeral().await;
    let mut tried = 0;
    for server in servers() {
        let Some(command) = server["command"].as_str() else {
            continue;
        };
        assert_eq!(command, "emend", "{server}");
        let args = server["args"].as_array().expect("arguments").iter();
        let args: Vec<&str> = args.map(|arg| arg.as_str().expect("a text")).collect();
        let (command, args) = args.split_first().expect("a command");
        assert_eq!(*command, "mcp");
        let assistant = Assistant::start(&up, args).await;
        for name in assistant.offered() {
            assert!(PAGE.contains(&format!("`{name}`")), "the page describes {name}");
        }
        assistant.conversation.end().await;
        tried += 1;
    }
    assert_eq!(tried, 3, "for three assistants");
}
