//! Which host names a server on HTTP is known under.
//!
//! A page of another origin can let its own name resolve to an address here (DNS rebinding). The request then names that host, so
//! what is asked under a foreign name is refused, also on loopback.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderValue, Uri, header};

/// Which hosts are this server.
#[derive(Debug)]
pub struct Hosts {
    names: Vec<String>,
    port: u16,
    is_loopback: bool,
}

impl Hosts {
    /// Of a server that listens there and is known under these authorities, in lower case.
    pub fn new(names: Vec<String>, address: SocketAddr) -> Self {
        Self {
            names,
            port: address.port(),
            is_loopback: address.ip().is_loopback(),
        }
    }

    /// Whether an authority, as `Host` and `Origin` have it, is this server.
    pub fn is_here(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        if self.names.contains(&authority) {
            return true;
        }
        let Some((host, port)) = authority.rsplit_once(':') else {
            return false;
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_local = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        self.is_loopback && is_local && port.parse() == Ok(self.port)
    }

    /// Whether a request was made under a name of this server.
    pub fn is_asked(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = uri.authority().map(http::uri::Authority::as_str).or(host);
        host.is_some_and(|host| self.is_here(host))
    }

    /// Whether the page that made a request, as its browser says, is of this server. Programs that are no browsers say nothing.
    pub fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        match headers.get(header::ORIGIN).map(HeaderValue::to_str) {
            Some(origin) => origin
                .ok()
                .and_then(|origin| origin.split_once("://"))
                .is_some_and(|(_, authority)| self.is_here(authority)),
            None => true,
        }
    }
}
