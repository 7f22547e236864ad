//! Destination types: settings, validation, rendering, sending and interpretation of responses.
//!
//! The settings are in [`crate::domain::destination`], because deliveries store a copy of them.

mod attempt;
mod check;
pub(crate) mod dial;
pub mod egress;
mod email;
mod event;
pub(crate) mod http;
mod mail_server;
mod msteams;
mod oauth;
mod outlets;
mod pagerduty;
mod ping;
mod renderers;
pub mod sender;
#[cfg(test)]
#[path = "../../testing/service/sender.rs"]
mod sending;
mod servicenow;
pub(crate) mod signature;
mod sink;
mod slack;
#[cfg(test)]
#[path = "../../testing/service/smtp_receiver.rs"]
mod smtp_receiver;
#[cfg(test)]
mod tests;
mod times;
pub(crate) mod tls;
mod tokens;
pub mod transcript;
pub mod verdict;
mod webhook;

#[cfg(test)]
extern crate self as bellwether_backend_send;

use std::{any::Any, borrow::Cow, sync::Arc};

use bellwether_backend_base::{background, config, error, limits, scan, trace, wire};
use bellwether_backend_engine::clock;
use bellwether_backend_model::{domain, matching, message, template};
use bellwether_backend_store as store;
use bellwether_proto::v1::{self, destination_type::Type};
use serde_json::Value;
use url::{Position, Url};

use crate::{
    domain::{Content, DestinationKind, Snippets, TemplateLanguage, destination::KeptValues},
    error::{Error, Violation},
    message::{Context, ExceededLimit, Facts},
};
use attempt::{AttemptContext, AttemptOutcome};
use check::SettingsChecker;
use outlets::AttemptResources;

pub use egress::EgressGuard;
pub use ping::PingFailure;
pub use renderers::{RenderPurpose, Renderers};
pub use sender::{SendRequest, Sender};
pub use sink::EventSink;
pub use times::ExchangeTimes;
pub use verdict::{Advice, AttemptReport, RecipientAnswer, Verdict};
pub use webhook::is_credential;

/// A type of destination; implemented by its settings.
pub(crate) trait DestinationType: Clone + Send + Sync + 'static {
    /// The settings on the wire.
    type Wire;

    /// The content sent, without addresses and secrets.
    type Message: Send + 'static;

    /// Maximum message size accepted by the provider, in bytes; `None` if unknown.
    const BYTES_MAX: Option<usize> = None;

    /// Whether later messages reply to the first one.
    const THREADS: bool = false;

    /// Converts settings from the wire. Only use them if no violation was added.
    fn from_wire(wire: Self::Wire, violations: &mut Vec<Violation>) -> Self;

    /// Converts settings for clients; secrets are masked.
    fn to_wire(self) -> Self::Wire;

    /// Whether the receiver keeps state per thread, so that messages cannot be combined into a
    /// digest.
    fn keeps_state(&self) -> bool {
        !self.lasting_effect().is_empty()
    }

    /// Returns the lasting effect of a test at the receiver; empty if there is none.
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "a webhook declares its effect in a setting"
    )]
    fn lasting_effect(&self) -> &str {
        ""
    }

    /// Whether templates can use the kept value with this name.
    fn keeps(&self, _name: &str) -> bool {
        false
    }

    /// Whether values kept for a thread may be sent to the current address.
    fn accepts_kept(&self, _kept: &KeptValues) -> bool {
        false
    }

    /// Returns the reason not to send a message, if the receiver has nothing that it refers to.
    fn skip_reason(&self, _content: &Content, _kept: Option<&KeptValues>) -> Option<String> {
        None
    }

    /// Whether these settings can reply to a message that was sent with the settings `first`.
    fn can_reply_to(&self, _first: &Self) -> bool {
        false
    }

    /// Returns the first message as identified by its response; only the start of the response is
    /// stored.
    fn thread(_response: &str) -> Option<ChatThread> {
        None
    }

    /// Returns the address of the server that attempts connect to; `None` if there is none or it
    /// depends on the message.
    fn server(&self, outlets: &AttemptResources) -> Option<String>;

    /// Validates the settings, with secrets filled in.
    fn check(&self, checks: &mut SettingsChecker<'_>);

    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        Vec::new()
    }

    /// Returns the addresses that the secret of a field is sent to, by field, so that an edit of an
    /// address does not send a stored secret there. Empty if the service's settings determine them,
    /// or if the secret is itself the address.
    fn receivers(&self, secret: &str, language: TemplateLanguage) -> Vec<(&'static str, String)>;

    /// Builds the message. A template that fails is replaced by the default text, and `facts`
    /// records the reason.
    fn message(&self, facts: &mut Facts<'_>) -> Self::Message;

    /// Builds the reduced form of the message, for a receiver that rejected the full one: short,
    /// and without the parts of the author's templates that can be rejected.
    fn reduced_message(&self, facts: &mut Facts<'_>) -> Self::Message;

    fn to_display(message: &Self::Message) -> Value;

    /// Returns the size of the message in bytes, without the HTTP or SMTP envelope.
    fn size_bytes(message: &Self::Message) -> usize {
        Self::to_display(message).to_string().len()
    }

    /// Performs one attempt; errors are part of the result.
    fn send(
        &self,
        attempt: &mut AttemptContext<'_>,
        message: Self::Message,
    ) -> impl Future<Output = AttemptOutcome> + Send;
}

/// Runs an expression with the settings of any type.
macro_rules! with_type {
    ($kind:expr, $settings:ident => $then:expr) => {
        match $kind {
            $crate::domain::DestinationKind::Webhook($settings) => $then,
            $crate::domain::DestinationKind::Email($settings) => $then,
            $crate::domain::DestinationKind::Slack($settings) => $then,
            $crate::domain::DestinationKind::MsTeams($settings) => $then,
            $crate::domain::DestinationKind::PagerDuty($settings) => $then,
            $crate::domain::DestinationKind::ServiceNow($settings) => $then,
            $crate::domain::DestinationKind::Event($settings) => $then,
        }
    };
}
use with_type;

fn as_type<T: DestinationType>(kind: &DestinationKind) -> Option<&T> {
    let settings: &dyn Any = with_type!(kind, settings => settings);
    settings.downcast_ref()
}

/// Converts the destination type; `None` if it is missing. Only use it if no violation was added.
pub fn from_wire(
    wire: Option<v1::DestinationType>,
    violations: &mut Vec<Violation>,
) -> Option<DestinationKind> {
    let Some(wire) = wire.and_then(|wire| wire.r#type) else {
        let types = DestinationKind::WORDS.join(", ");
        let message = format!("is required: exactly one of {types}");
        violations.push(Violation::new("type", message));
        return None;
    };
    let all = violations;
    Some(match wire {
        Type::Webhook(it) => DestinationKind::Webhook(DestinationType::from_wire(it, all)),
        Type::Email(it) => DestinationKind::Email(DestinationType::from_wire(it, all)),
        Type::Slack(it) => DestinationKind::Slack(DestinationType::from_wire(it, all)),
        Type::Msteams(it) => DestinationKind::MsTeams(DestinationType::from_wire(it, all)),
        Type::Pagerduty(it) => DestinationKind::PagerDuty(DestinationType::from_wire(it, all)),
        Type::Servicenow(it) => DestinationKind::ServiceNow(DestinationType::from_wire(it, all)),
        Type::Event(it) => DestinationKind::Event(DestinationType::from_wire(it, all)),
    })
}

/// Converts the destination type for clients; secrets are masked.
pub fn to_wire(kind: DestinationKind) -> v1::DestinationType {
    let wire = match kind {
        DestinationKind::Webhook(it) => Type::Webhook(it.to_wire()),
        DestinationKind::Email(it) => Type::Email(it.to_wire()),
        DestinationKind::Slack(it) => Type::Slack(it.to_wire()),
        DestinationKind::MsTeams(it) => Type::Msteams(it.to_wire()),
        DestinationKind::PagerDuty(it) => Type::Pagerduty(it.to_wire()),
        DestinationKind::ServiceNow(it) => Type::Servicenow(it.to_wire()),
        DestinationKind::Event(it) => Type::Event(it.to_wire()),
    };
    v1::DestinationType { r#type: Some(wire) }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatThread {
    /// Channel id in the chat system; empty if unknown.
    pub channel: String,
    /// Message id in the chat.
    pub ts: String,
}

/// Validates the settings of a destination, with secrets filled in, and returns the violations.
/// Paths start at the destination, such as `type.email.subject`. With a guard, also checks that it
/// allows the addresses, as far as possible without resolving names.
pub fn check(
    kind: &DestinationKind,
    language: TemplateLanguage,
    (guard, snippets): (Option<&EgressGuard>, &Snippets),
) -> Vec<Violation> {
    let mut checks = SettingsChecker::new(kind, language, (guard, snippets));
    with_type!(kind, settings => {
        checks.check_templates(settings);
        settings.check(&mut checks);
    });
    checks.found
}

pub fn template_violations(
    kind: &DestinationKind,
    language: TemplateLanguage,
    snippets: &Snippets,
) -> Vec<Violation> {
    let mut checks = SettingsChecker::new(kind, language, (None, snippets));
    with_type!(kind, settings => checks.check_templates(settings));
    checks.found
}

/// Whether several messages to a destination may be combined into a digest.
pub fn supports_digests(kind: &DestinationKind) -> bool {
    !keeps_state(kind)
}

pub fn keeps_state(kind: &DestinationKind) -> bool {
    with_type!(kind, settings => settings.keeps_state())
}

pub fn lasting_effect(kind: &DestinationKind) -> &str {
    with_type!(kind, settings => settings.lasting_effect())
}

pub fn accepts_kept(kind: &DestinationKind, kept: &KeptValues) -> bool {
    with_type!(kind, settings => settings.accepts_kept(kept))
}

pub fn skip_reason(content: &Content, kept: Option<&KeptValues>) -> Option<String> {
    with_type!(&content.destination_kind, settings => settings.skip_reason(content, kept))
}

pub fn has_threads(kind: &DestinationKind) -> bool {
    fn of<T: DestinationType>(_settings: &T) -> bool {
        T::THREADS
    }
    with_type!(kind, settings => of(settings))
}

pub fn can_reply_to(kind: &DestinationKind, first: &DestinationKind) -> bool {
    with_type!(kind, settings => as_type(first).is_some_and(|first| settings.can_reply_to(first)))
}

pub fn thread(kind: &DestinationKind, response: &str) -> Option<ChatThread> {
    fn of<T: DestinationType>(_settings: &T, response: &str) -> Option<ChatThread> {
        T::thread(response)
    }
    with_type!(kind, settings => of(settings, response))
}

pub fn receivers(
    kind: &DestinationKind,
    language: TemplateLanguage,
    secret: &str,
) -> Vec<(String, String)> {
    let word = kind.as_str();
    let receivers = with_type!(kind, settings => settings.receivers(secret, language)).into_iter();
    receivers
        .map(|(field, address)| (format!("type.{word}.{field}"), address))
        .collect()
}

/// Returns the mail addresses of a destination; empty for other types.
pub fn mail_addresses(kind: &DestinationKind) -> Vec<String> {
    as_type(kind).map(email::recipients).unwrap_or_default()
}

/// Returns scheme, host, port, path and query of an address, normalized.
fn normalized_address(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => url[..Position::AfterQuery].to_owned(),
        Err(_none) => text.to_owned(),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RenderedView {
    pub shown: Value,
    /// Size in bytes, without the HTTP or SMTP envelope.
    pub size_bytes: usize,
    /// Maximum size accepted by the provider, in bytes; `None` if unknown.
    pub limit_bytes: Option<usize>,
    pub warnings: Vec<String>,
    /// The first template that exceeded the rendering limits; the default text replaces it.
    pub exceeded: Option<ExceededLimit>,
}

pub fn render(content: &Content, around: &Context<'_>) -> RenderedView {
    with_type!(&content.destination_kind, settings => render_display(settings, content, around))
}

fn render_display<T: DestinationType>(
    settings: &T,
    content: &Content,
    around: &Context<'_>,
) -> RenderedView {
    let RenderedMessage {
        message,
        warnings,
        exceeded,
    } = render_message(settings, content, around, false);
    RenderedView {
        shown: T::to_display(&message),
        size_bytes: T::size_bytes(&message),
        limit_bytes: T::BYTES_MAX,
        warnings,
        exceeded,
    }
}

struct RenderedMessage<M> {
    message: M,
    warnings: Vec<String>,
    exceeded: Option<ExceededLimit>,
}

fn render_message<T: DestinationType>(
    templates: &T,
    content: &Content,
    around: &Context<'_>,
    is_reduced: bool,
) -> RenderedMessage<T::Message> {
    let mut facts = Facts::new(content, around);
    let message = if is_reduced {
        templates.reduced_message(&mut facts)
    } else {
        templates.message(&mut facts)
    };
    let exceeded = facts.exceeded;
    let mut warnings = facts.warnings;
    if let Some(limit) = T::BYTES_MAX {
        let size = T::size_bytes(&message);
        if size > limit {
            let warning = format!("the message is {size} bytes; the provider's limit is {limit}");
            warnings.push(warning);
        }
    }
    RenderedMessage {
        message,
        warnings,
        exceeded,
    }
}

/// Runs work that renders the templates of a destination, off the runtime unless they only insert
/// values. The work is done on behalf of the calling client if there is one, otherwise of the
/// delivery.
async fn run_off_runtime<T: DestinationType, M: Send + 'static>(
    renderers: &Renderers,
    templates: &T,
    (content, around): (&Content, &Context<'_>),
    work: impl FnOnce(&T, &Content, &Context<'_>) -> M + Send + 'static,
) -> Result<M, Error> {
    let own = templates.templates();
    let own = own
        .iter()
        .map(|(_, source)| (content.template_language, *source));
    let of_rule = (
        content.rule.template_language,
        content.rule.message.as_str(),
    );
    let of_link = (TemplateLanguage::Mustache, around.links.template.as_str());
    let mut all = own.chain([of_rule, of_link]);
    let is_quick = all.all(|(language, source)| match language {
        TemplateLanguage::Mustache => !["{{#", "{{^", "{{>"].iter().any(|it| source.contains(it)),
        TemplateLanguage::Jinja => !source.contains("{{") && !source.contains("{%"),
    });
    if is_quick {
        return Ok(work(templates, content, around));
    }
    let (templates, content) = (templates.clone(), content.clone());
    let (id, links) = (around.delivery_id, around.links.clone());
    let (name, tenant) = (around.destination_name.to_owned(), around.tenant.to_owned());
    let (opening, kept) = (around.opening.cloned(), around.kept.cloned());
    let snippets = Arc::clone(around.snippets);
    let (purpose, client) = match renderers::current_client() {
        Some(client) => (RenderPurpose::Preview, client),
        None => (RenderPurpose::Delivery, name.as_str().into()),
    };
    let run = renderers.run_for_client(purpose, &client, move || {
        let around = Context {
            delivery_id: id,
            destination_name: &name,
            tenant: &tenant,
            links: &links,
            snippets: &snippets,
            opening: opening.as_ref(),
            kept: kept.as_ref(),
        };
        work(&templates, &content, &around)
    });
    run.await
}
