//! Operator workflows, from the first key to the resulting state of the service.

use std::time::{Duration, Instant};

use bellwether_proto::cloud::{self, Status};
use serde_json::json;

use super::*;
use crate::service::event;

pub(super) fn assert_shows(screen: &str, wanted: &str) {
    assert!(screen.contains(wanted), "no «{wanted}» in\n{screen}");
}

async fn all_open(service: &Service) -> bool {
    let all = service.real.occurrences().await;
    let is_open = |it: &v1::Occurrence| it.status() == Status::Open && !it.acknowledged();
    all.iter().all(is_open)
}

#[tokio::test(flavor = "multi_thread")]
async fn testing_a_stored_destination_shows_the_whole_exchange() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 30).await;
    let screen = press(&mut console, "4t").await;
    for wanted in [
        "REJECTED in ",
        "the receiver returned 403 Forbidden",
        &format!("POST {}/pager", service.receivers),
        "status 403",
        "no such hook",
    ] {
        assert_shows(&screen, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsaved_destination_is_tested_without_losing_input() {
    let service = Service::start().await;
    let mut console = console(&service, 80, 30).await;
    press(&mut console, "4n").await;
    let url = format!("{}/new", service.receivers);
    console
        .press(&format!("new-hook<Tab><Tab>{url}<C-t>"))
        .unwrap();
    assert!(console.shows("tested just now ✗ 403").await);
    assert!(service.stored("Destination").await.is_empty());
    assert_shows(&console.screen_text(), &url);
    press(&mut console, "<C-s>").await;
    press(&mut console, "y").await;
    let stored = service.stored("Destination").await;
    assert_eq!(stored["new-hook"]["type"]["webhook"]["url"], url);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_error_appears_next_to_its_field() {
    let service = Service::start().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4nhook<Tab><Tab>ftp://x<C-s>y").await;
    let screen = console.screen_text();
    assert_shows(&screen, "✗ does not start with");
    assert_shows(&screen, "ftp://x");
    assert!(service.stored("Destination").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn form_is_validated_by_the_service_while_typing() {
    let service = Service::start().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4nhook<Tab><Tab>ftp://x").await;
    until(&mut console, "✗ does not start with").await;
    console.press("<C-u>https://x").unwrap();
    until(&mut console, "Valid").await;
    assert!(service.stored("Destination").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_condition_is_typed_as_a_filter() {
    let service = Service::start().await;
    let mut console = console(&service, 100, 30).await;
    press(
        &mut console,
        "3ndisk<Tab>severity>=error disk (host=a or host=b)",
    )
    .await;
    let screen = press(&mut console, "<C-s>").await;
    assert_shows(&screen, "Create trigger disk?");
    press(&mut console, "y").await;
    assert!(service.stored("Trigger").await.contains_key("disk"));
    let screen = press(&mut console, "R").await;
    assert_shows(&screen, "severity>=error disk (host=a");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_form_offers_stored_names() {
    let service = Service::stocked().await;
    let mut console = console(&service, 100, 30).await;
    press(&mut console, "5nday<Tab><Tab><Enter>").await;
    press(&mut console, "<Space><Enter><Tab><Enter>").await;
    press(&mut console, "pag<Tab><Enter><C-s>").await;
    press(&mut console, "y").await;
    let rule = service.stored("Rule").await["day"].clone();
    assert_eq!(rule["triggerNames"], json!(["disk-full"]));
    assert_eq!(rule["destinationNames"], json!(["pager"]));
    assert_ne!(rule["enabled"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_is_disabled_with_one_key_and_undone_with_another() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "5o").await;
    assert_shows(&screen, "✓ rule night disabled · U undoes it");
    assert_ne!(service.stored("Rule").await["night"]["enabled"], true);
    let screen = press(&mut console, "U").await;
    assert_shows(&screen, "✓ undone: rule night disabled");
    assert_eq!(service.stored("Rule").await["night"]["enabled"], true);
    assert_shows(&press(&mut console, "U").await, "nothing to undo");
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_warns_of_dependents_and_its_key_does_not_confirm() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "3d").await;
    assert_shows(&screen, "night, left without a trigger");
    press(&mut console, "d<Enter>").await;
    assert!(service.stored("Trigger").await.contains_key("disk-full"));
    let screen = press(&mut console, "dy").await;
    assert_shows(&screen, "trigger disk-full deleted");
    assert!(service.stored("Trigger").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn new_events_push_the_selected_row_down_unless_followed() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2").await;
    assert!(console.shows("disk 39 is full").await);
    service.send(vec![event(90, "fire in the rack")]).await;
    assert!(console.shows("fire in the rack").await);
    let selected = |screen: &str| {
        let line = screen.lines().find(|line| line.starts_with('▶'));
        line.unwrap().to_owned()
    };
    assert!(console.shows("▲ 1 new, g g shows them").await);
    let screen = press(&mut console, "").await;
    assert_shows(&selected(&screen), "disk 39 is full");
    // The key acts on the row that was selected before the new event arrived.
    press(&mut console, "a").await;
    assert!(console.shows("acknowledged").await);
    let screen = press(&mut console, "f").await;
    assert_shows(&selected(&screen), "fire in the rack");
    assert_shows(&screen, "live, following");
    service.send(vec![event(91, "fire in the hall")]).await;
    assert!(console.shows("fire in the hall").await);
    assert_shows(&selected(&console.screen_text()), "fire in the hall");
    // Any key ends it.
    let screen = press(&mut console, "j").await;
    assert_shows(&selected(&screen), "fire in the rack");
    service.send(vec![event(92, "fire in the yard")]).await;
    assert!(console.shows("▲ 1 new, g g shows them").await);
    assert_shows(&selected(&console.screen_text()), "fire in the rack");
    assert!(!press(&mut console, "gg").await.contains("▲ 1 new"));
}

#[tokio::test(flavor = "multi_thread")]
async fn open_event_page_updates_live() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2<Enter>").await;
    assert!(console.shows("disk 39 is full").await);
    service.send(vec![event(39, "the disk is on fire")]).await;
    assert!(console.shows("the disk is on fire").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_event_list_counts_new_events() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2p").await;
    service.send(vec![event(90, "fire in the rack")]).await;
    assert!(console.shows("▮▮ 1 new").await);
    assert!(!console.screen_text().contains("fire in the rack"));
    let screen = press(&mut console, "p").await;
    assert_shows(&screen, "fire in the rack");
}

#[tokio::test(flavor = "multi_thread")]
async fn marked_events_are_closed_together_after_confirmation() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "2<Space><Space><Space>c").await;
    assert_shows(&screen, "Close these 3 occurrences?");
    press(&mut console, "y").await;
    let all = service.real.occurrences().await;
    let closed = all.iter().filter(|it| it.status() == Status::Closed);
    assert_eq!(closed.count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn event_is_acknowledged_and_annotated() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2<Enter>a").await;
    assert_shows(&console.screen_text(), "acknowledged");
    press(&mut console, "wlooking at it<Enter>").await;
    let all = service.real.occurrences().await;
    let noted: Vec<_> = all.iter().filter(|it| !it.annotations.is_empty()).collect();
    assert_eq!(noted[0].annotations[0].annotation, "looking at it");
    assert_eq!(noted.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn event_filter_is_applied_by_the_service() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    // Six of the 40 events are from this host: one is informational, one a warning, four are
    // errors.
    let screen = press(&mut console, "2/severity>=error host=db1<Enter>").await;
    assert_shows(&screen, " 1/4");
    let screen = press(&mut console, "/<C-u>severity>=<Enter>").await;
    assert_shows(&screen, "a value is missing after");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_from_rule_to_destination_to_deliveries() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "5<Enter><Tab><Tab><Tab><Enter>").await;
    assert_shows(&console.screen_text(), "Destinations › pager");
    press(&mut console, "<Tab><Enter>").await;
    assert_shows(&console.screen_text(), "/destination=pager");
    press(&mut console, "<Enter>").await;
    assert_shows(&console.screen_text(), "Deliveries › disk-full");
    press(&mut console, "<Esc><Esc>").await;
    assert_shows(&console.screen_text(), "Destinations › pager");
    press(&mut console, "]").await;
    assert_shows(&console.screen_text(), "/destination=pager");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_text_reopens_with_errors_at_their_lines() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4/audit<Enter>").await;
    press(&mut console, "E").await;
    assert!(console.edit(|text| text.replace("http://127", "ftp://127")));
    press(&mut console, "y").await;
    let mut seen = String::new();
    assert!(console.edit(|text| {
        seen = text.to_owned();
        text.replace("ftp://127", "http://127")
            .replace("/audit\"", "/audit2\"")
    }));
    assert_shows(&seen, "// ✗ type.webhook.url: does not start with");
    press(&mut console, "y").await;
    let stored = service.stored("Destination").await["audit"].clone();
    let url = format!("{}/audit2", service.receivers);
    assert_eq!(stored["type"]["webhook"]["url"], url);
}

#[tokio::test(flavor = "multi_thread")]
async fn role_violations_are_rejected_with_the_reason() {
    let service = Service::stocked().await;
    let mut console = Headless::start(service.viewer().await, 80, 24);
    assert!(console.wait_until_idle().await);
    let screen = press(&mut console, "4d").await;
    assert_shows(&screen, "requires the role `editor`; this key is `viewer`");
    let screen = press(&mut console, "?delete").await;
    assert_shows(&screen, "requires the role");
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_console_makes_no_change() {
    let service = Service::stocked().await;
    let mut options = service.options();
    options.read_only = true;
    let mut console = Headless::start(options, 80, 24);
    assert!(console.wait_until_idle().await);
    for keys in ["2a", "2cy", "3dy", "5oy", "4ny"] {
        press(&mut console, keys).await;
        assert_shows(&console.screen_text(), "read-only");
    }
    assert!(all_open(&service).await);
    assert_eq!(service.stored("Trigger").await.len(), 1);
    assert_eq!(service.stored("Rule").await["night"]["enabled"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_key_is_reported_and_the_console_can_quit() {
    let service = Service::start().await;
    let mut options = service.options();
    options.key = Some(Key::new("bw_unknown").unwrap());
    let mut console = Headless::start(options, 80, 24);
    assert!(console.wait_until_idle().await);
    assert_shows(&console.screen_text(), "key not accepted: ");
    press(&mut console, "q").await;
    assert!(console.has_quit());
}

#[tokio::test(flavor = "multi_thread")]
async fn console_survives_a_lost_connection_and_reconnects() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2").await;
    service.cut(true);
    assert!(console.shows("not connected").await);
    // Loaded data stays visible with its age. Changes are rejected; all other actions work.
    assert!(console.shows("data shown is").await);
    assert_shows(&console.screen_text(), "disk 39 is full");
    let screen = press(&mut console, "c").await;
    assert_shows(&screen, "changes are not possible now");
    press(&mut console, "4naway<Tab><Tab>https://x").await;
    assert_shows(&console.screen_text(), "nothing is lost");
    service.send(vec![event(91, "while you were away")]).await;
    service.cut(false);
    until(&mut console, "●").await;
    assert_shows(&console.screen_text(), "https://x");
    press(&mut console, "<Esc>y2").await;
    assert!(console.shows("while you were away").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn console_quits_at_once_without_a_connection() {
    let service = Service::start().await;
    service.cut(true);
    let mut console = Headless::start(service.options(), 80, 24);
    let began = Instant::now();
    console.press("q").unwrap();
    assert!(console.has_quit());
    drop(console);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn pasted_text_never_runs_as_keys() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2").await;
    console.paste("cy\nq");
    assert!(console.wait_until_idle().await);
    assert!(!console.has_quit());
    assert!(all_open(&service).await);
    assert_shows(&console.screen_text(), "/cy q");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_client_key_is_shown_once() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "7nci<C-s>").await;
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "bw_");
    press(&mut console, "y").await;
    let [key] = console.clipboard() else {
        panic!("{:?}", console.clipboard());
    };
    let key = key.clone();
    assert_shows(&screen, &key);
    let screen = press(&mut console, "<Esc>").await;
    assert!(!screen.contains(&key), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_is_created_from_an_event() {
    let service = Service::stocked().await;
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "2T").await;
    assert_shows(&screen, "dimensions.host");
    assert_shows(&screen, "disk-full");
    press(&mut console, "from-event<C-s>").await;
    press(&mut console, "y").await;
    assert!(service.stored("Trigger").await.contains_key("from-event"));
}

#[tokio::test(flavor = "multi_thread")]
async fn palette_finds_objects_and_screens() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, ":pager<Enter>").await;
    assert_shows(&console.screen_text(), "Destinations › pager");
    press(&mut console, ":go deliv<Enter>").await;
    assert_shows(&console.screen_text(), "› Deliveries");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_escaped() {
    let service = Service::start().await;
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}evil\u{200b}\ttab\nline 数据库 👩\u{200d}🚒";
    let named = |name: &str| cloud::Event {
        name: name.to_owned(),
        ..event(1, hostile)
    };
    service
        .send(vec![named("\u{202e}h\u{200b}"), named("h")])
        .await;
    for (columns, rows) in [(1, 1), (20, 5), (60, 15), (80, 24), (120, 40)] {
        let mut console = console(&service, columns, rows).await;
        for keys in [
            "1", "2", "<Enter>", "4", "<Enter>", "d", "<Esc>", "e", "<Esc>", ":", "<Esc>",
        ] {
            let screen = press(&mut console, keys).await;
            let control = |char: char| char.is_control() && char != '\n';
            assert!(!screen.chars().any(control), "{screen:?}");
            assert!(!screen.contains(['\u{202e}', '\u{200b}']), "{screen:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_a_filter_stays_on_the_list() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "4/pag<Enter>").await;
    assert!(!screen.contains("audit"), "{screen}");
    let screen = press(&mut console, "<Esc>").await;
    assert_shows(&screen, "audit");
    assert_shows(&screen, "› Destinations");
    assert_shows(&press(&mut console, "<Esc>").await, "› Overview");
}

/// Lets another client change the rule while the form is open.
async fn clash(service: &Service) -> Headless {
    let mut console = console(service, 80, 24).await;
    press(&mut console, "5e").await;
    press(&mut console, "<Tab><Tab><Tab>mine<C-s>").await;
    let mut rule = service.stored("Rule").await["night"].clone();
    rule["description"] = "theirs".into();
    let request = json!({"rule": rule});
    service
        .real
        .call("RuleService", "UpdateRule", &request)
        .await;
    console.press("y").unwrap();
    assert!(
        console.shows("changed concurrently").await,
        "{}",
        console.screen_text()
    );
    assert!(
        console.shows("[ back to editing ]").await,
        "{}",
        console.screen_text()
    );
    console
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_conflict_shows_both_versions_and_keeps_the_edits() {
    let service = Service::stocked().await;
    let mut console = clash(&service).await;
    let screen = console.screen_text();
    assert!(
        screen.contains("theirs") && screen.contains("mine"),
        "{screen}"
    );
    // The form still contains the edits.
    let screen = press(&mut console, "<Esc>").await;
    assert!(screen.contains("mine"), "{screen}");
    let stored = service.stored("Rule").await["night"].clone();
    assert_eq!(stored["description"], "theirs");
    // Saving again shows the differences from the other client's version, and stores the edits.
    let screen = press(&mut console, "<C-s>").await;
    assert!(screen.contains("Change rule night?"), "{screen}");
    press(&mut console, "y").await;
    assert_eq!(service.stored("Rule").await["night"]["message"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_conflict_can_be_resolved_with_either_version() {
    let service = Service::stocked().await;
    let mut console = clash(&service).await;
    let screen = press(&mut console, "<Tab><Enter>").await;
    assert!(
        screen.contains("theirs") && !screen.contains("mine"),
        "{screen}"
    );

    let service = Service::stocked().await;
    let mut console = clash(&service).await;
    let screen = press(&mut console, "<Tab><Tab><Enter>").await;
    assert!(screen.contains("rule night changed"), "{screen}");
    assert_eq!(service.stored("Rule").await["night"]["message"], "mine");
}
