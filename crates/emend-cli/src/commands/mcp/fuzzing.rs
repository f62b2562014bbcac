//! Input that an assistant may send.

use rmcp::model::ClientJsonRpcMessage;
use serde::de::DeserializeOwned;

use super::{ApproveParams, FeedbackParams, ListParams, RejectParams};

/// Parses one line of standard input, as a message of the protocol and as each tool's arguments.
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
