//! Engines that people have, with an edge before them: what three people correct changes what the next search finds.
//!
//! OpenSearch and Solr are real, each a process of its own from the artifacts of its makers. `cargo xtask engines` prints, of the same
//! run, how long it takes by an expanded query and by the engine's own way, and how many searches fail meanwhile.

mod engine;
mod found;
mod sinks;
mod table;

use emend_base::Lifecycle;
use emend_binding::{ConnectionSettings, NodeSettings};
use emend_edge::{Config, Edge};
use emend_tests::harness::System;

/// The namespace of these tests is that of all; the node's name is its own.
async fn edge(system: &System, lifecycle: &Lifecycle) -> Edge {
    let config = Config {
        listen: vec!["127.0.0.1:0".parse().expect("a loopback address")],
        node: NodeSettings {
            id: "edge".into(),
            connection: ConnectionSettings {
                addresses: vec![system.learning[0].address().to_string()],
                ..ConnectionSettings::default()
            },
            ..NodeSettings::default()
        },
        ..Config::default()
    };
    let edge = emend_edge::start(config, lifecycle).await;
    edge.expect("the edge starts")
}
