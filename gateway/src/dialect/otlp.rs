//! OpenTelemetry logs over HTTP, in protobuf and in JSON.

mod json;

use bellwether_proto::otlp::{self, DroppedRecords, Logs, LogsRequestError};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE};
use serde_json::json;
use tonic_types::pb;

use super::{
    BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, ErrorContext, IncomingRequest,
    Outcome, Success, Translation, json::List, plain_error,
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "otlp",
    bodies: BodyLimit::Batches,
    is_json: |headers| content_encoding(headers) == Some(JSON),
    key_in_body: None,
    endpoints: &[Endpoint {
        method: Method::POST,
        path: "/v1/logs",
        about: "Accepts OpenTelemetry log records, in protobuf or JSON, optionally with gzip.",
        success: StatusCode::OK,
        open: false,
        read,
    }],
    error_response,
};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

fn read(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let is_json = match content_encoding(incoming.headers) {
        Some(PROTOBUF) => false,
        Some(JSON) => true,
        _ => {
            let message = format!("the content type must be `{PROTOBUF}` or `{JSON}`");
            return Err(DialectError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                message,
            ));
        }
    };
    let otlp::Read {
        request,
        unreadable,
    } = if is_json {
        super::json::with_list(incoming.body, List::Any("logRecords"), |body, _| {
            json::read(body)
        })?
    } else {
        otlp::read_request(incoming.body).map_err(|unread| {
            let status = match unread {
                LogsRequestError::Malformed(_) => StatusCode::BAD_REQUEST,
                LogsRequestError::TooMany => StatusCode::PAYLOAD_TOO_LARGE,
            };
            DialectError::new(status, format!("the body {unread}"))
        })?
    };
    let mut logs = Logs::from_request(&request, &incoming.settings.logs);
    logs.left_out.add_unreadable(unreadable);
    let Logs { events, left_out } = logs;
    let success = Success::Partial(Box::new(move |outcome| {
        build_response(left_out, outcome, is_json)
    }));
    Ok(Translation::from_events(events, success))
}

fn content_encoding(headers: &HeaderMap) -> Option<&'static str> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    [PROTOBUF, JSON]
        .into_iter()
        .find(|known| media_type.eq_ignore_ascii_case(known))
}

fn build_response(
    mut left_out: DroppedRecords,
    outcome: &Outcome,
    is_json: bool,
) -> DialectResponse {
    left_out.add_excess(outcome.beyond);
    let failed = usize::try_from(outcome.result.failed).unwrap_or_default();
    let response = left_out.response(failed, &outcome.result.message);
    if !is_json {
        return encode_response(StatusCode::OK, &response);
    }
    let body = match response.partial_success {
        None => json!({}),
        Some(partial) => json!({"partialSuccess": {
            "rejectedLogRecords": partial.rejected_log_records.to_string(),
            "errorMessage": partial.error_message,
        }}),
    };
    DialectResponse::json(StatusCode::OK, &body)
}

fn encode_response(status: StatusCode, message: &impl prost::Message) -> DialectResponse {
    DialectResponse {
        status,
        content_type: Some(PROTOBUF),
        headers: HeaderMap::new(),
        body: Bytes::from(message.encode_to_vec()),
    }
}

fn error_response(context: &ErrorContext<'_>, error: &DialectError) -> DialectResponse {
    let plain = plain_error(context, error);
    if content_encoding(context.headers) != Some(PROTOBUF) {
        return plain;
    }
    let body: serde_json::Value = serde_json::from_slice(&plain.body).unwrap_or_default();
    let code = body["code"].as_i64().and_then(|code| code.try_into().ok());
    let status = pb::Status {
        code: code.unwrap_or_default(),
        message: error.message.clone(),
        details: Vec::new(),
    };
    encode_response(error.status, &status)
}
