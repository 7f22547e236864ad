//! Calls to the service by name, with canonical JSON in and out, for commands and scripts.

use futures_util::future::BoxFuture;
use std::{fmt, time::Duration};

use bellwether_proto::{
    cloud::{Events, data_receiver_service_client::DataReceiverServiceClient},
    json,
    v1::{
        WatchEventsRequest, WatchEventsResponse,
        event_query_service_client::EventQueryServiceClient,
    },
};
use serde_json::{Value, json};
use tokio::time;

use crate::{
    client::{Keys, Transport, connect, failure, malformed_response, unreachable},
    data::{Failure, FailureKind, Kind},
    kind, limits,
    options::Options,
};

const SETTINGS: &str = "settings";
const SETTINGS_OUTPUT: &[&str] = &["fromFile", "createTime", "updateTime", "etag"];
const PAGE: i32 = 1_000;

pub struct Api {
    reach: Transport,
}

impl fmt::Debug for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Api").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    pub kind: CallErrorKind,
    /// The code of the error in `docs/troubleshooting.md`; empty if the error has none.
    pub code: String,
    pub message: String,
    /// Invalid fields, each with a description of the violation.
    pub fields: Vec<(String, String)>,
}

/// Possible reactions of a caller to a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// Retry later: the service is unreachable or did not respond before the timeout.
    Unreachable,
    /// Use another key.
    NotAllowed,
    NotFound,
    /// Read the current state and decide again.
    Conflict,
    /// Fix the request.
    Refused,
    /// Report a bug: the service failed.
    Failed,
}

/// A kind of resource in a `ConfigDocument`. `None` means the settings, which are a single
/// resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigKind(Option<Kind>);

impl ConfigKind {
    pub fn iter() -> impl Iterator<Item = Self> {
        let kinds = Kind::ALL.iter().copied();
        // Clients are operational data, not configuration, and so are resources that only the
        // service creates.
        let is_configuration = |kind: &Kind| kind.is_created() && *kind != Kind::Client;
        let kinds = kinds.filter(is_configuration).map(Some);
        kinds.chain([None]).map(Self)
    }

    /// Returns the kind for a word in the singular or plural, or for the name of its message
    /// (`IntakeMapping`). Ignores case and separators: `intake mapping`, `intake-mapping`.
    pub fn find(word: &str) -> Option<Self> {
        let bare = |word: &str| {
            let letters = word.chars().filter(|c| !matches!(c, ' ' | '-' | '_'));
            letters.collect::<String>().to_lowercase()
        };
        let word = bare(word);
        let is_it = |kind: &Self| {
            let message = match kind.0 {
                Some(Kind::Mapping) => "intakemapping",
                Some(Kind::Enrichment) => "enrichmenttable",
                Some(Kind::View) => "savedview",
                Some(Kind::Policy) => "escalationpolicy",
                _ => "",
            };
            word == message || [kind.singular(), kind.plural()].map(bare).contains(&word)
        };
        Self::iter().find(is_it).filter(|_| !word.is_empty())
    }

    pub fn singular(self) -> &'static str {
        self.0.map_or(SETTINGS, Kind::singular)
    }

    pub fn plural(self) -> &'static str {
        self.0.map_or(SETTINGS, Kind::plural)
    }

    /// Converts a stored resource to the form that its author writes: without output-only fields,
    /// and with conditions as text where possible.
    pub fn to_authored_form(self, mut resource: Value) -> Value {
        if let Some(fields) = resource.as_object_mut() {
            let output = self
                .0
                .map_or(SETTINGS_OUTPUT, |kind| kind::spec(kind).output);
            fields.retain(|name, _| !output.contains(&name.as_str()));
            if self.0 == Some(Kind::Trigger)
                && let Some(filter) = fields.remove("filter")
            {
                fields.insert("type".into(), json!({"event": {"filter": filter}}));
            }
        }
        resource
    }
}

impl Api {
    pub fn connect(mut options: Options) -> BoxFuture<'static, Result<Self, CallError>> {
        Box::pin(async move {
            let keys = Keys::from_options(&mut options);
            let (carrier, _caller) = connect(options.endpoint, keys).await?;
            Ok(Self {
                reach: Transport::from_carrier(carrier),
            })
        })
    }

    #[must_use]
    pub fn with_call_timeout(mut self, limit: Duration) -> Self {
        self.reach.limit = limit;
        self
    }

    /// Calls a method such as `GetRule` of `RuleService`.
    pub fn call<'a>(
        &'a mut self,
        service: &'a str,
        method: &'a str,
        request: &'a Value,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move { Ok(self.reach.request_json(service, method, request).await?) })
    }

    /// Like [`Api::call`], for requests that support `validateOnly`: reports unknown fields
    /// together with the violations that the service finds.
    pub fn call_checked<'a>(
        &'a mut self,
        service: &'a str,
        method: &'a str,
        request: &'a Value,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            Ok(self
                .reach
                .request_json_checked(service, method, request)
                .await?)
        })
    }

    /// Returns all resources of a kind, reading page by page. For the settings, the list has a
    /// single element.
    pub async fn list(&mut self, kind: ConfigKind) -> Result<Vec<Value>, CallError> {
        let Some(stored) = kind.0 else {
            return Ok(vec![self.settings().await?]);
        };
        let spec = kind::spec(stored);
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let request = json!({"pageSize": PAGE, "pageToken": token});
            let mut page = self.call(spec.service, spec.list, &request).await?;
            if let Value::Array(rows) = page[kind.plural()].take() {
                found.extend(rows);
            }
            token = page["nextPageToken"].as_str().unwrap_or_default().into();
            if token.is_empty() {
                return Ok(found);
            }
        }
    }

    async fn settings(&mut self) -> Result<Value, CallError> {
        let mut found = self
            .call("SettingsService", "GetSettings", &json!({}))
            .await?;
        Ok(found[SETTINGS].take())
    }

    pub async fn get(&mut self, kind: ConfigKind, name: &str) -> Result<Value, CallError> {
        let Some(stored) = kind.0 else {
            return self.settings().await;
        };
        let spec = kind::spec(stored);
        let method = format!("Get{}", spec.message);
        let mut found = self
            .call(spec.service, &method, &json!({"name": name}))
            .await?;
        Ok(found[kind.singular()].take())
    }

    /// Deletes the resource of this kind and name. With `force`, also removes it from the resources
    /// that use it.
    ///
    /// # Errors
    /// Returns the errors of [`Api::call`], and an error for the settings, which cannot be deleted.
    pub async fn delete(
        &mut self,
        kind: ConfigKind,
        name: &str,
        force: bool,
    ) -> Result<(), CallError> {
        let Some(stored) = kind.0 else {
            let why = "settings are changed with `apply` and cannot be deleted";
            return Err(Failure::new(FailureKind::Invalid, why).into());
        };
        let spec = kind::spec(stored);
        let mut request = json!({"name": name});
        // `force` is sent only if it is set: some requests have no such field, because the resource
        // cannot be deleted while it is in use.
        if force {
            request["force"] = true.into();
        }
        self.call(spec.service, spec.delete.unwrap_or_default(), &request)
            .await?;
        Ok(())
    }

    /// Sends events, given as the JSON of `Events`, and returns the result of each.
    pub fn put_events<'a>(
        &'a mut self,
        events: &'a Value,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            let events: Events = json::from_json(events.to_string().as_bytes())
                .map_err(|error| malformed_response(&error))?;
            let carrier = self.reach.carrier.clone();
            let mut service = DataReceiverServiceClient::new(carrier);
            let call = time::timeout(self.reach.limit, service.put_events(events));
            let answer = match call.await {
                Ok(answer) => answer?,
                Err(_elapsed) => {
                    let words = "no response in time; the events may have been accepted";
                    return Err(Failure::new(FailureKind::TimedOut, words).into());
                }
            };
            let text =
                json::to_json(&answer.into_inner()).map_err(|error| malformed_response(&error))?;
            serde_json::from_slice(&text)
                .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()).into())
        })
    }

    /// Subscribes to changes of events. Each message is the JSON of `WatchEventsResponse`.
    pub fn watch<'a>(&'a mut self, request: &'a Value) -> BoxFuture<'a, Result<Watch, CallError>> {
        Box::pin(async move {
            let request: WatchEventsRequest = json::from_json(request.to_string().as_bytes())
                .map_err(|error| malformed_response(&error))?;
            let carrier = self.reach.carrier.clone();
            let mut service = EventQueryServiceClient::new(carrier)
                .max_decoding_message_size(limits::MESSAGE_BYTES);
            let answer = service.watch_events(request).await;
            let stream = answer?.into_inner();
            Ok(Watch { stream })
        })
    }
}

#[derive(Debug)]
pub struct Watch {
    stream: tonic::Streaming<WatchEventsResponse>,
}

impl Watch {
    /// Returns the next message; `None` if the service closed the stream normally.
    pub async fn next(&mut self) -> Result<Option<Value>, CallError> {
        let message = self.stream.message().await;
        let Some(message) = message? else {
            return Ok(None);
        };
        let text = json::to_json(&message).map_err(|error| malformed_response(&error))?;
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()).into())
    }
}

impl From<tonic::Status> for CallError {
    fn from(status: tonic::Status) -> Self {
        failure(&status).into()
    }
}

impl From<tonic::transport::Error> for CallError {
    fn from(error: tonic::transport::Error) -> Self {
        unreachable(&error).into()
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Unreachable | FailureKind::TimedOut => CallErrorKind::Unreachable,
            FailureKind::Unauthenticated | FailureKind::NotSignedIn | FailureKind::Denied => {
                CallErrorKind::NotAllowed
            }
            FailureKind::NotFound => CallErrorKind::NotFound,
            FailureKind::Conflict => CallErrorKind::Conflict,
            FailureKind::Invalid => CallErrorKind::Refused,
            FailureKind::Unsupported | FailureKind::Internal => CallErrorKind::Failed,
        };
        let fields = failure.fields.into_iter();
        Self {
            kind,
            code: failure.code,
            message: failure.message,
            fields: fields.map(|it| (it.path, it.message)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_kinds_match_the_config_document() {
        for kind in Kind::ALL {
            let document = json!({kind.singular(): {}}).to_string();
            let read = json::wire_from_json("bellwether.v1.ConfigDocument", document.as_bytes());
            let is_known = ConfigKind::find(kind.singular()).is_some();
            assert_eq!(read.is_ok(), is_known, "{}: {read:?}", kind.singular());
        }
    }
}
