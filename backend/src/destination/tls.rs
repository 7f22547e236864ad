//! Whom messages are entrusted to: the machine's certificate authorities, and those that the
//! installation adds.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer,
};

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

/// What is wrong with a secure connection, for people: what was found and what would be right.
pub(crate) fn explain(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(wrong) = error else {
        return error.to_string();
    };
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet".into()
        }
        // The second: an authority here has that name, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate comes from an authority \
             that is not trusted here; `egress.ca_file` can add it"
                .into()
        }
        CertificateError::NotValidForName => {
            "the server's certificate is for another host name".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "the server's certificate is for another host name: {}",
            presented
                .iter()
                .map(|name| bare(name))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        other => format!("the server's certificate is not accepted: {other}"),
    }
}

/// A name as the certificate holds it: rustls shows its kind around it.
fn bare(shown: &str) -> &str {
    shown.split('"').nth(1).unwrap_or(shown)
}
