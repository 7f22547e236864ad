//! Destinations, and how their deliveries fare.

use std::time::Duration;

use crate::{
    domain::{
        DeliverySettings, Destination, DestinationKind, Health, HealthState, Name, RecordId,
        Secret, Severity,
        destination::{
            Email, EventTemplates, Header, HeaderValue, MsTeams, PagerDuty, ServiceNow, Slack,
            Webhook, WebhookMethod,
        },
    },
    store::seal::{Place, Sealer},
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DestinationV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(message, optional, tag = "5")]
    kind: Option<DestinationKindV1>,
    #[prost(uint64, tag = "6")]
    timeout_ms: u64,
    #[prost(uint32, tag = "7")]
    max_in_flight: u32,
    #[prost(uint32, tag = "8")]
    max_per_minute: u32,
    #[prost(uint32, tag = "9")]
    max_attempts: u32,
    #[prost(uint64, tag = "10")]
    revision: u64,
    #[prost(int64, tag = "11")]
    create_ms: i64,
    #[prost(int64, tag = "12")]
    update_ms: i64,
}

/// A kind of destination. Texts, templates and sealed secrets have one numbering for all kinds,
/// so that a field keeps its meaning.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DestinationKindV1 {
    #[prost(enumeration = "WordV1", tag = "1")]
    word: i32,
    #[prost(string, tag = "2")]
    url: String,
    #[prost(enumeration = "MethodV1", tag = "3")]
    method: i32,
    #[prost(message, repeated, tag = "4")]
    headers: Vec<HeaderV1>,
    #[prost(string, tag = "5")]
    payload: String,
    #[prost(bytes = "vec", optional, tag = "6")]
    signing_secret: Option<Vec<u8>>,
    #[prost(string, tag = "7")]
    to: String,
    #[prost(string, tag = "8")]
    subject: String,
    #[prost(string, tag = "9")]
    body: String,
    #[prost(string, tag = "10")]
    channel: String,
    #[prost(bytes = "vec", optional, tag = "11")]
    token: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "12")]
    secret_url: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "13")]
    routing_key: Option<Vec<u8>>,
    #[prost(string, tag = "14")]
    client_id: String,
    #[prost(bytes = "vec", optional, tag = "15")]
    client_secret: Option<Vec<u8>>,
    #[prost(string, tag = "16")]
    token_url: String,
    #[prost(bytes = "vec", optional, tag = "17")]
    refresh_token: Option<Vec<u8>>,
    #[prost(string, tag = "18")]
    name_template: String,
    #[prost(string, tag = "19")]
    type_template: String,
    #[prost(string, tag = "20")]
    summary_template: String,
    #[prost(int32, tag = "21")]
    severity: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum WordV1 {
    Unknown = 0,
    Webhook = 1,
    Email = 2,
    Slack = 3,
    MsTeams = 4,
    PagerDuty = 5,
    ServiceNow = 6,
    Event = 7,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum MethodV1 {
    Post = 0,
    Put = 1,
    Patch = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HeaderV1 {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    plain: String,
    #[prost(bytes = "vec", optional, tag = "3")]
    secret: Option<Vec<u8>>,
}

/// Whether and where secrets are sealed and opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Secrets<'a> {
    /// They belong to that destination.
    Of(RecordId, &'a Sealer),
    /// They are left out when writing and empty when reading.
    LeftOut,
}

impl Secrets<'_> {
    fn seal(self, field: &str, secret: &Secret) -> Option<Vec<u8>> {
        match self {
            Self::Of(record, sealer) => Some(sealer.seal(Place { record, field }, secret)),
            Self::LeftOut => None,
        }
    }

    /// None when it is absent or does not open.
    fn open(self, field: &str, bytes: Option<&Vec<u8>>) -> Option<Secret> {
        match self {
            Self::Of(record, sealer) => sealer.open(Place { record, field }, bytes?).ok(),
            Self::LeftOut => Some(Secret::new("")),
        }
    }
}

impl DestinationV1 {
    pub(crate) fn new(destination: &Destination, sealer: &Sealer) -> Self {
        let settings = destination.delivery;
        let timeout_ms = settings.timeout.map_or(0, |timeout| timeout.as_millis());
        Self {
            id: destination.id.to_bytes().into(),
            name: destination.name.as_str().into(),
            description: destination.description.clone(),
            tags: destination.tags.clone(),
            kind: Some(DestinationKindV1::new(
                &destination.kind,
                Secrets::Of(destination.id, sealer),
            )),
            timeout_ms: u64::try_from(timeout_ms).unwrap_or(u64::MAX),
            max_in_flight: settings.max_in_flight.unwrap_or(0),
            max_per_minute: settings.max_per_minute.unwrap_or(0),
            max_attempts: settings.max_attempts.unwrap_or(0),
            revision: destination.revision,
            create_ms: destination.create_ms,
            update_ms: destination.update_ms,
        }
    }

    pub(crate) fn into_destination(self, sealer: &Sealer) -> Option<Destination> {
        let id = RecordId::from_bytes(self.id.try_into().ok()?);
        let stated = |number: u32| (number > 0).then_some(number);
        Some(Destination {
            id,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            kind: self.kind?.into_kind(Secrets::Of(id, sealer))?,
            delivery: DeliverySettings {
                timeout: (self.timeout_ms > 0).then(|| Duration::from_millis(self.timeout_ms)),
                max_in_flight: stated(self.max_in_flight),
                max_per_minute: stated(self.max_per_minute),
                max_attempts: stated(self.max_attempts),
            },
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}

impl DestinationKindV1 {
    pub(crate) fn new(kind: &DestinationKind, secrets: Secrets<'_>) -> Self {
        let mut record = Self::default();
        let word = match kind {
            DestinationKind::Webhook(webhook) => {
                record.set_webhook(webhook, secrets);
                WordV1::Webhook
            }
            DestinationKind::Email(email) => {
                record.to.clone_from(&email.to);
                record.subject.clone_from(&email.subject);
                record.body.clone_from(&email.body);
                WordV1::Email
            }
            DestinationKind::Slack(slack) => {
                record.channel.clone_from(&slack.channel);
                record.token = secrets.seal("slack.token", &slack.token);
                WordV1::Slack
            }
            DestinationKind::MsTeams(teams) => {
                record.secret_url = secrets.seal("msteams.url", &teams.url);
                WordV1::MsTeams
            }
            DestinationKind::PagerDuty(pager) => {
                record.routing_key = secrets.seal("pagerduty.routing_key", &pager.routing_key);
                WordV1::PagerDuty
            }
            DestinationKind::ServiceNow(service) => {
                record.set_service_now(service, secrets);
                WordV1::ServiceNow
            }
            DestinationKind::Event(event) => {
                record.name_template.clone_from(&event.name_template);
                record.type_template.clone_from(&event.type_template);
                record.summary_template.clone_from(&event.summary_template);
                record.severity = event.severity as i32;
                WordV1::Event
            }
        };
        record.set_word(word);
        record
    }

    fn set_webhook(&mut self, webhook: &Webhook, secrets: Secrets<'_>) {
        let header = |header: &Header| {
            let (plain, secret) = match &header.value {
                HeaderValue::Plain(text) => (text.clone(), None),
                HeaderValue::Secret(secret) => {
                    let field = format!("webhook.headers.{}", header.name);
                    (
                        String::new(),
                        Some(secrets.seal(&field, secret).unwrap_or_default()),
                    )
                }
            };
            HeaderV1 {
                name: header.name.clone(),
                plain,
                secret,
            }
        };
        let method = match webhook.method {
            WebhookMethod::Post => MethodV1::Post,
            WebhookMethod::Put => MethodV1::Put,
            WebhookMethod::Patch => MethodV1::Patch,
        };
        self.url.clone_from(&webhook.url);
        self.set_method(method);
        self.headers = webhook.headers.iter().map(header).collect();
        self.payload.clone_from(&webhook.payload);
        self.signing_secret = webhook
            .signing_secret
            .as_ref()
            .and_then(|secret| secrets.seal("webhook.signing_secret", secret));
    }

    fn set_service_now(&mut self, service: &ServiceNow, secrets: Secrets<'_>) {
        self.url.clone_from(&service.instance_url);
        self.client_id.clone_from(&service.client_id);
        self.client_secret = secrets.seal("servicenow.client_secret", &service.client_secret);
        self.token_url.clone_from(&service.token_url);
        self.refresh_token = service
            .refresh_token
            .as_ref()
            .and_then(|token| secrets.seal("servicenow.refresh_token", token));
    }

    pub(crate) fn into_kind(self, secrets: Secrets<'_>) -> Option<DestinationKind> {
        Some(match WordV1::try_from(self.word).ok()? {
            WordV1::Unknown => return None,
            WordV1::Webhook => DestinationKind::Webhook(self.into_webhook(secrets)?),
            WordV1::Email => DestinationKind::Email(Email {
                to: self.to,
                subject: self.subject,
                body: self.body,
            }),
            WordV1::Slack => DestinationKind::Slack(Slack {
                token: secrets.open("slack.token", self.token.as_ref())?,
                channel: self.channel,
            }),
            WordV1::MsTeams => DestinationKind::MsTeams(MsTeams {
                url: secrets.open("msteams.url", self.secret_url.as_ref())?,
            }),
            WordV1::PagerDuty => DestinationKind::PagerDuty(PagerDuty {
                routing_key: secrets.open("pagerduty.routing_key", self.routing_key.as_ref())?,
            }),
            WordV1::ServiceNow => DestinationKind::ServiceNow(ServiceNow {
                client_secret: secrets
                    .open("servicenow.client_secret", self.client_secret.as_ref())?,
                refresh_token: match &self.refresh_token {
                    None => None,
                    bytes => Some(secrets.open("servicenow.refresh_token", bytes.as_ref())?),
                },
                instance_url: self.url,
                client_id: self.client_id,
                token_url: self.token_url,
            }),
            WordV1::Event => DestinationKind::Event(EventTemplates {
                name_template: self.name_template,
                type_template: self.type_template,
                summary_template: self.summary_template,
                severity: Severity::from_number(self.severity)?,
            }),
        })
    }

    fn into_webhook(self, secrets: Secrets<'_>) -> Option<Webhook> {
        let method = match MethodV1::try_from(self.method).ok()? {
            MethodV1::Post => WebhookMethod::Post,
            MethodV1::Put => WebhookMethod::Put,
            MethodV1::Patch => WebhookMethod::Patch,
        };
        let header = |header: HeaderV1| {
            let field = format!("webhook.headers.{}", header.name);
            let value = match &header.secret {
                None => HeaderValue::Plain(header.plain),
                sealed => HeaderValue::Secret(secrets.open(&field, sealed.as_ref())?),
            };
            Some(Header {
                name: header.name,
                value,
            })
        };
        Some(Webhook {
            method,
            headers: self
                .headers
                .into_iter()
                .map(header)
                .collect::<Option<_>>()?,
            signing_secret: match &self.signing_secret {
                None => None,
                bytes => Some(secrets.open("webhook.signing_secret", bytes.as_ref())?),
            },
            url: self.url,
            payload: self.payload,
        })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HealthV1 {
    #[prost(bytes = "vec", tag = "1")]
    destination: Vec<u8>,
    #[prost(enumeration = "HealthStateV1", tag = "2")]
    state: i32,
    #[prost(int64, tag = "3")]
    since_ms: i64,
    #[prost(uint32, tag = "4")]
    failures: u32,
    #[prost(string, tag = "5")]
    last_error: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum HealthStateV1 {
    Unknown = 0,
    Healthy = 1,
    Failing = 2,
    Paused = 3,
}

impl From<&Health> for HealthV1 {
    fn from(health: &Health) -> Self {
        let state = match health.state {
            HealthState::Healthy => HealthStateV1::Healthy,
            HealthState::Failing => HealthStateV1::Failing,
            HealthState::Paused => HealthStateV1::Paused,
        };
        Self {
            destination: health.destination.to_bytes().into(),
            state: state.into(),
            since_ms: health.since_ms,
            failures: health.failures,
            last_error: health.last_error.clone(),
        }
    }
}

impl HealthV1 {
    pub(crate) fn into_health(self) -> Option<Health> {
        let state = match HealthStateV1::try_from(self.state).ok()? {
            HealthStateV1::Unknown => return None,
            HealthStateV1::Healthy => HealthState::Healthy,
            HealthStateV1::Failing => HealthState::Failing,
            HealthStateV1::Paused => HealthState::Paused,
        };
        Some(Health {
            destination: RecordId::from_bytes(self.destination.try_into().ok()?),
            state,
            since_ms: self.since_ms,
            failures: self.failures,
            last_error: self.last_error,
        })
    }
}
