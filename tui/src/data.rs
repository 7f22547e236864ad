//! What the console knows about: plain data, free of wire types, with the JSON spelling of the API.

mod clause;
mod delivery;
mod destination;
mod event;
mod explanation;
mod failure;
mod overview;
mod rule;
mod trigger;

pub(crate) use clause::{Clause, Comparison, Equals};
pub(crate) use delivery::{
    Attempt, BulkTally, Deed, Delivery, DeliveryState, Obligation, ObligationFilter, Outcome, Sent,
    TestReport,
};
pub(crate) use destination::{
    DeliverySettings, Destination, DestinationSpec, DestinationType, Email, EventDestination,
    Health, HealthState, MsTeams, PagerDuty, ServiceNow, Slack, Webhook,
};
pub(crate) use event::{
    Annotation, EventDetail, EventRow, HistoryEntry, OccurrenceDetail, Severity, Status,
};
pub(crate) use explanation::{
    Basis, ClauseExplanation, Definition, ExplainedDelivery, Explanation, GateVerdict, Judgement,
    RuleExplanation, Told, TriggerExplanation,
};
pub(crate) use failure::{Failure, FailureKind, FieldError};
pub(crate) use overview::{Caller, Client, DestinationTraffic, NewClient, Overview, Role};
pub(crate) use rule::{Rule, RulePreview, RuleSpec};
pub(crate) use trigger::{EventTrigger, Query, Trigger, TriggerSpec, TriggerTest, TriggerType};

/// The kinds of stored resource that an operator writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Trigger,
    Destination,
    Rule,
}

impl Kind {
    /// The word for one of them, in lower case.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Destination => "destination",
            Self::Rule => "rule",
        }
    }
}

/// A resource as an operator wrote it, before the service has seen it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draft {
    Trigger(TriggerSpec),
    Destination(DestinationSpec),
    Rule(RuleSpec),
}

impl Draft {
    /// Reads a draft of `kind` from JSON, with the same strictness as the service.
    pub(crate) fn from_json(kind: Kind, json: &serde_json::Value) -> Result<Self, String> {
        let result = match kind {
            Kind::Trigger => TriggerSpec::deserialize_from(json).map(Self::Trigger),
            Kind::Destination => DestinationSpec::deserialize_from(json).map(Self::Destination),
            Kind::Rule => RuleSpec::deserialize_from(json).map(Self::Rule),
        };
        result.map_err(|error| error.to_string())
    }

    /// The draft as JSON, in the spelling of the API.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let result = match self {
            Self::Trigger(spec) => serde_json::to_value(spec),
            Self::Destination(spec) => serde_json::to_value(spec),
            Self::Rule(spec) => serde_json::to_value(spec),
        };
        result.expect("specifications have string keys only")
    }

    /// The draft as people edit it: JSON over several lines, the name first.
    pub(crate) fn to_text(&self) -> String {
        let result = match self {
            Self::Trigger(spec) => serde_json::to_string_pretty(spec),
            Self::Destination(spec) => serde_json::to_string_pretty(spec),
            Self::Rule(spec) => serde_json::to_string_pretty(spec),
        };
        result.expect("specifications have string keys only") + "\n"
    }

    /// The kind of resource.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Trigger(_) => Kind::Trigger,
            Self::Destination(_) => Kind::Destination,
            Self::Rule(_) => Kind::Rule,
        }
    }

    /// The name it is to have.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Trigger(spec) => &spec.name,
            Self::Destination(spec) => &spec.name,
            Self::Rule(spec) => &spec.name,
        }
    }
}

/// Reads a value without taking it.
trait DeserializeFrom: Sized {
    fn deserialize_from(json: &serde_json::Value) -> Result<Self, serde_json::Error>;
}

impl<T: serde::de::DeserializeOwned> DeserializeFrom for T {
    fn deserialize_from(json: &serde_json::Value) -> Result<Self, serde_json::Error> {
        T::deserialize(json)
    }
}
