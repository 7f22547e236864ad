//! Previews of heartbeats on stored events.

use std::collections::HashMap;

use bellwether_backend_model::calendar::Span;
use bellwether_proto::v1;

use super::Heartbeats;
use crate::{
    clock::DAY_MS,
    decide::LoadedHeartbeat,
    decision_context::DecisionContext,
    domain::{Heartbeat, Occurrence, RecordId, Status, hold::SharedValue},
    error::Error,
    limits::{EXPECTATIONS_MAX, TRIGGER_TEST_OCCURRENCES_MAX, TRIGGER_TEST_SHOWN_MAX},
    recent_messages::Deadline,
    resource::{AuthoredResource as _, Origin},
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
};

const DAYS: i64 = 7;
const BATCH: usize = 500;

#[derive(Debug, Clone)]
pub struct HeartbeatPreviews {
    all: Heartbeats,
    deciding: DecisionContext,
}

#[derive(Debug, Clone, Default)]
pub struct HeartbeatPreview {
    /// The first expectations, most often late first.
    pub expectations: Vec<PreviewedExpectation>,
    pub expectation_count: usize,
    /// Number of events that would have been opened.
    pub alarm_count: usize,
    /// Number of occurrences that count as beats.
    pub occurrence_count: usize,
    pub start_ms: i64,
    pub stopped_early: bool,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct PreviewedExpectation {
    pub values: Vec<SharedValue>,
    pub beat_count: u64,
    pub longest_ms: i64,
    pub last_ms: Option<i64>,
    pub alarm_count: usize,
}

/// Beats spaced evenly over a time range. Of an occurrence's repeats, only the range and the count
/// are stored.
#[derive(Debug, Clone, Copy)]
struct BeatSpan {
    first_ms: i64,
    last_ms: i64,
    count: u64,
}

impl BeatSpan {
    fn from_occurrence(occurrence: &Occurrence, since_ms: i64) -> Option<Self> {
        let close = occurrence.close.as_ref().map(|it| it.at_ms);
        let last_ms = occurrence.last_seen_ms.max(close.unwrap_or(i64::MIN));
        let count = occurrence.count.max(1) + u64::from(close.is_some());
        let whole = Self {
            first_ms: occurrence.start_ms.min(last_ms),
            last_ms,
            count,
        };
        (last_ms >= since_ms).then(|| whole.with_start(since_ms))
    }

    fn interval_ms(self) -> i64 {
        let between = i64::try_from(self.count.saturating_sub(1)).unwrap_or(i64::MAX);
        let length_ms = self.last_ms.saturating_sub(self.first_ms);
        length_ms / between.max(1)
    }

    fn with_start(self, since_ms: i64) -> Self {
        let apart_ms = self.interval_ms();
        if self.first_ms >= since_ms || apart_ms == 0 {
            return self;
        }
        let left = self.last_ms.saturating_sub(since_ms) / apart_ms;
        Self {
            first_ms: self.last_ms.saturating_sub(left.saturating_mul(apart_ms)),
            count: left.unsigned_abs() + 1,
            ..self
        }
    }

    fn overlaps(self, start_ms: i64, end_ms: i64) -> bool {
        if self.last_ms < start_ms || self.first_ms > end_ms {
            return false;
        }
        if self.first_ms >= start_ms || self.last_ms <= end_ms {
            return true;
        }
        let apart_ms = self.interval_ms().max(1);
        let before = (start_ms - 1 - self.first_ms) / apart_ms;
        self.first_ms + (before + 1) * apart_ms <= end_ms
    }
}

impl HeartbeatPreviews {
    pub fn new(all: Heartbeats, deciding: DecisionContext) -> Self {
        Self { all, deciding }
    }

    /// Evaluates a draft on the events of the past days. The draft requires no name.
    pub async fn preview(&self, mut draft: v1::Heartbeat) -> Result<HeartbeatPreview, Error> {
        "preview".clone_into(&mut draft.name);
        let now_ms = self.deciding.clock.now_ms();
        let origin = Origin::new(now_ms);
        let (heartbeat, _) = Heartbeat::from_draft(&self.all, &draft, None, origin).await?;
        let mut warnings = heartbeat.warnings(&self.all).await?;
        let snapshot = self.deciding.ruleset.refresh().await?;
        let loaded = LoadedHeartbeat::new(heartbeat, snapshot.calendars());
        let loaded = loaded.ok_or_else(|| Error::invalid("heartbeat", "cannot be evaluated"))?;
        if !loaded.uses_events() {
            let warning =
                "no event is a beat of this heartbeat; without `filter`, only calls count";
            warnings.push(warning.to_owned());
        }
        let start_ms = now_ms.saturating_sub(DAYS * DAY_MS);
        let mut previewed = self.read(&loaded, (start_ms, now_ms)).await?;
        previewed.warnings = warnings;
        Ok(previewed)
    }

    async fn read(
        &self,
        loaded: &LoadedHeartbeat,
        (start_ms, now_ms): (i64, i64),
    ) -> Result<HeartbeatPreview, Error> {
        let mut previewed = HeartbeatPreview {
            start_ms,
            ..HeartbeatPreview::default()
        };
        let mut found: HashMap<RecordId, (Vec<SharedValue>, Vec<BeatSpan>)> = HashMap::new();
        if loaded.heartbeat.by.is_empty() {
            found.insert(loaded.key(&[]), (Vec::new(), Vec::new()));
        }
        let filter = Filter {
            statuses: Status::ALL.to_vec(),
            ..Filter::default()
        };
        let clock = &*self.deciding.clock;
        let end = Deadline::start(clock);
        let mut walk = IndexWalk::new(&self.deciding.store, &filter, NEWEST_FIRST, None);
        let mut seen = 0;
        'read: loop {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for (_, stored) in batch {
                scan::yield_if_needed().await;
                seen += 1;
                let occurrence = stored.value;
                if occurrence.last_seen_ms < start_ms {
                    break 'read;
                }
                let Some(values) = loaded.beat_values(&occurrence) else {
                    continue;
                };
                let Some(beaten) = BeatSpan::from_occurrence(&occurrence, start_ms) else {
                    continue;
                };
                let key = loaded.key(&values);
                if found.len() >= EXPECTATIONS_MAX && !found.contains_key(&key) {
                    previewed.stopped_early = true;
                    continue;
                }
                previewed.occurrence_count += 1;
                let of = found.entry(key).or_insert_with(|| (values, Vec::new()));
                of.1.push(beaten);
            }
            if seen >= TRIGGER_TEST_OCCURRENCES_MAX || end.has_passed(clock) {
                previewed.stopped_early = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        let windows = loaded.windows(start_ms, now_ms);
        for (values, beaten) in found.into_values() {
            scan::yield_if_needed().await;
            let judged = JudgedHeartbeat {
                heartbeat: &loaded.heartbeat,
                windows: windows.as_deref(),
                start_ms,
                now_ms,
            };
            previewed
                .expectations
                .push(judged.preview_expectation(values, beaten));
        }
        previewed.finish();
        Ok(previewed)
    }
}

impl HeartbeatPreview {
    fn finish(&mut self) {
        self.expectation_count = self.expectations.len();
        self.alarm_count = self.expectations.iter().map(|it| it.alarm_count).sum();
        self.expectations.sort_by(|one, two| {
            let order = |it: &PreviewedExpectation| (it.alarm_count, it.longest_ms);
            let by_values = || one.values.cmp(&two.values);
            order(two).cmp(&order(one)).then_with(by_values)
        });
        self.expectations.truncate(TRIGGER_TEST_SHOWN_MAX);
    }
}

struct JudgedHeartbeat<'a> {
    heartbeat: &'a Heartbeat,
    windows: Option<&'a [Span]>,
    start_ms: i64,
    now_ms: i64,
}

impl JudgedHeartbeat<'_> {
    fn preview_expectation(
        &self,
        values: Vec<SharedValue>,
        mut all: Vec<BeatSpan>,
    ) -> PreviewedExpectation {
        all.sort_unstable_by_key(|it| it.first_ms);
        let silence_ms = self.heartbeat.allowed_silence_ms();
        let (mut longest_ms, mut late_count) = (0, 0_usize);
        let mut gap = |gap_ms: i64, count: u64| {
            longest_ms = longest_ms.max(gap_ms);
            if gap_ms > silence_ms {
                late_count += usize::try_from(count).unwrap_or(usize::MAX);
            }
        };
        // Without fields, beats are expected from the start.
        let is_whole = self.heartbeat.by.is_empty();
        let mut last_ms = is_whole.then_some(self.start_ms);
        for beaten in &all {
            if let Some(last_ms) = last_ms {
                gap(beaten.first_ms.saturating_sub(last_ms), 1);
            }
            let before_ms = last_ms.unwrap_or(i64::MIN);
            if beaten.last_ms > before_ms {
                gap(beaten.interval_ms(), beaten.count - 1);
                last_ms = Some(beaten.last_ms);
            }
        }
        gap(
            self.now_ms.saturating_sub(last_ms.unwrap_or(self.now_ms)),
            1,
        );
        let alarm_count = match self.windows {
            Some(windows) => self.missed_windows(windows, &all),
            None => late_count,
        };
        PreviewedExpectation {
            values,
            beat_count: all.iter().map(|it| it.count).sum(),
            longest_ms,
            last_ms: all.iter().map(|it| it.last_ms).max(),
            alarm_count,
        }
    }

    fn missed_windows(&self, windows: &[Span], all: &[BeatSpan]) -> usize {
        let grace_ms = self.heartbeat.grace_ms;
        let since_ms = match all.first() {
            Some(first) if !self.heartbeat.by.is_empty() => first.first_ms,
            _ => self.start_ms,
        };
        let over = windows.iter().filter(|it| {
            let is_begun = it.start_ms >= since_ms;
            is_begun && it.end_ms.saturating_add(grace_ms) <= self.now_ms
        });
        let is_missed = |it: &&Span| {
            let end_ms = it.end_ms.saturating_add(grace_ms);
            !all.iter()
                .any(|beaten| beaten.overlaps(it.start_ms, end_ms))
        };
        over.filter(is_missed).count()
    }
}
