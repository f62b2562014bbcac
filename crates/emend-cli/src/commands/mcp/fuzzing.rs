//! Input that an assistant may send.

use rmcp::model::ClientJsonRpcMessage;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{
    arguments::{
        ApproveArguments, EvidenceArguments, FeedbackArguments, ListArguments, RateArguments,
        RejectArguments, ResolveArguments, RetractArguments,
    },
    resources::Address,
};

/// Parses one line of standard input, as a message of the protocol, as each tool's arguments and as the address of a resource.
pub fn tool_call(line: &[u8]) {
    let _ = serde_json::from_slice::<ClientJsonRpcMessage>(line);
    if let Ok(uri) = std::str::from_utf8(line)
        && let Ok(address) = Address::parse(uri)
    {
        let again = Address::parse(&address.to_string());
        assert_eq!(again.ok().as_ref(), Some(&address), "it is read as it is written");
    }
    arguments::<FeedbackArguments>(line);
    arguments::<EvidenceArguments>(line);
    arguments::<RetractArguments>(line);
    arguments::<ResolveArguments>(line);
    arguments::<ListArguments>(line);
    arguments::<ApproveArguments>(line);
    arguments::<RejectArguments>(line);
    arguments::<RateArguments>(line);
}

fn arguments<T: DeserializeOwned + JsonSchema>(line: &[u8]) {
    if let Ok(arguments) = serde_json::from_slice(line) {
        let _ = super::call::parse::<T>(arguments);
    }
}
