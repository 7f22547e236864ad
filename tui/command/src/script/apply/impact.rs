//! The effect of documents on notifications, replayed over the past days.

use serde_json::{Value, json};

use super::format;
use crate::{cli::script::ImpactArguments, failure::Failure};

pub(super) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub(super) fn impact_request(request: &Value, days: u32) -> Value {
    json!({"documents": request["documents"], "pruneOwner": request["pruneOwner"], "days": days})
}

/// Checks the number of messages against the limit.
///
/// # Errors
/// Returns a failure with exit code 5 and both numbers if the limit is exceeded.
pub(super) fn check(impact: &Value, arguments: &ImpactArguments) -> Result<(), Failure> {
    let count = count_field(impact, "messageCount");
    match arguments.max_messages {
        Some(most) if count > most => Err(Failure::rejected(format!(
            "{count} messages exceed the limit of {most} (--max-messages); nothing was changed"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn impact_text(impact: &Value) -> String {
    let seen = format_count(count_field(impact, "occurrenceCount"), "occurrence");
    let time = |field: &str| format::inline_value(&impact[field]);
    let (start, end) = (time("startTime"), time("endTime"));
    let mut lines = vec![format!("impact on {seen}, {start} to {end}:\n")];
    if impact["stoppedEarly"] == true {
        lines.push("  stopped early: too many occurrences\n".into());
    }
    for (kind, field) in [("rule", "rules"), ("destination", "destinations")] {
        for counted in impact[field].as_array().into_iter().flatten() {
            if let Some(change) = format_change(counted) {
                lines.push(format!(
                    "  {kind} {}: {change}\n",
                    format::inline_value(&counted["name"])
                ));
            }
        }
    }
    let in_all = count_field(impact, "messageCount");
    let in_all = format_change(impact)
        .unwrap_or_else(|| format!("{}, as now", format_count(in_all, "message")));
    lines.push(format!("  total: {in_all}\n"));
    let newly = count_field(impact, "newlyNotifiedCount");
    if newly > 0 {
        lines.push(format!(
            "  {} would now notify\n",
            format_count(newly, "occurrence")
        ));
    }
    let silent = count_field(impact, "noLongerNotifiedCount");
    if silent > 0 {
        let silent = format_count(silent, "occurrence");
        lines.push(format!("  {silent} would no longer notify:\n"));
    }
    let shown = impact["noLongerNotified"].as_array().into_iter().flatten();
    lines.extend(shown.map(|event| format!("    {}", format::event_line(event))));
    lines.concat()
}

fn format_change(counted: &Value) -> Option<String> {
    let now = count_field(counted, "messageCount");
    let before = count_field(counted, "messageCountBefore");
    (now != before).then(|| format!("{} instead of {before}", format_count(now, "message")))
}

fn format_count(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn count_field(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_default()
}
