//! Changes each field of sample exports, to test that every field is imported or reported.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{File, ImportOutput, grafana_oncall, opsgenie, pagerduty};
use crate::error::ImportError;

/// The result of an import: documents and report, or the error.
type ImportResult = Result<(String, Vec<String>), String>;

type Import = fn(Vec<File>, &mut ImportOutput) -> Result<(), ImportError>;

fn run_import(import: Import, files: &BTreeMap<String, Value>) -> (ImportResult, Vec<String>) {
    let mut imported = ImportOutput::new("test", false);
    let files = files.iter().map(|(path, content)| File {
        path: path.clone(),
        word: path.split(['/', '.']).next().unwrap_or_default().to_owned(),
        content: content.clone(),
    });
    let done = import(files.collect(), &mut imported);
    let left_out = imported.omitted_parts();
    let documents = json!(imported.documents()).to_string();
    let made = done.map(|()| (documents, imported.differences()));
    (made.map_err(|failure| failure.to_string()), left_out)
}

/// Calls `see` for each leaf of a value, with the path that reports use and the JSON pointer.
fn leaves(value: &Value, path: &str, pointer: &str, see: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let joint = if path.ends_with(':') { " " } else { "." };
                let path = format!("{path}{joint}{name}");
                leaves(value, &path, &format!("{pointer}/{name}"), see);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                leaves(
                    value,
                    &format!("{path}[{at}]"),
                    &format!("{pointer}/{at}"),
                    see,
                );
            }
        }
        Value::Null => {}
        _ => see(path, pointer),
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 7),
        // Change a time to another time in the same format, and other text to any text.
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => {
            json!(text.replacen("202", "203", 1))
        }
        Value::String(text) => json!(format!("{text}7")),
        other => other.clone(),
    }
}

fn is_reported(path: &str, left_out: &[String]) -> bool {
    left_out.iter().any(|reported| {
        let rest = path.strip_prefix(reported.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ' ']))
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_export_field_is_imported_or_reported() {
    let opsgenie_files = include_str!("../../../tests/e2e/import/opsgenie.json");
    let pagerduty_files = include_str!("../../../tests/e2e/import/pagerduty.json");
    let grafana_files = include_str!("../../../tests/e2e/import/grafana-oncall.json");
    #[expect(clippy::type_complexity, reason = "a table")]
    let exports: [(&str, &str, Import, &[&str], &[&str]); 3] = [
        (
            "opsgenie",
            opsgenie_files,
            opsgenie::import_export,
            &opsgenie::IGNORED,
            // Fields without effect: names next to ids in references, types that the form of a
            // restriction implies, an unknown unit, and the length of a turn that consists of
            // windows. The notes on the third rule and on integrations cover the others.
            &[
                "recipient.name",
                "user.username",
                "].username",
                "timeRestriction.type",
                "delay.timeUnit",
                "rules[2].condition",
                "rules[2].notifyType",
                "rules[3].delay.timeAmount",
                "integrations/",
                "ownerTeam.name",
                "team.name",
                "rotations[1].length",
            ],
        ),
        (
            "pagerduty",
            pagerduty_files,
            pagerduty::import_export,
            &pagerduty::IGNORED,
            // Fields without effect: those of a schedule in a list, the length of a turn with one
            // person, and a start that moves by whole cycles. Notes cover hand-off notifications
            // and disabled services.
            &[
                "schedules.json",
                "restrictions[0].type",
                "schedule_layers[0].rotation_turn_length_seconds",
                "schedule_layers[1].rotation_virtual_start",
                ".on_call_handoff_notifications",
                "services[0].status",
                "].limit",
                "].offset",
            ],
        ),
        (
            "grafana-oncall",
            grafana_files,
            grafana_oncall::import_export,
            &grafana_oncall::IGNORED,
            // Pages, a week start without days, a shift longer than its turn, levels that stay the
            // highest, steps that stay the last, and an integration without a chain.
            &[
                ".json: count",
                "page",
                "on_call_now",
                "teams[",
                "teams.json",
                "week_start",
                "on_call_shifts.json: results[0].duration",
                "on_call_shifts.json: results[3].level",
                "on_call_shifts.json: results[6].level",
                "escalation_policies.json: results[5].position",
                "escalation_policies.json: results[7].position",
                "integrations.json: results[1].type",
                "integrations.json: results[1].name",
            ],
        ),
    ];
    for (product, files, import, ignored, repeated) in exports {
        let files: BTreeMap<String, Value> = serde_json::from_str(files).unwrap();
        let (before, left_out) = run_import(import, &files);
        assert!(before.is_ok(), "{before:?}");
        let mut unused = Vec::new();
        let mut seen = 0;
        for (file, content) in &files {
            leaves(content, &format!("{file}:"), "", &mut |path, pointer| {
                let name = path.rsplit(['.', ' ']).next().unwrap_or_default();
                let is_ignored = ignored.contains(&name)
                    || ["limit", "offset", "more"].contains(&name)
                    || repeated.iter().any(|it| path.contains(it));
                if is_ignored || is_reported(path, &left_out) {
                    return;
                }
                seen += 1;
                let mut files = files.clone();
                let leaf = files.get_mut(file).and_then(|it| it.pointer_mut(pointer));
                let leaf = leaf.unwrap();
                *leaf = changed(leaf);
                if run_import(import, &files).0 == before {
                    unused.push(path.to_owned());
                }
            });
        }
        assert!(seen > 30, "{product}: {seen}");
        assert!(
            unused.is_empty(),
            "the import of {product} reads and ignores {unused:#?}"
        );
    }
}
