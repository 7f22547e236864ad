//! The state of the service at a glance.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    clock::Clock,
    decide::Snapshot,
    domain::{Delivery, Health, HealthState, RecordId, Severity, Status},
    error::Error,
    ops::{
        recent::{RECENT_MAX, Recent, Traffic},
        search::{Filter, Walk, count},
    },
    store::{
        Direction, Index, Store,
        engine::Range,
        record::bytes::{Key, id_at},
    },
};

/// Destinations that are looked at.
const DESTINATIONS_MAX: usize = 1_000;
/// Records read at once.
const PAGE: usize = 1_000;
/// Dead deliveries of the last day that are looked at.
const DEAD_MAX: usize = 10_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// The state of the service.
#[derive(Debug, Clone)]
pub struct Overview {
    /// Occurrences that are open or suppressed, by severity.
    pub open: BTreeMap<Severity, usize>,
    /// How many of these are acknowledged; none when there are too many to look at.
    pub acknowledged: Option<usize>,
    /// Events taken in a minute, for the last 60 minutes, oldest first.
    pub events_per_minute: Vec<u32>,
    /// Each destination with traffic in the last 24 hours or trouble, by name.
    pub destinations: Vec<DestinationOverview>,
    /// When the oldest delivery that has not ended was decided, in milliseconds since 1970.
    pub oldest_undelivered_ms: Option<i64>,
    /// How many triggers are stored.
    pub triggers: usize,
    /// How many destinations are stored.
    pub destinations_stored: usize,
    /// How many rules are stored.
    pub rules: usize,
    /// How many of the rules are enabled.
    pub enabled_rules: usize,
}

/// How one destination's deliveries fare.
#[derive(Debug, Clone)]
pub struct DestinationOverview {
    /// Its name.
    pub name: String,
    /// How its deliveries fare; none when there was no attempt yet.
    pub health: Option<Health>,
    /// Deliveries that have not ended.
    pub waiting: usize,
    /// Deliveries given up in the last 24 hours.
    pub dead: usize,
    /// Notifications of the last 24 hours, less those that wait and those that are dead.
    pub delivered: usize,
}

/// Looks at the whole service.
///
/// # Errors
/// Those of the store.
pub async fn overview(
    store: &Store,
    clock: &Arc<dyn Clock>,
    traffic: &Traffic,
    snapshot: &Snapshot,
) -> Result<Overview, Error> {
    let now_ms = clock.now_ms();
    let open = open_by_severity(store).await?;
    let dead = dead_by_destination(store, now_ms).await?;
    Ok(Overview {
        acknowledged: acknowledged(store, open.values().sum()).await?,
        open,
        events_per_minute: traffic.per_minute(now_ms),
        destinations: destinations(store, clock, snapshot, &dead).await?,
        oldest_undelivered_ms: oldest_undelivered_ms(store).await?,
        triggers: snapshot.trigger_count(),
        destinations_stored: snapshot.destinations().len(),
        rules: snapshot.rules().len(),
        enabled_rules: snapshot.rules().iter().filter(|rule| rule.enabled).count(),
    })
}

fn going_on(severities: Vec<Severity>) -> Filter {
    Filter {
        statuses: vec![Status::Open, Status::Suppressed],
        severities,
        ..Filter::default()
    }
}

async fn open_by_severity(store: &Store) -> Result<BTreeMap<Severity, usize>, Error> {
    let mut open = BTreeMap::new();
    for severity in Severity::ALL {
        let number = count(store, &going_on(vec![severity])).await?;
        if number > 0 {
            open.insert(severity, number);
        }
    }
    Ok(open)
}

async fn acknowledged(store: &Store, open: usize) -> Result<Option<usize>, Error> {
    if open > RECENT_MAX {
        return Ok(None);
    }
    let filter = going_on(Vec::new());
    let mut walk = Walk::new(store, &filter, crate::ops::search::NEWEST_FIRST, None);
    let mut acknowledged = 0;
    loop {
        let batch = walk.next(PAGE).await?;
        if batch.is_empty() {
            return Ok(Some(acknowledged));
        }
        acknowledged += batch
            .iter()
            .filter(|(_, found)| found.value.acknowledged)
            .count();
    }
}

async fn destinations(
    store: &Store,
    clock: &Arc<dyn Clock>,
    snapshot: &Snapshot,
    dead: &BTreeMap<RecordId, usize>,
) -> Result<Vec<DestinationOverview>, Error> {
    let recent = Recent::new(store.clone(), Arc::clone(clock));
    let looked_at = || snapshot.destinations().take(DESTINATIONS_MAX);
    let keys = looked_at()
        .map(|found| found.id.to_bytes().into())
        .collect();
    let healths = store.get_many::<Health>(keys).await?;
    let mut overviews = Vec::new();
    for (destination, health) in looked_at().zip(healths) {
        let under = Range::under(&destination.id.to_bytes());
        let waiting = store
            .engine()
            .count(Index::DeliveryByDue, under, RECENT_MAX)
            .await?;
        let dead = dead.get(&destination.id).copied().unwrap_or(0);
        let notifications = recent.of_destination(destination.id).await?;
        let health = health.map(|health| health.value);
        let is_troubled = health
            .as_ref()
            .is_some_and(|health| health.state != HealthState::Healthy);
        if waiting + dead + notifications > 0 || is_troubled {
            overviews.push(DestinationOverview {
                name: destination.name.to_string(),
                health,
                waiting,
                dead,
                delivered: notifications.saturating_sub(waiting + dead),
            });
        }
    }
    Ok(overviews)
}

async fn dead_by_destination(
    store: &Store,
    now_ms: i64,
) -> Result<BTreeMap<RecordId, usize>, Error> {
    const DEAD: u8 = crate::domain::DeliveryState::Dead.number();
    let day_ago = RecordId::first_at((now_ms - DAY_MS).try_into().unwrap_or(0));
    let mut range = Range {
        start: Key::new().byte(DEAD).id(day_ago).build(),
        end: Range::under(&[DEAD]).end,
    };
    let mut dead = BTreeMap::new();
    let mut looked_at = 0;
    while looked_at < DEAD_MAX {
        let page = store
            .page_by::<Delivery>(
                Index::DeliveryByState,
                range.clone(),
                Direction::Ascending,
                PAGE,
            )
            .await?;
        for delivery in page
            .iter()
            .map(|(_, found)| &found.value)
            .filter(|found| !found.test)
        {
            *dead.entry(delivery.destination).or_default() += 1;
        }
        looked_at += page.len();
        match page.last() {
            Some((key, _)) if page.len() == PAGE => range.start = [&key[..], &[0]].concat(),
            _ => break,
        }
    }
    Ok(dead)
}

/// Deliveries are keyed in the order in which they were decided, so the first one of each state
/// that has not ended is the oldest.
async fn oldest_undelivered_ms(store: &Store) -> Result<Option<i64>, Error> {
    let mut oldest: Option<u64> = None;
    for state in [1_u8, 2, 3] {
        let range = Range::under(&[state]);
        let engine = store.engine();
        let first = engine
            .entries(Index::DeliveryByState, range, Direction::Ascending, 1)
            .await?;
        let time_ms = first
            .first()
            .and_then(|(key, _)| id_at(key, 1))
            .map(RecordId::time_ms);
        oldest = match (oldest, time_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    Ok(oldest.and_then(|time_ms| i64::try_from(time_ms).ok()))
}
