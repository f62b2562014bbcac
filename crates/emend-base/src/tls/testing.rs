//! For tests: CAs and the certificates they issue.

#![expect(clippy::unwrap_used, reason = "a test's helper fails like the test")]

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber,
};
pub use rcgen::{ExtendedKeyUsagePurpose, date_time_ymd};

/// A CA.
pub struct Authority {
    name: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub cert: String,
    /// Its key.
    pub key: String,
    serial: u64,
}

impl Authority {
    /// A new CA.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self {
            name: name.to_owned(),
            issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its own certificate, as PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate with a serial number, for names that are URIs, addresses or DNS names.
    pub fn issue(&self, serial: u64, names: &[&str]) -> Issued {
        self.issue_as(serial, names, |_| {})
    }

    /// The same, with its parameters modified by `change`.
    pub fn issue_as(
        &self,
        serial: u64,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let (uris, hosts): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.contains("://"));
        let hosts: Vec<String> = hosts.into_iter().map(ToOwned::to_owned).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        for uri in uris {
            params
                .subject_alt_names
                .push(SanType::URI(uri.try_into().unwrap()));
        }
        params.serial_number = Some(SerialNumber::from(serial));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Issued {
            cert: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
            serial,
        }
    }

    /// Its revocation list, as PEM.
    pub fn revoked(&self, revoked: &[&Issued]) -> String {
        let revoked_certs = revoked.iter().map(|issued| RevokedCertParams {
            serial_number: SerialNumber::from(issued.serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked_certs.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

impl Issued {
    /// Writes `NAME.pem` and `NAME.key`.
    pub fn write(&self, directory: &Path, name: &str) {
        fs::write(directory.join(format!("{name}.pem")), &self.cert).unwrap();
        fs::write(directory.join(format!("{name}.key")), &self.key).unwrap();
    }
}
