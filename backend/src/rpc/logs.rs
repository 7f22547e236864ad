//! OpenTelemetry's `LogsService`: log records are converted to events, as over HTTP.

use std::sync::Arc;

use bellwether_proto::{
    bulk,
    cloud::Events,
    otlp::{self, ConversionSettings, Logs, LogsRequestError, Read, wire::LogsResponse},
    server::Server,
};
use bytes::Bytes;
use tonic::{Request, Response, Status, metadata::MetadataValue};

use super::{
    access::{self, DIALECT_HEADER},
    data_receiver::DataReceiver,
    methods::EXPORT_LOGS,
};
use crate::{
    domain::Dialect,
    limits::{ANSWER_BYTES_MAX, DIALECT_BYTES_MAX},
};

/// Creates the server of the service.
pub fn serve(receiver: DataReceiver, settings: ConversionSettings) -> Server {
    let intake = Arc::new(LogsIntake { receiver, settings });
    Server::new("opentelemetry.proto.collector.logs.v1.LogsService")
        .unary_encoded(EXPORT_LOGS, move |request| {
            let intake = Arc::clone(&intake);
            async move { intake.export(request).await }
        })
        .max_decoding_message_size(DIALECT_BYTES_MAX)
        .max_encoding_message_size(ANSWER_BYTES_MAX)
}

#[derive(Debug)]
struct LogsIntake {
    receiver: DataReceiver,
    settings: ConversionSettings,
}

impl LogsIntake {
    async fn export(&self, request: Request<Bytes>) -> Result<Response<LogsResponse>, Status> {
        let caller = access::caller(&request)?;
        let (mut metadata, _, bytes) = request.into_parts();
        let read = read_request(&bytes)?;
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

fn read_request(bytes: &[u8]) -> Result<Read, Status> {
    otlp::read_request(bytes).map_err(|unread| {
        let message = format!("the message {unread}");
        match unread {
            LogsRequestError::Malformed(_) => Status::invalid_argument(message),
            LogsRequestError::TooMany => Status::resource_exhausted(message),
        }
    })
}
