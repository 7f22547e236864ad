//! Holds openings until the event has lasted for the rule's delay.

use super::{OutgoingNotification, format_length};
use crate::domain::{HeldBy, HoldKind};

pub(super) fn delay_hold(sending: &OutgoingNotification<'_>) -> Option<HeldBy> {
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
    held.filter(|it| !is_over(it))
}
