//! The history of an occurrence as one list.

use bellwether_proto::v1::TimelineEntry;

use super::{RuleExplanation, SentDelivery};
use crate::{
    domain::{CloseReason, Delivery, DeliveryState, Field, GroupId, HoldOutcome, Name, Occurrence},
    limits::TIMELINE_MAX,
    message::cut,
};

const NOTE_CHARACTERS_MAX: usize = 200;

/// Returns the history of an occurrence, oldest first; only the newest [`TIMELINE_MAX`] entries.
pub fn build_timeline(occurrence: &Occurrence, rules: &[RuleExplanation]) -> Vec<TimelineEntry> {
    let mut items = occurrence_items(occurrence);
    for rule in rules {
        items.extend(hold_items(rule));
        items.extend(notification_items(rule));
        items.extend(
            rule.deliveries
                .iter()
                .filter_map(|it| outcome_item(rule, it)),
        );
        items.extend(
            rule.deliveries
                .iter()
                .filter_map(|it| folded_item(rule, it)),
        );
    }
    // The sort is stable: simultaneous entries stay in causal order.
    items.sort_by_key(|it| it.time);
    let too_many = items.len().saturating_sub(TIMELINE_MAX);
    items.drain(..too_many);
    items
}

fn history_item(time: i64, kind: &str, text: String) -> TimelineEntry {
    TimelineEntry {
        time,
        kind: kind.to_owned(),
        text,
        ..TimelineEntry::default()
    }
}

fn occurrence_items(occurrence: &Occurrence) -> Vec<TimelineEntry> {
    let close = occurrence.close.as_ref();
    let mut items = Vec::new();
    for entry in &occurrence.history {
        let (kind, text) = match (entry.field, entry.to.as_str()) {
            (Field::Status, _) if entry.from.is_empty() => ("opened", "it was opened".to_owned()),
            (Field::Status, "closed") => {
                let last = close.filter(|it| it.at_ms == entry.at_ms);
                let why = match last.map(|it| it.reason) {
                    Some(CloseReason::Sender) => " by its sender",
                    Some(CloseReason::Operator) => " by an operator",
                    Some(CloseReason::Aged) => ": no reports",
                    Some(CloseReason::Expired) => ": it expired",
                    None => "",
                };
                ("closed", format!("it was closed{why}"))
            }
            (Field::Acknowledged, "true") => ("acknowledged", "it was acknowledged".to_owned()),
            (Field::Acknowledged, _) => {
                let text = "the acknowledgement was removed";
                ("unacknowledged", text.to_owned())
            }
            (Field::Assignee, "") => ("assigned", "unassigned".to_owned()),
            (Field::Assignee, to) => ("assigned", format!("assigned to {to}")),
            (field, to) if entry.from.is_empty() => opening_entry(field, to),
            (field, to) => {
                let (field, from) = (field.as_str(), &entry.from);
                ("changed", format!("{field} {from} became {to}"))
            }
        };
        items.push(TimelineEntry {
            author: entry
                .author
                .as_ref()
                .map(Name::to_string)
                .unwrap_or_default(),
            ..history_item(entry.at_ms, kind, text)
        });
    }
    for note in &occurrence.annotations {
        let text = cut::to_one_line(&note.text, NOTE_CHARACTERS_MAX);
        items.push(TimelineEntry {
            author: note.author.to_string(),
            ..history_item(note.create_ms, "note", text)
        });
    }
    items
}

fn opening_entry(field: Field, to: &str) -> (&'static str, String) {
    ("opened", format!("{} is {to}", field.as_str()))
}

fn hold_items(rule: &RuleExplanation) -> impl Iterator<Item = TimelineEntry> {
    rule.hold_changes.iter().map(|change| {
        let kind = match change.what {
            HoldOutcome::Waits => "held",
            HoldOutcome::Released | HoldOutcome::ReleasedByHand => "released",
            HoldOutcome::HandedOver => "handed over",
            _ => "skipped",
        };
        TimelineEntry {
            rule_name: rule.rule_name.to_string(),
            ..history_item(change.at_ms, kind, super::describe(change))
        }
    })
}

fn receiver_name(delivery: &Delivery) -> String {
    let destination = &delivery.destination_name;
    match &delivery.content.contact {
        Some(contact) => format!("{} by {destination}", contact.name),
        None => destination.clone(),
    }
}

fn notification_items(rule: &RuleExplanation) -> impl Iterator<Item = TimelineEntry> {
    rule.notifications.iter().map(|notification| {
        let is_part = |it: &&SentDelivery| {
            let id = it.delivery.id.to_string();
            notification.delivery_ids.contains(&id)
        };
        let sent: Vec<_> = rule.deliveries.iter().filter(is_part).collect();
        let names: Vec<_> = sent.iter().map(|it| receiver_name(&it.delivery)).collect();
        let receivers = match names.as_slice() {
            [] => "them".to_owned(),
            names => names.join(", "),
        };
        let about = if notification.clear() {
            "of its change or closing"
        } else {
            "of it"
        };
        let is_shadow = sent.first().is_some_and(|it| it.is_shadow());
        let group = sent
            .first()
            .and_then(|it| it.delivery.content.group.as_ref());
        let with = group.map_or_else(String::new, |it| format!(", with {}", GroupId(it.id)));
        let (kind, text) = if is_shadow {
            let text = format!(
                "{receivers} would have been notified {about}{with}; only recorded (dry run)"
            );
            ("shadowed", text)
        } else {
            // The outcome of the delivery is a separate entry.
            (
                "notified",
                format!("decided to notify {receivers} {about}{with}"),
            )
        };
        TimelineEntry {
            rule_name: rule.rule_name.to_string(),
            ..history_item(notification.time, kind, text)
        }
    })
}

fn folded_item(rule: &RuleExplanation, sent: &SentDelivery) -> Option<TimelineEntry> {
    let digest = sent.digest.as_ref()?;
    let name = receiver_name(&sent.delivery);
    let became = match digest.state {
        DeliveryState::Delivered => ", delivered",
        DeliveryState::Dead => ", failed for good",
        DeliveryState::Cancelled => ", cancelled",
        _ => ", in progress",
    };
    let (id, count) = (digest.id, digest.count);
    let text = format!("{name} is notified in digest {id} ({count} messages{became})");
    Some(TimelineEntry {
        rule_name: rule.rule_name.to_string(),
        delivery_id: digest.id.to_string(),
        ..history_item(sent.delivery.end_ms?, "folded", text)
    })
}

fn outcome_item(rule: &RuleExplanation, sent: &SentDelivery) -> Option<TimelineEntry> {
    let delivery = &sent.delivery;
    let name = receiver_name(delivery);
    let (kind, text) = match delivery.state {
        DeliveryState::Delivered => ("delivered", format!("the message to {name} was delivered")),
        DeliveryState::Dead => {
            let why = cut::to_one_line(&delivery.last_error, NOTE_CHARACTERS_MAX);
            (
                "dead",
                format!("the message to {name} failed for good: {why}"),
            )
        }
        DeliveryState::Cancelled => ("cancelled", format!("the message to {name} was cancelled")),
        _ => return None,
    };
    Some(TimelineEntry {
        rule_name: rule.rule_name.to_string(),
        delivery_id: delivery.id.to_string(),
        ..history_item(delivery.end_ms?, kind, text)
    })
}
