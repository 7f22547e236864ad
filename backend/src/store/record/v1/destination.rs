//! Destinations, and the health of their deliveries.

use std::{collections::BTreeMap, time::Duration};

use super::webhook::{MethodV1, WebhookV1};
use crate::{
    domain::{
        Budget, DeliverySettings, Destination, DestinationKind, Health, HealthState, Name,
        RecordId, Secret, Severity, TemplateLanguage,
        destination::{
            Email, EventTemplates, Header, HeaderValue, MailPriority, MsTeams, PagerDuty,
            RefusedRecipient, ServiceNow, Slack, Tried, Webhook,
        },
    },
    store::seal::{SealContext, Sealer},
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
    #[prost(message, optional, tag = "13")]
    budget: Option<BudgetV1>,
    #[prost(int32, tag = "14")]
    template_language: i32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct BudgetV1 {
    #[prost(uint32, tag = "1")]
    messages: u32,
    #[prost(uint64, tag = "2")]
    per_ms: u64,
    #[prost(uint32, tag = "3")]
    critical_share: u32,
}

impl From<Budget> for BudgetV1 {
    fn from(budget: Budget) -> Self {
        Self {
            messages: budget.messages,
            per_ms: u64::try_from(budget.per.as_millis()).unwrap_or(u64::MAX),
            critical_share: budget.critical_share,
        }
    }
}

impl BudgetV1 {
    fn into_budget(self) -> Budget {
        Budget {
            messages: self.messages,
            per: Duration::from_millis(self.per_ms),
            critical_share: self.critical_share,
        }
    }
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
    #[prost(bytes = "vec", optional, tag = "22")]
    webhook_url: Option<Vec<u8>>,
    #[prost(message, optional, tag = "23")]
    webhook: Option<WebhookV1>,
    #[prost(bytes = "vec", optional, tag = "24")]
    password: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "25")]
    bearer: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "26")]
    oauth_secret: Option<Vec<u8>>,
    #[prost(string, tag = "27")]
    cc: String,
    #[prost(bytes = "vec", optional, tag = "28")]
    private_key: Option<Vec<u8>>,
    #[prost(message, optional, tag = "29")]
    mail: Option<MailV1>,
    #[prost(message, optional, tag = "40")]
    slack: Option<SlackV1>,
    #[prost(message, optional, tag = "41")]
    pagerduty: Option<PagerDutyV1>,
}

/// What a Slack channel has beside its name and the token.
#[derive(Clone, PartialEq, prost::Message)]
struct SlackV1 {
    #[prost(string, tag = "1")]
    blocks: String,
    #[prost(bool, tag = "2")]
    update_first: bool,
    #[prost(bool, tag = "3")]
    broadcast_replies: bool,
}

/// What a PagerDuty service has beside the integration key.
#[derive(Clone, PartialEq, prost::Message)]
struct PagerDutyV1 {
    #[prost(string, tag = "1")]
    class: String,
    #[prost(string, tag = "2")]
    component: String,
    #[prost(string, tag = "3")]
    group: String,
    #[prost(string, tag = "4")]
    custom_details: String,
    #[prost(string, tag = "5")]
    links: String,
    #[prost(string, tag = "6")]
    images: String,
}

/// What a mail has beside addresses, subject and body.
#[derive(Clone, PartialEq, prost::Message)]
struct MailV1 {
    #[prost(string, tag = "1")]
    bcc: String,
    #[prost(string, tag = "2")]
    from: String,
    #[prost(string, tag = "3")]
    reply_to: String,
    #[prost(string, tag = "4")]
    list_id: String,
    #[prost(enumeration = "PriorityV1", tag = "5")]
    priority: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum PriorityV1 {
    Normal = 0,
    High = 1,
    Low = 2,
    BySeverity = 3,
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
    /// Every secret that is there, sealed, by its name.
    fn seal(self, kind: &DestinationKind) -> BTreeMap<String, Vec<u8>> {
        let mut sealed = BTreeMap::new();
        if let Self::Of(record, sealer) = self {
            kind.clone().each_secret(|context, secret| {
                let field = context.name();
                if !secret.is_empty() {
                    let context = SealContext {
                        record,
                        field: &field,
                    };
                    let bytes = sealer.seal(context, secret);
                    sealed.insert(field, bytes);
                }
            });
        }
        sealed
    }

    /// Puts the secrets of that name in; none when one does not open.
    fn open(
        self,
        mut kind: DestinationKind,
        sealed: &BTreeMap<String, Vec<u8>>,
    ) -> Option<DestinationKind> {
        let mut opened = true;
        if let Self::Of(record, sealer) = self {
            kind.each_secret(|context, secret| {
                let field = context.name();
                let context = SealContext {
                    record,
                    field: &field,
                };
                match sealed.get(&field).map(|bytes| sealer.open(context, bytes)) {
                    Some(Ok(text)) => *secret = text,
                    Some(Err(_)) => opened = false,
                    None => {}
                }
            });
        }
        opened.then_some(kind)
    }
}

impl DestinationV1 {
    pub(crate) fn new(destination: &Destination, sealer: &Sealer) -> Self {
        Self::with(destination, Secrets::Of(destination.id, sealer))
    }

    pub(crate) fn without_secrets(destination: &Destination) -> Self {
        Self::with(destination, Secrets::LeftOut)
    }

    fn with(destination: &Destination, secrets: Secrets<'_>) -> Self {
        let settings = destination.delivery;
        let timeout_ms = settings.timeout.map_or(0, |timeout| timeout.as_millis());
        Self {
            id: destination.id.to_bytes().into(),
            name: destination.name.as_str().into(),
            description: destination.description.clone(),
            tags: destination.tags.clone(),
            kind: Some(DestinationKindV1::new(&destination.kind, secrets)),
            template_language: destination.template_language.number(),
            timeout_ms: u64::try_from(timeout_ms).unwrap_or(u64::MAX),
            max_in_flight: settings.max_in_flight.unwrap_or(0),
            max_per_minute: settings.max_per_minute.unwrap_or(0),
            max_attempts: settings.max_attempts.unwrap_or(0),
            budget: settings.budget.map(BudgetV1::from),
            revision: destination.revision,
            create_ms: destination.create_ms,
            update_ms: destination.update_ms,
        }
    }

    pub(crate) fn into_destination(self, sealer: &Sealer) -> Option<Destination> {
        let id = RecordId::from_bytes(self.id.as_slice().try_into().ok()?);
        self.opened(Secrets::Of(id, sealer))
    }

    pub(crate) fn into_bare_destination(self) -> Option<Destination> {
        self.opened(Secrets::LeftOut)
    }

    fn opened(self, secrets: Secrets<'_>) -> Option<Destination> {
        let id = RecordId::from_bytes(self.id.try_into().ok()?);
        let stated = |number: u32| (number > 0).then_some(number);
        Some(Destination {
            id,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            kind: self.kind?.into_kind(secrets)?,
            template_language: TemplateLanguage::of_number(self.template_language)?,
            delivery: DeliverySettings {
                timeout: (self.timeout_ms > 0).then(|| Duration::from_millis(self.timeout_ms)),
                max_in_flight: stated(self.max_in_flight),
                max_per_minute: stated(self.max_per_minute),
                max_attempts: stated(self.max_attempts),
                budget: self.budget.map(BudgetV1::into_budget),
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
        let mut sealed = secrets.seal(kind);
        let word = match kind {
            DestinationKind::Webhook(webhook) => {
                record.set_webhook(webhook, &mut sealed);
                WordV1::Webhook
            }
            DestinationKind::Email(email) => {
                record.to.clone_from(&email.to);
                record.cc.clone_from(&email.cc);
                record.subject.clone_from(&email.subject);
                record.body.clone_from(&email.body);
                let mail = MailV1::new(email);
                record.mail = (mail != MailV1::default()).then_some(mail);
                WordV1::Email
            }
            DestinationKind::Slack(slack) => {
                record.channel.clone_from(&slack.channel);
                let more = SlackV1 {
                    blocks: slack.blocks.clone(),
                    update_first: slack.update_first,
                    broadcast_replies: slack.broadcast_replies,
                };
                record.slack = (more != SlackV1::default()).then_some(more);
                WordV1::Slack
            }
            DestinationKind::MsTeams(_) => WordV1::MsTeams,
            DestinationKind::PagerDuty(pagerduty) => {
                let more = PagerDutyV1 {
                    class: pagerduty.class.clone(),
                    component: pagerduty.component.clone(),
                    group: pagerduty.group.clone(),
                    custom_details: pagerduty.custom_details.clone(),
                    links: pagerduty.links.clone(),
                    images: pagerduty.images.clone(),
                };
                record.pagerduty = (more != PagerDutyV1::default()).then_some(more);
                WordV1::PagerDuty
            }
            DestinationKind::ServiceNow(service) => {
                record.url.clone_from(&service.instance_url);
                record.client_id.clone_from(&service.client_id);
                record.token_url.clone_from(&service.token_url);
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
        for (name, field) in record.sealed_fields() {
            *field = sealed.remove(name);
        }
        debug_assert!(
            sealed.is_empty(),
            "a secret has no field: {:?}",
            sealed.keys()
        );
        record
    }

    /// The fields that hold sealed texts, by the secret's name; headers hold theirs themselves.
    fn sealed_fields(&mut self) -> [(&'static str, &mut Option<Vec<u8>>); 11] {
        [
            ("webhook.secret_url", &mut self.webhook_url),
            ("webhook.signing_secret", &mut self.signing_secret),
            ("webhook.auth.basic.password", &mut self.password),
            ("webhook.auth.bearer.token", &mut self.bearer),
            ("webhook.auth.oauth2.client_secret", &mut self.oauth_secret),
            ("webhook.auth.mtls.private_key", &mut self.private_key),
            ("slack.token", &mut self.token),
            ("msteams.url", &mut self.secret_url),
            ("pagerduty.routing_key", &mut self.routing_key),
            ("servicenow.client_secret", &mut self.client_secret),
            ("servicenow.refresh_token", &mut self.refresh_token),
        ]
    }

    fn set_webhook(&mut self, webhook: &Webhook, sealed: &mut BTreeMap<String, Vec<u8>>) {
        let header = |header: &Header| {
            let (plain, secret) = match &header.value {
                HeaderValue::Plain(text) => (text.clone(), None),
                HeaderValue::Secret(_) => {
                    let sealed = sealed.remove(&header_secret(&header.name));
                    (String::new(), Some(sealed.unwrap_or_default()))
                }
            };
            HeaderV1 {
                name: header.name.clone(),
                plain,
                secret,
            }
        };
        self.headers = webhook.headers.iter().map(header).collect();
        self.url.clone_from(&webhook.url);
        self.set_method(webhook.method.into());
        self.webhook = WebhookV1::new(webhook);
        self.payload.clone_from(&webhook.payload);
    }

    pub(crate) fn into_kind(mut self, secrets: Secrets<'_>) -> Option<DestinationKind> {
        let fields = self.sealed_fields();
        let fields = fields
            .into_iter()
            .filter_map(|(name, field)| Some((name.to_owned(), field.take()?)));
        let mut sealed: BTreeMap<_, _> = fields.collect();
        let kind = match WordV1::try_from(self.word).ok()? {
            WordV1::Unknown => return None,
            WordV1::Webhook => DestinationKind::Webhook(self.into_webhook(&mut sealed)?),
            WordV1::Email => {
                let mail = self.mail.unwrap_or_default();
                DestinationKind::Email(Email {
                    to: self.to,
                    cc: self.cc,
                    subject: self.subject,
                    body: self.body,
                    priority: mail.mail_priority()?,
                    bcc: mail.bcc,
                    from: mail.from,
                    reply_to: mail.reply_to,
                    list_id: mail.list_id,
                })
            }
            WordV1::Slack => {
                let more = self.slack.unwrap_or_default();
                DestinationKind::Slack(Slack {
                    channel: self.channel,
                    token: Secret::default(),
                    blocks: more.blocks,
                    update_first: more.update_first,
                    broadcast_replies: more.broadcast_replies,
                })
            }
            WordV1::MsTeams => DestinationKind::MsTeams(MsTeams {
                url: Secret::default(),
            }),
            WordV1::PagerDuty => {
                let more = self.pagerduty.unwrap_or_default();
                DestinationKind::PagerDuty(PagerDuty {
                    routing_key: Secret::default(),
                    class: more.class,
                    component: more.component,
                    group: more.group,
                    custom_details: more.custom_details,
                    links: more.links,
                    images: more.images,
                })
            }
            WordV1::ServiceNow => DestinationKind::ServiceNow(ServiceNow {
                instance_url: self.url,
                client_id: self.client_id,
                client_secret: Secret::default(),
                token_url: self.token_url,
                refresh_token: Secret::default(),
            }),
            WordV1::Event => DestinationKind::Event(EventTemplates {
                name_template: self.name_template,
                type_template: self.type_template,
                summary_template: self.summary_template,
                severity: Severity::from_number(self.severity)?,
            }),
        };
        secrets.open(kind, &sealed)
    }

    fn into_webhook(self, sealed: &mut BTreeMap<String, Vec<u8>>) -> Option<Webhook> {
        let method = MethodV1::try_from(self.method).ok()?.into();
        let more = self.webhook.unwrap_or_default().into_more()?;
        let header = |header: HeaderV1| {
            let value = match header.secret {
                None => HeaderValue::Plain(header.plain),
                Some(bytes) => {
                    sealed.insert(header_secret(&header.name), bytes);
                    HeaderValue::Secret(Secret::default())
                }
            };
            Header {
                name: header.name,
                value,
            }
        };
        Some(Webhook {
            url: self.url,
            secret_url: Secret::default(),
            method,
            headers: self.headers.into_iter().map(header).collect(),
            payload: self.payload,
            signing_secret: Secret::default(),
            auth: more.auth,
            on_clear: more.on_clear,
            values: more.values,
            expect: more.expect,
            compress: more.compress,
        })
    }
}

impl MailV1 {
    fn new(email: &Email) -> Self {
        let priority = match email.priority {
            MailPriority::Normal => PriorityV1::Normal,
            MailPriority::High => PriorityV1::High,
            MailPriority::Low => PriorityV1::Low,
            MailPriority::BySeverity => PriorityV1::BySeverity,
        };
        Self {
            bcc: email.bcc.clone(),
            from: email.from.clone(),
            reply_to: email.reply_to.clone(),
            list_id: email.list_id.clone(),
            priority: priority.into(),
        }
    }

    fn mail_priority(&self) -> Option<MailPriority> {
        Some(match PriorityV1::try_from(self.priority).ok()? {
            PriorityV1::Normal => MailPriority::Normal,
            PriorityV1::High => MailPriority::High,
            PriorityV1::Low => MailPriority::Low,
            PriorityV1::BySeverity => MailPriority::BySeverity,
        })
    }
}

/// The name of the secret that a header holds.
fn header_secret(header: &str) -> String {
    format!("webhook.headers.{header}")
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
    #[prost(int64, optional, tag = "6")]
    last_success_ms: Option<i64>,
    /// How long attempts took, in milliseconds, oldest first.
    #[prost(uint32, repeated, tag = "7")]
    took_ms: Vec<u32>,
    /// Which of these were delivered.
    #[prost(bool, repeated, tag = "8")]
    delivered: Vec<bool>,
    #[prost(message, repeated, tag = "9")]
    refused: Vec<RefusedV1>,
    #[prost(int64, optional, tag = "10")]
    asked_until_ms: Option<i64>,
}

/// A mail address that the mail server refused.
#[derive(Clone, PartialEq, prost::Message)]
struct RefusedV1 {
    #[prost(string, tag = "1")]
    address: String,
    #[prost(string, tag = "2")]
    said: String,
    #[prost(bool, tag = "3")]
    permanent: bool,
    #[prost(int64, tag = "4")]
    since_ms: i64,
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
            last_success_ms: health.last_success_ms,
            took_ms: health.tried.iter().map(|tried| tried.took_ms).collect(),
            delivered: health
                .tried
                .iter()
                .map(|tried| tried.is_delivered)
                .collect(),
            refused: health.refused.iter().map(refused).collect(),
            asked_until_ms: health.asked_until_ms,
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
            last_success_ms: self.last_success_ms,
            tried: {
                let both = self.took_ms.into_iter().zip(self.delivered);
                let tried = |(took_ms, is_delivered)| Tried {
                    took_ms,
                    is_delivered,
                };
                both.map(tried).collect()
            },
            refused: self
                .refused
                .into_iter()
                .map(RefusedV1::into_refused)
                .collect(),
            asked_until_ms: self.asked_until_ms,
        })
    }
}

fn refused(recipient: &RefusedRecipient) -> RefusedV1 {
    RefusedV1 {
        address: recipient.address.clone(),
        said: recipient.said.clone(),
        permanent: recipient.is_permanent,
        since_ms: recipient.since_ms,
    }
}

impl RefusedV1 {
    fn into_refused(self) -> RefusedRecipient {
        RefusedRecipient {
            address: self.address,
            said: self.said,
            is_permanent: self.permanent,
            since_ms: self.since_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::domain::destination::Auth;

    #[test]
    fn what_kinds_have_beside_their_first_form_is_kept() {
        let text = |text: &str| text.to_owned();
        let mut kinds = vec![
            DestinationKind::Slack(Slack {
                channel: text("#ops"),
                token: Secret::default(),
                blocks: text("[]"),
                update_first: true,
                broadcast_replies: true,
            }),
            DestinationKind::PagerDuty(PagerDuty {
                routing_key: Secret::default(),
                class: text("a"),
                component: text("b"),
                group: text("c"),
                custom_details: text("{}"),
                links: text("[1]"),
                images: text("[2]"),
            }),
        ];
        let mut webhook = crate::store::samples::reaching_webhook().kind;
        webhook.each_secret(|_place, secret| *secret = Secret::default());
        if let DestinationKind::Webhook(webhook) = &mut webhook
            && let Some(Auth::OAuth2 {
                audience, params, ..
            }) = webhook.auth.as_deref_mut()
        {
            *audience = text("https://api.example/");
            *params = [(text("resource"), text("x"))].into();
        }
        kinds.push(webhook);
        for kind in kinds {
            let bytes = DestinationKindV1::new(&kind, Secrets::LeftOut).encode_to_vec();
            let record = DestinationKindV1::decode(&bytes[..]).unwrap();
            assert_eq!(record.into_kind(Secrets::LeftOut), Some(kind));
        }
    }
}
