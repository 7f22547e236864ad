//! Certificates of an authority of the test's own, and connections that look at them.

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

/// An authority that no one but the test knows.
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
    /// What its authority knows it by.
    pub serial: u64,
}

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
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
        self.issue_for(Duration::from_secs(30 * 365 * 24 * 3_600))
    }

    /// As [`issue`](Self::issue); it ends after that time.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn issue_for(&self, life: Duration) -> Identity {
        self.issue_to(&["localhost", "127.0.0.1"], life)
    }

    /// A certificate for these names, which ends after that time.
    ///
    /// # Panics
    /// When it cannot be made.
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever is shown it goes by the real time"
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

    /// The list of these as revoked, in PEM.
    ///
    /// # Panics
    /// When it cannot be made.
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
