//! Handles a request of a sender that uses another dialect.

use std::borrow::Cow;

use bellwether_process::listen::Permit;
use bellwether_proto::{
    bulk,
    cloud::{EventStatusResult, Events},
    repair,
    v1::{
        AnnotateRequest, AnnotateResponse, AnnotationItem, GetEventRequest, GetEventResponse,
        ReceiveWebhookResponse, SearchEventsResponse,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header, request};
use hyper::body::Incoming as Body;
use prost::Message;
use tokio::time::Instant;
use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
};

use super::{
    Exchange, Handler, Owner, Reply, body,
    compression::{self, ContentEncoding},
    headers,
};
use crate::{
    dialect::{
        self, Dialect, DialectError, Endpoint, ErrorContext, IncomingRequest, Note, Outcome,
        RejectedItems, SenderKey, Success, Translation,
    },
    limits,
    problem::Problem,
};

const PUT_EVENTS: &str = "/zenoss.cloud.DataReceiverService/PutEvents";
const RECEIVE_WEBHOOK: &str = "/bellwether.v1.IntakeMappingService/ReceiveWebhook";
const GET_EVENT: &str = "/bellwether.v1.EventQueryService/GetEvent";
const SEARCH_EVENTS: &str = "/bellwether.v1.EventQueryService/SearchEvents";
const ANNOTATE: &str = "/bellwether.v1.EventManagementService/Annotate";

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Metadata with the dialect, for which the backend checks the client's permission.
const DIALECT: &str = "bellwether-dialect";
const KEY_IN_PATH: &str = "bellwether-key-in-path";

struct FailedRequest {
    error: DialectError,
    code: Code,
    headers: HeaderMap,
}

impl From<Problem> for Box<FailedRequest> {
    fn from(problem: Problem) -> Self {
        Self::new(FailedRequest {
            error: DialectError::from(&problem),
            code: problem.code,
            headers: problem.headers(),
        })
    }
}

impl From<DialectError> for Box<FailedRequest> {
    fn from(error: DialectError) -> Self {
        Self::new(FailedRequest {
            error,
            code: Code::InvalidArgument,
            headers: HeaderMap::new(),
        })
    }
}

struct SenderBody {
    body: Bytes,
    _memory: body::BodyMemory,
}

struct SenderRequest<'a> {
    dialect: &'static Dialect,
    endpoint: &'static Endpoint,
    captures: &'a [&'a str],
    start: Instant,
    exchange: Exchange<'a>,
}

impl Handler {
    pub(super) async fn serve_sender(
        &self,
        at: usize,
        captures: &[&str],
        request: Request<Body>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let (dialect, endpoint) = self.senders.endpoint(at);
        let sending = SenderRequest {
            dialect,
            endpoint,
            captures,
            start: Instant::now(),
            exchange,
        };
        let (head, incoming) = request.into_parts();
        let taking = self.handle_sender(&sending, &head, incoming, permit);
        let acquired = tokio::time::timeout_at(exchange.deadline, taking).await;
        acquired
            .unwrap_or_else(|_elapsed| Err(Problem::deadline_exceeded().into()))
            .unwrap_or_else(|failed| {
                let context = ErrorContext {
                    headers: &head.headers,
                    request_id: exchange.request_id.to_str().unwrap_or_default(),
                    took: sending.start.elapsed(),
                };
                let answer = (dialect.error_response)(&context, &failed.error);
                Reply::to_sender(answer, failed.code, failed.headers)
            })
    }

    async fn handle_sender(
        &self,
        sending: &SenderRequest<'_>,
        head: &request::Parts,
        stream: Body,
        permit: &mut Option<Permit<Owner>>,
    ) -> Result<Reply, Box<FailedRequest>> {
        let (dialect, endpoint) = (sending.dialect, sending.endpoint);
        let captures = dialect::decode_captures(sending.captures)
            .ok_or_else(|| Problem::invalid("the path is not valid percent-encoding"))?;
        let fresh = format!("{:032x}", rand::random::<u128>());
        let incoming = |body| IncomingRequest {
            captures: &captures,
            query: head.uri.query().unwrap_or_default(),
            headers: &head.headers,
            body,
            now_ms: jiff::Timestamp::now().as_millisecond(),
            started_ms: self.started_ms,
            fresh: &fresh,
            settings: &self.config.senders,
        };
        // If the key is in the body, or no key is required, the memory for the body comes from the
        // pool for unauthenticated clients.
        let mut owner = Owner::anonymous(sending.exchange.peer);
        let is_key_first = dialect.key_in_body.is_none() && !endpoint.open;
        if is_key_first {
            let key = dialect::find_key(dialect, endpoint, &incoming(&[]));
            let metadata = sender_metadata(&head.headers, &sending.exchange, dialect, &key);
            owner = match self.identify_client(&metadata, sending.exchange).await {
                Ok(owner) => owner,
                Err(status) => {
                    body::drain_body(stream, limits::PRE_AUTH_BODY_BYTES).await;
                    return Err(self.rejection(&status));
                }
            };
        }
        let sent = self.read_body(sending, head, stream, owner).await?;
        let incoming = incoming(&sent.body);
        let key = dialect::find_key(dialect, endpoint, &incoming);
        let metadata = sender_metadata(&head.headers, &sending.exchange, dialect, &key);
        if !is_key_first && !endpoint.open {
            let recognised = self.identify_client(&metadata, sending.exchange).await;
            owner = recognised.map_err(|status| self.rejection(&status))?;
        }
        *permit = Some(self.admit_request(owner)?);
        let reading = (endpoint.read)(&incoming);
        if endpoint.open {
            let reading = reading?;
            return Ok(finish_reply(
                (reading.success, &reading.refused),
                &Outcome::default(),
                HeaderMap::new(),
            )?);
        }
        // The backend is called even if the body is invalid, so that errors reveal no information
        // without a valid key.
        let reading = match reading {
            Ok(reading) => reading,
            Err(error) => {
                self.put_events(Vec::new(), metadata, sending.exchange)
                    .await?;
                return Err(error.into());
            }
        };
        self.forward_events(reading, metadata, sending).await
    }

    /// Reads and decompresses the body of a request. Its memory is reserved until it is dropped.
    async fn read_body(
        &self,
        sending: &SenderRequest<'_>,
        head: &request::Parts,
        stream: Body,
        owner: Owner,
    ) -> Result<SenderBody, Box<FailedRequest>> {
        let usual = self.config.body_limit_bytes;
        let limit_bytes = sending.dialect.bodies.limit_bytes(usual);
        let encoding = compression::content_encoding(&head.headers)?;
        let all = match owner {
            Owner::Key(_) => &self.memory,
            Owner::Address(_) => &self.pre_auth_body_memory,
        };
        let mut memory = body::BodyMemory::new(all, owner);
        let mut body = self
            .read(stream, limit_bytes, &mut memory, sending.exchange)
            .await?;
        if encoding == ContentEncoding::Gzip {
            body = compression::decompress(&body, limit_bytes)?;
            memory.reserve(body.len())?;
        }
        if (sending.dialect.is_json)(&head.headers) {
            let repaired = repair::repair_json(&body);
            if repaired.len() != body.len() || matches!(repaired, Cow::Owned(_)) {
                memory.reserve(repaired.len())?;
                body = Bytes::copy_from_slice(&repaired);
            }
        }
        Ok(SenderBody {
            body,
            _memory: memory,
        })
    }

    fn rejection(&self, status: &Status) -> Box<FailedRequest> {
        let problem = Problem::from_status(status, self.config.body_limit_bytes);
        let mut failed = Box::<FailedRequest>::from(problem);
        headers::copy_response_headers(status.metadata(), &mut failed.headers);
        failed
    }

    #[expect(clippy::too_many_lines, reason = "one step after another")]
    async fn forward_events(
        &self,
        reading: Translation,
        metadata: MetadataMap,
        sending: &SenderRequest<'_>,
    ) -> Result<Reply, Box<FailedRequest>> {
        let exchange = sending.exchange;
        let mut outcome = Outcome::default();
        let mut passed = HeaderMap::new();
        if let Some(webhook) = reading.webhook {
            let (answer, headers): (ReceiveWebhookResponse, _) = self
                .call_backend(RECEIVE_WEBHOOK, &webhook, metadata, exchange)
                .await?;
            outcome.result.succeeded = answer.succeeded.unwrap_or_default();
            outcome.dropped = answer.dropped.unwrap_or_default();
            outcome.validation = answer.validation_response;
            outcome.reply = answer.reply;
            outcome.took = sending.start.elapsed();
            return Ok(finish_reply(
                (reading.success, &reading.refused),
                &outcome,
                headers,
            )?);
        }
        if let Some(search) = reading.search {
            let (listed, headers): (SearchEventsResponse, _) = self
                .call_backend(SEARCH_EVENTS, &search, metadata, exchange)
                .await?;
            outcome.listed = listed;
            outcome.took = sending.start.elapsed();
            return Ok(finish_reply(
                (reading.success, &reading.refused),
                &outcome,
                headers,
            )?);
        }
        if let Some(id) = reading.query {
            let query = GetEventRequest {
                id,
                ..GetEventRequest::default()
            };
            let (answer, headers): (GetEventResponse, _) = self
                .call_backend(GET_EVENT, &query, metadata, exchange)
                .await?;
            outcome.found = answer.result;
            outcome.took = sending.start.elapsed();
            return Ok(finish_reply(
                (reading.success, &reading.refused),
                &outcome,
                headers,
            )?);
        }
        let is_note_alone = reading.note.as_ref().is_some_and(|note| note.required);
        if !is_note_alone {
            let mut metadata = metadata.clone();
            let own_key = reading
                .once
                .as_deref()
                .filter(|_| !metadata.contains_key(IDEMPOTENCY_KEY));
            if let Some(value) = own_key.and_then(|key| MetadataValue::try_from(key).ok()) {
                metadata.insert(IDEMPOTENCY_KEY, value);
            }
            let is_known = own_key.is_some();
            match self.put_events(reading.events, metadata, exchange).await {
                Ok((result, beyond, headers)) => {
                    (outcome.result, outcome.beyond, passed) = (result, beyond, headers);
                }
                // The key was derived from the request, so this is a repeat even if the content
                // differs.
                Err(failed) if is_known && failed.code == Code::AlreadyExists => {}
                Err(failed) => return Err(failed),
            }
        }
        if let Some(note) = reading.note {
            let required = note.required;
            match self.annotate(note, metadata, exchange).await {
                Ok(()) => {}
                Err(failed) if required => return Err(failed),
                Err(failed) => outcome.note_lost = Some(failed.error.message),
            }
        }
        outcome.took = sending.start.elapsed();
        Ok(finish_reply(
            (reading.success, &reading.refused),
            &outcome,
            passed,
        )?)
    }

    async fn put_events(
        &self,
        events: Vec<bellwether_proto::cloud::Event>,
        metadata: MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<(EventStatusResult, usize, HeaderMap), Box<FailedRequest>> {
        let mut request = Events {
            detailed_response: false,
            events,
        };
        let beyond = bulk::shrink(&mut request);
        let (result, headers) = self
            .call_backend(PUT_EVENTS, &request, metadata, exchange)
            .await?;
        Ok((result, beyond, headers))
    }

    async fn annotate(
        &self,
        note: Note,
        metadata: MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<(), Box<FailedRequest>> {
        let item = AnnotationItem {
            event_id: note.event_id,
            annotation: note.text,
            ..AnnotationItem::default()
        };
        let request = AnnotateRequest {
            annotations: vec![item],
        };
        let (answer, _): (AnnotateResponse, _) = self
            .call_backend(ANNOTATE, &request, metadata, exchange)
            .await?;
        let refused = answer.annotation_responses.into_iter();
        match refused.map(|it| it.error).find(|error| !error.is_empty()) {
            None => Ok(()),
            Some(error) => Err(Problem::new(Code::NotFound, error).into()),
        }
    }

    /// Calls a method. Returns the response and the metadata that the client may see.
    async fn call_backend<M: Message + Default>(
        &self,
        method: &'static str,
        request: &impl Message,
        metadata: MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<(M, HeaderMap), Box<FailedRequest>> {
        let path = http::uri::PathAndQuery::from_static(method);
        let left = exchange.deadline.saturating_duration_since(Instant::now());
        let message = request.encode_to_vec().into();
        let mut passed = HeaderMap::new();
        match self.upstream.call(path, metadata, message, left).await {
            Ok((metadata, answer)) => {
                headers::copy_response_headers(&metadata, &mut passed);
                let answer = M::decode(answer).map_err(|_unreadable| Problem::internal())?;
                Ok((answer, passed))
            }
            Err(status) => Err(self.rejection(&status)),
        }
    }
}

/// Builds the response, which is an error if it cannot report rejected events.
fn finish_reply(
    (success, refused): (Success, &RejectedItems),
    outcome: &Outcome,
    headers: HeaderMap,
) -> Result<Reply, DialectError> {
    let answer = match success {
        Success::Whole(answer) => match DialectError::from_rejected(refused, outcome) {
            Some(error) => return Err(error),
            None => answer(outcome),
        },
        Success::Partial(answer) => answer(outcome),
    };
    Ok(Reply::to_sender(answer, Code::Ok, headers))
}

/// Returns the metadata of a call for a sender: its dialect, and the key in the header that the
/// backend reads.
fn sender_metadata(
    headers: &HeaderMap,
    exchange: &Exchange<'_>,
    dialect: &Dialect,
    key: &SenderKey,
) -> MetadataMap {
    let mut own = headers.clone();
    own.remove(header::AUTHORIZATION);
    if let SenderKey::InPath(key) | SenderKey::Apart(key) = key
        && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {key}"))
    {
        value.set_sensitive(true);
        own.insert(header::AUTHORIZATION, value);
    }
    let mut metadata = headers::request_metadata(&own, exchange);
    metadata.insert(DIALECT, MetadataValue::from_static(dialect.name));
    if matches!(key, SenderKey::InPath(_)) {
        metadata.insert(KEY_IN_PATH, MetadataValue::from_static("true"));
    }
    metadata
}
