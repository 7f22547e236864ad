//! Rules: triggers, destinations and a message.

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, LANGUAGE, NAME, TAGS},
    shared, trigger,
};
use crate::{
    data::{Kind, Label, Object},
    document::{Document, Link, label, span},
    kind::destination,
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    columns: &[
        Column::new("On", 6, 0, 0, |_, it: &Object| {
            if it.flag("enabled") && it.flag("shadow") {
                Cell::new(Token::Info, "shadow")
            } else if it.flag("enabled") {
                Cell::new(Token::Good, "on")
            } else {
                Cell::new(Token::Dim, "off")
            }
        })
        .sort_by_key(|it| Key::Number((!it.flag("enabled")).into())),
        shared::NAME,
        Column::new("Triggers", 12, 2, 1, |_, it: &Object| {
            shared::names_cell(it, "triggerNames", "none")
        }),
        Column::new("→ Destinations", 14, 2, 1, |_, it: &Object| {
            receivers_cell(it)
        }),
        shared::recent_column(3),
        Column::new("Last decided", 16, 0, 4, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("lastNotificationTime"))
        })
        .sort_descending(|it| {
            Key::Number(it.timestamp_ms("lastNotificationTime").unwrap_or_default())
        }),
    ],
    searched: |it| {
        it.texts("triggerNames")
            .chain(it.texts("destinationNames"))
            .chain([it.text("escalationPolicyName")])
            .collect()
    },
    fields: &[
        NAME,
        FieldSpec::toggle("enabled", "Enabled")
            .help("Notify only while this is on."),
        FieldSpec::new("triggerNames", "Triggers", FieldKind::Names(Kind::Trigger))
            .help("Triggers; a match of any of them notifies. Enter opens a list."),
        FieldSpec::new("destinationNames", "Destinations", FieldKind::Names(Kind::Destination))
            .help("Destinations, all of which are notified. Enter opens a list."),
        FieldSpec::lines("message", "Message")
            .help("Template, such as {{event.summary}}. Empty: the destination's default. ‹form_test› previews."),
        FieldSpec::toggle("sendUpdates", "Send updates")
            .help("Notify again when the event is closed, acknowledged or changes severity."),
        FieldSpec::toggle("shadow", "Shadow")
            .help("Dry run: record what would be sent, send nothing."),
        DESCRIPTION,
        TAGS,
        LANGUAGE,
        FieldSpec::section("#when", "When")
            .help("Repeats, delays, and the hours during which messages are sent."),
        FieldSpec::toggle("repeat", "Repeat")
            .help("Notify again on later matches of the same event."),
        FieldSpec::new("repeatInterval", "Repeat after", FieldKind::Number(0, 31_536_000))
            .help("Seconds between repeats. Empty: 3600; 0: every match."),
        FieldSpec::length("delay", "Delay")
            .help("Time that an event must match before it notifies, such as 5m. Empty: no delay."),
        FieldSpec::length("autoPause", "Auto-pause")
            .help("Time to wait for events that usually close on their own, such as 3m. Empty: none."),
        FieldSpec::text("escalationPolicyName", "Escalation")
            .help("Policy that pages on opening until someone acknowledges. Empty: none."),
        FieldSpec::text("activeCalendarName", "Active")
            .help("Send openings only during this calendar's windows. Empty: any time."),
        FieldSpec::section("#gather", "Groups and flapping")
            .help("Group several events in one message; damp flapping events."),
        FieldSpec::words("group.by", "Group by")
            .help("Events with equal values of these fields form a group, such as host. Empty: no groups."),
        FieldSpec::length("group.wait", "Group wait")
            .help("Wait before the first message of a group. Empty: 30s."),
        FieldSpec::length("group.interval", "Group every")
            .help("Wait between messages of a group. Empty: 5m."),
        FieldSpec::new("flapping.openCount", "Flaps from", FieldKind::Number(3, 50))
            .help("Openings in the window that count as flapping. Empty: never."),
        FieldSpec::length("flapping.window", "Flaps within")
            .help("Window for counting openings, such as 1h."),
        FieldSpec::length("flapping.settle", "Settles after")
            .help("Time without a change after which flapping ends, such as 15m."),
    ],
    document: Some(write_document),
    empty: "No rules yet.\n\nA rule joins triggers to destinations: when any of its triggers \
        matches, all of its destinations are notified.\n\
        Create a trigger (‹go_triggers›) and a destination (‹go_destinations›) first, then ‹new› \
        creates a rule.\n\n\
        For example: name `page`, trigger `databases`, destination `on-call`, message `{{event.summary}}`.",
    beside: &[Kind::Trigger, Kind::Destination],
    ..edited!("Rule", "Rules")
};

fn write_document(into: &mut Document, around: &dyn RenderContext, rule: &Object) {
    shared::write_head(into, rule);
    let (token, word) = if rule.flag("enabled") {
        (Token::Good, "enabled")
    } else {
        (Token::Warning, "disabled")
    };
    let shadow = if rule.flag("shadow") {
        ", dry run: only records messages"
    } else {
        ""
    };
    let shadow = span(Token::Warning, shadow);
    into.line(vec![label("state"), span(token, word), shadow]);
    shared::write_notifications(into, rule);
    match rule.number("recentShadowCount").unwrap_or_default() {
        0 => {}
        count => into.field(
            "recorded",
            Token::Text,
            &format!("{count} in 24 h, none sent"),
        ),
    }
    if let Some(last) = rule.timestamp_ms("lastNotificationTime") {
        into.field("last decided", Token::Text, &around.format_full_time(last));
    }
    let link = Link::deliveries("rule", rule.name());
    into.link("deliveries", "of this rule", link);
    let interval = rule.number("repeatInterval").unwrap_or(3_600);
    let repeat = if rule.flag("repeat") {
        format!("after {interval} s")
    } else {
        "no".to_owned()
    };
    into.field("repeats", Token::Text, &repeat);
    let updates = if rule.flag("sendUpdates") {
        "yes"
    } else {
        "no"
    };
    into.field("sends updates", Token::Text, updates);
    if let Some(timing) = describe_timing(rule) {
        into.field("timing", Token::Text, &timing);
    }
    shared::write_times(into, around, rule);
    write_group(into, around, rule);
}

fn describe_timing(rule: &Object) -> Option<String> {
    let calendar = match rule.text("activeCalendarName") {
        "" => None,
        name => Some(format!("inside {name}")),
    };
    let delay = match rule.text("delay") {
        "" => None,
        delay => Some(format!("after {delay}")),
    };
    let pause = match rule.text("autoPause") {
        "" => None,
        pause => Some(format!(
            "auto-pause {pause} if events usually close on their own"
        )),
    };
    let parts = calendar.into_iter().chain(delay).chain(pause);
    let parts: Vec<_> = parts
        .chain(describe_grouping(rule))
        .chain(describe_flapping(rule))
        .collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn describe_grouping(rule: &Object) -> Option<String> {
    rule.value_at("group")?;
    let fields: Vec<_> = rule.texts("group.by").collect();
    let by = match fields.as_slice() {
        [] => "all in one".to_owned(),
        fields => format!("by {}", fields.join(", ")),
    };
    let (wait, interval) = (rule.text("group.wait"), rule.text("group.interval"));
    Some(format!("{by}, {wait}, then every {interval}"))
}

fn receivers_cell(rule: &Object) -> Cell {
    let policy = policy_name(rule).map(|it| format!("policy {it}"));
    let names: Vec<_> = rule.texts("destinationNames").map(str::to_owned).collect();
    let names: Vec<_> = names.into_iter().chain(policy).collect();
    if names.is_empty() {
        Cell::new(Token::Warning, "none")
    } else {
        Cell::new(Token::Text, names.join(", "))
    }
}

fn policy_name(rule: &Object) -> Option<&str> {
    Some(rule.text("escalationPolicyName")).filter(|it| !it.is_empty())
}

fn describe_flapping(rule: &Object) -> Option<String> {
    let openings = rule.number("flapping.openCount")?;
    let (window, settle) = (rule.text("flapping.window"), rule.text("flapping.settle"));
    Some(format!(
        "flapping from {openings} openings in {window}, until stable for {settle}"
    ))
}

fn write_group(into: &mut Document, around: &dyn RenderContext, rule: &Object) {
    into.heading("When any of these triggers matches");
    let triggers = rule.texts("triggerNames");
    if triggers.len() == 0 {
        let words = around.expand_keys("none: never notifies; ‹edit› adds one");
        into.text(Token::Warning, 0, &words);
    }
    for name in triggers {
        let query = around
            .find_object(Kind::Trigger, name)
            .map(trigger::query_text);
        let query = query.map_or_else(String::new, |query| format!("  {query}"));
        let line = vec![span(Token::Link, name), span(Token::Dim, &query)];
        into.linked_line(line, Link::object(Kind::Trigger, name));
    }
    let (destinations, policy) = (rule.texts("destinationNames"), policy_name(rule));
    into.heading(match policy {
        Some(_) => "All of these are notified",
        None => "All of these destinations are notified",
    });
    if destinations.len() == 0 && policy.is_none() {
        let words = around.expand_keys("none: notifies no one; ‹edit› adds one");
        into.text(Token::Warning, 0, &words);
    }
    for name in destinations {
        let mut line = vec![span(Token::Link, name)];
        if let Some(destination) = around.find_object(Kind::Destination, name) {
            let health = destination::health_state(destination);
            let word = destination.type_word();
            line.push(span(Token::Dim, &format!("  {word}  ")));
            line.push(span(health.into(), health.label()));
        }
        into.linked_line(line, Link::object(Kind::Destination, name));
    }
    if let Some(name) = policy {
        let line = vec![
            span(Token::Link, name),
            span(Token::Dim, "  escalation policy"),
        ];
        into.linked_line(line, Link::object(Kind::Policy, name));
    }
    into.heading("Message");
    let message = rule.text("message");
    if message.is_empty() {
        into.text(Token::Dim, 0, "the destination's default");
    } else {
        into.text(Token::Text, 0, message);
    }
}
