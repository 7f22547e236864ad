//! What operators do, from the first key to what the service then holds.

use std::time::{Duration, Instant};

use bellwether_proto::cloud;

use super::*;

pub(super) fn assert_shows(screen: &str, wanted: &str) {
    assert!(screen.contains(wanted), "no «{wanted}» in\n{screen}");
}

#[tokio::test]
async fn a_stored_destination_is_tested_and_the_whole_exchange_is_shown() {
    let service = stocked();
    let mut console = console(&service, 80, 30).await;
    let screen = press(&mut console, "4t").await;
    for wanted in [
        "REJECTED in 132 ms",
        "the receiver answered 403 Forbidden",
        "POST https://pager.example/hook",
        "authorization: ********",
        "status 403",
        "no such hook",
    ] {
        assert_shows(&screen, wanted);
    }
    assert_eq!(service.state().tests[0].name, "pager");
    assert!(service.state().tests[0].r#type.is_none());
}

#[tokio::test]
async fn an_unsaved_destination_is_tested_from_its_form_and_nothing_typed_is_lost() {
    let service = Service::start();
    let mut console = console(&service, 80, 30).await;
    press(&mut console, "4n").await;
    console
        .press("new-hook<Tab><Tab>https://new.example/x<C-t>")
        .unwrap();
    assert!(console.shows("tested just now ✗ 403").await);
    let test = service.state().tests[0].clone();
    assert_eq!(test.name, "new-hook");
    let Some(v1::destination_type::Type::Webhook(webhook)) = test.r#type.unwrap().r#type else {
        panic!("another type");
    };
    assert_eq!(webhook.url, "https://new.example/x");
    assert!(service.state().destinations.is_empty());
    assert_shows(&console.screen(), "https://new.example/x");
    press(&mut console, "<C-s>y").await;
    assert!(service.state().destinations.contains_key("new-hook"));
}

#[tokio::test]
async fn an_error_of_the_service_stands_beside_its_field() {
    let service = Service::start();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4nhook<Tab><Tab>ftp://x<C-s>y").await;
    let screen = console.screen();
    assert_shows(&screen, "✗ must begin with http:// or https://");
    assert_shows(&screen, "ftp://x");
    assert!(service.state().destinations.is_empty());
}

#[tokio::test]
async fn a_form_is_checked_by_the_service_while_it_is_typed() {
    let service = Service::start();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4nhook<Tab><Tab>ftp://x").await;
    assert!(console.shows("✗ must begin with http:// or https://").await);
    console.press("<C-u>https://x").unwrap();
    assert!(console.shows("Valid").await);
    assert!(service.state().destinations.is_empty());
}

#[tokio::test]
async fn a_condition_is_written_as_a_line_and_as_a_tree() {
    let service = Service::start();
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "3ndisk<Tab>severity>=error disk").await;
    assert_shows(&screen, "├ severity>=error");
    // A part of the tree is typed, and the line says it too.
    let screen = press(&mut console, "<C-n>host=a<C-n>host=b<A-i>").await;
    assert_shows(&screen, "severity>=error disk (host=a or host=b)");
    assert_shows(&screen, "  └ host=b");
    let screen = press(&mut console, "<C-s>").await;
    assert_shows(&screen, "Create trigger disk?");
    press(&mut console, "y").await;
    let stored = service.state().triggers["disk"].clone();
    let screen = press(&mut console, "R").await;
    assert_shows(&screen, "severity>=error disk (host=a");
    assert!(stored.r#type.is_some());
}

#[tokio::test]
async fn a_rule_takes_its_names_from_the_stored_ones() {
    let service = stocked();
    let mut console = console(&service, 100, 30).await;
    let keys = "5nday<Tab><Tab><Enter><Space><Enter><Tab><Enter>pag<Tab><Enter><C-s>y";
    press(&mut console, keys).await;
    let rule = service.state().rules["day"].clone();
    assert_eq!(rule.trigger_names, ["disk-full"]);
    assert_eq!(rule.destination_names, ["pager"]);
    assert!(!rule.enabled());
}

#[tokio::test]
async fn a_rule_is_switched_off_with_one_key_and_on_again_with_another() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "5o").await;
    assert_shows(&screen, "✓ rule night disabled · U undoes it");
    assert!(!service.state().rules["night"].enabled());
    let screen = press(&mut console, "U").await;
    assert_shows(&screen, "✓ undone: rule night disabled");
    assert!(service.state().rules["night"].enabled());
    assert_shows(&press(&mut console, "U").await, "there is nothing to undo");
}

#[tokio::test]
async fn deleting_says_what_breaks_and_the_key_that_asked_does_not_answer() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "3d").await;
    assert_shows(&screen, "night, which is left without any trigger");
    press(&mut console, "d<Enter>").await;
    assert!(service.state().triggers.contains_key("disk-full"));
    let screen = press(&mut console, "dy").await;
    assert_shows(&screen, "trigger disk-full deleted");
    assert!(service.state().triggers.is_empty());
}

#[tokio::test]
async fn events_appear_as_they_happen_on_row_one_the_list_follows_and_elsewhere_it_stays() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2").await;
    assert!(console.shows("disk 39 is full").await);
    service.event(event(90, Severity::Critical, "fire in the rack", "db1"));
    assert!(console.shows("fire in the rack").await);
    let selected = |screen: &str| {
        let line = screen.lines().find(|line| line.starts_with('▶'));
        line.unwrap().to_owned()
    };
    let screen = press(&mut console, "").await;
    assert_shows(&selected(&screen), "fire in the rack");
    press(&mut console, "j").await;
    service.event(event(91, Severity::Critical, "fire in the hall", "db1"));
    assert!(console.shows("▲ 1 came, g shows them").await);
    let screen = press(&mut console, "").await;
    assert_shows(&selected(&screen), "disk 39 is full");
    assert!(!press(&mut console, "g").await.contains("came"));
}

#[tokio::test]
async fn an_open_event_shows_what_becomes_of_it() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2<Enter>").await;
    assert!(console.shows("disk 39 is full").await);
    service.event(event(39, Severity::Critical, "the disk is on fire", "db1"));
    assert!(console.shows("the disk is on fire").await);
}

#[tokio::test]
async fn a_list_held_still_counts_what_is_new() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2p").await;
    service.event(event(90, Severity::Critical, "fire in the rack", "db1"));
    assert!(console.shows("▮▮ 1 new").await);
    assert!(!console.screen().contains("fire in the rack"));
    let screen = press(&mut console, "p").await;
    assert_shows(&screen, "fire in the rack");
}

#[tokio::test]
async fn marked_events_are_changed_together_with_their_count_in_the_question() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "2<Space><Space><Space>c").await;
    assert_shows(&screen, "Close these 3 occurrences?");
    press(&mut console, "y").await;
    let state = service.state();
    assert_eq!(state.statuses.len(), 3);
    assert!(
        state
            .statuses
            .iter()
            .all(|item| item.status() == cloud::Status::Closed)
    );
}

#[tokio::test]
async fn an_event_is_acknowledged_and_annotated() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2<Enter>a").await;
    assert_shows(&console.screen(), "acknowledged");
    press(&mut console, "wlooking at it<Enter>").await;
    assert_eq!(service.state().notes[0].annotation, "looking at it");
}

#[tokio::test]
async fn a_filter_of_events_is_pushed_to_the_service() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2/severity>=error host=db1<Enter>").await;
    let last = service.state().searches.last().cloned().flatten().unwrap();
    let Some(v1::clause::Kind::And(and)) = last.kind else {
        panic!("not an and")
    };
    assert_eq!(and.clauses.len(), 2);
    let screen = press(&mut console, "/<C-u>severity>=<Enter>").await;
    assert_shows(&screen, "a value is missing after");
}

#[tokio::test]
async fn names_lead_from_rule_to_destination_to_its_deliveries_and_back() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "5<Enter><Tab><Tab><Tab><Enter>").await;
    assert_shows(&console.screen(), "Destinations › pager");
    press(&mut console, "<Tab><Enter>").await;
    assert_shows(&console.screen(), "/destination=pager");
    press(&mut console, "<Enter>").await;
    assert_shows(&console.screen(), "Deliveries › 01ARZ3NDEKTSV4RRFFQ69G5F99");
    press(&mut console, "<Esc><Esc>").await;
    assert_shows(&console.screen(), "Destinations › pager");
    press(&mut console, "]").await;
    assert_shows(&console.screen(), "/destination=pager");
}

#[tokio::test]
async fn a_text_that_is_refused_comes_back_with_the_errors_at_their_lines() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4/audit<Enter>").await;
    press(&mut console, "E").await;
    assert!(console.edit(|text| text.replace("https://audit", "ftp://audit")));
    press(&mut console, "y").await;
    let mut seen = String::new();
    assert!(console.edit(|text| {
        seen = text.to_owned();
        text.replace("ftp://audit", "https://audit2")
    }));
    assert_shows(&seen, "// ✗ type.webhook.url: must begin with http");
    press(&mut console, "y").await;
    let stored = service.state().destinations["audit"].clone();
    let Some(v1::destination_type::Type::Webhook(webhook)) = stored.r#type.unwrap().r#type else {
        panic!("another type");
    };
    assert_eq!(webhook.url, "https://audit2.example/in");
}

#[tokio::test]
async fn what_the_role_does_not_allow_is_refused_with_the_reason() {
    let service = stocked();
    service.state().role = v1::Role::Viewer.into();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "4d").await;
    assert_shows(&screen, "needs the role `editor`; this key is `viewer`");
    let screen = press(&mut console, "?delete").await;
    assert_shows(&screen, "needs the role");
}

#[tokio::test]
async fn a_console_for_reading_changes_nothing() {
    let service = stocked();
    let mut options = options(&service);
    options.read_only = true;
    let mut console = Headless::start(options, 80, 24);
    assert!(console.idle().await);
    for keys in ["2a", "2cy", "3dy", "5oy", "4ny"] {
        press(&mut console, keys).await;
        assert_shows(&console.screen(), "read-only");
    }
    assert!(service.state().statuses.is_empty());
    assert_eq!(service.state().triggers.len(), 1);
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_told_and_the_console_can_be_left() {
    let service = stocked();
    service.state().refuse_key = true;
    let mut console = console(&service, 80, 24).await;
    assert_shows(&console.screen(), "key not accepted: this key is not known");
    press(&mut console, "q").await;
    assert!(console.has_quit());
}

#[tokio::test]
async fn a_lost_service_is_told_survived_and_found_again() {
    let mut service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2").await;
    service.break_down();
    assert!(console.shows("not connected").await);
    // What was read stays, with its age; nothing can be changed; everything else works.
    assert!(console.shows("what you see is").await);
    assert_shows(&console.screen(), "disk 39 is full");
    let screen = press(&mut console, "c").await;
    assert_shows(&screen, "nothing can be changed now");
    press(&mut console, "4naway<Tab><Tab>https://x").await;
    assert_shows(&console.screen(), "nothing is lost");
    service.resume();
    service.event(event(91, Severity::Error, "while you were away", "db1"));
    assert!(console.shows("● connected").await);
    assert_shows(&console.screen(), "https://x");
    press(&mut console, "<Esc>y2").await;
    assert!(console.shows("while you were away").await);
}

#[tokio::test]
async fn a_console_can_be_left_at_once_whatever_the_link_does() {
    let mut service = stocked();
    service.break_down();
    let mut console = Headless::start(options(&service), 80, 24);
    let began = Instant::now();
    console.press("q").unwrap();
    assert!(console.has_quit());
    drop(console);
    assert!(began.elapsed() < Duration::from_millis(100));
}

#[tokio::test]
async fn pasted_text_never_runs_as_keys() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2").await;
    console.paste("cy\nq");
    assert!(console.idle().await);
    assert!(!console.has_quit());
    assert!(service.state().statuses.is_empty());
    assert_shows(&console.screen(), "/cy q");
}

#[tokio::test]
async fn a_new_client_has_its_key_shown_once() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "7nci<C-s>y").await;
    assert_shows(&screen, "bw_once-only");
    press(&mut console, "y").await;
    assert_eq!(console.copied(), ["bw_once-only"]);
    let screen = press(&mut console, "<Esc>").await;
    assert!(!screen.contains("bw_once-only"));
}

#[tokio::test]
async fn an_event_becomes_a_trigger() {
    let service = stocked();
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "2T").await;
    assert_shows(&screen, "dimensions.host");
    assert_shows(&screen, "disk-full");
    press(&mut console, "from-event<C-s>y").await;
    assert!(service.state().triggers.contains_key("from-event"));
}

#[tokio::test]
async fn the_palette_finds_objects_and_screens() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, ":pager<Enter>").await;
    assert_shows(&console.screen(), "Destinations › pager");
    press(&mut console, ":go deliv<Enter>").await;
    assert_shows(&console.screen(), "› Deliveries");
}

#[tokio::test]
async fn hostile_text_is_shown_and_never_acts() {
    let service = Service::start();
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}evil\u{200b}\ttab\nline 数据库 👩\u{200d}🚒";
    service.event(event(1, Severity::Error, hostile, "h\u{1b}[2J"));
    service.state().destinations.insert(
        "x\u{1b}[31m".to_owned(),
        v1::Destination {
            name: "x\u{1b}[31m".to_owned(),
            ..v1::Destination::default()
        },
    );
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

#[tokio::test]
async fn leaving_a_typed_filter_stays_on_the_list() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "4/pag<Enter>").await;
    assert!(!screen.contains("audit"), "{screen}");
    let screen = press(&mut console, "<Esc>").await;
    assert_shows(&screen, "audit");
    assert_shows(&screen, "› Destinations");
    assert_shows(&press(&mut console, "<Esc>").await, "› Overview");
}

/// Another client changes the rule while the form is open.
async fn clash(service: &Service) -> Headless {
    let mut console = console(service, 80, 24).await;
    press(&mut console, "5e").await;
    press(&mut console, "<Tab><Tab><Tab>mine<C-s>").await;
    {
        let mut state = service.state();
        let rule = state.rules.get_mut("night").unwrap();
        "theirs".clone_into(&mut rule.description);
        "2".clone_into(&mut rule.etag);
    }
    console.press("y").unwrap();
    assert!(
        console.shows("changed meanwhile").await,
        "{}",
        console.screen()
    );
    assert!(
        console.shows("[ back to editing ]").await,
        "{}",
        console.screen()
    );
    console
}

#[tokio::test]
async fn a_change_that_meets_another_shows_both_and_loses_neither() {
    let service = stocked();
    let mut console = clash(&service).await;
    let screen = console.screen();
    assert!(
        screen.contains("theirs") && screen.contains("mine"),
        "{screen}"
    );
    // Back to editing: what was typed is there.
    let screen = press(&mut console, "<Esc>").await;
    assert!(screen.contains("mine"), "{screen}");
    assert_eq!(service.state().rules["night"].description, "theirs");
    // Saving again shows what would change in theirs, and stores it.
    let screen = press(&mut console, "<C-s>").await;
    assert!(screen.contains("Change rule night?"), "{screen}");
    press(&mut console, "y").await;
    let stored = service.state().rules["night"].clone();
    assert_eq!(stored.message, "mine");
}

#[tokio::test]
async fn of_two_versions_theirs_can_be_taken_or_mine_be_put_over_it() {
    let service = stocked();
    let mut console = clash(&service).await;
    let screen = press(&mut console, "<Tab><Enter>").await;
    assert!(
        screen.contains("theirs") && !screen.contains("mine"),
        "{screen}"
    );

    let service = stocked();
    let mut console = clash(&service).await;
    assert_ne!(service.state().rules["night"].etag, "1");
    let screen = press(&mut console, "<Tab><Tab><Enter>").await;
    assert!(screen.contains("rule night changed"), "{screen}");
    let stored = service.state().rules["night"].clone();
    assert_eq!(stored.message, "mine");
}
