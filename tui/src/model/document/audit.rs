//! The audit log, for all objects or for one.

use bellwether_proto::{
    json,
    v1::{
        AuditEntry, AuditState, ListAuditEntriesRequest, ListAuditEntriesResponse,
        audit_entry::Action,
    },
};
use serde_json::Value;

use crate::{
    data::{Kind, Label, Object, to_millis},
    document::{Document, Link, diff_lines, span},
    kind,
    model::Model,
    route::Route,
    text,
    theme::Token,
};

const LINES: usize = 40;

pub(super) fn describe_request(into: &mut Document, request: &ListAuditEntriesRequest) {
    into.text(Token::Dim, 0, "Who changed what, newest first.");
    for (kind, name) in request.kinds.iter().zip(&request.names) {
        match entry_route(kind, name) {
            Some(route) => into.link(kind, name, Link::Go(route)),
            None => into.field(kind, Token::Text, name),
        }
    }
}

pub(super) fn write(into: &mut Document, model: &Model, read: &ListAuditEntriesResponse) {
    let rows = &read.entries;
    if rows.is_empty() {
        into.text(Token::Dim, 0, "no audit entries");
    }
    for row in rows {
        write_entry(into, model, row);
    }
    if !read.next_page_token.is_empty() {
        into.blank_line();
        let message = format!(
            "only the newest {} are shown; there may be more",
            rows.len()
        );
        into.text(Token::Warning, 0, &message);
    }
}

/// Writes who did what to which object, and when.
pub(super) fn write_headline(into: &mut Document, model: &Model, row: &AuditEntry) {
    let at = to_millis(row.time.as_ref());
    let at = at.map(|ms| model.format_time(ms)).unwrap_or_default();
    let client = match row.client_name.as_str() {
        "" => "unknown",
        name => name,
    };
    let token = match row.action() {
        Action::Refused | Action::Deleted => Token::Bad,
        Action::Created if !is_test(row) => Token::Good,
        _ => Token::Text,
    };
    let what = match (row.names.as_slice(), row.count) {
        _ if is_test(row) => String::new(),
        ([name], 0 | 1) => format!(" {} {name}", row.kind),
        (_, count) if count > 1 => format!(" {} of {}", text::group_digits(count.into()), row.kind),
        _ => format!(" {}", row.kind),
    };
    let line = vec![
        span(Token::Dim, &format!("{at:<17}")),
        span(Token::Title, &format!("{client:<14} ")),
        span(token, &format_action(row)),
        span(Token::Text, what.trim_end()),
        span(Token::Dim, &format_caller(row)),
    ];
    let route = match row.names.as_slice() {
        [name] => entry_route(&row.kind, name),
        _ => None,
    };
    match route {
        Some(route) => into.linked_line(line, Link::Go(route)),
        None => into.line(line),
    }
}

fn write_entry(into: &mut Document, model: &Model, row: &AuditEntry) {
    write_headline(into, model, row);
    if !row.reason.is_empty() && !is_test(row) {
        into.text(Token::Bad, 2, &row.reason);
    }
    if row.before.is_some() && row.after.is_some() {
        draw_change(into, row);
    }
    if let Some(version) = version(model, row) {
        let line = vec![span(Token::Link, "  restore this version")];
        into.linked_line(line, Link::Restore(Box::new(version)));
    }
    for secret in &row.changed_secrets {
        into.text(Token::Warning, 2, &format!("secret set: {secret}"));
    }
}

/// Whether the entry is about a test message; its reason describes the test and the outcome.
fn is_test(row: &AuditEntry) -> bool {
    row.method.ends_with("/TestDestination") && row.kind == "delivery" && !row.reason.is_empty()
}

fn format_action(row: &AuditEntry) -> String {
    if !is_test(row) {
        return row.action().label().to_owned();
    }
    match row.reason.strip_suffix(": begun") {
        Some(name) => format!("started a test of destination {name}"),
        None => format!("tested destination {}", row.reason),
    }
}

/// Formats the address of the caller; for a rejected call, also its method.
fn format_caller(row: &AuditEntry) -> String {
    let address = match row.address.as_str() {
        "" => String::new(),
        address => format!("  from {address}"),
    };
    let through = match row.agent.as_str() {
        "" => String::new(),
        agent => format!("  through {agent}"),
    };
    match row.action() {
        Action::Refused => format!("  {}{address}", row.method),
        _ => address + &through,
    }
}

fn draw_change(into: &mut Document, row: &AuditEntry) {
    let [before, after] = [&row.before, &row.after].map(|it| as_json(it.as_ref(), &row.kind));
    let lines = diff_lines(&before, &after, 0);
    let count = lines.len();
    for (token, line) in lines.into_iter().take(LINES) {
        into.text(token, 2, &line);
    }
    if count > LINES {
        let message = format!("and {} more lines", count - LINES);
        into.text(Token::Dim, 2, &message);
    }
}

/// Formats an object as JSON, without fields that change with every edit.
fn as_json(state: Option<&AuditState>, kind: &str) -> String {
    let wire = state.and_then(|it| json::to_json(it).ok());
    let read = wire.and_then(|it| serde_json::from_slice::<Value>(&it).ok());
    let mut value = read.map_or(Value::Null, |mut it| it[kind].take());
    if let Value::Object(fields) = &mut value {
        for field in ["etag", "updateTime"] {
            fields.remove(field);
        }
    }
    format!("{value:#}\n")
}

/// Returns the version of a resource after the entry, or before its deletion; `None` if it equals
/// the current one.
fn version(model: &Model, row: &AuditEntry) -> Option<Object> {
    let kind = *Kind::ALL.iter().find(|it| it.singular() == row.kind)?;
    kind::spec(kind).update?;
    let state = row.after.as_ref().or(row.before.as_ref())?;
    let wire = json::to_json(state).ok()?;
    let mut read: Value = serde_json::from_slice(&wire).ok()?;
    let json = read[row.kind.as_str()].take();
    let version = kind::editable_part(&Object { kind, json });
    let now = model
        .store
        .object(kind, version.name())
        .map(kind::editable_part);
    (now.as_ref() != Some(&version)).then_some(version)
}

fn entry_route(kind: &str, name: &str) -> Option<Route> {
    match kind {
        "occurrence" => Some(Route::Event(name.to_owned())),
        "delivery" => Some(Route::Delivery(name.to_owned())),
        kind => {
            let kind = Kind::ALL.iter().find(|it| it.singular() == kind)?;
            Some(Route::Object(*kind, name.to_owned()))
        }
    }
}
