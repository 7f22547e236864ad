//! Conversion of bulk selections of deliveries and of their results.

use std::cmp::Reverse;

use bellwether_proto::v1::{self, skipped_deliveries::Reason};

use super::{
    delivery::{NO_DELIVERY_ID, filter},
    to_i32,
};
use crate::{
    domain::RecordId,
    error::Error,
    limits::{BULK_DEFAULT, BULK_MAX, ITEMS_PER_REQUEST_MAX, PAGE_SIZE_MAX},
    ops::delivery::{BulkTally, Selection, SkipReason},
    validate::Violations,
};

pub fn parse_selection(
    ids: &[String],
    wire: Option<v1::DeliveryFilter>,
    (limit, token): (i32, String),
) -> Result<Selection, Error> {
    let mut violations = Violations::default();
    let mut parsed = Vec::with_capacity(ids.len());
    if ids.len() > ITEMS_PER_REQUEST_MAX {
        let message = format!(
            "has {} entries; the limit is {ITEMS_PER_REQUEST_MAX}: select by a `filter`",
            ids.len()
        );
        violations.add("ids", message);
    } else {
        for (at, text) in ids.iter().enumerate() {
            match RecordId::parse(text) {
                Some(id) => parsed.push(id),
                None => violations.add(format!("ids[{at}]"), NO_DELIVERY_ID),
            }
        }
    }
    match (ids, &wire) {
        ([], None) => violations.add("ids", "is required: deliveries, or a `filter`"),
        ([_, ..], Some(_)) => violations.add("filter", "is not allowed with `ids`"),
        ([_, ..], None) if !token.is_empty() => {
            violations.add(
                "pageToken",
                "is allowed only with a `filter`; `ids` are processed in one call",
            );
        }
        _ => {}
    }
    let limit = match usize::try_from(limit) {
        Ok(0) => BULK_DEFAULT,
        Ok(limit) => limit.min(BULK_MAX),
        Err(_) => {
            let message =
                format!("is negative; use 1 to {BULK_MAX}, or omit it for {BULK_DEFAULT}");
            violations.add("limit", message);
            BULK_DEFAULT
        }
    };
    let filter = wire.map(|wire| filter("filter.", wire, &mut violations));
    violations.finish()?;
    Ok(match filter {
        None => Selection::Ids(parsed),
        Some(filter) => Selection::Matching {
            filter,
            limit,
            token,
        },
    })
}

pub fn retry_response(tally: BulkTally, warnings: Vec<String>) -> v1::RetryDeliveriesResponse {
    let retried = |(id, new): &(RecordId, RecordId)| v1::RetriedDelivery {
        id: id.to_string(),
        retried_as: new.to_string(),
    };
    v1::RetryDeliveriesResponse {
        count: Some(to_i32(tally.count)),
        destinations: destinations(&tally),
        skipped: list_skipped(&tally),
        deliveries: tally.handled.iter().map(retried).collect(),
        next_page_token: tally.next_token,
        warnings,
    }
}

pub fn cancel_response(tally: BulkTally, warnings: Vec<String>) -> v1::CancelDeliveriesResponse {
    v1::CancelDeliveriesResponse {
        count: Some(to_i32(tally.count)),
        destinations: destinations(&tally),
        skipped: list_skipped(&tally),
        next_page_token: tally.next_token,
        warnings,
    }
}

fn destinations(tally: &BulkTally) -> Vec<v1::DestinationCount> {
    let mut counts: Vec<_> = tally.destinations.iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(**count));
    counts.truncate(PAGE_SIZE_MAX);
    let counted = |(name, of): (&String, &usize)| v1::DestinationCount {
        destination_name: name.clone(),
        count: Some(to_i32(*of)),
    };
    counts.into_iter().map(counted).collect()
}

fn list_skipped(tally: &BulkTally) -> Vec<v1::SkippedDeliveries> {
    let counted = |(why, of): (&SkipReason, &usize)| v1::SkippedDeliveries {
        reason: skip_reason_to_wire(*why).into(),
        count: Some(to_i32(*of)),
    };
    tally.skipped.iter().map(counted).collect()
}

fn skip_reason_to_wire(why: SkipReason) -> Reason {
    match why {
        SkipReason::NotFound => Reason::NotFound,
        SkipReason::Test => Reason::Test,
        SkipReason::UnderWay => Reason::UnderWay,
        SkipReason::RetriedAlready => Reason::RetriedAlready,
        SkipReason::DestinationGone => Reason::DestinationGone,
        SkipReason::Ended => Reason::Ended,
        SkipReason::Folded => Reason::Folded,
        SkipReason::Shadowed => Reason::Shadowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violated_fields(
        ids: &[&str],
        wire: Option<v1::DeliveryFilter>,
        limit: i32,
        token: &str,
    ) -> Vec<String> {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        match parse_selection(&ids, wire, (limit, token.into())) {
            Err(Error::Invalid(violations)) => violations
                .into_iter()
                .map(|violation| violation.field)
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_invalid_selection_field_is_listed() {
        let id = RecordId::first_at_time(1).to_string();
        let filter = || v1::DeliveryFilter {
            states: vec![9],
            event_id: "x".into(),
            ..v1::DeliveryFilter::default()
        };
        let many = vec!["x"; ITEMS_PER_REQUEST_MAX + 1];
        assert_eq!(violated_fields(&[], None, 0, ""), ["ids"]);
        assert_eq!(violated_fields(&many, None, 0, ""), ["ids"]);
        assert_eq!(
            violated_fields(&[&id, "x"], None, -1, "t"),
            ["ids[1]", "pageToken", "limit"]
        );
        assert_eq!(
            violated_fields(&[&id], Some(filter()), 0, ""),
            ["filter", "filter.states[0]", "filter.eventId"]
        );
    }
}
