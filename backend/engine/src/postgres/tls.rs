//! TLS to the database with channel binding, so that a man in the middle cannot relay a login.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

#[derive(Debug, Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verify {
    Full,
    Authority,
}

impl Tls {
    /// Creates a connector without trust anchors, for connections that never use TLS.
    pub(super) fn disabled() -> Result<Self, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn new(roots: RootCertStore, verify: Verify) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match verify {
            Verify::Full => verifier,
            Verify::Authority => Arc::new(AnyName(verifier)),
        };
        let config = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

/// Accepts a certificate for any host if an authority signed it.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.0
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = BoundTlsStream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        let config = Arc::clone(&self.0);
        // A Unix socket has no name and does not use TLS.
        let name = if domain.is_empty() {
            "localhost"
        } else {
            domain
        };
        let name = ServerName::try_from(name.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Handshake { config, name })
    }
}

pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = BoundTlsStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<BoundTlsStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = TlsConnector::from(self.config);
            let stream = connector.connect(self.name, stream).await?;
            Ok(BoundTlsStream(Box::new(stream)))
        })
    }
}

#[derive(Debug)]
pub(super) struct BoundTlsStream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for BoundTlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        match certificate.and_then(|it| certificate_binding_digest(it)) {
            Some(digest) => ChannelBinding::tls_server_end_point(digest),
            None => ChannelBinding::none(),
        }
    }
}

/// Returns the digest of a certificate, computed with the hash of its signature, or with SHA-256 if
/// that hash is weaker (RFC 5929, 4.1). `None` for other signatures.
fn certificate_binding_digest(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let algorithm = parsed.signature_algorithm.algorithm.to_id_string();
    let digest = match &*algorithm {
        // MD5, SHA-1 and SHA-256 with RSA; SHA-1 and SHA-256 with ECDSA.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Sha256::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        _ => return None,
    };
    Some(digest)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for BoundTlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for BoundTlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
