//! Changes as text.

use bellwether_tui::{api::ConfigKind, unified_diff};
use serde_json::Value;

use super::format;
use crate::failure::Failure;

const AROUND: u32 = 2;

pub(super) fn is_unchanged(change: &Value) -> bool {
    change["action"] == "CONFIG_ACTION_UNCHANGED"
}

pub(super) fn changes_text(changes: &[Value]) -> Result<String, Failure> {
    let (mut lines, mut unchanged) = (Vec::new(), 0);
    for change in changes {
        let (sign, done) = match change["action"].as_str().unwrap_or_default() {
            "CONFIG_ACTION_CREATED" => ('+', "created"),
            "CONFIG_ACTION_UPDATED" => ('~', "updated"),
            "CONFIG_ACTION_DELETED" => ('-', "deleted"),
            _ => {
                unchanged += 1;
                continue;
            }
        };
        let (kind, name) = (&change["kind"], &change["name"]);
        let (kind, name) = (format::inline_value(kind), format::inline_value(name));
        lines.push(format!("{sign} {kind} {name} {done}\n"));
        lines.extend(change_differences(change)?);
        match change["stoppedResponses"].as_u64() {
            None | Some(0) => {}
            Some(1) => lines.push("    stops 1 response\n".to_owned()),
            Some(count) => lines.push(format!("    stops {count} responses\n")),
        }
    }
    if unchanged > 0 {
        lines.push(format!("= {unchanged} unchanged\n"));
    }
    Ok(lines.concat())
}

fn change_differences(change: &Value) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    if change["action"] != "CONFIG_ACTION_UPDATED" {
        return Ok(lines);
    }
    if let (Some(before), Some(after)) = (
        authored_resource(change, "before"),
        authored_resource(change, "after"),
    ) {
        let (before, after) = (format::to_yaml(&before)?, format::to_yaml(&after)?);
        let unified = unified_diff(&before, &after, AROUND);
        let shown = unified
            .lines()
            .map(|line| format::inline_value(&line.into()));
        lines.extend(shown.map(|line| format!("    {line}\n")));
    }
    for secret in change["changedSecrets"].as_array().into_iter().flatten() {
        lines.push(format!(
            "    secret {} changed\n",
            format::inline_value(secret)
        ));
    }
    Ok(lines)
}

fn authored_resource(change: &Value, side: &str) -> Option<Value> {
    let word = change["kind"].as_str()?;
    let resource = change[side].get(word)?;
    Some(ConfigKind::find(word)?.to_authored_form(resource.clone()))
}
