//! Certificates with their private keys, for the listeners and for clients.

use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use bellwether_process::plain_file;
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};

use super::read_file;
use crate::{
    config::{ConfigError, TlsSettings},
    permissions::Permissions,
};

const KEY_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, Clone)]
pub(super) struct CertificatePair {
    pub(super) certificate: (&'static str, PathBuf),
    pub(super) key: (&'static str, PathBuf),
}

impl CertificatePair {
    pub(super) fn for_listeners(tls: &TlsSettings) -> Option<Self> {
        Some(Self {
            certificate: ("tls_cert", tls.cert.clone()?),
            key: ("tls_key", tls.key.clone()?),
        })
    }

    /// Returns the client certificate: the one set for clients, else that of the listeners if this
    /// user may read its key.
    pub(super) fn for_client(tls: &TlsSettings) -> Option<Self> {
        let own = tls.client_cert.clone().zip(tls.client_key.clone());
        let own = own.map(|(certificate, key)| Self {
            certificate: ("tls_client_cert", certificate),
            key: ("tls_client_key", key),
        });
        let is_readable = |pair: &Self| {
            let opened = File::open(&pair.key.1);
            opened.map_or_else(
                |error| error.kind() != ErrorKind::PermissionDenied,
                |_| true,
            )
        };
        own.or_else(|| Self::for_listeners(tls).filter(is_readable))
    }

    pub(super) fn load(&self) -> Result<CertifiedKey, ConfigError> {
        let (setting, file) = &self.certificate;
        let chain = parse_certificates(setting, file)?;
        let key = self.private_key()?;
        let (key_setting, key_file) = (self.key.0, self.key.1.display());
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
            let file = file.display();
            ConfigError(match error {
                rustls::Error::InconsistentKeys(_) => format!(
                    "{key_setting}: {key_file} does not match the certificate in {file} ({setting})"
                ),
                other => format!("{setting}, {key_setting}: unusable: {other}"),
            })
        })
    }

    pub(super) fn permission_warning(&self) -> Option<String> {
        let (setting, file) = (self.key.0, self.key.1.display());
        let mode = Permissions::at(&self.key.1)?;
        mode.is_accessible_to_others().then(|| {
            format!("{setting}: other users can read {file} (mode {mode}); run `chmod 600` on it")
        })
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, ConfigError> {
        let (setting, path) = (self.key.0, &self.key.1);
        let file = path.display();
        let unread = |error| ConfigError(format!("{setting}: cannot read {file}: {error}"));
        let opened = plain_file::open_file(path).map_err(unread)?;
        let mode = Permissions::of(&opened).map_err(unread)?;
        if mode.is_world_writable() {
            return Err(ConfigError(format!(
                "{setting}: {file} is world-writable (mode {mode}); run `chmod 600` on it"
            )));
        }
        let text = plain_file::read_rest(&opened, KEY_BYTES_MAX).map_err(unread)?;
        PrivateKeyDer::from_pem_slice(&text).map_err(|_none| {
            let is_sealed = text.windows(9).any(|it| it == b"ENCRYPTED");
            ConfigError(if is_sealed {
                format!(
                    "{setting}: the private key in {file} has a passphrase; `openssl pkey` \
                     removes it"
                )
            } else {
                format!("{setting}: {file} contains no private key in PEM format")
            })
        })
    }
}

pub(super) fn parse_certificates(
    setting: &str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let text = read_file(setting, file)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|it| !it.is_empty()).ok_or_else(|| {
        let file = file.display();
        ConfigError(format!(
            "{setting}: {file} contains no certificate in PEM format"
        ))
    })
}
