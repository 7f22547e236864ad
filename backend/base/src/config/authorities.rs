//! Certificate authorities that an installation trusts in addition to those of the machine.

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Certificates of authorities, each of which is a trust anchor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthoritiesError {
    #[error("contains no PEM certificate")]
    None,
    /// The certificate with this number, counted from 1, is malformed.
    #[error("certificate number {0} cannot be parsed")]
    Unreadable(usize),
}

impl Authorities {
    /// Parses one or more PEM certificates; text between them is skipped.
    pub fn from_pem(text: &[u8]) -> Result<Self, AuthoritiesError> {
        let mut roots = RootCertStore::empty();
        let mut certificates = Vec::new();
        for (index, certificate) in CertificateDer::pem_slice_iter(text).enumerate() {
            let unreadable = AuthoritiesError::Unreadable(index + 1);
            let certificate = certificate.ok().ok_or(unreadable.clone())?;
            roots.add(certificate.clone()).ok().ok_or(unreadable)?;
            certificates.push(certificate);
        }
        if certificates.is_empty() {
            return Err(AuthoritiesError::None);
        }
        Ok(Self(certificates))
    }

    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_without_valid_certificate_is_rejected() {
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let open = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let cases = [
            ("", AuthoritiesError::None),
            ("hello", AuthoritiesError::None),
            (key, AuthoritiesError::None),
            (garbage, AuthoritiesError::Unreadable(1)),
            (open, AuthoritiesError::Unreadable(1)),
        ];
        for (text, expected) in cases {
            assert_eq!(
                Authorities::from_pem(text.as_bytes()),
                Err(expected),
                "{text}"
            );
        }
    }
}
