//! What leaves for a browser and must come back unread and unchanged: sealed with AES-256-GCM under keys that are derived, one
//! for each use, from the console's own.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use emend_base::Entropy;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    hmac,
};

/// The length of the console's key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// Seals and opens, and tells genuine form tokens from others.
pub(crate) struct Seal {
    cookies: LessSafeKey,
    forms: hmac::Key,
    entropy: Entropy,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// By this key; nonces are drawn from `entropy`.
    ///
    /// # Panics
    /// Never: the lengths are those of the algorithms.
    pub(crate) fn new(key: &[u8; KEY_BYTES], entropy: Entropy) -> Self {
        let derived = |purpose: &[u8]| {
            let mut out = [0; KEY_BYTES];
            Salt::new(HKDF_SHA256, b"emend console")
                .extract(key)
                .expand(&[purpose], HKDF_SHA256)
                .and_then(|key| key.fill(&mut out))
                .expect("invariant: 32 bytes are one output of HKDF-SHA256");
            out
        };
        let cookies = UnboundKey::new(&AES_256_GCM, &derived(b"cookies"))
            .expect("invariant: AES-256 has keys of 32 bytes");
        Self {
            cookies: LessSafeKey::new(cookies),
            forms: hmac::Key::new(hmac::HMAC_SHA256, &derived(b"forms")),
            entropy,
        }
    }

    /// A text that only this key opens, under that name: of a cookie, or of whom it is for.
    ///
    /// # Panics
    /// Never: what fits into an address is shorter than what AES-GCM can seal.
    pub(crate) fn seal(&self, name: &str, plain: &[u8]) -> String {
        let mut nonce = [0; NONCE_LEN];
        self.entropy.fill(&mut nonce);
        let mut sealed = plain.to_vec();
        self.cookies
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.as_bytes()),
                &mut sealed,
            )
            .expect("invariant: short enough for AES-GCM");
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// What was sealed for that name; none if it was not, or was changed.
    pub(crate) fn open(&self, name: &str, text: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self
            .cookies
            .open_in_place(nonce, Aad::from(name.as_bytes()), &mut plain);
        let length = opened.ok()?.len();
        plain.truncate(length);
        Some(plain)
    }

    /// The token that the forms of a session carry.
    pub(crate) fn form_token(&self, session: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.forms, session.as_bytes()))
    }

    /// Whether a form carries the token of that session.
    pub(crate) fn is_form_token(&self, session: &str, token: &str) -> bool {
        URL_SAFE_NO_PAD
            .decode(token)
            .is_ok_and(|tag| hmac::verify(&self.forms, session.as_bytes(), &tag).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(key: u8) -> Seal {
        Seal::new(&[key; KEY_BYTES], Entropy::system())
    }

    #[test]
    fn only_what_was_sealed_for_the_name_by_the_key_opens() {
        let sealed = seal(1).seal("session", b"a token");
        assert_eq!(seal(1).open("session", &sealed).as_deref(), Some(&b"a token"[..]));
        assert_eq!(seal(1).open("other", &sealed), None);
        assert_eq!(seal(2).open("session", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character has bits that mean nothing; the decoder refuses those.
            assert_eq!(seal(1).open("session", &changed), None, "{at}");
        }
    }

    #[test]
    fn a_form_token_is_of_one_session() {
        let token = seal(1).form_token("one");
        assert!(seal(1).is_form_token("one", &token));
        assert!(!seal(1).is_form_token("another", &token));
        assert!(!seal(2).is_form_token("one", &token));
        assert!(!seal(1).is_form_token("one", ""));
    }
}
