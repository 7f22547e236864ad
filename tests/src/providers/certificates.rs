//! A private certificate authority, and servers with its certificates.

use std::{path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
    sign::{CertifiedKey, SingleCertAndKey},
};

/// An authority that is not trusted by default.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Creates an authority with this name.
    ///
    /// # Panics
    /// Panics if there is no randomness for the key.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes the certificate of the authority to a file.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn write(&self, file: &Path) {
        std::fs::write(file, self.0.pem()).unwrap();
    }

    /// Returns a server with a certificate for this name.
    pub fn server(&self, name: &str) -> ServerConfig {
        self.server_with(name, |_| {})
    }

    /// Returns a server whose certificate for this name expired years ago.
    pub fn expired_server(&self, name: &str) -> ServerConfig {
        self.server_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    /// Returns a server for this name that requires client certificates of the same authority.
    ///
    /// # Panics
    /// Panics if there is no randomness for the key.
    pub fn asking_server(&self, name: &str) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let asking =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let server = self.server(name);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(asking.build().unwrap())
            .with_cert_resolver(Arc::clone(&server.cert_resolver));
        config.alpn_protocols = server.alpn_protocols;
        config
    }

    /// Returns a client certificate for this name and its key, in PEM.
    ///
    /// # Panics
    /// Panics if there is no randomness for the key.
    pub fn client(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Returns a server with this certificate and key, in PEM.
    ///
    /// # Panics
    /// Panics if the certificate or the key is invalid.
    pub fn server_of(certificate: &str, key: &str) -> ServerConfig {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
        let chain: Result<Vec<_>, _> = chain.collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let key = provider.key_provider.load_private_key(key).unwrap();
        // Unlike `with_single_cert`, this does not parse the certificate, which may be unusual.
        let shown = SingleCertAndKey::from(CertifiedKey::new(chain.unwrap(), key));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
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
