//! A rule without repeats notifies once per occurrence.

use super::{Condition, Hold, Tense, format_time};

pub(super) const CONDITION: Condition = Condition {
    name: "already notified",
    is_rare: false,
    about_repeats: Some("not prevented by an earlier notification"),
    hold: |case| {
        let notified = case.notified.filter(|_| !case.rule.repeat)?;
        Some(Hold {
            since_ms: Some(notified.last_ms),
            until_ms: None,
        })
    },
    detail: |case, hold, tense| match (case.notified, hold) {
        (None, _) if tense == Tense::Now => {
            "the rule has not notified about this occurrence".into()
        }
        (None, _) => "the rule had not notified about this occurrence".into(),
        (Some(notified), None) => {
            format!(
                "the rule already notified at {} and sends repeats",
                format_time(notified.last_ms)
            )
        }
        (Some(notified), Some(_)) => format!(
            "the rule already notified at {} and notifies only once per occurrence",
            format_time(notified.last_ms)
        ),
    },
};
