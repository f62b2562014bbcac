//! The certificates that clients have shown: whether each is still accepted when the files have changed, and when it
//! expires.
//!
//! Connections with the same certificate share one entry. One that no connection has any more is remembered for a while,
//! so that clients that connect briefly are measured too.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use emend_base::tls::Validity;
use ring::digest::{Context, SHA256};
use tokio_rustls::rustls::{
    Error,
    pki_types::{CertificateDer, UnixTime},
    server::danger::ClientCertVerifier,
};
use tokio_util::sync::CancellationToken;

use super::PeerNames;

/// How long a certificate counts as in use after its last handshake, in seconds: longer than clients of `prod` keep a
/// connection or a stream.
const REMEMBERED: i64 = 2 * 60 * 60;
/// How many certificates are remembered that no connection has.
const MAX_REMEMBERED: usize = 1_024;

struct KnownChain {
    names: PeerNames,
    chain: Vec<CertificateDer<'static>>,
    /// When a handshake or a measurement last found it in use, in seconds since 1970.
    seen_at: i64,
}

impl KnownChain {
    /// Whether a connection has it.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.names.names) > 1
    }
}

/// The certificates of clients, by the hash of their chains.
#[derive(Default)]
pub(super) struct Clients(Mutex<HashMap<[u8; 32], KnownChain>>);

impl Clients {
    /// Takes note of a chain that was verified in a handshake. `now` is in seconds since 1970.
    pub(super) fn shown(&self, chain: &[CertificateDer<'static>], now: i64) -> io::Result<PeerNames> {
        let mut all = self.all();
        let key = hash(chain);
        if let Some(known) = all.get_mut(&key)
            && !known.names.withdrawn.is_cancelled()
        {
            known.seen_at = now;
            return Ok(known.names.clone());
        }
        let names = names(chain)?;
        forget(&mut all, now);
        let shown = KnownChain {
            names: names.clone(),
            chain: chain.to_vec(),
            seen_at: now,
        };
        all.insert(key, shown);
        Ok(names)
    }

    /// Verifies all again, and withdraws those that are no longer accepted.
    pub(super) fn check(&self, verifier: &dyn ClientCertVerifier, now: i64) {
        self.all().retain(|_, shown| {
            let end = shown.names.validity.map(|validity| validity.not_after);
            if end.is_some_and(|end| end < now) {
                // Its connections end for that reason.
                return false;
            }
            let Err(error) = verify(verifier, &shown.chain, now) else {
                return true;
            };
            shown.names.withdrawn.cancel();
            if shown.is_in_use() {
                let names = shown.names.names.join(", ");
                tracing::info!(names, %error, "a client's certificate is no longer accepted; its connections are ended");
            }
            false
        });
    }

    /// The names in each certificate that is in use or was lately, and when it is valid.
    pub(super) fn in_use(&self, now: i64) -> Vec<(Arc<[String]>, Validity)> {
        let mut all = self.all();
        for shown in all.values_mut().filter(|shown| shown.is_in_use()) {
            shown.seen_at = now;
        }
        forget(&mut all, now);
        let known = all.values();
        known
            .filter_map(|shown| Some((Arc::clone(&shown.names.names), shown.names.validity?)))
            .collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<[u8; 32], KnownChain>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets what no connection has and what was not seen for long, or, if that is too much, all that no connection has.
fn forget(all: &mut HashMap<[u8; 32], KnownChain>, now: i64) {
    all.retain(|_, shown| shown.is_in_use() || now.saturating_sub(shown.seen_at) < REMEMBERED);
    let unused = all.values().filter(|shown| !shown.is_in_use()).count();
    if unused > MAX_REMEMBERED {
        all.retain(|_, shown| shown.is_in_use());
    }
}

fn hash(chain: &[CertificateDer<'_>]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for certificate in chain {
        context.update(&(certificate.len() as u64).to_le_bytes());
        context.update(certificate);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Whether the verifier still accepts a chain.
pub(super) fn verify(
    verifier: &dyn ClientCertVerifier,
    chain: &[CertificateDer<'_>],
    now: i64,
) -> Result<(), Error> {
    let (leaf, intermediates) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.try_into().unwrap_or(0)));
    verifier.verify_client_cert(leaf, intermediates, now).map(drop)
}

/// The URIs and DNS names in a verified certificate, and when it is valid.
fn names(chain: &[CertificateDer<'_>]) -> io::Result<PeerNames> {
    let certificate = chain
        .first()
        .ok_or_else(|| io::Error::other(Error::NoCertificatesPresented))?;
    let parsed = webpki::EndEntityCert::try_from(certificate).map_err(io::Error::other)?;
    let names = parsed.valid_uri_names().chain(parsed.valid_dns_names());
    Ok(PeerNames {
        names: names.map(ToOwned::to_owned).collect(),
        validity: Validity::in_der(certificate),
        withdrawn: CancellationToken::new(),
    })
}
