//! The whole journey of a new operator in the console alone: from a service that holds nothing to a
//! message that says that it is over. Its screens are the document `docs/console/tour.md`.

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
fn from_a_service_that_holds_nothing_to_a_message_that_says_that_it_is_over() {
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
    a_destination_is_tested_and_saved(&mut guide).await;
    a_trigger_is_made_of_a_real_event(&mut guide).await;
    a_rule_is_previewed_and_enabled(&mut guide);
    the_next_event_is_told_of_and_explained(&mut guide).await;
    its_end_is_told_as_well(&mut guide).await;
    guide.leave()
}

async fn a_destination_is_tested_and_saved(guide: &mut Guide) {
    guide.sees(&["● connected", "First steps", "→ Add a destination"]);
    guide.page(
        "A new service",
        "Nothing is there yet. The overview says what there is to do, and `Enter` begins with the \
         first of it.",
    );

    let hook = guide.receiver.url("/hook");
    guide.press(ENTER).press(ENTER).sees(&["New destination"]);
    guide.press("on-call").press(TAB).press(TAB).press(&hook);
    guide.sees(&["on-call", &hook, "the service finds nothing wrong"]);
    guide.page(
        "A destination",
        "A name and an address are enough for a webhook. The service checks what is typed in each \
         pause; nothing is stored yet.",
    );

    guide.press(TEST).sees(&["DELIVERED", "200 OK"]);
    assert_eq!(guide.receiver.received().len(), 1, "one test, one message");
    let stored = guide.rest().get("/v1/notification/destinations").await.ok();
    assert_eq!(stored["totalSize"], 0, "{stored}");
    guide.page(
        "Tested before it is saved",
        "`Ctrl-T` in the form sends a real message. The verdict stands first, then everything that \
         was sent and answered. `Esc` leads back to the form, where all is as it was typed.",
    );

    guide.press(ESC).sees(&["New destination", &hook]);
    guide
        .press(SAVE)
        .sees(&["Create destination on-call?", "[ No ]"]);
    guide.page(
        "What will change",
        "Nothing is changed for good without this question. Its answer is No until somebody says `y`.",
    );

    guide
        .press("y")
        .sees(&["✓ destination on-call created; next: send an event"]);
    guide.page(
        "Saved",
        "The list shows it with its health, and the line below says what comes next.",
    );
}

async fn a_trigger_is_made_of_a_real_event(guide: &mut Guide) {
    guide
        .press("2")
        .sees(&["No events here yet", "curl http://127.0.0.1:"]);
    guide.page(
        "Where events come from",
        "The command is complete, with the address and the key of this service; `y` copies it.",
    );
    let address = guide.rest_address();
    guide.press("y").sees(&["copied the command"]);
    let copied = guide.copied();
    assert!(
        copied.starts_with(&format!("curl {address}/v1/data-receiver/events -H")),
        "{copied}"
    );

    guide.happens("SEVERITY_ERROR", "disk is full").await;
    guide.sees(&["1/1", "disk is full"]).press("g");
    guide.page(
        "An event",
        "It is on the screen as soon as the service has it.",
    );

    guide.press("T").sees(&["New trigger", "dimensions.host"]);
    guide
        .press("disk-full")
        .sees(&["disk-full", "the service finds nothing wrong"]);
    guide.page(
        "A trigger made of it",
        "`T` takes the event's name and dimensions as the query. Clauses are added, negated and \
         removed here; names of fields are completed.",
    );

    guide
        .press(TEST)
        .sees(&["would have matched 1 occurrence in the last 24 h"]);
    guide.page(
        "Tried on what is stored",
        "Before it is saved, it is known what it would have matched.",
    );

    guide.press(ESC).sees(&["New trigger", "unsaved"]);
    guide.press(SAVE).sees(&["Create trigger disk-full?"]);
    guide
        .press("y")
        .sees(&["✓ trigger disk-full created; next: a rule", "1/1"]);
}

fn a_rule_is_previewed_and_enabled(guide: &mut Guide) {
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
    guide.sees(&["[x] yes", "the service finds nothing wrong"]);
    guide.page(
        "A rule",
        "It joins triggers to destinations, chosen from the stored ones, with a message. With \
         updates, those who were told also hear of the end.",
    );

    guide
        .press(TEST)
        .sees(&["Preview of the unsaved tell-us", "with a sample event"]);
    guide
        .press("v")
        .sees(&["Which event is it to be?", "disk is full"]);
    guide.page(
        "On which event to preview",
        "`v` takes a stored event in place of the sample.",
    );
    guide
        .press(ENTER)
        .sees(&["message          disk is full on db-1"]);
    guide.page(
        "The message before it is sent",
        "What each destination would get, byte for byte.",
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
        "A rule notifies nobody until it is switched on. What can be taken back is not asked about: \
         `U` undoes it.",
    );
    assert_eq!(guide.receiver.received().len(), 1, "nobody was told so far");
}

async fn the_next_event_is_told_of_and_explained(guide: &mut Guide) {
    guide.happens("SEVERITY_CRITICAL", "disk is gone").await;
    let told = guide.is_notified(2).await;
    guide.all_has_ended().await;
    assert_eq!(told.json()["rule"]["message"], "disk is gone on db-1");
    assert_eq!(told.json()["clear"], false);

    guide.press("2").sees(&["disk is gone"]).press("x");
    guide.sees(&[
        "[Explain]",
        "✓ tell-us  decided to notify",
        "delivery to on-call  delivered",
    ]);
    guide.page(
        "Why it was told",
        "The next event matched and the receiver has its message. `x` on the event explains every \
         rule: clause by clause with the value found, each gate, each delivery and attempt.",
    );

    guide.press("6").sees(&["Decided", "1/2"]).press(ENTER);
    guide.sees(&["Deliveries ›", "status 200"]);
    guide.page(
        "What was sent",
        "Every attempt of every delivery with its request and its answer; secrets are masked.",
    );
}

async fn its_end_is_told_as_well(guide: &mut Guide) {
    guide.press("2").sees(&["disk is gone"]).press("a");
    guide.sees(&["✓ acknowledged"]);
    let told = guide.is_notified(3).await;
    assert_eq!(told.json()["event"]["acknowledged"], true);

    guide
        .press("c")
        .sees(&["Close this occurrence?", "disk is gone"]);
    guide.page(
        "It is over",
        "`a` says that somebody looks at it, `c` that it has ended.",
    );
    guide.press("y").sees(&["✓ closed", "No open events"]);
    let told = guide.is_notified(4).await;
    assert_eq!(told.json()["clear"], true);
    assert_eq!(told.json()["event"]["status"], 3);

    guide.all_has_ended().await;
    guide.press("6").sees(&["3/4", "tell-us (up"]);
    guide.page(
        "Who was told of what",
        "The test, the message, and the two updates that ended it.",
    );
    guide
        .press("8")
        .sees(&["Map", "disk-full", "tell-us", "on-call"]);
    guide.page(
        "The whole of it",
        "What feeds what; anything unused would be marked.",
    );
}

impl Guide {
    /// An application sends news of the disk over REST.
    async fn happens(&mut self, severity: &str, summary: &str) {
        let event = samples::event("disk", "db-1", severity, summary);
        let answer = self
            .rest()
            .post("/v1/data-receiver/events", &samples::events(&[event]))
            .await;
        assert_eq!(answer.ok()["succeeded"], 1);
    }

    /// Waits until no delivery is on its way any more.
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

    /// Waits until the receiver has as many messages, and gives the last.
    async fn is_notified(&mut self, count: usize) -> Received {
        eventually("the message", async || {
            let mut received = self.receiver.received();
            (received.len() == count).then(|| received.pop().expect("there are some"))
        })
        .await
    }
}
