//! The order of the messages of a thread, which is about one occurrence or one group. An update or
//! closing message does not overtake an earlier message that still has to be sent. The newest
//! message is also the last one sent, even if an earlier one is sent again.

use std::time::Duration;

use futures_util::future::{try_join_all, try_join3};

use crate::{
    clock::to_millis,
    domain::{Delivery, DeliveryState, RecordId, ThreadState, destination::KeptValues},
    limits::THREAD_SCANNED_MAX,
    store::{
        Direction, EngineError, Index, Store, Stored,
        engine::Range,
        record::{
            bytes::{Key, read_id},
            delivery_thread_prefix, kept_value_prefix,
        },
    },
};

const PAGE: usize = 64;
/// Maximum time by which a clock may have been set back since a thread began.
const SET_BACK_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The predecessors of a delivery with the same rule, destination and thread.
#[derive(Debug, Clone, Default)]
pub struct Predecessors {
    /// The last delivery that must end before this delivery begins: a delivery of the thread, or a
    /// digest that includes one.
    pub earlier: Option<Stored<Delivery>>,
    /// The digest that includes all unfinished predecessors; only set while it waits for its first
    /// attempt.
    pub digest: Option<RecordId>,
    /// The first delivered message, if this delivery reports a change to it.
    pub opening: Option<RecordId>,
}

impl Predecessors {
    /// Returns the earliest time at which no predecessor blocks the delivery, in milliseconds since
    /// the epoch; `None` if no predecessor blocks it.
    pub(crate) fn unblocked_ms(&self, now_ms: i64) -> Option<i64> {
        let earlier = self.earlier.as_ref()?;
        Some(match earlier.value.state {
            DeliveryState::Leased { .. } => now_ms,
            state => state.due_ms().unwrap_or(now_ms).max(now_ms),
        })
    }
}

pub async fn find_predecessors(
    store: &Store,
    delivery: &Delivery,
) -> Result<Predecessors, EngineError> {
    if is_first_in_thread(delivery) {
        return Ok(Predecessors::default());
    }
    let (earlier, digests, arrived) = try_join3(
        last_unfinished(store, delivery),
        unfinished_digests(store, delivery),
        first_arrived(store, delivery),
    )
    .await?;
    if let Some(last) = digests.first() {
        let is_only = earlier.is_none() && digests.iter().all(|it| it.value.id == last.value.id);
        let is_waiting = matches!(last.value.state, DeliveryState::Pending { .. });
        return Ok(Predecessors {
            digest: (is_only && is_waiting).then_some(last.value.id),
            earlier: earlier.or(digests.into_iter().next()),
            opening: None,
        });
    }
    let opening = match arrived {
        _ if earlier.is_some() => None,
        None if waits_for_whole_thread(delivery) => unindexed_opening(store, delivery).await?,
        arrived => arrived,
    };
    Ok(Predecessors {
        earlier,
        digest: None,
        opening,
    })
}

/// Returns the last delivery of the thread that must end before this one begins. Opening and repeat
/// messages only wait for an earlier closing message, since earlier openings have the same content.
async fn last_unfinished(
    store: &Store,
    delivery: &Delivery,
) -> Result<Option<Stored<Delivery>>, EngineError> {
    let standings = [ThreadState::Closing, ThreadState::Waiting];
    let standings = standings
        .into_iter()
        .filter(|it| *it == ThreadState::Closing || waits_for_whole_thread(delivery));
    let last = standings.map(|it| last_readable(store, earlier_range(delivery, it)));
    let last = try_join_all(last).await?.into_iter().flatten();
    Ok(last.max_by_key(|it| it.value.thread_position()))
}

/// Returns the last delivery of a range. Unreadable deliveries block nothing.
async fn last_readable(
    store: &Store,
    mut range: Range,
) -> Result<Option<Stored<Delivery>>, EngineError> {
    loop {
        let (index, engine) = (Index::DeliveryByThread, store.engine());
        let entries = engine.entries(index, range.clone(), Direction::Descending, 1);
        let Some((entry, key)) = entries.await?.pop() else {
            return Ok(None);
        };
        range.end = Some(entry);
        let (found, _) = store.get_readable::<Delivery>(vec![key]).await?;
        if let Some(found) = found.into_iter().flatten().next() {
            return Ok(Some(found));
        }
    }
}

/// Returns the unfinished digests that include earlier deliveries of the thread, the last one
/// first. Digests are sent in order.
async fn unfinished_digests(
    store: &Store,
    delivery: &Delivery,
) -> Result<Vec<Stored<Delivery>>, EngineError> {
    let (index, range) = (
        Index::DeliveryByThread,
        earlier_range(delivery, ThreadState::Folded),
    );
    let engine = store.engine();
    let entries = engine.entries(index, range, Direction::Descending, PAGE);
    let keys = entries.await?.into_iter().map(|(_, key)| key).collect();
    let (folded, _) = store.get_readable::<Delivery>(keys).await?;
    let folded = folded.into_iter().flatten().map(|it| it.value);
    let stand_before = folded.filter(|it| waits_for_whole_thread(delivery) || it.is_closing());
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for digest in stand_before.filter_map(|it| it.folding.digest_id()) {
        let key = digest.to_bytes().into();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let (found, _) = store.get_readable::<Delivery>(keys).await?;
    let found = found.into_iter().flatten();
    Ok(found
        .filter(|it| it.value.state.due_ms().is_some())
        .collect())
}

fn earlier_range(delivery: &Delivery, how: ThreadState) -> Range {
    let (origin, id) = delivery.thread_position();
    let end = delivery_thread_prefix(delivery, how).id(origin).id(id);
    Range {
        end: Some(end.build()),
        ..Range::with_prefix(&delivery_thread_prefix(delivery, how).build())
    }
}

/// Returns the first delivered message to which a delivery reports changes.
async fn first_arrived(
    store: &Store,
    delivery: &Delivery,
) -> Result<Option<RecordId>, EngineError> {
    if !waits_for_whole_thread(delivery) {
        return Ok(None);
    }
    let range = earlier_range(delivery, ThreadState::Arrived);
    let (index, ascending) = (Index::DeliveryByThread, Direction::Ascending);
    let first = store.engine().entries(index, range, ascending, 1).await?;
    Ok(first.first().and_then(|(_, key)| read_id(key, 0)))
}

/// Like [`first_arrived`], for deliveries of earlier versions, which are only indexed by event.
async fn unindexed_opening(
    store: &Store,
    delivery: &Delivery,
) -> Result<Option<RecordId>, EngineError> {
    let thread = read_thread(store, delivery).await?;
    let thread = thread.iter().map(|other| &other.value);
    let openings = thread.filter(|other| {
        let is_before = other.thread_position() < delivery.thread_position();
        is_before && other.state == DeliveryState::Delivered && !other.content.clear
    });
    Ok(openings.map(|other| other.id).min())
}

/// Returns the newest message of the thread if it is later than the delivery and contradicts it
/// about whether the thread is over. That message has to be sent again after the delivery.
pub(super) async fn newest_message(
    store: &Store,
    delivery: &Delivery,
) -> Result<Option<Stored<Delivery>>, EngineError> {
    let mut all = read_thread(store, delivery).await?;
    all.retain(|it| it.value.thread_position() > delivery.thread_position());
    let last = all.into_iter().max_by_key(|it| it.value.thread_position());
    Ok(last.filter(|it| it.value.is_closing() != delivery.is_closing()))
}

/// Returns the values kept for the thread by the newest message to the same receiver.
pub async fn kept_values(
    store: &Store,
    delivery: &Delivery,
) -> Result<Option<KeptValues>, EngineError> {
    let is_resend = delivery.retry_of.is_some();
    if !is_resend && is_first_in_thread(delivery) || delivery.thread_state().is_none() {
        return Ok(None);
    }
    let contact = |it: &Delivery| it.content.contact.clone();
    let own = contact(delivery);
    let is_same_receiver = |other: &Delivery| match (&own, contact(other)) {
        (Some(own), Some(other)) => own.is_same_page(&other),
        (own, other) => own.is_none() && other.is_none(),
    };
    let prefix = delivery_thread_prefix(delivery, ThreadState::Keeping).build();
    let mut range = Range::with_prefix(&prefix);
    for _ in 0..THREAD_SCANNED_MAX.div_ceil(PAGE) {
        let (index, engine) = (Index::DeliveryByThread, store.engine());
        let entries = engine.entries(index, range.clone(), Direction::Descending, PAGE);
        let entries = entries.await?;
        let is_end = entries.len() < PAGE;
        range.end = entries.last().map(|(entry, _)| entry.clone());
        let keys = entries.into_iter().map(|(_, key)| key).collect();
        let (found, _) = store.get_readable::<Delivery>(keys).await?;
        let mut found = found.into_iter().flatten().map(|it| it.value);
        if let Some(newest) = found.find(is_same_receiver) {
            return Ok(Some(newest.kept));
        }
        if is_end {
            break;
        }
    }
    Ok(None)
}

/// Returns the newest message to a destination whose response contained this value to keep.
pub(crate) async fn find_by_kept_value(
    store: &Store,
    destination: RecordId,
    (name, value): (&str, &str),
) -> Result<Option<Delivery>, EngineError> {
    let prefix = kept_value_prefix(destination, name, value).build();
    let found = last_readable(store, Range::with_prefix(&prefix)).await?;
    Ok(found.map(|it| it.value))
}

fn is_first_in_thread(delivery: &Delivery) -> bool {
    if let Some(group) = &delivery.content.group {
        return group.is_first;
    }
    // A message about a first evaluation has no predecessors.
    let is_opening = !delivery.content.clear && delivery.content.thread.is_none();
    is_opening && delivery.content.occurrence.evaluation.is_none()
}

/// Returns the messages with the same thread, rule and destination, newest first. Unreadable
/// deliveries block nothing.
async fn read_thread(
    store: &Store,
    delivery: &Delivery,
) -> Result<Vec<Stored<Delivery>>, EngineError> {
    let (index, prefix) = match (&delivery.content.group, delivery.event) {
        (Some(group), _) => (Index::DeliveryByGroup, Key::new().id(group.id).build()),
        (None, Some(event)) => (Index::DeliveryByEvent, Key::new().event(event).build()),
        (None, None) => return Ok(Vec::new()),
    };
    let mut range = Range::with_prefix(&prefix);
    let set_back_ms = u64::try_from(to_millis(SET_BACK_MAX)).unwrap_or_default();
    let since = delivery.thread_id().time_ms().saturating_sub(set_back_ms);
    range.start = [&prefix[..], &RecordId::first_at_time(since).to_bytes()].concat();
    let about = |it: &Delivery| (it.rule, it.destination, it.thread_id());
    let mut found = Vec::new();
    for _ in 0..THREAD_SCANNED_MAX.div_ceil(PAGE) {
        let (engine, descending) = (store.engine(), Direction::Descending);
        let entries = engine.entries(index, range.clone(), descending, PAGE);
        let entries = entries.await?;
        let is_end = entries.len() < PAGE;
        range.end = entries.last().map(|(entry, _)| entry.clone());
        let keys = entries.into_iter().map(|(_, key)| key).collect();
        let (others, _) = store.get_readable::<Delivery>(keys).await?;
        let others = others.into_iter().flatten();
        found.extend(others.filter(|it| !it.value.test && about(&it.value) == about(delivery)));
        if is_end {
            break;
        }
    }
    Ok(found)
}

/// Returns whether a delivery waits for every earlier one of its thread, not only for closings.
pub fn waits_for_whole_thread(delivery: &Delivery) -> bool {
    let content = &delivery.content;
    content.clear || content.group.is_some() || content.destination_kind.follows_up()
}
