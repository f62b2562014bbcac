//! What an assistant may send.

use rmcp::model::ClientJsonRpcMessage;
use serde::de::DeserializeOwned;

use super::{ApproveParams, FeedbackParams, ListParams, RejectParams};

/// Reads one line of standard input: a message of the protocol, or a tool's arguments.
pub fn tool_call(line: &[u8]) {
    let _ = serde_json::from_slice::<ClientJsonRpcMessage>(line);
    arguments::<FeedbackParams>(line);
    arguments::<ListParams>(line);
    arguments::<ApproveParams>(line);
    arguments::<RejectParams>(line);
}

fn arguments<T: DeserializeOwned>(line: &[u8]) {
    let _ = serde_json::from_slice::<T>(line);
}
