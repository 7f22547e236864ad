//! Calls about many at once: deeds to deliveries, who is still owed one, and which events a filter
//! leaves.

use bellwether_proto::v1::{
    self, delivery_service_client::DeliveryServiceClient,
    event_query_service_client::EventQueryServiceClient,
};

use super::{Answer, EventFilter, Request, carrier::Carrier, convert, convert::failed};
use crate::{
    data::{Deed, Failure},
    limits,
};

/// Makes the call.
pub(super) async fn make(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    if let Request::GatherEvents { filter, cursor } = request {
        return gather(carrier, filter, cursor).await;
    }
    let mut service =
        DeliveryServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    match request {
        Request::Bulk {
            deed: Deed::SendAgain,
            chosen,
            dry_run,
            page_token,
        } => {
            let request = convert::retry_deliveries(chosen, dry_run, page_token);
            let answer = service.retry_deliveries(request).await.map_err(failed)?;
            Ok(convert::retried(answer.into_inner()))
        }
        Request::Bulk {
            deed: Deed::Cancel,
            chosen,
            dry_run,
            page_token,
        } => {
            let request = convert::cancel_deliveries(chosen, dry_run, page_token);
            let answer = service.cancel_deliveries(request).await.map_err(failed)?;
            Ok(convert::cancelled(answer.into_inner()))
        }
        Request::ListObligations { filter } => {
            let mut rows = Vec::new();
            let mut request = convert::list_obligations(filter);
            loop {
                let answer = service.list_obligations(request.clone()).await;
                let answer = answer.map_err(failed)?.into_inner();
                rows.extend(answer.obligations.into_iter().map(convert::obligation));
                request.page_token = answer.next_page_token;
                let more = !request.page_token.is_empty();
                if !more || rows.len() >= limits::HELD_OBLIGATIONS {
                    return Ok(Answer::Obligations { rows, more });
                }
            }
        }
        _ => Err(convert::misplaced()),
    }
}

/// Reads a page of the events that a filter leaves; before the first, counts them.
async fn gather(carrier: Carrier, filter: EventFilter, cursor: String) -> Result<Answer, Failure> {
    let mut service =
        EventQueryServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    let mut count = None;
    if cursor.is_empty() {
        let query = Some(convert::event_query(filter.clone(), None));
        let answer = service.count_events(v1::CountEventsRequest { query }).await;
        count = answer.map_err(failed)?.into_inner().count.map(i64::from);
    }
    let query = Some(convert::event_query(filter, Some(cursor)));
    let answer = service
        .search_events(v1::SearchEventsRequest { query })
        .await;
    let page = convert::event_page(answer.map_err(failed)?.into_inner());
    Ok(Answer::Gathered { page, count })
}
