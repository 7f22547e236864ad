//! The state of the service at a glance.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use bellwether_backend_base::config::NodeReport;
use bellwether_proto::v1::{
    DestinationOverview, GetOverviewResponse, NodeOverview, StoreHealth, store_health::State,
};

use crate::{
    clock::Clock,
    decide::Snapshot,
    destination::{self, HealthVerdict, health_to_wire},
    domain::{
        Health, HealthState, RecordId, Severity, Status,
        counter::{Subject, Tally},
    },
    error::Error,
    footprint,
    recent::RECENT_MAX,
    search::{Filter, IndexWalk, count_matches},
    statistics::StatisticsReader,
    store::{
        Direction, Index, LogPosition, Store,
        engine::{ClusterNode, Condition, Range},
        record::bytes::{Key, read_id},
    },
    wire::{count_by_name, time::timestamp, to_i32, to_i64},
};

const DESTINATIONS_MAX: usize = 1_000;
const HOUR_MS: i64 = 3_600_000;
const PAGE: usize = 1_000;

fn node_overviews(seen: Vec<ClusterNode>, log_head: LogPosition) -> Vec<NodeOverview> {
    let leader = seen.iter().find(|it| it.leads);
    let leader = leader.map(|it| NodeReport::parse(&it.about));
    let leader = leader.unwrap_or_default();
    let overview = |seen: ClusterNode| {
        let report = NodeReport::parse(&seen.about);
        NodeOverview {
            name: seen.name,
            start_time: Some(timestamp(seen.since_ms)),
            leads: Some(seen.leads),
            owned_slots: Some(to_i32(seen.slots)),
            behind_count: Some(to_i64(log_head.steps_since(seen.follows))),
            differing_sections: report.differing_sections(&leader),
            settings_digest: report.digest(),
            ignored_settings: report.ignored,
        }
    };
    seen.into_iter().map(overview).collect()
}

fn store_health(condition: &Condition) -> StoreHealth {
    let state = match condition {
        Condition::Writable => State::Writable,
        Condition::Short(_) => State::Short,
        Condition::Full(_) => State::Full,
        Condition::Unwritable(_) => State::Unwritable,
        Condition::Damaged(_) => State::Damaged,
        Condition::Unreachable => State::Unreachable,
    };
    let accepts_events = condition.accepts_events();
    StoreHealth {
        state: state.into(),
        accepts_events: Some(accepts_events),
        reason: if accepts_events {
            String::new()
        } else {
            condition.to_string()
        },
    }
}

/// Computes the overview of a service that started at `start_ms`.
pub async fn compute_overview(
    store: &Store,
    clock: &Arc<dyn Clock>,
    snapshot: &Snapshot,
    data_dir: PathBuf,
    start_ms: i64,
) -> Result<GetOverviewResponse, Error> {
    let open = open_by_severity(store).await?;
    let log_head = *store.engine().log_signal().borrow();
    let counting = StatisticsReader::new(store.clone(), Arc::clone(clock));
    let acknowledged = acknowledged_count(store, open.values().sum()).await?;
    let opened = opened_by_severity(store, clock.now_ms() - HOUR_MS).await?;
    let enabled = snapshot.rules().iter().filter(|rule| rule.enabled);
    let minutes = counting.events_per_minute().await?.into_iter();
    let nodes = store.engine().cluster().nodes().await?;
    Ok(GetOverviewResponse {
        open_by_severity: count_by_name(open),
        acknowledged_count: acknowledged.map(to_i32),
        events_per_minute: minutes.map(to_i32).collect(),
        destinations: destination_overviews(store, clock, &counting, snapshot).await?,
        oldest_undelivered_time: oldest_undelivered_ms(store).await?.map(timestamp),
        start_time: Some(timestamp(start_ms)),
        version: env!("CARGO_PKG_VERSION").into(),
        trigger_count: Some(to_i32(snapshot.trigger_count())),
        destination_count: Some(to_i32(snapshot.destinations().len())),
        rule_count: Some(to_i32(snapshot.rules().len())),
        enabled_rule_count: Some(to_i32(enabled.count())),
        counted_since_time: store.counters_since_ms().await?.map(timestamp),
        opened_by_severity: count_by_name(opened),
        footprint: Some(footprint::measure(store, data_dir).await),
        nodes: node_overviews(nodes, log_head),
        store: Some(store_health(&store.engine().condition())),
        quiet_since_time: snapshot.settings().quiet_since_ms.map(timestamp),
        dead_count: Some(to_i32(dead_count(store).await?)),
    })
}

fn ongoing_filter(severities: Vec<Severity>) -> Filter {
    Filter {
        statuses: vec![Status::Open, Status::Suppressed],
        severities,
        ..Filter::default()
    }
}

async fn open_by_severity(store: &Store) -> Result<BTreeMap<Severity, usize>, Error> {
    let mut open = BTreeMap::new();
    for severity in Severity::ALL {
        let number = count_matches(store, &ongoing_filter(vec![severity])).await?;
        if number > 0 {
            open.insert(severity, number);
        }
    }
    Ok(open)
}

async fn opened_by_severity(
    store: &Store,
    since_ms: i64,
) -> Result<BTreeMap<Severity, usize>, Error> {
    let mut opened = BTreeMap::new();
    for severity in Severity::ALL {
        let mut number = 0;
        for status in [Status::Open, Status::Suppressed] {
            let head = [status as u8, severity as u8];
            let range = Range {
                start: Key::new()
                    .byte(head[0])
                    .byte(head[1])
                    .time_ms(since_ms)
                    .build(),
                end: Range::with_prefix(&head).end,
            };
            let (engine, index) = (store.engine(), Index::OccurrenceBySeverity);
            number += engine.count(index, range, usize::MAX).await?;
        }
        if number > 0 {
            opened.insert(severity, number);
        }
    }
    Ok(opened)
}

async fn acknowledged_count(store: &Store, open: usize) -> Result<Option<usize>, Error> {
    if open > RECENT_MAX {
        return Ok(None);
    }
    let filter = ongoing_filter(Vec::new());
    let mut walk = IndexWalk::new(store, &filter, crate::search::NEWEST_FIRST, None);
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

async fn destination_overviews(
    store: &Store,
    clock: &Arc<dyn Clock>,
    counting: &StatisticsReader,
    snapshot: &Snapshot,
) -> Result<Vec<DestinationOverview>, Error> {
    let scanned = || snapshot.destinations().take(DESTINATIONS_MAX);
    let keys = scanned().map(|found| found.id.to_bytes().into()).collect();
    let healths = store.get_many::<Health>(keys).await?;
    let mut overviews = Vec::new();
    let is_failing = |it: &Health| it.state != HealthState::Healthy;
    let both = scanned().zip(&healths);
    let failing = both.filter(|(_, it)| it.as_ref().is_some_and(|it| is_failing(&it.value)));
    let failing: BTreeSet<_> = failing.map(|(it, _)| it.name.as_str()).collect();
    for (found, health) in scanned().zip(healths) {
        let health = health.map(|health| health.value);
        let now_ms = clock.now_ms();
        let unwell = health.as_ref().filter(|it| is_failing(it));
        let is_silent = unwell.is_some_and(|it| {
            destination::would_notify_no_one(snapshot, found, it, &failing, now_ms)
        });
        let health_summary =
            destination::HealthSummary::compute(store, clock, found.id, health).await?;
        let is_troubled = !matches!(
            health_summary.verdict,
            HealthVerdict::Untried | HealthVerdict::Healthy
        );
        let day = counting.last_day_counts(found.id).await?;
        let is_idle = day.is_idle() && health_summary.dead == 0;
        if is_troubled || !is_idle {
            overviews.push(DestinationOverview {
                destination_name: found.name.to_string(),
                waiting_count: Some(to_i32(health_summary.waiting)),
                dead_count: Some(to_i32(health_summary.dead)),
                delivered_count: Some(to_i32(day.tally_total(Tally::Delivered))),
                health: Some(health_to_wire(Some(&health_summary))),
                failure_unheard: is_silent,
            });
        }
    }
    Ok(overviews)
}

async fn dead_count(store: &Store) -> Result<i64, Error> {
    let counts = store.current_counts(&[Subject::Deliveries]).await?;
    Ok(counts.first().map_or(0, |it| it.get(Tally::Dead)))
}

/// Returns the creation time of the oldest unfinished delivery. Delivery keys are ordered by
/// creation time, so the first key of each unfinished state is the oldest.
async fn oldest_undelivered_ms(store: &Store) -> Result<Option<i64>, Error> {
    let mut oldest: Option<u64> = None;
    let ranges = [1_u8, 2, 3].map(|state| Range::with_prefix(&[state]));
    let engine = store.engine();
    let firsts = engine.read_ranges(Index::DeliveryByState, &ranges, Direction::Ascending, 1);
    for first in firsts.await? {
        let time_ms = first
            .first()
            .and_then(|(key, _)| read_id(key, 1))
            .map(RecordId::time_ms);
        oldest = match (oldest, time_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    Ok(oldest.and_then(|time_ms| i64::try_from(time_ms).ok()))
}
