//! The console's data: messages of the API, resources as canonical JSON, and a few compact types.

mod bulk;
mod clause;
mod counted;
mod event;
mod failure;
mod grouped;
mod kind;
mod moment;
mod object;
pub(crate) mod when;
mod word;

pub(crate) use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{
        Outcome, Role, delivery::State as DeliveryState, destination_health::State as HealthState,
    },
};

pub(crate) use self::{
    bulk::{BulkTally, Transition},
    clause::describe,
    counted::{Back, Counted},
    event::{EventKey, EventOrder, EventRow, Rank},
    failure::{Failure, FailureKind, FieldError},
    grouped::{GroupRow, Grouped},
    kind::Kind,
    moment::{millis, occurrence, span_ms, structure, value},
    object::{Object, get, is_empty, set},
    word::{Sign, WORST_FIRST, Word, covers, urgency},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) role: Role,
}
