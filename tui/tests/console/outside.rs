//! Links of an event, opened in the browser, and custom commands with their output.

use bellwether_proto::json as wire;
use bellwether_tui::{CommandSetting, Keymap};
use serde_json::json;

use super::{flows::assert_shows, *};

/// Sends an event with this metadata.
async fn send(service: &Service, host: &str, metadata: &serde_json::Value) {
    let event = json!({
        "name": "disk", "summary": format!("the disk of {host} is full"),
        "severity": "SEVERITY_ERROR", "dimensions": {"host": host}, "metadataFields": metadata,
    });
    let event = wire::from_json(event.to_string().as_bytes());
    service.send(vec![event.unwrap()]).await;
}

async fn with_browser(service: &Service) -> Headless {
    let mut options = service.options();
    options.opener = Some("browser".to_owned());
    let mut console = Headless::start(options, 120, 36);
    assert!(console.wait_until_idle().await);
    console
}

#[tokio::test(flavor = "multi_thread")]
async fn single_link_opens_at_once_and_several_are_listed() {
    let service = Service::start().await;
    let annotations = json!({"runbook_url": "https://runbooks/disk"});
    send(&service, "one", &json!({"annotations": annotations})).await;
    let mut console = with_browser(&service).await;
    press(&mut console, "2").await;
    let screen = press(&mut console, "L").await;
    assert_shows(&screen, "opening https://runbooks/disk");
    assert_eq!(console.take_actions(), ["open https://runbooks/disk"]);

    let both = json!({"annotations": annotations, "generatorURL": "http://prometheus/graph?a=1&b"});
    send(&service, "two", &both).await;
    until(&mut console, "two").await;
    press(&mut console, "gg<Enter>").await;
    until(&mut console, "generatorURL").await;
    let screen = press(&mut console, "L").await;
    assert_shows(&screen, "1  runbook");
    assert_shows(&screen, "https://runbooks/disk");
    assert_shows(&screen, "2  source");
    press(&mut console, "2").await;
    assert_eq!(
        console.take_actions(),
        ["open http://prometheus/graph?a=1&b"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn link_is_copied_without_a_browser() {
    let service = Service::start().await;
    send(&service, "one", &json!({"wiki": "see https://wiki/disk."})).await;
    send(&service, "two", &json!({"wiki": "file:///etc/passwd"})).await;
    let mut console = console(&service, 120, 36).await;
    press(&mut console, "2/host=one<Enter>").await;
    until(&mut console, "1/1").await;
    let screen = press(&mut console, "L").await;
    assert_shows(&screen, "copied https://wiki/disk");
    assert_eq!(console.clipboard(), ["https://wiki/disk"]);
    press(&mut console, "<Esc>/host=two<Enter>").await;
    until(&mut console, "1/1").await;
    let screen = press(&mut console, "L").await;
    assert_shows(&screen, "this event has no links");
}

async fn with_command(service: &Service) -> Headless {
    let words = ["ssh", "--", "{dimensions.host}", "uptime"];
    let setting = CommandSetting {
        name: "uptime".to_owned(),
        key: "X".to_owned(),
        run: words.map(str::to_owned).into(),
        ..CommandSetting::default()
    };
    let mut options = service.options();
    options.keys = Keymap::default().with_commands(&[setting]).unwrap();
    let mut console = Headless::start(options, 120, 36);
    assert!(console.wait_until_idle().await);
    console
}

#[tokio::test(flavor = "multi_thread")]
async fn command_is_confirmed_once_and_its_output_shown() {
    let service = Service::start().await;
    send(&service, "db-1; reboot", &json!({})).await;
    let mut console = with_command(&service).await;
    press(&mut console, "2").await;
    let screen = press(&mut console, "X").await;
    assert_shows(&screen, "Run uptime?");
    assert_shows(&screen, "ssh -- 'db-1; reboot' uptime");
    // The default is No.
    press(&mut console, "<Enter>").await;
    assert_eq!(console.take_actions(), Vec::<String>::new());
    press(&mut console, "X").await;
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "running · Esc stops it");
    let run = r#"run ["ssh", "--", "db-1; reboot", "uptime"]"#;
    assert_eq!(console.take_actions(), [run]);
    console.end_program("up 3 days\n\x1b[31mload\t0.1\n");
    let screen = console.screen_text();
    assert_shows(&screen, "up 3 days");
    assert_shows(&screen, "exit status: 0");
    press(&mut console, "<Esc>").await;
    press(&mut console, "X").await;
    assert_eq!(console.take_actions(), [run]);
    let screen = press(&mut console, "<Esc>").await;
    assert_shows(&screen, "stopped the command");
    assert_eq!(console.take_actions(), ["stop"]);
    let screen = press(&mut console, "?run").await;
    assert_shows(&screen, "run uptime");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_with_an_unsafe_field_is_not_run() {
    let service = Service::start().await;
    send(&service, "-oProxyCommand=x", &json!({})).await;
    let mut console = with_command(&service).await;
    press(&mut console, "2").await;
    let screen = press(&mut console, "X").await;
    assert_shows(&screen, "uptime not run: `dimensions.host` begins with `-`");
    assert_eq!(console.take_actions(), Vec::<String>::new());
}
