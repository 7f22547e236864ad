//! Cancels the pages that no one needs any more: those that wait when someone acknowledges, or when the response
//! ends, and what would report to receivers that none of them has reached.

use std::collections::HashSet;

use crate::{
    domain::{
        Attempt, Delivery, DeliveryState, Name, Notified, Occurrence, Outcome, RecordId, Response,
        ResponseState,
    },
    limits::THREAD_LOOKED_AT_MAX,
    store::{
        Changes, Direction, EngineError, Index, Store, Stored,
        engine::Range,
        record::{by_response, bytes::Key},
    },
};

/// Deliveries that are read at a time.
const PAGE: usize = 64;
/// How long a page waits for its first attempt before it counts as one that is not sent now, in milliseconds.
const FRESH_MS: i64 = 5_000;
/// The outcomes of attempts after which the receiver may have the message.
const MAY_HAVE_ARRIVED: [Option<Outcome>; 3] =
    [None, Some(Outcome::Unknown), Some(Outcome::Delivered)];

/// A receiver of pages: a destination, and the contact that it belongs to.
type Receiver = (RecordId, Option<Name>);

fn receiver(delivery: &Delivery) -> Receiver {
    let contact = delivery.content.contact.as_ref();
    (delivery.destination, contact.map(|it| it.name.clone()))
}

/// Cancels what no one needs any more once a change of an occurrence is stored; `new` are the deliveries that it
/// causes.
///
/// # Errors
/// Those of the store.
pub(crate) async fn cancel_pages(
    store: &Store,
    (before, after): (&Occurrence, &Occurrence),
    new: &mut [Delivery],
    now_ms: i64,
    changes: &mut Changes,
) -> Result<(), EngineError> {
    for entry in &after.notified {
        let Some(response) = entry.response.as_deref() else {
            continue;
        };
        if is_over(response) && state_of(before, response.id) != Some(response.state) {
            let sent = sent(store, after, (entry, response)).await?;
            let reached = cancel_waiting(store, sent, now_ms, changes).await?;
            let paged = response.paged.iter().map(|it| {
                let contact = it.contact.as_ref();
                (it.destination.0, contact.map(|it| it.name.clone()))
            });
            let missed: HashSet<_> = paged.filter(|it| !reached.contains(it)).collect();
            let reports = new.iter_mut().filter(|it| {
                let is_waiting = it.state.due_ms().is_some();
                it.rule == Some(entry.rule) && it.content.clear && is_waiting
            });
            for report in reports.filter(|it| missed.contains(&receiver(it))) {
                *report = cancelled(report, now_ms);
            }
        }
    }
    Ok(())
}

fn is_over(response: &Response) -> bool {
    let over = [ResponseState::Acknowledged, ResponseState::Ended];
    over.contains(&response.state)
}

fn state_of(occurrence: &Occurrence, id: RecordId) -> Option<ResponseState> {
    let mut notified = occurrence.notified.iter();
    let response = notified.find_map(|it| it.response.as_deref().filter(|it| it.id == id));
    response.map(|it| it.state)
}

/// Reads what was sent to the receivers of a response by its rule since it began, newest first.
async fn sent(
    store: &Store,
    occurrence: &Occurrence,
    (entry, response): (&Notified, &Response),
) -> Result<Vec<Stored<Delivery>>, EngineError> {
    let (index, prefix) = match entry.group {
        Some(group) => (Index::DeliveryByGroup, Key::new().id(group).build()),
        None => (
            Index::DeliveryByEvent,
            Key::new().event(occurrence.event).build(),
        ),
    };
    let mut range = Range::under(&prefix);
    let since = occurrence.key.time_ms().min(response.id.time_ms());
    range.start = [&prefix[..], &RecordId::first_at(since).to_bytes()].concat();
    let is_paged = |it: &Delivery| {
        let destination = it.destination;
        let contact = it.content.contact.as_ref().map(|it| &it.name);
        let mut paged = response.paged.iter();
        let is_to = paged.any(|it| {
            it.destination.0 == destination && it.contact.as_ref().map(|it| &it.name) == contact
        });
        is_to && !it.test && it.rule == Some(entry.rule)
    };
    let mut found = Vec::new();
    for _ in 0..THREAD_LOOKED_AT_MAX.div_ceil(PAGE) {
        let entries = store
            .engine()
            .entries(index, range.clone(), Direction::Descending, PAGE);
        let entries = entries.await?;
        let is_end = entries.len() < PAGE;
        range.end = entries.last().map(|(key, _)| key.clone());
        let keys = entries.into_iter().map(|(_, key)| key).collect();
        let (deliveries, _) = store.get_readable::<Delivery>(keys).await?;
        let deliveries = deliveries.into_iter().flatten();
        found.extend(deliveries.filter(|it| is_paged(&it.value)));
        if is_end {
            break;
        }
    }
    Ok(found)
}

/// Cancels the pages that wait, and what waits to report to receivers that have none; returns the receivers
/// that have one, or may.
async fn cancel_waiting(
    store: &Store,
    sent: Vec<Stored<Delivery>>,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<HashSet<Receiver>, EngineError> {
    let mut reached = HashSet::new();
    let mut reports = Vec::new();
    for stored in &sent {
        let delivery = &stored.value;
        let is_fresh = delivery.create_ms.saturating_add(FRESH_MS) > now_ms;
        let is_waiting = match delivery.state {
            DeliveryState::Retry { .. } => true,
            DeliveryState::Pending { .. } => !is_fresh,
            _ => false,
        };
        if delivery.content.clear {
            reports.extend(is_waiting.then_some(stored));
            continue;
        }
        if is_waiting {
            changes.update(stored, &cancelled(delivery, now_ms));
        }
        let is_over = matches!(
            delivery.state,
            DeliveryState::Dead | DeliveryState::Cancelled
        );
        if !(is_waiting || is_over) || may_have_arrived(store, delivery).await? {
            reached.insert(receiver(delivery));
        }
    }
    let of_missed = reports.into_iter();
    for report in of_missed.filter(|it| !reached.contains(&receiver(&it.value))) {
        changes.update(report, &cancelled(&report.value, now_ms));
    }
    Ok(reached)
}

/// Whether an attempt of a delivery may have reached the receiver.
async fn may_have_arrived(store: &Store, delivery: &Delivery) -> Result<bool, EngineError> {
    if delivery.attempts == 0 {
        return Ok(false);
    }
    let range = Range::under(&delivery.id.to_bytes());
    let attempts = store.page::<Attempt>(range, Direction::Descending, PAGE);
    let attempts = attempts.await?;
    Ok(attempts
        .iter()
        .any(|it| MAY_HAVE_ARRIVED.contains(&it.value.outcome)))
}

/// Whether a delivery is a page of a response that someone acknowledged, or that has ended.
///
/// # Errors
/// Those of the store.
pub(crate) async fn is_unneeded(store: &Store, delivery: &Delivery) -> Result<bool, EngineError> {
    let contact = delivery.content.contact.as_ref();
    let Some(contact) = contact.filter(|_| !delivery.content.clear && !delivery.test) else {
        return Ok(false);
    };
    let over = [ResponseState::Acknowledged, ResponseState::Ended];
    let ranges = over.map(|it| Range::under(&by_response(it).id(contact.response).build()));
    let index = Index::OccurrenceByResponse;
    let found = store
        .engine()
        .entries_in(index, &ranges, Direction::Ascending, 1);
    Ok(found.await?.iter().any(|it| !it.is_empty()))
}

/// Returns a page as it is when no one needs it any more.
pub(crate) fn cancelled(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
        last_error: "no longer needed: the event was acknowledged or closed".into(),
        ..delivery.clone()
    }
}
