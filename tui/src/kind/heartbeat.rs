//! Heartbeats: signals that are expected to repeat.

use super::{
    Around, Cell, Column, FieldKind, FieldSpec, Key, KindSpec,
    field::{DESCRIPTION, NAME, TAGS},
    mapping, shared,
};
use crate::{
    data::{Object, Role, when},
    document::{Document, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    service: "HeartbeatService",
    list: "ListHeartbeats",
    create: Some("CreateHeartbeat"),
    update: Some("UpdateHeartbeat"),
    delete: Some("DeleteHeartbeat"),
    detail: None,
    naming: None,
    message: "Heartbeat",
    nested: true,
    output: &[
        // The same as the filter, which the form shows.
        "query",
        "expectedCount",
        "lateCount",
        "lastBeatTime",
        "hasKey",
        "createTime",
        "updateTime",
        "etag",
    ],
    role: Role::Editor,
    columns: &[
        Column::new("State", 8, 0, 0, |_, it: &Object| {
            let (token, word) = state(it);
            Cell::new(token, word)
        })
        .by(|it| Key::Number(-count(it, "lateCount"))),
        shared::NAME,
        Column::new("Last beat", 16, 0, 1, |around, it: &Object| {
            Cell::moment(around, it.moment("lastBeatTime"))
        })
        .by(|it| Key::Number(it.moment("lastBeatTime").unwrap_or_default())),
        Column::new("Every", 8, 0, 2, |_, it: &Object| {
            Cell::new(Token::Text, length(it, "every"))
        }),
        Column::new("Late", 6, 0, 1, |_, it: &Object| {
            let late = count(it, "lateCount");
            let token = if late > 0 { Token::Bad } else { Token::Dim };
            Cell {
                token,
                ..Cell::figure(late)
            }
        })
        .falling(|it| Key::Number(count(it, "lateCount")))
        .figures(),
        Column::new("Of", 6, 0, 3, |_, it: &Object| {
            Cell::figure(count(it, "expectedCount"))
        })
        .falling(|it| Key::Number(count(it, "expectedCount")))
        .figures(),
        Column::new("Beats", 24, 2, 2, |_, it: &Object| {
            Cell::new(Token::Dim, beats(it))
        }),
    ],
    searched: |it| vec![it.text("filter"), it.text("event.name")],
    fields: &[
        NAME,
        FieldSpec::new(
            "enabled",
            "Enabled",
            FieldKind::Toggle,
            "Only of an enabled heartbeat beats are expected.",
        ),
        FieldSpec::new(
            "every",
            "Every",
            FieldKind::Length,
            "The longest time between two beats, such as 5m or 1d; at least 30s.",
        )
        .needed(),
        FieldSpec::new(
            "grace",
            "Grace",
            FieldKind::Length,
            "How much later a beat may be. Empty: a tenth of that time, and at least 10s.",
        ),
        FieldSpec::new(
            "filter",
            "Beats",
            FieldKind::Text,
            "The events that are beats, such as name=backup-done. Empty: only calls are.",
        ),
        FieldSpec::new(
            "by",
            "By",
            FieldKind::Words,
            "The fields whose values distinguish beats, such as host. Empty: all count as one.",
        ),
        FieldSpec::new(
            "forgetAfter",
            "Forget after",
            FieldKind::Length,
            "How long after its last beat a set of values is expected. Empty: 30d.",
        ),
        FieldSpec::new(
            "event.name",
            "Event name",
            FieldKind::Text,
            "The name of the event that a missing beat opens. Empty: that of the heartbeat.",
        ),
        FieldSpec::new(
            "event.severity",
            "Severity",
            FieldKind::Word(mapping::SEVERITIES),
            "Its severity. Empty: error.",
        ),
        FieldSpec::new(
            "event.summary",
            "Summary",
            FieldKind::Text,
            "Its summary. Empty: a sentence with the values and the time of the last beat.",
        ),
        FieldSpec::new(
            "event.dimensions",
            "Dimensions",
            FieldKind::Pairs,
            "Its dimensions beside `heartbeat` and the values: a line `team: db` for each.",
        ),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(document),
    empty: "No heartbeats yet.\n\nA heartbeat is a signal that is expected to repeat: a backup, a cron job, \
        a watchdog. If it\nis missing, an event is opened, and the next beat closes it. ‹new› creates one.\n\n\
        For example: every `1d`, beats `name=backup-done`, by `host`.",
    beside: &[],
};

/// A length of the wire, as people write it.
fn length(heartbeat: &Object, path: &str) -> String {
    let seconds = heartbeat.text(path).strip_suffix('s');
    let seconds = seconds.and_then(|it| it.parse::<i64>().ok());
    seconds.map_or_else(
        || heartbeat.text(path).to_owned(),
        |seconds| when::length(seconds.saturating_mul(1_000)),
    )
}

fn count(heartbeat: &Object, path: &str) -> i64 {
    heartbeat.number(path).unwrap_or_default()
}

/// How it stands, in a word.
fn state(heartbeat: &Object) -> (Token, &'static str) {
    let (expected, late) = (
        count(heartbeat, "expectedCount"),
        count(heartbeat, "lateCount"),
    );
    let is_new = heartbeat.moment("lastBeatTime").is_none();
    match (heartbeat.flag("enabled"), expected, late) {
        (false, ..) => (Token::Dim, "disabled"),
        (true, 0, _) => (Token::Dim, "no beat"),
        (true, _, 0) if is_new => (Token::Dim, "no beat"),
        (true, _, 0) => (Token::Good, "beating"),
        (true, ..) => (Token::Bad, "late"),
    }
}

/// What its beats are.
fn beats(heartbeat: &Object) -> String {
    let by: Vec<_> = heartbeat.texts("by").collect();
    let filter = match heartbeat.text("filter") {
        "" => "calls",
        filter => filter,
    };
    match by.as_slice() {
        [] => filter.to_owned(),
        by => format!("{filter} by {}", by.join(", ")),
    }
}

fn document(into: &mut Document, around: &dyn Around, heartbeat: &Object) {
    shared::head(into, heartbeat);
    let (token, word) = state(heartbeat);
    let (expected, late) = (
        count(heartbeat, "expectedCount"),
        count(heartbeat, "lateCount"),
    );
    into.line(vec![
        label("state"),
        span(token, word),
        span(Token::Dim, &format!(" · {late} of {expected} late")),
    ]);
    let last = heartbeat.moment("lastBeatTime");
    let last = last.map_or_else(|| "none yet".to_owned(), |ms| around.moment(ms));
    into.field("last beat", Token::Text, &last);
    into.field("every", Token::Text, &length(heartbeat, "every"));
    into.field("grace", Token::Text, &length(heartbeat, "grace"));
    into.field("beats", Token::Text, &beats(heartbeat));
    let event = match heartbeat.text("event.name") {
        "" => heartbeat.name(),
        name => name,
    };
    into.field("opens", Token::Text, event);
    let address = if heartbeat.flag("hasKey") {
        "has a key; another: `POST /v1/notification/heartbeats/NAME:rotateKey`"
    } else {
        "none; for cron and curl: `POST /v1/notification/heartbeats/NAME:rotateKey`"
    };
    into.field("address", Token::Dim, address);
    shared::times(into, around, heartbeat);
}
