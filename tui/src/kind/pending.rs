//! Pending notifications, with their holds.

use bellwether_proto::{json, v1};
use serde_json::Value;

use super::{Cell, Column, EventCell, Key, KindSpec, RenderContext, edited, event_cell};
use crate::{
    data::{Kind, Object, Role, to_millis},
    document::{Document, Link, span},
    route::Route,
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    create: None,
    update: None,
    delete: None,
    naming: Some(|pending| {
        let text = |name: &str| pending[name].as_str().unwrap_or_default();
        match text("deliveryId") {
            "" => format!("{} {}", text("occurrenceId"), text("ruleName")),
            delivery => delivery.to_owned(),
        }
    }),
    output: &[],
    role: Role::Operator,
    columns: &[
        Column::new("Due", 8, 0, 0, |around, it: &Object| {
            match it.timestamp_ms("dueTime") {
                Some(due) if around.is_past(due) => Cell::new(Token::Warning, "now"),
                Some(due) => Cell::short_time(around, Some(due)),
                None => Cell::new(Token::Dim, "no end"),
            }
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("dueTime").unwrap_or(i64::MAX))),
        event_cell::SEVERITY,
        event_cell::EVENT,
        event_cell::EVENT_HOST,
        event_cell::SUMMARY,
        Column::new("Rule", 12, 1, 3, |_, it: &Object| {
            Cell::new(Token::Text, it.text("ruleName"))
        })
        .sort_by_key(|it| Key::Text(it.text("ruleName").to_owned())),
        Column::new("Held by", 17, 1, 1, |_, it: &Object| {
            Cell::new(Token::Held, format_holders(it))
        }),
        Column::new("To", 10, 0, 4, |_, it: &Object| {
            let names: Vec<&str> = it.texts("destinationNames").collect();
            Cell::new(Token::Dim, names.join(", "))
        }),
    ],
    searched: |it| {
        let names = it.texts("destinationNames");
        names
            .chain([it.text("summary"), it.text("ruleName")])
            .collect()
    },
    document: Some(write_document),
    empty: "Nothing is held.\n\n\
        Notifications held by a silence, an inhibition, a calendar, a delay, a group or a budget \
        are listed here, in the order of their next evaluation.",
    ..edited!("Pending", "Pending")
};

fn parse_holds(pending: &Object) -> impl Iterator<Item = v1::Hold> {
    let all = pending.value_at("holds").and_then(Value::as_array);
    let all = all.into_iter().flatten();
    all.filter_map(|hold| json::from_json(hold.to_string().as_bytes()).ok())
}

pub(crate) fn holder_names(pending: &Object) -> Vec<String> {
    parse_holds(pending)
        .map(|hold| hold_word(hold.kind()))
        .collect()
}

fn hold_word(kind: v1::HoldKind) -> String {
    match kind {
        v1::HoldKind::ActiveTimes => "calendar".to_owned(),
        v1::HoldKind::AutoPause => "pause".to_owned(),
        kind => {
            let name = kind.as_str_name().trim_start_matches("HOLD_KIND_");
            name.to_ascii_lowercase().replace('_', " ")
        }
    }
}

fn format_holders(pending: &Object) -> String {
    let words = parse_holds(pending).map(|hold| {
        let of = match hold.kind() {
            v1::HoldKind::ActiveTimes | v1::HoldKind::Inhibition | v1::HoldKind::Silence => "",
            _ => " of",
        };
        format!("{}{of} {}", hold_word(hold.kind()), hold.name)
    });
    words.collect::<Vec<_>>().join(", ")
}

pub(crate) fn format_hold(around: &dyn RenderContext, hold: &v1::Hold) -> String {
    let until = to_millis(hold.until.as_ref());
    let until = until.map_or_else(String::new, |ms| {
        let link = match hold.kind() {
            _ if around.is_past(ms) => ",",
            v1::HoldKind::Group => " at",
            _ => " until",
        };
        format!("{link} {}", around.format_due(ms))
    });
    let (name, detail) = (&hold.name, &hold.detail);
    match hold.kind() {
        v1::HoldKind::ActiveTimes => format!("outside the windows of calendar {name}{until}"),
        v1::HoldKind::Inhibition => format!("by inhibition {name}: {detail}"),
        v1::HoldKind::AutoPause => {
            format!("auto-pause of rule {name}{until}")
        }
        v1::HoldKind::Flapping => format!("flapping: {detail}{until}"),
        v1::HoldKind::Group => {
            format!("joins the next message of the group{until}: {detail}")
        }
        v1::HoldKind::Budget => format!("over the budget of {name}: {detail}{until}"),
        v1::HoldKind::Silence => format!("by silence {name} ({}, {detail}){until}", hold.author),
        v1::HoldKind::Delay => format!("delay of rule {name}{until}"),
        kind => format!("{} {name}: {detail}{until}", hold_word(kind)),
    }
}

fn write_document(into: &mut Document, around: &dyn RenderContext, pending: &Object) {
    let occurrence = match pending.text("deliveryId") {
        "" => Route::Event(pending.text("occurrenceId").to_owned()),
        delivery => Route::Delivery(delivery.to_owned()),
    };
    let occurrence = Link::Go(occurrence);
    let cells = into.columns.saturating_sub(2);
    into.linked_line(
        EventCell::from_object(around, pending).spans(cells),
        occurrence,
    );
    let rule = pending.text("ruleName");
    if !rule.is_empty() {
        let go = Link::object(Kind::Rule, rule);
        into.link("rule", rule, go);
    }
    let word = match pending.text("kind") {
        "OPENING" => "the first message",
        "UPDATE" => "an update to receivers already notified",
        "DIGEST" => "messages over the destination's budget",
        _ => "a kind unknown to this console",
    };
    into.field("message", Token::Text, word);
    let due = match pending.text("deliveryId") {
        "" => "evaluated",
        _ => "goes",
    };
    for (label, path) in [("since", "since"), (due, "dueTime")] {
        if let Some(ms) = pending.timestamp_ms(path) {
            let at = match path {
                "dueTime" => around.format_due(ms),
                _ => around.format_full_time(ms),
            };
            into.field(label, Token::Text, &at);
        }
    }
    for hold in parse_holds(pending) {
        into.field("held", Token::Held, &format_hold(around, &hold));
    }
    let words = "‹release› sends it now, despite holds";
    into.text(Token::Dim, 0, &around.expand_keys(words));
    into.heading("Would be notified");
    for name in pending.texts("destinationNames") {
        let go = Link::object(Kind::Destination, name);
        into.linked_line(vec![span(Token::Link, name)], go);
    }
}
