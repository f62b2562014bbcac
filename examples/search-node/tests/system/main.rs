//! The search node with real services: what people teach changes what the next query finds, in a running node.

#![expect(clippy::unwrap_used, reason = "a failed test ends by panicking")]

mod embedding;
mod index;
mod judged;
mod learned;
mod node;
mod page;
mod served;
mod tuned;
