//! Holds openings until the event has lasted for the rule's delay.

use super::{super::condition::format_time, HoldCondition, format_length};
use crate::{
    decide::Tense,
    domain::{HeldBy, HoldKind},
};

pub(super) const HOLD: HoldCondition = HoldCondition {
    name: "delay",
    kind: HoldKind::Delay,
    held_by: |sending| {
        let rule = sending.rule.filter(|_| sending.is_opening);
        let rule = rule.filter(|rule| rule.delay_ms > 0);
        let held = rule.map(|rule| HeldBy {
            kind: HoldKind::Delay,
            id: rule.id,
            name: rule.name.clone(),
            revision: rule.revision,
            since_ms: sending.first_ms,
            until_ms: Some(sending.first_ms.saturating_add(rule.delay_ms)),
            author: None,
            shared: Vec::new(),
            detail: format!("the event must match for {}", format_length(rule.delay_ms)),
        });
        let is_over = |it: &HeldBy| it.until_ms.is_some_and(|at_ms| at_ms <= sending.now_ms);
        held.filter(|it| !is_over(it)).into_iter().collect()
    },
    detail: |all, tense| {
        let until = all.iter().filter_map(|it| it.until_ms).max();
        let until = until.map_or_else(String::new, |at_ms| {
            format!(", until {}", format_time(at_ms))
        });
        let waits = if tense == Tense::Now {
            "waits"
        } else {
            "waited"
        };
        let why = all.first().map_or("", |it| &it.detail);
        format!("the rule {waits}: {why}{until}")
    },
};
