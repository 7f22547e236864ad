//! Previews of silences: events covered now, and recent messages that would have been held.

use bellwether_proto::v1;

use crate::{
    clock::Clock,
    decide::{LoadedSilence, Snapshot},
    domain::{Delivery, Occurrence, Query, Status},
    error::Error,
    limits::{TRIGGER_TEST_OCCURRENCES_MAX, TRIGGER_TEST_SHOWN_MAX},
    recent_messages::{Deadline, HeldMessages, held_messages},
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
    store::Store,
};

const BATCH: usize = 500;

#[derive(Debug, Clone, Default)]
pub struct SilencePreview {
    pub query: Option<Query>,
    pub covered_count: usize,
    pub open_count: usize,
    /// The first events that the silence would cover, most recently seen first.
    pub covered: Vec<Occurrence>,
    pub pending_count: usize,
    pub messages: v1::SilencedMessages,
    pub too_broad: Option<String>,
    pub warnings: Vec<String>,
    pub stopped_early: bool,
}

pub(super) async fn preview_open_events(
    store: &Store,
    clock: &dyn Clock,
    snapshot: &Snapshot,
    silence: &LoadedSilence,
) -> Result<SilencePreview, Error> {
    let filter = Filter {
        statuses: vec![Status::Open],
        ..Filter::default()
    };
    let mut preview = SilencePreview::default();
    let mut walk = IndexWalk::new(store, &filter, NEWEST_FIRST, None);
    let end = Deadline::start(clock);
    loop {
        let batch = walk.next(BATCH).await?;
        if batch.is_empty() {
            return Ok(preview);
        }
        for (_, found) in batch {
            scan::yield_if_needed().await;
            let occurrence = found.value;
            if occurrence.status != Status::Open {
                continue;
            }
            preview.open_count += 1;
            let is_for_some = !silence.silence.rule_names.is_empty();
            let matches = if is_for_some {
                snapshot.matching_triggers(&occurrence)
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
        if preview.open_count >= TRIGGER_TEST_OCCURRENCES_MAX || end.has_passed(clock) {
            preview.stopped_early = true;
            return Ok(preview);
        }
        tokio::task::yield_now().await;
    }
}

pub(super) async fn silenced_messages(
    store: &Store,
    clock: &dyn Clock,
    silence: &LoadedSilence,
) -> Result<HeldMessages, Error> {
    let is_held = |delivery: &Delivery| {
        let rule = &delivery.content.rule.name;
        let names = &silence.silence.rule_names;
        let is_for = names.is_empty() || names.iter().any(|name| name.as_str() == rule);
        let names = &silence.silence.destination_names;
        let is_to = names.is_empty()
            || names
                .iter()
                .any(|it| it.as_str() == delivery.destination_name);
        is_for && is_to && silence.matches(&delivery.content.occurrence)
    };
    held_messages(store, clock, is_held).await
}
