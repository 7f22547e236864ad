//! What is written while JSON is read, and what is wrong with it.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::{Options, Refused};
use crate::json::{
    limits,
    plan::{FieldPlan, Plan},
    violation::{Violations, quoted},
    wire::{self, Value},
};

/// What is written while the JSON is read.
pub(super) struct Sink<'p> {
    pub(super) plan: &'p Plan,
    pub(super) out: Vec<u8>,
    pub(super) violations: Violations,
    /// Unknown fields that are ignored.
    pub(super) ignored: Violations,
    /// Entries of the list that were set aside.
    pub(super) refused: Vec<Refused>,
    options: Options<'p>,
    depth: usize,
}

/// How much was noted at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    violations: usize,
    ignored: usize,
}

impl<'p> Sink<'p> {
    /// Nothing was read yet; what is written follows `out`.
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

    /// Goes one message deeper. Reading continues past the limit, which is noted once, to find the
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

    /// Notes an unknown field that is ignored; false when unknown fields are refused.
    pub(super) fn ignores(&mut self, unknown: &str) -> bool {
        if self.options.lenient && self.ignored.mark() < limits::IGNORED {
            self.ignored.add_at(shown(unknown), "");
        }
        self.options.lenient
    }

    /// The list that the body is about, while the outermost object is read.
    pub(super) fn list(&self) -> Option<&'p FieldPlan> {
        let is_root = self.depth == self.options.depth;
        self.options.list.filter(|_| is_root)
    }

    /// What is noted later can be put below a segment, or be distinguished from what was there.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            violations: self.violations.mark(),
            ignored: self.ignored.mark(),
        }
    }

    /// Whether something is wrong with what was read since `mark`.
    pub(super) fn is_wrong_since(&self, mark: Mark) -> bool {
        self.violations.mark() > mark.violations
    }

    /// Puts everything noted since `mark` below a field or key.
    pub(super) fn below(&mut self, mark: Mark, segment: &str) {
        self.violations.below(mark.violations, segment);
        self.ignored.below(mark.ignored, segment);
    }

    /// Puts everything noted since `mark` below an entry of a list.
    pub(super) fn below_index(&mut self, mark: Mark, index: usize) {
        self.violations.below_index(mark.violations, index);
        self.ignored.below_index(mark.ignored, index);
    }

    /// Sets the entry of `list` aside that was read since `mark`, and was written from `start` on.
    /// With too many of them what is wrong stays.
    pub(super) fn set_aside(&mut self, list: &FieldPlan, mark: Mark, index: usize, start: usize) {
        if self.refused.len() < limits::REFUSED_ENTRIES {
            let written = self.out.split_off(start);
            let wire = match wire::find_last(&written, list.number) {
                Some(Value::Bytes(entry)) => entry.to_vec(),
                _ => Vec::new(),
            };
            self.refused.push(Refused {
                index,
                violations: self.violations.split_off(mark.violations),
                wire,
            });
        }
    }
}

/// An unknown name as a path segment, cut and cleaned as in messages.
pub(super) fn shown(unknown: &str) -> String {
    quoted(unknown).trim_matches('`').to_owned()
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
