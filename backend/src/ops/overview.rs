//! The state of the service at a glance.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use crate::{
    clock::Clock,
    config::NodeReport,
    decide::Snapshot,
    domain::{
        Health, HealthState, RecordId, Severity, Status,
        counter::{Subject, Tally},
    },
    error::Error,
    ops::{
        destination::{self, HealthVerdict},
        footprint::Footprint,
        recent::RECENT_MAX,
        search::{Filter, IndexWalk, count_matches},
        statistics::StatisticsReader,
    },
    store::{
        Direction, Index, LogPosition, Store,
        engine::{ClusterNode, Condition, Range},
        record::bytes::{Key, read_id},
    },
};

const DESTINATIONS_MAX: usize = 1_000;
const HOUR_MS: i64 = 3_600_000;
const PAGE: usize = 1_000;

#[derive(Debug, Clone)]
pub struct Overview {
    /// Number of occurrences that are open or suppressed, by severity.
    pub open: BTreeMap<Severity, usize>,
    /// Number of these occurrences that were opened in the last hour, by severity.
    pub opened: BTreeMap<Severity, usize>,
    pub footprint: Footprint,
    pub condition: Condition,
    /// Start of quiet mode, in which no messages are sent, in milliseconds since the epoch; `None`
    /// if it is off.
    pub quiet_since_ms: Option<i64>,
    /// The nodes that share the store, oldest first.
    pub nodes: Vec<NodeOverview>,
    pub log_head: LogPosition,
    /// Number of open or suppressed occurrences that are acknowledged; `None` if there are too many
    /// to count.
    pub acknowledged: Option<usize>,
    /// Events accepted per minute, for the last 60 minutes, oldest first.
    pub events_per_minute: Vec<i64>,
    /// Destinations that had traffic in the last 24 hours or are unhealthy, by name.
    pub destinations: Vec<DestinationOverview>,
    pub counted_since_ms: Option<i64>,
    pub oldest_undelivered_ms: Option<i64>,
    /// Dead deliveries that were not sent again, excluding tests.
    pub dead: i64,
    pub triggers: usize,
    pub destinations_stored: usize,
    pub rules: usize,
    pub enabled_rules: usize,
}

#[derive(Debug, Clone)]
pub struct NodeOverview {
    pub seen: ClusterNode,
    pub ignored_settings: Vec<String>,
    /// Sections of the node's file that differ from the leader's.
    pub differing_sections: Vec<String>,
    pub settings_digest: String,
}

fn node_overviews(seen: Vec<ClusterNode>) -> Vec<NodeOverview> {
    let leader = seen.iter().find(|it| it.leads);
    let leader = leader.map(|it| NodeReport::parse(&it.about));
    let leader = leader.unwrap_or_default();
    let overview = |seen: ClusterNode| {
        let report = NodeReport::parse(&seen.about);
        NodeOverview {
            differing_sections: report.differing_sections(&leader),
            settings_digest: report.digest(),
            ignored_settings: report.ignored,
            seen,
        }
    };
    seen.into_iter().map(overview).collect()
}

#[derive(Debug, Clone)]
pub struct DestinationOverview {
    pub name: String,
    pub health_summary: destination::HealthSummary,
    /// Successful deliveries in the last 24 hours.
    pub delivered: i64,
    /// Whether the destination is failing and the event about the failure is sent only to failing
    /// destinations.
    pub is_silent: bool,
}

pub async fn compute_overview(
    store: &Store,
    clock: &Arc<dyn Clock>,
    snapshot: &Snapshot,
    data_dir: PathBuf,
) -> Result<Overview, Error> {
    let open = open_by_severity(store).await?;
    let log_head = *store.engine().log_signal().borrow();
    let counting = StatisticsReader::new(store.clone(), Arc::clone(clock));
    Ok(Overview {
        acknowledged: acknowledged_count(store, open.values().sum()).await?,
        open,
        opened: opened_by_severity(store, clock.now_ms() - HOUR_MS).await?,
        footprint: Footprint::measure(store, data_dir).await,
        condition: store.engine().condition(),
        quiet_since_ms: snapshot.settings().quiet_since_ms,
        nodes: node_overviews(store.engine().cluster().nodes().await?),
        log_head,
        events_per_minute: counting.events_per_minute().await?,
        destinations: destination_overviews(store, clock, &counting, snapshot).await?,
        counted_since_ms: store.counters_since_ms().await?,
        oldest_undelivered_ms: oldest_undelivered_ms(store).await?,
        dead: dead_count(store).await?,
        triggers: snapshot.trigger_count(),
        destinations_stored: snapshot.destinations().len(),
        rules: snapshot.rules().len(),
        enabled_rules: snapshot.rules().iter().filter(|rule| rule.enabled).count(),
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
    let mut walk = IndexWalk::new(store, &filter, crate::ops::search::NEWEST_FIRST, None);
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
                name: found.name.to_string(),
                health_summary,
                delivered: day.tally_total(Tally::Delivered),
                is_silent,
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
