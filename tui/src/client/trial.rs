//! Tries a trigger on stored events and tells how far that is.

use bellwether_proto::v1::{self, trigger_service_client::TriggerServiceClient};
use tokio::{sync::mpsc, time};
use tonic::{Code, Status};

use super::{Answer, News, Progress, Ticket, carrier::Carrier, convert};
use crate::{
    data::{Failure, FailureKind, TriggerSpec},
    limits,
};

/// Tries it to the end. Whoever drops the call ends the try in the service as well.
pub(super) async fn follow(
    carrier: Carrier,
    news: mpsc::Sender<News>,
    ticket: Ticket,
    (spec, start_ms): (TriggerSpec, Option<i64>),
) -> Result<Answer, Failure> {
    let failed = |status: Status| convert::failure(&status);
    let mut service =
        TriggerServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    let request = convert::test_trigger(spec, start_ms);
    let begun = service.test_trigger_with_progress(request.clone()).await;
    let mut stream = match begun {
        Ok(answer) => answer.into_inner(),
        // An older service does it in one answer.
        Err(status) if status.code() == Code::Unimplemented => {
            let answer = time::timeout(limits::TEST_CALL, service.test_trigger(request)).await;
            let answer = answer.map_err(|_elapsed| silent())?.map_err(failed)?;
            return Ok(convert::trigger_test(answer.into_inner()));
        }
        Err(status) => return Err(failed(status)),
    };
    loop {
        let next = time::timeout(limits::TEST_CALL, stream.message()).await;
        let Some(next) = next.map_err(|_elapsed| silent())?.map_err(failed)? else {
            return Err(Failure::new(
                FailureKind::Internal,
                "the service ended the try without a result",
            ));
        };
        if let Some(result) = next.result {
            return Ok(convert::trigger_test(result));
        }
        let _closed = news.send(News::Progress(ticket, progress(&next))).await;
    }
}

fn silent() -> Failure {
    let seconds = limits::TEST_CALL.as_secs();
    Failure::new(
        FailureKind::TimedOut,
        format!("the service did not get any further within {seconds} s"),
    )
}

fn progress(from: &v1::TestTriggerWithProgressResponse) -> Progress {
    Progress {
        matched: from.matched.unwrap_or_default(),
        matched_by_saved: from.matched_by_saved,
        scanned: from.scanned.unwrap_or_default(),
        reached_ms: from.reached_time,
        start_ms: from.time_range.and_then(|span| span.start),
    }
}
