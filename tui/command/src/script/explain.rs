//! `explain`: why each rule did or did not notify about an event, and what happens next.

use bellwether_language::text::enum_word;
use bellwether_proto::v1::NotificationOutcome;
use bellwether_tui::outcome_mark;
use serde_json::{Value, json};

use super::{Api, format};
use crate::{
    cli::script::{ExplainArguments, Output},
    failure::Failure,
    output,
};

/// Limit on the clauses shown per trigger.
const CLAUSES_MAX: usize = 10;

pub(super) async fn run_explain(arguments: ExplainArguments, mut api: Api) -> Result<(), Failure> {
    let (event, _number) = arguments.id.split_once(':').unwrap_or((&arguments.id, ""));
    let occurrence = if event == arguments.id {
        ""
    } else {
        &arguments.id
    };
    let request = json!({"id": event, "occurrenceId": occurrence});
    let answer = api
        .call("EventQueryService", "ExplainEvent", &request)
        .await;
    let answer = answer?;
    if arguments.output.output == Output::Text && answer["rules"].is_null() {
        return output::write_output("no rules\n");
    }
    format::write_formatted(&answer, arguments.output.output, explanation_text)
}

fn rule_mark(explained: &Value) -> &'static str {
    let name = explained["outcome"].as_str().unwrap_or_default();
    outcome_mark(NotificationOutcome::from_str_name(name).unwrap_or_default())
}

fn explanation_text(answer: &Value) -> String {
    let now_ms = parse_millis(&answer["time"]).unwrap_or_default();
    let mut lines = Vec::new();
    for rule in array_items(&answer["rules"]) {
        let (name, reason) = (&rule["ruleName"], &rule["reason"]);
        let outcome = rule_mark(&rule["reasonDetail"]);
        lines.push(format!(
            "{outcome} {}\t{}",
            format::inline_value(name),
            format::inline_value(reason)
        ));
        lines.extend(
            rule_details(rule, now_ms)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
        let responses = array_items(&answer["responses"]).filter(|it| it["ruleName"] == *name);
        lines.extend(responses.map(|it| format!("  {}", response_line(it))));
    }
    lines.join("\n") + "\n"
}

/// Returns the failed clauses and conditions of a rule, its holds and its deliveries, one per line.
fn rule_details(rule: &Value, now_ms: i64) -> Vec<String> {
    let mut lines = Vec::new();
    let is_notified = rule["notified"] == true;
    let is_matched = array_items(&rule["triggers"]).any(|it| it["matched"] == true);
    if !is_notified && !is_matched {
        let triggers = array_items(&rule["triggers"]);
        lines.extend(triggers.flat_map(failed_clauses));
    }
    let holds: Vec<_> = array_items(&rule["holds"]).collect();
    let is_held = |gate: &Value| {
        let kinds = holds.iter().map(|hold| hold_kind(hold));
        { kinds }.any(|kind| text_field(gate, "name").replace('-', " ") == kind)
    };
    let failed =
        array_items(&rule["gates"]).filter(|gate| gate["passed"] != true && !is_held(gate));
    lines.extend(failed.map(|gate| {
        let (name, detail) = (text_field(gate, "name"), text_field(gate, "detail"));
        format!("condition {name} not met: {detail}")
    }));
    lines.extend(
        holds
            .iter()
            .map(|hold| hold_line(hold, &rule["ruleName"], now_ms)),
    );
    lines.extend(array_items(&rule["deliveries"]).map(|it| delivery_line(it, now_ms)));
    let mut others = array_items(&rule["others"]);
    let now = others.find(|it| it["basis"] == "DECISION_BASIS_NOW");
    let would = now.filter(|it| it["notifies"] == true && !is_notified && holds.is_empty());
    lines.extend(would.map(|it| format!("now: {}", text_field(it, "reason"))));
    lines
}

/// Returns the clauses that prevented a match of the trigger, with the actual values.
fn failed_clauses(trigger: &Value) -> Vec<String> {
    let name = text_field(trigger, "triggerName");
    let clause = &trigger["clause"];
    if trigger["matched"] == true || trigger["unknown"] == true {
        return Vec::new();
    }
    if clause.is_null() {
        return vec![format!("trigger {name} does not exist")];
    }
    let mut failed = Vec::new();
    collect_clauses(clause, false, &mut failed);
    let lines = failed.into_iter().take(CLAUSES_MAX);
    lines
        .map(|clause| format!("trigger {name} requires {clause}"))
        .collect()
}

/// Collects the comparisons with this result that determine the result of a clause.
fn collect_clauses(clause: &Value, result: bool, into: &mut Vec<String>) {
    if (clause["result"] == true) != result || clause["unknown"] == true {
        return;
    }
    let is_not = clause["type"] == "not";
    let nested = clause["clauses"].as_array().filter(|it| !it.is_empty());
    if let Some(nested) = nested {
        for clause in nested {
            collect_clauses(clause, result != is_not, into);
        }
        return;
    }
    if clause["field"].is_null() {
        return;
    }
    let not = if result { "not " } else { "" };
    into.push(format!("{not}{}", format_comparison(clause)));
}

fn format_comparison(clause: &Value) -> String {
    let operator = match clause["type"].as_str().unwrap_or_default() {
        "equals" => "=",
        "greaterAndEquals" => ">=",
        "lessAndEquals" => "<=",
        "greater" => ">",
        "less" => "<",
        "startsWith" => "starts with",
        "endsWith" => "ends with",
        other => other,
    };
    let field = text_field(clause, "field");
    let expected = match &clause["expected"] {
        Value::Null => String::new(),
        expected => format!(" {}", display_value(expected)),
    };
    let actual = match &clause["actual"] {
        Value::Null => "but the field is missing".to_owned(),
        actual => format!("found {}", display_value(actual)),
    };
    format!("{field} {operator}{expected}, {actual}")
}

/// Formats a value as in a filter. Severities and statuses are printed as words, not by their wire
/// names.
fn display_value(value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return format::inline_value(value);
    };
    let prefixes = ["SEVERITY_", "STATUS_"].into_iter();
    let mut prefixes = prefixes.filter(|prefix| text.starts_with(prefix));
    let is_word = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    match prefixes.next() {
        Some(prefix) => enum_word(text, prefix),
        None if !text.is_empty() && text.chars().all(is_word) => text.to_owned(),
        None => output::escape_controls(&value.to_string()),
    }
}

fn hold_kind(hold: &Value) -> String {
    let kind = hold["kind"].as_str().unwrap_or_default();
    enum_word(kind, "HOLD_KIND_").replace('_', " ")
}

fn hold_line(hold: &Value, rule: &Value, now_ms: i64) -> String {
    let end_ms = hold["until"]
        .as_str()
        .and_then(|until| until.parse::<jiff::Timestamp>().ok());
    let has_ended = end_ms.is_some_and(|it| it.as_millisecond() <= now_ms);
    let end = match hold["until"].as_str() {
        Some(_) if has_ended => ", due now".to_owned(),
        Some(until) => format!(" until {until}"),
        None => " without an end time".to_owned(),
    };
    // A hold by the rule itself has the rule's name, which is not repeated.
    let name = Some(&hold["name"]).filter(|name| *name != rule);
    let name = with_prefix(" ", &name.map(format::inline_value).unwrap_or_default());
    let author = with_prefix(" by ", &text_field(hold, "author"));
    let detail = with_prefix(": ", &text_field(hold, "detail"));
    let kind = hold_kind(hold);
    format!("held by {kind}{name}{author}{end}{detail}")
}

fn delivery_line(delivery: &Value, now_ms: i64) -> String {
    let destination = text_field(delivery, "destinationName");
    let receiver = match text_field(delivery, "contactName") {
        contact if contact.is_empty() => destination,
        contact => format!("{contact} by {destination}"),
    };
    let digest = &delivery["digest"];
    // A message that is part of a digest has the state of the digest.
    let sent = if digest.is_null() { delivery } else { digest };
    let state = enum_word(sent["state"].as_str().unwrap_or_default(), "");
    let within = match digest["messageCount"].as_u64() {
        Some(count) => format!(" in a digest of {count} messages"),
        None => String::new(),
    };
    let end = with_prefix(" at ", &format_time(&sent["endTime"]));
    let attempts = match delivery["attemptCount"].as_u64() {
        None | Some(0) => String::new(),
        Some(1) => ", 1 attempt".to_owned(),
        Some(count) => format!(", {count} attempts"),
    };
    let (reason, error) = (
        text_field(delivery, "waitReason"),
        text_field(delivery, "lastError"),
    );
    let waits = with_prefix(", waits: ", &reason);
    let is_due = parse_millis(&sent["nextAttemptTime"]).is_some_and(|ms| ms <= now_ms);
    let next = match format_time(&sent["nextAttemptTime"]) {
        _ if is_due => ", due now".to_owned(),
        next => with_prefix(", next attempt ", &next),
    };
    // Omits the error if the reason already contains it.
    let error = with_prefix(": ", if reason.contains(&error) { "" } else { &error });
    let mark = rule_mark(delivery);
    format!("{mark} delivery to {receiver}: {state}{within}{end}{attempts}{waits}{next}{error}")
}

fn response_line(response: &Value) -> String {
    let policy = text_field(response, "policyName");
    let state = enum_word(response["state"].as_str().unwrap_or_default(), "");
    let by = with_prefix(" by ", &text_field(response, "acknowledgedBy"));
    let number = |field: &str| response[field].as_u64().unwrap_or_default();
    let (step, steps) = (number("step"), number("stepCount"));
    let notified = array_items(&response["notified"]).map(|it| {
        let (contact, destination) = (
            text_field(it, "contactName"),
            text_field(it, "destinationName"),
        );
        let step = it["step"].as_u64().unwrap_or_default();
        let receiver = if contact.is_empty() {
            destination
        } else {
            format!("{contact} by {destination}")
        };
        format!("{receiver} in step {step}")
    });
    let notified = notified.collect::<Vec<_>>().join(", ");
    let notified = with_prefix("; notified ", &notified);
    let next = with_prefix("; next step ", &text_field(response, "nextStepTime"));
    let unanswered = match response["unanswered"] {
        Value::Bool(true) => "; not acknowledged",
        _ => "",
    };
    format!("escalation {policy}: {state}{by}, step {step} of {steps}{notified}{next}{unanswered}")
}

fn array_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_field(value: &Value, field: &str) -> String {
    format::inline_value(&value[field])
}

/// Returns a time in milliseconds since 1970, which JSON represents as a string.
fn parse_millis(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn format_time(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => format::format_time(value),
    }
}

fn with_prefix(prefix: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{prefix}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison_clause(kind: &str, expected: &Value, actual: &Value, result: bool) -> Value {
        json!({"type": kind, "field": "severity", "expected": expected, "actual": actual,
            "result": result})
    }

    #[test]
    fn clauses_that_decide_are_shown_with_actual_values() {
        let low = comparison_clause(
            "greaterAndEquals",
            &json!("SEVERITY_ERROR"),
            &json!("SEVERITY_WARNING"),
            false,
        );
        let equal = comparison_clause("equals", &json!("a"), &json!("a"), true);
        let missing = comparison_clause("contains", &json!("b"), &Value::Null, false);
        let group = |kind: &str, result: bool, clauses: &[&Value]| json!({"type": kind, "result": result, "clauses": clauses});
        let needs_low = "trigger disk requires severity >= error, found warning";
        let needs_text = "trigger disk requires severity contains b, but the field is missing";
        let excluded = group("not", false, &[&equal]);
        let cases = [
            (low.clone(), vec![needs_low]),
            (group("and", false, &[&equal, &low]), vec![needs_low]),
            (
                group("or", false, &[&low, &missing]),
                vec![needs_low, needs_text],
            ),
            (
                group("and", false, &[&excluded]),
                vec!["trigger disk requires not severity = a, found a"],
            ),
        ];
        for (clause, expected) in cases {
            let trigger = json!({"triggerName": "disk", "matched": false, "clause": clause});
            assert_eq!(failed_clauses(&trigger), expected, "{trigger}");
        }
    }

    #[test]
    fn rule_lines_show_holds_deliveries_and_escalation() {
        let answer = json!({
            "time": "4000",
            "rules": [{
                "ruleName": "disks",
                "reasonDetail": {"outcome": "NOTIFICATION_OUTCOME_SENT"},
                "notified": true,
                "reason": "Notified: trigger `disk` matched",
                "gates": [
                    {"name": "enabled", "passed": true},
                    {"name": "silence", "passed": false, "detail": "shown as a hold"},
                    {"name": "budget", "passed": false, "detail": "used up"},
                ],
                "holds": [{"kind": "HOLD_KIND_SILENCE", "name": "night", "author": "ana",
                    "until": "2026-11-28T23:00:00Z"},
                    {"kind": "HOLD_KIND_DELAY", "until": "1970-01-01T00:00:04Z"}],
                "deliveries": [
                    {"outcome": "NOTIFICATION_OUTCOME_WAITING",
                        "destinationName": "hook", "state": "RETRY", "attemptCount": 2,
                        "nextAttemptTime": "1000", "lastError": "HTTP 503",
                        "waitReason": "the destination is failing"},
                    {"outcome": "NOTIFICATION_OUTCOME_SENT",
                        "destinationName": "push", "contactName": "ana", "state": "DELIVERED",
                        "attemptCount": 1, "endTime": "2000"},
                    {"outcome": "NOTIFICATION_OUTCOME_WAITING",
                        "destinationName": "mail", "state": "FOLDED", "endTime": "1000",
                        "digest": {"state": "PENDING", "messageCount": 3, "nextAttemptTime": "5000"}},
                ],
            }],
            "responses": [{"ruleName": "disks", "policyName": "database", "state": "ACTIVE",
                "step": 1, "stepCount": 3, "nextStepTime": "2026-11-28T22:10:00Z",
                "notified": [{"contactName": "ana", "destinationName": "push", "step": 1}]}],
        });
        let expected = "✓ disks\tNotified: trigger `disk` matched\n  \
            condition budget not met: used up\n  \
            held by silence night by ana until 2026-11-28T23:00:00Z\n  \
            held by delay, due now\n  \
            ◐ delivery to hook: retry, 2 attempts, waits: the destination is failing, \
            due now: HTTP 503\n  \
            ✓ delivery to ana by push: delivered at 1970-01-01T00:00:02Z, 1 attempt\n  \
            ◐ delivery to mail: pending in a digest of 3 messages, \
            next attempt 1970-01-01T00:00:05Z\n  \
            escalation database: active, step 1 of 3; notified ana by push in step 1; \
            next step 2026-11-28T22:10:00Z\n";
        assert_eq!(explanation_text(&answer), expected);
    }
}
