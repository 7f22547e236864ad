//! TLS settings: certificates of the listeners, and authorities trusted by the console and the
//! gateway.

mod identity;
mod server;

use std::{net::IpAddr, path::Path, sync::Arc};

use bellwether_process::{plain_file, verifier::Verifier};
use rustls::{RootCertStore, client::danger::ServerCertVerifier};
use tonic::transport::{ClientTlsConfig, Endpoint, Identity, Uri};

use self::identity::CertificatePair;
pub(crate) use self::server::ServerTls;
use crate::config::{ConfigError, Settings};

pub(crate) const CERTIFICATES_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(crate) type OwnVerifier = Option<Arc<dyn ServerCertVerifier>>;

/// Returns the TLS configuration for connecting to a service. It trusts the authorities and
/// certificates in `tls_ca`, or the system's authorities if `tls_ca` is not set. If the service
/// requests a certificate, it presents that of `tls_client_cert`, else of `tls_cert`.
pub(crate) fn client_config(
    settings: &Settings,
) -> Result<(ClientTlsConfig, OwnVerifier), ConfigError> {
    let tls = &settings.tls;
    let (mut config, verifier) = match &tls.ca {
        Some(file) => (ClientTlsConfig::new(), Some(server_verifier(file)?)),
        None => (ClientTlsConfig::new().with_native_roots(), None),
    };
    if let Some(name) = &tls.name {
        config = config.domain_name(name);
    }
    if let Some(pair) = CertificatePair::for_client(tls) {
        pair.load()?;
        if let Some(message) = pair.permission_warning() {
            tracing::warn!("{message}");
        }
        let [(cert_setting, certificate), (key_setting, key)] = [&pair.certificate, &pair.key];
        let identity = Identity::from_pem(
            read_file(cert_setting, certificate)?,
            read_file(key_setting, key)?,
        );
        config = config.identity(identity);
    }
    Ok((config, verifier))
}

/// Trusts the certificates in a file, both as authorities and as certificates of servers.
fn server_verifier(file: &Path) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let named = identity::parse_certificates("tls_ca", file)?;
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(named.iter().cloned());
    let verifier = Verifier::new(Arc::new(authorities), named.into());
    let verifier = verifier.map_err(|_none| {
        let file = file.display();
        ConfigError(format!("tls_ca: cannot parse a certificate in {file}"))
    })?;
    Ok(Arc::new(verifier))
}

pub(crate) fn key_permission_warning(settings: &Settings) -> Option<String> {
    CertificatePair::for_client(&settings.tls)?.permission_warning()
}

/// Applies [`client_config`] to an endpoint with `https:`.
///
/// # Errors
/// Returns the errors of [`client_config`], and an error if the key would be sent unencrypted.
pub(crate) fn secure_endpoint(
    endpoint: Endpoint,
    settings: &Settings,
) -> Result<Endpoint, ConfigError> {
    check_plaintext("connect", endpoint.uri(), settings)?;
    without_key(endpoint, settings)
}

/// Like [`secure_endpoint`], for calls without a key.
pub(crate) fn without_key(
    endpoint: Endpoint,
    settings: &Settings,
) -> Result<Endpoint, ConfigError> {
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    let secured = match client_config(settings)? {
        (config, None) => endpoint.tls_config(config),
        (config, Some(verifier)) => endpoint.tls_config_with_verifier(config, verifier),
    };
    secured.map_err(|error| {
        let problem = crate::failure::to_sentence(&error);
        ConfigError(format!("tls_ca: unusable: {problem}"))
    })
}

pub(crate) fn check_settings(settings: &Settings) -> Result<(), ConfigError> {
    client_config(settings)?;
    ServerTls::load(settings)?;
    Ok(())
}

/// Rejects an unencrypted address that is not loopback, unless `insecure` is set.
pub(crate) fn check_plaintext(
    setting: &str,
    address: &Uri,
    settings: &Settings,
) -> Result<(), ConfigError> {
    let host = address.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stays_here = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_name) => host == "localhost" || host.ends_with(".localhost"),
    };
    if settings.insecure || stays_here || address.scheme_str() != Some("http") {
        return Ok(());
    }
    Err(ConfigError(format!(
        "{setting}: keys would be sent unencrypted to {host}; use an address with https://, or \
         allow it with --insecure"
    )))
}

fn read_file(setting: &str, file: &Path) -> Result<Vec<u8>, ConfigError> {
    plain_file::read_file(file, CERTIFICATES_BYTES_MAX).map_err(|error| {
        let file = file.display();
        ConfigError(format!("{setting}: cannot read {file}: {error}"))
    })
}
