//! Screens during an incident: distinct signs, counts of filtered rows in tabs, columns, and key
//! hints that work.

use serde_json::{Value, json};

use super::{flows::assert_shows, waiting::with_rule, *};
use crate::backend::Real;

fn line(screen: &str, text: &str) -> String {
    let found = screen.lines().find(|line| line.contains(text));
    found.map(str::to_owned).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn silenced_delayed_and_inhibited_events_have_distinct_signs() {
    // The rule's delay of an hour holds all messages.
    let real = with_rule(&json!({"delay": "3600s"})).await;
    let inhibition = json!({
        "name": "root",
        "enabled": true,
        "sourceFilter": "name=host-down",
        "targetFilter": "name=disk",
        "equal": [{"source": "host"}],
    });
    let request = json!({"inhibition": inhibition});
    real.call("InhibitionService", "CreateInhibition", &request)
        .await;
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let silence = json!({
        "name": "patching",
        "reason": "patching",
        "filter": "host=db-8",
        "span": {"endTime": end.to_string()},
    });
    let request = json!({"silence": silence});
    real.call("SilenceService", "CreateSilence", &request).await;
    let down = std::iter::once("db-9".to_owned());
    real.send_named("host-down", Severity::Error, down).await;
    let hosts = ["db-7", "db-8", "db-9"].map(str::to_owned);
    for host in hosts {
        real.send(Severity::Error, std::iter::once(host)).await;
    }
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "host-down").await;
    let screen = console.screen_text();
    for (host, status) in [
        ("db-7", " held "),
        ("db-8", " silenced "),
        ("db-9", " inhibited "),
    ] {
        let rows = screen.lines().filter(|line| line.contains(" disk "));
        let mut rows = rows.filter(|line| line.contains(host));
        let row = rows.next().unwrap_or_default();
        assert!(row.contains(status), "{host}: {row}\n{screen}");
    }
}

async fn with_dead_letters() -> Real {
    let real = with_rule(&json!({})).await;
    let other = json!({
        "name": "chat",
        "type": {"webhook": {"url": "https://chat.invalid/"}},
        "delivery": {"maxAttempts": 1},
    });
    let request = json!({"destination": other});
    real.call("DestinationService", "CreateDestination", &request)
        .await;
    let rule = json!({
        "name": "talk",
        "enabled": true,
        "triggerNames": ["disks"],
        "destinationNames": ["chat"],
    });
    let request = json!({"rule": rule});
    real.call("RuleService", "CreateRule", &request).await;
    real.send(Severity::Critical, std::iter::once("db-1".to_owned()))
        .await;
    real
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_tabs_and_title_count_filtered_deliveries() {
    let real = with_dead_letters().await;
    let mut console = real.console().await;
    press(&mut console, "6").await;
    let request = json!({"withCounts": true, "pageSize": 1});
    let counts = loop {
        let found = real
            .call("DeliveryService", "ListDeliveries", &request)
            .await;
        let counts = found["counts"].clone();
        if counts["waitingCount"] == 0 && counts["deadCount"] != 0 {
            break counts;
        }
        console.wait_until_idle().await;
    };
    let all = counts["deadCount"].as_i64().unwrap();
    press(&mut console, "R").await;
    until(&mut console, &format!("[all {all}]")).await;
    press(&mut console, "/destination=chat<Enter>").await;
    until(&mut console, "[all 1]").await;
    let screen = console.screen_text();
    assert_shows(&screen, "dead 1 ");
    assert_shows(&screen, "▲ disk db-1");
    press(&mut console, "<Tab><Tab>").await;
    until(&mut console, "[dead 1]").await;
    assert_shows(
        &console.screen_text(),
        "/state=dead resent=false destination=chat",
    );
    // A retried delivery is marked as such and fails again.
    press(&mut console, "r").await;
    press(&mut console, "y").await;
    press(&mut console, "<Tab><Tab><Tab>").await;
    until(&mut console, "[all 2]").await;
    until(&mut console, "resent ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn column_choice_is_retained() {
    let real = Real::start().await;
    real.send(Severity::Error, std::iter::once("db-1".to_owned()))
        .await;
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "db-1").await;
    let head = |screen: &str| line(screen, "Summary");
    let before = head(&console.screen_text());
    assert!(
        before.contains("Host") && !before.contains("What"),
        "{before}"
    );
    // Replace the host column with one that shows all dimensions.
    let screen = press(&mut console, "K").await;
    assert_shows(&screen, "Columns of Events");
    press(&mut console, "host <C-u>what <Enter>").await;
    for keys in ["R", "42", "/disk<Enter>"] {
        press(&mut console, keys).await;
        until(&mut console, "db-1").await;
        let after = head(&console.screen_text());
        let is_remembered = !after.contains("Host") && after.contains("What");
        assert!(is_remembered, "{keys}: {}", console.screen_text());
    }
    assert_shows(&console.screen_text(), "host=db-1");
    press(&mut console, ":columns<Enter>").await;
    assert_shows(&console.screen_text(), "Columns of Events");
}

fn hints(screen: &str) -> Vec<(String, String)> {
    let foot = screen.lines().rfind(|line| !line.trim().is_empty());
    let parts = foot.unwrap_or_default().trim().split("  ");
    let parts = parts.filter_map(|part| part.trim().split_once(' '));
    parts
        .map(|(key, name)| (key.to_owned(), name.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_in_the_footer_has_an_effect() {
    let service = Service::stocked().await;
    let screens = [
        "1",
        "2",
        "2<Enter>",
        "2b<Down><Enter>",
        "3",
        "3<Enter>",
        "4",
        "4<Enter>",
        "5",
        "5<Enter>",
        "6",
        "6<Enter>",
        "7",
        "8",
        "9",
        "0",
        "<A-0>",
        "<A-9>",
        "<A-8>",
        "<A-7>",
        "<A-6>",
        "<A-5>",
        "4tq",
    ];
    let mut idle = Vec::new();
    for keys in screens {
        let mut console = console(&service, 120, 36).await;
        let before = press(&mut console, keys).await;
        let offered = hints(&before);
        assert!(offered.len() > 1, "{keys}\n{before}");
        for (key, name) in offered {
            // Skip the editor, for which there is no terminal here.
            if name == "quit" || name == "as text" {
                continue;
            }
            let key = match key.as_str() {
                "Enter" | "Tab" | "Esc" | "Space" => format!("<{key}>"),
                other => other.replace('^', "<C-") + if other.starts_with('^') { ">" } else { "" },
            };
            let mut console = self::console(&service, 120, 36).await;
            press(&mut console, keys).await;
            // The first line is skipped because it shows the time.
            let body = |console: &mut Headless| console.buffer().content[120..].to_vec();
            let before = body(&mut console);
            let after = press(&mut console, &key).await;
            let is_other = before != body(&mut console);
            if !is_other {
                idle.push(format!(
                    "{keys} {key} ({name})
{after}"
                ));
            }
        }
    }
    assert!(idle.is_empty(), "{}", idle.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_a_silence_keeps_filter_and_cursor() {
    let real = Real::start().await;
    for host in ["db-1", "db-2", "web-1"] {
        real.send(Severity::Error, std::iter::once(host.to_owned()))
            .await;
    }
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "web-1").await;
    press(&mut console, "/db-<Enter>").await;
    until(&mut console, "1/2").await;
    let left = press(&mut console, "j").await;
    assert_shows(&left, "2/2");
    press(&mut console, "4").await;
    press(&mut console, "2").await;
    until(&mut console, "2/2").await;
    assert_shows(&console.screen_text(), "/db-");
    // Typing replaces the old filter.
    press(&mut console, "/web<Enter>").await;
    until(&mut console, "1/1").await;
    // The dialog shows what the silence covers before it is created.
    press(&mut console, ":silence host=db-9 90m<Enter>").await;
    until(&mut console, "covers 0 open events now").await;
    until(
        &mut console,
        "no open event has host db-9; did you mean db-",
    )
    .await;
    press(&mut console, "<Esc><Esc>").await;
    press(&mut console, ":silence host=db-1 90m<Enter>").await;
    until(&mut console, "covers 1 open event now").await;
    let screen = press(&mut console, "<Esc>r").await;
    assert_shows(&screen, "Enter accepts the reason");
    press(&mut console, "new disks<Enter>").await;
    until(&mut console, "reason: new disks").await;
    press(&mut console, "o90m<Enter>").await;
    until(&mut console, "silenced host=db-1 until").await;
    let found: Value = real
        .call("SilenceService", "ListSilences", &json!({}))
        .await;
    let [silence] = &found["silences"].as_array().unwrap()[..] else {
        panic!("{found}");
    };
    assert_eq!(silence["filter"], "host=db-1", "{found}");
    assert_eq!(silence["reason"], "new disks", "{found}");
    let name = silence["name"].as_str().unwrap();
    let time = name.strip_prefix("db-1-").unwrap_or_default();
    assert!(time.len() == 4 && time.parse::<u16>().is_ok(), "{name}");
    // Every row that the silence covers is marked, and no other.
    press(&mut console, "/<C-u><Enter>").await;
    until(&mut console, "web-1").await;
    until(&mut console, "silenced  ").await;
    for line in console
        .screen_text()
        .lines()
        .filter(|it| it.contains("the disk of"))
    {
        let is_marked = line.contains(" silenced ");
        assert_eq!(is_marked, line.contains("disk of db-1 "), "{line}");
    }
}
