//! The live stream of occurrences, and the heartbeat that replaces it.

use bellwether_proto::v1::{
    GetCallerRequest, WatchEventsRequest, client_service_client::ClientServiceClient,
    event_query_service_client::EventQueryServiceClient,
};
use tokio::{sync::mpsc, time};

use super::{
    carrier::Carrier,
    failure::failure,
    protocol::{EventFilter, News, Ticket},
};
use crate::{
    data::{EventRow, Failure, FailureKind},
    limits,
};

/// How a stream ended.
pub(super) enum Ended {
    /// The link broke; continue after the token when it is back.
    Broken(Failure, String),
    /// The service ended it because the console read too slowly; continue after the token now.
    Behind(String),
    /// The service does not serve this stream to this caller.
    Refused(Ticket, Failure),
}

/// Follows occurrences until the stream ends.
pub(super) async fn follow(
    carrier: Carrier,
    generation: Ticket,
    filter: EventFilter,
    mut token: String,
    news: mpsc::Sender<News>,
) -> Ended {
    let mut service =
        EventQueryServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    let request = WatchEventsRequest {
        query: Some(filter.query()),
        resume_token: token.clone(),
    };
    let mut stream = match service.watch_events(request).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return ended(generation, &status, token),
    };
    loop {
        match stream.message().await {
            Ok(Some(message)) => {
                token.clone_from(&message.resume_token);
                let item = News::Watched {
                    generation,
                    rows: message
                        .events
                        .into_iter()
                        .flat_map(EventRow::all_of)
                        .collect(),
                    left: message.left_occurrence_ids,
                    token: message.resume_token,
                    gap: message.gap,
                };
                if news.send(item).await.is_err() {
                    return Ended::Behind(token);
                }
            }
            Ok(None) => {
                let failure =
                    Failure::new(FailureKind::Unreachable, "the service ended the stream");
                return Ended::Broken(failure, token);
            }
            Err(status) => return ended(generation, &status, token),
        }
    }
}

fn ended(generation: Ticket, status: &tonic::Status, token: String) -> Ended {
    if status.code() == tonic::Code::ResourceExhausted {
        return Ended::Behind(token);
    }
    let failure = failure(status);
    match failure.kind {
        FailureKind::Unsupported | FailureKind::Denied | FailureKind::Invalid => {
            Ended::Refused(generation, failure)
        }
        _ => Ended::Broken(failure, token),
    }
}

/// Asks who the caller is now and then, so that a broken link is noticed without a stream.
pub(super) async fn heartbeat(carrier: Carrier) -> Ended {
    let mut service = ClientServiceClient::new(carrier);
    loop {
        time::sleep(limits::PING).await;
        let call = service.get_caller(GetCallerRequest {});
        match time::timeout(limits::PING_TIMEOUT, call).await {
            Ok(Ok(_)) => {}
            Ok(Err(status)) => return Ended::Broken(failure(&status), String::new()),
            Err(_elapsed) => {
                let failure =
                    Failure::new(FailureKind::Unreachable, "the service stopped answering");
                return Ended::Broken(failure, String::new());
            }
        }
    }
}
