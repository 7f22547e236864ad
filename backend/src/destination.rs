//! Destination types: the list of them, what each has to say for itself, and what all of them share.
//!
//! What a destination is set to stands in [`crate::domain::destination`], since deliveries keep a
//! copy of it. What is done with that is one folder a type: what it must hold, what is sent, how it
//! is sent, and what the provider's answer means.

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
#[cfg(test)]
pub(crate) mod receiver;
pub mod sender;
mod servicenow;
pub(crate) mod signature;
mod sink;
mod slack;
#[cfg(test)]
pub(crate) mod smtp_receiver;
#[cfg(test)]
mod tests;
pub(crate) mod tls;
mod tokens;
pub(crate) mod transcript;
pub mod verdict;
mod webhook;

use std::any::Any;

use serde_json::Value;

use crate::{
    domain::{Content, DestinationKind},
    error::Violation,
    message::{Context, Facts},
};
use attempt::{AttemptContext, Ending};
use check::Checks;

pub use egress::Guard;
pub use sender::{SendRequest, Sender};
pub use sink::EventSink;
pub use verdict::{Advice, Report, Verdict};
pub use webhook::{is_plain_header, is_secret_header};

/// What a type of destination has to say for itself; implemented by its settings.
pub(crate) trait DestinationType: Send + Sync + 'static {
    /// What is sent, without addresses and secrets.
    type Message: Send;

    /// The most that the provider takes, in bytes; none where no limit is known.
    const BYTES_MAX: Option<usize> = None;

    /// Whether the receiver keeps a state for each thread, so that many messages cannot be told as one.
    const KEEPS_STATE: bool = false;

    /// Looks for what is wrong with the settings, secrets filled in.
    fn check(&self, checks: &mut Checks<'_>);

    /// The templates, by field.
    fn templates(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Who gets to see the secrets, as fields and addresses. Nobody where the settings of the service
    /// say where to, or where the address is the secret.
    fn receivers(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Makes the message. It always makes one: in place of a template that fails stands what is sent
    /// by default, and the facts note why.
    fn message(&self, facts: &mut Facts<'_>) -> Self::Message;

    /// The message as JSON for people to look at.
    fn shown(message: &Self::Message) -> Value;

    /// The message's size in bytes, without the envelope of HTTP or SMTP.
    fn size_bytes(message: &Self::Message) -> usize {
        Self::shown(message).to_string().len()
    }

    /// Makes one attempt; what goes wrong is its ending.
    fn send(
        &self,
        attempt: &mut AttemptContext<'_>,
        message: Self::Message,
    ) -> impl Future<Output = Ending> + Send;
}

/// Goes on with the settings of whichever type it is: the list of types.
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

/// Everything that is wrong with where messages are to go, secrets filled in; paths begin at the
/// destination, such as `type.email.subject`. With a guard, addresses are those that it lets messages
/// go to, as far as that can be told without resolving names.
pub fn check(kind: &DestinationKind, guard: Option<&Guard>) -> Vec<Violation> {
    let mut checks = Checks::new(kind, guard);
    with_type!(kind, settings => {
        for (field, source) in settings.templates() {
            checks.template(field, source);
        }
        settings.check(&mut checks);
    });
    checks.found
}

/// Whether many messages may be told as one to a destination.
pub fn takes_digests(kind: &DestinationKind) -> bool {
    fn keeps_state<T: DestinationType>(_: &T) -> bool {
        T::KEEPS_STATE
    }
    !with_type!(kind, settings => keeps_state(settings))
}

/// Who gets to see the secrets of a destination, as paths and addresses.
pub fn receivers(kind: &DestinationKind) -> Vec<(String, &str)> {
    let word = kind.word();
    let receivers = with_type!(kind, settings => settings.receivers()).into_iter();
    receivers
        .map(|(field, address)| (format!("type.{word}.{field}"), address))
        .collect()
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
}

/// Makes the message for the content's kind of destination, to look at.
pub fn render(content: &Content, around: &Context<'_>) -> Rendered {
    with_type!(&content.destination_kind, settings => shown(settings, content, around))
}

fn shown<T: DestinationType>(settings: &T, content: &Content, around: &Context<'_>) -> Rendered {
    let (message, warnings) = made(settings, content, around);
    Rendered {
        shown: T::shown(&message),
        size_bytes: T::size_bytes(&message),
        limit_bytes: T::BYTES_MAX,
        warnings,
    }
}

/// Makes a message; answers what went wrong as well.
fn made<T: DestinationType>(
    templates: &T,
    content: &Content,
    around: &Context<'_>,
) -> (T::Message, Vec<String>) {
    let mut facts = Facts::new(content, around);
    let message = templates.message(&mut facts);
    let mut warnings = facts.warnings;
    if let Some(limit) = T::BYTES_MAX {
        let size = T::size_bytes(&message);
        if size > limit {
            let warning = format!("the message has {size} bytes; the provider takes {limit}");
            warnings.push(warning);
        }
    }
    (message, warnings)
}
