//! The certificate that the listeners show, taken over anew when its files change.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};
use tokio::{sync::Notify, time};
use tokio_util::sync::CancellationToken;

use super::read;
use crate::config::{ConfigError, Settings};

/// How often to look whether the files changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// What is agreed on: HTTP/2 for gRPC, HTTP/1.1 for the rest.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What the listeners serve TLS with.
#[derive(Debug)]
pub(crate) struct ServerTls {
    config: Arc<ServerConfig>,
    shown: Arc<Shown>,
    files: Files,
}

/// The certificate that is shown now.
#[derive(Debug)]
struct Shown(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

#[derive(Debug, Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// Tells one state of the files from another.
type Look = [Option<(SystemTime, u64)>; 2];

impl ServerTls {
    /// Reads the files that the settings name; none when they name none.
    ///
    /// # Errors
    /// When a file cannot be read or holds something else; naming the setting.
    pub(crate) fn load(settings: &Settings) -> Result<Option<Self>, ConfigError> {
        let tls = &settings.tls;
        let (Some(cert), Some(key)) = (&tls.cert, &tls.key) else {
            return Ok(None);
        };
        let files = Files {
            cert: cert.clone(),
            key: key.clone(),
        };
        let provider = Arc::new(ring::default_provider());
        let shown = Arc::new(Shown(ArcSwap::from_pointee(files.load(&provider)?)));
        let wrong = |setting: &'static str| {
            move |error: rustls::Error| ConfigError(format!("{setting}: cannot be used: {error}"))
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(wrong("tls_cert"))?;
        let builder = match &tls.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(roots("tls_client_ca", file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| ConfigError(format!("tls_client_ca: {error}")))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::clone(&shown) as _);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(Some(Self {
            config: Arc::new(config),
            shown,
            files,
        }))
    }

    /// What a listener takes.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Takes a renewed certificate over until shutdown; at once when `renewal` says so. While the new files cannot be used, the
    /// old certificate is shown on, and the log says so once.
    pub(crate) async fn follow(&self, renewal: &Notify, shutdown: CancellationToken) {
        let (mut taken, mut refused) = (self.files.look(), None);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = renewal.notified() => {}
                () = time::sleep(LOOK_INTERVAL) => {}
            }
            let look = self.files.look();
            if look == taken {
                continue;
            }
            match self.files.load(&ring::default_provider()) {
                Ok(key) => {
                    self.shown.0.store(Arc::new(key));
                    (taken, refused) = (look, None);
                    tracing::info!("the renewed certificate is shown from now on");
                }
                Err(error) if refused != Some(look) => {
                    refused = Some(look);
                    tracing::warn!(%error, "the old certificate is shown on");
                }
                Err(_) => {}
            }
        }
    }
}

impl Files {
    fn load(&self, provider: &CryptoProvider) -> Result<CertifiedKey, ConfigError> {
        let chain = certificates("tls_cert", &self.cert)?;
        let text = read("tls_key", &self.key)?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_none| {
            let file = self.key.display();
            ConfigError(format!("tls_key: {file} holds no private key in PEM"))
        })?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| {
            ConfigError(match error {
                rustls::Error::InconsistentKeys(_) => {
                    "tls_key: is not the key of the certificate in tls_cert".to_owned()
                }
                other => format!("tls_cert, tls_key: cannot be used: {other}"),
            })
        })
    }

    fn look(&self) -> Look {
        [&self.cert, &self.key].map(|file| {
            let found = fs::metadata(file).ok()?;
            Some((found.modified().ok()?, found.len()))
        })
    }
}

/// The certificates of a file; at least one.
fn certificates(setting: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let text = read(setting, file)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|it| !it.is_empty()).ok_or_else(|| {
        let file = file.display();
        ConfigError(format!("{setting}: {file} holds no certificate in PEM"))
    })
}

fn roots(setting: &str, file: &Path) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(setting, file)? {
        roots.add(certificate).map_err(|error| {
            let file = file.display();
            ConfigError(format!(
                "{setting}: a certificate in {file} cannot be used: {error}"
            ))
        })?;
    }
    Ok(roots)
}
