//! Previews the effect of documents on notifications by replaying the events of the past days.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use bellwether_proto::v1;
use tokio::sync::Semaphore;

use super::{Configuration, Document, check};
use crate::{
    clock::DAY_MS,
    decision_context::DecisionContext,
    domain::{Occurrence, Rule},
    error::Error,
    limits::{IMPACT_SHOWN_MAX, REPLAY_DAYS, REPLAY_DAYS_MAX, REPLAY_TIME_MAX},
    replay::{OccurrenceOpening, ReplayResult, ReplayedMessage, Timeline, replay_timeline},
    store::{Store, engine::Range},
    wire::{event::event_with_one_occurrence, time::timestamp, to_i32},
};

const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Previews of the effect of documents on notifications, computed one at a time.
#[derive(Debug)]
pub struct Impacts {
    configuration: Configuration,
    deciding: DecisionContext,
    turn: Semaphore,
}

impl Impacts {
    /// Creates previews that compare a configuration with documents. They use the same decisions as
    /// the service.
    pub fn new(configuration: Configuration, deciding: DecisionContext) -> Self {
        Self {
            configuration,
            deciding,
            turn: Semaphore::new(1),
        }
    }

    /// Previews what applying the documents, and deleting the owner's other resources, would have
    /// changed in the past `days`. 0 selects the default number of days.
    ///
    /// # Errors
    /// Returns the errors of [`Configuration::apply`], [`Error::Invalid`] for too many days, and
    /// [`Error::Exhausted`] while another preview is running.
    pub async fn preview(
        &self,
        (documents, prune_owner): (&[Document], &str),
        days: u32,
    ) -> Result<v1::PreviewImpactResponse, Error> {
        if days > REPLAY_DAYS_MAX {
            let message = format!("is {days}; expected 1 to {REPLAY_DAYS_MAX} days");
            return Err(Error::invalid("days", message));
        }
        check::check_documents(documents, prune_owner)?;
        let days = if days == 0 { REPLAY_DAYS } else { days };
        let _turn = self.turn.try_acquire().map_err(|_busy| Error::Exhausted {
            message: "another preview is being computed".into(),
            retry_after: Some(RETRY_AFTER),
        })?;
        let stored = &self.configuration.store;
        let (staged, _) = self
            .configuration
            .stage_documents(documents, prune_owner)
            .await?;
        let drafted = staged.store();
        let now_ms = self.configuration.clock.now_ms();
        let since_ms = now_ms.saturating_sub(i64::from(days) * DAY_MS);
        let repeats = [
            shortest_repeat(stored).await?,
            shortest_repeat(drafted).await?,
        ];
        let repeat = repeats.into_iter().flatten().min();
        let timeline = Timeline::read(stored, since_ms, repeat).await?;
        let end = || self.deciding.clock.elapsed() + REPLAY_TIME_MAX;
        let before = replay_timeline((stored, &self.deciding), &timeline, now_ms, end()).await?;
        let until_ms = before.until_ms;
        let after = replay_timeline((drafted, &self.deciding), &timeline, until_ms, end()).await?;
        Ok(compare_replays(&timeline, &before, &after, now_ms))
    }
}

/// Returns the shortest repeat interval of all rules; `None` if no rule repeats.
async fn shortest_repeat(store: &Store) -> Result<Option<Duration>, Error> {
    let mut shortest: Option<Duration> = None;
    let mut pages = store.pages::<Rule>(Range::with_prefix(&[]));
    while let Some(page) = pages.next().await? {
        let repeating = page.iter().map(|it| &it.value).filter(|it| it.repeat);
        let times = repeating.map(|it| Duration::from_secs(it.repeat_interval_seconds.into()));
        shortest = times.chain(shortest).min();
    }
    Ok(shortest)
}

fn compare_replays(
    timeline: &Timeline,
    before: &ReplayResult,
    after: &ReplayResult,
    now_ms: i64,
) -> v1::PreviewImpactResponse {
    let (start_ms, end_ms) = (timeline.since_ms, before.until_ms.min(after.until_ms));
    let is_notified = |at_ms: i64| (start_ms..=end_ms).contains(&at_ms);
    let of = |all: &'_ ReplayResult| {
        let notified = all.notified.iter().filter(|(_, at_ms)| **at_ms <= end_ms);
        notified.map(|(opening, _)| *opening).collect::<Vec<_>>()
    };
    let is_meant =
        |it: &&Occurrence| it.order_ms().max(it.close.map_or(i64::MAX, |it| it.at_ms)) >= start_ms;
    let (mut no_longer_notified, mut newly_notified_count) = (Vec::new(), 0);
    let mut notified: HashMap<OccurrenceOpening, (bool, bool)> = HashMap::new();
    for opening in of(before) {
        notified.entry(opening).or_default().0 = true;
    }
    for opening in of(after) {
        notified.entry(opening).or_default().1 = true;
    }
    for (opening, notified) in notified {
        let occurrence = timeline.occurrences.get(&opening).filter(is_meant);
        let Some(occurrence) = occurrence else {
            continue;
        };
        match notified {
            (true, false) => no_longer_notified.push(occurrence),
            (false, true) => newly_notified_count += 1,
            _ => {}
        }
    }
    no_longer_notified.sort_by_key(|it| (Reverse(it.severity), Reverse(it.start_ms), it.key));
    let messages = |all: &'_ ReplayResult| {
        let messages = all.messages.iter().filter(|it| is_notified(it.at_ms));
        Some(to_i32(messages.count()))
    };
    // By the largest difference.
    let counted = |name: fn(&ReplayedMessage) -> &str| {
        let mut counts: BTreeMap<&str, (i32, i32)> = BTreeMap::new();
        for message in before.messages.iter().filter(|it| is_notified(it.at_ms)) {
            counts.entry(name(message)).or_default().0 += 1;
        }
        for message in after.messages.iter().filter(|it| is_notified(it.at_ms)) {
            counts.entry(name(message)).or_default().1 += 1;
        }
        let counts = counts.into_iter().filter(|(name, _)| !name.is_empty());
        let counted = counts.map(|(name, (before, after))| v1::ImpactCount {
            name: name.to_owned(),
            message_count: Some(after),
            message_count_before: Some(before),
        });
        let mut counted: Vec<_> = counted.collect();
        counted.sort_by_key(|it| Reverse(it.message_count().abs_diff(it.message_count_before())));
        counted
    };
    let occurrences = timeline.occurrences.values().filter(is_meant);
    v1::PreviewImpactResponse {
        message_count: messages(after),
        message_count_before: messages(before),
        rules: counted(|it| &it.rule),
        destinations: counted(|it| &it.destination),
        no_longer_notified_count: Some(to_i32(no_longer_notified.len())),
        no_longer_notified: no_longer_notified
            .into_iter()
            .take(IMPACT_SHOWN_MAX)
            .map(|it| event_with_one_occurrence(it.clone()))
            .collect(),
        newly_notified_count: Some(newly_notified_count),
        occurrence_count: Some(to_i32(occurrences.count())),
        start_time: Some(timestamp(start_ms)),
        end_time: Some(timestamp(end_ms)),
        stopped_early: timeline.is_cut || end_ms < now_ms,
    }
}

#[cfg(test)]
mod tests;
