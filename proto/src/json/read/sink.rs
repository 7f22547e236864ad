//! What is written while JSON is read, and what is wrong with it.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::json::{limits, plan::Plan, violation::Violations};

/// What is written while the JSON is read.
pub(super) struct Sink<'p> {
    pub(super) plan: &'p Plan,
    pub(super) out: Vec<u8>,
    pub(super) violations: Violations,
    pub(super) lenient: bool,
    pub(super) depth: usize,
}

impl Sink<'_> {
    /// Goes one message deeper. Reading goes on past the limit, which is noted once, to find the
    /// end of the value; the JSON parser bounds its own depth.
    pub(super) fn enter(&mut self) {
        self.depth += 1;
        if self.depth == limits::MESSAGE_DEPTH + 1 {
            let limit = limits::MESSAGE_DEPTH;
            self.violations.add(format!(
                "is nested too deep: at most {limit} messages in one another"
            ));
        }
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// Reads over the rest of a list.
pub(super) fn drain<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Reads over the rest of an object.
pub(super) fn drain_object<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}
