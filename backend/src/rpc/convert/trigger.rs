//! Triggers between the wire and the domain.

use bellwether_proto::{
    filter,
    v1::{self, trigger_type::Type},
};

use super::{list::count, query, time::timestamp};
use crate::{
    domain::{Query, Trigger},
    error::Violation,
    ops::{
        etag::etag,
        trigger::{QUERY_PATH, TriggerDraft, TriggerView},
    },
};

impl From<v1::Trigger> for TriggerDraft {
    fn from(wire: v1::Trigger) -> Self {
        let mut faults = Vec::new();
        let query = trigger_type(wire.r#type, &mut faults);
        Self {
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            query,
            etag: wire.etag,
            faults,
        }
    }
}

/// Takes what a trigger looks at; none together with a fault.
pub fn trigger_type(wire: Option<v1::TriggerType>, faults: &mut Vec<Violation>) -> Option<Query> {
    let refused =
        |kind| format!("this service ingests events; trigger type `{kind}` is not supported");
    match wire.and_then(|wire| wire.r#type) {
        Some(Type::Event(event)) => return condition(event, faults),
        Some(Type::MetricThreshold(_)) => faults.push(Violation::new(
            "type.metricThreshold",
            refused("metricThreshold"),
        )),
        Some(Type::Anomaly(_)) => {
            faults.push(Violation::new("type.anomaly", refused("anomaly")));
        }
        None => faults.push(Violation::new(
            "type",
            "is required: exactly one type, which is `event`",
        )),
    }
    None
}

/// Where the text of a condition is in a request.
const FILTER_PATH: &str = "type.event.filter";

fn condition(event: v1::EventTrigger, faults: &mut Vec<Violation>) -> Option<Query> {
    if event.filter.is_empty() {
        return query::query(event.query, QUERY_PATH, faults);
    }
    if event.query.is_some() {
        let fault = "conflicts with `query`; send one of the two";
        faults.push(Violation::new(FILTER_PATH, fault));
    }
    let (parsed, _) = query::text(&event.filter, None, FILTER_PATH, faults)?;
    let clause = parsed.clause;
    Some(Query { clause })
}

impl From<TriggerView> for v1::Trigger {
    fn from(view: TriggerView) -> Self {
        let rule_names = view.rule_names.iter().map(ToString::to_string).collect();
        Self {
            rule_names,
            recent_notification_count: Some(count(view.recent_notifications)),
            ..Self::from(&view.trigger)
        }
    }
}

impl From<&Trigger> for v1::Trigger {
    /// The trigger itself; what is known about its use stays empty.
    fn from(trigger: &Trigger) -> Self {
        let event = v1::EventTrigger {
            query: Some(query::to_wire(&trigger.query)),
            filter: String::new(),
        };
        Self {
            name: trigger.name.to_string(),
            description: trigger.description.clone(),
            tags: trigger.tags.clone(),
            r#type: Some(v1::TriggerType {
                r#type: Some(Type::Event(event)),
            }),
            rule_names: Vec::new(),
            recent_notification_count: None,
            create_time: Some(timestamp(trigger.create_ms)),
            update_time: Some(timestamp(trigger.update_ms)),
            etag: etag(trigger.id, trigger.revision),
            filter: filter::print(&trigger.query.clause),
        }
    }
}
