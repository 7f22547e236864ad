//! Calendar windows in which beats are expected: their beginning and end.
//!
//! The clock determines when a window begins; from then on, the window is measured in service time.
//! For a day after a clock step, windows are extended by the step at both ends, so that a beat
//! counts regardless of which time was right.

use bellwether_backend_model::calendar::Span;
use futures_util::future::try_join_all;

use super::{HeartbeatChecks, WatchTime};
use crate::{
    beats::new_expectation,
    clock::{DAY_MS, to_millis},
    decide::LoadedHeartbeat,
    domain::{
        Expectation, ExpectationState, RecordId,
        heartbeat::{ExpectedWindow, SERVICE},
    },
    error::Error,
    heartbeat::due::stored_window,
    limits::{CLOCK_SLACK_MAX, CLOCK_SLACK_TIME, CLOCK_STEP_MIN, HEARTBEAT_CHECK_INTERVAL},
    store::{
        Stored,
        engine::Range,
        record::{beat_prefix, bytes::Key},
    },
};

/// Maximum time back to search for the start of a window, in milliseconds.
const BACK_MAX_MS: i64 = 40 * DAY_MS;

#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClockSteps {
    /// Wall-clock time of the last check, in milliseconds since the epoch.
    wall_ms: i64,
    pub(super) stepped_ms: i64,
    /// Extension of windows that begin now.
    slack_ms: i64,
    /// End of the extension, in service time.
    slack_until_ms: i64,
}

impl ClockSteps {
    pub(super) fn starting_at(wall_ms: i64) -> Self {
        Self {
            wall_ms,
            ..Self::default()
        }
    }

    pub(super) fn detect_step(&mut self, wall_ms: i64, since_ms: i64, service_ms: i64) {
        let step_ms = wall_ms.saturating_sub(self.wall_ms.saturating_add(since_ms));
        let most_ms = to_millis(CLOCK_SLACK_MAX);
        let step_ms = step_ms.saturating_abs().min(most_ms);
        let is_step = step_ms >= to_millis(CLOCK_STEP_MIN);
        self.wall_ms = wall_ms;
        self.stepped_ms = if is_step { step_ms } else { 0 };
        if is_step {
            self.slack_ms = self.slack_ms.saturating_add(step_ms).min(most_ms);
            self.slack_until_ms = service_ms.saturating_add(to_millis(CLOCK_SLACK_TIME));
        } else if service_ms > self.slack_until_ms {
            self.slack_ms = 0;
        }
    }
}

impl HeartbeatChecks {
    /// Checks the window of a heartbeat and returns the service time of the next check.
    pub(super) async fn check_window(
        &self,
        loaded: &LoadedHeartbeat,
        time: &WatchTime,
    ) -> Result<i64, Error> {
        let stored = stored_window(&self.deciding.store, loaded.heartbeat.id).await?;
        let before = stored.as_ref().and_then(|it| it.value.window);
        let wall_ms = time.steps.wall_ms;
        // A new heartbeat starts with the next window.
        let mut window = before.unwrap_or(ExpectedWindow {
            start_ms: wall_ms,
            length_ms: 0,
            service_ms: time.now_ms,
            slack_ms: 0,
            is_over: true,
        });
        if !window.is_over {
            match loaded.window_length_ms(window.start_ms) {
                Some(length_ms) => window.length_ms = length_ms,
                // The calendar was edited.
                None => window.is_over = true,
            }
            let slack_ms = window.slack_ms.saturating_add(time.steps.stepped_ms);
            window.slack_ms = slack_ms.min(to_millis(CLOCK_SLACK_MAX));
        }
        let due_ms = |it: &ExpectedWindow| {
            let grace_ms = loaded.heartbeat.grace_ms;
            it.end_service_ms().saturating_add(grace_ms)
        };
        let grace_ms = loaded.heartbeat.grace_ms;
        let length_ms = due_ms(&window).saturating_sub(window.first_service_ms());
        let is_settled = time.has_outage_grace_passed(grace_ms, length_ms);
        if !window.is_over && due_ms(&window) <= time.now_ms && is_settled {
            window.is_over = self.mark_late_beats(loaded, &window, time).await?;
        }
        if window.is_over
            && let Some(span) = next_window(loaded, window.start_ms, time)
        {
            window = time.begin_window(span);
        }
        if before != Some(window) {
            self.store_window(loaded.heartbeat.id, stored, window)
                .await?;
        }
        let latest_ms = time
            .now_ms
            .saturating_add(to_millis(HEARTBEAT_CHECK_INTERVAL));
        let next_ms = if window.is_over {
            latest_ms
        } else {
            due_ms(&window)
        };
        Ok(next_ms.clamp(time.now_ms + 1, latest_ms))
    }

    /// Marks the expectations without a beat in a window as late. Returns whether all have been
    /// marked.
    async fn mark_late_beats(
        &self,
        loaded: &LoadedHeartbeat,
        window: &ExpectedWindow,
        time: &WatchTime,
    ) -> Result<bool, Error> {
        let place = beat_prefix(loaded.heartbeat.id, ExpectationState::Awaited);
        let missed = Range {
            end: Some(place.time_ms(window.first_service_ms()).build()),
            ..Range::with_prefix(
                &beat_prefix(loaded.heartbeat.id, ExpectationState::Awaited).build(),
            )
        };
        let missed = self.read_range(missed).await?;
        let are_all = missed.is_empty();
        let missed = missed.into_iter();
        try_join_all(missed.map(|stored| self.begin_run(loaded, stored, time))).await?;
        Ok(are_all)
    }

    async fn store_window(
        &self,
        heartbeat: RecordId,
        stored: Option<Stored<Expectation>>,
        window: ExpectedWindow,
    ) -> Result<(), Error> {
        let mut changes = self.deciding.store.new_changes();
        match stored {
            Some(stored) => {
                let next = Expectation {
                    window: Some(window),
                    ..stored.value.clone()
                };
                changes.update(&stored, &next);
            }
            None => changes.insert(&Expectation {
                window: Some(window),
                ..new_expectation(SERVICE, heartbeat, Vec::new(), window.service_ms)
            }),
        }
        self.apply(changes).await
    }

    pub(super) async fn sweep_windows(
        &self,
        is_retained: impl Fn(RecordId) -> bool,
    ) -> Result<(), Error> {
        let store = &self.deciding.store;
        let windows = Range::with_prefix(&Key::new().id(SERVICE).build());
        let mut pages = store.pages::<Expectation>(windows);
        while let Some(found) = pages.next().await? {
            let mut changes = store.new_changes();
            for stored in &found {
                if stored.value.window.is_some() && !is_retained(stored.value.key) {
                    changes.delete(stored);
                }
            }
            self.apply(changes).await?;
        }
        Ok(())
    }
}

/// Returns the next window to check after `after_ms`: the first window that began since the end of
/// the last outage, or else the latest one before that.
fn next_window(loaded: &LoadedHeartbeat, after_ms: i64, time: &WatchTime) -> Option<Span> {
    let now_ms = time.steps.wall_ms;
    let after_ms = after_ms.max(now_ms.saturating_sub(BACK_MAX_MS));
    let resumed_ms = now_ms.saturating_sub(time.now_ms.saturating_sub(time.resumed_ms()));
    loaded
        .first_window_started(after_ms.max(resumed_ms), now_ms)
        .or_else(|| loaded.last_window_started(after_ms, now_ms))
}

impl WatchTime {
    fn begin_window(&self, span: Span) -> ExpectedWindow {
        let since_ms = self.steps.wall_ms.saturating_sub(span.start_ms);
        let accepted_ms = self.now_ms.saturating_sub(self.resumed_ms());
        ExpectedWindow {
            start_ms: span.start_ms,
            length_ms: span.end_ms.saturating_sub(span.start_ms),
            service_ms: self.now_ms.saturating_sub(since_ms.min(accepted_ms)),
            slack_ms: self.steps.slack_ms,
            is_over: false,
        }
    }
}
