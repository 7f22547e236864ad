//! Holds notifications for the next message of their group.

use super::{super::condition::format_time, HoldCondition};
use crate::{decide::Tense, domain::HoldKind};

pub(super) const HOLD: HoldCondition = HoldCondition {
    name: "group",
    kind: HoldKind::Group,
    held_by: |sending| sending.group.into_iter().cloned().collect(),
    detail: |all, tense| {
        let until = all.iter().filter_map(|it| it.until_ms).max();
        let until = until.map_or_else(String::new, |at_ms| format!(", at {}", format_time(at_ms)));
        let waits = if tense == Tense::Now {
            "waits"
        } else {
            "waited"
        };
        let why = all.first().map_or("", |it| &it.detail);
        format!("the rule {waits} for the next message of the group{until}: {why}")
    },
};
