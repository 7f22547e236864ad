//! The whole console in one process, on a screen in memory, against a service on a real socket.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[cfg(feature = "embedded")]
mod backend;
mod finding;
mod flows;
mod history;
mod many;
mod map;
mod mappings;
#[cfg(feature = "embedded")]
mod monkey;
mod mouse;
mod outbox;
#[cfg(feature = "embedded")]
mod proxy;
mod reference;
mod remapped;
mod screens;
mod service;
mod silences;
#[cfg(feature = "embedded")]
mod snapshots;
mod tasks;
mod trials;
mod truth;
mod undoing;
mod waiting;

use bellwether_proto::{cloud::Severity, v1};
use bellwether_tui::{Headless, Key, Options, Theme};

use crate::service::{Service, event};

/// A console of this size on this service, connected and idle.
async fn console(service: &Service, columns: u16, rows: u16) -> Headless {
    let mut console = Headless::start(options(service), columns, rows);
    assert!(console.idle().await, "{}", console.screen());
    console
}

fn options(service: &Service) -> Options {
    let mut options = Options::new(&format!("http://{}", service.address)).unwrap();
    options.key = Some(Key::new("bw_key").unwrap());
    options.time_zone = jiff::tz::TimeZone::UTC;
    options.theme = Theme::Terminal;
    options
}

/// Presses keys and waits until nothing is under way.
async fn press(console: &mut Headless, keys: &str) -> String {
    console.press(keys).unwrap();
    assert!(console.idle().await, "{}", console.screen());
    console.screen()
}

/// Waits until the screen shows that.
async fn until(console: &mut Headless, wanted: &str) {
    assert!(
        console.shows(wanted).await,
        "no «{wanted}» in\n{}",
        console.screen()
    );
}

/// A service with something of everything.
fn stocked() -> Service {
    let service = Service::start();
    for number in 0..40 {
        let severities = [
            Severity::Critical,
            Severity::Error,
            Severity::Warning,
            Severity::Info,
        ];
        let severity = severities[number as usize % 4];
        let host = format!("db{}", number % 7);
        service.event(event(
            number,
            severity,
            &format!("disk {number} is full"),
            &host,
        ));
    }
    let mut state = service.state();
    state.triggers.insert("disk-full".to_owned(), trigger());
    let failing = v1::destination_health::State::Failing;
    let healthy = v1::destination_health::State::Healthy;
    let pager = destination(
        "pager",
        "https://pager.example/hook",
        failing,
        "403 Forbidden",
    );
    let audit = destination("audit", "https://audit.example/in", healthy, "");
    state.destinations.insert("pager".to_owned(), pager);
    state.destinations.insert("audit".to_owned(), audit);
    state.rules.insert(
        "night".to_owned(),
        v1::Rule {
            name: "night".to_owned(),
            enabled: Some(true),
            trigger_names: vec!["disk-full".to_owned()],
            destination_names: vec!["pager".to_owned(), "audit".to_owned()],
            repeat_interval: Some(3_600),
            etag: "1".to_owned(),
            ..v1::Rule::default()
        },
    );
    let states = [
        v1::delivery::State::Dead,
        v1::delivery::State::Retry,
        v1::delivery::State::Delivered,
    ];
    state.deliveries = (0..3)
        .map(|number| delivery(99 - number, states[number]))
        .collect();
    drop(state);
    service
}

fn trigger() -> v1::Trigger {
    let clause = v1::clause::Kind::Contains(v1::Contains {
        field: "summary".to_owned(),
        value: "disk".to_owned(),
    });
    let query = v1::Query {
        clause: Some(v1::Clause { kind: Some(clause) }),
    };
    let kind = v1::trigger_type::Type::Event(v1::EventTrigger {
        query: Some(query),
        ..v1::EventTrigger::default()
    });
    v1::Trigger {
        name: "disk-full".to_owned(),
        r#type: Some(v1::TriggerType { r#type: Some(kind) }),
        rule_names: vec!["night".to_owned()],
        recent_notification_count: Some(12),
        etag: "1".to_owned(),
        ..v1::Trigger::default()
    }
}

fn destination(
    name: &str,
    url: &str,
    health: v1::destination_health::State,
    last_error: &str,
) -> v1::Destination {
    let url = url.to_owned();
    let kind = v1::destination_type::Type::Webhook(v1::Webhook {
        url,
        ..v1::Webhook::default()
    });
    v1::Destination {
        name: name.to_owned(),
        r#type: Some(v1::DestinationType { r#type: Some(kind) }),
        rule_names: vec!["night".to_owned()],
        recent_notification_count: Some(40),
        health: Some(v1::DestinationHealth {
            state: health.into(),
            last_error: last_error.to_owned(),
            ..v1::DestinationHealth::default()
        }),
        etag: "1".to_owned(),
        ..v1::Destination::default()
    }
}

fn delivery(number: usize, state: v1::delivery::State) -> v1::Delivery {
    v1::Delivery {
        id: format!("01ARZ3NDEKTSV4RRFFQ69G5F{number:02}"),
        rule_name: "night".to_owned(),
        destination_name: "pager".to_owned(),
        state: state.into(),
        attempt_count: Some(8),
        last_error: "403 Forbidden".to_owned(),
        occurrence_id: format!("{:028}:1", 1),
        event_id: format!("{:028}", 1),
        ..v1::Delivery::default()
    }
}
