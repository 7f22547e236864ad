//! A rule with repeats waits for its interval, and then for another event.

use super::{Condition, Hold};

pub(super) const CONDITION: Condition = Condition {
    name: "repeat interval",
    is_rare: false,
    about_repeats: Some("not within the repeat interval of an earlier notification"),
    hold: |case| {
        let notified = case.notified.filter(|_| case.rule.repeat)?;
        let interval_ms = i64::from(case.rule.repeat_interval_seconds) * 1000;
        let until_ms = notified.last_ms.saturating_add(interval_ms);
        let is_due = case.now_ms >= until_ms;
        let is_due = is_due || case.repeat_waits;
        let is_news = case.by_event || case.repeat_waits;
        (!is_due || !is_news).then_some(Hold {
            since_ms: Some(notified.last_ms),
            until_ms: (!is_due).then_some(until_ms),
        })
    },
    detail: |case, hold, tense| match hold.map(|hold| hold.until_ms) {
        Some(Some(_)) => format!(
            "within the repeat interval of {} s",
            case.rule.repeat_interval_seconds
        ),
        Some(None) => format!(
            "the interval {} passed, but only reports from a sender cause repeats; this change \
            was made by an operator or by ageing",
            tense.auxiliary()
        ),
        None if case.notified.is_some() && case.rule.repeat => {
            format!("the repeat interval {} passed", tense.auxiliary())
        }
        None if !case.rule.repeat => "the rule sends no repeats".into(),
        None => format!("there {} no earlier notification to repeat", tense.verb()),
    },
};
