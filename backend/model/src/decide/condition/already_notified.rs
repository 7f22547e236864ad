//! A rule without repeats notifies once per occurrence.

use super::{Condition, Hold, Tense, moment};

pub(super) const CONDITION: Condition = Condition {
    name: "already notified",
    is_rare: false,
    about_repeats: Some("no earlier notification prevented it"),
    hold: |case| {
        let notified = case.notified.filter(|_| !case.rule.repeat)?;
        Some(Hold {
            since_ms: Some(notified.last_ms),
            until_ms: None,
        })
    },
    detail: |case, hold, tense| match (case.notified, hold) {
        (None, _) if tense == Tense::Now => "it has not notified of this occurrence".into(),
        (None, _) => "it had not notified of this occurrence".into(),
        (Some(notified), None) => {
            format!("it notified at {} and repeats", moment(notified.last_ms))
        }
        (Some(notified), Some(_)) => format!(
            "it already notified at {}, and does so once per occurrence",
            moment(notified.last_ms)
        ),
    },
};
