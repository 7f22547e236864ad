//! The map: what feeds what, what is unused, and the ways from it.

use super::*;

fn rule(name: &str, enabled: bool, triggers: &[&str], destinations: &[&str]) -> v1::Rule {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    v1::Rule {
        name: name.to_owned(),
        enabled: Some(enabled),
        trigger_names: names(triggers),
        destination_names: names(destinations),
        etag: "1".to_owned(),
        ..v1::Rule::default()
    }
}

/// A service whose rules join several things, nothing, or what is gone.
fn joined() -> Service {
    let service = stocked();
    let mut state = service.state();
    for (name, rules) in [("memory", vec!["night", "day"]), ("unused", vec![])] {
        let named = v1::Trigger {
            name: name.to_owned(),
            rule_names: rules.into_iter().map(str::to_owned).collect(),
            ..trigger()
        };
        state.triggers.insert(name.to_owned(), named);
    }
    let paused = v1::destination_health::State::Paused;
    let mut lonely = destination("lonely", "https://lonely.example/", paused, "");
    lonely.rule_names.clear();
    state.destinations.insert("lonely".to_owned(), lonely);
    let night = rule("night", true, &["disk-full", "memory"], &["pager", "audit"]);
    for rule in [
        night,
        rule("day", false, &["memory"], &["gone"]),
        rule("empty", true, &[], &[]),
    ] {
        state.rules.insert(rule.name.clone(), rule);
    }
    drop(state);
    service
}

#[tokio::test]
async fn the_map_draws_who_feeds_whom_and_marks_what_is_unused() {
    let service = joined();
    let mut console = console(&service, 80, 24).await;
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

#[tokio::test]
async fn without_colours_the_map_is_drawn_in_letters_and_signs() {
    let service = joined();
    let mut options = options(&service);
    options.theme = Theme::Mono;
    let frame = bellwether_tui::snapshot(options, "map", 80, 24)
        .await
        .unwrap()
        .frame;
    assert!(frame.contains("-+-> ") && !frame.contains('─'), "{frame}");
}

#[tokio::test]
async fn enter_on_the_map_leads_to_each_thing_and_back_to_the_same_place() {
    let service = joined();
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

#[tokio::test]
async fn a_thousand_rules_stay_usable() {
    let service = stocked();
    {
        let mut state = service.state();
        for number in 0..1_000 {
            let name = format!("rule-{number:04}");
            let rule = rule(&name, true, &["disk-full"], &["pager", "audit"]);
            state.rules.insert(name, rule);
        }
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
