//! OpenTelemetry's `LogsService`: log records are converted to events, as over HTTP.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bellwether_proto::{
    bulk,
    cloud::Events,
    otlp::{self, ConversionSettings, Logs, LogsRequestError, Read, wire::LogsResponse},
};
use bytes::Buf as _;
use http::{Request as HttpRequest, Response as HttpResponse};
use prost::Message as _;
use tonic::{
    Request, Response, Status,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    metadata::MetadataValue,
    server::{Grpc, NamedService, UnaryService},
};
use tower::Service;

use super::{
    access::{self, DIALECT_HEADER},
    data_receiver::DataReceiver,
    methods::EXPORT_LOGS,
};
use crate::{
    domain::Dialect,
    limits::{ANSWER_BYTES_MAX, DIALECT_BYTES_MAX},
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Debug, Clone)]
pub struct LogsServer(Arc<LogsIntake>);

#[derive(Debug)]
struct LogsIntake {
    receiver: DataReceiver,
    settings: ConversionSettings,
}

impl LogsServer {
    pub fn new(receiver: DataReceiver, settings: ConversionSettings) -> Self {
        Self(Arc::new(LogsIntake { receiver, settings }))
    }
}

impl LogsIntake {
    async fn export(&self, request: Request<Read>) -> Result<Response<LogsResponse>, Status> {
        let caller = access::caller(&request)?;
        let (mut metadata, _, read) = request.into_parts();
        metadata.insert(
            DIALECT_HEADER,
            MetadataValue::from_static(Dialect::Otlp.as_str()),
        );
        DataReceiver::admit(&caller, &metadata)?;
        let Logs {
            events,
            mut left_out,
        } = Logs::from_request(&read.request, &self.settings);
        left_out.add_unreadable(read.unreadable);
        drop(read.request);
        let mut events = Events {
            detailed_response: false,
            events,
        };
        left_out.add_excess(bulk::shrink(&mut events));
        let received = self.receiver.receive(caller, &metadata, events).await?;
        let (metadata, result, extensions) = received.into_parts();
        let failed = usize::try_from(result.failed).unwrap_or_default();
        let response = left_out.response(failed, &result.message);
        Ok(Response::from_parts(metadata, response, extensions))
    }
}

impl NamedService for LogsServer {
    const NAME: &'static str = "opentelemetry.proto.collector.logs.v1.LogsService";
}

impl Service<HttpRequest<Body>> for LogsServer {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<HttpResponse<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let export = Export(Arc::clone(&self.0));
        Box::pin(async move {
            if request.uri().path() != EXPORT_LOGS {
                return Ok(Status::unimplemented("unknown method").into_http());
            }
            let mut grpc = Grpc::new(LogsCodec)
                .apply_max_message_size_config(Some(DIALECT_BYTES_MAX), Some(ANSWER_BYTES_MAX));
            Ok(grpc.unary(export, request).await)
        })
    }
}

struct Export(Arc<LogsIntake>);

impl UnaryService<Read> for Export {
    type Response = LogsResponse;
    type Future = BoxFuture<Result<Response<LogsResponse>, Status>>;

    fn call(&mut self, request: Request<Read>) -> Self::Future {
        let intake = Arc::clone(&self.0);
        Box::pin(async move { intake.export(request).await })
    }
}

#[derive(Debug, Clone, Copy)]
struct LogsCodec;

impl Codec for LogsCodec {
    type Encode = LogsResponse;
    type Decode = Read;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for LogsCodec {
    type Item = LogsResponse;
    type Error = Status;

    fn encode(&mut self, response: LogsResponse, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let encoded = response.encode(to);
        encoded.map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for LogsCodec {
    type Item = Read;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Read>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        let read = otlp::read_request(&bytes).map_err(|unread| {
            let message = format!("the message {unread}");
            match unread {
                LogsRequestError::Malformed(_) => Status::invalid_argument(message),
                LogsRequestError::TooMany => Status::resource_exhausted(message),
            }
        });
        read.map(Some)
    }
}
