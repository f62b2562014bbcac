//! The id that identifies one request in the log.
//!
//! It lives in a task-local while the request's future or stream is polled, because errors become statuses in a `From`,
//! which has no request at hand. Only diagnostics may read it.

use std::{fmt, sync::Arc};

use crate::entropy::Entropy;

/// The longest id accepted from a client, in characters.
const MAX_LENGTH: usize = 64;

tokio::task_local! {
    /// Set by the trace layer around all work for a request.
    pub static CURRENT: RequestId;
}

/// The id of one request: the client's `x-request-id` if it is 1 to 64 characters of `[A-Za-z0-9._-]`, else a generated
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// A generated id.
    pub fn generate(entropy: &Entropy) -> Self {
        Self(entropy.uuid_v4().as_simple().to_string().into())
    }

    /// A client's id, if it is safe to log and send back.
    pub fn parse(raw: &str) -> Option<Self> {
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        ((1..=MAX_LENGTH).contains(&raw.len()) && raw.bytes().all(valid)).then(|| Self(raw.into()))
    }

    /// The id of the request that the current task serves, if any.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_fit_for_a_log_line_are_taken_from_clients() {
        assert_eq!(
            RequestId::parse("web-1.a_B").map(|id| id.to_string()).as_deref(),
            Some("web-1.a_B")
        );
        for bad in ["", "two words", "new\nline", "naïve", &"x".repeat(65)] {
            assert_eq!(RequestId::parse(bad), None, "{bad:?}");
        }
        assert!(RequestId::parse(&RequestId::generate(&Entropy::system()).to_string()).is_some());
    }

    #[tokio::test]
    async fn the_id_is_available_only_while_its_request_is_handled() {
        let id = RequestId::parse("one").unwrap();
        CURRENT
            .scope(
                id.clone(),
                async move { assert_eq!(RequestId::current(), Some(id)) },
            )
            .await;
        assert_eq!(RequestId::current(), None);
    }
}
