//! One attempt from its content to its verdict: the same code for deliveries and for tests.

mod email;
mod event;
mod mission;
mod msteams;
mod pagerduty;
mod secrets;
mod servicenow;
mod slack;
#[cfg(test)]
mod tests;
mod webhook;

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

pub use event::EventSink;

use crate::{
    clock::Clock,
    config::{Config, ProviderConfig},
    delivery::{
        dial::{Dialer, SystemResolver},
        egress::Guard,
        http::HttpClient,
        tls,
        verdict::{Report, Verdict},
    },
    domain::{Content, DestinationKind, IncomingEvent, RecordId, Transcript},
    message::{self, Context, Message, Rendered},
};
use email::MailServer;
use mission::{Ending, Mission};

/// Makes attempts. Clones share connections and tokens.
#[derive(Debug, Clone)]
pub struct Sender(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    clock: Arc<dyn Clock>,
    dialer: Dialer,
    http: HttpClient,
    providers: ProviderConfig,
    mail_server: Option<MailServer>,
    tokens: servicenow::Tokens,
    sink: Option<Arc<dyn EventSink>>,
    tenant: String,
    link_base: String,
}

/// What an attempt needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The delivery, the same over all attempts.
    pub delivery: RecordId,
    /// The rule that notified; none for a test.
    pub rule: Option<RecordId>,
    /// What there is to tell.
    pub content: &'a Content,
    /// The destination's name; empty for the test of a draft without a name.
    pub destination_name: &'a str,
    /// Where to: the destination as it is now.
    pub kind: &'a DestinationKind,
    /// How long it may take in all.
    pub timeout: Duration,
}

impl Sender {
    /// A sender behind that guard. Without a sink, event destinations fail with a sentence saying
    /// so.
    pub fn new(
        config: &Config,
        guard: Arc<Guard>,
        clock: Arc<dyn Clock>,
        sink: Option<Arc<dyn EventSink>>,
    ) -> Self {
        let limit = config.delivery.connect_timeout;
        let dialer = Dialer::new(guard, Arc::new(SystemResolver), limit);
        let authorities = &config.egress.authorities;
        let tls = tls::client_config(authorities.certificates());
        let mail_server = config.smtp.clone();
        Self(Arc::new(Parts {
            clock,
            http: HttpClient::new(dialer.clone(), tls),
            dialer,
            providers: config.providers.clone(),
            mail_server: mail_server.map(|smtp| MailServer::new(smtp, authorities)),
            tokens: servicenow::Tokens::default(),
            sink,
            tenant: config.tenant.clone(),
            link_base: config.link_base.clone(),
        }))
    }

    /// Says something of this service itself, where there is somebody to take it in.
    pub(crate) fn report(&self, event: IncomingEvent) {
        if let Some(sink) = &self.0.sink {
            sink.report(event);
        }
    }

    /// Makes one attempt. It never fails: what goes wrong is the report.
    ///
    /// # Cancel safety
    /// A dropped call may have sent the message.
    pub async fn send(&self, order: Order<'_>) -> Report {
        let begun = Instant::now();
        let (verdict, transcript) = self.attempt(order, begun).await;
        Report {
            verdict,
            // As precise as it is stored.
            duration: Duration::from_micros(
                begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
            ),
            transcript,
        }
    }

    async fn attempt(&self, order: Order<'_>, begun: Instant) -> Ending {
        let parts = &*self.0;
        let current;
        let content = if order.content.destination_kind.word() == order.kind.word() {
            order.content
        } else {
            // The destination is of another kind than when the notification was decided.
            current = Content {
                destination_kind: order.kind.clone(),
                ..order.content.clone()
            };
            &current
        };
        let surroundings = Context {
            delivery_id: order.delivery,
            destination_name: order.destination_name,
            tenant: &parts.tenant,
            link_base: &parts.link_base,
        };
        let Rendered { message, warnings } = message::render(content, &surroundings);
        let mission = Mission {
            id: order.delivery,
            start_ms: parts.clock.now_ms(),
            begun,
            timeout: order.timeout,
            masker: secrets::masker(
                order.kind,
                parts.mail_server.as_ref().map(|server| &server.config),
            ),
            http: &parts.http,
        };
        let (mut verdict, transcript) = match (order.kind, message) {
            (DestinationKind::Event(_), Message::Event(event)) => {
                let chain = &content.occurrence.chain;
                event::send(parts.sink.as_deref(), *event, chain, order.rule).await
            }
            (kind, message) => self.send_out(mission, kind, message).await,
        };
        // A template that gave way to the default must not go unseen.
        if let Some(warning) = warnings.first() {
            verdict.explanation = format!("{} ({warning})", verdict.explanation);
        }
        (verdict, transcript)
    }

    /// Sends what leaves the house.
    async fn send_out(
        &self,
        mut mission: Mission<'_>,
        kind: &DestinationKind,
        message: Message,
    ) -> Ending {
        let parts = &*self.0;
        match (kind, message) {
            (DestinationKind::Webhook(webhook), Message::Webhook { content_type, body }) => {
                webhook::send(&mission, webhook, &content_type, body.into()).await
            }
            (
                DestinationKind::Email(email),
                Message::Email {
                    subject,
                    text,
                    html,
                },
            ) => {
                let mail = email::Parts {
                    subject,
                    text,
                    html,
                };
                email::send(
                    &mission,
                    &parts.dialer,
                    parts.mail_server.as_ref(),
                    &email.to,
                    mail,
                )
                .await
            }
            (DestinationKind::Slack(slack), Message::Slack { body }) => {
                slack::send(&mission, &parts.providers.slack, slack, body).await
            }
            (DestinationKind::MsTeams(teams), Message::MsTeams { body }) => {
                msteams::send(&mission, teams, &body).await
            }
            (DestinationKind::PagerDuty(pagerduty), Message::PagerDuty { body }) => {
                pagerduty::send(&mission, &parts.providers.pagerduty, pagerduty, body).await
            }
            (DestinationKind::ServiceNow(servicenow), Message::ServiceNow { body }) => {
                servicenow::send(&mut mission, &parts.tokens, servicenow, &body).await
            }
            _ => (
                Verdict::unreachable("the message was made for another kind of destination"),
                Transcript::default(),
            ),
        }
    }
}
