//! TLS: what the listeners show and ask for, and what the console and the gateway trust.

mod identity;
#[cfg(feature = "embedded")]
mod server;

use std::{net::IpAddr, path::Path, sync::Arc};

use bellwether_process::{plain_file, verifier::Verifier};
use rustls::{RootCertStore, client::danger::ServerCertVerifier};
use tonic::transport::{ClientTlsConfig, Endpoint, Identity, Uri};

use self::identity::Pair;
#[cfg(feature = "embedded")]
pub(crate) use self::server::ServerTls;
use crate::config::{ConfigError, Settings};

/// Bytes of a file with certificates, or with lists of revoked ones.
pub(crate) const CERTIFICATES_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The verifier of a service's certificate, where it is not the usual one.
pub(crate) type OwnVerifier = Option<Arc<dyn ServerCertVerifier>>;

/// What a connection to a service is secured by: the authorities and certificates of `tls_ca`, else the
/// authorities of the system; and, when the service asks who calls, the certificate of `tls_client_cert`,
/// else of `tls_cert`.
///
/// # Errors
/// When a file cannot be used; naming the setting.
pub(crate) fn client(settings: &Settings) -> Result<(ClientTlsConfig, OwnVerifier), ConfigError> {
    let tls = &settings.tls;
    let (mut config, verifier) = match &tls.ca {
        Some(file) => (ClientTlsConfig::new(), Some(verifier(file)?)),
        None => (ClientTlsConfig::new().with_native_roots(), None),
    };
    if let Some(name) = &tls.name {
        config = config.domain_name(name);
    }
    if let Some(pair) = Pair::of_caller(tls) {
        pair.load()?;
        if let Some(message) = pair.loose() {
            tracing::warn!("{message}");
        }
        let [(cert_setting, certificate), (key_setting, key)] = [&pair.certificate, &pair.key];
        let identity =
            Identity::from_pem(read(cert_setting, certificate)?, read(key_setting, key)?);
        config = config.identity(identity);
    }
    Ok((config, verifier))
}

/// Trusts the certificates of a file: as authorities, and each for the server that presents it.
fn verifier(file: &Path) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let named = identity::certificates("tls_ca", file)?;
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(named.iter().cloned());
    let verifier = Verifier::new(Arc::new(authorities), named.into());
    let verifier = verifier.map_err(|_none| {
        let file = file.display();
        ConfigError(format!("tls_ca: a certificate in {file} cannot be read"))
    })?;
    Ok(Arc::new(verifier))
}

/// What others may do with the key of the certificate that is shown to a service, if that is more than
/// nothing.
pub(crate) fn loose_key(settings: &Settings) -> Option<String> {
    Pair::of_caller(&settings.tls)?.loose()
}

/// Puts [`client`] on an endpoint whose address begins with `https:`.
///
/// # Errors
/// Those of [`client`], when the files hold nothing that can be used, and when the key would travel
/// unencrypted.
pub(crate) fn secure(endpoint: Endpoint, settings: &Settings) -> Result<Endpoint, ConfigError> {
    check_clear("connect", endpoint.uri(), settings)?;
    without_key(endpoint, settings)
}

/// As [`secure`], for calls that carry no key.
///
/// # Errors
/// Those of [`client`], and when the files hold nothing that can be used.
pub(crate) fn without_key(
    endpoint: Endpoint,
    settings: &Settings,
) -> Result<Endpoint, ConfigError> {
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    let secured = match client(settings)? {
        (config, None) => endpoint.tls_config(config),
        (config, Some(verifier)) => endpoint.tls_config_with_verifier(config, verifier),
    };
    secured.map_err(|error| {
        let problem = crate::failure::sentence(&error);
        ConfigError(format!("tls_ca: cannot be used: {problem}"))
    })
}

/// Reads every file that the settings name, as the parts and the console would.
///
/// # Errors
/// When one cannot be used; naming the setting.
pub(crate) fn check(settings: &Settings) -> Result<(), ConfigError> {
    client(settings)?;
    #[cfg(feature = "embedded")]
    ServerTls::load(settings)?;
    Ok(())
}

/// Refuses an address unencrypted that other machines stand on the way to, unless that is accepted.
///
/// # Errors
/// Naming the setting.
pub(crate) fn check_clear(
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
        "{setting}: keys would be sent unencrypted to {host}; give an address with https://, or accept \
         it with --insecure"
    )))
}

fn read(setting: &str, file: &Path) -> Result<Vec<u8>, ConfigError> {
    plain_file::read(file, CERTIFICATES_BYTES_MAX).map_err(|error| {
        let file = file.display();
        ConfigError(format!("{setting}: cannot read {file}: {error}"))
    })
}
