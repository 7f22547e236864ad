//! One attempt from its content to its verdict: the same code for deliveries and for tests.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    AttemptContext, DestinationType, Ending, EventSink, Report,
    dial::{Dialer, SystemResolver},
    egress::Guard,
    http::HttpClient,
    made,
    mail_server::MailServer,
    of_type,
    outlets::Outlets,
    tls,
    tokens::Tokens,
    transcript::Masker,
    with_type,
};
use crate::{
    clock::Clock,
    config::Config,
    domain::{Content, DestinationKind, IncomingEvent, Outcome, RecordId, Status, TraceContext},
    message::{Context, Links},
    trace::{Span, SpanKind},
};

/// Makes attempts. Clones share connections and tokens.
#[derive(Debug, Clone)]
pub struct Sender(Arc<Outlets>);

/// What an attempt needs to know.
#[derive(Debug, Clone, Copy)]
pub struct SendRequest<'a> {
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
    /// The first delivery about what this one updates, when that arrived.
    pub opening: Option<RecordId>,
    /// Where a message in a chat answers: the name by which the chat knows that one.
    pub thread: Option<&'a str>,
    /// How long it may take in all.
    pub timeout: Duration,
}

impl Sender {
    /// A sender behind that guard, whose messages link to there. Without a sink, event destinations fail with a sentence saying
    /// so.
    pub fn new(
        config: &Config,
        guard: Arc<Guard>,
        clock: Arc<dyn Clock>,
        links: Links,
        sink: Option<Arc<dyn EventSink>>,
    ) -> Self {
        let limit = config.delivery.connect_timeout;
        let dialer = Dialer::new(guard, Arc::new(SystemResolver), limit);
        let authorities = &config.egress.authorities;
        let roots = Arc::new(tls::roots(authorities.certificates()));
        let mail_server = config.smtp.clone();
        Self(Arc::new(Outlets {
            clock,
            http: HttpClient::new(dialer.clone(), roots, config.egress.proxy.clone()),
            dialer,
            providers: config.providers.clone(),
            mail_server: mail_server.map(|smtp| MailServer::new(smtp, authorities)),
            tokens: Tokens::default(),
            sink,
            tenant: config.tenant.clone(),
            links,
        }))
    }

    /// Says something of this service itself, where there is somebody to take it in.
    pub(crate) fn report(&self, event: IncomingEvent) {
        let status = event.status.map(Status::word);
        tracing::info!(event = %event.name, status, said = %event.summary, "a destination fares otherwise");
        if let Some(sink) = &self.0.sink {
            sink.report(event);
        }
    }

    /// Makes one attempt. It never fails: what goes wrong is the report.
    ///
    /// # Cancel safety
    /// A dropped call may have sent the message.
    pub async fn send(&self, request: SendRequest<'_>) -> Report {
        let begun = Instant::now();
        let mut span = Span::of(
            "deliver",
            SpanKind::Client,
            request.content.occurrence.trace,
        );
        span.note("bellwether.delivery", || request.delivery.to_string());
        span.note("bellwether.destination", || {
            request.destination_name.to_owned()
        });
        let trace = span.context();
        let ending = with_type!(request.kind, settings => self.attempt(settings, request, (begun, trace)).await);
        let (verdict, transcript) = ending;
        span.note("bellwether.outcome", || verdict.outcome.word());
        if verdict.outcome != Outcome::Delivered {
            span.fail(&verdict.explanation);
        }
        Report {
            verdict,
            // As precise as it is stored.
            duration: Duration::from_micros(
                begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
            ),
            transcript,
        }
    }

    async fn attempt<T: DestinationType>(
        &self,
        settings: &T,
        request: SendRequest<'_>,
        (begun, trace): (Instant, Option<TraceContext>),
    ) -> Ending {
        let outlets = &*self.0;
        let current;
        let (content, templates) =
            if let Some(templates) = of_type(&request.content.destination_kind) {
                (request.content, templates)
            } else {
                // The destination is of another type than when the notification was decided.
                current = Content {
                    destination_kind: request.kind.clone(),
                    ..request.content.clone()
                };
                (&current, settings)
            };
        let around = Context {
            delivery_id: request.delivery,
            destination_name: request.destination_name,
            tenant: &outlets.tenant,
            links: &outlets.links,
        };
        let (message, warnings) = made(templates, content, &around);
        let mut attempt = AttemptContext {
            id: request.delivery,
            rule: request.rule,
            content,
            around,
            opening: request.opening,
            thread: request.thread,
            start_ms: outlets.clock.now_ms(),
            begun,
            timeout: request.timeout,
            trace,
            masker: masker(request.kind),
            outlets,
        };
        let (mut verdict, transcript) = settings.send(&mut attempt, message).await;
        // A template that gave way to the default must not go unseen.
        if let Some(warning) = warnings.first() {
            verdict.explanation = format!("{} ({warning})", verdict.explanation);
        }
        (verdict, transcript)
    }
}

/// Masks every secret of a destination.
fn masker(kind: &DestinationKind) -> Masker {
    let mut masker = Masker::default();
    kind.clone()
        .each_secret(|_place, secret| masker.add(secret.reveal()));
    masker
}
