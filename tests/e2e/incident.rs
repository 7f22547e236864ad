//! Tasks during an incident at a terminal, within the documented number of keys.

use bellwether_tests::{
    eventually::{eventually, eventually_blocking},
    receiver::{Receiver, Reply},
    terminal::Terminal,
    world::World,
};
use serde_json::{Value, json};

use crate::{journey, samples};

struct Counted {
    console: Terminal,
    keys: usize,
}

impl Counted {
    fn start(world: &World) -> Self {
        let address = format!("http://{}", world.service().address("grpc"));
        let key = world.data_dir().join("admin.key").display().to_string();
        let arguments = ["--connect", &address, "--key-file", &key];
        let console = Terminal::start(world.folder(), &arguments);
        console.shows(&["● connected"]);
        Self { console, keys: 0 }
    }

    fn press(&mut self, key: &str, shown: &[&str]) -> String {
        assert_eq!(key.chars().count(), 1, "one key at a time: {key:?}");
        self.keys += 1;
        self.console.press(key);
        self.console.shows(shown)
    }

    /// Quits the console, and asserts that at most `most` keys were pressed before.
    fn end(mut self, most: usize) {
        assert!(self.keys <= most, "{} keys, at most {most}", self.keys);
        self.console.press("q");
        assert!(self.console.ended().success());
    }
}

async fn send(world: &World, events: &[Value]) {
    let body = samples::events(events);
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &body).await.ok();
}

async fn occurrences(world: &World, filter: &str) -> Vec<Value> {
    let search = json!({"query": {"filter": filter}});
    let found = world.rest().post("/v1/events:search", &search).await.ok();
    let events = found["results"].as_array().cloned().unwrap_or_default();
    let all = events.iter().filter_map(|it| it["occurrences"].as_array());
    all.flatten().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn noisiest_host_is_acknowledged_with_five_keys() {
    let world = World::start();
    let noisy = ["cpu", "disk", "load"];
    let noisy = noisy.map(|name| samples::event(name, "db-13", "SEVERITY_ERROR", "too high"));
    send(&world, &noisy).await;
    let quiet = samples::event("cpu", "db-2", "SEVERITY_ERROR", "too high");
    send(&world, &[quiet]).await;
    let mut console = Counted::start(&world);
    console.press("2", &["1/4", "db-13"]);
    console.press("b", &["Count events by"]);
    console.press("h", &["db-13", "4 events in 2 groups"]);
    console.press("a", &["Acknowledge", "3 events"]);
    console.press("y", &["U undoes it"]);
    eventually("all events of the host to be acknowledged", async || {
        let all = occurrences(&world, "host=db-13").await;
        let done = all.iter().filter(|it| it["acknowledged"] == true).count();
        (done == 3).then_some(())
    })
    .await;
    let other = occurrences(&world, "host=db-2").await;
    assert_eq!(other[0]["acknowledged"], false, "{other:?}");
    console.end(5);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_is_silenced_with_four_keys() {
    let world = World::start();
    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk is full");
    send(&world, &[event]).await;
    let mut console = Counted::start(&world);
    console.press("2", &["disk is full"]);
    console.press(
        "z",
        &["this event", "full on db-1", "all of db-1", "all full"],
    );
    console.press("h", &["all of db-1"]);
    console.press("2", &["silenced all of db-1 until"]);
    let found = world.rest().get("/v1/notification/silences").await.ok();
    assert_eq!(found["silences"][0]["filter"], "dimensions.host=db-1");
    console.end(4);
}

async fn deliveries(world: &World, filter: &str) -> usize {
    let path = format!("/v1/notification/deliveries?filter={filter}");
    let found = world.rest().get(&path).await.ok();
    found["deliveries"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_resent_with_seven_key_presses() {
    let world = World::start();
    let rest = world.rest();
    let [receiver, other] = [Receiver::start().await, Receiver::start().await];
    receiver.set_default_reply(Reply::status(400));
    other.set_default_reply(Reply::status(400));
    journey::set_up(&rest, &receiver).await;
    let webhook = samples::webhook("zulu", &other.url("/zulu"));
    rest.post("/v1/notification/destinations", &webhook)
        .await
        .ok();
    let rule = samples::rule("others", "disk", "zulu", "");
    rest.post("/v1/notification/rules", &rule).await.ok();
    let hosts = ["a", "b", "c"];
    let events = hosts.map(|host| samples::event("full", host, "SEVERITY_ERROR", "disk is full"));
    send(&world, &events).await;
    eventually("the dead letters", async || {
        (deliveries(&world, "state=dead").await == 6).then_some(())
    })
    .await;
    receiver.set_default_reply(Reply::status(200));
    receiver.forget();
    let mut console = Counted::start(&world);
    console.press("4", &["▶ hook", "zulu"]);
    console.press("r", &["destination=hook", "[dead 3]", "1/3"]);
    console.press("A", &["3 deliveries will be resent", "3  to hook"]);
    console.press(
        "y",
        &["no match `state=dead resent=false destination=hook`"],
    );
    receiver.wait_for(3).await;
    // The resent deliveries are still listed, and marked.
    console.press("\t", &["[delivered 3]"]);
    console.end(7);
    assert_eq!(deliveries(&world, "state=dead%20resent=true").await, 3);
    assert_eq!(deliveries(&world, "state=dead%20resent=false").await, 3);
    let path = "/v1/notification/deliveries?filter=destination=hook&withCounts=true&pageSize=1";
    let counts = rest.get(path).await.ok()["counts"].clone();
    assert_eq!(counts["resentCount"], 3, "{counts}");
    assert_eq!(counts["deadCount"], 0, "{counts}");
    assert_eq!(counts["deliveredCount"], 3, "{counts}");
    assert_eq!(counts["isComplete"], true, "{counts}");
    // Without a filter, the counts come from an index.
    let path = "/v1/notification/deliveries?withCounts=true&pageSize=1";
    let counts = rest.get(path).await.ok()["counts"].clone();
    assert_eq!(counts["deadCount"], 3, "{counts}");
    assert_eq!(counts["resentCount"], 3, "{counts}");
    assert_eq!(counts["deliveredCount"], 3, "{counts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_edit_is_undone_with_three_keys() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    let updates = async || {
        let rule = rest.get("/v1/notification/rules/disks").await.ok();
        rule["rule"]["sendUpdates"] == true
    };
    let before = updates().await;
    let mut console = Counted::start(&world);
    console.press("5", &["disks"]);
    console.press("e", &["Send updates"]);
    console.console.press("\t\t\t\t ");
    console.press("\x13", &["Change rule disks?"]);
    console.press("y", &["rule disks changed"]);
    assert_ne!(updates().await, before);
    console.keys = 0;
    console.press("U", &["Undo: rule disks changed?"]);
    console.press("y", &["undone: rule disks changed"]);
    assert_eq!(updates().await, before);
    console.end(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn destination_is_created_tested_and_fixed_in_its_form() {
    let world = World::start();
    let receiver = Receiver::with_rule(|received| match received.path.as_str() {
        "/right" => Reply::status(200),
        _ => Reply::status(401),
    })
    .await;
    let mut console = Counted::start(&world);
    console.press("4", &["No destinations yet"]);
    console.press("n", &["URL"]);
    let url = receiver.url("/wrong");
    console.console.press(&format!("pager\t\t{url}"));
    console.console.shows(&[&url]);
    console.press("\x14", &["401"]);
    // After the failure, the field that is probably wrong has the focus; return to the address.
    let focused = |console: &Counted| {
        let screen = console.console.screen();
        let line = screen.lines().find(|line| line.starts_with('▶'));
        line.map(str::to_owned)
    };
    let mut line = focused(&console);
    while line
        .as_ref()
        .is_none_or(|it| !it.contains("URL") || it.contains("Secret"))
    {
        console.console.press("\x1b[Z");
        line = eventually_blocking("another field to be focused", || {
            focused(&console).map(Some).filter(|next| *next != line)
        });
    }
    console.console.press("\x15");
    console.console.press(&receiver.url("/right"));
    console.press("\x14", &["→ 200 in"]);
    console.press("\x13", &["Create"]);
    console.press("y", &["destination pager created"]);
    // A destination that was tested before it was stored is shown as healthy.
    console.console.shows(&["▶ pager", "healthy"]);
    console.end(6);
}
