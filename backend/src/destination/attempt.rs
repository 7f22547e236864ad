//! What every attempt over HTTP has in common: headers, transcript, time.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tokio::time::Instant;

use super::{
    Advice, ChatThread, Verdict,
    http::{Answer, HttpClient, HttpRequest, SendFailure, USER_AGENT},
    outlets::Outlets,
    times::ExchangeTimes,
    transcript::{EXPLANATION_BYTES_MAX, Masker},
};
use crate::{
    domain::{
        Content, RecordId, TemplateLanguage, TraceContext, Transcript,
        delivery::{Recipients, Request, Response},
    },
    message::Context,
};

/// One attempt: what it is about, and how long it may take.
#[derive(Debug)]
pub(crate) struct AttemptContext<'a> {
    /// The delivery.
    pub(super) id: RecordId,
    /// The rule that notified; none for a test.
    pub(super) rule: Option<RecordId>,
    /// What there is to tell.
    pub(super) content: &'a Content,
    /// What is reported beside it.
    pub(super) around: Context<'a>,
    /// The language of the templates of the destination as it is now.
    pub(super) template_language: TemplateLanguage,
    /// The first delivery about what this one updates.
    pub(super) opening: Option<RecordId>,
    /// The message in a chat that this one answers.
    pub(super) thread: Option<&'a ChatThread>,
    /// The addresses of a mail that get no further attempt.
    pub(super) recipients: &'a Recipients,
    /// When the attempt began, in milliseconds since 1970.
    pub(super) start_ms: i64,
    /// When the attempt began.
    pub(super) begun: Instant,
    /// Timeout of the whole attempt, however many requests it needs.
    pub(super) timeout: Duration,
    /// What a receiver's own spans follow from.
    pub(super) trace: Option<TraceContext>,
    /// Knows the destination's secrets.
    pub(super) masker: Masker,
    /// What requests go through.
    pub(super) http: HttpClient,
    /// Whether requests leave; else they are only rendered.
    pub(super) sends: bool,
    /// The times of the last exchange.
    pub(super) times: Mutex<Option<ExchangeTimes>>,
    /// What all attempts share.
    pub(super) outlets: &'a Outlets,
}

/// The outcome of an attempt, before anybody looks at the clock.
pub(crate) type Ending = (Verdict, Transcript);

impl AttemptContext<'_> {
    /// The headers that every message carries: its identity, the time, the sender.
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

    /// The attempt's time in seconds since 1970, as signatures state it.
    pub(super) fn timestamp_seconds(&self) -> i64 {
        self.start_ms.div_euclid(1000)
    }

    /// Posts a JSON document.
    pub(super) async fn post_json(
        &self,
        url: String,
        extra: Option<(HeaderName, HeaderValue)>,
        body: impl Into<Bytes>,
    ) -> (Result<Answer, SendFailure>, Transcript) {
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

    /// Sends a request, and keeps what was sent and what came back.
    pub(super) async fn exchange(
        &self,
        request: HttpRequest,
    ) -> (Result<Answer, SendFailure>, Transcript) {
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
                transcript.response = Some(Response {
                    status: answer.status.as_u16(),
                    headers: self.masker.mask_headers(&answer.headers),
                    body: self.masker.mask_body(&answer.body),
                });
            }
            Err(
                SendFailure::Blocked(_) | SendFailure::Unreachable(_) | SendFailure::NotSent(_),
            ) => transcript.request = None,
            Err(SendFailure::NoAnswer(_) | SendFailure::Unknown(_) | SendFailure::OnlyRendered) => {
            }
        }
        (result, transcript)
    }

    /// The verdict when the HTTP status says it all.
    pub(super) fn judge(&self, result: &Result<Answer, SendFailure>) -> Verdict {
        match result {
            Ok(answer) => answer.verdict(&self.masker, self.start_ms),
            Err(failure) => failure.verdict(&self.masker),
        }
    }

    /// The verdict on an answer that cannot be the provider's own when it means success: a proxy, a
    /// login page and a sleeping instance answer 200 too.
    pub(super) fn judge_foreign(&self, answer: &Answer, provider: &str) -> Verdict {
        if !answer.status.is_success() {
            return answer.verdict(&self.masker, self.start_ms);
        }
        let explanation = format!(
            "the response {} is not one of {provider}'s: another server uses this address",
            answer.status
        );
        Verdict::rejected(explanation, Advice::Mend)
    }

    /// A sentence of a provider for people: masked, and not too long.
    pub(super) fn explain(&self, text: &str) -> String {
        self.masker.mask(text, EXPLANATION_BYTES_MAX)
    }
}
