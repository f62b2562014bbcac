//! Where tokens come from: the metadata of a protected resource (RFC 9728), and the challenge of a 401 that names them.

use serde_json::{Value, json};

use super::{HttpConfig, HttpServer, PATH, refused::Refused};

/// Where the metadata is; behind it may stand the path of what is protected.
pub(super) const METADATA: &str = "/.well-known/oauth-protected-resource";

/// What is protected, and who gives out tokens for it.
#[derive(Debug)]
pub(super) struct Protected {
    /// By which URL it is reached, without a path.
    origin: String,
    issuers: Vec<String>,
}

impl Protected {
    pub(super) fn new(config: &HttpConfig, server: &HttpServer) -> Self {
        let own = || server.url().trim_end_matches(PATH).to_owned();
        Self {
            origin: config.public_urls.first().map_or_else(own, ToString::to_string),
            issuers: config.issuers.clone(),
        }
    }

    /// The metadata; `None` if no issuer is known.
    pub(super) fn metadata(&self) -> Option<Value> {
        (!self.issuers.is_empty()).then(|| {
            json!({
                "resource": format!("{}{PATH}", self.origin),
                "authorization_servers": self.issuers,
                "bearer_methods_supported": ["header"],
                "resource_name": "Emend",
            })
        })
    }

    /// The value of `WWW-Authenticate`.
    pub(super) fn challenge(&self, refused: &Refused) -> String {
        let mut parts = Vec::new();
        if !self.issuers.is_empty() {
            parts.push(format!("resource_metadata=\"{}{METADATA}{PATH}\"", self.origin));
        }
        // Whoever sent no token did nothing wrong yet (RFC 6750, 3.1).
        if matches!(refused, Refused::BadToken(_)) {
            parts.push(format!("error=\"{}\"", refused.code()));
        }
        if parts.is_empty() {
            parts.push("realm=\"emend\"".to_owned());
        }
        format!("Bearer {}", parts.join(", "))
    }
}
