//! Messages that the protocol would not answer, and what they are answered: every request that has an id gets an answer.

use rmcp::model::ClientJsonRpcMessage;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::unread::UnreadId;

/// What some editors write before the first line.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The code that JSON-RPC has for what can't be read.
pub(crate) const PARSE_ERROR: i32 = -32_700;
/// The code that JSON-RPC has for what is no request.
pub(crate) const INVALID_REQUEST: i32 = -32_600;

/// The message, if the protocol answers it; otherwise the answer to it.
pub(crate) fn read(text: &[u8]) -> Result<Value, Value> {
    let message: Value = serde_json::from_slice(text).map_err(|why| {
        let mut id = UnreadId::default();
        id.read(text);
        let why = format!("Parse error: the message can't be read as JSON: {why}");
        error(&id.found(), PARSE_ERROR, &why)
    })?;
    if message.is_array() {
        let why = "batches are not part of the revisions that are offered: send one message at a time";
        return Err(error(&Value::Null, INVALID_REQUEST, why));
    }
    let is_notification = message.get("id").is_none() && message.get("method").is_some();
    if is_notification || ClientJsonRpcMessage::deserialize(&message).is_ok() {
        return Ok(message);
    }
    let id = message.get("id").filter(|id| id.is_string() || id.is_number());
    Err(error(
        id.unwrap_or(&Value::Null),
        INVALID_REQUEST,
        "Invalid request: a message has \"jsonrpc\": \"2.0\", a method, and an id that is a text or a whole number",
    ))
}

/// An error as the answer to the request with this id.
pub(crate) fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
