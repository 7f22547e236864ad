//! An occurrence while queries are asked of it: what was folded of its texts, and how much was looked at.

use std::cell::{Cell, RefCell};

use super::fold::{Folded, fold};
use crate::{domain::Occurrence, effort};

/// Bytes of a text from which on what was folded of it is kept for the next clause. Shorter ones cost
/// less to fold than to find.
const KEPT_FROM: usize = 256;
/// Bytes looked at until it is asked whether anybody waits for the answer.
const ASKED_EVERY: usize = 512 * 1024;
/// What a look at a value costs in addition to its bytes.
const LOOK_BYTES: usize = 64;

/// An occurrence that queries are asked of.
#[derive(Debug)]
pub struct Subject<'a> {
    pub(super) occurrence: &'a Occurrence,
    /// Long texts of the occurrence by their address, which it keeps while it is looked at.
    folded: RefCell<Vec<(usize, Box<str>)>>,
    looked_at: Cell<usize>,
    is_over: Cell<bool>,
}

impl<'a> Subject<'a> {
    /// Of which nothing was asked yet.
    pub fn new(occurrence: &'a Occurrence) -> Self {
        Self {
            occurrence,
            folded: RefCell::default(),
            looked_at: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// Notes a look at so many bytes.
    pub(super) fn spend(&self, bytes: usize) {
        let looked_at = self.looked_at.get().saturating_add(bytes + LOOK_BYTES);
        if looked_at < ASKED_EVERY {
            self.looked_at.set(looked_at);
        } else {
            self.looked_at.set(0);
            self.is_over.set(effort::is_over());
        }
    }

    /// Whether no one waits for what is found.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Whether a text of the occurrence is the same as that one.
    pub(super) fn equals(&self, text: &str, other: &Folded) -> bool {
        if text.len() < KEPT_FROM {
            return other.equals(text);
        }
        self.folded(text, |whole| whole == other.as_str())
    }

    /// Whether a text of the occurrence starts with that one.
    pub(super) fn starts(&self, text: &str, start: &Folded) -> bool {
        if text.len() < KEPT_FROM {
            return start.starts(text);
        }
        self.folded(text, |whole| whole.starts_with(start.as_str()))
    }

    /// Whether a text of the occurrence ends with that one.
    pub(super) fn ends(&self, text: &str, end: &Folded) -> bool {
        if text.len() < KEPT_FROM {
            return end.ends(text);
        }
        self.folded(text, |whole| whole.ends_with(end.as_str()))
    }

    /// Looks at a text of the occurrence as it is when folded.
    pub(super) fn folded<T>(&self, text: &str, look: impl FnOnce(&str) -> T) -> T {
        if text.len() < KEPT_FROM {
            return look(&fold(text));
        }
        let address = text.as_ptr().addr();
        let known = |all: &[(usize, Box<str>)]| all.iter().position(|(it, _)| *it == address);
        let at = known(&self.folded.borrow());
        let at = at.unwrap_or_else(|| {
            let mut all = self.folded.borrow_mut();
            all.push((address, fold(text).into()));
            all.len() - 1
        });
        look(&self.folded.borrow()[at].1)
    }
}
