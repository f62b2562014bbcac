//! Who a request comes from: the peer, or whom a trusted proxy names.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
};

use emend_serve::network::Network;
use ring::hmac;
use tonic::codegen::http::HeaderMap;

/// The address of a hop, which some proxies name with its port or in brackets.
fn address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim();
    let bare = hop
        .strip_prefix('[')
        .and_then(|hop| hop.strip_suffix(']'))
        .unwrap_or(hop);
    let alone = bare.parse().ok();
    alone.or_else(|| hop.parse::<SocketAddr>().ok().map(|it| it.ip()))
}

/// Headers that no browser sends, but proxies do.
const OF_PROXIES: [&str; 4] = ["x-forwarded-for", "forwarded", "x-real-ip", "via"];

/// Tells where requests come from, and by which pseudonym their senders are known.
#[derive(Debug)]
pub(super) struct ClientAddresses {
    trusted: Vec<Network>,
    key: hmac::Key,
}

impl ClientAddresses {
    pub(super) fn new(trusted: Vec<Network>, key: &[u8]) -> Self {
        Self {
            trusted,
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// The end user's address: the peer's, or, of what trusted proxies hand on, the last one that they name and that is no
    /// trusted proxy itself. None if nobody who is believed says it: the peer is a proxy that is not trusted, as a header of
    /// proxies gives away, or a trusted one that names nobody. An untrusted proxy's own address would make all its users one.
    pub(super) fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let is_trusted = |address: IpAddr| self.trusted.iter().any(|network| network.contains(address));
        let peer = peer.to_canonical();
        if !is_trusted(peer) {
            let is_proxy = OF_PROXIES.iter().any(|name| headers.contains_key(*name));
            return (!is_proxy).then_some(peer);
        }
        let named = headers.get_all("x-forwarded-for");
        let hops = named
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let mut client = None;
        for hop in hops.rev() {
            let named = address(hop)?.to_canonical();
            client = Some(named);
            if !is_trusted(named) {
                break;
            }
        }
        client
    }

    /// The pseudonym of an address: nobody without the key can tell which address it is. Of IPv6 addresses that of their /64,
    /// which is one subscriber's.
    pub(super) fn key_of(&self, client: IpAddr) -> String {
        let network = match client {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets()[..8].to_vec(),
        };
        let tag = hmac::sign(&self.key, &network);
        tag.as_ref()[..16].iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(peer: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        let addresses = ClientAddresses::new(trusted.into(), b"a key of sixteen");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let client = addresses.client_of(peer.parse().unwrap(), &map);
        client.map(|client| client.to_string())
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_no_proxy_is_an_end_user() {
        for (peer, forwarded, client) in [
            ("192.0.2.1", &[][..], Some("192.0.2.1")),
            ("10.0.0.1", &["198.51.100.7"], Some("198.51.100.7")),
            ("::ffff:10.0.0.1", &["198.51.100.7"], Some("198.51.100.7")),
            (
                "10.0.0.1",
                &["203.0.113.9, 198.51.100.7, 10.0.0.2"],
                Some("198.51.100.7"),
            ),
            ("10.0.0.1", &["203.0.113.9", "198.51.100.7"], Some("198.51.100.7")),
            ("10.0.0.1", &["unknown, 198.51.100.7"], Some("198.51.100.7")),
            ("10.0.0.1", &["10.0.0.9"], Some("10.0.0.9")),
            ("10.0.0.1", &["198.51.100.7:4711"], Some("198.51.100.7")),
            ("10.0.0.1", &["[2001:db8::7]:4711"], Some("2001:db8::7")),
            ("10.0.0.1", &["[2001:db8::7]"], Some("2001:db8::7")),
            ("fd00::1", &["2001:db8::7"], Some("2001:db8::7")),
            // A proxy that is not trusted, and one that names nobody.
            ("192.0.2.1", &["198.51.100.7"], None),
            ("192.0.2.1", &[""], None),
            ("10.0.0.1", &[], None),
            ("10.0.0.1", &["unknown"], None),
            ("10.0.0.1", &["unknown, 10.0.0.2"], None),
        ] {
            let headers: Vec<_> = forwarded
                .iter()
                .map(|value| ("x-forwarded-for", *value))
                .collect();
            assert_eq!(
                client_of(peer, &headers).as_deref(),
                client,
                "{peer} {forwarded:?}"
            );
        }
        for name in ["forwarded", "x-real-ip", "via"] {
            assert_eq!(
                client_of("192.0.2.1", &[(name, "for=198.51.100.7")]),
                None,
                "{name}"
            );
        }
    }

    #[test]
    fn a_pseudonym_needs_the_key() {
        let address = "192.0.2.1".parse().unwrap();
        let key = |key: &[u8]| ClientAddresses::new(Vec::new(), key).key_of(address);
        assert_eq!(key(b"one"), key(b"one"));
        assert_ne!(key(b"one"), key(b"two"));
        assert_eq!(key(b"one").len(), 32);
    }
}
