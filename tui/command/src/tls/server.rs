//! TLS of the listeners, reloaded when its files change.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use bellwether_process::listen::{LoadedTlsConfig, Tls};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, CertificateRevocationListDer, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::SingleCertAndKey,
};
use tokio::{
    sync::{Notify, watch},
    time,
};
use tokio_util::sync::CancellationToken;

use super::{
    identity::{CertificatePair, parse_certificates},
    read_file,
};
use crate::config::{ConfigError, Settings};

const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// ALPN protocols: HTTP/2 for gRPC, HTTP/1.1 for the rest.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[derive(Debug)]
pub(crate) struct ServerTls {
    shown: watch::Sender<LoadedTlsConfig>,
    files: TlsFiles,
    loaded: FileState,
}

#[derive(Debug, Clone)]
struct TlsFiles {
    shown: CertificatePair,
    client_ca: Option<PathBuf>,
    client_crl: Option<PathBuf>,
    client_optional: bool,
}

/// Modification times and sizes of the files, from which changes are detected.
type FileState = [Option<(SystemTime, u64)>; 4];

impl ServerTls {
    /// Loads the configured files; `None` if there are none.
    pub(crate) fn load(settings: &Settings) -> Result<Option<Self>, ConfigError> {
        let tls = &settings.tls;
        let Some(shown) = CertificatePair::for_listeners(tls) else {
            return Ok(None);
        };
        if let Some(message) = shown.permission_warning() {
            tracing::warn!("{message}");
        }
        let files = TlsFiles {
            shown,
            client_ca: tls.client_ca.clone(),
            client_crl: tls.client_crl.clone(),
            client_optional: tls.client_optional,
        };
        let loaded = files.file_state();
        let (shown, _) = watch::channel(files.load()?);
        Ok(Some(Self {
            shown,
            files,
            loaded,
        }))
    }

    pub(crate) fn subscribe(&self) -> Tls {
        self.shown.subscribe()
    }

    /// Reloads changed files until shutdown, or immediately on `renewal`. If the new files are
    /// unusable, the old ones stay in use, and this is logged once.
    pub(crate) async fn watch_files(&self, renewal: &Notify, shutdown: CancellationToken) {
        let (mut loaded, mut refused) = (self.loaded, None);
        loop {
            let current = self.files.file_state();
            if current != loaded {
                match self.files.load() {
                    Ok(secured) => {
                        self.shown.send_replace(secured);
                        (loaded, refused) = (current, None);
                        tracing::info!("loaded the renewed certificate");
                    }
                    Err(error) if refused != Some(current) => {
                        refused = Some(current);
                        tracing::warn!(%error, "failed to load the renewed certificate; keeping the old one");
                    }
                    Err(_) => {}
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = renewal.notified() => {}
                () = time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }
}

impl TlsFiles {
    fn load(&self) -> Result<LoadedTlsConfig, ConfigError> {
        let provider = Arc::new(ring::default_provider());
        let certified = self.shown.load()?;
        let end_ms = expiry_ms(&certified.cert[0])?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError(format!("tls_cert: unusable: {error}")))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                builder.with_client_cert_verifier(self.verifier(authorities, provider)?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(LoadedTlsConfig {
            config: Arc::new(config),
            end_ms,
        })
    }

    fn verifier(
        &self,
        authorities: &Path,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
        let roots = Arc::new(load_roots("tls_client_ca", authorities)?);
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
        let mut setting = "tls_client_ca";
        if let Some(file) = &self.client_crl {
            setting = "tls_client_crl";
            let text = read_file(setting, file)?;
            let lists = CertificateRevocationListDer::pem_slice_iter(&text);
            let lists = lists.collect::<Result<Vec<_>, _>>().ok();
            let lists = lists.filter(|it| !it.is_empty()).ok_or_else(|| {
                let file = file.display();
                ConfigError(format!(
                    "{setting}: {file} contains no revocation list in PEM format"
                ))
            })?;
            builder = builder.with_crls(lists).only_check_end_entity_revocation();
        }
        if self.client_optional {
            builder = builder.allow_unauthenticated();
        }
        builder
            .build()
            .map_err(|error| ConfigError(format!("{setting}: {error}")))
    }

    fn file_state(&self) -> FileState {
        let client = [&self.client_ca, &self.client_crl].map(Option::as_ref);
        let shown = [&self.shown.certificate.1, &self.shown.key.1].map(Some);
        [shown[0], shown[1], client[0], client[1]].map(|file| {
            let found = fs::metadata(file?).ok()?;
            Some((found.modified().ok()?, found.len()))
        })
    }
}

fn expiry_ms(certificate: &CertificateDer<'_>) -> Result<i64, ConfigError> {
    let (_, read) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|error| ConfigError(format!("tls_cert: unusable: {error}")))?;
    Ok(read.validity().not_after.timestamp().saturating_mul(1_000))
}

fn load_roots(setting: &str, file: &Path) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in parse_certificates(setting, file)? {
        roots.add(certificate).map_err(|error| {
            let file = file.display();
            ConfigError(format!(
                "{setting}: unusable certificate in {file}: {error}"
            ))
        })?;
    }
    Ok(roots)
}
