//! Heartbeats: signals expected at regular intervals.

use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    mapping, shared,
};
use crate::{
    data::{Kind, Object, when},
    document::{Document, Link, label, span},
    route::Route,
    text,
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    detail: Some("GetHeartbeat"),
    output: &[
        // The form shows the filter instead.
        "query",
        "expectedCount",
        "lateCount",
        "lastBeatTime",
        "hasKey",
        "expectations",
        "createTime",
        "updateTime",
        "etag",
    ],
    columns: &[
        Column::new("State", 8, 0, 0, |_, it: &Object| state(it).into())
        .sort_by_key(|it| Key::Number(-expectation_count(it, "lateCount"))),
        shared::NAME,
        Column::new("Last beat", 16, 0, 1, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("lastBeatTime"))
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("lastBeatTime").unwrap_or_default())),
        Column::new("Every", 8, 0, 2, |_, it: &Object| {
            Cell::new(Token::Text, format_interval(it))
        }),
        Column::new("Late", 6, 0, 1, |_, it: &Object| {
            let late = expectation_count(it, "lateCount");
            let token = if late > 0 { Token::Bad } else { Token::Dim };
            Cell {
                token,
                ..Cell::number(late)
            }
        })
        .sort_descending(|it| Key::Number(expectation_count(it, "lateCount")))
        .right_align(),
        Column::new("Of", 6, 0, 3, |_, it: &Object| {
            Cell::number(expectation_count(it, "expectedCount"))
        })
        .sort_descending(|it| Key::Number(expectation_count(it, "expectedCount")))
        .right_align(),
        Column::new("Beats", 24, 2, 2, |_, it: &Object| {
            Cell::new(Token::Dim, beats(it))
        }),
    ],
    searched: |it| vec![it.text("filter"), it.text("event.name")],
    fields: &[
        NAME,
        FieldSpec::toggle("enabled", "Enabled")
            .help("Beats are expected only while this is on."),
        FieldSpec::length("every", "Every")
            .help("Longest time between two beats, such as 5m or 1d; at least 30s. Empty with a calendar or cron."),
        FieldSpec::text("cron", "Cron")
            .help("Cron expression for expected beats, such as 0 3 * * *; instead of an interval."),
        FieldSpec::text("timeZone", "Time zone")
            .help("IANA time zone of the cron expression, such as Europe/Berlin. Empty: UTC."),
        FieldSpec::text("calendarName", "Calendar")
            .help("Calendar; a beat is expected by the end of each window. Instead of an interval."),
        FieldSpec::length("grace", "Grace")
            .help("Grace period for late beats. Empty: a tenth of the interval, at least 10s; 1h with cron."),
        FieldSpec::length("maxRun", "Longest run")
            .help("Longest time from `?start` to the beat that ends the run. Empty: no limit."),
        FieldSpec::text("filter", "Beats")
            .help("Events that count as beats, such as name=backup-done. Empty: only calls count."),
        FieldSpec::words("by", "By")
            .help("Fields whose values distinguish beats, such as host. Empty: all beats count as one."),
        FieldSpec::length("forgetAfter", "Forget after")
            .help("Time for which values stay expected after their last beat. Empty: 30d."),
        FieldSpec::text("event.name", "Event name")
            .help("Name of the event that a missing beat opens, such as {{name}} for {{by.host}}. Empty: the name."),
        FieldSpec::new("event.severity", "Severity", FieldKind::Named(mapping::SEVERITIES))
            .help("Severity of that event. Empty: error."),
        FieldSpec::text("event.summary", "Summary")
            .help("Template for its summary, with name, by.KEY, last_beat and due. Empty: a default sentence."),
        FieldSpec::pairs("event.dimensions", "Dimensions")
            .help("Extra dimensions of that event, one per line, such as `team: db`."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No heartbeats yet.\n\nA heartbeat is a signal that is expected to repeat: a backup, a cron job, \
        a watchdog. If it is missing, an event is opened, and the next beat closes it. ‹new› creates one.\n\n\
        For example: every `1d`, beats `name=backup-done`, by `host`.",
    ..edited!("Heartbeat", "Heartbeats")
};

pub(super) fn format_length(heartbeat: &Object, path: &str) -> String {
    format_duration(heartbeat.text(path))
}

pub(super) fn format_duration(length: &str) -> String {
    let seconds = length.strip_suffix('s').unwrap_or_default();
    let whole = seconds.split_once('.').map_or(seconds, |it| it.0);
    whole.parse::<i64>().map_or_else(
        |_no_length| length.to_owned(),
        |seconds| when::format_duration(seconds.saturating_mul(1_000)),
    )
}

fn format_interval(heartbeat: &Object) -> String {
    match (heartbeat.text("calendarName"), heartbeat.text("cron")) {
        ("", "") => format_length(heartbeat, "every"),
        ("", cron) => cron.to_owned(),
        (name, _) => format!("in {name}"),
    }
}

fn expectation_count(heartbeat: &Object, path: &str) -> i64 {
    heartbeat.number(path).unwrap_or_default()
}

fn state(heartbeat: &Object) -> (Token, &'static str) {
    let (expected, late) = (
        expectation_count(heartbeat, "expectedCount"),
        expectation_count(heartbeat, "lateCount"),
    );
    let is_new = heartbeat.timestamp_ms("lastBeatTime").is_none();
    match (heartbeat.flag("enabled"), expected, late) {
        (false, ..) => (Token::Dim, "disabled"),
        (true, 0, _) => (Token::Dim, "no beat"),
        (true, _, 0) if is_new => (Token::Dim, "no beat"),
        (true, _, 0) => (Token::Good, "beating"),
        (true, ..) => (Token::Bad, "late"),
    }
}

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

fn write_document(into: &mut Document, around: &dyn RenderContext, heartbeat: &Object) {
    shared::write_head(into, heartbeat);
    let (token, word) = state(heartbeat);
    let (expected, late) = (
        expectation_count(heartbeat, "expectedCount"),
        expectation_count(heartbeat, "lateCount"),
    );
    into.line(vec![
        label("state"),
        span(token, word),
        span(Token::Dim, &format!(" · {late} of {expected} late")),
    ]);
    let last = heartbeat.timestamp_ms("lastBeatTime");
    let last = last.map_or_else(|| "none yet".to_owned(), |ms| around.format_time(ms));
    into.field("last beat", Token::Text, &last);
    match heartbeat.text("calendarName") {
        "" if !heartbeat.text("cron").is_empty() => {
            let zone = match heartbeat.text("timeZone") {
                "" => "UTC",
                zone => zone,
            };
            let words = format!("{} in {zone}", heartbeat.text("cron"));
            into.field("cron", Token::Text, &words);
        }
        "" => into.field("every", Token::Text, &format_length(heartbeat, "every")),
        name => {
            let calendar = Route::Object(Kind::Calendar, name.to_owned());
            into.link("each window of", name, Link::Go(calendar));
        }
    }
    into.field("grace", Token::Text, &format_length(heartbeat, "grace"));
    if !heartbeat.text("maxRun").is_empty() {
        into.field(
            "longest run",
            Token::Text,
            &format_length(heartbeat, "maxRun"),
        );
    }
    into.field("beats", Token::Text, &beats(heartbeat));
    let event = match heartbeat.text("event.name") {
        "" => heartbeat.name(),
        name => name,
    };
    into.field("opens", Token::Text, event);
    let address = if heartbeat.flag("hasKey") {
        "has a key; ‹rotate_heartbeat› replaces it"
    } else {
        "none; ‹rotate_heartbeat› creates it, for cron and curl"
    };
    into.field("address", Token::Dim, &around.expand_keys(address));
    write_expectations(into, around, heartbeat);
    shared::write_times(into, around, heartbeat);
}

pub(crate) fn expectation_words(expectation: &Value) -> String {
    let values = expectation["values"].as_object().into_iter().flatten();
    let values = values.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    match values.collect::<Vec<_>>().join(" ") {
        words if words.is_empty() => "all beats".to_owned(),
        words => words,
    }
}

fn write_expectations(into: &mut Document, around: &dyn RenderContext, heartbeat: &Object) {
    let all = heartbeat.value_at("expectations").and_then(Value::as_array);
    let Some(all) = all.filter(|it| !it.is_empty()) else {
        return;
    };
    let expected = expectation_count(heartbeat, "expectedCount");
    into.heading("Expected");
    for expectation in all {
        let (token, word) = match expectation["state"].as_str() {
            Some("LATE") => (Token::Bad, "late"),
            Some("FAILED") => (Token::Bad, "failed"),
            _ if !expectation["runStartTime"].is_null() => (Token::Good, "running"),
            _ => (Token::Good, "beating"),
        };
        let words = expectation_words(expectation);
        let spans = vec![
            span(token, &format!("{word:<8} ")),
            span(Token::Text, &words),
        ];
        match expectation["eventId"].as_str().filter(|it| !it.is_empty()) {
            Some(event) => into.linked_line(spans, Link::event(event)),
            None => into.line(spans),
        }
        let mut parts = Vec::new();
        for (label, field) in [("last", "lastBeatTime"), ("due", "dueTime")] {
            let at = shared::timestamp_ms(expectation, field);
            parts.extend(at.map(|ms| format!("{label} {}", around.format_time(ms))));
        }
        let run = expectation["lastRun"].as_str();
        parts.extend(run.map(|run| format!("run {}", format_duration(run))));
        if let Some(gaps) = gaps(expectation) {
            parts.push(gaps);
        }
        into.text(Token::Dim, 9, &parts.join(" · "));
    }
    let more = expected - i64::try_from(all.len()).unwrap_or_default();
    if more > 0 {
        let words = format!("and {more} more");
        into.text(Token::Dim, 0, &words);
    }
    let words = "‹forget_expectation› forgets one and closes its event";
    into.text(Token::Dim, 0, &around.expand_keys(words));
}

fn gaps(expectation: &Value) -> Option<String> {
    let gaps = expectation["gaps"].as_array()?.iter();
    let seconds = gaps.filter_map(|it| it.as_str()?.strip_suffix('s')?.parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "truncated to the previous range"
    )]
    let counts: Vec<_> = seconds
        .map(|it| it.clamp(1.0, f64::from(i32::MAX)) as i32)
        .collect();
    let longest = *counts.iter().max()?;
    let bars = text::bar_chart(&counts, counts.len());
    let longest = when::format_duration(i64::from(longest) * 1_000);
    Some(format!("gaps {bars} up to {longest}"))
}
