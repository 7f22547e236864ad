//! The handshake of `CloudEvents` webhooks: a sender requests permission with `OPTIONS`.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::{DialectError, DialectResponse, Endpoint, IncomingRequest, Success, Translation};

const REQUEST_ORIGIN: &str = "webhook-request-origin";
const ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
const ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

pub(super) const ABOUT: &str =
    "Confirms that a sender may send here, as CloudEvents webhooks require.";

pub(super) const fn endpoint(path: &'static str) -> Endpoint {
    Endpoint {
        method: Method::OPTIONS,
        path,
        about: ABOUT,
        success: StatusCode::OK,
        open: false,
        read,
    }
}

fn read(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let origin = incoming.headers.get(REQUEST_ORIGIN).cloned();
    let origin = origin.filter(|it| !it.is_empty() && it.to_str().is_ok());
    let Some(origin) = origin else {
        return Err(DialectError::new_invalid(format!(
            "the header `{REQUEST_ORIGIN}` with the sender's name is required"
        )));
    };
    let success = Success::from_outcome(|_| {
        let mut headers = HeaderMap::new();
        headers.insert(header::ALLOW, HeaderValue::from_static("POST, OPTIONS"));
        headers.insert(ALLOWED_ORIGIN, origin);
        // No rate is announced: the responses to the events state the limits of the client.
        headers.insert(ALLOWED_RATE, HeaderValue::from_static("*"));
        DialectResponse {
            headers,
            ..DialectResponse::without_body(StatusCode::OK)
        }
    });
    Ok(Translation::from_events(Vec::new(), success))
}
