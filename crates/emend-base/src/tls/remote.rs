//! The addresses of a server, and how connections to it are opened: plain, over TLS, or within this process.

use std::fmt;
use std::{
    io,
    path::Path,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint, Error},
};
use tower::Service;

use super::{ClientTls, TlsError, dialer::Dialer};

/// Said of a server that does not know what it is asked.
const UNKNOWN_CALL: &str = "what answers at this address does not know this call: it is another service, or an older version of this one";

/// Interval and timeout of keep-alive pings where many calls share a connection: so long that an upload over a slow line is not taken for
/// silence.
pub const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(10));

/// A server's address as a URI: `http://…`, or `https://…` for TLS; or several such, separated by commas, of replicas of which any
/// will do.
#[derive(Debug, Clone)]
pub struct Remote {
    endpoint: Endpoint,
    transport: Transport,
}

/// How connections are opened.
#[derive(Debug, Clone)]
enum Transport {
    /// To the first of the addresses that answers.
    Network(Dialer),
    /// As the endpoint says, by tonic.
    Endpoint,
    /// Without leaving this process.
    InProcess(InProcess),
}

impl Remote {
    /// The server at this URI, or at one of several. An `https` one is verified with the system's CAs unless [`Remote::tls`] says
    /// otherwise.
    pub fn new(uris: &str) -> Result<Self, TlsError> {
        let dialer = Dialer::new(uris)?;
        let first = dialer.first().clone();
        let endpoint = if dialer.is_secured() {
            // The dialer does the TLS. tonic, which would configure it once for all connections, must see plain http.
            let plain = first.to_string();
            let plain = plain.replacen("https", "http", 1).replacen("HTTPS", "http", 1);
            Endpoint::from_shared(plain).map(|endpoint| endpoint.origin(first))
        } else {
            Endpoint::from_shared(first.to_string())
        };
        Ok(Self {
            endpoint: endpoint.map_err(|error| TlsError::new(uris, &error))?,
            transport: Transport::Network(dialer),
        })
    }

    /// The server at these addresses as people write them: `HOST:PORT` or a URI, or several, separated by commas. One without a
    /// scheme has `scheme`, and needs its port.
    pub fn at(addresses: &str, scheme: &str) -> Result<Self, TlsError> {
        let uris = addresses.split(',').map(|address| {
            let address = address.trim();
            if address.contains("://") {
                return Ok(address.to_owned());
            }
            let uri = format!("{scheme}://{address}");
            let has_port = uri.parse().is_ok_and(|uri: Uri| uri.port_u16().is_some());
            if has_port {
                return Ok(uri);
            }
            let reason = if address.bytes().all(|byte| byte.is_ascii_digit()) && !address.is_empty() {
                format!("the host is missing, for example 127.0.0.1:{address}")
            } else {
                "it needs a host and a port, for example 127.0.0.1:7402".to_owned()
            };
            Err(TlsError::new(address, &reason))
        });
        Self::new(&uris.collect::<Result<Vec<_>, _>>()?.join(","))
    }

    /// A server in this process; `open` opens connections.
    pub fn inside(open: impl Fn() -> io::Result<DuplexStream> + Send + Sync + 'static) -> Self {
        Self {
            endpoint: Endpoint::from_static("http://inside"),
            transport: Transport::InProcess(InProcess(Arc::new(open))),
        }
    }

    /// Uses these files. Fails unless the URI is `https`, because nothing would be secure otherwise.
    pub fn tls(mut self, tls: ClientTls) -> Result<Self, TlsError> {
        match &mut self.transport {
            Transport::Network(dialer) if dialer.is_secured() => dialer.secure(tls),
            _ => {
                return Err(TlsError::new(
                    self.endpoint.uri(),
                    "must begin with https:// if TLS files are given",
                ));
            }
        }
        Ok(self)
    }

    /// Whether connections are over TLS, which [`Remote::tls`] can configure.
    pub fn is_secured(&self) -> bool {
        matches!(&self.transport, Transport::Network(dialer) if dialer.is_secured())
    }

    /// The file with the certificate that is presented to it, if one is.
    pub fn certificate(&self) -> Option<&Path> {
        match &self.transport {
            Transport::Network(dialer) => dialer.certificate(),
            Transport::Endpoint | Transport::InProcess(_) => None,
        }
    }

    /// Of a server to which plain connections were opened and which does not speak plain HTTP/2: what it may be instead.
    pub fn other_protocol(&self) -> Option<&'static str> {
        match &self.transport {
            Transport::Network(dialer) => dialer.noticed(),
            Transport::Endpoint | Transport::InProcess(_) => None,
        }
    }

    /// Why a call failed at a server that is not the one that is meant: it speaks another protocol, or does not know the call.
    pub fn misdirected(&self, status: &Status) -> Option<String> {
        match (std::error::Error::source(status), self.other_protocol()) {
            (Some(_), Some(protocol)) => Some(protocol.to_owned()),
            _ if status.code() == Code::Unimplemented => Some(match status.message() {
                "" => UNKNOWN_CALL.to_owned(),
                said => format!("{UNKNOWN_CALL} ({said})"),
            }),
            _ => None,
        }
    }

    /// Whether each of its URIs names a port.
    pub fn names_ports(&self) -> bool {
        match &self.transport {
            Transport::Network(dialer) => dialer.names_ports(),
            Transport::Endpoint | Transport::InProcess(_) => self.endpoint.uri().port_u16().is_some(),
        }
    }

    /// With other connection settings.
    #[must_use]
    pub fn map(mut self, change: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        self.endpoint = change(self.endpoint);
        self
    }

    /// With keep-alive pings while calls are under way, and always if the endpoint says so: where a connection that was silent for
    /// `interval` stays silent for `timeout` after one, it ends, and so do its calls. A proxy in between must allow pings this frequent.
    /// Within this process there are none.
    #[must_use]
    pub fn keep_alive(self, interval: Duration, timeout: Duration) -> Self {
        if matches!(self.transport, Transport::InProcess(_)) {
            return self;
        }
        self.map(|endpoint| {
            endpoint
                .http2_keep_alive_interval(interval)
                .keep_alive_timeout(timeout)
        })
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Channel, Error> {
        match &self.transport {
            Transport::Network(dialer) => self.endpoint.connect_with_connector(dialer.clone()).await,
            Transport::Endpoint => self.endpoint.connect().await,
            Transport::InProcess(inside) => self.endpoint.connect_with_connector(inside.clone()).await,
        }
    }

    /// Opens a connection on first use, and again when it is lost.
    pub fn connect_lazy(&self) -> Channel {
        match &self.transport {
            Transport::Network(dialer) => self.endpoint.connect_with_connector_lazy(dialer.clone()),
            Transport::Endpoint => self.endpoint.connect_lazy(),
            Transport::InProcess(inside) => self.endpoint.connect_with_connector_lazy(inside.clone()),
        }
    }
}

/// Why a connection could not be opened, with all causes, in one line: tonic's own message only says that something
/// went wrong.
pub fn why(error: &Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        // Errors that wrap others often repeat them.
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        cause = error.source();
    }
    if causes.is_empty() {
        causes.push(error.to_string());
    }
    causes.join(": ")
}

/// The endpoint as it is, with its own TLS if it has any.
impl From<Endpoint> for Remote {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            transport: Transport::Endpoint,
        }
    }
}

/// Opens connections to a server of this process.
#[derive(Clone)]
struct InProcess(Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>);

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl Service<Uri> for InProcess {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        std::future::ready((self.0)().map(TokioIo::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_must_be_http_or_https() {
        assert!(!Remote::new("http://127.0.0.1:7402").unwrap().is_secured());
        for secured in [
            "https://learning:7402",
            "https://[::1]:7402",
            "HTTPS://emend.example",
        ] {
            assert!(Remote::new(secured).unwrap().is_secured(), "{secured}");
        }
        for bad in [
            "learning:7402",
            "ftp://learning:7402",
            "",
            "https://",
            "https://a b:1",
            "http://a:1,https://b:1",
            "http://a:1,",
        ] {
            assert!(Remote::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tls_files_are_refused_for_an_address_without_tls() {
        let plain = Remote::new("http://127.0.0.1:7402").unwrap();
        let refused = plain.tls(ClientTls::default().ca("ca.pem")).unwrap_err();
        assert!(refused.to_string().contains("https://"), "{refused}");
    }

    #[test]
    fn addresses_as_people_write_them_have_a_host_and_a_port() {
        for good in [
            "127.0.0.1:7402",
            "learning:7402, other:7402",
            "https://emend.example",
            "[::1]:7402",
        ] {
            assert!(Remote::at(good, "http").is_ok(), "{good}");
        }
        assert!(Remote::at("a:1,b:2", "https").unwrap().is_secured());
        for (bad, reason) in [
            ("27402", "the host is missing, for example 127.0.0.1:27402"),
            ("learning", "needs a host and a port"),
            ("", "needs a host and a port"),
            ("a:1,,b:1", "needs a host and a port"),
        ] {
            let refused = Remote::at(bad, "http").unwrap_err().to_string();
            assert!(refused.contains(reason), "{bad}: {refused}");
        }
    }
}
