//! `DataReceiverService`: intake of events.

mod dialect;
mod idempotency;

use std::sync::Arc;

use bellwether_proto::cloud::{
    Event, EventError, EventStatusResult, EventWrapper, Events, Void,
    data_receiver_service_server::DataReceiverService, event_wrapper::EventType,
};
use futures_util::{FutureExt as _, TryStreamExt as _};
use tokio::time::Instant;
use tonic::{
    Code, Request, Response, Status, async_trait,
    codegen::BoxStream,
    metadata::{MetadataMap, MetadataValue},
};

use super::{
    access,
    code::code_label,
    convert::{
        incoming::{event_from_wire, join_violations, truncated_event_from_wire},
        to_i32,
    },
};
use crate::{
    clock::Clock,
    domain::{IncomingEvent, KeyScope, Refusal, TraceContext, event::SOURCE},
    error::{Error, Violation},
    limits::{DIALECT_EVENTS_MAX, EVENTS_PER_REQUEST_MAX, STREAM_BATCH_EVENTS, STREAM_GATHER_TIME},
    ops::{
        client::Caller,
        intake::{IdempotentOutcome, Intake},
        receipt::{self, ReceiptClaim},
    },
    trace::{self, Span, SpanKind},
};
use dialect::NATIVE;
pub use dialect::labels as dialect_words;
use idempotency::REPLAYED;

#[derive(Debug)]
pub struct DataReceiver {
    intake: Intake,
    clock: Arc<dyn Clock>,
}

fn traceparent(metadata: &MetadataMap) -> Option<TraceContext> {
    TraceContext::parse(metadata.get("traceparent")?.to_str().ok()?)
}

#[derive(Debug, Default)]
struct SortedEvents {
    accepted: Vec<IncomingEvent>,
    places: Vec<usize>,
    refused: Vec<Refusal>,
}

impl DataReceiver {
    pub fn new(intake: Intake, clock: Arc<dyn Clock>) -> Self {
        Self { intake, clock }
    }

    /// Checks whether a caller may send the dialect in the metadata.
    ///
    /// # Errors
    /// Returns `PERMISSION_DENIED` if the caller may not send it.
    pub fn admit(caller: &Caller, metadata: &MetadataMap) -> Result<(), Status> {
        Ok(dialect::admit(metadata, caller)?)
    }

    /// Ingests a list on behalf of a caller, once per idempotency key in the metadata.
    ///
    /// # Errors
    /// Returns the errors of `PutEvents`.
    pub async fn receive(
        &self,
        caller: Caller,
        metadata: &MetadataMap,
        request: Events,
    ) -> Result<Response<EventStatusResult>, Status> {
        let (dialect, total) = (dialect::dialect_label(metadata), request.events.len());
        let mut span = Span::with_parent("PutEvents", SpanKind::Server, traceparent(metadata));
        span.set_attribute("rpc.service", || "zenoss.cloud.DataReceiverService");
        span.set_attribute("bellwether.client", || caller.name.to_string());
        span.set_attribute("bellwether.dialect", || dialect);
        let received = match span.context() {
            None => {
                self.receive_from_caller(dialect, caller, metadata, request)
                    .await
            }
            context => {
                // Boxed to keep the future of calls without a trace small.
                let work = Box::pin(self.receive_from_caller(dialect, caller, metadata, request));
                trace::run_in_context(context, work).await
            }
        };
        received.inspect_err(|status| {
            span.fail(status.message());
            self.intake
                .metrics()
                .record_refused(dialect, code_label(status.code()), total);
        })
    }

    async fn receive_from_caller(
        &self,
        dialect: &'static str,
        caller: Caller,
        metadata: &MetadataMap,
        request: Events,
    ) -> Result<Response<EventStatusResult>, Status> {
        dialect::admit(metadata, &caller)?;
        let key = idempotency::idempotency_key(metadata)?;
        let total = request.events.len();
        if total == 0 {
            return Ok(Response::new(EventStatusResult::default()));
        }
        let most = match dialect {
            NATIVE => EVENTS_PER_REQUEST_MAX,
            _ => DIALECT_EVENTS_MAX,
        };
        if total > most {
            let message = format!("has {total} entries; the limit is {most}");
            return Err(Error::invalid("events", message).into());
        }
        let now_ms = self.clock.now_ms();
        caller.meter.take_events(&caller.name, total, now_ms)?;
        let detailed = request.detailed_response;
        let retained = if detailed {
            request.events.clone()
        } else {
            Vec::new()
        };
        let (refused, is_replayed) = match key {
            None => {
                let ingested = self.ingest(dialect, request.events, &caller).await;
                (ingested?, false)
            }
            Some(key) => {
                let (refused, is_replayed) =
                    self.ingest_once(dialect, request, caller, key).await?;
                (
                    refused.into_iter().map(with_invalid_argument).collect(),
                    is_replayed,
                )
            }
        };
        let mut response =
            Response::new(build_result(total, refused, detailed.then_some(retained)));
        if is_replayed {
            let value = MetadataValue::from_static("true");
            response.metadata_mut().insert(REPLAYED, value);
        }
        Ok(response)
    }

    /// Ingests a list. Returns the rejected events in order, with their codes.
    ///
    /// # Errors
    ///
    /// Returns an error if no event was stored although at least one is valid. For a dialect, also
    /// returns an error if only some events were stored, because its sender repeats whole requests,
    /// and does so only after a transient error.
    async fn ingest(
        &self,
        dialect: &'static str,
        events: Vec<Event>,
        caller: &Caller,
    ) -> Result<Vec<(Refusal, Code)>, Error> {
        let metrics = self.intake.metrics();
        let SortedEvents {
            accepted,
            places,
            refused,
        } = self.sort_events(dialect, events, caller);
        let invalid = refused.len();
        let mut refused: Vec<_> = refused.into_iter().map(with_invalid_argument).collect();
        let (mut accepted, mut first) = (accepted.into_iter().peekable(), 0);
        while accepted.peek().is_some() {
            // A native request fits into one part.
            let part: Vec<_> = accepted.by_ref().take(EVENTS_PER_REQUEST_MAX).collect();
            let mut accepted_count = part.len();
            let places = &places[first..][..accepted_count];
            first += accepted_count;
            let submitted = self.intake.submit(part, Some(caller.name.clone())).await?;
            for (at, error) in submitted.failed {
                // A native request fails only if none of its events is stored, one in a dialect if
                // any event is not.
                if dialect != NATIVE || accepted_count == 1 {
                    return Err(error);
                }
                accepted_count -= 1;
                let (place, reason) = (places[at], error.to_string());
                let code = self.refused_status(dialect, error, 1).code();
                refused.push((Refusal { place, reason }, code));
            }
            metrics.record_accepted(dialect, accepted_count, submitted.opened);
        }
        refused.sort_by_key(|(refusal, _)| refusal.place);
        metrics.record_refused(dialect, code_label(Code::InvalidArgument), invalid);
        Ok(refused)
    }

    /// Ingests a list like [`DataReceiver::ingest`] for the first request with this key. For later
    /// requests, returns the first result and `true`.
    async fn ingest_once(
        &self,
        dialect: &'static str,
        request: Events,
        caller: Caller,
        key: String,
    ) -> Result<(Vec<Refusal>, bool), Error> {
        let fingerprint = idempotency::fingerprint(&request);
        let SortedEvents {
            accepted, refused, ..
        } = self.sort_events(dialect, request.events, &caller);
        let refused = receipt::truncate_refusals(refused);
        let claim = ReceiptClaim {
            client: caller.id,
            key,
            fingerprint,
            refused: refused.clone(),
        };
        let (author, metrics) = (Some(caller.name), self.intake.metrics());
        let accepted_count = accepted.len();
        match self.intake.submit_once(accepted, author, claim).await? {
            IdempotentOutcome::Now(opened) => {
                metrics.record_refused(dialect, code_label(Code::InvalidArgument), refused.len());
                metrics.record_accepted(dialect, accepted_count, opened);
                Ok((refused, false))
            }
            IdempotentOutcome::Earlier(refused) => {
                metrics.record_replayed(dialect, accepted_count);
                Ok((refused, true))
            }
        }
    }

    fn sort_events(&self, dialect: &str, events: Vec<Event>, caller: &Caller) -> SortedEvents {
        let now_ms = self.clock.now_ms();
        let incoming = if dialect == NATIVE {
            event_from_wire
        } else {
            truncated_event_from_wire
        };
        let mut sorted = SortedEvents::default();
        for (place, event) in events.into_iter().enumerate() {
            match incoming(event, now_ms).and_then(|event| check_source(&caller.scope, event)) {
                Ok(mut event) => {
                    dialect::identify(dialect, caller.id, &mut event);
                    sorted.places.push(place);
                    sorted.accepted.push(event);
                }
                Err(violations) => sorted.refused.push(Refusal {
                    place,
                    reason: join_violations(&violations),
                }),
            }
        }
        sorted
    }

    /// Ingests the next available events of a stream. Returns whether more can follow.
    async fn ingest_next(
        &self,
        stream: &mut BoxStream<EventWrapper>,
        caller: &Caller,
    ) -> Result<bool, Status> {
        let mut accepted = Vec::new();
        let mut failure = None;
        let mut next = stream.try_next().await;
        let until = Instant::now() + STREAM_GATHER_TIME;
        loop {
            match next
                .map(|wrapper| wrapper.map(|wrapper| self.unwrap_event(wrapper, &caller.scope)))
            {
                Ok(Some(Ok(event))) => accepted.push(event),
                Ok(Some(Err(error))) => failure = Some(self.refused_status(NATIVE, error, 1)),
                Ok(None) => break,
                Err(status) => failure = Some(status),
            }
            if failure.is_some() || accepted.len() >= STREAM_BATCH_EVENTS {
                break;
            }
            let there = stream.try_next().now_or_never();
            next = match there {
                Some(next) => next,
                // Events sent together are processed together, even if they arrive in several
                // frames.
                None => match tokio::time::timeout_at(until, stream.try_next()).await {
                    Ok(next) => next,
                    Err(_elapsed) => break,
                },
            };
        }
        let goes_on = !accepted.is_empty();
        if goes_on {
            self.wait_for_rate(caller, accepted.len()).await;
            let author = Some(caller.name.clone());
            let mut accepted_count = accepted.len();
            let submitted = self.intake.submit(accepted, author).await;
            let submitted =
                submitted.map_err(|error| self.refused_status(NATIVE, error, accepted_count))?;
            let mut first = None;
            for (_, error) in submitted.failed {
                accepted_count -= 1;
                let status = self.refused_status(NATIVE, error, 1);
                first = first.or(Some(status));
            }
            let metrics = self.intake.metrics();
            metrics.record_accepted(NATIVE, accepted_count, submitted.opened);
            if let Some(status) = first {
                return Err(status);
            }
        }
        failure.map_or(Ok(goes_on), Err)
    }

    fn refused_status(&self, dialect: &'static str, error: Error, events: usize) -> Status {
        let status = Status::from(error);
        self.intake
            .metrics()
            .record_refused(dialect, code_label(status.code()), events);
        status
    }

    /// Waits until the caller may send further events. A stream is slowed down, not rejected.
    async fn wait_for_rate(&self, caller: &Caller, count: usize) {
        while let Err(wait) = caller.meter.try_events(count, self.clock.now_ms()) {
            let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            let until_ms = self.clock.now_ms().saturating_add(wait_ms);
            tokio::select! {
                () = self.clock.wait_until(until_ms) => {}
                () = caller.revoked.cancelled() => return,
            }
        }
    }

    fn unwrap_event(
        &self,
        wrapper: EventWrapper,
        scope: &KeyScope,
    ) -> Result<IncomingEvent, Error> {
        let Some(EventType::Canonical(event)) = wrapper.event_type else {
            return Err(Error::invalid("canonical", "is required"));
        };
        let event = event_from_wire(event, self.clock.now_ms());
        let event = event.and_then(|event| check_source(scope, event));
        event.map_err(|violations| {
            let inside =
                |it: Violation| Violation::new(format!("canonical.{}", it.field), it.description);
            Error::Invalid(violations.into_iter().map(inside).collect())
        })
    }
}

#[async_trait]
impl DataReceiverService for DataReceiver {
    async fn put_events(
        &self,
        request: Request<Events>,
    ) -> Result<Response<EventStatusResult>, Status> {
        let caller = access::caller(&request)?;
        let (metadata, _, request) = request.into_parts();
        self.receive(caller, &metadata, request).await
    }

    async fn put_event(
        &self,
        request: Request<BoxStream<EventWrapper>>,
    ) -> Result<Response<Void>, Status> {
        let caller = access::caller(&request)?;
        idempotency::check_no_key(request.metadata())?;
        let mut stream = request.into_inner();
        while self.ingest_next(&mut stream, &caller).await? {}
        Ok(Response::new(Void {}))
    }
}

fn check_source(scope: &KeyScope, event: IncomingEvent) -> Result<IncomingEvent, Vec<Violation>> {
    if scope.sources.is_empty() {
        return Ok(event);
    }
    let source = event.dimensions.get(SOURCE).map_or("", String::as_str);
    if scope.sources.contains(source) {
        return Ok(event);
    }
    let own: Vec<_> = scope.sources.iter().map(|it| format!("`{it}`")).collect();
    let own = own.join(", ");
    let message = if source.is_empty() {
        format!("is missing; this key may send events only from {own}")
    } else {
        format!("is `{source}`; this key may send events only from {own}")
    };
    Err(vec![Violation::new("dimensions.source", message)])
}

fn with_invalid_argument(refusal: Refusal) -> (Refusal, Code) {
    (refusal, Code::InvalidArgument)
}

/// Builds the response to a list. `retained` contains the events if the caller requested rejected
/// events in the response.
fn build_result(
    total: usize,
    refused: Vec<(Refusal, Code)>,
    retained: Option<Vec<Event>>,
) -> EventStatusResult {
    let mut result = EventStatusResult {
        failed: to_i32(refused.len()),
        succeeded: to_i32(total.saturating_sub(refused.len())),
        message: match refused.first() {
            None => "all events were accepted".into(),
            Some((Refusal { place, reason }, _)) => {
                let failed = refused.len();
                format!("{failed} of {total} events were rejected; events[{place}]: {reason}")
            }
        },
        ..EventStatusResult::default()
    };
    if let Some(mut retained) = retained {
        let detail = |(refusal, code): (Refusal, Code)| EventError {
            error: format!("events[{}]: {}", refusal.place, refusal.reason),
            event: retained.get_mut(refusal.place).map(std::mem::take),
            index: Some(to_i32(refusal.place)),
            code: code.into(),
        };
        result.failed_events = refused.into_iter().map(detail).collect();
    }
    result
}
