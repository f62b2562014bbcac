//! From when until when certificates are valid, read from their DER encoding (RFC 5280, section 4.1): rustls checks that
//! but does not say it.

use std::path::Path;

use jiff::{civil::DateTime, tz::TimeZone};
use tokio_rustls::rustls::pki_types::CertificateDer;

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
        let validities: Option<Vec<Self>> = chain
            .iter()
            .map(|certificate| Self::in_der(certificate))
            .collect();
        let validities =
            validities.ok_or_else(|| TlsError::of(file, "contains something that is not a certificate"))?;
        let first = validities.into_iter().min_by_key(|validity| validity.not_after);
        Ok(first.expect("invariant: a chain holds at least one certificate"))
    }

    /// That of one certificate; none if it is not one.
    pub fn in_der(certificate: &[u8]) -> Option<Self> {
        let mut certificate = Der(Der(certificate).value(SEQUENCE)?);
        let mut to_be_signed = Der(certificate.value(SEQUENCE)?);
        // The version is left out of certificates of version 1.
        to_be_signed.value(VERSION);
        for before in [INTEGER, SEQUENCE, SEQUENCE] {
            to_be_signed.value(before)?;
        }
        let mut validity = Der(to_be_signed.value(SEQUENCE)?);
        Some(Self {
            not_before: validity.time()?,
            not_after: validity.time()?,
        })
    }
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// What is left to read of a value in DER.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next value, if it has this tag; otherwise nothing is read.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&[found, length], rest) = self.0.split_first_chunk()?;
        if found != tag {
            return None;
        }
        let (length, rest) = if length < 0x80 {
            (usize::from(length), rest)
        } else {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            if bytes.len() > 4 {
                return None;
            }
            let length = bytes
                .iter()
                .fold(0, |length, byte| (length << 8) | usize::from(*byte));
            (length, rest)
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }

    /// The next time, in seconds since 1970.
    fn time(&mut self) -> Option<i64> {
        if let Some(text) = self.value(UTC_TIME) {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            return seconds(if year < 50 { 2000 + year } else { 1900 + year }, rest);
        }
        let (year, rest) = self.value(GENERALIZED_TIME)?.split_at_checked(4)?;
        seconds(number(year)?, rest)
    }
}

/// The rest of a time has the form `MMDDHHMMSSZ`.
fn seconds(year: i16, rest: &[u8]) -> Option<i64> {
    let rest: &[u8; 11] = rest.try_into().ok()?;
    let [month, day, hour, minute, second] =
        [0, 2, 4, 6, 8].map(|at| number(&rest[at..at + 2]).and_then(|number| i8::try_from(number).ok()));
    let time = DateTime::new(year, month?, day?, hour?, minute?, second?, 0).ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?;
    rest.ends_with(b"Z").then(|| time.timestamp().as_second())
}

/// A number of at most four digits.
fn number(digits: &[u8]) -> Option<i16> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    is_number
        .then(|| std::str::from_utf8(digits).ok()?.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::CertificateParams;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;

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
    fn a_file_without_a_certificate_is_an_error_that_names_the_file() {
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

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn times_beyond_2049_are_read_too() {
        let authority = Authority::new("ca");
        for (from, to) in [(1950, 1999), (2000, 2049), (2049, 2050), (2051, 9999)] {
            let issued = authority.issue_as(1, &["a.example"], from_to(from, to)).cert;
            let expected = Validity {
                not_before: date_time_ymd(from, 1, 1).unix_timestamp(),
                not_after: date_time_ymd(to, 1, 1).unix_timestamp(),
            };
            assert_eq!(Validity::in_der(&der(&issued)), Some(expected), "{from} {to}");
        }
    }

    #[test]
    fn a_time_is_read_to_the_second_and_an_invalid_one_refused() {
        let time = |tag: u8, text: &str| {
            let length = u8::try_from(text.len()).unwrap();
            Der(&[&[tag, length], text.as_bytes()].concat()).time()
        };
        assert_eq!(time(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(time(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        for (tag, text) in [
            (UTC_TIME, ""),
            (UTC_TIME, "7001010000Z"),
            (UTC_TIME, "700101000001+"),
            (UTC_TIME, "701301000001Z"),
            (UTC_TIME, "70+101000001Z"),
            (GENERALIZED_TIME, "700101000001Z"),
            (INTEGER, "700101000001Z"),
        ] {
            assert_eq!(time(tag, text), None, "{text}");
        }
    }

    #[test]
    fn a_damaged_certificate_is_read_without_panicking() {
        let issued = Authority::new("ca").issue(1, &["a.example"]).cert;
        let whole = der(&issued);
        let validity = Validity::in_der(&whole);
        assert!(validity.is_some());
        for end in 0..whole.len() {
            assert_eq!(Validity::in_der(&whole[..end]), None, "cut at {end}");
        }
        let mut damaged = whole.to_vec();
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                damaged[at] = byte;
                let _ = Validity::in_der(&damaged);
            }
            damaged[at] = whole[at];
        }
    }
}
