//! The form of a destination with its test bench: responses, requests, choosers and secrets.

use serde_json::json;

use super::{flows::assert_shows, *};

/// Opens a form for a new webhook `hook`, with the URL of this path of the receivers.
async fn form(service: &Service, size: (u16, u16), path: &str) -> Headless {
    let mut console = console(service, size.0, size.1).await;
    press(&mut console, "4").await;
    press(&mut console, "n").await;
    let url = format!("{}{path}", service.receivers);
    press(&mut console, &format!("hook<Tab><Tab>{url}")).await;
    console
}

#[tokio::test(flavor = "multi_thread")]
async fn second_test_shows_its_response_first_and_differences_in_one_line() {
    let service = Service::start().await;
    let mut console = form(&service, (140, 40), "/other").await;
    until(&mut console, "POST http").await;
    press(&mut console, "<C-t>").await;
    until(&mut console, "Response  ✗ 403").await;
    assert_shows(&console.screen_text(), "no such hook");
    // Repeat the same test. No difference is shown, although ids and times differ.
    press(&mut console, "<C-t>").await;
    until(&mut console, "test 2 of 2").await;
    let same = "= same request and response as test 1";
    assert_shows(&console.screen_text(), same);
    // The failure moved the focus to the bearer token, 12 fields below the URL.
    let back = "<S-Tab>".repeat(12) + &"<Backspace>".repeat("other".len());
    press(&mut console, &format!("{back}audit<C-t>")).await;
    until(&mut console, "Response  ✓ 403 → 200").await;
    let screen = console.screen_text();
    assert_shows(&screen, "test 3 of 3");
    assert_shows(&screen, "▸ differs from test 2: URL; different response");
    assert_shows(&screen, "│ taken");
    assert_shows(&screen, "Request  POST");
    assert!(screen.find("Response") < screen.find("Request"), "{screen}");
    assert!(!screen.contains("- http"), "{screen}");
    let screen = press(&mut console, "<A-d>").await;
    let [was, is] = ["/other", "/audit"].map(|path| format!("{}{path}", service.receivers));
    assert_shows(&screen, &format!("- {was}"));
    assert_shows(&screen, &format!("+ {is}"));
    let screen = press(&mut console, "<A-t>").await;
    assert_shows(&screen, "Response  ✗ 403");
    assert_shows(&screen, "test 2 of 3");
    assert_shows(&screen, same);
    // The request is that of the selected test.
    assert_shows(&screen, &format!("Request  POST {was}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn request_scrolls_with_keys_and_with_the_wheel() {
    let service = Service::start().await;
    let mut console = form(&service, (140, 30), "/audit").await;
    until(&mut console, "POST http").await;
    let screen = console.screen_text();
    assert_shows(&screen, "\"clear\": false");
    let below = |screen: &str| {
        let (_, rest) = screen.split_once('↓').unwrap_or_default();
        rest.split_whitespace()
            .next()
            .and_then(|it| it.parse::<usize>().ok())
    };
    let first = below(&screen).unwrap();
    let screen = press(&mut console, "<A-Down>").await;
    assert!(!screen.contains("\"clear\": false"), "{screen}");
    assert_eq!(below(&screen), Some(first - 3));
    console.scroll_at(false, 100, 20);
    assert_eq!(below(&console.screen_text()), Some(first));
    for _ in 0..first {
        console.scroll_at(true, 100, 20);
    }
    let screen = console.screen_text();
    assert_eq!(below(&screen), None, "{screen}");
    assert_shows(&screen, "\"trigger\": null");
    // Over the form, the wheel moves between the form's fields.
    console.scroll_at(true, 5, 10);
    assert_shows(&console.screen_text(), "▶ Secret URL");
}

#[tokio::test(flavor = "multi_thread")]
async fn request_pane_cycles_through_body_headers_and_curl() {
    let service = Service::start().await;
    let mut console = form(&service, (140, 40), "/audit").await;
    until(&mut console, "POST http").await;
    assert_shows(&console.screen_text(), "[body] headers curl");
    let screen = press(&mut console, "<A-r>").await;
    assert_shows(&screen, "body [headers] curl");
    assert_shows(&screen, "content-type: application/json");
    let screen = press(&mut console, "<A-r>").await;
    assert_shows(&screen, "body headers [curl]");
    assert_shows(&screen, "curl -X POST");
    assert_shows(&press(&mut console, "<A-r>").await, "\"clear\": false");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_switches_the_single_pane_beside_the_form() {
    let service = Service::start().await;
    let mut console = form(&service, (100, 30), "/audit").await;
    until(&mut console, "Request  POST").await;
    assert!(
        !console.screen_text().contains("Response"),
        "{}",
        console.screen_text()
    );
    press(&mut console, "<C-t>").await;
    until(&mut console, "Response  ✓ 200").await;
    let screen = console.screen_text();
    assert!(!screen.contains("Request  POST"), "{screen}");
    assert_shows(&screen, "▶ URL");
    let screen = press(&mut console, "<A-b>").await;
    assert_shows(&screen, "Request  POST");
    assert_shows(&press(&mut console, "<A-b>").await, "Response  ✓ 200");
}

#[tokio::test(flavor = "multi_thread")]
async fn narrow_screen_shows_response_request_and_form_in_turn() {
    let service = Service::start().await;
    let mut console = form(&service, (80, 24), "/audit").await;
    press(&mut console, "<C-t>").await;
    until(&mut console, "tested just now ✓ 200").await;
    let screen = press(&mut console, "<A-b>").await;
    assert_shows(&screen, "Response  ✓ 200");
    assert!(!screen.contains("Secret URL"), "{screen}");
    press(&mut console, "<A-b>").await;
    until(&mut console, "Request  POST").await;
    assert_shows(&press(&mut console, "<A-b>").await, "Secret URL");
}

#[tokio::test(flavor = "multi_thread")]
async fn chooser_shows_all_types_and_typed_text_filters_it() {
    let service = Service::start().await;
    for size in [(80, 24), (100, 30), (140, 40)] {
        let mut console = form(&service, size, "/audit").await;
        assert_shows(&console.screen_text(), "‹ webhook › +");
        let screen = press(&mut console, "<S-Tab>").await;
        for kind in [
            "webhook",
            "email",
            "slack",
            "msteams",
            "pagerduty",
            "servicenow",
            "event",
        ] {
            assert_shows(&screen, kind);
        }
        let screen = press(&mut console, "sla").await;
        assert_shows(&screen, "search: sla");
        let screen = press(&mut console, "<Enter>").await;
        assert_shows(&screen, "‹ slack ›");
        // Without a match, the chooser stays open.
        assert_shows(&press(&mut console, "zz<Enter>").await, "nothing found");
        assert_shows(&press(&mut console, "<Esc>").await, "‹ slack ›");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_without_effect_in_a_form_are_explained() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "5").await;
    let screen = press(&mut console, "n<Tab>y").await;
    assert_shows(&screen, "Space switches");
    assert_shows(&press(&mut console, "<C-y>").await, "^Y does nothing here");
    console.paste("yes");
    assert_shows(&console.screen_text(), "Space switches");
    let screen = press(&mut console, "<Tab>disk").await;
    assert_shows(&screen, "search: disk");
    assert_shows(&screen, "[ ] disk-full");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_json_payload_announces_the_standard_document() {
    let service = Service::start().await;
    let mut console = form(&service, (140, 40), "/audit").await;
    press(&mut console, "<Tab><Tab><Tab><Tab>{\"a\": ").await;
    until(&mut console, "is replaced by the standard document").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn incident_opened_by_a_test_is_confirmed_once() {
    let service = Service::start().await;
    let mut console = form(&service, (140, 40), "").await;
    let keys = "<S-Tab>pager<Enter><Tab>0123456789abcdef0123456789abcdef";
    press(&mut console, keys).await;
    let screen = press(&mut console, "<C-t>").await;
    assert_shows(&screen, "Test hook with a real message?");
    assert_shows(&screen, "Opens an incident in PagerDuty.");
    press(&mut console, "<Esc>").await;
    assert_shows(&console.screen_text(), "not tested yet");
    press(&mut console, "<C-t>").await;
    press(&mut console, "y").await;
    until(&mut console, "Response  ✗").await;
    press(&mut console, "<C-t>").await;
    until(&mut console, "test 2 of 2").await;
}

const SECRETS: [&str; 5] = ["qzxv1", "qzxv2", "qzxv3", "qzxv4", "qzxv5"];

/// Presses keys one by one, and draws a frame after each. Every frame is searched for secrets.
async fn press_and_draw(console: &mut Headless, keys: &str) {
    let mut rest = keys;
    while !rest.is_empty() {
        let end = if rest.starts_with('<') {
            rest.find('>').unwrap() + 1
        } else {
            rest.chars().next().unwrap().len_utf8()
        };
        let (key, after) = rest.split_at(end);
        press(console, key).await;
        rest = after;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headless_console_detects_a_frame_with_a_secret() {
    let service = Service::start().await;
    let planted = std::iter::once(SECRETS[0].to_owned());
    service.real.send(Severity::Error, planted).await;
    let mut console = Headless::start(service.options(), 120, 24);
    let drawn = std::panic::AssertUnwindSafe(async {
        press(&mut console, "2").await;
        until(&mut console, SECRETS[0]).await;
    });
    let failure = futures_util::FutureExt::catch_unwind(drawn).await;
    let failure = failure.expect_err("the frame contains a secret");
    let message = failure.downcast_ref::<String>().unwrap();
    assert!(message.contains("is drawn"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_secrets_never_appear_on_the_screen() {
    let service = Service::start().await;
    let [header, bearer, url, password, other] = SECRETS;
    for size in [(80, 24), (100, 30), (140, 40)] {
        let name = format!("hook-{}", size.0);
        let mut console = console(&service, size.0, size.1).await;
        press(&mut console, "4").await;
        press(&mut console, "n").await;
        let receiver = format!("{}/audit", service.receivers);
        press(&mut console, &format!("{name}<Tab><Tab><Tab>")).await;
        press_and_draw(&mut console, &format!("{receiver}/{url}<Tab><Tab>")).await;
        press_and_draw(&mut console, &format!("authorization-x {header}<Left>")).await;
        let line = format!("<C-u>x-key: {header}<Tab><Tab>");
        press_and_draw(&mut console, &line).await;
        // Move to the bearer token, in the collapsed section about authentication.
        press_and_draw(&mut console, "<Tab><Tab><Tab><Right><Tab><Tab><Tab>").await;
        let fields = format!("{password}<C-u><Tab>{bearer}<C-t>");
        press_and_draw(&mut console, &fields).await;
        until(&mut console, "tested just now").await;
        press_and_draw(&mut console, "<A-b><A-r><A-r><A-b><A-r><A-d><A-t><F1>").await;
        press_and_draw(&mut console, "<Esc><C-s>").await;
        until(&mut console, &format!("Create destination {name}?")).await;
        press_and_draw(&mut console, "<Down><Down><Down><Down><Down>y").await;
        until(&mut console, "created").await;
        // An edit conflict shows both versions.
        let to_token = "<Tab>".repeat(13);
        press_and_draw(&mut console, &format!("e{to_token}<C-u>{other}")).await;
        let stored = service.stored("Destination").await[&name].clone();
        let mut changed = stored.clone();
        changed["description"] = json!("changed");
        let request = json!({"destination": changed});
        let real = &service.real;
        real.call("DestinationService", "UpdateDestination", &request)
            .await;
        press_and_draw(&mut console, "<C-s>").await;
        until(&mut console, &format!("Change destination {name}?")).await;
        press_and_draw(&mut console, "y").await;
        until(&mut console, "changed concurrently").await;
        press_and_draw(&mut console, "<Down><Esc><Esc>y").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_a_disabled_rule_suggests_enabling_it() {
    let service = Service::start().await;
    service.destination("audit").await;
    service.events(0..1).await;
    let disks = json!({"contains": {"field": "summary", "value": "disk"}});
    let disks = json!({"event": {"query": {"clause": disks}}});
    let trigger = json!({"name": "disk-full", "type": disks});
    service.create("Trigger", &trigger).await;
    let mut console = console(&service, 100, 30).await;
    press(&mut console, "5").await;
    let fields = "<Tab><Space><Enter><Tab><Space><Space><Enter>";
    press(&mut console, &format!("noff<Tab>{fields}<C-s>")).await;
    press(&mut console, "y").await;
    until(&mut console, "rule off created; next: o enables it").await;
    press(&mut console, "5").await;
    press(&mut console, &format!("non<Tab><Space>{fields}<C-s>")).await;
    press(&mut console, "y").await;
    until(&mut console, "rule on created").await;
    let screen = console.screen_text();
    assert!(!screen.contains("enables it"), "{screen}");
    assert_eq!(service.stored("Rule").await["on"]["enabled"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn form_edited_as_text_is_confirmed_with_its_changes() {
    let service = Service::stocked().await;
    let mut console = console(&service, 100, 30).await;
    press(&mut console, "5").await;
    press(&mut console, "e").await;
    press(&mut console, "<C-e>").await;
    let message = |text: &str| format!("\"message\": \"{text}\"");
    assert!(console.edit(|text| text.replace(&message(""), &message("at night"))));
    until(&mut console, "at night").await;
    press(&mut console, "<C-s>").await;
    let screen = console.screen_text();
    assert_shows(&screen, "Message  none → at night");
}
