//! Input that an assistant may send.

use rmcp::model::ClientJsonRpcMessage;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::arguments::{
    ApproveArguments, EvidenceArguments, FeedbackArguments, ListArguments, RejectArguments, ResolveArguments,
    RetractArguments,
};

/// Parses one line of standard input, as a message of the protocol and as each tool's arguments.
pub fn tool_call(line: &[u8]) {
    let _ = serde_json::from_slice::<ClientJsonRpcMessage>(line);
    arguments::<FeedbackArguments>(line);
    arguments::<EvidenceArguments>(line);
    arguments::<RetractArguments>(line);
    arguments::<ResolveArguments>(line);
    arguments::<ListArguments>(line);
    arguments::<ApproveArguments>(line);
    arguments::<RejectArguments>(line);
}

fn arguments<T: DeserializeOwned + JsonSchema + 'static>(line: &[u8]) {
    if let Ok(arguments) = serde_json::from_slice(line) {
        let _ = super::call::parse::<T>(arguments);
    }
}
