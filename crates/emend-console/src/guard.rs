//! What every request must fulfil before a page sees it, and what every answer says to browsers.
//!
//! A page of another origin must not reach the console with somebody's cookie: not under another host name (DNS rebinding), not
//! by a form (the browser says where it comes from, and forms carry a token of the session), not in a frame.

use std::net::SocketAddr;

use emend_serve::hosts;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};

use crate::config::ConsoleConfig;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Which hosts are this console.
#[derive(Debug)]
pub(crate) struct Hosts(hosts::Hosts);

impl Hosts {
    /// Of a console that listens there.
    pub(crate) fn new(config: &ConsoleConfig, address: SocketAddr) -> Self {
        let names = config.public_urls.iter().map(|url| url.authority.clone());
        Self(hosts::Hosts::new(names.collect(), address))
    }

    /// Why a request is refused, if it is.
    pub(crate) fn refusal(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        if !self.0.is_asked(uri, headers) {
            return Some(
                "this console is not known under that host name: --console-public-url says which names it has\n",
            );
        }
        if matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
        if self.0.is_own_origin(headers) && site.is_none_or(|site| site == b"same-origin") {
            return None;
        }
        Some("a page of another site sent this form\n")
    }
}

/// Adds to an answer what browsers must keep to; `ancestors` says who may show it in a frame.
pub(crate) fn protect(headers: &mut HeaderMap, ancestors: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
    );
    let policy = HeaderValue::try_from(policy).expect("invariant: origins are ASCII");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    if ancestors == NO_ANCESTORS {
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Nobody may frame a page.
pub(crate) const NO_ANCESTORS: &str = "'none'";

#[cfg(test)]
mod tests {
    use http::header::{HOST, ORIGIN};

    use super::*;

    fn hosts(address: &str, urls: &[&str]) -> Hosts {
        let config = ConsoleConfig {
            namespace: "default".into(),
            public_urls: urls.iter().map(|url| url.parse().unwrap()).collect(),
            key: [0; 32],
            token_header: None,
            frame_ancestors: Vec::new(),
        };
        Hosts::new(&config, address.parse().unwrap())
    }

    fn refused(hosts: &Hosts, method: &Method, headers: &[(HeaderName, &str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        hosts
            .refusal(method, &Uri::from_static("/ns/default/today"), &headers)
            .is_some()
    }

    #[test]
    fn only_its_own_names_are_answered() {
        let local = hosts("127.0.0.1:7400", &[]);
        for (host, is_refused) in [
            ("127.0.0.1:7400", false),
            ("localhost:7400", false),
            ("[::1]:7400", false),
            ("localhost:7401", true),
            ("evil.example:7400", true),
            ("localhost.evil.example:7400", true),
            ("192.0.2.1:7400", true),
            ("", true),
        ] {
            assert_eq!(
                refused(&local, &Method::GET, &[(HOST, host)]),
                is_refused,
                "{host:?}"
            );
        }
        assert!(refused(&local, &Method::GET, &[]));
        let public = hosts("0.0.0.0:7400", &["https://emend.example"]);
        assert!(!refused(&public, &Method::GET, &[(HOST, "Emend.example")]));
        assert!(refused(&public, &Method::GET, &[(HOST, "localhost:7400")]));
    }

    #[test]
    fn forms_of_other_sites_are_refused() {
        let local = hosts("127.0.0.1:7400", &[]);
        let here = (HOST, "localhost:7400");
        let post = |extra: &[(HeaderName, &str)]| {
            refused(
                &local,
                &Method::POST,
                &[std::slice::from_ref(&here), extra].concat(),
            )
        };
        assert!(!post(&[]));
        assert!(!post(&[
            (ORIGIN, "http://localhost:7400"),
            (FETCH_SITE, "same-origin")
        ]));
        for bad in [
            (ORIGIN, "http://evil.example"),
            (ORIGIN, "null"),
            (FETCH_SITE, "cross-site"),
            (FETCH_SITE, "same-site"),
        ] {
            assert!(post(std::slice::from_ref(&bad)), "{bad:?}");
        }
    }
}
