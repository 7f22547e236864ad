//! Handshakes with which providers confirm that a webhook may be sent here.

use futures_util::future::BoxFuture;
use serde_json::Value;
use url::Url;

use crate::{
    domain::{Handshake, IntakeMapping},
    error::Error,
    limits::{HANDSHAKE_BYTES_MAX, HANDSHAKE_TIMEOUT},
    send::{PingFailure, Sender},
};

const VALIDATION: &str = "Microsoft.EventGrid.SubscriptionValidationEvent";
const CONFIRMATION: &str = "SubscriptionConfirmation";
const END: &str = "UnsubscribeConfirmation";
const CODE_BYTES_MAX: usize = 1_024;

/// Domains of SNS. A host name is `sns` or `sns-fips`, a region and one of these domains.
const SNS_DOMAINS: [&str; 3] = ["amazonaws.com", "amazonaws.com.cn", "api.aws"];
/// Suffixes of Event Grid's host names.
const EVENT_GRID_DOMAINS: [&str; 3] = [
    ".eventgrid.azure.net",
    ".eventgrid.azure.us",
    ".eventgrid.azure.cn",
];
const EVENT_GRID_PORTS: [u16; 2] = [443, 553];

#[derive(Debug, Clone, PartialEq, Eq)]
enum HandshakeStep {
    Fetch(Url),
    /// Return this code.
    Respond(String),
    /// Accept the request; it contains no event.
    Accept,
}

#[derive(Debug)]
pub struct Handshakes(Sender);

impl Handshakes {
    /// Creates handshakes that fetch URLs through a sender and its egress guard.
    pub fn new(sender: Sender) -> Self {
        Self(sender)
    }

    /// Completes the handshake in a request, and returns the code for the response, which may be
    /// empty. Returns `None` for other requests.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for an invalid handshake, such as an address of another provider,
    /// and [`Error::Unavailable`] if its URL cannot be fetched.
    pub fn complete<'a>(
        &'a self,
        mapping: &'a IntakeMapping,
        body: &'a [u8],
    ) -> BoxFuture<'a, Result<Option<String>, Error>> {
        Box::pin(async move {
            let Some(handshake) = mapping.handshake else {
                return Ok(None);
            };
            let Some(step) = find_step(handshake, body)? else {
                return Ok(None);
            };
            let code = match step {
                HandshakeStep::Fetch(url) => {
                    let fetched = self.0.ping_url(url.as_str(), HANDSHAKE_TIMEOUT).await;
                    fetched.map_err(|failure| Error::Unavailable(fetch_failure(&url, &failure)))?;
                    String::new()
                }
                HandshakeStep::Respond(code) => code,
                HandshakeStep::Accept => String::new(),
            };
            tracing::info!(mapping = %mapping.name, "completed the handshake of a webhook");
            Ok(Some(code))
        })
    }
}

fn fetch_failure(url: &Url, failure: &PingFailure) -> String {
    let host = url.host_str().unwrap_or_default();
    let why = match failure {
        PingFailure::Blocked => "the egress guard blocks its address".to_owned(),
        PingFailure::Status(status) => format!("status {status}"),
        PingFailure::NoResponse => {
            format!("no response within {} s", HANDSHAKE_TIMEOUT.as_secs())
        }
        PingFailure::Unreachable | PingFailure::Unhealthy(_) => "it is unreachable".to_owned(),
    };
    format!("failed to complete the handshake with `{host}`: {why}")
}

/// Finds the handshake in a body; `None` if it is another request.
fn find_step(handshake: Handshake, body: &[u8]) -> Result<Option<HandshakeStep>, Error> {
    if body.len() > HANDSHAKE_BYTES_MAX {
        return Ok(None);
    }
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        return Ok(None);
    };
    match handshake {
        Handshake::Sns => sns_step(&document),
        Handshake::EventGrid => event_grid_step(&document),
    }
}

fn sns_step(document: &Value) -> Result<Option<HandshakeStep>, Error> {
    match document["Type"].as_str() {
        Some(CONFIRMATION) => {
            let url = provider_url(document, "/SubscribeURL", is_sns_confirmation)?;
            Ok(Some(HandshakeStep::Fetch(url)))
        }
        Some(END) => Ok(Some(HandshakeStep::Accept)),
        _ => Ok(None),
    }
}

fn event_grid_step(document: &Value) -> Result<Option<HandshakeStep>, Error> {
    let event = match document {
        Value::Array(events) if events.len() == 1 => &events[0],
        event => event,
    };
    let kind = event["eventType"].as_str().unwrap_or_default();
    if !kind.eq_ignore_ascii_case(VALIDATION) {
        return Ok(None);
    }
    match event["data"]["validationCode"].as_str() {
        Some(code) if code.len() > CODE_BYTES_MAX => {
            let message = format!("has a `validationCode` of more than {CODE_BYTES_MAX} bytes");
            Err(Error::invalid("body", message))
        }
        Some(code) if !code.is_empty() => Ok(Some(HandshakeStep::Respond(code.to_owned()))),
        _ => {
            let url = provider_url(event, "/data/validationUrl", is_event_grid)?;
            Ok(Some(HandshakeStep::Fetch(url)))
        }
    }
}

/// Returns the URL at a path of a handshake, if the URL is one of the provider's.
fn provider_url(document: &Value, path: &str, is_own: fn(&Url) -> bool) -> Result<Url, Error> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let text = document.pointer(path).and_then(Value::as_str);
    let text = text.ok_or_else(|| Error::invalid("body", format!("has no `{name}`")))?;
    let url = Url::parse(text).ok().filter(|url| {
        let is_plain = url.username().is_empty() && url.password().is_none();
        url.scheme() == "https" && is_plain && is_own(url)
    });
    url.ok_or_else(|| {
        let message = format!("has a `{name}` that does not match the mapping's `handshake`");
        Error::invalid("body", message)
    })
}

fn is_sns_confirmation(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let region = SNS_DOMAINS.iter().find_map(|domain| {
        let host = host.strip_suffix(domain)?.strip_suffix('.')?;
        host.strip_prefix("sns.")
            .or_else(|| host.strip_prefix("sns-fips."))
    });
    let is_label = |it: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !it.is_empty() && it.bytes().all(is_part)
    };
    let mut actions = url.query_pairs().filter(|(name, _)| name == "Action");
    let action = actions.next().map(|(_, value)| value);
    region.is_some_and(is_label)
        && url.port().is_none()
        && url.path() == "/"
        && action.as_deref() == Some("ConfirmSubscription")
        && actions.next().is_none()
}

fn is_event_grid(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let is_own = EVENT_GRID_DOMAINS.iter().any(|it| host.ends_with(it));
    let port = url.port_or_known_default().unwrap_or_default();
    is_own && EVENT_GRID_PORTS.contains(&port)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sns_step_for_url(url: &str) -> Result<Option<HandshakeStep>, Error> {
        let body = json!({"Type": CONFIRMATION, "SubscribeURL": url}).to_string();
        find_step(Handshake::Sns, body.as_bytes())
    }

    #[test]
    fn only_sns_confirmation_addresses_are_fetched() {
        for host in [
            "sns.us-east-1.amazonaws.com",
            "sns.cn-north-1.amazonaws.com.cn",
            "sns-fips.us-gov-west-1.amazonaws.com",
            "sns.eu-west-1.api.aws",
        ] {
            let url = format!("https://{host}/?Action=ConfirmSubscription&Token=2336412f");
            let expected = HandshakeStep::Fetch(Url::parse(&url).unwrap());
            assert_eq!(sns_step_for_url(&url).unwrap(), Some(expected), "{url}");
        }
        for url in [
            "",
            "sns.us-east-1.amazonaws.com",
            "http://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
            "https://sns.us-east-1.amazonaws.com:8443/?Action=ConfirmSubscription",
            "https://sns.us-east-1.amazonaws.com@example.com/?Action=ConfirmSubscription",
            "https://a@sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
            "https://sns.us-east-1.amazonaws.com.example.com/?Action=ConfirmSubscription",
            "https://sns.example.amazonaws.com.example/?Action=ConfirmSubscription",
            "https://a.sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
            "https://bucket.s3.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
            "https://sns.amazonaws.com/?Action=ConfirmSubscription",
            "https://sns.a.b.amazonaws.com/?Action=ConfirmSubscription",
            "https://snsxus-east-1.amazonaws.com/?Action=ConfirmSubscription",
            "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe",
            "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Action=Publish",
            "https://sns.us-east-1.amazonaws.com/x?Action=ConfirmSubscription",
            "https://127.0.0.1/?Action=ConfirmSubscription",
        ] {
            let refused = sns_step_for_url(url);
            assert!(
                matches!(refused, Err(Error::Invalid(_))),
                "{url}: {refused:?}"
            );
        }
    }

    #[test]
    fn handshakes_are_distinguished_from_other_requests() {
        let event = |kind: &str, data: Value| json!([{"eventType": kind, "data": data}]);
        let code = json!({"validationCode": "512d38b6"});
        let url = "https://rp-eastus2.eventgrid.azure.net:553/eventsubscriptions/a/validate?id=1";
        let table = [
            (Handshake::Sns, json!({"Type": "Notification"}), None),
            (
                Handshake::Sns,
                json!({"Type": END}),
                Some(HandshakeStep::Accept),
            ),
            (Handshake::Sns, event(VALIDATION, code.clone()), None),
            (
                Handshake::EventGrid,
                event(VALIDATION, code.clone()),
                Some(HandshakeStep::Respond("512d38b6".into())),
            ),
            (
                Handshake::EventGrid,
                event(&VALIDATION.to_uppercase(), code.clone()),
                Some(HandshakeStep::Respond("512d38b6".into())),
            ),
            (
                Handshake::EventGrid,
                event(VALIDATION, json!({"validationUrl": url})),
                Some(HandshakeStep::Fetch(Url::parse(url).unwrap())),
            ),
            (Handshake::EventGrid, event("Other", code), None),
            (Handshake::EventGrid, json!({"Type": CONFIRMATION}), None),
            (Handshake::EventGrid, json!([]), None),
        ];
        for (handshake, document, expected) in table {
            let found = find_step(handshake, document.to_string().as_bytes());
            assert_eq!(found.unwrap(), expected, "{handshake:?} {document}");
        }
        assert_eq!(find_step(Handshake::Sns, b"not JSON").unwrap(), None);
    }

    #[test]
    fn invalid_event_grid_validation_request_is_rejected() {
        for data in [
            json!({}),
            json!({"validationCode": "x".repeat(2_000)}),
            json!({"validationUrl": "https://eventgrid.azure.net.example.com/"}),
            json!({"validationUrl": "https://example.com/.eventgrid.azure.net"}),
            json!({"validationUrl": "https://a.eventgrid.azure.net:22/"}),
            json!({"validationUrl": "http://a.eventgrid.azure.net/"}),
        ] {
            let body = json!([{"eventType": VALIDATION, "data": data}]).to_string();
            let refused = find_step(Handshake::EventGrid, body.as_bytes());
            assert!(
                matches!(refused, Err(Error::Invalid(_))),
                "{body}: {refused:?}"
            );
        }
    }
}
