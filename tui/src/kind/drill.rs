//! Drills: scheduled tests of the way from an event to the acknowledgement of the person paged.

use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    heartbeat::{format_duration, format_length},
    mapping, shared,
};
use crate::{
    data::Object,
    document::{Document, Link, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    detail: Some("GetDrill"),
    output: &["nextTime", "runs", "createTime", "updateTime", "etag"],
    columns: &[
        Column::new("Last run", 12, 0, 0, |_, it: &Object| {
            result(runs(it).next()).into()
        })
        .sort_by_key(|it| Key::Text(result(runs(it).next()).1.to_owned())),
        shared::NAME,
        Column::new("Next", 16, 0, 1, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("nextTime"))
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("nextTime").unwrap_or_default())),
        Column::new("Schedule", 16, 1, 2, |_, it: &Object| {
            Cell::new(Token::Text, format_schedule(it))
        }),
    ],
    searched: |it| vec![it.text("event.name"), it.text("event.summary")],
    fields: &[
        NAME,
        FieldSpec::toggle("enabled", "Enabled")
            .help("Runs start on schedule only while this is on."),
        FieldSpec::text("cron", "Cron")
            .help("Cron expression of the runs, such as 30 10 * * tue; at most one run per hour."),
        FieldSpec::text("timeZone", "Time zone")
            .help("IANA time zone of the cron expression, such as Europe/Berlin. Empty: UTC."),
        FieldSpec::length("every", "Every")
            .help("Time between two runs, such as 7d; at least 1h. Instead of a cron expression."),
        FieldSpec::length("acknowledgeWithin", "Ack within")
            .help("Time within which the event must be acknowledged, 1m to 24h. Empty: 15m."),
        FieldSpec::text("event.name", "Event name")
            .help("Name of the event that a run opens; a trigger must match it. Empty: drill."),
        FieldSpec::text("event.type", "Event type").help("Type of that event. Empty: drill."),
        FieldSpec::new(
            "event.severity",
            "Severity",
            FieldKind::Named(mapping::SEVERITIES),
        )
        .help("Severity of that event. Empty: critical."),
        FieldSpec::text("event.summary", "Summary")
            .help("Its summary after [DRILL]. Empty: a default sentence."),
        FieldSpec::pairs("event.dimensions", "Dimensions")
            .help("Dimensions of that event, one per line, such as `service: shop`."),
        FieldSpec::new(
            "failedSeverity",
            "If it fails",
            FieldKind::Named(mapping::SEVERITIES),
        )
        .help("Severity of the event about a failed run. Empty: error."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No drills yet.\n\nA drill opens a marked event on schedule, which pages the person on call as a real event \
        does, and expects an acknowledgement in time. ‹new› creates one.\n\n\
        For example: cron `30 10 * * tue`, event name `shop down`, ack within `15m`.",
    ..edited!("Drill", "Drills")
};

fn runs(drill: &Object) -> impl Iterator<Item = &Value> {
    let all = drill.value_at("runs").and_then(Value::as_array);
    all.into_iter().flatten()
}

fn result(run: Option<&Value>) -> (Token, &'static str) {
    match run.and_then(|it| it["result"].as_str()) {
        Some("RUNNING") => (Token::Warning, "running"),
        Some("ACKNOWLEDGED") => (Token::Good, "acknowledged"),
        Some("MISSED") => (Token::Bad, "missed"),
        Some("NOT_ROUTED") => (Token::Bad, "not routed"),
        Some("SILENCED") => (Token::Warning, "silenced"),
        Some("SKIPPED") => (Token::Dim, "skipped"),
        _ => (Token::Dim, "none"),
    }
}

fn format_schedule(drill: &Object) -> String {
    match (drill.text("cron"), drill.text("every")) {
        ("", "") => "on request".to_owned(),
        ("", _) => format!("every {}", format_length(drill, "every")),
        (cron, _) => match drill.text("timeZone") {
            "" => format!("{cron} UTC"),
            zone => format!("{cron} {zone}"),
        },
    }
}

fn write_document(into: &mut Document, around: &dyn RenderContext, drill: &Object) {
    shared::write_head(into, drill);
    let (token, word) = if drill.flag("enabled") {
        (Token::Good, "enabled")
    } else {
        (Token::Dim, "disabled")
    };
    into.field("state", token, word);
    into.field("schedule", Token::Text, &format_schedule(drill));
    if let Some(next) = drill.timestamp_ms("nextTime") {
        into.field("next run", Token::Text, &around.format_full_time(next));
    }
    let within = format_length(drill, "acknowledgeWithin");
    into.field("ack within", Token::Text, &within);
    into.field("opens", Token::Text, drill.text("event.name"));
    shared::write_times(into, around, drill);
    into.heading("Runs");
    for run in runs(drill) {
        write_run(into, around, run);
    }
    into.text(
        Token::Dim,
        0,
        &around.expand_keys("‹run_drill› starts a run now"),
    );
}

fn write_run(into: &mut Document, around: &dyn RenderContext, run: &Value) {
    let (token, word) = result(Some(run));
    let at = shared::timestamp_ms(run, "dueTime");
    let mut words: Vec<_> = at.map(|ms| around.format_time(ms)).into_iter().collect();
    let text = |field: &str| run[field].as_str().filter(|it| !it.is_empty());
    if let (Some(by), Some(after)) = (text("acknowledgedBy"), text("acknowledgedAfter")) {
        words.push(format!("by {by} after {}", format_duration(after)));
    }
    words.extend(text("reason").map(str::to_owned));
    let spans = vec![
        span(token, &format!("{word:<12} ")),
        span(Token::Text, &words.join(" · ")),
    ];
    match text("occurrenceId") {
        Some(id) => into.linked_line(spans, Link::event(id)),
        None => into.line(spans),
    }
}
