//! Kinds of destinations: their settings, and which of those are secret.

use std::collections::BTreeMap;

use super::webhook::{Auth, Expect, FollowUp, Keep, ValueMap, WebhookMethod};
use crate::domain::{Secret, Severity};

/// Maximum number of characters of a header name shown in a path.
const SHOWN_CHARACTERS_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub enum DestinationKind {
    Webhook(Webhook),
    Email(Email),
    Slack(Slack),
    MsTeams(MsTeams),
    PagerDuty(PagerDuty),
    ServiceNow(ServiceNow),
    /// A new event in this service.
    Event(EventTemplates),
}

impl DestinationKind {
    pub const WORDS: [&str; 7] = [
        "webhook",
        "email",
        "slack",
        "msteams",
        "pagerduty",
        "servicenow",
        "event",
    ];

    pub fn as_str(&self) -> &'static str {
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

    /// Whether a template of the destination contains a word.
    pub fn mentions_name(&self, word: &str) -> bool {
        let templates: Vec<&str> = match self {
            Self::Webhook(it) => {
                let headers = it.headers.iter().map(|header| match &header.value {
                    HeaderValue::Plain(text) => text.as_str(),
                    HeaderValue::Secret(secret) => secret.reveal(),
                });
                let follow_ups = it.follow_ups();
                let follow_ups = follow_ups.flat_map(|(_, it)| [it.url.as_str(), &it.payload]);
                let values = it.values.values().map(|value| value.from.as_str());
                let own = [it.address(), &it.payload].into_iter();
                own.chain(headers).chain(follow_ups).chain(values).collect()
            }
            Self::Email(it) => vec![&it.subject, &it.body],
            Self::Slack(it) => vec![&it.blocks],
            Self::PagerDuty(it) => vec![
                &it.class,
                &it.component,
                &it.group,
                &it.custom_details,
                &it.links,
                &it.images,
            ],
            Self::Event(it) => vec![&it.name_template, &it.type_template, &it.summary_template],
            Self::MsTeams(_) | Self::ServiceNow(_) => Vec::new(),
        };
        templates.iter().any(|it| it.contains(word))
    }

    /// Whether later messages of a thread depend on the response to an earlier one, and so wait for
    /// it.
    pub fn follows_up(&self) -> bool {
        matches!(self, Self::Webhook(it) if !it.keep.is_empty() || it.on_update.is_some())
    }

    /// Calls `visit` with every secret and its location; an unset secret is empty. All code that
    /// seals, masks, keeps or reveals secrets uses this method, so that no secret is forgotten.
    pub fn for_each_secret(&mut self, mut visit: impl FnMut(SecretLocation<'_>, &mut Secret)) {
        let kind = self.as_str();
        let mut field = |field, secret: &mut Secret| {
            let key = None;
            visit(SecretLocation { kind, field, key }, secret);
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
                    Some(Auth::Aws {
                        secret_access_key, ..
                    }) => field("auth.aws.secret_access_key", secret_access_key),
                }
                for Header { name, value } in &mut webhook.headers {
                    if let HeaderValue::Secret(secret) = value {
                        let (field, key) = ("headers", Some(name.as_str()));
                        visit(SecretLocation { kind, field, key }, secret);
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

#[derive(Debug, Clone, Copy)]
pub struct SecretLocation<'a> {
    kind: &'static str,
    field: &'static str,
    key: Option<&'a str>,
}

impl SecretLocation<'_> {
    /// Returns the name in the store, such as `webhook.headers.authorization`.
    pub fn name(&self) -> String {
        let Self { kind, field, key } = self;
        match key {
            Some(key) => format!("{kind}.{field}.{key}"),
            None => format!("{kind}.{field}"),
        }
    }

    /// Returns the field, such as `auth.basic.password`; `headers` for every header.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the path in the JSON interface, such as `type.webhook.headers[authorization]`.
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

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Webhook {
    /// An `http` or `https` URL without user information; its path and query may be templates.
    /// Empty if the URL is secret.
    pub url: String,
    /// The URL if it is secret; otherwise empty.
    pub secret_url: Secret,
    pub method: WebhookMethod,
    /// Additional headers as the author spelled them, sorted by name.
    pub headers: Vec<Header>,
    /// The template of the body; empty means the standard document.
    pub payload: String,
    /// One or two `whsec_…` secrets, separated by a space; if empty, requests are not signed.
    pub signing_secret: Secret,
    pub auth: Option<Box<Auth>>,
    /// The request for a closed event, if it differs from the request for an open one.
    pub on_clear: Option<Box<FollowUp>>,
    /// The request for other changes, and for closings without `on_clear`, if it differs.
    pub on_update: Option<Box<FollowUp>>,
    /// Values of responses for later messages of the thread, by name.
    pub keep: BTreeMap<String, Keep>,
    /// Custom template variables, by name.
    pub values: BTreeMap<String, ValueMap>,
    /// Conditions under which a response counts as accepted; `None` means any status from 200 to
    /// 299.
    pub expect: Option<Box<Expect>>,
    pub compress: bool,
    /// The lasting effect of a test at the receiver, in the author's words; empty if the settings
    /// imply it.
    pub test_effect: String,
}

impl Webhook {
    /// Returns the requests for later messages of a thread, by the names of their fields.
    pub fn follow_ups(&self) -> impl Iterator<Item = (&'static str, &FollowUp)> {
        let named = [("onUpdate", &self.on_update), ("onClear", &self.on_clear)];
        let set = named.into_iter();
        set.filter_map(|(name, it)| Some((name, it.as_deref()?)))
    }

    /// Returns the URL, secret or not.
    pub fn address(&self) -> &str {
        if self.url.is_empty() {
            self.secret_url.reveal()
        } else {
            &self.url
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: HeaderValue,
}

/// The value of a header, secret if it contains credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    Plain(String),
    Secret(Secret),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Email {
    pub to: String,
    pub cc: String,
    pub bcc: String,
    /// The sender; empty means the sender from the settings.
    pub from: String,
    pub reply_to: String,
    /// The name of the mailing list, for mail filters; may be empty.
    pub list_id: String,
    pub priority: MailPriority,
    /// The template of the subject; empty means the default subject.
    pub subject: String,
    /// The template of the HTML body; empty means the default body.
    pub body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MailPriority {
    /// No priority header.
    #[default]
    Normal,
    High,
    Low,
    /// High while an event of severity error or critical is open.
    BySeverity,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slack {
    pub channel: String,
    pub token: Secret,
    /// The template of a JSON list of blocks; empty means the default blocks.
    pub blocks: String,
    pub update_first: bool,
    /// Whether replies in a thread are also shown in the channel.
    pub broadcast_replies: bool,
}

/// Settings of a Teams incoming webhook, which receives cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsTeams {
    /// The whole URL.
    pub url: Secret,
}

/// Settings of PagerDuty's Events API v2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PagerDuty {
    pub routing_key: Secret,
    /// The template of the class; empty means the kind of the event.
    pub class: String,
    /// The template of the component; empty means the name of the event.
    pub component: String,
    /// The template of the group; empty means the tenant.
    pub group: String,
    /// The template of a JSON object of details; empty means all details.
    pub custom_details: String,
    /// The template of a JSON list of links.
    pub links: String,
    /// The template of a JSON list of images.
    pub images: String,
}

/// Settings of a ServiceNow instance, which receives `em_event` records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNow {
    pub instance_url: String,
    pub client_id: String,
    pub client_secret: Secret,
    /// The token endpoint; empty means the instance's default.
    pub token_url: String,
    /// The OAuth refresh token; if empty, the client credentials grant is used.
    pub refresh_token: Secret,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTemplates {
    pub name_template: String,
    pub type_template: String,
    pub summary_template: String,
    pub severity: Severity,
}
