//! Collects output and violations while JSON is read.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::{Options, RefusedEntry};
use crate::json::{
    limits,
    plan::{FieldPlan, Plan},
    violation::{Violations, quote_for_message},
    wire::{self, Value},
};

pub(super) struct Sink<'p> {
    pub(super) plan: &'p Plan,
    pub(super) out: Vec<u8>,
    pub(super) violations: Violations,
    pub(super) ignored: Violations,
    pub(super) refused: Vec<RefusedEntry>,
    options: Options<'p>,
    depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    violations: usize,
    ignored: usize,
}

impl<'p> Sink<'p> {
    pub(super) fn new(plan: &'p Plan, out: Vec<u8>, options: Options<'p>) -> Self {
        Self {
            plan,
            out,
            violations: Violations::default(),
            ignored: Violations::default(),
            refused: Vec::new(),
            depth: options.depth,
            options,
        }
    }

    /// Enters a nested message. Past the depth limit, which is reported once, reading continues in
    /// order to find the end of the value. The JSON parser has its own limit.
    pub(super) fn enter_nested(&mut self) {
        self.depth += 1;
        if self.depth == limits::MESSAGE_DEPTH + 1 {
            let limit = limits::MESSAGE_DEPTH;
            self.violations
                .add(format!("is nested more than {limit} messages deep"));
        }
    }

    pub(super) fn exit(&mut self) {
        self.depth -= 1;
    }

    /// Records an ignored unknown field; returns false if unknown fields are rejected.
    pub(super) fn ignore_unknown(&mut self, unknown: &str) -> bool {
        if self.options.lenient && self.ignored.count() < limits::IGNORED {
            self.ignored.add_at(display_name(unknown), "");
        }
        self.options.lenient
    }

    /// Returns the main list of the body, while the outermost object is read.
    pub(super) fn list(&self) -> Option<&'p FieldPlan> {
        let is_root = self.depth == self.options.depth;
        self.options.list.filter(|_| is_root)
    }

    pub(super) fn set_mark(&self) -> Mark {
        Mark {
            violations: self.violations.count(),
            ignored: self.ignored.count(),
        }
    }

    pub(super) fn has_violations_since(&self, mark: Mark) -> bool {
        self.violations.count() > mark.violations
    }

    /// Prefixes all entries since `mark` with a field or key.
    pub(super) fn prefix_since(&mut self, mark: Mark, segment: &str) {
        self.violations.prefix_since(mark.violations, segment);
        self.ignored.prefix_since(mark.ignored, segment);
    }

    /// Prefixes all entries since `mark` with a list index.
    pub(super) fn prefix_index_since(&mut self, mark: Mark, index: usize) {
        self.violations.prefix_index_since(mark.violations, index);
        self.ignored.prefix_index_since(mark.ignored, index);
    }

    /// Sets aside the entry of `list` that was read since `mark` and written from `start`. If too
    /// many entries are set aside, the violations of the entry remain in the list.
    pub(super) fn set_entry_aside(
        &mut self,
        list: &FieldPlan,
        mark: Mark,
        index: usize,
        start: usize,
    ) {
        if self.refused.len() < limits::REFUSED_ENTRIES {
            let written = self.out.split_off(start);
            let wire = match wire::find_last(&written, list.number) {
                Some(Value::Bytes(entry)) => entry.to_vec(),
                _ => Vec::new(),
            };
            self.refused.push(RefusedEntry {
                index,
                violations: self.violations.split_off(mark.violations),
                wire,
            });
        }
    }
}

/// Returns an unknown name as a path segment, truncated and sanitized.
pub(super) fn display_name(unknown: &str) -> String {
    quote_for_message(unknown).trim_matches('`').to_owned()
}

pub(super) fn skip_list<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

pub(super) fn skip_object<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}
