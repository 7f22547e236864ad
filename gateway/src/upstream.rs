//! The backend, remote or in the same process.

use std::{error::Error, fmt, pin::Pin, sync::Arc, time::Duration};

use bellwether_proto::{
    codec::BytesCodec,
    json::wire::{self, Value},
};
use bytes::{Bytes, BytesMut};
use http::uri::PathAndQuery;
use rustls::client::danger::ServerCertVerifier;
use tonic::{
    Code, Request, Status,
    body::Body,
    client::{Grpc, GrpcService},
    metadata::MetadataMap,
    service::Routes,
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use crate::limits;

#[derive(Debug, Clone)]
pub struct Upstream(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Remote(Channel),
    InProcess {
        routes: Routes,
        direct: Option<Arc<dyn Direct>>,
    },
}

/// The response of a backend: metadata and an encoded message.
pub type UnaryResult = Result<(MetadataMap, Bytes), Status>;

/// A backend in the same process that handles some calls without HTTP, as encoded messages.
pub trait Direct: fmt::Debug + Send + Sync {
    fn handles_method(&self, path: &str) -> bool;

    fn call(
        &self,
        metadata: MetadataMap,
        message: Bytes,
    ) -> Pin<Box<dyn Future<Output = UnaryResult> + Send + '_>>;

    /// Checks whether the key in the metadata is known; otherwise returns the error of a call with
    /// it.
    fn identify(
        &self,
        metadata: MetadataMap,
    ) -> Pin<Box<dyn Future<Output = Result<(), Status>> + Send + '_>>;
}

#[derive(Debug, thiserror::Error)]
#[error("`{uri}` is not a backend address; expected one such as `http://127.0.0.1:8481`")]
pub struct UpstreamError {
    uri: String,
    source: Option<tonic::transport::Error>,
}

impl Upstream {
    /// Connects to a backend over HTTP/2, with TLS if the address begins with `https:`. Connects on
    /// the first call and whenever the connection is lost, so the backend may start later. Must be
    /// called within a Tokio runtime.
    ///
    /// # Errors
    /// Returns an error if `uri` is not an `http` or `https` address with a host.
    pub fn connect(uri: &str) -> Result<Self, UpstreamError> {
        Self::connect_with_verifier(uri, ClientTlsConfig::new().with_native_roots(), None)
    }

    /// Connects like [`Upstream::connect`], with settings for trusting an `https:` address: a
    /// verifier, or else the authorities in `tls`.
    ///
    /// # Errors
    /// Same as [`Upstream::connect`], or if the TLS settings are invalid.
    pub fn connect_with_verifier(
        uri: &str,
        tls: ClientTlsConfig,
        verifier: Option<Arc<dyn ServerCertVerifier>>,
    ) -> Result<Self, UpstreamError> {
        let refuse = |source| UpstreamError {
            uri: uri.to_owned(),
            source,
        };
        let mut endpoint =
            Endpoint::from_shared(uri.to_owned()).map_err(|error| refuse(Some(error)))?;
        let address = endpoint.uri();
        match (address.scheme_str(), address.host()) {
            (Some("http"), Some(_)) => {}
            (Some("https"), Some(_)) => {
                let secured = match verifier {
                    None => endpoint.tls_config(tls),
                    Some(verifier) => endpoint.tls_config_with_verifier(tls, verifier),
                };
                endpoint = secured.map_err(|error| refuse(Some(error)))?;
            }
            _ => return Err(refuse(None)),
        }
        let channel = endpoint
            .connect_timeout(limits::CONNECT)
            .http2_keep_alive_interval(limits::KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(limits::KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(limits::WINDOW_BYTES)
            .initial_connection_window_size(limits::WINDOW_BYTES)
            .tcp_nodelay(true)
            .connect_lazy();
        Ok(Self(Kind::Remote(channel)))
    }

    /// Calls services in this process without a socket.
    pub fn in_process(routes: Routes) -> Self {
        Self(Kind::InProcess {
            routes: routes.prepare(),
            direct: None,
        })
    }

    /// Calls services as [`Upstream::in_process`] does, but without HTTP if `direct` handles the
    /// call.
    pub fn in_process_with_direct_calls(routes: Routes, direct: Arc<dyn Direct>) -> Self {
        Self(Kind::InProcess {
            routes: routes.prepare(),
            direct: Some(direct),
        })
    }

    /// Calls a method with an encoded message.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call; it may or may not have had an effect.
    pub(crate) async fn call(
        &self,
        path: PathAndQuery,
        metadata: MetadataMap,
        message: Bytes,
        timeout: Duration,
    ) -> UnaryResult {
        let mut request = Request::from_parts(metadata, http::Extensions::new(), message);
        request.set_timeout(timeout);
        match &self.0 {
            Kind::Remote(channel) => call_unary(channel.clone(), path, request).await,
            Kind::InProcess {
                direct: Some(direct),
                ..
            } if direct.handles_method(path.path()) => {
                let (metadata, _, message) = request.into_parts();
                direct.call(metadata, message).await
            }
            Kind::InProcess { routes, .. } => call_unary(routes.clone(), path, request).await,
        }
    }

    /// Checks whether the backend knows the key in the metadata. For a remote backend, this sends
    /// `GetCaller`, which counts as a call of the client.
    ///
    /// # Errors
    /// Returns the error of a call with that key.
    pub(crate) async fn identify(
        &self,
        metadata: MetadataMap,
        timeout: Duration,
    ) -> Result<(), Status> {
        // These codes mean that the key is invalid or the backend is unreachable.
        const REFUSED: [Code; 4] = [
            Code::Unauthenticated,
            Code::Unavailable,
            Code::DeadlineExceeded,
            Code::Cancelled,
        ];
        if let Kind::InProcess {
            direct: Some(direct),
            ..
        } = &self.0
        {
            return direct.identify(metadata).await;
        }
        let who = PathAndQuery::from_static("/bellwether.v1.ClientService/GetCaller");
        match self.call(who, metadata, Bytes::new(), timeout).await {
            Err(status) if REFUSED.contains(&status.code()) => Err(status),
            // The key is valid even if the client exceeds its limit or lacks the permission.
            _ => Ok(()),
        }
    }

    /// Returns the reason why the backend is not serving, as reported by its health service; `None`
    /// if the backend is serving.
    pub(crate) async fn not_ready_reason(&self) -> Option<&'static str> {
        if self.serves("").await {
            return None;
        }
        Some(if self.serves("bellwether.v1.OverviewService").await {
            "events are refused; `bellwether status` shows the reason"
        } else {
            "the backend is not ready"
        })
    }

    /// Queries the backend's health service for a service; an empty name means the whole backend.
    async fn serves(&self, service: &str) -> bool {
        const SERVING: u64 = 1;
        let check = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
        let mut request = BytesMut::new();
        if !service.is_empty() {
            prost::encoding::string::encode(1, &service.to_owned(), &mut request);
        }
        let call = self.call(
            check,
            MetadataMap::new(),
            request.freeze(),
            limits::READINESS,
        );
        match tokio::time::timeout(limits::READINESS, call).await {
            Ok(Ok((_, answer))) => wire::find_last(&answer, 1) == Some(Value::Varint(SERVING)),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

async fn call_unary<S>(service: S, path: PathAndQuery, request: Request<Bytes>) -> UnaryResult
where
    S: GrpcService<Body>,
    S::ResponseBody: Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut client = Grpc::new(service).max_decoding_message_size(limits::ANSWER_BYTES);
    client
        .ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    let (metadata, message, _) = client.unary(request, path, BytesCodec).await?.into_parts();
    Ok((metadata, message))
}
