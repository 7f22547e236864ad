//! Previews the effect of documents on notifications by replaying the events of the past days.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::sync::Semaphore;

use super::{Configuration, Document, check};
use crate::{
    clock::DAY_MS,
    domain::{Occurrence, Rule},
    error::Error,
    limits::{IMPACT_SHOWN_MAX, REPLAY_DAYS, REPLAY_DAYS_MAX, REPLAY_TIME_MAX},
    ops::{
        decision_context::DecisionContext,
        replay::{OccurrenceOpening, ReplayResult, ReplayedMessage, Timeline, replay_timeline},
    },
    store::{Store, engine::Range},
};

const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Previews of the effect of documents on notifications, computed one at a time.
#[derive(Debug)]
pub struct Impacts {
    configuration: Configuration,
    deciding: DecisionContext,
    turn: Semaphore,
}

#[derive(Debug, Default)]
pub struct Impact {
    pub messages: usize,
    pub messages_before: usize,
    /// Message counts by rule, largest difference first.
    pub rules: Vec<MessageImpact>,
    /// Message counts by destination, largest difference first.
    pub destinations: Vec<MessageImpact>,
    pub no_longer_notified_count: usize,
    /// The most severe occurrences that would no longer notify.
    pub no_longer_notified: Vec<Occurrence>,
    pub newly_notified_count: usize,
    pub occurrence_count: usize,
    pub start_ms: i64,
    pub end_ms: i64,
    /// Whether the replay covers less than was requested.
    pub stopped_early: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageImpact {
    pub name: String,
    pub messages: usize,
    pub messages_before: usize,
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
    ) -> Result<Impact, Error> {
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
) -> Impact {
    let (start_ms, end_ms) = (timeline.since_ms, before.until_ms.min(after.until_ms));
    let is_notified = |at_ms: i64| (start_ms..=end_ms).contains(&at_ms);
    let of = |all: &'_ ReplayResult| {
        let notified = all.notified.iter().filter(|(_, at_ms)| **at_ms <= end_ms);
        notified.map(|(opening, _)| *opening).collect::<Vec<_>>()
    };
    let mut impact = Impact {
        start_ms,
        end_ms,
        stopped_early: timeline.is_cut || end_ms < now_ms,
        ..Impact::default()
    };
    let is_meant =
        |it: &&Occurrence| it.order_ms().max(it.close.map_or(i64::MAX, |it| it.at_ms)) >= start_ms;
    impact.occurrence_count = timeline.occurrences.values().filter(is_meant).count();
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
            (true, false) => impact.no_longer_notified.push(occurrence.clone()),
            (false, true) => impact.newly_notified_count += 1,
            _ => {}
        }
    }
    impact.no_longer_notified_count = impact.no_longer_notified.len();
    impact
        .no_longer_notified
        .sort_by_key(|it| (Reverse(it.severity), Reverse(it.start_ms), it.key));
    impact.no_longer_notified.truncate(IMPACT_SHOWN_MAX);
    let messages = |all: &'_ ReplayResult| {
        all.messages
            .iter()
            .filter(|it| is_notified(it.at_ms))
            .count()
    };
    (impact.messages_before, impact.messages) = (messages(before), messages(after));
    let counted = |name: fn(&ReplayedMessage) -> &str| {
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for message in before.messages.iter().filter(|it| is_notified(it.at_ms)) {
            counts.entry(name(message)).or_default().0 += 1;
        }
        for message in after.messages.iter().filter(|it| is_notified(it.at_ms)) {
            counts.entry(name(message)).or_default().1 += 1;
        }
        let counts = counts.into_iter().filter(|(name, _)| !name.is_empty());
        let counted = counts.map(|(name, (messages_before, messages))| MessageImpact {
            name: name.to_owned(),
            messages,
            messages_before,
        });
        let mut counted: Vec<_> = counted.collect();
        counted.sort_by_key(|it| Reverse(it.messages.abs_diff(it.messages_before)));
        counted
    };
    impact.rules = counted(|it| &it.rule);
    impact.destinations = counted(|it| &it.destination);
    impact
}

#[cfg(test)]
mod tests;
