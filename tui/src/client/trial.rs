//! Tests of a trigger on stored events, with progress.

use bellwether_proto::{
    json,
    v1::{self, trigger_service_client::TriggerServiceClient},
};
use prost::Message;
use serde_json::Value;
use tokio::{sync::mpsc, time};
use tonic::{Code, Status};

use super::{
    call::CallResult,
    carrier::Transport,
    failure::{failure, malformed_response},
    protocol::{Progress, ServerUpdate, Ticket},
};
use crate::{
    data::{Failure, FailureKind},
    limits,
};

pub(super) const METHOD: &str = "TestTrigger";

/// Runs a trigger test to the end. Dropping the future also ends the test in the service.
pub(super) async fn run_trial(
    reach: &mut Transport,
    updates: &mpsc::Sender<ServerUpdate>,
    ticket: Ticket,
    request: &Value,
) -> CallResult {
    let result = run_attempt(reach, updates, ticket, request).await;
    result.map(|result| result.encode_to_vec())
}

async fn run_attempt(
    reach: &mut Transport,
    updates: &mpsc::Sender<ServerUpdate>,
    ticket: Ticket,
    request: &Value,
) -> Result<v1::TestTriggerResponse, Failure> {
    let request = json::from_json::<v1::TestTriggerRequest>(request.to_string().as_bytes());
    let request = request.map_err(|error| malformed_response(&error))?;
    let carrier = reach.carrier.clone();
    let mut service =
        TriggerServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    let mut failed = |status: Status| {
        let failed = failure(&status);
        if failed.is_connection_failure() {
            reach.broken = Some(failed.clone());
        }
        failed
    };
    let begun = service.test_trigger_with_progress(request.clone()).await;
    let mut stream = match begun {
        Ok(answer) => answer.into_inner(),
        // Older services respond once, without progress.
        Err(status) if status.code() == Code::Unimplemented => {
            let answer = time::timeout(limits::TEST_CALL, service.test_trigger(request)).await;
            let answer = answer
                .map_err(|_elapsed| no_response_failure())?
                .map_err(failed)?;
            return Ok(answer.into_inner());
        }
        Err(status) => return Err(failed(status)),
    };
    loop {
        let next = time::timeout(limits::TEST_CALL, stream.message()).await;
        let next = next
            .map_err(|_elapsed| no_response_failure())?
            .map_err(&mut failed)?;
        let Some(next) = next else {
            return Err(Failure::new(
                FailureKind::Internal,
                "the service ended the test run without a result",
            ));
        };
        if let Some(result) = next.result {
            return Ok(result);
        }
        let _closed = updates
            .send(ServerUpdate::Progress(ticket, parse_progress(&next)))
            .await;
    }
}

fn no_response_failure() -> Failure {
    let seconds = limits::TEST_CALL.as_secs();
    Failure::new(
        FailureKind::TimedOut,
        format!("no progress from the service in {seconds} s"),
    )
}

fn parse_progress(from: &v1::TestTriggerWithProgressResponse) -> Progress {
    Progress {
        matched: from.matched.unwrap_or_default(),
        matched_by_saved: from.matched_by_saved,
        scanned: from.scanned.unwrap_or_default(),
        reached_ms: from.reached_time,
        start_ms: from.time_range.and_then(|span| span.start),
    }
}
