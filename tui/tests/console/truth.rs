//! Tests that filters, totals and reasons in lists are correct, and that invalid changes are
//! rejected before a question is asked.

use serde_json::json;

use super::{flows::assert_shows, waiting::with_rule, *};
use crate::backend::Real;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_filter_field_is_an_error_in_every_list() {
    let real = with_rule(&json!({})).await;
    let mut console = real.console().await;
    let lists = [
        "3", "4", "5", "6", "7", "0", "<A-3>", "<A-4>", "<A-5>", "<A-6>", "<A-7>",
    ];
    let mut seen = std::collections::BTreeSet::new();
    for list in lists {
        press(&mut console, list).await;
        let screen = press(&mut console, "/zzzz=1<Enter>").await;
        let head = screen.lines().next().unwrap_or_default().to_owned();
        let place = head.split('›').nth(1).unwrap_or_default();
        let place = place.split("  ").next().unwrap_or_default();
        if !screen.contains("zzzz") {
            continue;
        }
        // Events and deliveries can have any field, so the service warns instead.
        let said = if place.starts_with(" Deliveries") {
            "no event has a field `zzzz`"
        } else {
            "no field `zzzz` here"
        };
        assert!(screen.contains(said), "{list}\n{screen}");
        assert!(!screen.contains("no match"), "{list}\n{screen}");
        seen.insert(place.trim().to_owned());
        press(&mut console, "<Esc>").await;
    }
    press(&mut console, "2").await;
    let screen = press(&mut console, "/zzzz=1<Enter>").await;
    assert_shows(&screen, "no event has a field `zzzz`");
    until(&mut console, "✗ refused").await;
    for list in [
        "Triggers",
        "Destinations",
        "Rules",
        "Deliveries",
        "Clients",
        "Silences",
    ] {
        assert!(seen.contains(list), "{list}: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_filter_lists_and_words_search_shown_text() {
    let real = with_rule(&json!({})).await;
    let url = "http://127.0.0.1:9/quiet";
    let tags = json!(["prod"]);
    let other = json!({"name": "other", "tags": tags, "type": {"webhook": {"url": url}}});
    let request = json!({"destination": other});
    real.call("DestinationService", "CreateDestination", &request)
        .await;
    let mut console = real.console().await;
    press(&mut console, "4").await;
    until(&mut console, "/2").await;
    for (filter, shown, hidden) in [
        ("health=untried", "other", "pager"),
        ("type=webhook name=pag*", "pager", "other"),
        ("tags=prod", "other", "pager"),
        ("-tags=prod", "pager", "other"),
        ("127.0.0.1:9/quiet", "other", "pager"),
    ] {
        press(&mut console, "/<C-u>").await;
        let screen = press(&mut console, &format!("{filter}<Enter>")).await;
        let rows: Vec<&str> = screen.lines().skip(3).collect();
        let rows = rows.join("\n");
        assert!(
            rows.contains(shown) && !rows.contains(hidden),
            "{filter}\n{screen}"
        );
    }
    press(&mut console, "5").await;
    let screen = press(&mut console, "/enabled=no<Enter>").await;
    assert_shows(&screen, "no match `enabled=no`");
    press(&mut console, "/<C-u>").await;
    let screen = press(&mut console, "enabled=yes<Enter>").await;
    assert_shows(&screen, "night");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_form_does_not_ask_for_confirmation() {
    let real = Real::start().await;
    let mut console = real.console().await;
    press(&mut console, "4").await;
    press(&mut console, "n").await;
    // Type faster than the validation delay, including the answer to the question.
    let screen = press(&mut console, "hook<Tab><Tab>ftp://x<C-s>y").await;
    assert!(!screen.contains("Create destination"), "{screen}");
    assert_shows(&screen, "✗");
    assert_shows(&screen, "ftp://x");
    assert!(!screen.contains("ftp://xy"), "{screen}");
    press(&mut console, "<C-u>http://127.0.0.1:9/<C-s>y").await;
    until(&mut console, "destination hook created").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broad_silence_from_a_form_is_confirmed_with_counts() {
    let real = Real::start().await;
    for number in 0..24 {
        let host = std::iter::once("db-13".to_owned());
        real.send_named(&format!("disk-{number}"), Severity::Error, host)
            .await;
    }
    let mut console = real.console().await;
    press(&mut console, "0").await;
    press(&mut console, "n").await;
    press(
        &mut console,
        "wide<Tab>move<Tab>host=db-13<Tab><Tab><Tab>2h",
    )
    .await;
    press(&mut console, "<C-s>").await;
    until(&mut console, "Create silence wide?").await;
    let screen = console.screen_text();
    assert_shows(&screen, "covers 24 open events now");
    assert_shows(&screen, "It is broad: Yes silences all these events.");
    press(&mut console, "y").await;
    until(&mut console, "silence wide created").await;
    let found = real
        .call("SilenceService", "ListSilences", &json!({}))
        .await;
    assert_eq!(found["silences"][0]["coveredCount"], 24, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn list_title_shows_the_total_of_the_service() {
    let real = Real::start().await;
    for part in [0..602, 602..1_204] {
        let hosts = part.map(|number| format!("db-{number}"));
        real.send(Severity::Error, hosts).await;
    }
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "1/1,204").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_same_reason_as_the_delivery() {
    let real = with_rule(&json!({})).await;
    let request = json!({"name": "pager"});
    real.call("DestinationService", "PauseDestination", &request)
        .await;
    real.send_named("disk", Severity::Error, ["db-7".to_owned()].into_iter())
        .await;
    let mut console = real.console().await;
    let reason = "the destination is paused by admin";
    press(&mut console, "6").await;
    until(&mut console, "paused by").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, reason).await;
    press(&mut console, "2").await;
    press(&mut console, "/host=db-7<Enter>").await;
    press(&mut console, "x").await;
    until(&mut console, reason).await;
    assert!(
        !console.screen_text().contains("as soon as"),
        "{}",
        console.screen_text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_items_come_first_and_likely_mistakes_cause_a_warning() {
    let real = with_rule(&json!({})).await;
    let other = json!({"name": "alpha", "type": {"webhook": {"url": "http://127.0.0.1:9/"}}});
    let request = json!({"destination": other});
    real.call("DestinationService", "CreateDestination", &request)
        .await;
    let mut console = real.console().await;
    press(&mut console, "4").await;
    until(&mut console, "DNS").await;
    let screen = console.screen_text();
    let (pager, alpha) = (screen.find(" pager "), screen.find(" alpha "));
    assert!(pager < alpha, "{screen}");
    press(&mut console, "5").await;
    let screen = press(&mut console, "n").await;
    assert_shows(&screen, "! without a trigger, it never notifies");
    assert_shows(&screen, "! without a destination, it notifies no one");
    press(&mut console, "<Esc>").await;
    press(&mut console, "4n").await;
    press(
        &mut console,
        "hook<Tab><Tab>http://127.0.0.1:9/<Tab><Tab><Tab><Tab>hi {{nothing}}",
    )
    .await;
    until(&mut console, "! the webhook's payload").await;
}
