//! Notices while the terminal is not focused: events that open, pages, a reconnection and quiet
//! hours.

use std::time::{Duration, Instant};

use bellwether_tui::{Now, QuietHours};
use serde_json::json;

use super::*;

/// Returns the first notices, after waiting for them.
async fn notices(console: &mut Headless) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(60);
    let mut found = Vec::new();
    while found.is_empty() {
        assert!(
            Instant::now() < end,
            "no notice:\n{}",
            console.screen_text()
        );
        console.process_updates().await;
        found = console.take_actions();
    }
    found
}

async fn leave(console: &mut Headless) {
    console.set_focus(false);
    assert!(console.wait_until_idle().await);
}

/// Sends critical events; the severity follows from the number.
async fn criticals(service: &Service, count: u32) {
    let events = (0..count).map(|number| service::event(4 * number, "the disk is full"));
    service.send(events.collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_opened_while_away_are_one_notice_with_a_count() {
    let service = Service::start().await;
    let mut console = console(&service, 120, 36).await;
    // Another filter of the list must not hide events from the notices.
    press(&mut console, "2/name=other<Enter>").await;
    criticals(&service, 1).await;
    leave(&mut console).await;
    service.events(1..4).await;
    criticals(&service, 4).await;
    let found = notices(&mut console).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("\x1b]9;Bellwether: 3 new, first critical: disk-full on db"));
    assert!(found[0].ends_with("\x07▲3 Bellwether"), "{found:?}");
    let last = vec![service::event(40, "the disk is full")];
    service.send(last).await;
    let found = notices(&mut console).await;
    assert!(found[0].ends_with("\x07▲4 Bellwether"), "{found:?}");
    console.set_focus(true);
    assert_eq!(console.take_actions(), ["end"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_opened_while_disconnected_are_one_notice() {
    let service = Service::start().await;
    let mut console = console(&service, 120, 36).await;
    leave(&mut console).await;
    service.cut(true);
    while console.is_connected() {
        console.process_updates().await;
    }
    criticals(&service, 5).await;
    service.cut(false);
    let found = notices(&mut console).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("5 new"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn focused_or_quiet_console_gives_no_notice() {
    let service = Service::start().await;
    let mut focused = console(&service, 120, 36).await;
    let mut options = service.options();
    let day_ms = 86_400_000;
    let begun = Instant::now();
    let noon_ms = 1_800_000_000_000 / day_ms * day_ms + day_ms / 2;
    options.now = Now::new(move || noon_ms + i64::try_from(begun.elapsed().as_millis()).unwrap());
    let quiet: QuietHours = "11:00-13:00".parse().unwrap();
    options.notices.quiet = Some(quiet);
    let mut quiet = Headless::start(options, 120, 36);
    assert!(quiet.wait_until_idle().await);
    let mut noticing = console(&service, 120, 36).await;
    leave(&mut quiet).await;
    leave(&mut noticing).await;
    criticals(&service, 2).await;
    notices(&mut noticing).await;
    for console in [&mut focused, &mut quiet] {
        for _ in 0..500 {
            console.process_updates().await;
        }
        assert_eq!(console.take_actions(), Vec::<String>::new());
    }
    // A key shows that someone is present, whatever the terminal reports.
    press(&mut noticing, "j").await;
    assert_eq!(noticing.take_actions(), ["end"]);
    criticals(&service, 4).await;
    until(&mut noticing, "4").await;
    for _ in 0..500 {
        noticing.process_updates().await;
    }
    assert_eq!(noticing.take_actions(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_the_signed_in_person_is_a_notice() {
    let service = Service::start().await;
    let nothing = json!({});
    let caller = service.real.call("ClientService", "GetCaller", &nothing);
    let caller = caller.await["client"]["name"].clone();
    service.destination("audit").await;
    let methods = json!([{"destinationName": "audit"}]);
    let own = json!({"name": "ana", "clientName": caller, "methods": methods});
    service.create("Contact", &own).await;
    let policy = json!({"policy": {
        "name": "db", "steps": [{"targets": [{"contactName": "ana"}]}],
    }});
    let create = "CreateEscalationPolicy";
    service
        .real
        .call("EscalationPolicyService", create, &policy)
        .await;
    let trigger = json!({"name": "disks", "type": {"event": {"filter": "name=disk"}}});
    service.create("Trigger", &trigger).await;
    let rule = json!({
        "name": "page", "enabled": true, "triggerNames": ["disks"], "escalationPolicyName": "db",
    });
    service.create("Rule", &rule).await;
    let mut console = console(&service, 120, 36).await;
    leave(&mut console).await;
    // Below the severity of the events, so that only the page is a notice.
    let host = std::iter::once("db-1".to_owned());
    service.real.send(Severity::Warning, host).await;
    let found = notices(&mut console).await;
    let page = "you are paged: disk: the disk of db-1 is full";
    assert!(found[0].contains(page), "{found:?}");
    assert!(found[0].ends_with("▲1 Bellwether"), "{found:?}");
}
