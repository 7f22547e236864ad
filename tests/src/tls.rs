//! Certificates of an authority of the test's own, and connections that look at them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

/// An authority that nobody but the test knows.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// The authority's own certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for `localhost` and 127.0.0.1.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn issue(&self) -> Identity {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let params = CertificateParams::new(names).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity {
            certificate,
            key: key.serialize_pem(),
        }
    }

    /// Connects as a client that trusts this authority alone, offers these protocols, and shows
    /// that certificate when asked.
    ///
    /// # Errors
    /// When the two do not agree.
    ///
    /// # Panics
    /// When the identity holds none.
    pub async fn connect(
        &self,
        address: &str,
        protocols: &[&str],
        identity: Option<&Identity>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
                config
                    .with_client_auth_cert(vec![chain.unwrap()], key.unwrap())
                    .unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().into()).collect();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// Writes `NAME.crt` and `NAME.key` into a folder; answers the two.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> [PathBuf; 2] {
        let [certificate, key] = ["crt", "key"].map(|it| folder.join(format!("{name}.{it}")));
        std::fs::write(&certificate, &self.certificate).unwrap();
        std::fs::write(&key, &self.key).unwrap();
        [certificate, key]
    }
}
