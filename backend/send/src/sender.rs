//! Performs one attempt, from its content to its verdict; used by deliveries and tests.

#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::{sync::watch, time::Instant};
use url::Url;

use super::{
    AttemptContext, AttemptOutcome, ChatThread, DestinationType, RenderedMessage, RenderedView,
    as_type,
    dial::{Dialer, SystemResolver},
    egress::EgressGuard,
    http::{HttpClient, HttpRequest, SendFailure, route::Route},
    mail_server::MailServer,
    outlets::AttemptResources,
    ping::PingFailure,
    render_display, render_message,
    renderers::Renderers,
    run_off_runtime,
    sink::EventSink,
    times::ExchangeTimes,
    tls,
    tokens::TokenCache,
    transcript::Masker,
    verdict::{Advice, AttemptReport, Verdict},
    with_type,
};
use crate::{
    clock::Clock,
    config::Config,
    domain::{
        Content, DestinationKind, IncomingEvent, Outcome, OwnEvent, RecordId, SharedSettings,
        Status, TemplateLanguage, TraceContext, Transcript,
        delivery::Recipients,
        destination::{EventTemplates, KeptValues},
    },
    error::Error,
    message::{Context, Links},
    store::metrics::Metrics,
    trace::{Span, SpanKind},
};

const SHOWN_WARNINGS_MAX: usize = 3;

/// A sender that performs attempts. Clones share connections and tokens.
#[derive(Debug, Clone)]
pub struct Sender(Arc<AttemptResources>);

#[derive(Debug, Clone, Copy)]
pub struct SendRequest<'a> {
    /// Id of the delivery, the same in all attempts.
    pub delivery: RecordId,
    /// The rule that notified; `None` for a test.
    pub rule: Option<RecordId>,
    pub content: &'a Content,
    /// Name of the destination; empty when testing a draft without a name.
    pub destination_name: &'a str,
    pub kind: &'a DestinationKind,
    pub template_language: TemplateLanguage,
    /// The first delivery of the thread that this one updates, if it arrived.
    pub opening: Option<RecordId>,
    /// The content of that delivery, for destinations that show both as one conversation.
    pub opening_content: Option<&'a Content>,
    pub thread: Option<&'a ChatThread>,
    /// The values kept for the thread; `None` for its first message.
    pub kept: Option<&'a KeptValues>,
    /// Mail addresses that get no further attempt.
    pub recipients: &'a Recipients,
    /// Whether to send the reduced form because the receiver rejected the full one.
    pub is_reduced: bool,
    /// Timeout of the whole attempt, excluding a mail server's reply to DATA.
    pub timeout: Duration,
    /// Whether to use new connections, as in a test: a pooled connection may work although a new
    /// one would not, and vice versa.
    pub is_fresh: bool,
}

impl Sender {
    /// Creates a sender behind a guard. Without a sink, event destinations fail with an
    /// explanation.
    pub fn new(
        config: &Config,
        settings: watch::Receiver<Arc<SharedSettings>>,
        guard: Arc<EgressGuard>,
        clock: Arc<dyn Clock>,
        links: Links,
        sink: Option<Arc<dyn EventSink>>,
    ) -> Self {
        let limit = config.delivery.connect_timeout;
        let dialer = Dialer::new(guard, Arc::new(SystemResolver), limit);
        let authorities = &config.egress.authorities;
        let trust = tls::Trust::new(authorities.certificates());
        let mail_server = config.smtp.clone();
        Self(Arc::new(AttemptResources {
            clock,
            mail_server: mail_server.map(|config| MailServer {
                config,
                tls: Arc::new(tls::client_config(&trust)),
            }),
            mail_answer_timeout: config.delivery.mail_answer_timeout,
            http: HttpClient::new(dialer.clone(), trust, Route::new(&config.egress)),
            dialer,
            providers: config.providers.clone(),
            tokens: TokenCache::default(),
            sink,
            settings,
            masked_links: links.with_masked_signatures(),
            links,
            renderers: Renderers::default(),
        }))
    }

    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        if let Some(outlets) = Arc::get_mut(&mut self.0) {
            outlets.renderers = Renderers::new(metrics);
        }
        self
    }

    pub fn renderers(&self) -> Renderers {
        self.0.renderers.clone()
    }

    pub async fn render(&self, request: SendRequest<'_>) -> Result<RenderedView, Error> {
        let shared = Arc::clone(&self.0.settings.borrow());
        let around = self.message_context(&request, &shared, false);
        with_type!(&request.content.destination_kind, settings => {
            let content = (request.content, &around);
            run_off_runtime(&self.0.renderers, settings, content, render_display).await
        })
    }

    /// Returns the event that an event destination would create; `None` for other types.
    pub async fn created_event(
        &self,
        request: SendRequest<'_>,
    ) -> Result<Option<IncomingEvent>, Error> {
        let kind = &request.content.destination_kind;
        let Some(templates) = as_type::<EventTemplates>(kind) else {
            return Ok(None);
        };
        let shared = Arc::clone(&self.0.settings.borrow());
        let content = (
            request.content,
            &self.message_context(&request, &shared, false),
        );
        let made = run_off_runtime(
            &self.0.renderers,
            templates,
            content,
            |templates, content, around| render_message(templates, content, around, false),
        );
        Ok(Some(made.await?.message))
    }

    /// Returns the rendering context. Links that need no key are only included in messages that
    /// leave the service, because every reader sees events.
    fn message_context<'a>(
        &'a self,
        request: &SendRequest<'a>,
        settings: &'a SharedSettings,
        sends: bool,
    ) -> Context<'a> {
        let leaves = sends && !matches!(request.kind, DestinationKind::Event(_));
        Context {
            delivery_id: request.delivery,
            destination_name: request.destination_name,
            tenant: &settings.tenant,
            snippets: &settings.templates,
            opening: request.opening_content,
            kept: request.kept,
            links: if leaves {
                &self.0.links
            } else {
                &self.0.masked_links
            },
        }
    }

    pub async fn can_connect(&self, kind: &DestinationKind) -> bool {
        let outlets = &*self.0;
        let address = with_type!(kind, settings => settings.server(outlets));
        let Some(url) = address.and_then(|it| Url::parse(&it).ok()) else {
            return false;
        };
        match (url.scheme(), url.host_str(), url.port()) {
            ("smtp", Some(host), Some(port)) => outlets.dialer.connect(host, port).await.is_ok(),
            _ => outlets.http.can_connect(&url).await,
        }
    }

    /// Requests the URL of an external monitor; any success status counts.
    pub async fn ping_url(&self, url: &str, timeout: Duration) -> Result<(), PingFailure> {
        let request = HttpRequest {
            method: Method::GET,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            compress: false,
            identity: None,
        };
        match self.0.http.send(request, timeout).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(PingFailure::Status(answer.status.as_u16())),
            Err(SendFailure::Blocked(_)) => Err(PingFailure::Blocked),
            Err(SendFailure::NoAnswer(_) | SendFailure::NotSent(_)) => Err(PingFailure::NoResponse),
            Err(_) => Err(PingFailure::Unreachable),
        }
    }

    pub fn report(&self, event: IncomingEvent) {
        let status = event.status.map(Status::as_str);
        tracing::info!(event = %event.name, status, said = %event.summary, "destination health changed");
        if let Some(sink) = &self.0.sink {
            sink.report(event);
        }
    }

    /// Reports one of the service's own events that is already stored, like [`Sender::report`].
    pub fn report_stored(&self, event: OwnEvent) {
        if let Some(sink) = &self.0.sink {
            sink.report_stored(event);
        }
    }

    /// Performs one attempt. It never fails: errors are part of the report.
    ///
    /// # Cancel safety
    /// The message may have been sent when the future is dropped.
    pub async fn send(&self, request: SendRequest<'_>) -> AttemptReport {
        let begun = Instant::now();
        let mut span = Span::start(
            "deliver",
            SpanKind::Client,
            request.content.occurrence.trace,
        );
        span.set_attribute("bellwether.delivery", || request.delivery.to_string());
        span.set_attribute("bellwether.destination", || {
            request.destination_name.to_owned()
        });
        let trace = span.context();
        let made = with_type!(request.kind, settings => self.perform_attempt(settings, request, (begun, trace), true).await);
        let ((verdict, transcript), times) = made;
        span.set_attribute("bellwether.outcome", || verdict.outcome.as_str());
        if verdict.outcome != Outcome::Delivered {
            span.fail(&verdict.explanation);
        }
        AttemptReport {
            verdict,
            // Durations are stored in microseconds.
            duration: Duration::from_micros(
                begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
            ),
            transcript,
            times,
        }
    }

    /// Builds the request of an attempt like [`Self::send`], but sends nothing. The verdict states
    /// what would prevent it from being sent, and is "delivered" if nothing would.
    pub async fn build_request(&self, request: SendRequest<'_>) -> (Verdict, Transcript) {
        let begun = Instant::now();
        let made = with_type!(request.kind, settings => self.perform_attempt(settings, request, (begun, None), false).await);
        made.0
    }

    #[expect(clippy::too_many_lines, reason = "one attempt from start to end")]
    async fn perform_attempt<T: DestinationType>(
        &self,
        settings: &T,
        request: SendRequest<'_>,
        (begun, trace): (Instant, Option<TraceContext>),
        sends: bool,
    ) -> (AttemptOutcome, Option<ExchangeTimes>) {
        let outlets = &*self.0;
        let current;
        let (content, templates) =
            if let Some(templates) = as_type(&request.content.destination_kind) {
                (request.content, templates)
            } else {
                // The type of the destination has changed since the notification was decided.
                current = Content {
                    destination_kind: request.kind.clone(),
                    template_language: request.template_language,
                    ..request.content.clone()
                };
                (&current, settings)
            };
        let shared = Arc::clone(&self.0.settings.borrow());
        let around = self.message_context(&request, &shared, sends);
        let is_reduced = request.is_reduced;
        let content_of = (content, &around);
        let made = run_off_runtime(
            &outlets.renderers,
            templates,
            content_of,
            move |templates, content, around| {
                render_message(templates, content, around, is_reduced)
            },
        );
        let RenderedMessage {
            message, warnings, ..
        } = match made.await {
            Ok(made) => made,
            Err(error) => {
                let verdict = Verdict::new_unreachable(error.to_string());
                return ((verdict, Transcript::default()), None);
            }
        };
        let mut attempt = AttemptContext {
            id: request.delivery,
            rule: request.rule,
            content,
            around,
            template_language: request.template_language,
            opening: request.opening,
            thread: request.thread,
            recipients: request.recipients,
            is_reduced,
            start_ms: outlets.clock.now_ms(),
            begun,
            timeout: request.timeout,
            trace,
            masker: masker(request.kind, content, &around),
            http: if request.is_fresh {
                outlets.http.with_fresh_connections()
            } else {
                outlets.http.clone()
            },
            sends,
            times: Mutex::default(),
            outlets,
        };
        let (mut verdict, transcript) = settings.send(&mut attempt, message).await;
        let times = *attempt.times.lock().unwrap_or_else(PoisonError::into_inner);
        if !sends {
            return ((verdict, transcript), times);
        }
        let is_sent =
            transcript.request.is_some() && !matches!(request.kind, DestinationKind::Event(_));
        if request.is_fresh && is_sent {
            verdict.explanation.push_str(" (over a new connection)");
        }
        if is_reduced {
            let explanation = &mut verdict.explanation;
            explanation.push_str(" (reduced form of the message)");
            if verdict.advice == Advice::Reduce {
                verdict.advice = Advice::GiveUp;
            }
        }
        // Adds a notice that a template was replaced by the default.
        if !warnings.is_empty() {
            let start = warnings.len().min(SHOWN_WARNINGS_MAX);
            let shown = attempt.mask_and_truncate(&warnings[..start].join("; "));
            verdict.explanation = format!("{} ({shown})", verdict.explanation);
        }
        ((verdict, transcript), times)
    }
}

/// Returns a masker for the secrets of a destination, and for the signatures of links in a message.
fn masker(kind: &DestinationKind, content: &Content, around: &Context<'_>) -> Masker {
    let mut masker = Masker::default();
    kind.clone()
        .for_each_secret(|_place, secret| masker.add(secret.reveal()));
    for secret in around.kept.iter().flat_map(|it| it.secrets()) {
        masker.add(secret.reveal());
    }
    for signature in around.signatures(content) {
        masker.add_signature(signature.reveal());
    }
    masker
}
