//! Logs failures of retried work: each failure at most once a minute, regardless of the number of
//! retries.

use std::{
    collections::HashMap,
    fmt::Display,
    sync::{LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time for which the same failure is not logged again.
const SILENCE: Duration = Duration::from_secs(60);
const REMEMBERED_MAX: usize = 1_000;

#[derive(Debug, Default)]
struct FailureLog(HashMap<(&'static str, String), (Instant, u64)>);

impl FailureLog {
    /// Returns the number of times a failure has been suppressed since it was last logged; `None`
    /// if it is suppressed now.
    fn suppressed_count(&mut self, work: &'static str, error: &str, now: Instant) -> Option<u64> {
        let key = (work, error.to_owned());
        let last = self.0.get_mut(&key);
        if let Some((at, left_out)) = last
            && now.saturating_duration_since(*at) < SILENCE
        {
            *left_out += 1;
            return None;
        }
        let left_out = last.map_or(0, |(_, left_out)| *left_out);
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        self.0.insert(key, (now, 0));
        Some(left_out)
    }
}

/// Logs a failure of work that is retried, at most once a minute.
pub fn log_failure(work: &'static str, error: &(dyn Display + Send + Sync)) {
    static LOGGED: LazyLock<Mutex<FailureLog>> = LazyLock::new(Mutex::default);
    let text = error.to_string();
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let left_out = logged.suppressed_count(work, &text, Instant::now());
    drop(logged);
    match left_out {
        Some(0) => tracing::warn!(error = text, "{work}"),
        Some(left_out) => tracing::warn!(error = text, left_out, "{work}"),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_failure_is_logged_once_a_minute_with_its_count() {
        let mut logged = FailureLog::default();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let table = [
            ("deliver", "full", 0, Some(0)),
            ("deliver", "full", 1, None),
            ("deliver", "damaged", 1, Some(0)),
            ("review", "full", 1, Some(0)),
            ("deliver", "full", 59, None),
            ("deliver", "full", 60, Some(2)),
            ("deliver", "full", 61, None),
        ];
        for (work, error, after, expected) in table {
            let found = logged.suppressed_count(work, error, start + second * after);
            assert_eq!(found, expected, "{work}, {error}, {after} s");
        }
    }
}
