//! The authorities trusted for messages: the machine's certificate authorities, and those that the
//! installation adds; and the certificates by which receivers know who sends.

use std::sync::Arc;

use bellwether_process::cause;
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WantsClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
};

use crate::domain::Secret;

/// A certificate that is shown to receivers, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The certificate and those that it rests on, in PEM.
    pub(crate) certificate: String,
    /// Its key, in PEM.
    pub(crate) private_key: Secret,
}

/// Why a certificate cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadIdentity {
    /// There is no certificate in the text.
    Certificate,
    /// There is no key in the text that can be used.
    Key,
    /// The key is not the certificate's.
    Pair,
}

/// The authorities trusted for messages.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    roots: Arc<RootCertStore>,
    /// Certificates that the installation names, each of which is good for the server that shows it.
    named: Arc<[CertificateDer<'static>]>,
}

impl Trust {
    /// The machine's authorities and these.
    pub(crate) fn new(authorities: &[CertificateDer<'static>]) -> Self {
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
        Self {
            roots: Arc::new(roots),
            named: authorities.into(),
        }
    }
}

/// Verifies servers by authorities. A certificate that `openssl req -x509` makes for a server calls itself
/// an authority, which an authority's own certificate must not be used as; where the installation names
/// that very certificate, it is meant.
#[derive(Debug)]
struct Verifier {
    by_authorities: Arc<WebPkiServerVerifier>,
    named: Arc<[CertificateDer<'static>]>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.by_authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // Whether it is valid now is looked at before that.
            Err(rustls::Error::InvalidCertificate(wrong))
                if cause::is_authority_as_server(&wrong) && self.named.contains(end_entity) =>
            {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                verify_server_name(&certificate, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let by_authorities = &self.by_authorities;
        by_authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let by_authorities = &self.by_authorities;
        by_authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authorities.supported_verify_schemes()
    }
}

/// Trusts these authorities, and presents no certificate.
pub(crate) fn client_config(trust: &Trust) -> ClientConfig {
    builder(trust).with_no_client_auth()
}

/// Trusts these authorities, and shows that certificate.
///
/// # Errors
/// When it cannot be used.
pub(crate) fn client_config_of(
    trust: &Trust,
    identity: &Identity,
) -> Result<ClientConfig, BadIdentity> {
    let text = identity.certificate.as_bytes();
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or(BadIdentity::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(identity.private_key.reveal().as_bytes())
        .map_err(|_none| BadIdentity::Key)?;
    ring::default_provider()
        .key_provider
        .load_private_key(key.clone_key())
        .map_err(|_unfit| BadIdentity::Key)?;
    let config = builder(trust).with_client_auth_cert(chain, key);
    config.map_err(|fault| match fault {
        rustls::Error::InconsistentKeys(_) => BadIdentity::Pair,
        _ => BadIdentity::Certificate,
    })
}

/// Looks for what is wrong with a certificate that is to be shown.
///
/// # Errors
/// When it cannot be used.
pub(crate) fn check_identity(identity: &Identity) -> Result<(), BadIdentity> {
    let trust = Trust {
        roots: Arc::new(RootCertStore::empty()),
        named: Arc::default(),
    };
    client_config_of(&trust, identity).map(drop)
}

/// The provider is named, since a process can hold only one default.
fn builder(trust: &Trust) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default protocol versions");
    let roots = Arc::clone(&trust.roots);
    match WebPkiServerVerifier::builder_with_provider(roots, provider).build() {
        Ok(by_authorities) => {
            let named = Arc::clone(&trust.named);
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Verifier {
                    by_authorities,
                    named,
                }))
        }
        // Without an authority there is nothing to verify by: no server is trusted.
        Err(_no_authorities) => builder.with_root_certificates(Arc::clone(&trust.roots)),
    }
}
