//! Whom messages are entrusted to: the machine's certificate authorities, and those that the
//! installation adds.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};

/// Trusts the machine's authorities and these. The provider is named, since a process can hold only
/// one default.
pub(crate) fn client_config(authorities: &[CertificateDer<'static>]) -> ClientConfig {
    let machine = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(machine.certs);
    roots.add_parsable_certificates(authorities.iter().cloned());
    if roots.is_empty() {
        let errors = machine.errors;
        tracing::warn!(
            ?errors,
            "no trusted certificates on this machine: `https` will fail"
        );
    }
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
