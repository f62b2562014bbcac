//! What says that a delivery is genuine, as Standard Webhooks have it: an HMAC over its id, its time and its body.

use std::{fs, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use ring::hmac;

use crate::sinks::error::SinkError;

/// Begins a secret.
const PREFIX: &str = "whsec_";
/// How many bytes a secret may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that the receiver has, too.
pub(super) struct Secret(hmac::Key);

impl Secret {
    /// The secret in a file.
    pub(super) fn read(file: &Path) -> Result<Self, SinkError> {
        let text = fs::read_to_string(file).map_err(|error| {
            SinkError::refused(format!("can't read the secret in {}: {error}", file.display()))
        })?;
        Self::parse(text.trim()).ok_or_else(|| {
            SinkError::refused(format!(
                "{} must hold {PREFIX} and {} to {} bytes in base64",
                file.display(),
                BYTES.start(),
                BYTES.end()
            ))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        BYTES
            .contains(&bytes.len())
            .then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The headers of a delivery.
    pub(super) fn headers(&self, id: &str, at: Timestamp, body: &str) -> Result<HeaderMap, SinkError> {
        let time = at.as_second();
        let tag = hmac::sign(&self.0, format!("{id}.{time}.{body}").as_bytes());
        let signature = format!("v1,{}", BASE64_STANDARD.encode(tag.as_ref()));
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", time.to_string()),
            ("webhook-signature", signature),
        ] {
            let value = HeaderValue::try_from(value)
                .map_err(|_| SinkError::refused(format!("{id:?} is no header's value")))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_signed_as_the_specification_shows() {
        // The example of the specification's own libraries.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let headers = secret
            .headers("msg_p5jXN8AQM9LWM0D4loKWxJek", at, r#"{"test": 2432232314}"#)
            .unwrap();
        assert_eq!(
            headers["webhook-signature"],
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(headers["webhook-timestamp"], "1614265330");
        for wrong in ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
