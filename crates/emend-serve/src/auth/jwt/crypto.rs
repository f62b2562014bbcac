//! The cryptography with which `jsonwebtoken` verifies signatures: ring, which the tree depends on anyway, in place of
//! the crate's two own backends.
//!
//! Nothing here signs.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{self, Verifier},
};
use ring::{
    hmac,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
        RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
        UnparsedPublicKey, VerificationAlgorithm,
    },
};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes it the process's provider. One installed earlier stays, and is as good.
pub(super) fn install() {
    let _ = RING.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the provider's signature")]
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the provider's signature")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let (algorithm, key) = (*algorithm, key.clone());
    // A key of one family never verifies an algorithm of another.
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier { algorithm, key }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let good = match self.algorithm {
            Algorithm::HS256 => self.hmac(hmac::HMAC_SHA256, message, signature),
            Algorithm::HS384 => self.hmac(hmac::HMAC_SHA384, message, signature),
            Algorithm::HS512 => self.hmac(hmac::HMAC_SHA512, message, signature),
            Algorithm::ES256 => self.point(&ECDSA_P256_SHA256_FIXED, message, signature),
            Algorithm::ES384 => self.point(&ECDSA_P384_SHA384_FIXED, message, signature),
            Algorithm::EdDSA => self.point(&ED25519, message, signature),
            Algorithm::RS256 => self.rsa(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Algorithm::RS384 => self.rsa(&RSA_PKCS1_2048_8192_SHA384, message, signature),
            Algorithm::RS512 => self.rsa(&RSA_PKCS1_2048_8192_SHA512, message, signature),
            Algorithm::PS256 => self.rsa(&RSA_PSS_2048_8192_SHA256, message, signature),
            Algorithm::PS384 => self.rsa(&RSA_PSS_2048_8192_SHA384, message, signature),
            Algorithm::PS512 => self.rsa(&RSA_PSS_2048_8192_SHA512, message, signature),
            // An algorithm added by a later version of the crate: no key is tied to it.
            _ => false,
        };
        if good {
            Ok(())
        } else {
            Err(signature::Error::new())
        }
    }
}

impl RingVerifier {
    fn hmac(&self, algorithm: hmac::Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let is_shared = self.key.family() == AlgorithmFamily::Hmac;
        self.key.try_get_as_bytes().is_ok_and(|key| {
            is_shared && hmac::verify(&hmac::Key::new(algorithm, key), message, signature).is_ok()
        })
    }

    fn point(&self, algorithm: &'static dyn VerificationAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        self.key.try_get_as_bytes().is_ok_and(|key| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(message, signature)
                .is_ok()
        })
    }

    fn rsa(&self, parameters: &RsaParameters, message: &[u8], signature: &[u8]) -> bool {
        match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => RsaPublicKeyComponents { n, e }
                .verify(parameters, message, signature)
                .is_ok(),
            DecodingKeyKind::SecretOrDer(_) => false,
        }
    }
}
