//! Why one side does not trust the other, in plain words: rustls's messages are for TLS experts.

use std::{error::Error, io, time::Duration};

use jiff::Timestamp;
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, InvalidMessage};

/// Why a connection over TLS fails, from the client's point of view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrustError(String);

impl TrustError {
    /// The first such error in a chain of causes, if there is one.
    pub fn within<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            let io = error.downcast_ref::<io::Error>();
            let inner = io.and_then(io::Error::get_ref);
            if let Some(found) = inner.and_then(|inner| inner.downcast_ref()) {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Rephrases the error of a handshake. A server of plain HTTP/2 ends the connection at the first bytes of one.
    pub(super) fn of_handshake(error: io::Error) -> io::Error {
        if matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
        ) {
            let words = "the server ended the connection during the TLS handshake; it may not use TLS at this address";
            return io::Error::new(error.kind(), Self(words.to_owned()));
        }
        Self::rephrase(error)
    }

    /// Rephrases rustls's error. Other errors stay as they are.
    pub(super) fn rephrase(error: io::Error) -> io::Error {
        let inner = error.get_ref();
        let words = inner
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
            .and_then(words);
        match words {
            Some(words) => io::Error::new(error.kind(), Self(words)),
            None => error,
        }
    }
}

fn words(error: &rustls::Error) -> Option<String> {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            Some(format!("the server's certificate {}", about(error)))
        }
        rustls::Error::NoCertificatesPresented => Some("the server presents no certificate".to_owned()),
        rustls::Error::AlertReceived(alert) => objection(*alert).map(str::to_owned),
        // The peer does not speak TLS but, for example, HTTP/1.1.
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            Some("the server does not use TLS at this address".to_owned())
        }
        _ => None,
    }
}

/// What is wrong with the server's certificate.
fn about(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() {
                "for no name at all".to_owned()
            } else {
                format!("for {}", names.join(", "))
            };
            format!("is not for {}, but {names}", expected.to_str())
        }
        CertificateError::NotValidForName => "is for another name".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("has expired: it was valid until {}", time(not_after.as_secs()))
        }
        CertificateError::Expired => "has expired".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is not valid yet: it will be from {}", time(not_before.as_secs()))
        }
        CertificateError::NotValidYet => "is not valid yet".to_owned(),
        CertificateError::UnknownIssuer => "was issued by none of the CAs that are trusted here".to_owned(),
        CertificateError::BadSignature => {
            "is signed by a key other than that of the trusted CA of this name".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not for servers".to_owned()
        }
        CertificateError::ApplicationVerificationFailure => "is not the one in the file".to_owned(),
        other => format!("can't be trusted: {other}"),
    }
}

/// The server's objection to the client.
fn objection(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::CertificateRequired => {
            "the server requires a client certificate, and none was presented"
        }
        AlertDescription::UnknownCA => "the server does not trust the CA of the client certificate",
        AlertDescription::CertificateExpired => "the client certificate has expired",
        AlertDescription::CertificateRevoked => "the client certificate has been revoked",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => "the server refuses the client certificate; its log says why",
        AlertDescription::HandshakeFailure => {
            "the server aborted the TLS handshake; it may require a client certificate"
        }
        _ => return None,
    })
}

/// The name inside `DnsName("a.example")` or `IpAddress(127.0.0.1)`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// Formats a time in seconds since 1970.
fn time(seconds: u64) -> String {
    let time = Timestamp::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.map_or_else(|_| format!("{seconds} s after 1970"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: rustls::Error) -> String {
        let message = TrustError::rephrase(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(message.kind(), io::ErrorKind::InvalidData);
        message.to_string()
    }

    #[test]
    fn a_servers_alert_is_explained_in_plain_words() {
        for (alert, words) in [
            (
                AlertDescription::CertificateRequired,
                "the server requires a client certificate, and none was presented",
            ),
            (
                AlertDescription::UnknownCA,
                "the server does not trust the CA of the client certificate",
            ),
            (
                AlertDescription::CertificateRevoked,
                "the client certificate has been revoked",
            ),
        ] {
            assert_eq!(message(rustls::Error::AlertReceived(alert)), words);
        }
    }

    #[test]
    fn errors_that_are_not_about_trust_are_unchanged() {
        let other = rustls::Error::AlertReceived(AlertDescription::InternalError);
        assert_eq!(message(other.clone()), other.to_string());
        let reset = TrustError::rephrase(io::ErrorKind::ConnectionReset.into());
        assert!(TrustError::within(&reset).is_none());
    }
}
