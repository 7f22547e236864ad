//! Groups: occurrences that share one message of a rule.

use serde_json::Value;

use super::{Cell, Column, Key, KindSpec, RenderContext, edited};
use crate::{
    data::{Kind, Label, Object, Role, Severity, Status},
    document::{Document, Link, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    create: None,
    update: None,
    delete: None,
    detail: Some("GetGroup"),
    naming: Some(|group| group["id"].as_str().unwrap_or_default().to_owned()),
    output: &[],
    role: Role::Operator,
    columns: &[
        Column::new("State", 7, 0, 0, |_, it: &Object| state(it).into())
            .sort_by_key(|it| Key::Number(state_rank(it))),
        Column::new("Rule", 14, 1, 1, |_, it: &Object| {
            Cell::new(Token::Text, it.text("ruleName"))
        })
        .sort_by_key(|it| Key::Text(it.text("ruleName").to_owned())),
        Column::new("By", 20, 3, 0, |_, it: &Object| {
            Cell::new(Token::Dim, format_common_fields(it))
        }),
        Column::new("Open", 6, 0, 0, |_, it: &Object| {
            Cell::number(member_count(it, "openCount"))
        })
        .right_align()
        .sort_descending(|it| Key::Number(member_count(it, "openCount"))),
        Column::new("Joined", 7, 0, 2, |_, it: &Object| {
            Cell::number(member_count(it, "memberCount"))
        })
        .right_align()
        .sort_descending(|it| Key::Number(member_count(it, "memberCount"))),
        Column::new("Sent", 6, 0, 3, |_, it: &Object| {
            Cell::number(member_count(it, "messageCount"))
        })
        .right_align()
        .sort_descending(|it| Key::Number(member_count(it, "messageCount"))),
        Column::new("Last message", 16, 0, 4, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("lastMessageTime"))
        })
        .sort_descending(|it| Key::Number(it.timestamp_ms("lastMessageTime").unwrap_or_default())),
    ],
    searched: |it| {
        let values = it
            .value_at("by")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let values = values.filter_map(|pair| pair["value"].as_str());
        values.chain([it.text("ruleName"), state(it).1]).collect()
    },
    document: Some(write_document),
    empty: "No groups yet.\n\nA rule with «Group by» sends one message for several events: a \
        thread for each \
        group of equal fields. They are listed here with their open events.\n\n\
        For example: in the form of a rule (‹go_rules›) «Group by» `host`.",
    ..edited!("Group", "Groups")
};

fn state(group: &Object) -> (Token, &'static str) {
    match group.text("state") {
        "OPEN" if group.flag("acknowledged") => (Token::Info, "acked"),
        "OPEN" => (Token::Warning, "open"),
        "OVER" => (Token::Dim, "over"),
        _ => (Token::Dim, "unknown"),
    }
}

/// Returns the sort key of the state: open groups without an acknowledgement first.
fn state_rank(group: &Object) -> i64 {
    match state(group).1 {
        "open" => 0,
        "acked" => 1,
        _ => 2,
    }
}

fn member_count(group: &Object, path: &str) -> i64 {
    group.number(path).unwrap_or_default()
}

pub(super) fn format_common_fields(group: &Object) -> String {
    let all = group.value_at("by").and_then(Value::as_array);
    let pair = |pair: &Value| {
        let field = pair["field"].as_str().unwrap_or_default();
        match pair["value"].as_str() {
            Some(value) => format!("{field}={value}"),
            None => format!("{field} missing"),
        }
    };
    let pairs: Vec<String> = all.into_iter().flatten().map(pair).collect();
    if pairs.is_empty() {
        "all events of the rule".to_owned()
    } else {
        pairs.join(" ")
    }
}

fn write_document(into: &mut Document, around: &dyn RenderContext, group: &Object) {
    into.field("group", Token::Title, &format_common_fields(group));
    into.field("thread", Token::Text, group.name());
    let rule = group.text("ruleName");
    let go = Link::object(Kind::Rule, rule);
    into.link("rule", rule, go);
    let (token, word) = state(group);
    let messages = member_count(group, "messageCount");
    let words = format!(
        "  {} open, {} joined, {messages} {}",
        member_count(group, "openCount"),
        member_count(group, "memberCount"),
        if messages == 1 { "message" } else { "messages" },
    );
    into.line(vec![
        label("state"),
        span(token, word),
        span(Token::Text, &words),
    ]);
    for (label, path) in [
        ("first message", "createTime"),
        ("last message", "lastMessageTime"),
        ("next message", "nextMessageTime"),
        ("end sent", "endTime"),
    ] {
        if let Some(ms) = group.timestamp_ms(path) {
            let at = match path {
                "nextMessageTime" => around.format_due(ms),
                _ => around.format_full_time(ms),
            };
            into.field(label, Token::Text, &at);
        }
    }
    into.heading("Notified");
    for name in group.texts("destinationNames") {
        let go = Link::object(Kind::Destination, name);
        into.linked_line(vec![span(Token::Link, name)], go);
    }
    into.heading("Members");
    let Some(members) = group.value_at("members").and_then(Value::as_array) else {
        return into.text(Token::Dim, 0, "…");
    };
    for member in members {
        let (spans, id) = line(member);
        into.linked_line(spans, Link::event(id));
    }
    if !group.text("nextPageToken").is_empty() {
        into.text(
            Token::Dim,
            0,
            "and more; open and most severe members are listed first",
        );
    }
}

fn line(member: &Value) -> (Vec<crate::document::Span>, String) {
    let text = |name: &str| member[name].as_str().unwrap_or_default();
    let severity = Severity::from_str_name(text("severity")).unwrap_or_default();
    let status = Status::from_str_name(text("status")).unwrap_or_default();
    let is_acknowledged = member["acknowledged"] == true;
    let word = if is_acknowledged {
        "acked"
    } else {
        status.label()
    };
    let summary = match text("summary") {
        "" => text("eventName"),
        summary => summary,
    };
    let spans = vec![
        span(severity.into(), &format!("{:<9}", severity.label())),
        span(Token::Dim, &format!("{word:<11}")),
        span(Token::Link, summary),
    ];
    (spans, text("occurrenceId").to_owned())
}
