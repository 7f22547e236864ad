//! Dispatches the calls of all services.
//!
//! tonic generates a dispatch for each method. This one is compiled once: handlers receive encoded
//! requests and return boxed responses.

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use prost::{Message, Name};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    codec::{Codec, EncodeBuf, Encoder},
    codegen::{
        BoxFuture, BoxStream, Bytes, Pin, Service, StdError, http,
        tokio_stream::{Stream, StreamExt as _},
    },
    server::{ClientStreamingService, Grpc, ServerStreamingService, UnaryService},
    service::Routes,
};

use crate::{codec::BytesCodec, repair};

/// The result of a method of a service.
pub type MethodFuture<'a, R> =
    Pin<Box<dyn Future<Output = Result<Response<R>, Status>> + Send + 'a>>;

type Call<Q, R> = Arc<dyn Fn(Request<Q>) -> BoxFuture<Response<R>, Status> + Send + Sync>;

trait Encode: Send {
    fn encode(&self, buffer: &mut EncodeBuf<'_>) -> Result<(), Status>;
}

impl<M: Message> Encode for M {
    fn encode(&self, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Message::encode(self, buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

/// A message to be encoded.
struct Outgoing(Box<dyn Encode>);

struct OutgoingStream(BoxStream<Outgoing>);

impl Stream for OutgoingStream {
    type Item = Result<Outgoing, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

#[derive(Clone)]
enum Handler {
    Unary(Call<Bytes, Outgoing>),
    ServerStreaming(Call<Bytes, OutgoingStream>),
    ClientStreaming(Call<Streaming<Bytes>, Outgoing>),
}

/// A service and its methods.
#[derive(Clone)]
pub struct Server {
    name: &'static str,
    /// Shared, because the service is cloned for each call.
    handlers: Arc<Vec<(&'static str, Handler)>>,
    decoded_bytes_max: Option<usize>,
    encoded_bytes_max: Option<usize>,
}

impl Server {
    /// Creates the service with this full name, such as `bellwether.v1.RuleService`.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            handlers: Arc::default(),
            decoded_bytes_max: None,
            encoded_bytes_max: None,
        }
    }

    /// Adds a method with one request and one response. Its path is `/SERVICE/METHOD`.
    #[must_use]
    pub fn unary<T, Q, R>(
        self,
        path: &'static str,
        service: &Arc<T>,
        method: for<'a> fn(&'a T, Request<Q>) -> MethodFuture<'a, R>,
    ) -> Self
    where
        T: Send + Sync + 'static,
        Q: Message + Name + Default + 'static,
        R: Message + 'static,
    {
        let service = Arc::clone(service);
        let call: Call<Bytes, Outgoing> = Arc::new(move |request| {
            let service = Arc::clone(&service);
            Box::pin(async move {
                let response = method(&service, decode_request(request)?).await?;
                Ok(response.map(|message| Outgoing(Box::new(message))))
            })
        });
        self.with_handler(path, Handler::Unary(call))
    }

    /// Adds a method with one request, which it decodes itself, and one response.
    #[must_use]
    pub fn unary_encoded<F, R>(
        self,
        path: &'static str,
        method: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response<R>, Status>> + Send + 'static,
        R: Message + 'static,
    {
        let call: Call<Bytes, Outgoing> = Arc::new(move |request| {
            let response = method(request);
            Box::pin(async move { Ok(response.await?.map(|message| Outgoing(Box::new(message)))) })
        });
        self.with_handler(path, Handler::Unary(call))
    }

    /// Adds a method with one request and a stream of responses.
    #[must_use]
    pub fn server_streaming<T, Q, R>(
        self,
        path: &'static str,
        service: &Arc<T>,
        method: for<'a> fn(&'a T, Request<Q>) -> MethodFuture<'a, BoxStream<R>>,
    ) -> Self
    where
        T: Send + Sync + 'static,
        Q: Message + Name + Default + 'static,
        R: Message + 'static,
    {
        let service = Arc::clone(service);
        let call: Call<Bytes, OutgoingStream> = Arc::new(move |request| {
            let service = Arc::clone(&service);
            Box::pin(async move {
                let response = method(&service, decode_request(request)?).await?;
                Ok(response.map(|messages| {
                    OutgoingStream(Box::pin(messages.map(|it| Ok(Outgoing(Box::new(it?))))))
                }))
            })
        });
        self.with_handler(path, Handler::ServerStreaming(call))
    }

    /// Adds a method with a stream of requests and one response.
    #[must_use]
    pub fn client_streaming<T, Q, R>(
        self,
        path: &'static str,
        service: &Arc<T>,
        method: for<'a> fn(&'a T, Request<BoxStream<Q>>) -> MethodFuture<'a, R>,
    ) -> Self
    where
        T: Send + Sync + 'static,
        Q: Message + Name + Default + 'static,
        R: Message + 'static,
    {
        let service = Arc::clone(service);
        let call: Call<Streaming<Bytes>, Outgoing> = Arc::new(move |request| {
            let service = Arc::clone(&service);
            Box::pin(async move {
                let request = request
                    .map(|messages| Box::pin(messages.map(|bytes| decode(bytes?))) as BoxStream<Q>);
                let response = method(&service, request).await?;
                Ok(response.map(|message| Outgoing(Box::new(message))))
            })
        });
        self.with_handler(path, Handler::ClientStreaming(call))
    }

    fn with_handler(mut self, path: &'static str, handler: Handler) -> Self {
        Arc::make_mut(&mut self.handlers).push((path, handler));
        self
    }

    /// Limits the size of a request, in bytes; 4 MiB by default.
    #[must_use]
    pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
        self.decoded_bytes_max = Some(limit);
        self
    }

    /// Limits the size of a response, in bytes; unlimited by default.
    #[must_use]
    pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
        self.encoded_bytes_max = Some(limit);
        self
    }

    /// Adds the service to the routes.
    #[must_use]
    pub fn add_to(self, mut routes: Routes) -> Routes {
        let router = std::mem::take(routes.axum_router_mut());
        let path = format!("/{}/{{*method}}", self.name);
        *routes.axum_router_mut() = router.route_service(&path, self);
        routes
    }

    fn dispatch(
        &self,
        request: http::Request<Body>,
    ) -> BoxFuture<http::Response<Body>, Infallible> {
        let path = request.uri().path();
        let Some((_, handler)) = self.handlers.iter().find(|(method, _)| *method == path) else {
            let response = Status::unimplemented("unknown method").into_http();
            return Box::pin(async { Ok(response) });
        };
        let handler = handler.clone();
        let mut grpc = Grpc::new(Passthrough)
            .apply_max_message_size_config(self.decoded_bytes_max, self.encoded_bytes_max);
        Box::pin(async move {
            Ok(match handler {
                Handler::Unary(call) => grpc.unary(Method(call), request).await,
                Handler::ServerStreaming(call) => {
                    grpc.server_streaming(Method(call), request).await
                }
                Handler::ClientStreaming(call) => {
                    grpc.client_streaming(Method(call), request).await
                }
            })
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Server").field(&self.name).finish()
    }
}

impl<B> Service<http::Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.dispatch(request.map(Body::new))
    }
}

struct Method<Q, R>(Call<Q, R>);

impl UnaryService<Bytes> for Method<Bytes, Outgoing> {
    type Response = Outgoing;
    type Future = BoxFuture<Response<Outgoing>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        (self.0)(request)
    }
}

impl ServerStreamingService<Bytes> for Method<Bytes, OutgoingStream> {
    type Response = Outgoing;
    type ResponseStream = OutgoingStream;
    type Future = BoxFuture<Response<OutgoingStream>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        (self.0)(request)
    }
}

impl ClientStreamingService<Bytes> for Method<Streaming<Bytes>, Outgoing> {
    type Response = Outgoing;
    type Future = BoxFuture<Response<Outgoing>, Status>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        (self.0)(request)
    }
}

fn decode_request<Q>(request: Request<Bytes>) -> Result<Request<Q>, Status>
where
    Q: Message + Name + Default,
{
    let (metadata, extensions, bytes) = request.into_parts();
    Ok(Request::from_parts(metadata, extensions, decode(bytes)?))
}

/// Decodes a message. Repairs the strings of a sender's message if it cannot be decoded otherwise.
fn decode<Q: Message + Name + Default>(bytes: Bytes) -> Result<Q, Status> {
    let message = if Q::PACKAGE == repair::SENDERS {
        repair::decode_repaired(&bytes)
    } else {
        Q::decode(bytes)
    };
    // Same as the codec of `tonic`.
    message.map_err(|error| Status::internal(error.to_string()))
}

/// Passes encoded requests to the handlers, and encodes their responses.
struct Passthrough;

impl Codec for Passthrough {
    type Encode = Outgoing;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = BytesCodec;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> BytesCodec {
        BytesCodec
    }
}

impl Encoder for Passthrough {
    type Item = Outgoing;
    type Error = Status;

    fn encode(&mut self, message: Outgoing, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.0.encode(buffer)
    }
}
