//! The deliveries about an occurrence with their attempts, and the pauses of destinations.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::v1::ExplainedNotification;

use super::{DigestEnd, SentDelivery};
use crate::{
    delivery::WaitReason,
    domain::{
        Attempt, CloseReason, Delivery, Health, HealthState, Name, Notified, Occurrence, RecordId,
        own_event::DESTINATION_PAUSED,
    },
    error::Error,
    limits::ATTEMPTS_MAX,
    store::{Direction, Index, Store, engine::Range},
};

/// Maximum number of an event's deliveries read, newest first.
const DELIVERIES_MAX: usize = 1_000;
/// Maximum number of deliveries shown with attempts, newest first.
const DELIVERIES_IN_FULL_MAX: usize = 100;
/// Maximum number of pauses read per destination, newest first.
const PAUSES_MAX: usize = 100;

pub(super) async fn deliveries_by_rule(
    store: &Store,
    occurrence: &Occurrence,
) -> Result<BTreeMap<RecordId, Vec<SentDelivery>>, Error> {
    let found = store
        .page_by_index::<Delivery>(
            Index::DeliveryByEvent,
            Range::with_prefix(&occurrence.event.to_bytes()),
            Direction::Descending,
            DELIVERIES_MAX,
        )
        .await?;
    let mut by_rule: BTreeMap<RecordId, Vec<SentDelivery>> = BTreeMap::new();
    let digests = read_digests(store, found.iter().map(|(_, it)| &it.value)).await?;
    let mut in_full = 0;
    for delivery in found.into_iter().map(|(_, found)| found.value) {
        let mut mentioned = delivery.content.occurrences();
        let about_it = mentioned.any(|it| it.id() == occurrence.id()) && !delivery.test;
        drop(mentioned);
        let (Some(rule), true) = (delivery.rule, about_it) else {
            continue;
        };
        let mut attempts = Vec::new();
        if in_full < DELIVERIES_IN_FULL_MAX {
            in_full += 1;
            attempts = read_attempts(store, delivery.id).await?;
        }
        let digest = delivery.folding.digest_id();
        let digest = digest.and_then(|it| digests.get(&it).cloned());
        let sent = SentDelivery {
            delivery,
            attempts,
            digest,
            waiting: WaitReason::default(),
        };
        by_rule.entry(rule).or_default().push(sent);
    }
    for sent in by_rule.values_mut() {
        sent.reverse();
    }
    Ok(by_rule)
}

async fn read_digests(
    store: &Store,
    deliveries: impl Iterator<Item = &Delivery>,
) -> Result<BTreeMap<RecordId, DigestEnd>, Error> {
    let ids: BTreeSet<_> = deliveries.filter_map(|it| it.folding.digest_id()).collect();
    let keys = ids.into_iter().map(|id| id.to_bytes().into()).collect();
    let found = store.get_many::<Delivery>(keys).await?;
    let ends = found.into_iter().flatten().filter_map(|it| {
        let digest = it.value;
        let end = DigestEnd {
            id: digest.id,
            state: digest.state,
            end_ms: digest.end_ms,
            count: digest.content.digest?.count,
        };
        Some((digest.id, end))
    });
    Ok(ends.collect())
}

async fn read_attempts(store: &Store, delivery: RecordId) -> Result<Vec<Attempt>, Error> {
    let range = Range::with_prefix(&delivery.to_bytes());
    let found = store.page::<Attempt>(range, Direction::Ascending, ATTEMPTS_MAX);
    Ok(found
        .await?
        .into_iter()
        .map(|stored| stored.value)
        .collect())
}

/// Returns the notifications of a rule, oldest first. Deliveries that were resent manually do not
/// count.
pub(super) fn list_notifications(
    notified: Option<&Notified>,
    sent: &[SentDelivery],
) -> Vec<ExplainedNotification> {
    let mut notifications: BTreeMap<(i64, bool), ExplainedNotification> = BTreeMap::new();
    let new = |(time, clear)| ExplainedNotification {
        time,
        clear: Some(clear),
        ..ExplainedNotification::default()
    };
    let sent = sent.iter().map(|it| &it.delivery);
    for delivery in sent.filter(|it| it.retry_of.is_none()) {
        let key = (delivery.create_ms, delivery.content.clear);
        let notification = notifications.entry(key).or_insert_with(|| new(key));
        let trigger = delivery.content.trigger.as_ref();
        notification.trigger_name = trigger.map(|it| it.name.to_string()).unwrap_or_default();
        notification.delivery_ids.push(delivery.id.to_string());
    }
    // Deliveries expire earlier than an occurrence that stays open.
    let opening = notified.and_then(|notified| notified.opening.as_ref());
    if let Some(opening) = opening {
        let key = (opening.at_ms, false);
        notifications
            .entry(key)
            .or_insert_with(|| ExplainedNotification {
                trigger_name: opening.trigger.name.to_string(),
                ..new(key)
            });
    }
    notifications.into_values().collect()
}

#[derive(Debug, Default)]
pub(super) struct PauseHistory {
    /// Start and end of the pauses by destination name, in milliseconds since the epoch.
    spans: BTreeMap<Name, Vec<(i64, i64)>>,
}

impl PauseHistory {
    pub(super) async fn read<'a>(
        store: &Store,
        destinations: impl Iterator<Item = (RecordId, &'a Name)>,
    ) -> Result<Self, Error> {
        let mut pauses = Self::default();
        for (id, name) in destinations {
            if pauses.spans.contains_key(name) {
                continue;
            }
            let event = DESTINATION_PAUSED.id([name.as_str()]);
            let found = store
                .page_by_index::<Occurrence>(
                    Index::OccurrenceByEvent,
                    Range::with_prefix(&event.to_bytes()),
                    Direction::Descending,
                    PAUSES_MAX,
                )
                .await?;
            let span = |it: &Occurrence| {
                let end = it.close.filter(|close| close.reason == CloseReason::Sender);
                (
                    it.start_ms,
                    end.map_or(it.last_seen_ms, |close| close.at_ms),
                )
            };
            let mut spans: Vec<_> = found.iter().map(|(_, it)| span(&it.value)).collect();
            let health = store.get::<Health>(id.to_bytes().into()).await?;
            let paused = health.filter(|it| it.value.state == HealthState::Paused);
            spans.extend(paused.map(|it| (it.value.since_ms, i64::MAX)));
            pauses.spans.insert(name.clone(), spans);
        }
        Ok(pauses)
    }

    pub(super) fn was_paused_at(&self, name: &Name, at_ms: i64) -> bool {
        let spans = self.spans.get(name).into_iter().flatten();
        let mut spans = spans;
        spans.any(|(from_ms, until_ms)| (*from_ms..*until_ms).contains(&at_ms))
    }
}
