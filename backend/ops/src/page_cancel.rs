//! Cancels messages that became unnecessary because someone acknowledged or the response ended:
//! waiting pages, and the reports of this to receivers that no page has reached.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    domain::{
        Delivery, DeliveryState, Notified, Occurrence, PagedContact, PagedMethod, RecordId,
        Response, ResponseState, ThreadState,
    },
    store::{
        Changes, Direction, EngineError, Index, Store, Stored,
        engine::Range,
        record::{response_prefix, thread_prefix},
    },
};

const PAGE: usize = 64;
/// Time within which a page normally gets its first attempt, in milliseconds. After that the page
/// counts as waiting.
const FRESH_MS: i64 = 5_000;

/// A receiver of pages: a destination, and the contact that has it as a method.
type Receiver = (RecordId, Option<PagedMethod>);

/// Returns whether a delivery is for a receiver. Deliveries of earlier versions have no method.
fn is_for_receiver(delivery: &Delivery, receiver: Option<&PagedMethod>) -> bool {
    match (&delivery.content.contact, receiver) {
        (Some(contact), Some((name, method))) => {
            contact.name == *name && (contact.method == *method || contact.method.is_empty())
        }
        (contact, receiver) => contact.is_none() && receiver.is_none(),
    }
}

/// Cancels the deliveries that changes of occurrences make unnecessary. `new` are the deliveries
/// created by the changes.
pub(crate) async fn cancel_pages(
    store: &Store,
    changed: Vec<(&Occurrence, &Occurrence)>,
    new: Vec<&mut Delivery>,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<(), EngineError> {
    let mut over = Vec::new();
    for (before, after) in changed {
        for entry in &after.notified {
            let response = entry.response.as_deref().filter(|it| has_ended(it));
            let ended = response.filter(|it| response_state(before, it.id) != Some(it.state));
            if let Some(response) = ended {
                let all = CancelledReceivers::for_response(response).into_iter();
                over.extend(all.map(|to| (after, entry, response, to)));
            }
        }
    }
    let read = |store: Store, (after, entry, response, to)| async move {
        let (missed, waiting) = find_waiting(&store, after, (entry, response), to, now_ms).await?;
        Ok::<_, EngineError>(((after.key, entry.rule), missed, waiting))
    };
    let mut missed: HashSet<(RecordId, RecordId, Receiver)> = HashSet::new();
    for ((occurrence, rule), receivers, waiting) in store.read_each(over, read).await? {
        missed.extend(receivers.into_iter().map(|it| (occurrence, rule, it)));
        for stored in waiting {
            changes.update(&stored, &cancelled_delivery(&stored.value, now_ms));
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    let reports = new.into_iter();
    let reports = reports.filter(|it| it.content.clear && it.state.due_ms().is_some());
    for report in reports {
        let mut missed = missed.iter();
        let is_missed = missed.any(|(occurrence, rule, (destination, to))| {
            *occurrence == report.content.occurrence.key
                && report.rule == Some(*rule)
                && *destination == report.destination
                && is_for_receiver(report, to.as_ref())
        });
        if is_missed {
            *report = cancelled_delivery(report, now_ms);
        }
    }
    Ok(())
}

fn has_ended(response: &Response) -> bool {
    let over = [ResponseState::Acknowledged, ResponseState::Ended];
    over.contains(&response.state)
}

fn response_state(occurrence: &Occurrence, id: RecordId) -> Option<ResponseState> {
    let mut notified = occurrence.notified.iter();
    let response = notified.find_map(|it| it.response.as_deref().filter(|it| it.id == id));
    response.map(|it| it.state)
}

/// The receivers of a response at one destination, and those that a page has reached.
struct CancelledReceivers {
    destination: RecordId,
    /// The newest page by contact and method.
    paged: BTreeMap<Option<PagedMethod>, RecordId>,
    /// Receivers that have, or may have, received a page.
    reached: BTreeSet<Option<PagedMethod>>,
}

impl CancelledReceivers {
    fn for_response(response: &Response) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for paged in &response.paged {
            let destination = paged.destination.0;
            let at = all.iter().position(|it| it.destination == destination);
            let at = at.unwrap_or_else(|| {
                all.push(Self {
                    destination,
                    paged: BTreeMap::new(),
                    reached: BTreeSet::new(),
                });
                all.len() - 1
            });
            let receiver = paged.contact.as_ref().map(PagedContact::key);
            all[at].paged.insert(receiver, paged.delivery);
        }
        all
    }

    /// Records that a receiver has, or may have, received a delivery, if it is a page.
    fn record_delivery(&mut self, delivery: &Delivery) {
        if !delivery.content.clear {
            let reached = self
                .paged
                .keys()
                .filter(|it| is_for_receiver(delivery, it.as_ref()));
            self.reached.extend(reached.cloned());
        }
    }

    /// Records the newest pages that ended in earlier versions. The thread index does not contain
    /// them.
    async fn record_unindexed(&mut self, store: &Store) -> Result<(), EngineError> {
        let newest = self.paged.values().map(|it| it.to_bytes().into());
        let (newest, _) = store.get_readable::<Delivery>(newest.collect()).await?;
        for delivery in newest
            .into_iter()
            .flatten()
            .filter(|it| !it.value.in_thread)
        {
            self.record_delivery(&delivery.value);
        }
        Ok(())
    }

    fn contains(&self, delivery: &Delivery) -> bool {
        self.paged
            .keys()
            .any(|it| is_for_receiver(delivery, it.as_ref()))
    }

    fn has_reached_all(&self) -> bool {
        self.reached.len() == self.paged.len()
    }
}

/// Finds the receivers of a response at one destination that no page reached. Returns the waiting
/// pages and reports to cancel.
async fn find_waiting(
    store: &Store,
    occurrence: &Occurrence,
    (entry, response): (&Notified, &Response),
    mut to: CancelledReceivers,
    now_ms: i64,
) -> Result<(Vec<Receiver>, Vec<Stored<Delivery>>), EngineError> {
    use ThreadState::{Arrived, Closing, Folded, Uncertain, Waiting};
    let own = entry.thread.map_or(occurrence.key, |it| it.key);
    let thread = (entry.group.unwrap_or(own), entry.rule);
    let since_ms = occurrence.key.time_ms().min(response.id.time_ms());
    let range = |standing| {
        let prefix = thread_prefix(to.destination, thread, standing).build();
        let start = [&prefix[..], &RecordId::first_at_time(since_ms).to_bytes()].concat();
        Range {
            start,
            ..Range::with_prefix(&prefix)
        }
    };
    let (unended, ended) = (
        [Waiting, Closing].map(range),
        [Arrived, Folded, Uncertain].map(range),
    );
    let (mut cancelled, mut reports) = (Vec::new(), Vec::new());
    for mut range in unended {
        while let Some(found) = next_page(store, &mut range).await? {
            for stored in found {
                let delivery = &stored.value;
                if !to.contains(delivery) {
                    continue;
                }
                let is_fresh = delivery.create_ms.saturating_add(FRESH_MS) > now_ms;
                let is_waiting = match delivery.state {
                    DeliveryState::Retry { .. } => true,
                    DeliveryState::Pending { .. } => !is_fresh,
                    _ => false,
                };
                if !is_waiting || delivery.may_have_arrived {
                    to.record_delivery(delivery);
                }
                if is_waiting && delivery.content.clear {
                    reports.push(stored);
                } else if is_waiting {
                    cancelled.push(stored);
                }
            }
        }
    }
    for mut range in ended {
        while !to.has_reached_all()
            && let Some(found) = next_page(store, &mut range).await?
        {
            for it in &found {
                to.record_delivery(&it.value);
            }
        }
    }
    if !to.has_reached_all() {
        to.record_unindexed(store).await?;
    }
    reports.retain(|report| {
        let mut reached = to.reached.iter();
        !reached.any(|it| is_for_receiver(&report.value, it.as_ref()))
    });
    cancelled.append(&mut reports);
    let missed = to.paged.into_keys();
    let missed = missed.filter(|it| !to.reached.contains(it));
    let missed = missed.map(|it| (to.destination, it));
    Ok((missed.collect(), cancelled))
}

async fn next_page(
    store: &Store,
    range: &mut Range,
) -> Result<Option<Vec<Stored<Delivery>>>, EngineError> {
    let (index, ascending) = (Index::DeliveryByThread, Direction::Ascending);
    let entries = store
        .engine()
        .entries(index, range.clone(), ascending, PAGE);
    let entries = entries.await?;
    let Some((last, _)) = entries.last() else {
        return Ok(None);
    };
    range.exclude_through(last);
    let keys = entries.into_iter().map(|(_, key)| key).collect();
    let (found, _) = store.get_readable::<Delivery>(keys).await?;
    Ok(Some(found.into_iter().flatten().collect()))
}

/// Returns whether a delivery is a page of a response that was acknowledged or has ended.
pub async fn is_obsolete_page(store: &Store, delivery: &Delivery) -> Result<bool, EngineError> {
    let contact = delivery.content.contact.as_ref();
    let Some(contact) = contact.filter(|_| !delivery.content.clear && !delivery.test) else {
        return Ok(false);
    };
    let over = [ResponseState::Acknowledged, ResponseState::Ended];
    let ranges =
        over.map(|it| Range::with_prefix(&response_prefix(it).id(contact.response).build()));
    let index = Index::OccurrenceByResponse;
    let found = store
        .engine()
        .read_ranges(index, &ranges, Direction::Ascending, 1);
    Ok(found.await?.iter().any(|it| !it.is_empty()))
}

pub fn cancelled_delivery(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
        last_error: "no longer needed: the event was acknowledged or closed".into(),
        ..delivery.clone()
    }
}
