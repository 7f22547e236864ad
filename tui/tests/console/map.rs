//! The map: what feeds what, what is unused, and the ways from it.

use serde_json::{Value, json};

use super::*;

fn rule(name: &str, enabled: bool, triggers: &[&str], destinations: &[&str]) -> Value {
    json!({
        "name": name,
        "enabled": enabled,
        "triggerNames": triggers,
        "destinationNames": destinations,
    })
}

/// A service whose rules join several things, or nothing.
async fn joined() -> Service {
    let service = Service::start().await;
    for name in ["disk-full", "memory", "unused"] {
        let kind = json!({"event": {"filter": format!("name={name}")}});
        let trigger = json!({"name": name, "type": kind});
        service.create("Trigger", &trigger).await;
    }
    for name in ["audit", "lonely", "pager"] {
        service.destination(name).await;
    }
    let asked = json!({"name": "lonely"});
    service
        .real
        .call("DestinationService", "PauseDestination", &asked)
        .await;
    for rule in [
        rule("night", true, &["disk-full", "memory"], &["pager", "audit"]),
        rule("day", false, &["memory"], &["audit"]),
        rule("empty", true, &[], &[]),
    ] {
        service.create("Rule", &rule).await;
    }
    service
}

#[tokio::test(flavor = "multi_thread")]
async fn the_map_draws_who_feeds_whom_and_marks_what_is_unused() {
    let service = joined().await;
    let mut console = console(&service, 80, 24).await;
    // The pause has an event.
    until(&mut console, "Events 1").await;
    insta::assert_snapshot!("map", press(&mut console, "8").await);
    let marked = press(&mut console, "/!<Enter>").await;
    assert!(
        marked.contains("unused") && marked.contains("empty"),
        "{marked}"
    );
    let screen = press(&mut console, "<Esc>/empty<Enter>").await;
    assert!(
        screen.contains("joins nothing") && !screen.contains("night"),
        "{screen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_colours_the_map_is_drawn_in_letters_and_signs() {
    let service = joined().await;
    let mut options = service.options();
    options.theme = Theme::Mono;
    let frame = bellwether_tui::snapshot(options, "map", 80, 24)
        .await
        .unwrap()
        .frame;
    assert!(frame.contains("-+-> ") && !frame.contains('─'), "{frame}");
}

#[tokio::test(flavor = "multi_thread")]
async fn enter_on_the_map_leads_to_each_thing_and_back_to_the_same_place() {
    let service = joined().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "8/night<Enter>").await;
    let screen = press(&mut console, "<Enter>").await;
    assert!(screen.contains("Triggers › disk-full"), "{screen}");
    let screen = press(&mut console, "<Esc><Tab><Enter>").await;
    assert!(screen.contains("Rules › night"), "{screen}");
    let screen = press(&mut console, "<Esc><Tab><Enter>").await;
    assert!(screen.contains("Destinations › pager"), "{screen}");
    let screen = press(&mut console, "<Esc>j<Enter>").await;
    assert!(screen.contains("Destinations › audit"), "{screen}");
    // What touches one thing alone.
    let screen = press(&mut console, "<Esc><Esc>g").await;
    assert!(screen.contains("empty"), "{screen}");
    let screen = press(&mut console, "/memory<Enter>g<Tab>f").await;
    assert!(screen.contains("trigger=memory"), "{screen}");
    assert!(
        screen.contains("night") && screen.contains("day"),
        "{screen}"
    );
    assert!(!screen.contains("empty"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_rules_stay_usable() {
    let service = Service::stocked().await;
    let rules = (0..1_000).map(|number| {
        let name = format!("rule-{number:04}");
        json!({"rule": rule(&name, true, &["disk-full"], &["pager", "audit"])})
    });
    let documents: Vec<_> = rules.collect();
    for part in documents.chunks(200) {
        let asked = json!({"documents": part});
        service
            .real
            .call("ConfigService", "ApplyConfig", &asked)
            .await;
    }
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "8G").await;
    assert!(screen.contains("rule-0999"), "{screen}");
    let screen = press(&mut console, "/0500<Enter>").await;
    assert!(
        screen.contains("rule-0500") && !screen.contains("rule-0501"),
        "{screen}"
    );
}
