//! The service's calls by their names, with canonical JSON in and out: for commands and scripts.

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
    client::{Keys, Reach, connect, failure, unfit},
    data::{Failure, FailureKind, Kind},
    kind, limits,
    options::Options,
};

/// The word for the settings, of which there are only one.
const SETTINGS: &str = "settings";
/// What only the service writes of them.
const SETTINGS_OUTPUT: &[&str] = &["fromFile", "createTime", "updateTime", "etag"];
/// Resources asked for at a time.
const PAGE: i32 = 1_000;

/// A connection to a service.
pub struct Api {
    reach: Reach,
}

impl fmt::Debug for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it reaches the service over holds the key.
        formatter.debug_struct("Api").finish_non_exhaustive()
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// What the caller can do about it.
    pub kind: CallErrorKind,
    /// A message for people.
    pub message: String,
    /// Each field that is wrong, and why.
    pub fields: Vec<(String, String)>,
}

/// What the caller can do about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// Wait: the service is away, or did not answer in time.
    Away,
    /// Bring another key.
    NotAllowed,
    /// Nothing has that name.
    NotFound,
    /// Look at what is there now, then decide again.
    Conflict,
    /// Fix the request.
    Refused,
    /// Report it: the service failed.
    Failed,
}

/// A kind of resource that configuration is built from: what a `ConfigDocument` can hold. None are the
/// settings, of which there are only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigKind(Option<Kind>);

impl ConfigKind {
    /// All of them, in the order in which they are written.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = Kind::ALL.iter().copied();
        // Keys and silences are the business of a day, and no configuration.
        let is_configuration = |kind: &Kind| {
            // What the service alone makes is none either.
            kind.is_created() && !matches!(kind, Kind::Client | Kind::Silence)
        };
        let kinds = kinds.filter(is_configuration).map(Some);
        kinds.chain([None]).map(Self)
    }

    /// The kind of that word, in the singular or the plural, or of its message (`IntakeMapping`), in any
    /// letter case and with or without what separates its words: `intake mapping`, `intake-mapping`.
    pub fn find(word: &str) -> Option<Self> {
        let bare = |word: &str| {
            let letters = word.chars().filter(|c| !matches!(c, ' ' | '-' | '_'));
            letters.collect::<String>().to_lowercase()
        };
        let word = bare(word);
        let is_it = |kind: &Self| {
            let message = match kind.0 {
                Some(Kind::Mapping) => "intakemapping",
                Some(Kind::View) => "savedview",
                Some(Kind::Policy) => "escalationpolicy",
                _ => "",
            };
            word == message || [kind.word(), kind.plural()].map(bare).contains(&word)
        };
        Self::all().find(is_it).filter(|_| !word.is_empty())
    }

    /// The word for one of them, in lower case.
    pub fn word(self) -> &'static str {
        self.0.map_or(SETTINGS, Kind::word)
    }

    /// The word for several, in lower case.
    pub fn plural(self) -> &'static str {
        self.0.map_or(SETTINGS, Kind::plural)
    }

    /// A stored resource as its author writes it: without what only the service writes, and with a
    /// condition as text where it can be one.
    pub fn authored(self, mut resource: Value) -> Value {
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
    /// Connects, and asks whose key it is.
    ///
    /// # Errors
    /// Nothing answers, or the service does not know the key.
    pub fn connect(mut options: Options) -> BoxFuture<'static, Result<Self, CallError>> {
        Box::pin(async move {
            let keys = Keys::of(&mut options);
            let (carrier, _caller) = connect(options.endpoint, keys).await?;
            Ok(Self {
                reach: Reach::over(carrier),
            })
        })
    }

    /// The same, giving each call so long.
    #[must_use]
    pub fn patient(mut self, limit: Duration) -> Self {
        self.reach.limit = limit;
        self
    }

    /// Makes a call such as `RuleService`, `GetRule`.
    ///
    /// # Errors
    /// The request does not fit the method, or the call fails.
    pub fn call<'a>(
        &'a mut self,
        service: &'a str,
        method: &'a str,
        request: &'a Value,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move { Ok(self.reach.ask_json(service, method, request).await?) })
    }

    /// The same of a request that can be tried with `validateOnly`: what the service refuses is reported
    /// together with what is no such message.
    ///
    /// # Errors
    /// Those of [`Api::call`].
    pub fn call_checked<'a>(
        &'a mut self,
        service: &'a str,
        method: &'a str,
        request: &'a Value,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            Ok(self
                .reach
                .ask_json_checked(service, method, request)
                .await?)
        })
    }

    /// Every resource of a kind, by name.
    ///
    /// # Errors
    /// Those of [`Api::call`].
    pub async fn list(&mut self, kind: ConfigKind) -> Result<Vec<Value>, CallError> {
        let Some(stored) = kind.0 else {
            return Ok(vec![self.settings().await?]);
        };
        let spec = kind::spec(stored);
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let asked = json!({"pageSize": PAGE, "pageToken": token});
            let mut page = self.call(spec.service, spec.list, &asked).await?;
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

    /// The resource of that kind and name.
    ///
    /// # Errors
    /// Those of [`Api::call`].
    pub async fn get(&mut self, kind: ConfigKind, name: &str) -> Result<Value, CallError> {
        let Some(stored) = kind.0 else {
            return self.settings().await;
        };
        let spec = kind::spec(stored);
        let method = format!("Get{}", spec.message);
        let mut found = self
            .call(spec.service, &method, &json!({"name": name}))
            .await?;
        Ok(found[kind.word()].take())
    }

    /// Deletes the resource of that kind and name; with `force`, takes it out of what uses it.
    ///
    /// # Errors
    /// Those of [`Api::call`]; the settings are never deleted.
    pub async fn delete(
        &mut self,
        kind: ConfigKind,
        name: &str,
        force: bool,
    ) -> Result<(), CallError> {
        let Some(stored) = kind.0 else {
            return Err(CallError {
                kind: CallErrorKind::Refused,
                message: "settings are changed with `apply`, and never deleted".into(),
                fields: Vec::new(),
            });
        };
        let spec = kind::spec(stored);
        let asked = json!({"name": name, "force": force});
        self.call(spec.service, spec.delete.unwrap_or_default(), &asked)
            .await?;
        Ok(())
    }

    /// Sends events, as the JSON of `Events`; answers what happened to them.
    ///
    /// # Errors
    /// Those of [`Api::call`].
    pub fn put_events<'a>(
        &'a mut self,
        events: &'a Value,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            let events: Events =
                json::from_json(events.to_string().as_bytes()).map_err(|error| unfit(&error))?;
            let carrier = self.reach.carrier.clone();
            let mut service = DataReceiverServiceClient::new(carrier);
            let call = time::timeout(self.reach.limit, service.put_events(events));
            let answer = match call.await {
                Ok(answer) => answer.map_err(|status| failure(&status))?,
                Err(_elapsed) => {
                    let words = "no response in time; the events may have been accepted";
                    return Err(Failure::new(FailureKind::TimedOut, words).into());
                }
            };
            let text = json::to_json(&answer.into_inner()).map_err(|error| unfit(&error))?;
            serde_json::from_slice(&text)
                .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()).into())
        })
    }

    /// Follows what changes; each message is the JSON of `WatchEventsResponse`.
    ///
    /// # Errors
    /// The request does not fit, or the service refuses.
    pub fn watch<'a>(&'a mut self, request: &'a Value) -> BoxFuture<'a, Result<Watch, CallError>> {
        Box::pin(async move {
            let request: WatchEventsRequest =
                json::from_json(request.to_string().as_bytes()).map_err(|error| unfit(&error))?;
            let carrier = self.reach.carrier.clone();
            let mut service = EventQueryServiceClient::new(carrier)
                .max_decoding_message_size(limits::MESSAGE_BYTES);
            let answer = service.watch_events(request).await;
            let stream = answer.map_err(|status| failure(&status))?.into_inner();
            Ok(Watch { stream })
        })
    }
}

/// What changes, as it does.
#[derive(Debug)]
pub struct Watch {
    stream: tonic::Streaming<WatchEventsResponse>,
}

impl Watch {
    /// The next message; none when the service ended the stream in good order.
    ///
    /// # Errors
    /// The connection broke, or the service ended the stream.
    pub async fn next(&mut self) -> Result<Option<Value>, CallError> {
        let message = self.stream.message().await;
        let Some(message) = message.map_err(|status| failure(&status))? else {
            return Ok(None);
        };
        let text = json::to_json(&message).map_err(|error| unfit(&error))?;
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()).into())
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Unreachable | FailureKind::TimedOut => CallErrorKind::Away,
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
            message: failure.message,
            fields: fields.map(|it| (it.path, it.message)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_made_of_what_a_document_can_hold() {
        for kind in Kind::ALL {
            let document = json!({kind.word(): {}}).to_string();
            let read = json::wire_from_json("bellwether.v1.ConfigDocument", document.as_bytes());
            let is_known = ConfigKind::find(kind.word()).is_some();
            assert_eq!(read.is_ok(), is_known, "{}: {read:?}", kind.word());
        }
    }
}
