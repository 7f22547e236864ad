//! The history of an occurrence as one list.

use super::{RuleExplanation, SentDelivery};
use crate::{
    domain::{
        CloseReason, Delivery, DeliveryState, Field, GroupId, HoldOutcome, Name, Occurrence,
        RecordId,
    },
    limits::TIMELINE_MAX,
    message::cut,
};

const NOTE_CHARACTERS_MAX: usize = 200;

/// An entry in the history of an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Time of the entry, in milliseconds since the epoch.
    pub at_ms: i64,
    /// Kind of the entry.
    pub kind: &'static str,
    /// Displayed text.
    pub text: String,
    /// Name of the rule, if any.
    pub rule_name: Option<Name>,
    /// Delivery, if any.
    pub delivery: Option<RecordId>,
    /// Author of the change; `None` if made by the service.
    pub author: Option<Name>,
}

/// Returns the history of an occurrence, oldest first; only the newest [`TIMELINE_MAX`] entries.
pub fn timeline(occurrence: &Occurrence, rules: &[RuleExplanation]) -> Vec<Moment> {
    let mut moments = changes(occurrence);
    for rule in rules {
        moments.extend(holds(rule));
        moments.extend(moments_of(rule));
        moments.extend(rule.deliveries.iter().filter_map(|it| ended(rule, it)));
        moments.extend(rule.deliveries.iter().filter_map(|it| folded(rule, it)));
    }
    // The stable sort keeps simultaneous entries in causal order.
    moments.sort_by_key(|it| it.at_ms);
    let too_many = moments.len().saturating_sub(TIMELINE_MAX);
    moments.drain(..too_many);
    moments
}

fn moment(at_ms: i64, kind: &'static str, text: String) -> Moment {
    Moment {
        at_ms,
        kind,
        text,
        rule_name: None,
        delivery: None,
        author: None,
    }
}

fn changes(occurrence: &Occurrence) -> Vec<Moment> {
    let close = occurrence.close.as_ref();
    let mut moments = Vec::new();
    for entry in &occurrence.history {
        let (kind, text) = match (entry.field, entry.to.as_str()) {
            (Field::Status, _) if entry.from.is_empty() => ("opened", "it was opened".to_owned()),
            (Field::Status, "closed") => {
                let last = close.filter(|it| it.at_ms == entry.at_ms);
                let why = match last.map(|it| it.reason) {
                    Some(CloseReason::Sender) => " by its sender",
                    Some(CloseReason::Operator) => " by an operator",
                    Some(CloseReason::Aged) => ": it was only counted",
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
            (field, to) if entry.from.is_empty() => continue_with(field, to),
            (field, to) => {
                let (field, from) = (field.as_str(), &entry.from);
                ("changed", format!("{field} {from} became {to}"))
            }
        };
        moments.push(Moment {
            author: entry.author.clone(),
            ..moment(entry.at_ms, kind, text)
        });
    }
    for note in &occurrence.annotations {
        let text = cut::to_one_line(&note.text, NOTE_CHARACTERS_MAX);
        moments.push(Moment {
            author: Some(note.author.clone()),
            ..moment(note.create_ms, "note", text)
        });
    }
    moments
}

/// Returns the entry for a field that is set at the opening.
fn continue_with(field: Field, to: &str) -> (&'static str, String) {
    ("opened", format!("{} is {to}", field.as_str()))
}

fn holds(rule: &RuleExplanation) -> impl Iterator<Item = Moment> {
    rule.hold_changes.iter().map(|change| {
        let kind = match change.what {
            HoldOutcome::Waits => "held",
            HoldOutcome::Released | HoldOutcome::ReleasedByHand => "released",
            HoldOutcome::HandedOver => "handed over",
            _ => "skipped",
        };
        Moment {
            rule_name: Some(rule.rule_name.clone()),
            ..moment(change.at_ms, kind, super::describe(change))
        }
    })
}

/// Returns the name of the destination, or of the contact and its destination.
fn receiver(delivery: &Delivery) -> String {
    let destination = &delivery.destination_name;
    match &delivery.content.contact {
        Some(contact) => format!("{} by {destination}", contact.name),
        None => destination.clone(),
    }
}

fn moments_of(rule: &RuleExplanation) -> impl Iterator<Item = Moment> {
    rule.notifications.iter().map(|notification| {
        let is_part = |it: &&SentDelivery| notification.deliveries.contains(&it.delivery.id);
        let sent: Vec<_> = rule.deliveries.iter().filter(is_part).collect();
        let names: Vec<_> = sent.iter().map(|it| receiver(&it.delivery)).collect();
        let receivers = match names.as_slice() {
            [] => "them".to_owned(),
            names => names.join(", "),
        };
        let about = if notification.clear {
            "of its change or end"
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
            // The delivery has a separate entry.
            (
                "notified",
                format!("decided to notify {receivers} {about}{with}"),
            )
        };
        Moment {
            rule_name: Some(rule.rule_name.clone()),
            ..moment(notification.at_ms, kind, text)
        }
    })
}

fn folded(rule: &RuleExplanation, sent: &SentDelivery) -> Option<Moment> {
    let digest = sent.digest.as_ref()?;
    let name = receiver(&sent.delivery);
    let became = match digest.state {
        DeliveryState::Delivered => ", which arrived",
        DeliveryState::Dead => ", which failed for good",
        DeliveryState::Cancelled => ", which was delivered",
        _ => ", which is in progress",
    };
    let (id, count) = (digest.id, digest.count);
    let text = format!("{name} is notified in digest {id} of {count} messages{became}");
    Some(Moment {
        rule_name: Some(rule.rule_name.clone()),
        delivery: Some(digest.id),
        ..moment(sent.delivery.end_ms?, "folded", text)
    })
}

fn ended(rule: &RuleExplanation, sent: &SentDelivery) -> Option<Moment> {
    let delivery = &sent.delivery;
    let name = receiver(delivery);
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
    Some(Moment {
        rule_name: Some(rule.rule_name.clone()),
        delivery: Some(delivery.id),
        ..moment(delivery.end_ms?, kind, text)
    })
}
