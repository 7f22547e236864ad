//! Recently tested drafts of destinations. If such a draft is stored, its destination does not
//! count as untried.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    clock::to_millis,
    domain::{Attempt, DestinationKind},
    limits::{DRAFT_TESTS_AFTER, DRAFT_TESTS_MAX},
};

#[derive(Debug, Clone, Default)]
pub(super) struct TestedDrafts(Arc<Mutex<VecDeque<TestedDraft>>>);

#[derive(Debug, Clone)]
pub(super) struct TestedDraft {
    kind: DestinationKind,
    at_ms: i64,
    pub(super) attempt: Attempt,
}

impl TestedDrafts {
    pub(super) fn remember_test(&self, kind: DestinationKind, attempt: Attempt, at_ms: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= DRAFT_TESTS_MAX {
            all.pop_front();
        }
        all.push_back(TestedDraft {
            kind,
            at_ms,
            attempt,
        });
    }

    pub(super) fn find_recent(&self, kind: &DestinationKind, now_ms: i64) -> Option<TestedDraft> {
        let since_ms = now_ms.saturating_sub(to_millis(DRAFT_TESTS_AFTER));
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut recent = all.iter().rev().filter(|it| it.at_ms >= since_ms);
        recent.find(|it| it.kind == *kind).cloned()
    }
}
