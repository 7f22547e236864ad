//! Destination types: the list of them, what each has to say for itself, and what all of them share.
//!
//! What a destination is set to is in [`crate::domain::destination`], since deliveries keep a copy
//! of it. What is done with that is one folder a type: what it must hold, what is sent, how it is
//! sent, and what the provider's answer means.

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
#[cfg(test)]
pub(crate) mod receiver;
mod renderers;
pub mod sender;
mod servicenow;
pub(crate) mod signature;
mod sink;
mod slack;
#[cfg(test)]
pub(crate) mod smtp_receiver;
#[cfg(test)]
mod tests;
mod times;
pub(crate) mod tls;
mod tokens;
pub(crate) mod transcript;
pub mod verdict;
mod webhook;

use std::{any::Any, borrow::Cow};

use serde_json::Value;
use url::{Position, Url};

use crate::{
    domain::{Content, DestinationKind, TemplateLanguage},
    error::{Error, Violation},
    message::{Context, Exceeded, Facts},
};
use attempt::{AttemptContext, Ending};
use check::Checks;
use outlets::Outlets;

pub use egress::Guard;
pub use ping::PingFailure;
pub use renderers::{Purpose, Renderers};
pub use sender::{SendRequest, Sender};
pub use sink::EventSink;
pub use times::ExchangeTimes;
pub use verdict::{Advice, RecipientAnswer, Report, Verdict};
pub use webhook::{is_credential, is_plain_header, is_secret_header};

/// What a type of destination has to say for itself; implemented by its settings.
pub(crate) trait DestinationType: Clone + Send + Sync + 'static {
    /// What is sent, without addresses and secrets.
    type Message: Send + 'static;

    /// The most that the provider takes, in bytes; none where no limit is known.
    const BYTES_MAX: Option<usize> = None;

    /// Whether later messages answer the first one.
    const THREADS: bool = false;

    /// Whether the receiver keeps a state for each thread, so that many messages cannot be
    /// combined.
    fn keeps_state(&self) -> bool {
        false
    }

    /// Whether a message that went to those settings can be answered.
    fn continues(&self, _first: &Self) -> bool {
        false
    }

    /// The first message as its response names it, of which the beginning is kept.
    fn thread(_response: &str) -> Option<ChatThread> {
        None
    }

    /// An address of the server that attempts connect to; none where there is none, or messages decide.
    fn server(&self, outlets: &Outlets) -> Option<String>;

    /// Looks for what is wrong with the settings, secrets filled in.
    fn check(&self, checks: &mut Checks<'_>);

    /// The templates, by field.
    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        Vec::new()
    }

    /// The addresses that the secret of a field is sent to, by field. Empty where the settings of the
    /// service decide that, or where the secret is itself the address.
    fn receivers(&self, secret: &str, language: TemplateLanguage) -> Vec<(&'static str, String)>;

    /// Builds the message. A template that fails is replaced by the default text, and the facts note
    /// why.
    fn message(&self, facts: &mut Facts<'_>) -> Self::Message;

    /// The message as JSON for people to look at.
    fn shown(message: &Self::Message) -> Value;

    /// The message's size in bytes, without the envelope of HTTP or SMTP.
    fn size_bytes(message: &Self::Message) -> usize {
        Self::shown(message).to_string().len()
    }

    /// Performs one attempt; errors are part of its ending.
    fn send(
        &self,
        attempt: &mut AttemptContext<'_>,
        message: Self::Message,
    ) -> impl Future<Output = Ending> + Send;
}

/// Continues with the settings of whichever type it is: the list of types.
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

/// The settings, when they are of that type.
fn of_type<T: DestinationType>(kind: &DestinationKind) -> Option<&T> {
    let settings: &dyn Any = with_type!(kind, settings => settings);
    settings.downcast_ref()
}

/// A message in a chat that others answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatThread {
    /// The chat's name of the channel; empty when it is not known.
    pub channel: String,
    /// The chat's name of the message.
    pub ts: String,
}

/// Everything that is wrong with where messages are to go, secrets filled in; paths begin at the
/// destination, such as `type.email.subject`. With a guard, addresses are those that it lets
/// messages go to, as far as that can be determined without resolving names.
pub fn check(
    kind: &DestinationKind,
    language: TemplateLanguage,
    guard: Option<&Guard>,
) -> Vec<Violation> {
    let mut checks = Checks::new(kind, language, guard);
    with_type!(kind, settings => {
        for (field, source) in settings.templates() {
            checks.template(&field, source);
        }
        settings.check(&mut checks);
    });
    checks.found
}

/// Whether many messages may be reported as one to a destination.
pub fn takes_digests(kind: &DestinationKind) -> bool {
    !with_type!(kind, settings => settings.keeps_state())
}

/// Whether later messages to a destination answer the first one.
pub fn has_threads(kind: &DestinationKind) -> bool {
    fn of<T: DestinationType>(_settings: &T) -> bool {
        T::THREADS
    }
    with_type!(kind, settings => of(settings))
}

/// Whether a message that went there can be answered by one that goes here.
pub fn continues(kind: &DestinationKind, first: &DestinationKind) -> bool {
    with_type!(kind, settings => of_type(first).is_some_and(|first| settings.continues(first)))
}

/// The first message as its response names it, of which the beginning is kept.
pub fn thread(kind: &DestinationKind, response: &str) -> Option<ChatThread> {
    fn of<T: DestinationType>(_settings: &T, response: &str) -> Option<ChatThread> {
        T::thread(response)
    }
    with_type!(kind, settings => of(settings, response))
}

/// The addresses that the secret of a field is sent to, by path.
pub fn receivers(
    kind: &DestinationKind,
    language: TemplateLanguage,
    secret: &str,
) -> Vec<(String, String)> {
    let word = kind.word();
    let receivers = with_type!(kind, settings => settings.receivers(secret, language)).into_iter();
    receivers
        .map(|(field, address)| (format!("type.{word}.{field}"), address))
        .collect()
}

/// The mail addresses of a destination; none of other types.
pub fn mail_addresses(kind: &DestinationKind) -> Vec<String> {
    of_type(kind).map(email::recipients).unwrap_or_default()
}

/// Scheme, host, port, path and query of an address, in one spelling.
fn whole_address(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => url[..Position::AfterQuery].to_owned(),
        Err(_none) => text.to_owned(),
    }
}

/// A message as people see it: there are no secrets in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The message as JSON.
    pub shown: Value,
    /// Its size in bytes, without the envelope of HTTP or SMTP.
    pub size_bytes: usize,
    /// The most that the provider takes, in bytes; none where no limit is known.
    pub limit_bytes: Option<usize>,
    /// What went wrong while it was made, for people.
    pub warnings: Vec<String>,
    /// The first template that takes more than rendering may take; the default replaces it.
    pub exceeded: Option<Exceeded>,
}

/// Makes the message for the content's kind of destination, to look at.
pub fn render(content: &Content, around: &Context<'_>) -> Rendered {
    with_type!(&content.destination_kind, settings => shown(settings, content, around))
}

fn shown<T: DestinationType>(settings: &T, content: &Content, around: &Context<'_>) -> Rendered {
    let Made {
        message,
        warnings,
        exceeded,
    } = made(settings, content, around);
    Rendered {
        shown: T::shown(&message),
        size_bytes: T::size_bytes(&message),
        limit_bytes: T::BYTES_MAX,
        warnings,
        exceeded,
    }
}

/// A message, and what went wrong while it was made.
struct Made<M> {
    message: M,
    warnings: Vec<String>,
    exceeded: Option<Exceeded>,
}

/// Makes a message.
fn made<T: DestinationType>(
    templates: &T,
    content: &Content,
    around: &Context<'_>,
) -> Made<T::Message> {
    let mut facts = Facts::new(content, around);
    let message = templates.message(&mut facts);
    let exceeded = facts.exceeded;
    let mut warnings = facts.warnings;
    if let Some(limit) = T::BYTES_MAX {
        let size = T::size_bytes(&message);
        if size > limit {
            let warning = format!("the message has {size} bytes; the provider takes {limit}");
            warnings.push(warning);
        }
    }
    Made {
        message,
        warnings,
        exceeded,
    }
}

/// Does what needs the templates of a destination, beside the runtime unless they only insert values: for the
/// client that calls, else for the delivery.
///
/// # Errors
/// Those of [`Renderers::run`].
async fn aside<T: DestinationType, M: Send + 'static>(
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
        TemplateLanguage::Mustache => !source.contains("{{#") && !source.contains("{{^"),
        TemplateLanguage::Jinja => !source.contains("{{") && !source.contains("{%"),
    });
    if is_quick {
        return Ok(work(templates, content, around));
    }
    let (templates, content) = (templates.clone(), content.clone());
    let (id, links) = (around.delivery_id, around.links.clone());
    let (name, tenant) = (around.destination_name.to_owned(), around.tenant.to_owned());
    let (purpose, client) = match renderers::calling() {
        Some(client) => (Purpose::Preview, client),
        None => (Purpose::Delivery, name.as_str().into()),
    };
    let run = renderers.run_for(purpose, &client, move || {
        let around = Context {
            delivery_id: id,
            destination_name: &name,
            tenant: &tenant,
            links: &links,
        };
        work(&templates, &content, &around)
    });
    run.await
}
