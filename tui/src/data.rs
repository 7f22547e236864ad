//! The console's data: messages of the API, resources as canonical JSON, and a few compact types.

mod bulk;
mod chart_data;
mod clause;
mod convert;
mod event;
mod failure;
mod grouped;
mod health;
mod kind;
mod label;
mod object;
mod screen;
pub(crate) mod when;

pub(crate) use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{
        Outcome, Role, delivery::State as DeliveryState, destination_health::State as HealthState,
    },
};

pub use self::label::outcome_mark;
pub(crate) use self::{
    bulk::{BulkTally, Transition},
    chart_data::{ChartData, ChartPeriod},
    clause::describe,
    convert::{occurrence, span_ms, struct_to_json, to_millis, value_to_json},
    event::{EventKey, EventOrder, EventRow, HoldReason, Rank},
    failure::{Failure, FailureKind, FieldError},
    grouped::{GroupRow, GroupedEvents},
    health::health_word,
    kind::Kind,
    label::{Label, Sign, WORST_FIRST, role_includes, urgency_rank},
    object::{Object, get_value, is_empty_value, set_value},
    screen::Screen,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) role: Role,
}
