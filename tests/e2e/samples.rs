//! Definitions used by several tests.

use bellwether_tests::{receiver::Receiver, rest::Rest};
use serde_json::{Value, json};

/// Returns a trigger on events with severity error or higher and a word in the summary, except
/// those in the lab.
pub(crate) fn trigger(name: &str, word: &str) -> Value {
    json!({"name": name, "type": {"event": {"query": {"clause": {"and": {"clauses": [
        {"greaterAndEquals": {"field": "severity", "value": "SEVERITY_ERROR"}},
        {"contains": {"field": "summary", "value": word}},
        {"not": {"clause": {"equals": {"field": "dimensions.env", "stringVal": "lab"}}}},
    ]}}}}}})
}

pub(crate) fn in_seconds(seconds: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    at.to_string()
}

pub(crate) fn webhook(name: &str, url: &str) -> Value {
    json!({"name": name, "type": {"webhook": {"url": url}}})
}

/// Stores the resources that a rule about disks requires: the trigger `disk` and the destination
/// `hook`.
pub(crate) async fn disks_to_hook(rest: &Rest, receiver: &Receiver) {
    for (kind, draft) in [
        ("triggers", trigger("disk", "disk")),
        ("destinations", webhook("hook", &receiver.url("/"))),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &draft).await.ok();
    }
}

pub(crate) fn rule(name: &str, trigger: &str, destination: &str, message: &str) -> Value {
    json!({
        "name": name,
        "enabled": true,
        "triggerNames": [trigger],
        "destinationNames": [destination],
        "message": message,
    })
}

pub(crate) fn event(name: &str, host: &str, severity: &str, summary: &str) -> Value {
    json!({
        "name": name,
        "dimensions": {"host": host},
        "severity": severity,
        "summary": summary,
    })
}

pub(crate) fn events(events: &[Value]) -> Value {
    json!({"detailedResponse": true, "events": events})
}

pub(crate) fn nested_clause(depth: usize) -> Value {
    let innermost = json!({"equals": {"field": "name", "stringVal": "x"}});
    (1..depth).fold(innermost, |clause, _| json!({"not": {"clause": clause}}))
}
