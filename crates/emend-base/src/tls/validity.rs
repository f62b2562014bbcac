//! When certificates are valid.
//!
//! It must know nothing of who reports it.

use std::path::Path;

use tokio_rustls::rustls::pki_types::CertificateDer;
use x509_parser::{error::X509Error, parse_x509_certificate};

use super::files::{TlsError, all};

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: i64,
    /// The last second.
    pub not_after: i64,
}

impl Validity {
    /// That of the certificates in a PEM file. Blocks on the disk.
    pub fn of(file: &Path) -> Result<Self, TlsError> {
        Self::of_chain(file, &all(file, "certificate")?)
    }

    /// That of the first certificate of a chain to expire: without its intermediates, a certificate is worth nothing.
    /// `file` is for the error.
    pub fn of_chain(file: &Path, chain: &[CertificateDer<'_>]) -> Result<Self, TlsError> {
        let validities: Result<Vec<Self>, _> = chain.iter().map(Self::of_certificate).collect();
        let validities = validities.map_err(|error| TlsError::of(file, &error))?;
        let first = validities.into_iter().min_by_key(|validity| validity.not_after);
        Ok(first.expect("invariant: a chain holds at least one certificate"))
    }

    fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, X509Error> {
        let (_, parsed) = parse_x509_certificate(certificate)?;
        let validity = parsed.validity();
        Ok(Self {
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::CertificateParams;

    use super::*;
    use crate::tls::testing::{Authority, date_time_ymd};

    fn from_to(from: i32, to: i32) -> impl FnOnce(&mut CertificateParams) {
        move |params| {
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
        }
    }

    #[test]
    fn the_certificate_that_expires_first_counts() {
        let authority = Authority::new("ca");
        let own = authority.issue_as(1, &["a.example"], from_to(2020, 2040)).cert;
        let intermediate = authority.issue_as(2, &["b.example"], from_to(2021, 2031)).cert;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("chain.pem");
        let earliest = Validity {
            not_before: date_time_ymd(2021, 1, 1).unix_timestamp(),
            not_after: date_time_ymd(2031, 1, 1).unix_timestamp(),
        };
        for chain in [[&*own, &intermediate], [&intermediate, &own]] {
            fs::write(&file, chain.concat()).unwrap();
            assert_eq!(Validity::of(&file), Ok(earliest));
        }
    }

    #[test]
    fn what_is_no_certificate_is_an_error_that_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("chain.pem");
        for content in [
            "",
            "nothing",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            fs::write(&file, content).unwrap();
            let error = Validity::of(&file).unwrap_err().to_string();
            assert!(error.contains("chain.pem"), "{content:?}: {error}");
        }
        assert!(Validity::of(&directory.path().join("absent.pem")).is_err());
    }
}
