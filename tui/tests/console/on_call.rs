//! The on-call screen with its tabs: acknowledging for a period, overriding a shift and testing a
//! contact. The overview, the event list and the event page show the responder.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{flows::assert_shows, *};
use crate::backend::{ManualClock, Real};

async fn create(real: &Real, kind: &str, word: &str, body: &Value) {
    let (service, method) = (format!("{kind}Service"), format!("Create{kind}"));
    real.call(&service, &method, &json!({word: body})).await;
}

/// Starts a service that pages ana about an open event. She is on call until a day in 2027.
async fn paging() -> Real {
    let real = Real::start().await;
    let chat = json!({"name": "push", "type": {"webhook": {"url": "https://push.invalid/"}}});
    create(&real, "Destination", "destination", &chat).await;
    for name in ["ana", "ben"] {
        let contact = json!({"name": name, "methods": [{"destinationName": "push"}]});
        create(&real, "Contact", "contact", &contact).await;
    }
    let layer = json!({
        "slots": [{"contactNames": ["ana"]}, {"contactNames": ["ben"]}],
        "dtstart": "2026-01-05T08:00:00",
        "rrule": "FREQ=YEARLY",
    });
    let schedule = json!({"name": "nights", "timeZone": "UTC", "layers": [layer]});
    create(&real, "Schedule", "schedule", &schedule).await;
    let policy = json!({
        "name": "db",
        "steps": [
            {"targets": [{"scheduleName": "nights"}], "wait": "7200s"},
            {"targets": [{"contactName": "ben"}]},
        ],
    });
    create(&real, "EscalationPolicy", "policy", &policy).await;
    let trigger = json!({"name": "disks", "type": {"event": {"filter": "name=disk"}}});
    create(&real, "Trigger", "trigger", &trigger).await;
    let rule = json!({
        "name": "page",
        "enabled": true,
        "triggerNames": ["disks"],
        "escalationPolicyName": "db",
    });
    create(&real, "Rule", "rule", &rule).await;
    real.send(Severity::Critical, std::iter::once("db-1".to_owned()))
        .await;
    real
}

async fn responses(real: &Real) -> Value {
    let request = json!({"states": ["ACTIVE", "ACKNOWLEDGED"]});
    let found = real
        .call("ResponseService", "ListResponses", &request)
        .await;
    found["responses"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_response_is_shown_everywhere_until_acknowledged() {
    let real = paging().await;
    let mut console = real.console().await;
    press(&mut console, "1").await;
    until(&mut console, "disk").await;
    until(&mut console, "ana").await;
    assert_shows(&console.screen_text(), "db-1");
    // Use a filter: the service may report the start of the shift as an event at any time.
    press(&mut console, "2/name=disk<Enter>").await;
    until(&mut console, "1/1").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "· ben in").await;
    press(&mut console, "<A-w>").await;
    until(&mut console, "On call now").await;
    let screen = console.screen_text();
    for part in [
        "[Now]",
        "nights",
        "Responses  1 paging",
        "Severity",
        "Host",
        "Open for",
        "db-1",
        "the disk of db-1 is",
        "until 2027-01-05 08:00",
        "ben in",
    ] {
        assert_shows(&screen, part);
    }
    // The cursor is on the schedule, with the response below it.
    let screen = press(&mut console, "j").await;
    assert_shows(&screen, "A ack for");
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "pages again");
    let screen = press(&mut console, "soon<Enter>").await;
    assert_shows(&screen, "`soon` is not a valid duration");
    press(&mut console, "<C-u>2h<Enter>").await;
    until(&mut console, "responds").await;
    assert_shows(&console.screen_text(), "pages again");
    let found = responses(&real).await;
    assert_eq!(found["state"], "ACKNOWLEDGED");
    assert!(found["acknowledgedUntilTime"].is_string(), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_filtered_by_their_receivers() {
    let real = paging().await;
    let mut console = real.console().await;
    for (filter, shown) in [
        ("who=ana", "1/1"),
        ("who=ben", "1/1"),
        ("who=a*", "1/1"),
        ("who=cleo", "no match"),
        ("-who=ana", "no match"),
    ] {
        press(&mut console, &format!("<A-1>/<C-u>{filter}<Enter>")).await;
        until(&mut console, filter).await;
        until(&mut console, shown).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_shows_the_policy_it_uses() {
    let real = paging().await;
    let mut console = real.console().await;
    press(&mut console, "5").await;
    until(&mut console, "policy db").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "escalation policy").await;
    let screen = console.screen_text();
    assert!(!screen.contains("notifies no one"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_address_is_shown_and_revoked() {
    let real = paging().await;
    let mut console = real.console().await;
    press(&mut console, "<A-w><Tab>").await;
    until(&mut console, "[Schedules]").await;
    for (key, title) in [("f", "Show"), ("F", "Revoke")] {
        press(&mut console, key).await;
        let title = format!("{title} the feed URL of nights?");
        until(&mut console, &title).await;
        press(&mut console, "y").await;
        until(&mut console, "/schedules/nights.ics").await;
        press(&mut console, "<Esc>").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shift_override_is_created_and_drawn() {
    let real = paging().await;
    let mut console = real.console().await;
    press(&mut console, "<A-w><Tab>").await;
    until(&mut console, "[Schedules]").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "Next 30 days").await;
    until(&mut console, "layer 1").await;
    assert_shows(&console.screen_text(), "█");
    press(&mut console, "Go").await;
    until(&mut console, "Override for nights").await;
    assert_shows(&console.screen_text(), "no one");
    press(&mut console, "ben for 3h").await;
    // The cursor moves past the suggestion for the whole shift.
    press(&mut console, "<C-k><Enter>").await;
    until(&mut console, "override").await;
    let request = json!({"name": "nights"});
    let found = real.call("ScheduleService", "GetSchedule", &request).await;
    let over = &found["schedule"]["overrides"][0];
    assert_eq!(over["contactNames"], json!(["ben"]));
    assert_eq!(found["schedule"]["onCallNames"], json!(["ben"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_a_contact_is_tested() {
    let real = paging().await;
    let mut console = real.console().await;
    press(&mut console, "<A-2>").await;
    until(&mut console, "[Contacts]").await;
    press(&mut console, "t").await;
    until(&mut console, "Test of the methods of ana").await;
    until(&mut console, "not delivered").await;
}

/// Returns the first row of the table of responses.
fn response_row(screen: &str) -> String {
    let row = screen.lines().find(|line| line.contains("▲ "));
    assert!(row.is_some(), "no response in\n{screen}");
    row.unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_twenty_responses_are_grouped_by_host() {
    let real = paging().await;
    let hosts = (0..24).map(|number| format!("web-{}", number % 4));
    for (name, host) in (0..).zip(hosts) {
        let name = format!("disk{name}");
        let trigger = json!({"name": name, "type": {"event": {"filter": format!("name={name}")}}});
        create(&real, "Trigger", "trigger", &trigger).await;
        let rule = json!({
            "name": format!("page-{name}"),
            "enabled": true,
            "triggerNames": [name],
            "escalationPolicyName": "db",
        });
        create(&real, "Rule", "rule", &rule).await;
        real.send_named(&name, Severity::Error, std::iter::once(host))
            .await;
    }
    let mut console = real.console().await;
    press(&mut console, "8").await;
    until(&mut console, "Responses  25 paging").await;
    until(&mut console, "6 events").await;
    let screen = console.screen_text();
    for host in ["web-0", "web-1", "web-2", "web-3"] {
        let rows = screen
            .lines()
            .filter(|line| line.contains("6 events") && line.contains(host));
        assert_eq!(rows.count(), 1, "{host}\n{screen}");
    }
    // The most severe response comes first. It is not grouped, as it is the only one on its host.
    let first = screen.lines().position(|line| line.contains("▲ critical"));
    let grouped = screen.lines().position(|line| line.contains("6 events"));
    assert!(first.unwrap() < grouped.unwrap(), "{screen}");
    press(&mut console, "jj<Enter>").await;
    until(&mut console, "/host=web-").await;
    assert_shows(&console.screen_text(), "1/6");
}

#[tokio::test(flavor = "multi_thread")]
async fn handover_summary_is_shown_and_copied_as_text() {
    let real = paging().await;
    let hour = jiff::SignedDuration::from_hours(1);
    let end = jiff::Timestamp::now().checked_add(hour).unwrap();
    let silence = json!({
        "name": "db-3-0301",
        "reason": "disk swap",
        "filter": "host=db-3",
        "span": {"endTime": end.to_string()},
    });
    create(&real, "Silence", "silence", &silence).await;
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "db-1").await;
    // Use a filter: the service's own events may arrive at any time.
    press(&mut console, "/name=disk<Enter>").await;
    press(&mut console, "wordered a new disk<Enter>i").await;
    until(&mut console, " admin    ").await;
    press(&mut console, "<A-w>h").await;
    console.resize(120, 60);
    until(&mut console, "ordered a new disk").await;
    let screen = press(&mut console, "").await;
    for part in [
        "nights",
        ", of which 0 closed and ",
        "Still open  ",
        "the disk of db-1 is full",
        "db-3-0301",
        "disk swap",
        "Failing destinations",
        "created rule page",
    ] {
        assert_shows(&screen, part);
    }
    let owned = screen
        .lines()
        .find(|line| line.contains("the disk of db-1 is full"));
    assert_shows(owned.unwrap(), "admin");
    press(&mut console, "y").await;
    let copied = console.clipboard().last().unwrap().clone();
    for part in [
        "Handover",
        "Still open  ",
        "ordered a new disk",
        "db-3-0301",
    ] {
        assert_shows(&copied, part);
    }
    assert!(!copied.contains("another time span"), "{copied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_and_policy_forms_have_previews_and_choosers() {
    let real = paging().await;
    let mut console = real.console().await;
    press(&mut console, "gSndays<Tab>UTC<Tab>").await;
    until(&mut console, "Enter chooses").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "Who takes turns").await;
    press(&mut console, "<Down> <Up> <Enter>").await;
    until(&mut console, "When do they hand over?").await;
    press(&mut console, "<Enter>").await;
    let screen = console.screen_text();
    assert_shows(&screen, "ben, ana from ");
    assert_shows(&screen, "weekly");
    until(&mut console, "On call, next 30 days").await;
    assert_shows(&console.screen_text(), "█");
    press(&mut console, "<C-s>y").await;
    until(&mut console, " created").await;
    press(&mut console, "gPnlate<Tab>").await;
    press(&mut console, "<Enter>days <Enter>").await;
    until(&mut console, "How long until the next step?").await;
    press(&mut console, "7m<Enter><Enter><Enter>ben <Enter><Enter>").await;
    let screen = console.screen_text();
    assert_shows(&screen, "schedule days wait 7m");
    assert_shows(&screen, "contact ben wait 5m");
    until(&mut console, "Who would be paged").await;
    let screen = console.screen_text();
    assert_shows(&screen, "now");
    assert_shows(&screen, "ben by push");
}

#[tokio::test(flavor = "multi_thread")]
async fn g_lists_its_key_sequences_and_opens_a_screen() {
    let real = paging().await;
    let mut console = real.console().await;
    let screen = press(&mut console, "g").await;
    for part in [
        "o on call",
        "p pending",
        "h heartbeats",
        "g top",
        "s silences",
    ] {
        let mut words = part.split(' ');
        let (key, name) = (words.next().unwrap(), words.collect::<Vec<_>>().join(" "));
        let is_listed = |line: &str| {
            let mut parts = line.split("  ").map(str::trim);
            parts.any(|it| {
                it.trim_start_matches('│')
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    == format!("{key} {name}")
            })
        };
        assert!(screen.lines().any(is_listed), "{part}\n{screen}");
    }
    press(&mut console, "o").await;
    until(&mut console, "[Now]").await;
    press(&mut console, "gp").await;
    until(&mut console, "Pending").await;
}

/// Returns the input listed in `docs/console/on-call.md`, line by line.
fn typed_lines() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/console/on-call.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks = page.split("```keys\n").skip(1);
    let blocks = blocks.filter_map(|it| it.split("```").next());
    let lines = blocks.flat_map(str::lines).map(str::trim);
    // The test must not send any data outside this machine.
    let lines = lines.map(|it| it.replace("push.example.com", "push.invalid"));
    lines.filter(|it| !it.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_call_setup_and_escalation_work_from_the_console() {
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let clock = Arc::new(ManualClock::starting_at(now_ms));
    let real = Real::start_at(clock.clone()).await;
    let mut console = real.console().await;
    let lines = typed_lines();
    assert_eq!(lines.len(), 7, "{lines:?}");
    for line in &lines {
        let form = line.strip_suffix("<C-s>y").unwrap();
        press(&mut console, form).await;
        press(&mut console, "<C-s>").await;
        until(&mut console, "Create ").await;
        press(&mut console, "y").await;
        until(&mut console, " created").await;
    }
    real.send(Severity::Critical, std::iter::once("db-1".to_owned()))
        .await;
    // The first contact is the one on call this week.
    let first = responses(&real).await["notified"][0]["contactName"].clone();
    let (first, other) = match first.as_str() {
        Some("ana") => ("ana", "ben"),
        _ => ("ben", "ana"),
    };
    press(&mut console, "<A-w>").await;
    until(&mut console, "▲ ").await;
    until(&mut console, &format!("{other} in")).await;
    assert_shows(&response_row(&console.screen_text()), first);
    clock.advance(std::time::Duration::from_secs(301));
    until(&mut console, "given up in").await;
    assert_shows(&console.screen_text(), "→ no one");
    assert_shows(&response_row(&console.screen_text()), other);
    press(&mut console, "ja").await;
    until(&mut console, "responds").await;
    assert_eq!(responses(&real).await["state"], "ACKNOWLEDGED");
    press(&mut console, "2/name=disk<Enter>").await;
    until(&mut console, "1/1").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "acknowledged by").await;
    let reported = format!("decided to notify {other} by push");
    assert_shows(&console.screen_text(), &reported);
}
