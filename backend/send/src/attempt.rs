//! Headers, transcript and timing common to all HTTP attempts.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tokio::time::Instant;

use super::{
    ChatThread,
    http::{HttpClient, HttpRequest, HttpResponse, SendFailure, USER_AGENT},
    outlets::AttemptResources,
    times::ExchangeTimes,
    transcript::{EXPLANATION_BYTES_MAX, Masker},
    verdict::{Advice, Verdict},
};
use crate::{
    domain::{
        Content, RecordId, TemplateLanguage, TraceContext, Transcript,
        delivery::{Recipients, Request, Response},
    },
    message::Context,
};

#[derive(Debug)]
pub(crate) struct AttemptContext<'a> {
    pub(super) id: RecordId,
    /// The rule that notified; `None` for a test.
    pub(super) rule: Option<RecordId>,
    pub(super) content: &'a Content,
    /// Template variables other than the content.
    pub(super) around: Context<'a>,
    /// Template language of the destination's current settings.
    pub(super) template_language: TemplateLanguage,
    /// The first delivery of the thread that this one updates.
    pub(super) opening: Option<RecordId>,
    /// The chat message that this one replies to.
    pub(super) thread: Option<&'a ChatThread>,
    /// Mail addresses that get no further attempt.
    pub(super) recipients: &'a Recipients,
    pub(super) is_reduced: bool,
    pub(super) start_ms: i64,
    pub(super) begun: Instant,
    /// Timeout of the whole attempt, across all its requests.
    pub(super) timeout: Duration,
    /// Parent of the receiver's own spans.
    pub(super) trace: Option<TraceContext>,
    pub(super) masker: Masker,
    pub(super) http: HttpClient,
    /// Whether requests are sent; otherwise they are only rendered.
    pub(super) sends: bool,
    pub(super) times: Mutex<Option<ExchangeTimes>>,
    pub(super) outlets: &'a AttemptResources,
}

pub(crate) type AttemptOutcome = (Verdict, Transcript);

impl AttemptContext<'_> {
    pub(super) fn headers(&self, content_type: &str) -> HeaderMap {
        let id = HeaderValue::from_str(&self.id.to_string()).expect("letters and digits");
        let agent = HeaderValue::from_static(USER_AGENT);
        let fallback = HeaderValue::from_static("application/octet-stream");
        let content_type = HeaderValue::from_str(content_type).unwrap_or(fallback);
        let trace = self.trace.map(|it| it.to_string());
        let trace = trace.and_then(|it| HeaderValue::from_str(&it).ok());
        let trace = trace.map(|it| (HeaderName::from_static("traceparent"), it));
        let own = [
            (HeaderName::from_static("webhook-id"), id.clone()),
            (
                HeaderName::from_static("webhook-timestamp"),
                self.timestamp_seconds().into(),
            ),
            (HeaderName::from_static("idempotency-key"), id),
            (header::CONTENT_TYPE, content_type),
            (header::USER_AGENT, agent),
        ];
        own.into_iter().chain(trace).collect()
    }

    /// Returns the start of the attempt in seconds since the epoch, as used in signatures.
    pub(super) fn timestamp_seconds(&self) -> i64 {
        self.start_ms.div_euclid(1000)
    }

    pub(super) async fn post_json(
        &self,
        url: String,
        extra: Option<(HeaderName, HeaderValue)>,
        body: impl Into<Bytes>,
    ) -> (Result<HttpResponse, SendFailure>, Transcript) {
        let mut headers = self.headers("application/json; charset=utf-8");
        headers.extend(extra.map(|(name, value)| (Some(name), value)));
        self.exchange(HttpRequest {
            method: Method::POST,
            url,
            headers,
            body: body.into(),
            compress: false,
            identity: None,
        })
        .await
    }

    pub(super) async fn exchange(
        &self,
        request: HttpRequest,
    ) -> (Result<HttpResponse, SendFailure>, Transcript) {
        let mut transcript = Transcript {
            request: Some(Request {
                method: request.method.to_string(),
                url: self.masker.mask(&request.url, 2048),
                headers: self.masker.mask_headers(&request.headers),
                body: self.masker.mask_body(&request.body),
            }),
            response: None,
        };
        if !self.sends {
            let refused = self.http.check(&request.url).err();
            let failure = refused.map_or(SendFailure::OnlyRendered, SendFailure::Blocked);
            return (Err(failure), transcript);
        }
        let left = self.timeout.saturating_sub(self.begun.elapsed());
        let result = self.http.send(request, left).await;
        let result = result.map_err(|failure| match failure {
            SendFailure::NoAnswer(_left) => SendFailure::NoAnswer(self.timeout),
            SendFailure::NotSent(_left) => SendFailure::NotSent(self.timeout),
            other => other,
        });
        match &result {
            Ok(answer) => {
                *self.times.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.times);
                transcript.response = Some(self.response_transcript(answer));
            }
            Err(
                SendFailure::Blocked(_) | SendFailure::Unreachable(_) | SendFailure::NotSent(_),
            ) => transcript.request = None,
            Err(SendFailure::NoAnswer(_) | SendFailure::Unknown(_) | SendFailure::OnlyRendered) => {
            }
        }
        (result, transcript)
    }

    pub(super) fn response_transcript(&self, answer: &HttpResponse) -> Response {
        Response {
            status: answer.status.as_u16(),
            headers: self.masker.mask_headers(&answer.headers),
            body: self.masker.mask_body(&answer.body),
        }
    }

    /// Returns the verdict for receivers whose HTTP status is conclusive.
    pub(super) fn verdict_by_status(&self, result: &Result<HttpResponse, SendFailure>) -> Verdict {
        match result {
            Ok(answer) => answer.verdict(&self.masker, self.start_ms),
            Err(failure) => failure.verdict(&self.masker),
        }
    }

    /// Returns the verdict on a response that is not the provider's own: proxies, login pages and
    /// sleeping instances also return 200.
    pub(super) fn foreign_verdict(&self, answer: &HttpResponse, provider: &str) -> Verdict {
        if !answer.status.is_success() {
            return answer.verdict(&self.masker, self.start_ms);
        }
        let explanation = format!(
            "the response {} is not from {provider}; another server may be using this address",
            answer.status
        );
        Verdict::new_rejected(explanation, Advice::Fix)
    }

    pub(super) fn mask_and_truncate(&self, text: &str) -> String {
        self.masker.mask(text, EXPLANATION_BYTES_MAX)
    }
}
