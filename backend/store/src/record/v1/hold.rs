//! Pending notifications, their history, and the holds on them.

use crate::{
    domain::{
        CauseMark, HeldBy, HoldChange, HoldKind, HoldOutcome, LastNotified, Pending,
        hold::SharedValue,
    },
    record::table::{numbers, record},
};

record! { Pending {
    1 rule, 2 rule_name, 3 is_opening, 4 since_ms, 5 repeat_due, 6 last_notified, 7 held_by,
    8 left_out,
} }

record! { LastNotified { 1 severity, 2 acknowledged } }

record! { HeldBy {
    1 kind, 2 id, 3 name, 4 revision, 5 since_ms, 6 until_ms, 7 author as OptionalForm, 8 detail, 9 shared,
} }

record! { HoldChange { 1 at_ms, 2 rule, 3 what, 4 held_by } }

record! { CauseMark { 1 inhibition, 2 values, 3 until_ms, 4 is_freed } }

record! { SharedValue as it { 1 field = it.0, 2 value = it.1 } => Some((field, value)) }

numbers! { HoldKind, HoldOutcome }
