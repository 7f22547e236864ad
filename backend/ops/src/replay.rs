//! Replays stored occurrences under other definitions, to find out which messages would have been
//! sent. Runs the service without disk and dispatcher, and with a clock that jumps from one due
//! time to the next.
//!
//! The store contains an occurrence's changes and event count but not each event, so repeats are
//! assumed to be evenly spaced. Messages are counted when they are decided, and every destination
//! is assumed to accept them.

mod timeline;

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::timeline::ReplayEvent;
pub use self::timeline::{OccurrenceOpening, Timeline};
use crate::{
    clock::{Clock, ManualClock},
    decision_context::DecisionContext,
    domain::{
        Calendar, Client, Contact, Delivery, DeliveryState, Destination, EscalationPolicy,
        Inhibition, Occurrence, Progress, Rule, Schedule, Settings, SharedSettings, Silence,
        Trigger,
    },
    error::Error,
    intake::Intake,
    limits::{REPLAY_ROWS_MAX, REPLAY_STEP},
    review::Reviewer,
    ruleset::Ruleset,
    scan,
    set_status::{StatusItem, set_status},
    settings,
    store::{Lane, Record, Store, engine::Range},
};

/// In a replay, occurrences neither age nor expire, because the changes recorded for them are
/// replayed instead.
const NO_AGE: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

#[derive(Debug, Default)]
pub struct ReplayResult {
    pub messages: Vec<ReplayedMessage>,
    /// The notified occurrences, each with the time of its first notification, in milliseconds
    /// since the epoch.
    pub notified: HashMap<OccurrenceOpening, i64>,
    pub until_ms: i64,
}

#[derive(Debug)]
pub struct ReplayedMessage {
    pub at_ms: i64,
    pub rule: String,
    pub destination: String,
}

/// Replays a timeline up to `until_ms`, in milliseconds since the epoch, under the definitions of a
/// store. Stops early when the monotonic clock reaches `end`.
pub async fn replay_timeline(
    (definitions, like): (&Store, &DecisionContext),
    timeline: &Timeline,
    until_ms: i64,
    end: Duration,
) -> Result<ReplayResult, Error> {
    let start_ms = timeline.start_ms().unwrap_or(until_ms);
    let mut world = ReplayService::with_definitions(definitions, like, start_ms).await?;
    for (done, step) in timeline.steps.iter().enumerate() {
        let is_check_due = done % REPLAY_STEP == 0;
        let is_over = || like.clock.elapsed() >= end;
        let is_full = async || Ok::<_, Error>(world.row_count().await? > REPLAY_ROWS_MAX);
        if is_check_due && (is_over() || is_full().await?) {
            // Leave out this moment, since some of its steps may be missing.
            return world.into_result(step.at_ms - 1).await;
        }
        if !world.advance_until(step.at_ms, end).await? {
            let reached_ms = world.clock.now_ms() - 1;
            return world.into_result(reached_ms).await;
        }
        world.apply(&step.happening).await?;
        scan::yield_if_needed().await;
    }
    let is_whole = world.advance_until(until_ms, end).await?;
    let reached_ms = if is_whole {
        until_ms
    } else {
        world.clock.now_ms() - 1
    };
    world.into_result(reached_ms).await
}

struct ReplayService {
    /// The real clock, which limits the duration of the replay.
    real: Arc<dyn Clock>,
    clock: Arc<ManualClock>,
    deciding: DecisionContext,
    intake: Intake,
    reviewer: Reviewer,
    /// Time up to which all due work is done.
    reviewed_ms: i64,
    _stop: DropGuard,
    _workers: JoinSet<()>,
}

impl ReplayService {
    async fn with_definitions(
        definitions: &Store,
        like: &DecisionContext,
        start_ms: i64,
    ) -> Result<Self, Error> {
        let store = definitions.empty_copy();
        copy_records::<Calendar>(definitions, &store, |_| {}).await?;
        copy_records::<Trigger>(definitions, &store, |_| {}).await?;
        copy_records::<Destination>(definitions, &store, |_| {}).await?;
        copy_records::<Client>(definitions, &store, |_| {}).await?;
        copy_records::<Contact>(definitions, &store, |_| {}).await?;
        copy_records::<Schedule>(definitions, &store, |_| {}).await?;
        copy_records::<EscalationPolicy>(definitions, &store, |_| {}).await?;
        copy_records::<Rule>(definitions, &store, |_| {}).await?;
        copy_records::<Inhibition>(definitions, &store, |it| it.counted_revision = 0).await?;
        copy_records::<Silence>(definitions, &store, |it| it.progress = Progress::default())
            .await?;
        let mut changes = store.new_changes();
        changes.insert(&without_aging(definitions).await?);
        store.apply(Lane::Admin, changes).await?;
        let clock = Arc::new(ManualClock::starting_at(start_ms));
        let deciding = DecisionContext {
            beats: Arc::default(),
            ruleset: Arc::new(Ruleset::load(store.clone()).await?),
            store,
            clock: Arc::clone(&clock) as _,
        };
        let (intake, workers) = Intake::new(deciding.clone());
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(scan::with_current_scan(workers.run(stop.clone())));
        let world = Self {
            real: Arc::clone(&like.clock),
            reviewer: Reviewer::new(deciding.clone(), intake.clone()),
            reviewed_ms: start_ms,
            clock,
            deciding,
            intake,
            _stop: stop.drop_guard(),
            _workers: tasks,
        };
        world.run_review().await;
        Ok(world)
    }

    /// Processes all work due up to `at_ms` and advances the clock to it. Returns whether it
    /// finished before `end`.
    async fn advance_until(&mut self, at_ms: i64, end: Duration) -> Result<bool, Error> {
        while let Some(due_ms) = self.reviewer.next_due_ms(self.reviewed_ms).await?
            && due_ms <= at_ms
        {
            if self.real.elapsed() >= end {
                return Ok(false);
            }
            self.advance_clock(due_ms);
            self.reviewed_ms = due_ms;
            self.run_review().await;
        }
        self.advance_clock(at_ms);
        Ok(true)
    }

    fn advance_clock(&self, to_ms: i64) {
        let left_ms = to_ms.saturating_sub(self.clock.now_ms());
        self.clock
            .advance(Duration::from_millis(left_ms.try_into().unwrap_or(0)));
    }

    async fn run_review(&self) {
        self.reviewer.run_once().await;
        self.wait_until_settled().await;
    }

    async fn apply(&mut self, happening: &ReplayEvent) -> Result<(), Error> {
        match happening {
            ReplayEvent::Event(event, chain) if chain.is_empty() => {
                let event = vec![(**event).clone()];
                self.intake.submit(event, None).await?;
            }
            ReplayEvent::Event(event, chain) => {
                let event = (**event).clone();
                self.intake.submit_internal(event, chain.clone()).await?;
            }
            ReplayEvent::Change(target, change, author) => {
                let item = StatusItem {
                    target: *target,
                    change: change.clone(),
                };
                let by = (&self.deciding, &self.intake);
                // Changes that fail because the occurrence is missing are skipped. Its opening was
                // not in the timeline.
                set_status(by, &[item], author).await?;
            }
        }
        self.wait_until_settled().await;
        Ok(())
    }

    async fn wait_until_settled(&self) {
        while self.intake.queue_size().1 > 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn row_count(&self) -> Result<u64, Error> {
        Ok(self.deciding.store.engine().row_count().await?)
    }

    async fn into_result(self, until_ms: i64) -> Result<ReplayResult, Error> {
        let store = &self.deciding.store;
        let mut replayed = ReplayResult {
            until_ms,
            ..ReplayResult::default()
        };
        let mut pages = store.pages::<Delivery>(Range::with_prefix(&[]));
        while let Some(page) = pages.next().await? {
            let sent = page.into_iter().map(|it| it.value).filter(|it| {
                let is_unsent = matches!(it.state, DeliveryState::Shadowed | DeliveryState::Folded);
                !is_unsent
            });
            replayed.messages.extend(sent.map(|it| ReplayedMessage {
                at_ms: it.create_ms,
                rule: it.content.rule.name,
                destination: it.destination_name,
            }));
        }
        let mut pages = store.pages::<Occurrence>(Range::with_prefix(&[]));
        while let Some(page) = pages.next().await? {
            for occurrence in page.into_iter().map(|it| it.value) {
                if let Some(at_ms) = first_notified_ms(&occurrence) {
                    replayed
                        .notified
                        .insert(OccurrenceOpening::from_occurrence(&occurrence), at_ms);
                }
            }
        }
        Ok(replayed)
    }
}

fn first_notified_ms(occurrence: &Occurrence) -> Option<i64> {
    let notified = occurrence.notified.iter().filter(|it| !it.shadow);
    let opened = notified.map(|it| it.opening.as_ref().map_or(it.last_ms, |it| it.at_ms));
    opened.min()
}

async fn without_aging(definitions: &Store) -> Result<Settings, Error> {
    let values = SharedSettings {
        info_age_max: NO_AGE,
        warning_age_max: NO_AGE,
        error_age_max: NO_AGE,
        event_retention: NO_AGE,
        ..settings::read_values(definitions).await?
    };
    settings::initial_settings(values, 0)
}

async fn copy_records<T: Record>(
    from: &Store,
    to: &Store,
    change: impl Fn(&mut T),
) -> Result<(), Error> {
    let mut pages = from.pages::<T>(Range::with_prefix(&[]));
    while let Some(page) = pages.next().await? {
        let mut changes = to.new_changes();
        for mut record in page.into_iter().map(|it| it.value) {
            change(&mut record);
            changes.insert(&record);
        }
        to.apply(Lane::Bulk, changes).await?;
    }
    Ok(())
}
