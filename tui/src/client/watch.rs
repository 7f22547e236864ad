//! The live stream of occurrences.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_proto::v1::{
    WatchEventsRequest, event_query_service_client::EventQueryServiceClient,
};
use tokio::{sync::mpsc, time};

use super::{
    carrier::Carrier,
    failure::failure,
    line::LastReceiveTime,
    protocol::{EventFilter, ServerUpdate, Ticket},
};
use crate::{
    data::{EventRow, Failure, FailureKind},
    limits,
};

pub(super) const SILENT: &str = "the service stopped responding";

/// Position from which to resume a stream, even a cancelled one.
#[derive(Clone, Default)]
pub(super) struct ResumePosition(Arc<Mutex<String>>);

impl ResumePosition {
    pub(super) fn new(token: String) -> Self {
        Self(Arc::new(Mutex::new(token)))
    }

    fn resume_token(&self) -> String {
        let token = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        token.clone()
    }

    fn set_token(&self, token: &str) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        token.clone_into(&mut held);
    }
}

pub(super) enum StreamEnd {
    /// The connection broke; resume at the position after reconnecting.
    Broken(Failure),
    /// The service ended the stream because the console was too slow. Resume at the position
    /// immediately.
    Behind,
    /// The service does not offer this stream to this caller.
    Refused(Ticket, Failure),
}

pub(super) async fn follow_events(
    carrier: Carrier,
    generation: Ticket,
    filter: EventFilter,
    position: ResumePosition,
    (updates, last_received): (mpsc::Sender<ServerUpdate>, LastReceiveTime),
) -> StreamEnd {
    let mut service =
        EventQueryServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    let request = WatchEventsRequest {
        query: Some(filter.query()),
        resume_token: position.resume_token(),
    };
    let mut stream = match service.watch_events(request).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return stream_end(generation, &status),
    };
    let mut is_first = true;
    loop {
        let Ok(message) = time::timeout(limits::SILENCE, stream.message()).await else {
            // Parts of a long message are still arriving over a slow connection.
            if last_received.time().elapsed() < limits::SILENCE {
                continue;
            }
            let silent = Failure::new(FailureKind::Unreachable, SILENT);
            return StreamEnd::Broken(silent);
        };
        match message {
            Ok(Some(message)) => {
                let is_same = message.resume_token == position.resume_token() && !message.gap;
                if is_same && !is_first {
                    // The message is only a keepalive.
                    continue;
                }
                is_first = false;
                position.set_token(&message.resume_token);
                let item = ServerUpdate::Watched {
                    generation,
                    rows: message
                        .events
                        .into_iter()
                        .flat_map(EventRow::from_event)
                        .collect(),
                    left: message.left_occurrence_ids,
                    token: message.resume_token,
                    gap: message.gap,
                };
                if updates.send(item).await.is_err() {
                    return StreamEnd::Behind;
                }
            }
            Ok(None) => {
                let failure =
                    Failure::new(FailureKind::Unreachable, "the service closed the stream");
                return StreamEnd::Broken(failure);
            }
            Err(status) => return stream_end(generation, &status),
        }
    }
}

fn stream_end(generation: Ticket, status: &tonic::Status) -> StreamEnd {
    if status.code() == tonic::Code::ResourceExhausted {
        return StreamEnd::Behind;
    }
    let failure = failure(status);
    match failure.kind {
        FailureKind::Unsupported | FailureKind::Denied | FailureKind::Invalid => {
            StreamEnd::Refused(generation, failure)
        }
        _ => StreamEnd::Broken(failure),
    }
}
