//! `DataReceiverService`: taking events in.

use std::sync::Arc;

use bellwether_proto::cloud::{
    Event, EventError, EventStatusResult, EventWrapper, Events, Void,
    data_receiver_service_server::DataReceiverService, event_wrapper::EventType,
};
use futures_util::FutureExt;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{
    access,
    convert::incoming::{incoming, sentence},
};
use crate::{
    clock::Clock,
    domain::{IncomingEvent, Name, Violation},
    error::Error,
    limits::{EVENTS_PER_REQUEST_MAX, STREAM_BATCH_EVENTS},
    ops::intake::Intake,
};

/// Serves intake.
#[derive(Debug)]
pub struct DataReceiver {
    intake: Intake,
    clock: Arc<dyn Clock>,
}

impl DataReceiver {
    /// Puts events into that intake.
    pub fn new(intake: Intake, clock: Arc<dyn Clock>) -> Self {
        Self { intake, clock }
    }

    /// Takes a list in; answers the places of the events that were refused, and why.
    async fn take_in(
        &self,
        events: Vec<Event>,
        author: Name,
    ) -> Result<Vec<(usize, String)>, Error> {
        let now_ms = self.clock.now_ms();
        let mut refused = Vec::new();
        let mut places = Vec::with_capacity(events.len());
        let mut accepted = Vec::with_capacity(events.len());
        for (place, event) in events.into_iter().enumerate() {
            match incoming(event, now_ms) {
                Ok(event) => {
                    places.push(place);
                    accepted.push(event);
                }
                Err(violations) => refused.push((place, sentence(&violations))),
            }
        }
        if !accepted.is_empty() {
            let submitted = self.intake.submit(accepted, Some(author)).await?;
            for (failed, error) in submitted.failed {
                let fault = error.to_string();
                refused.extend(failed.into_iter().map(|at| (places[at], fault.clone())));
            }
            refused.sort_by_key(|(place, _)| *place);
        }
        Ok(refused)
    }

    /// Takes in the next events of a stream that are there; answers whether there may be more.
    async fn take_in_next(
        &self,
        stream: &mut Streaming<EventWrapper>,
        author: &Name,
    ) -> Result<bool, Status> {
        let mut accepted = Vec::new();
        let mut fault = None;
        let mut next = stream.message().await;
        loop {
            match next.map(|wrapper| wrapper.map(|wrapper| self.unwrap(wrapper))) {
                Ok(Some(Ok(event))) => accepted.push(event),
                Ok(Some(Err(error))) => fault = Some(Status::from(error)),
                Ok(None) => break,
                Err(status) => fault = Some(status),
            }
            if fault.is_some() || accepted.len() >= STREAM_BATCH_EVENTS {
                break;
            }
            next = match stream.message().now_or_never() {
                Some(next) => next,
                None => break,
            };
        }
        let goes_on = !accepted.is_empty();
        if goes_on {
            let submitted = self.intake.submit(accepted, Some(author.clone())).await?;
            if let Some((_, error)) = submitted.failed.into_iter().next() {
                return Err(error.into());
            }
        }
        fault.map_or(Ok(goes_on), Err)
    }

    fn unwrap(&self, wrapper: EventWrapper) -> Result<IncomingEvent, Error> {
        let Some(EventType::Canonical(event)) = wrapper.event_type else {
            return Err(Error::invalid("canonical", "is required"));
        };
        incoming(event, self.clock.now_ms()).map_err(|violations| {
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
        let author = access::caller(&request)?.name;
        let request = request.into_inner();
        let total = request.events.len();
        if total == 0 {
            return Ok(Response::new(EventStatusResult::default()));
        }
        if total > EVENTS_PER_REQUEST_MAX {
            let fault = format!("has {total} entries; at most {EVENTS_PER_REQUEST_MAX} are taken");
            return Err(Error::invalid("events", fault).into());
        }
        let mut kept = if request.detailed_response {
            request.events.clone()
        } else {
            Vec::new()
        };
        let refused = self.take_in(request.events, author).await?;
        let count = |count| i32::try_from(count).unwrap_or(i32::MAX);
        let mut result = EventStatusResult {
            failed: count(refused.len()),
            succeeded: count(total - refused.len()),
            message: match refused.first() {
                None => "all events were accepted".into(),
                Some((place, fault)) => {
                    format!(
                        "{} of {total} events were refused; events[{place}]: {fault}",
                        refused.len()
                    )
                }
            },
            failed_events: Vec::new(),
        };
        if request.detailed_response {
            let detail = |(place, error): (usize, String)| EventError {
                error,
                event: kept.get_mut(place).map(std::mem::take),
            };
            result.failed_events = refused.into_iter().map(detail).collect();
        }
        Ok(Response::new(result))
    }

    async fn put_event(
        &self,
        request: Request<Streaming<EventWrapper>>,
    ) -> Result<Response<Void>, Status> {
        let author = access::caller(&request)?.name;
        let mut stream = request.into_inner();
        while self.take_in_next(&mut stream, &author).await? {}
        Ok(Response::new(Void {}))
    }
}
