//! Verifies servers with authorities and with pinned certificates.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        VerifierBuilderError, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

use crate::cause;

/// Verifies servers with authorities. Self-signed certificates of `openssl req -x509` are CA
/// certificates, which rustls rejects as end-entity certificates; those listed explicitly are
/// accepted.
#[derive(Debug)]
pub struct Verifier {
    by_authorities: Arc<WebPkiServerVerifier>,
    named: Arc<[CertificateDer<'static>]>,
}

impl Verifier {
    /// Trusts servers with certificates issued by these authorities, and the certificates in
    /// `named`.
    ///
    /// # Errors
    /// Returns an error if there is no authority.
    pub fn new(
        authorities: Arc<RootCertStore>,
        named: Arc<[CertificateDer<'static>]>,
    ) -> Result<Self, VerifierBuilderError> {
        let provider = Arc::new(ring::default_provider());
        let by_authorities = WebPkiServerVerifier::builder_with_provider(authorities, provider);
        Ok(Self {
            by_authorities: by_authorities.build()?,
            named,
        })
    }
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
            // rustls checks the validity period before this.
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
