//! Reports late evaluations of holds, as an event of the service itself and to the health checks.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, to_millis},
    domain::{IncomingEvent, Occurrence, Severity, own_event::HOLDS_LATE},
    error::Error,
    find,
    intake::Intake,
    limits::{HOLDS_BATCH, HOLDS_LATE_EVENT, HOLDS_LATE_MAX, HOLDS_WATCH_INTERVAL},
    repeat::repeat_until_shutdown,
    settings,
    store::{
        Direction, Index, Store,
        engine::{EngineError, Range},
        record::bytes::Key,
    },
};

#[derive(Debug)]
pub struct HoldWatch {
    store: Store,
    clock: Arc<dyn Clock>,
    intake: Intake,
    /// Start of the watch, in milliseconds since the epoch. Holds that became due before it, while
    /// no process ran, do not count as late yet.
    since_ms: i64,
    /// Whether the event was last reported as open; `None` before the first report.
    reported: Option<bool>,
    is_late: watch::Sender<bool>,
}

/// Returns the due time of the oldest hold that has not been evaluated, in milliseconds since the
/// epoch; `None` if none is due.
pub async fn oldest_due_ms(store: &Store, now_ms: i64) -> Result<Option<i64>, EngineError> {
    let mut range = Range {
        start: Vec::new(),
        end: Some(Key::new().time_ms(now_ms.saturating_add(1)).build()),
    };
    loop {
        let (index, ascending) = (Index::OccurrenceByDue, Direction::Ascending);
        let found = store.page_by_index::<Occurrence>(index, range.clone(), ascending, HOLDS_BATCH);
        let found = found.await?;
        let Some((last, _)) = found.last() else {
            return Ok(None);
        };
        range.exclude_through(last);
        let due = found
            .iter()
            .filter_map(|(_, it)| it.value.next_evaluation_ms());
        if let Some(due_ms) = due.filter(|due_ms| *due_ms <= now_ms).min() {
            return Ok(Some(due_ms));
        }
    }
}

impl HoldWatch {
    pub fn new(store: Store, clock: Arc<dyn Clock>, intake: Intake) -> Self {
        Self {
            store,
            since_ms: clock.now_ms(),
            clock,
            intake,
            reported: None,
            is_late: watch::Sender::default(),
        }
    }

    /// Returns a watch on whether holds are so late that the service is not ready.
    pub fn watch_lateness(&self) -> watch::Receiver<bool> {
        self.is_late.subscribe()
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.clock);
        repeat_until_shutdown(
            self,
            &*clock,
            HOLDS_WATCH_INTERVAL,
            shutdown,
            "failed to check the age of due holds",
            |it| Box::pin(it.check()),
        )
        .await;
    }

    async fn check(&mut self) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        if settings::read_values(&self.store).await?.is_quiet_mode() {
            // In quiet mode no holds are evaluated, so none counts as late when quiet mode ends.
            self.since_ms = now_ms;
        }
        // The clock may have been set back since the start.
        self.since_ms = self.since_ms.min(now_ms);
        let oldest_ms = oldest_due_ms(&self.store, now_ms).await?;
        let age_ms = oldest_ms.map_or(0, |due_ms| now_ms.saturating_sub(due_ms.max(self.since_ms)));
        let is_late = age_ms >= to_millis(HOLDS_LATE_MAX);
        if self.is_late.send_replace(is_late) != is_late {
            tracing::warn!(age_ms, is_late, "due holds are evaluated late");
        }
        let is_open = age_ms >= to_millis(HOLDS_LATE_EVENT);
        if self.reported == Some(is_open) {
            return Ok(());
        }
        let event = late_holds_event(is_open, age_ms, now_ms);
        if is_open != find::is_event_open(&self.store, event.id()).await? {
            self.intake.submit_internal(event, Vec::new()).await?;
        }
        self.reported = Some(is_open);
        Ok(())
    }
}

fn late_holds_event(is_open: bool, age_ms: i64, now_ms: i64) -> IncomingEvent {
    let event = if is_open {
        let seconds = age_ms / 1_000;
        let summary =
            format!("held notifications are not being evaluated: one is {seconds} s overdue");
        HOLDS_LATE.opened([], Severity::Critical, summary, now_ms)
    } else {
        HOLDS_LATE.closed([], "held notifications are evaluated again", now_ms)
    };
    IncomingEvent {
        body: "Until they are evaluated, delays and silences do not end, and groups and escalation steps do not \
               notify. The log names the error; `bellwether_due_oldest_seconds` shows the age."
            .into(),
        ..event
    }
}

#[cfg(test)]
mod tests;
