//! A rule with repeats waits for its interval between two of them.

use super::{Condition, Hold, Tense};

pub(super) const CONDITION: Condition = Condition {
    name: "repeat interval",
    is_rare: false,
    is_about_repeats: true,
    hold: |case| {
        let notified = case.notified.filter(|_| case.rule.repeat)?;
        let interval_ms = i64::from(case.rule.repeat_interval_seconds) * 1000;
        let until_ms = notified.last_ms.saturating_add(interval_ms);
        (case.now_ms < until_ms).then_some(Hold {
            since_ms: Some(notified.last_ms),
            until_ms: Some(until_ms),
        })
    },
    detail: |case, hold, tense| match hold.and_then(|hold| hold.until_ms) {
        Some(until_ms) => format!(
            "{} s of the interval of {} s {} left",
            (until_ms - case.now_ms + 999).div_euclid(1000),
            case.rule.repeat_interval_seconds,
            if tense == Tense::Now { "are" } else { "were" }
        ),
        None if case.notified.is_some() && case.rule.repeat => "the interval had passed".into(),
        None => format!("there {} no interval to wait for", tense.is()),
    },
};
