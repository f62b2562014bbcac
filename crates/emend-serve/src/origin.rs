//! Origins of pages: in a command line as people type them, and in headers as browsers send them and policies name them.

use std::{fmt, str::FromStr};

use http::Uri;

/// Scheme, host and perhaps a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The host in lower case, and the port unless it is the scheme's own.
    pub authority: String,
    /// Whether it is https.
    pub is_secure: bool,
}

/// Why a text is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected http://HOST[:PORT] or https://HOST[:PORT] and nothing behind it")]
pub struct NoOrigin;

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let uri: Uri = text.parse().map_err(|_| NoOrigin)?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(NoOrigin),
        };
        let authority = uri.authority().ok_or(NoOrigin)?.as_str();
        // Nothing may end a directive of a content security policy and begin another.
        if authority.contains(['@', ';', ',', '\'', '*'])
            || !matches!(uri.path(), "" | "/")
            || uri.query().is_some()
        {
            return Err(NoOrigin);
        }
        let own_port = if is_secure { ":443" } else { ":80" };
        let authority = authority.strip_suffix(own_port).unwrap_or(authority);
        Ok(Self {
            authority: authority.to_ascii_lowercase(),
            is_secure,
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host_as_browsers_send_it() {
        for (text, origin) in [
            ("https://Emend.example", "https://emend.example"),
            ("https://emend.example:443/", "https://emend.example"),
            ("http://emend.example:8080", "http://emend.example:8080"),
        ] {
            assert_eq!(
                text.parse::<Origin>().map(|origin| origin.to_string()),
                Ok(origin.to_owned())
            );
        }
        for bad in [
            "emend.example",
            "ftp://emend.example",
            "https://me@emend.example",
            "https://emend.example/x",
            "https://emend.example/?q",
        ] {
            assert_eq!(bad.parse::<Origin>(), Err(NoOrigin), "{bad}");
        }
    }

    #[test]
    fn an_origin_can_not_begin_another_directive() {
        for bad in [
            "https://app.example;script-src",
            "https://*",
            "https://a,b",
            "'self'",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
