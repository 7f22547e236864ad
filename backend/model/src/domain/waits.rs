//! The register of stored times that move when the clock is set, so that each waiting time keeps
//! its length.
//!
//! All other times stay unchanged: dates of past events, and times of day chosen by a user, such as
//! the end of a silence. Every kind of record is registered, even if it has no time that moves. A
//! test compares the register with every time in the domain.

use crate::domain::{
    Attempt, AuditEntry, BudgetWindow, Calendar, CauseMark, Client, Contact, Delivery,
    DeliveryState, Destination, Drill, EnrichmentTable, EscalationPolicy, Expectation, Flapping,
    Group, Health, Heartbeat, HeldBy, Inhibition, IntakeMapping, Notified, Occurrence, OwnEvent,
    Pending, QueuedMethod, Receipt, Response, ResponseState, Revision, Rule, SavedView, Schedule,
    Settings, Silence, Trigger, silence::Progress,
};

/// A value with times that may move with the clock.
pub trait Shift {
    const MOVES: bool = true;

    fn shift_times(&mut self, by_ms: i64);
}

impl Shift for i64 {
    /// Leaves the minimum and the maximum unchanged, because they mean "never".
    fn shift_times(&mut self, by_ms: i64) {
        if *self != Self::MIN && *self != Self::MAX {
            *self = self.saturating_add(by_ms);
        }
    }
}

impl<T: Shift> Shift for Option<T> {
    fn shift_times(&mut self, by_ms: i64) {
        if let Some(it) = self {
            it.shift_times(by_ms);
        }
    }
}

impl<T: Shift> Shift for Vec<T> {
    fn shift_times(&mut self, by_ms: i64) {
        for it in self {
            it.shift_times(by_ms);
        }
    }
}

impl<T: Shift> Shift for Box<T> {
    fn shift_times(&mut self, by_ms: i64) {
        (**self).shift_times(by_ms);
    }
}

/// Registers the fields that move, by type.
macro_rules! waits {
    ($($type:ident { $($fields:tt)* })+) => {
        $(waits!(@ $type { $($fields)* });)+
    };
    (@ $type:ident {}) => {
        impl Shift for $type {
            const MOVES: bool = false;

            fn shift_times(&mut self, _by_ms: i64) {}
        }
    };
    (@ $type:ident { $($field:ident),+ }) => {
        impl Shift for $type {
            fn shift_times(&mut self, by_ms: i64) {
                $(self.$field.shift_times(by_ms);)+
            }
        }
    };
}

waits! {
    Attempt {}
    AuditEntry {}
    BudgetWindow { until_ms }
    Calendar {}
    Client {}
    Contact {}
    Delivery { state }
    Destination {}
    EnrichmentTable {}
    EscalationPolicy {}
    Group { last_ms, notified_ms }
    Health { since_ms, failing_since_ms, requested_until_ms }
    Heartbeat {}
    Inhibition {}
    IntakeMapping {}
    OwnEvent {}
    Receipt { create_ms }
    Revision {}
    Rule {}
    SavedView {}
    Schedule {}
    Settings {}
    Silence { progress }
    Trigger {}

    CauseMark { until_ms }
    Flapping { openings, changed_ms, since_ms }
    Notified { last_ms, response }
    Pending { since_ms, held_by }
    Progress { idle_since_ms }
    QueuedMethod { due_ms }
}

impl Shift for DeliveryState {
    fn shift_times(&mut self, by_ms: i64) {
        match self {
            Self::Pending { due_ms } | Self::Retry { due_ms } => due_ms.shift_times(by_ms),
            Self::Leased { until_ms } => until_ms.shift_times(by_ms),
            Self::Delivered | Self::Dead | Self::Cancelled | Self::Folded | Self::Shadowed => {}
        }
    }
}

impl Shift for HeldBy {
    fn shift_times(&mut self, by_ms: i64) {
        self.since_ms.shift_times(by_ms);
        if self.kind.has_relative_end() {
            self.until_ms.shift_times(by_ms);
        }
    }
}

impl Shift for Response {
    fn shift_times(&mut self, by_ms: i64) {
        self.step_ms.shift_times(by_ms);
        self.next_ms.shift_times(by_ms);
        self.queued.shift_times(by_ms);
        let review_ms = self.review_ms;
        self.review_ms.shift_times(by_ms);
        // The hold may end at a time of day; an early evaluation is harmless.
        if self.state == ResponseState::Held {
            self.review_ms = self.review_ms.min(review_ms);
        }
    }
}

impl Shift for Drill {
    /// The times of a cron expression are times of day.
    fn shift_times(&mut self, by_ms: i64) {
        if self.every_ms > 0 {
            self.due_ms.shift_times(by_ms);
        }
    }
}

impl Shift for Expectation {
    /// Beats are counted in service time, which clock steps do not move. Only the service record
    /// contains a time that moves.
    fn shift_times(&mut self, by_ms: i64) {
        if self.is_service_record() {
            self.last_ms.shift_times(by_ms);
        }
    }
}

impl Shift for Occurrence {
    fn shift_times(&mut self, by_ms: i64) {
        self.notified.shift_times(by_ms);
        self.pending.shift_times(by_ms);
        self.causes.shift_times(by_ms);
        self.flapping.shift_times(by_ms);
        self.acknowledged_until_ms.shift_times(by_ms);
        self.age_shift_ms = self.age_shift_ms.saturating_add(by_ms);
        // An expiry set by the sender is a time of day.
        if self.expire_ms != Some(self.review_ms) {
            self.review_ms.shift_times(by_ms);
        }
        if let Some(expire_ms) = self.expire_ms {
            self.review_ms = self.review_ms.min(expire_ms);
        }
    }
}

#[cfg(test)]
mod tests;
