//! Where messages go: what each kind of destination is set to, and which of that is secret.

use std::collections::BTreeMap;

use super::webhook::{Auth, Expect, OnClear, ValueMap, WebhookMethod};
use crate::domain::{Secret, Severity};

/// Characters of a key that a path shows.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// Where messages go.
#[derive(Debug, Clone, PartialEq)]
pub enum DestinationKind {
    /// An HTTP address.
    Webhook(Webhook),
    /// A mail address.
    Email(Email),
    /// A Slack channel.
    Slack(Slack),
    /// A Microsoft Teams incoming webhook.
    MsTeams(MsTeams),
    /// A PagerDuty service.
    PagerDuty(PagerDuty),
    /// A ServiceNow instance.
    ServiceNow(ServiceNow),
    /// A new event in this service.
    Event(EventTemplates),
}

impl DestinationKind {
    /// The names of all kinds.
    pub const WORDS: [&str; 7] = [
        "webhook",
        "email",
        "slack",
        "msteams",
        "pagerduty",
        "servicenow",
        "event",
    ];

    /// The kind's name in the JSON interface.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Email(_) => "email",
            Self::Slack(_) => "slack",
            Self::MsTeams(_) => "msteams",
            Self::PagerDuty(_) => "pagerduty",
            Self::ServiceNow(_) => "servicenow",
            Self::Event(_) => "event",
        }
    }

    /// Shows every secret to `visit`, with where it stands; one that is not given is empty.
    /// Sealing, masking, keeping and revealing secrets is done here, so that none can be forgotten.
    pub fn each_secret(&mut self, mut visit: impl FnMut(SecretPlace<'_>, &mut Secret)) {
        let kind = self.word();
        let mut field = |field, secret: &mut Secret| {
            let key = None;
            visit(SecretPlace { kind, field, key }, secret);
        };
        match self {
            Self::Webhook(webhook) => {
                field("secret_url", &mut webhook.secret_url);
                field("signing_secret", &mut webhook.signing_secret);
                match webhook.auth.as_deref_mut() {
                    None => {}
                    Some(Auth::Basic { password, .. }) => field("auth.basic.password", password),
                    Some(Auth::Bearer { token }) => field("auth.bearer.token", token),
                    Some(Auth::OAuth2 { client_secret, .. }) => {
                        field("auth.oauth2.client_secret", client_secret);
                    }
                    Some(Auth::Mtls { private_key, .. }) => {
                        field("auth.mtls.private_key", private_key);
                    }
                }
                for Header { name, value } in &mut webhook.headers {
                    if let HeaderValue::Secret(secret) = value {
                        let (field, key) = ("headers", Some(name.as_str()));
                        visit(SecretPlace { kind, field, key }, secret);
                    }
                }
            }
            Self::Slack(slack) => field("token", &mut slack.token),
            Self::MsTeams(teams) => field("url", &mut teams.url),
            Self::PagerDuty(pagerduty) => field("routing_key", &mut pagerduty.routing_key),
            Self::ServiceNow(servicenow) => {
                field("client_secret", &mut servicenow.client_secret);
                field("refresh_token", &mut servicenow.refresh_token);
            }
            Self::Email(_) | Self::Event(_) => {}
        }
    }
}

/// Where a secret of a destination stands.
#[derive(Debug, Clone, Copy)]
pub struct SecretPlace<'a> {
    kind: &'static str,
    field: &'static str,
    key: Option<&'a str>,
}

impl SecretPlace<'_> {
    /// Its name in the store, such as `webhook.headers.authorization`.
    pub fn name(&self) -> String {
        let Self { kind, field, key } = self;
        match key {
            Some(key) => format!("{kind}.{field}.{key}"),
            None => format!("{kind}.{field}"),
        }
    }

    /// Its field, such as `auth.basic.password`; that of all headers is `headers`.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Its path in the JSON interface, such as `type.webhook.headers[authorization]`.
    pub fn path(&self) -> String {
        let mut words = self.field.split('_');
        let mut field = words.next().unwrap_or_default().to_owned();
        for word in words {
            field.push_str(&word[..1].to_ascii_uppercase());
            field.push_str(&word[1..]);
        }
        let key = self.key.map(|key| {
            let start: String = key.chars().take(SHOWN_CHARACTERS_MAX).collect();
            format!("[{start}]")
        });
        format!("type.{}.{field}{}", self.kind, key.unwrap_or_default())
    }
}

/// Sends an HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// An `http` or `https` address without user information; its path and query may be a template.
    /// Empty when the address is secret.
    pub url: String,
    /// The address, where it is secret; else empty.
    pub secret_url: Secret,
    /// The method.
    pub method: WebhookMethod,
    /// Further headers, in the author's spelling, sorted by name.
    pub headers: Vec<Header>,
    /// A template for the body; empty means the standard document.
    pub payload: String,
    /// One or two `whsec_…` secrets, separated by a space; empty signs nothing.
    pub signing_secret: Secret,
    /// How the request shows who sends it.
    pub auth: Option<Box<Auth>>,
    /// What is sent when an event was closed, where that is something else.
    pub on_clear: Option<Box<OnClear>>,
    /// Own variables, by name.
    pub values: BTreeMap<String, ValueMap>,
    /// What an answer has to be; none means a status from 200 to 299.
    pub expect: Option<Box<Expect>>,
    /// Whether large bodies are compressed.
    pub compress: bool,
}

impl Webhook {
    /// Where to: whichever address is given.
    pub fn address(&self) -> &str {
        if self.url.is_empty() {
            self.secret_url.reveal()
        } else {
            &self.url
        }
    }
}

/// One header of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: HeaderValue,
}

/// The value of a header; what carries credentials is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// Shown to readers.
    Plain(String),
    /// Never shown.
    Secret(Secret),
}

/// Sends a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Email {
    /// The addresses, separated by commas.
    pub to: String,
    /// Those that get a copy, separated by commas; may be empty.
    pub cc: String,
    /// Those that get a copy and that no header names, separated by commas; may be empty.
    pub bcc: String,
    /// The sender; empty means that of the settings.
    pub from: String,
    /// Where answers go, separated by commas; may be empty.
    pub reply_to: String,
    /// The name of the list, for filters of mail programs; may be empty.
    pub list_id: String,
    /// How urgent mails are marked.
    pub priority: MailPriority,
    /// A template; empty means the default subject.
    pub subject: String,
    /// A template for HTML; empty means the default body.
    pub body: String,
}

/// How urgent mails are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MailPriority {
    /// Not at all.
    #[default]
    Normal,
    /// Always high.
    High,
    /// Always low.
    Low,
    /// High while an event of the severity error or critical is open.
    BySeverity,
}

/// Posts to a Slack channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slack {
    /// A channel's name or id.
    pub channel: String,
    /// A bot token.
    pub token: Secret,
    /// A template for a JSON list of blocks; empty means the default ones.
    pub blocks: String,
    /// Whether the first message is edited when something changed.
    pub update_first: bool,
    /// Whether replies in a thread are shown in the channel as well.
    pub broadcast_replies: bool,
}

/// Posts a card to a Teams incoming webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsTeams {
    /// The whole address.
    pub url: Secret,
}

/// Sends to PagerDuty's Events API v2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PagerDuty {
    /// The integration key.
    pub routing_key: Secret,
    /// A template for the class; empty means the event's type.
    pub class: String,
    /// A template for the component; empty means the event's name.
    pub component: String,
    /// A template for the group; empty means the tenant.
    pub group: String,
    /// A template for a JSON object of details; empty means all there is to tell.
    pub custom_details: String,
    /// A template for a JSON list of links.
    pub links: String,
    /// A template for a JSON list of images.
    pub images: String,
}

/// Writes `em_event` records in ServiceNow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNow {
    /// The instance's address.
    pub instance_url: String,
    /// OAuth client.
    pub client_id: String,
    /// OAuth client secret.
    pub client_secret: Secret,
    /// Where tokens come from; empty means the instance's own address.
    pub token_url: String,
    /// OAuth refresh token; empty asks by the client credentials grant.
    pub refresh_token: Secret,
}

/// Makes a new event in this service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTemplates {
    /// The new event's name.
    pub name_template: String,
    /// The new event's type.
    pub type_template: String,
    /// The new event's summary.
    pub summary_template: String,
    /// The new event's severity.
    pub severity: Severity,
}
