//! Conversion of holds.

use bellwether_proto::v1;

use super::time::timestamp;
use crate::{
    domain::{HeldBy, HoldKind, Pending},
    limits::HOLDS_SHOWN_MAX,
};

pub fn holds(held_by: &[HeldBy]) -> Vec<v1::Hold> {
    held_by.iter().take(HOLDS_SHOWN_MAX).map(hold).collect()
}

/// Converts the holds of all pending notifications, without duplicates.
pub(super) fn distinct_holds(pending: &[Pending]) -> Vec<v1::Hold> {
    let mut known: Vec<&HeldBy> = Vec::new();
    for held_by in pending.iter().flat_map(|it| &it.held_by) {
        let is_same = |it: &&HeldBy| it.kind == held_by.kind && it.id == held_by.id;
        if known.len() < HOLDS_SHOWN_MAX && !known.iter().any(is_same) {
            known.push(held_by);
        }
    }
    known.into_iter().map(hold).collect()
}

fn hold(held_by: &HeldBy) -> v1::Hold {
    v1::Hold {
        kind: held_by.kind as i32,
        name: match held_by.kind {
            HoldKind::Suppressed => String::new(),
            _ => held_by.name.to_string(),
        },
        revision: i64::try_from(held_by.revision).unwrap_or(i64::MAX),
        since: Some(timestamp(held_by.since_ms)),
        until: held_by.until_ms.map(timestamp),
        author: held_by
            .author
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        detail: held_by.detail.clone(),
    }
}
