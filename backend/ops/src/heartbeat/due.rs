//! Due times of expected beats.

use std::sync::Arc;

use crate::{
    decide::LoadedHeartbeat,
    decision_context::DecisionContext,
    domain::{
        Expectation, Heartbeat, RecordId,
        heartbeat::{ExpectedWindow, SERVICE},
    },
    error::Error,
    store::{EngineError, Store, Stored, record::bytes::Key},
};

pub(super) struct DueData {
    heartbeat: Heartbeat,
    loaded: Option<Arc<LoadedHeartbeat>>,
    window: Option<ExpectedWindow>,
    now_ms: i64,
    service_ms: i64,
}

pub(super) async fn stored_window(
    store: &Store,
    heartbeat: RecordId,
) -> Result<Option<Stored<Expectation>>, EngineError> {
    let key = Key::new().id(SERVICE).id(heartbeat).build();
    store.get::<Expectation>(key).await
}

impl DueData {
    /// Reads the data for a heartbeat. The service time must have been read already.
    pub(super) async fn load(
        deciding: &DecisionContext,
        heartbeat: Heartbeat,
    ) -> Result<Self, Error> {
        let (clock, beats) = (deciding.clock.as_ref(), &deciding.beats);
        let (mut loaded, mut window) = (None, None);
        if heartbeat.has_windows() {
            let snapshot = deciding.ruleset.refresh().await?;
            let mut all = snapshot.heartbeats().iter();
            loaded = all.find(|it| it.heartbeat.id == heartbeat.id).cloned();
            let stored = stored_window(&deciding.store, heartbeat.id).await?;
            window = stored.and_then(|it| it.value.window);
        }
        Ok(Self {
            heartbeat,
            loaded,
            window,
            now_ms: clock.now_ms(),
            service_ms: beats.service_ms(clock),
        })
    }

    /// Returns the time at which an expectation becomes late without another beat, in milliseconds
    /// since the epoch; `None` if unknown.
    pub(super) fn expectation_due_ms(&self, expected: &Expectation) -> Option<i64> {
        let at_ms = |due_service_ms: i64| {
            let left_ms = due_service_ms.saturating_sub(self.service_ms);
            self.now_ms.saturating_add(left_ms)
        };
        let beat = if self.heartbeat.has_windows() {
            self.window_due_ms(expected, at_ms)
        } else {
            Some(at_ms(
                expected
                    .beat_service_ms
                    .saturating_add(self.heartbeat.allowed_silence_ms()),
            ))
        };
        let run = expected.run.zip(self.heartbeat.max_run_ms);
        let run = run.map(|(run, max_ms)| at_ms(run.since_service_ms.saturating_add(max_ms)));
        beat.into_iter().chain(run).min()
    }

    fn window_due_ms(&self, expected: &Expectation, at_ms: impl Fn(i64) -> i64) -> Option<i64> {
        let grace_ms = self.heartbeat.grace_ms;
        let awaited = self.window.filter(|it| {
            let first_ms = it.first_service_ms();
            !it.is_over && expected.beat_service_ms < first_ms
        });
        if let Some(window) = awaited {
            return Some(at_ms(window.end_service_ms().saturating_add(grace_ms)));
        }
        let begun_ms = self.window.map_or(self.now_ms, |it| it.start_ms);
        let loaded = self.loaded.as_ref()?;
        let next = loaded.window_after(self.now_ms.max(begun_ms))?;
        Some(next.end_ms.saturating_add(grace_ms))
    }
}
