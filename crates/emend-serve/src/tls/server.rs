//! The server's side: its certificate, and which clients it lets in.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use emend_base::{
    Clock as _, SystemClock,
    reload::{Reload, Watched, When},
    tls::{
        TlsError, Validity, alpn,
        files::{all, identity, provider, roots},
    },
};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    },
    server::TlsStream,
};

use super::{
    PeerNames,
    clients::{Clients, verify},
};
use crate::graceful_close;

/// A server's files, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Its certificate and the intermediates up to its CA.
    pub cert: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// The CAs, one of which must have issued each client's certificate. Without it clients are not asked for one.
    pub client_ca: Option<PathBuf>,
    /// The revocation lists of those CAs, one of each.
    pub client_crl: Option<PathBuf>,
}

impl TlsFiles {
    fn all(&self) -> Vec<PathBuf> {
        let optional = self.client_ca.iter().chain(&self.client_crl);
        [&self.cert, &self.key]
            .into_iter()
            .chain(optional)
            .cloned()
            .collect()
    }

    /// Whether the files are valid now.
    pub fn check(&self) -> Result<(), TlsError> {
        self.read(Vec::new()).map(drop)
    }

    fn read(&self, protocols: Vec<Vec<u8>>) -> Result<LoadedConfig, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("TLS", &error))?;
        let mut clients: Option<Arc<dyn ClientCertVerifier>> = None;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider());
                if let Some(list) = &self.client_crl {
                    verifier = verifier.with_crls(all(list, "revocation list")?);
                }
                let verifier = verifier.build().map_err(|error| TlsError::of(file, &error))?;
                clients = Some(Arc::clone(&verifier));
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, key) = identity(&self.cert, &self.key)?;
        let validity = Validity::of_chain(&self.cert, &chain);
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::of(&self.cert, &error))?;
        config.alpn_protocols = protocols;
        // A resumed session would not be verified again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let validity = validity
            .inspect_err(|error| tracing::warn!(%error, "can't read when the certificate expires"))
            .ok();
        Ok(LoadedConfig {
            config: Arc::new(config),
            clients,
            validity,
        })
    }
}

/// What the files say.
#[derive(Debug)]
struct LoadedConfig {
    config: Arc<ServerConfig>,
    /// Verifies the certificates of clients, if these have to have any.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    /// That of the server's certificate.
    validity: Option<Validity>,
}

/// The server's TLS configuration, replaced as a whole when its files change.
pub struct TlsServer {
    files: TlsFiles,
    /// What is spoken on its connections.
    protocols: fn() -> Vec<Vec<u8>>,
    current: ArcSwap<LoadedConfig>,
    watched: Mutex<Watched>,
    /// That of `watched`, which is locked while files are read.
    failing: Arc<AtomicBool>,
    clients: Clients,
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl TlsServer {
    /// From the files as they are now, for gRPC.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        Self::speaking(alpn, files)
    }

    /// From the files as they are now, for HTTP/1.1 ([`plain_http`](crate::plain_http)).
    pub fn for_http1(files: TlsFiles) -> Result<Self, TlsError> {
        Self::speaking(|| vec![b"http/1.1".to_vec()], files)
    }

    fn speaking(protocols: fn() -> Vec<Vec<u8>>, files: TlsFiles) -> Result<Self, TlsError> {
        let watched = Watched::new(files.all());
        Ok(Self {
            current: ArcSwap::from_pointee(files.read(protocols())?),
            protocols,
            failing: watched.failing(),
            watched: Mutex::new(watched),
            clients: Clients::default(),
            files,
        })
    }

    /// When the certificate in force is valid, if that can be told.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.current.load().validity
    }

    /// The names in each client's certificate that is in use or was lately, and when it is valid.
    pub(crate) fn clients(&self) -> Vec<(Arc<[String]>, Validity)> {
        self.clients.in_use(SystemClock.now().as_second())
    }

    /// Performs the handshake with the files as last read; also returns the client's names if it had to present a
    /// certificate. May take as long as the client likes.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<PeerNames>)> {
        let loaded = self.current.load_full();
        let acceptor = TlsAcceptor::from(Arc::clone(&loaded.config));
        let stream = match acceptor.accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                // Lingers so that the client can read why, although it has sent more in the meantime.
                graceful_close::close(stream).await;
                return Err(error);
            }
        };
        let (_, session) = stream.get_ref();
        let Some(chain) = session.peer_certificates() else {
            return Ok((stream, None));
        };
        let now = SystemClock.now().as_second();
        let names = self.clients.shown(chain, now)?;
        // If the files changed during the handshake, the check of all certificates may have missed this one.
        let newest = self.current.load_full();
        if let Some(verifier) = newest
            .clients
            .as_deref()
            .filter(|_| !Arc::ptr_eq(&newest, &loaded))
        {
            verify(verifier, chain, now).map_err(io::Error::other)?;
        }
        let names = Some(names);
        Ok((stream, names))
    }
}

impl Reload for TlsServer {
    fn reload(&self, when: When) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.is_due(when) {
            return false;
        }
        match self.files.read((self.protocols)()) {
            Ok(read) => {
                watched.succeeded();
                let clients = read.clients.clone();
                self.current.store(Arc::new(read));
                if let Some(verifier) = clients {
                    self.clients.check(&*verifier, SystemClock.now().as_second());
                }
                tracing::info!(certificate = %self.files.cert.display(), "the TLS files were read again; new connections use them");
                true
            }
            Err(error) => {
                if watched.failed(error.to_string(), when) {
                    tracing::error!(%error, "the changed TLS files can't be used; the previous ones stay in force");
                }
                false
            }
        }
    }

    fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }
}

/// A server's files, as arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// The server's certificate and the intermediates up to its CA (PEM), which turns on TLS; read again when it
    /// changes
    #[arg(long, value_name = "FILE", env = "EMEND_TLS_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", env = "EMEND_TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The CAs (PEM), one of which must have issued each client's certificate; without it clients are not asked for one
    #[arg(long, value_name = "FILE", env = "EMEND_TLS_CLIENT_CA", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// The revocation lists of these CAs (PEM), one of each; certificates of a CA without one are refused
    #[arg(
        long,
        value_name = "FILE",
        env = "EMEND_TLS_CLIENT_CRL",
        requires = "tls_client_ca"
    )]
    pub tls_client_crl: Option<PathBuf>,
}

impl TlsArgs {
    /// The files; `None` if connections are plain.
    pub fn files(&self) -> Option<TlsFiles> {
        let (cert, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(TlsFiles {
            cert,
            key,
            client_ca: self.tls_client_ca.clone(),
            client_crl: self.tls_client_crl.clone(),
        })
    }

    /// What is wrong with the files, if anything.
    pub fn check(&self) -> Option<String> {
        let error = self.files()?.check().err()?;
        Some(format!("--tls-cert, --tls-key, --tls-client-ca: {error}"))
    }

    /// Loads the files; `None` if connections are plain.
    pub fn load(&self) -> Result<Option<Arc<TlsServer>>, TlsError> {
        let loaded = self.files().map(TlsServer::load).transpose()?;
        Ok(loaded.map(Arc::new))
    }
}
