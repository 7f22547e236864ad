//! A certificate authority of our own, and servers that show its certificates.

use std::{path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};

/// An authority that nobody trusts yet.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one of that name.
    ///
    /// # Panics
    /// When there is no randomness for its key.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes its certificate to a file.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, file: &Path) {
        std::fs::write(file, self.0.pem()).unwrap();
    }

    /// A server that shows a certificate for that name.
    pub fn server(&self, name: &str) -> ServerConfig {
        self.server_with(name, |_| {})
    }

    /// A server whose certificate for that name ended years ago.
    pub fn expired_server(&self, name: &str) -> ServerConfig {
        self.server_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    fn server_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> ServerConfig {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}
