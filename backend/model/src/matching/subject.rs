//! The occurrence to match, with a cache of folded strings and a count of the work done.

use std::cell::{Cell, RefCell};

use super::fold::{FoldedText, fold};
use crate::{domain::Occurrence, effort};

/// Minimum length of a string whose folded form is cached, in bytes. Folding a shorter string is
/// cheaper than a lookup.
const CACHED_FROM: usize = 256;
/// Bytes compared between two checks that the caller is still connected.
const CHECK_EVERY: usize = 512 * 1024;
/// Cost of comparing a value in addition to its length, in bytes.
const COMPARE_BYTES: usize = 64;

#[derive(Debug)]
pub struct Subject<'a> {
    pub(super) occurrence: &'a Occurrence,
    /// Folded forms of long strings by address, which is stable while the occurrence is borrowed.
    folded: RefCell<Vec<(usize, Box<str>)>>,
    compared: Cell<usize>,
    is_over: Cell<bool>,
}

impl<'a> Subject<'a> {
    pub fn new(occurrence: &'a Occurrence) -> Self {
        Self {
            occurrence,
            folded: RefCell::default(),
            compared: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    pub(super) fn spend(&self, bytes: usize) {
        let compared = self.compared.get().saturating_add(bytes + COMPARE_BYTES);
        if compared < CHECK_EVERY {
            self.compared.set(compared);
        } else {
            self.compared.set(0);
            self.is_over.set(effort::is_caller_gone());
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    pub(super) fn equals(&self, text: &str, other: &FoldedText) -> bool {
        if text.len() < CACHED_FROM {
            return other.equals(text);
        }
        self.with_folded(text, |whole| whole == other.as_str())
    }

    pub(super) fn starts_with(&self, text: &str, start: &FoldedText) -> bool {
        if text.len() < CACHED_FROM {
            return start.is_prefix_of(text);
        }
        self.with_folded(text, |whole| whole.starts_with(start.as_str()))
    }

    pub(super) fn ends_with(&self, text: &str, end: &FoldedText) -> bool {
        if text.len() < CACHED_FROM {
            return end.is_suffix_of(text);
        }
        self.with_folded(text, |whole| whole.ends_with(end.as_str()))
    }

    /// Calls `check` with the folded form of a text of the occurrence.
    pub(super) fn with_folded<T>(&self, text: &str, check: impl FnOnce(&str) -> T) -> T {
        if text.len() < CACHED_FROM {
            return check(&fold(text));
        }
        let address = text.as_ptr().addr();
        let known = |all: &[(usize, Box<str>)]| all.iter().position(|(it, _)| *it == address);
        let at = known(&self.folded.borrow());
        let at = at.unwrap_or_else(|| {
            let mut all = self.folded.borrow_mut();
            all.push((address, fold(text).into()));
            all.len() - 1
        });
        check(&self.folded.borrow()[at].1)
    }
}
