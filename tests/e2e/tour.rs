//! A new operator's complete tour of the console, from an empty service to the message about a
//! closing. The screens of the tour make up the document `docs/console/tour.md`.

mod guide;
mod page;

use bellwether_tests::{eventually::eventually, receiver::Received};

use self::guide::Guide;
use crate::samples;

const ENTER: &str = "\r";
const TAB: &str = "\t";
const ESC: &str = "\x1b";
const TEST: &str = "\x14";
const SAVE: &str = "\x13";

#[test]
fn console_tour_from_empty_service_to_closing_message() {
    let [small, large] = std::thread::scope(|scope| {
        let walks = [(80, 24), (100, 30)].map(|(columns, rows)| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(journey(columns, rows))
            })
        });
        walks.map(|walk| walk.join().unwrap())
    });
    page::document(&small, &large);
}

async fn journey(columns: u16, rows: u16) -> Vec<page::Page> {
    let mut guide = Guide::start(columns, rows).await;
    destination_is_tested_and_saved(&mut guide).await;
    trigger_is_created_from_a_real_event(&mut guide).await;
    rule_is_previewed_and_enabled(&mut guide);
    next_event_is_notified_and_explained(&mut guide).await;
    closing_is_notified_too(&mut guide).await;
    guide.leave()
}

async fn destination_is_tested_and_saved(guide: &mut Guide) {
    guide.sees(&["● connected", "│events 0│──▶", "· Add a destination"]);
    guide.page(
        "A new service",
        "The service is empty. The overview draws the path from events to messages, and lists the \
         first steps; `Enter` starts the next one.",
    );

    let hook = guide.receiver.url("/hook");
    guide.press(ENTER).sees(&["New destination"]);
    guide.press("on-call").press(TAB).press(TAB).press(&hook);
    guide.sees(&["on-call", &hook, "Valid"]);
    guide.page(
        "A destination",
        "A webhook requires a name and a URL. The service validates the form while you type; the \
         destination is not stored yet.",
    );

    guide.press(TEST).sees(&["tested just now ✓"]);
    assert_eq!(guide.receiver.received().len(), 1, "one test, one message");
    let stored = guide.rest().get("/v1/notification/destinations").await.ok();
    assert_eq!(stored["totalSize"], 0, "{stored}");
    guide.page(
        "Tested before it is saved",
        "`Ctrl-T` in the form sends a real message; the response is next to the form. `Alt-b` switches to \
         the request; with 120 columns, both are shown, and below 100, each replaces the form.",
    );

    guide
        .press(SAVE)
        .sees(&["Create destination on-call?", "[ No ]"]);
    guide.page(
        "What will change",
        "Permanent changes require confirmation. The default answer is No; `y` confirms.",
    );

    guide
        .press("y")
        .sees(&["✓ destination on-call created; next: send an event"]);
    guide.page(
        "Saved",
        "The list shows the destination with its health, and the line below suggests the next \
         step.",
    );
}

async fn trigger_is_created_from_a_real_event(guide: &mut Guide) {
    guide
        .press("2")
        .sees(&["No events here yet", "curl http://127.0.0.1:"]);
    guide.page(
        "Where events come from",
        "A complete command with the address and key of this service; `y` copies it.",
    );
    let address = guide.rest_address();
    guide.press("y").sees(&["copied the command"]);
    let copied = guide.copied();
    assert!(
        copied.starts_with(&format!("curl {address}/v1/data-receiver/events -H")),
        "{copied}"
    );

    guide.happens("SEVERITY_ERROR", "disk is full").await;
    guide.sees(&["1/1", "disk is full"]).press("gg");
    guide.page(
        "An event",
        "An event appears as soon as the service has accepted it.",
    );

    guide.press("T").sees(&["New trigger", "dimensions.host"]);
    guide.press("disk-full").sees(&["disk-full", "Valid"]);
    guide.page(
        "A trigger from the event",
        "`T` starts a trigger with the event's name and dimensions as its query. Add, negate and \
         remove conditions here; field names are completed.",
    );

    guide
        .press(TEST)
        .sees(&["would have matched 1 occurrence in the last 24 h"]);
    guide.page(
        "Tried on stored events",
        "Before you save the trigger, this page lists the stored events that it would have \
         matched.",
    );

    guide.press(ESC).sees(&["New trigger", "unsaved"]);
    guide.press(SAVE).sees(&["Create trigger disk-full?"]);
    guide
        .press("y")
        .sees(&["✓ trigger disk-full created; next: a rule", "1/1"]);
}

fn rule_is_previewed_and_enabled(guide: &mut Guide) {
    guide
        .press("5")
        .sees(&["No rules yet"])
        .press("n")
        .sees(&["New rule"]);
    guide.press("tell-us").press(TAB).press(TAB).press(ENTER);
    guide
        .sees(&["[ ] disk-full"])
        .press(" ")
        .press(ENTER)
        .press(TAB)
        .press(ENTER);
    guide
        .sees(&["[ ] on-call"])
        .press(" ")
        .press(ENTER)
        .press(TAB);
    guide
        .press("{{event.summary}} on {{event.dimensions.host}}")
        .press(TAB)
        .press(" ");
    guide.sees(&["[x] yes", "Valid"]);
    guide.page(
        "A rule",
        "A rule connects triggers to destinations with a message. With updates enabled, receivers \
         of the opening also get the closing.",
    );

    guide
        .press(TEST)
        .sees(&["Preview of the unsaved tell-us", "with a sample event"]);
    guide
        .press("v")
        .sees(&["Test with which event?", "disk is full"]);
    guide.page(
        "Choose an event for the preview",
        "`v` uses a stored event instead of the sample.",
    );
    guide
        .press(ENTER)
        .sees(&["message          disk is full on db-1"]);
    guide.page(
        "The message before it is sent",
        "The exact message for each destination.",
    );

    guide.press(ESC).sees(&["New rule", "unsaved"]);
    guide.press(SAVE).sees(&["Create rule tell-us?"]);
    guide
        .press("y")
        .sees(&["✓ rule tell-us created; next: o enables it"]);
    guide
        .press("o")
        .sees(&["✓ rule tell-us enabled", "U undoes it"]);
    guide.page(
        "Enabled",
        "A rule notifies only while it is enabled. Reversible changes need no confirmation: `U` undoes them.",
    );
    assert_eq!(
        guide.receiver.received().len(),
        1,
        "no message has been sent so far"
    );
}

async fn next_event_is_notified_and_explained(guide: &mut Guide) {
    guide.happens("SEVERITY_CRITICAL", "disk is gone").await;
    let message = guide.is_notified(2).await;
    guide.all_has_ended().await;
    assert_eq!(message.json()["rule"]["message"], "disk is gone on db-1");
    assert_eq!(message.json()["clear"], false);

    guide.press("2").sees(&["disk is gone"]).press("x");
    guide.sees(&[
        "[Explain]",
        "✓ tell-us  decided to notify",
        "delivery to on-call  delivered",
    ]);
    guide.page(
        "Why it notified",
        "The next event matched, and the receiver has the message. `x` on the event explains every \
         rule: each condition with the actual value, each hold, each delivery and attempt.",
    );

    guide.press("6").sees(&["Decided", "1/2"]).press(ENTER);
    guide.sees(&["Deliveries ›", "status 200"]);
    guide.page(
        "Attempts",
        "Every attempt of every delivery with request and response; secrets are masked.",
    );
}

async fn closing_is_notified_too(guide: &mut Guide) {
    guide.press("2").sees(&["disk is gone"]).press("a");
    guide.sees(&["✓ acknowledged"]);
    let message = guide.is_notified(3).await;
    assert_eq!(message.json()["event"]["acknowledged"], true);

    guide
        .press("c")
        .sees(&["Close this occurrence?", "disk is gone"]);
    guide.page("Closed", "`a` acknowledges the event, `c` closes it.");
    guide.press("y").sees(&["✓ closed", "No open events"]);
    let message = guide.is_notified(4).await;
    assert_eq!(message.json()["clear"], true);
    assert_eq!(message.json()["event"]["status"], 3);

    guide.all_has_ended().await;
    guide.press("6").sees(&["3/4", "update"]);
    guide.page(
        "Deliveries",
        "The test, the opening, and two updates: acknowledged and closed.",
    );
}

impl Guide {
    /// Sends an event about the disk over REST, as an application would.
    async fn happens(&mut self, severity: &str, summary: &str) {
        let event = samples::event("disk", "db-1", severity, summary);
        let answer = self
            .rest()
            .post("/v1/data-receiver/events", &samples::events(&[event]))
            .await;
        assert_eq!(answer.ok()["succeeded"], 1);
    }

    async fn all_has_ended(&mut self) {
        let rest = self.rest();
        eventually("every delivery to end", async || {
            let list = rest.get("/v1/notification/deliveries").await.ok();
            let rows = list["deliveries"].as_array().cloned().unwrap_or_default();
            rows.iter()
                .all(|row| row["endTime"].is_string())
                .then_some(())
        })
        .await;
    }

    /// Waits until the receiver has `count` messages, and returns the last one.
    async fn is_notified(&mut self, count: usize) -> Received {
        eventually("the message", async || {
            let mut received = self.receiver.received();
            (received.len() == count).then(|| received.pop().expect("there are some"))
        })
        .await
    }
}
