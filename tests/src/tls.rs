//! Certificates of a test authority, and connections that verify them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
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

/// A certificate authority that exists only in the test.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its private key, in PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
    pub serial: u64,
}

impl Authority {
    /// Creates an authority.
    ///
    /// # Panics
    /// Panics if the certificate cannot be created.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Returns the authority's certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Issues a certificate for `localhost` and 127.0.0.1.
    ///
    /// # Panics
    /// Panics if the certificate cannot be created.
    pub fn issue(&self) -> Identity {
        self.issue_for(Duration::from_secs(30 * 365 * 24 * 3_600))
    }

    /// Like [`issue`](Self::issue), with this lifetime.
    ///
    /// # Panics
    /// Panics if the certificate cannot be created.
    pub fn issue_for(&self, life: Duration) -> Identity {
        self.issue_to(&["localhost", "127.0.0.1"], life)
    }

    /// Issues a certificate for these names with this lifetime.
    ///
    /// # Panics
    /// Panics if the certificate cannot be created.
    #[expect(
        clippy::disallowed_methods,
        reason = "clients compare it with the real time"
    )]
    pub fn issue_to(&self, names: &[&str], life: Duration) -> Identity {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        params.serial_number = Some(SerialNumber::from(serial));
        params.not_after = (SystemTime::now() + life).into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity {
            certificate,
            key: key.serialize_pem(),
            serial,
        }
    }

    /// Returns a PEM revocation list with these certificates.
    ///
    /// # Panics
    /// Panics if the list cannot be created.
    pub fn revoke(&self, revoked: &[&Identity]) -> String {
        let revoked = revoked.iter().map(|identity| RevokedCertParams {
            serial_number: SerialNumber::from(identity.serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4096, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// Connects as a client that trusts only this authority, offers these protocols, and presents
    /// the certificate on request.
    ///
    /// # Errors
    /// Returns an error if the handshake fails.
    ///
    /// # Panics
    /// Panics if the identity is not valid PEM.
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
    /// Writes `NAME.crt` and `NAME.key` into a folder and returns their paths.
    ///
    /// # Panics
    /// Panics if a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> [PathBuf; 2] {
        let [certificate, key] = ["crt", "key"].map(|it| folder.join(format!("{name}.{it}")));
        std::fs::write(&certificate, &self.certificate).unwrap();
        std::fs::write(&key, &self.key).unwrap();
        [certificate, key]
    }
}
