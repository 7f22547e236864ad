//! Deeds to many deliveries, and obligations: the requests outward, the answers inward.

use bellwether_proto::v1::{self, skipped_deliveries::Reason};

use super::{
    basic::{millis, severity, timestamp},
    delivery::state_number,
};
use crate::{
    client::{Answer, Chosen, DeliveryFilter},
    data::{BulkTally, Obligation, ObligationFilter},
    limits,
};

pub(super) fn delivery_filter(filter: DeliveryFilter) -> v1::DeliveryFilter {
    v1::DeliveryFilter {
        states: filter.states.into_iter().map(state_number).collect(),
        rule_names: filter.rule_names,
        destination_names: filter.destination_names,
        event_id: filter.event_id,
        start: filter.start_ms.map(timestamp),
        end: filter.end_ms.map(timestamp),
    }
}

fn selection(chosen: Chosen) -> (Vec<String>, Option<v1::DeliveryFilter>) {
    match chosen {
        Chosen::Ids(ids) => (ids, None),
        Chosen::Matching { filter, .. } => (Vec::new(), Some(delivery_filter(filter))),
    }
}

pub(in crate::client) fn retry_deliveries(
    chosen: Chosen,
    dry_run: bool,
    page_token: String,
) -> v1::RetryDeliveriesRequest {
    let (ids, filter) = selection(chosen);
    v1::RetryDeliveriesRequest {
        ids,
        filter,
        dry_run,
        limit: limits::BULK_STEP,
        page_token,
    }
}

pub(in crate::client) fn cancel_deliveries(
    chosen: Chosen,
    dry_run: bool,
    page_token: String,
) -> v1::CancelDeliveriesRequest {
    let (ids, filter) = selection(chosen);
    v1::CancelDeliveriesRequest {
        ids,
        filter,
        dry_run,
        limit: limits::BULK_STEP,
        page_token,
    }
}

pub(in crate::client) fn retried(from: v1::RetryDeliveriesResponse) -> Answer {
    Answer::Bulk {
        tally: tally(from.count, from.destinations, from.skipped),
        next: from.next_page_token,
    }
}

pub(in crate::client) fn cancelled(from: v1::CancelDeliveriesResponse) -> Answer {
    Answer::Bulk {
        tally: tally(from.count, from.destinations, from.skipped),
        next: from.next_page_token,
    }
}

fn tally(
    count: Option<i32>,
    destinations: Vec<v1::DestinationCount>,
    skipped: Vec<v1::SkippedDeliveries>,
) -> BulkTally {
    let number = |count: Option<i32>| i64::from(count.unwrap_or_default());
    BulkTally {
        count: number(count),
        destinations: destinations
            .into_iter()
            .map(|one| (one.destination_name, number(one.count)))
            .collect(),
        skipped: skipped
            .into_iter()
            .map(|one| (reason(one.reason), number(one.count)))
            .collect(),
    }
}

fn reason(number: i32) -> &'static str {
    match Reason::try_from(number) {
        Ok(Reason::NotFound) => "not there any more",
        Ok(Reason::Test) => "a test",
        Ok(Reason::UnderWay) => "under way just now",
        Ok(Reason::RetriedAlready) => "sent again before",
        Ok(Reason::DestinationGone) => "its destination is gone",
        Ok(Reason::Ended) => "ended before",
        Ok(Reason::Unspecified) | Err(_) => "for a reason that this console does not know",
    }
}

pub(in crate::client) fn list_obligations(filter: ObligationFilter) -> v1::ListObligationsRequest {
    v1::ListObligationsRequest {
        page_size: limits::RESOURCE_PAGE,
        page_token: String::new(),
        rule_names: filter.rule_names,
        destination_names: filter.destination_names,
        event_id: filter.event_id,
    }
}

pub(in crate::client) fn obligation(from: v1::Obligation) -> Obligation {
    Obligation {
        rule_name: from.rule_name,
        destination_name: from.destination_name,
        occurrence_id: from.occurrence_id,
        summary: from.summary,
        severity: severity(from.severity),
        notify_ms: millis(from.notify_time),
    }
}
