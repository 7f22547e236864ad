//! The events of the demo: hosts with incidents that open, get worse and end.

use std::time::Duration;

use bellwether_tui::api::{Api, CallError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

const TICK: Duration = Duration::from_secs(1);
const ROUND: u64 = 240;
const HOSTS: u64 = 24;
const NAMES: [(&str, &str); 6] = [
    ("disk-full", "/var is {}% full"),
    ("cpu-hot", "the CPU is at {} °C"),
    ("latency", "95% of requests take up to {} ms"),
    ("replica-lag", "the replica is {} s behind"),
    ("restart", "nginx restarted {} times"),
    ("errors", "{} responses with status 500"),
];

/// Sends the events of each second until an error occurs.
///
/// # Errors
/// Returns an error if the service is unreachable or rejects an event.
pub(super) async fn run_story(mut api: Api) -> Result<(), CallError> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 0_u64.. {
        ticks.tick().await;
        let events = initial_events(tick);
        if !events.is_empty() {
            api.put_events(&json!({"events": events})).await?;
        }
    }
    Ok(())
}

/// Creates a silence of the staging hosts, which is not part of the demo's configuration.
///
/// # Errors
/// Returns an error if the service rejects it.
pub(super) async fn create_staging_silence(api: &mut Api) -> Result<(), CallError> {
    let end = Timestamp::now() + SignedDuration::from_mins(30);
    let silence = json!({
        "name": "staging-upgrade",
        "reason": "Staging is being upgraded",
        "filter": "env=staging",
        "span": {"endTime": end.to_string()},
    });
    let request = json!({"silence": silence});
    api.call("SilenceService", "CreateSilence", &request)
        .await?;
    Ok(())
}

/// Returns the events of a second. They are the same in every run of the demo.
fn initial_events(tick: u64) -> Vec<Value> {
    let at = tick % ROUND;
    let mut events = Vec::new();
    if tick == 0 {
        events.extend((0..90).map(|number| routine_event(number * 7)));
    }
    if at.is_multiple_of(2) {
        events.push(routine_event(tick));
    }
    if at.is_multiple_of(30) {
        // The third host stops sending after the first minute.
        let hosts = if tick < 60 { 1..4 } else { 1..3 };
        events.extend(hosts.map(|number| {
            let summary = "the nightly backup is complete";
            event_json("backup-done", &host_name(number), "SEVERITY_INFO", summary)
        }));
    }
    if at == 10 || at == 130 {
        let summary = "checkout 4.12.0 is deployed";
        events.push(event_json("deployment", "web-01", "SEVERITY_INFO", summary));
    }
    // The incident: a disk fills up, its database fails, and the errors spread.
    match at {
        3 => events.push(event_json(
            "disk-full",
            "db-03",
            "SEVERITY_WARNING",
            "/var is 91% full",
        )),
        6 => events.push(event_json(
            "disk-full",
            "db-03",
            "SEVERITY_ERROR",
            "/var is 97% full",
        )),
        9 => events.push(event_json(
            "disk-full",
            "db-03",
            "SEVERITY_CRITICAL",
            "/var is 100% full",
        )),
        12..=30 => {
            let summary = format!("{} connections to db-03 refused", (at - 11) * 14);
            events.push(event_json(
                "errors",
                &host_name(at),
                "SEVERITY_ERROR",
                &summary,
            ));
        }
        40 => events.push(event_json(
            "host-unreachable",
            "mq-05",
            "SEVERITY_CRITICAL",
            "no ping response for 30 s",
        )),
        150 => events.push(closing_event("host-unreachable", "mq-05")),
        180 => events.push(closing_event("disk-full", "db-03")),
        181..=199 => events.push(closing_event("errors", &host_name(at - 169))),
        _ => {}
    }
    events
}

/// Returns the routine event with this number. Most routine events are harmless, and some close an
/// earlier event.
fn routine_event(number: u64) -> Value {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let host = host_name(mixed % HOSTS);
    let (name, summary) = NAMES[usize::try_from(mixed >> 8).unwrap_or(0) % NAMES.len()];
    if mixed.is_multiple_of(5) {
        return closing_event(name, &host);
    }
    let severity = match mixed % 23 {
        0 => "SEVERITY_ERROR",
        1..=6 => "SEVERITY_WARNING",
        7..=16 => "SEVERITY_INFO",
        _ => "SEVERITY_DEBUG",
    };
    let summary = summary.replace("{}", &(60 + mixed % 40).to_string());
    event_json(name, &host, severity, &summary)
}

fn host_name(number: u64) -> String {
    let role = ["db", "web", "api", "mq"][usize::try_from(number % 4).unwrap_or(0)];
    format!("{role}-{:02}", number % HOSTS + 1)
}

fn event_json(name: &str, host: &str, severity: &str, summary: &str) -> Value {
    let is_staging = host.ends_with('9');
    let env = if is_staging { "staging" } else { "production" };
    json!({
        "name": name,
        "dimensions": {"host": host, "env": env},
        "severity": severity,
        "summary": summary,
    })
}

fn closing_event(name: &str, host: &str) -> Value {
    let mut event = event_json(name, host, "SEVERITY_INFO", "has recovered");
    event["status"] = "STATUS_CLOSED".into();
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_severity_occurs_within_the_first_minute() {
        let events: Vec<_> = (0..60).flat_map(initial_events).collect();
        for severity in ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] {
            let severity = format!("SEVERITY_{severity}");
            let found = events.iter().find(|event| event["severity"] == *severity);
            assert!(found.is_some(), "{severity}");
        }
    }
}
