//! What a silence would cover now, and would have held back of what was sent lately.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    clock::Clock,
    decide::{LoadedSilence, Snapshot},
    domain::{Delivery, DeliveryState, Occurrence, Query, RecordId, Status},
    error::Error,
    limits::{TRIGGER_TEST_OCCURRENCES_MAX, TRIGGER_TEST_SHOWN_MAX, TRIGGER_TEST_TIME_MAX},
    ops::search::{Filter, NEWEST_FIRST, Walk},
    store::{Direction, Record, Store, engine::Range},
};

/// Days whose messages are looked at.
const DAYS: i64 = 7;
const DAY_MS: i64 = 24 * 3_600_000;
/// Records read at once.
const BATCH: usize = 500;

/// What a silence would do.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// The query that was asked.
    pub query: Option<Query>,
    /// Days whose messages were looked at.
    pub days: i64,
    /// Open events that it would cover.
    pub covered_count: usize,
    /// Open events that were looked at.
    pub open_count: usize,
    /// The first that it would cover, the one seen last first.
    pub covered: Vec<Occurrence>,
    /// How many of those that it would cover have something that waits.
    pub pending_count: usize,
    /// Messages that it would have held back.
    pub message_count: usize,
    /// The same by rule.
    pub by_rule: Vec<RuleMessages>,
    /// Why it is too broad, when it is.
    pub too_broad: Option<String>,
    /// What its author may not mean.
    pub warnings: Vec<String>,
    /// Whether not everything was looked at.
    pub stopped_early: bool,
}

/// Messages of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMessages {
    /// The rule's name.
    pub rule_name: String,
    /// How many.
    pub messages: usize,
}

/// Counts what is open, and what of it a silence would cover, as far as time allows.
pub(super) async fn open(
    store: &Store,
    clock: &dyn Clock,
    snapshot: &Snapshot,
    silence: &LoadedSilence,
) -> Result<Preview, Error> {
    let filter = Filter {
        statuses: vec![Status::Open],
        ..Filter::default()
    };
    let mut preview = Preview::default();
    let mut walk = Walk::new(store, &filter, NEWEST_FIRST, None);
    let end = Deadline::of(clock);
    loop {
        let batch = walk.next(BATCH).await?;
        if batch.is_empty() {
            return Ok(preview);
        }
        for (_, found) in batch {
            let occurrence = found.value;
            if occurrence.status != Status::Open {
                continue;
            }
            preview.open_count += 1;
            let is_for_some = !silence.silence.rule_names.is_empty();
            let matches = if is_for_some {
                snapshot.matches(&occurrence)
            } else {
                Vec::new()
            };
            let rules: Vec<_> = matches.iter().map(|it| &it.rule.name).collect();
            if !silence.covers(&occurrence, &rules) {
                continue;
            }
            preview.covered_count += 1;
            preview.pending_count += usize::from(!occurrence.pending.is_empty());
            if preview.covered.len() < TRIGGER_TEST_SHOWN_MAX {
                preview.covered.push(occurrence);
            }
        }
        if preview.open_count >= TRIGGER_TEST_OCCURRENCES_MAX || end.is_over(clock) {
            preview.stopped_early = true;
            return Ok(preview);
        }
        tokio::task::yield_now().await;
    }
}

/// Adds the messages of the last days that the silence would have held back.
pub(super) async fn sent(
    store: &Store,
    clock: &dyn Clock,
    silence: &LoadedSilence,
    preview: &mut Preview,
) -> Result<(), Error> {
    let since_ms = clock.now_ms().saturating_sub(DAYS * DAY_MS);
    let first = RecordId::first_at(since_ms.try_into().unwrap_or(0));
    let mut range = Range {
        start: first.to_bytes().into(),
        end: None,
    };
    let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
    let end = Deadline::of(clock);
    loop {
        let page = store
            .page::<Delivery>(range.clone(), Direction::Ascending, BATCH)
            .await?;
        let Some(last) = page.last() else { break };
        range.go_on_after(&last.value.key());
        for delivery in page.into_iter().map(|it| it.value) {
            let occurrence = &delivery.content.occurrence;
            let rule = &delivery.content.rule.name;
            let is_counted = !delivery.test
                && delivery.retry_of.is_none()
                && delivery.state != DeliveryState::Shadowed
                && occurrence.status != Status::Closed;
            let names = &silence.silence.rule_names;
            let is_for = names.is_empty() || names.iter().any(|name| name.as_str() == rule);
            if is_counted && is_for && silence.matches(occurrence) {
                *by_rule.entry(rule.clone()).or_default() += 1;
            }
        }
        if end.is_over(clock) {
            preview.stopped_early = true;
            break;
        }
        tokio::task::yield_now().await;
    }
    preview.days = DAYS;
    preview.message_count = by_rule.values().sum();
    let of = |(rule_name, messages)| RuleMessages {
        rule_name,
        messages,
    };
    preview.by_rule = by_rule.into_iter().map(of).collect();
    Ok(())
}

/// Until when something is looked at.
struct Deadline(Duration);

impl Deadline {
    fn of(clock: &dyn Clock) -> Self {
        Self(clock.passed() + TRIGGER_TEST_TIME_MAX)
    }

    fn is_over(&self, clock: &dyn Clock) -> bool {
        clock.passed() >= self.0
    }
}
