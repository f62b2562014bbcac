//! The server's side: its certificate, and which clients it lets in.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use emend_base::{
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
        pki_types::CertificateDer,
        server::{NoServerSessionStorage, WebPkiClientVerifier},
    },
    server::TlsStream,
};

use super::PeerNames;
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
        self.read().map(drop)
    }

    fn read(&self) -> Result<LoadedConfig, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("TLS", &error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider());
                if let Some(list) = &self.client_crl {
                    verifier = verifier.with_crls(all(list, "revocation list")?);
                }
                builder
                    .with_client_cert_verifier(verifier.build().map_err(|error| TlsError::of(file, &error))?)
            }
        };
        let (chain, key) = identity(&self.cert, &self.key)?;
        let validity = Validity::of_chain(&self.cert, &chain);
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::of(&self.cert, &error))?;
        config.alpn_protocols = alpn();
        // A resumed session would not be verified again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let validity = validity
            .inspect_err(|error| tracing::warn!(%error, "can't read when the certificate expires"))
            .ok();
        Ok(LoadedConfig {
            config: Arc::new(config),
            validity,
        })
    }
}

/// What the files say.
#[derive(Debug)]
struct LoadedConfig {
    config: Arc<ServerConfig>,
    /// That of the server's certificate.
    validity: Option<Validity>,
}

/// The server's TLS configuration, replaced as a whole when its files change.
#[derive(Debug)]
pub struct TlsServer {
    files: TlsFiles,
    current: ArcSwap<LoadedConfig>,
    watched: Mutex<Watched>,
    /// That of `watched`, which is locked while files are read.
    failing: Arc<AtomicBool>,
}

impl TlsServer {
    /// From the files as they are now.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let watched = Watched::new(files.all());
        Ok(Self {
            current: ArcSwap::from_pointee(files.read()?),
            failing: watched.failing(),
            watched: Mutex::new(watched),
            files,
        })
    }

    /// When the certificate in force is valid, if that can be told.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.current.load().validity
    }

    /// Performs the handshake with the files as last read; also returns the client's names if it had to present a
    /// certificate. May take as long as the client likes.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<PeerNames>)> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.current.load().config));
        let stream = match acceptor.accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                // Lingers so that the client can read why, although it has sent more in the meantime.
                graceful_close::close(stream).await;
                return Err(error);
            }
        };
        let (_, session) = stream.get_ref();
        let names = match session.peer_certificates().and_then(<[_]>::first) {
            Some(certificate) => Some(names(certificate)?),
            None => None,
        };
        Ok((stream, names))
    }
}

/// The URIs and DNS names in a verified certificate, and its end.
fn names(certificate: &CertificateDer<'_>) -> io::Result<PeerNames> {
    let parsed = webpki::EndEntityCert::try_from(certificate).map_err(io::Error::other)?;
    let names = parsed.valid_uri_names().chain(parsed.valid_dns_names());
    Ok(PeerNames {
        names: names.map(ToOwned::to_owned).collect(),
        not_after: Validity::in_der(certificate).map(|validity| validity.not_after),
    })
}

impl Reload for TlsServer {
    fn reload(&self, when: When) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.is_due(when) {
            return false;
        }
        match self.files.read() {
            Ok(read) => {
                watched.succeeded();
                self.current.store(Arc::new(read));
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
