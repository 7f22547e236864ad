//! Calls about deliveries, and parsers of their responses.

use bellwether_proto::v1;

use super::{
    call::{Call, CallResult, message, parse_empty},
    protocol::DeliverySelection,
};
use crate::{
    data::{BulkTally, Failure, FailureKind, Kind, Transition},
    limits,
};

const SERVICE: &str = "DeliveryService";

pub(crate) fn list(filter: v1::DeliveryFilter, page_token: String) -> Call {
    let request = v1::ListDeliveriesRequest {
        page_size: limits::DELIVERY_PAGE,
        page_token,
        states: filter.states,
        rule_names: filter.rule_names,
        destination_names: filter.destination_names,
        event_id: filter.event_id,
        start: filter.start,
        end: filter.end,
        folded_into: filter.folded_into,
        filter: filter.filter,
        with_counts: false,
    };
    Call::from_request(SERVICE, &request)
}

pub(crate) fn list_last(kind: Kind, name: String) -> Call {
    let mut request = v1::ListDeliveriesRequest {
        page_size: limits::BESIDE_DELIVERIES,
        ..v1::ListDeliveriesRequest::default()
    };
    if kind == Kind::Rule {
        request.rule_names = vec![name];
    } else {
        request.destination_names = vec![name];
    }
    Call::from_request(SERVICE, &request)
}

pub(crate) fn count(filter: String) -> Call {
    let request = v1::ListDeliveriesRequest {
        page_size: 1,
        filter,
        with_counts: true,
        ..v1::ListDeliveriesRequest::default()
    };
    Call::from_request(SERVICE, &request)
}

pub(crate) fn parse_counts(answer: CallResult) -> Result<v1::DeliveryCounts, Failure> {
    let found: v1::ListDeliveriesResponse = message(answer)?;
    let counts = found.counts;
    counts.ok_or_else(|| {
        Failure::new(
            FailureKind::Unsupported,
            "the response has no delivery counts",
        )
    })
}

pub(crate) fn get(id: String) -> Call {
    Call::from_request(SERVICE, &v1::GetDeliveryRequest { id })
}

pub(crate) fn parse_delivery(answer: CallResult) -> Result<v1::Delivery, Failure> {
    let found: v1::GetDeliveryResponse = message(answer)?;
    Ok(found.delivery.unwrap_or_default())
}

pub(crate) fn change_delivery(transition: Transition, id: String) -> Call {
    let call = match transition {
        Transition::SendAgain => Call::from_request(SERVICE, &v1::RetryDeliveryRequest { id }),
        Transition::Cancel => Call::from_request(SERVICE, &v1::CancelDeliveryRequest { id }),
    };
    call.into_write(parse_empty)
}

/// Retries or cancels the next batch of deliveries; a dry run only counts them.
pub(crate) fn change_deliveries(
    transition: Transition,
    chosen: DeliverySelection,
    dry_run: bool,
    page_token: String,
) -> Call {
    let limit = limits::BULK_STEP;
    let (ids, filter) = match chosen {
        DeliverySelection::Ids(ids) => (ids, None),
        DeliverySelection::Matching { filter, .. } => (Vec::new(), Some(filter)),
    };
    let call = match transition {
        Transition::SendAgain => {
            let request = v1::RetryDeliveriesRequest {
                ids,
                filter,
                dry_run,
                limit,
                page_token,
            };
            Call::from_request(SERVICE, &request)
        }
        Transition::Cancel => {
            let request = v1::CancelDeliveriesRequest {
                ids,
                filter,
                dry_run,
                limit,
                page_token,
            };
            Call::from_request(SERVICE, &request)
        }
    };
    let call = call.with_long_timeout();
    if dry_run {
        call
    } else {
        call.into_write(parse_empty)
    }
}

/// Returns the tally of a batch, and the token of the next batch, which is empty at the end.
pub(crate) fn parse_batch(
    transition: Transition,
    answer: CallResult,
) -> Result<(BulkTally, String), Failure> {
    Ok(match transition {
        Transition::SendAgain => {
            let done: v1::RetryDeliveriesResponse = message(answer)?;
            let tally = parse_tally(done.count, done.destinations, &done.skipped);
            (tally, done.next_page_token)
        }
        Transition::Cancel => {
            let done: v1::CancelDeliveriesResponse = message(answer)?;
            let tally = parse_tally(done.count, done.destinations, &done.skipped);
            (tally, done.next_page_token)
        }
    })
}

fn parse_tally(
    count: Option<i32>,
    destinations: Vec<v1::DestinationCount>,
    skipped: &[v1::SkippedDeliveries],
) -> BulkTally {
    let number = |count: Option<i32>| i64::from(count.unwrap_or_default());
    let destinations = destinations.into_iter();
    let skipped = skipped.iter();
    BulkTally {
        count: number(count),
        destinations: destinations
            .map(|one| (one.destination_name, number(one.count)))
            .collect(),
        skipped: skipped
            .map(|one| (skip_reason(one.reason()), number(one.count)))
            .collect(),
    }
}

fn skip_reason(reason: v1::skipped_deliveries::Reason) -> &'static str {
    use v1::skipped_deliveries::Reason;
    match reason {
        Reason::NotFound => "no longer stored",
        Reason::Test => "a test",
        Reason::UnderWay => "in progress",
        Reason::RetriedAlready => "already resent",
        Reason::Folded => "folded into a digest; resend the digest instead",
        Reason::Shadowed => "recorded by a dry run",
        Reason::DestinationGone => "destination no longer exists",
        Reason::Ended => "ended before",
        Reason::Unspecified => "for a reason unknown to this console",
    }
}
