//! TLS configuration for messages: trusted certificate authorities, and client certificates.

use std::sync::Arc;

use bellwether_process::verifier::Verifier;
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use crate::domain::Secret;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) private_key: Secret,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdentityError {
    Certificate,
    Key,
    /// The key does not belong to the certificate.
    Pair,
}

/// The authorities trusted for messages.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    roots: Arc<RootCertStore>,
    /// Configured certificates, which are also trusted as server certificates.
    named: Arc<[CertificateDer<'static>]>,
}

impl Trust {
    pub(crate) fn new(authorities: &[CertificateDer<'static>]) -> Self {
        let machine = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(machine.certs);
        roots.add_parsable_certificates(authorities.iter().cloned());
        if roots.is_empty() {
            let errors: Vec<_> = machine.errors.iter().map(ToString::to_string).collect();
            tracing::warn!(
                errors = errors.join("; "),
                "no trusted certificates on this machine: `https` will fail"
            );
        }
        Self {
            roots: Arc::new(roots),
            named: authorities.into(),
        }
    }
}

pub(crate) fn client_config(trust: &Trust) -> ClientConfig {
    config_builder(trust).with_no_client_auth()
}

pub(crate) fn client_config_with_identity(
    trust: &Trust,
    identity: &Identity,
) -> Result<ClientConfig, IdentityError> {
    let text = identity.certificate.as_bytes();
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or(IdentityError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(identity.private_key.reveal().as_bytes())
        .map_err(|_none| IdentityError::Key)?;
    ring::default_provider()
        .key_provider
        .load_private_key(key.clone_key())
        .map_err(|_unfit| IdentityError::Key)?;
    let config = config_builder(trust).with_client_auth_cert(chain, key);
    config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => IdentityError::Pair,
        _ => IdentityError::Certificate,
    })
}

pub(crate) fn check_identity(identity: &Identity) -> Result<(), IdentityError> {
    let trust = Trust {
        roots: Arc::new(RootCertStore::empty()),
        named: Arc::default(),
    };
    client_config_with_identity(&trust, identity).map(drop)
}

/// Names the provider explicitly, because a process can have only one default.
fn config_builder(trust: &Trust) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default protocol versions");
    let roots = Arc::clone(&trust.roots);
    match Verifier::new(roots, Arc::clone(&trust.named)) {
        Ok(verifier) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier)),
        // Without authorities nothing can be verified: no server is trusted.
        Err(_no_authorities) => builder.with_root_certificates(Arc::clone(&trust.roots)),
    }
}
