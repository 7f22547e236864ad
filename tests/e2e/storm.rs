//! A storm with 13 destinations, 8 of which fail, explored on a real terminal. Every number agrees
//! with the service, and no wrong data is displayed. All checks that require a storm share this
//! one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bellwether_tests::{
    eventually::{eventually, eventually_within},
    receiver::{Receiver, Reply},
    rest::Rest,
    terminal::Terminal,
    world::World,
};
use serde_json::{Value, json};

use crate::samples;

const PATIENCE: Duration = Duration::from_secs(60);
/// Default number of events; `BELLWETHER_TEST_STORM` overrides it (30,000 with `just storm`).
const EVENTS: usize = 1_300;
const BATCH: usize = 500;
/// Number of hosts. The first one has ten times as many events as each other one.
const HOSTS: usize = 40;
/// One in `ERROR_EACH` events is an error, about which rules notify. Some of them are critical.
const ERROR_EACH: usize = 10;
const CRITICAL: [usize; 3] = [17, 27, 37];
/// The destination whose receiver is fixed during the storm.
const FIXED: &str = "chat-bridge-of-team-db";
const DESTINATIONS: [(&str, u16); 13] = [
    ("audit-archive-of-the-north", 200),
    ("ops-webhook", 200),
    ("statistics-collector", 200),
    ("status-page", 200),
    ("team-network", 200),
    ("auth-expired", 401),
    ("chat-bridge-of-team-db", 503),
    ("escalation-gateway", 503),
    ("legacy-pager", 503),
    ("refusing-intake", 400),
    ("slow-ticketing", 503),
    ("token-revoked", 403),
    ("warehouse-of-incidents", 503),
];

fn event_count() -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "options of a test run, not configuration"
    )]
    let value = std::env::var("BELLWETHER_TEST_STORM").ok();
    value.map_or(EVENTS, |it| it.parse().expect("a number of events"))
}

struct Storm {
    _world: World,
    rest: Rest,
    /// Responds with the status in the path; to [`FIXED`] with 200 once that destination is fixed.
    _receiver: Receiver,
    is_fixed: Arc<AtomicBool>,
    console: Terminal,
}

impl Storm {
    async fn begin() -> Self {
        let world = World::start();
        let rest = world.rest();
        let is_fixed = Arc::new(AtomicBool::new(false));
        let fixed = Arc::clone(&is_fixed);
        let receiver = Receiver::with_rule(move |received| {
            if received.path.ends_with(FIXED) && fixed.load(Ordering::Relaxed) {
                return Reply::status(200);
            }
            let status = received.path.trim_start_matches('/').split('/').next();
            Reply::status(status.and_then(|it| it.parse().ok()).unwrap_or(200))
        })
        .await;
        let errors = json!({"name": "errors", "type": {"event": {"filter": "severity>=error"}}});
        rest.post("/v1/notification/triggers", &errors).await.ok();
        for (name, status) in DESTINATIONS {
            let webhook = samples::webhook(name, &receiver.url(&format!("/{status}/{name}")));
            rest.post("/v1/notification/destinations", &webhook)
                .await
                .ok();
            let rule = samples::rule(&format!("to-{name}"), "errors", name, "");
            rest.post("/v1/notification/rules", &rule).await.ok();
        }
        let count = event_count();
        for first in (0..count).step_by(BATCH) {
            let events = (first..count.min(first + BATCH)).map(event);
            let body = json!({"events": events.collect::<Vec<_>>()});
            rest.post("/v1/data-receiver/events", &body).await.ok();
        }
        let storm = Self {
            console: console(&world),
            rest,
            _receiver: receiver,
            is_fixed,
            _world: world,
        };
        storm.settle().await;
        storm
    }

    async fn settle(&self) {
        let reachable = DESTINATIONS.iter().filter(|it| it.1 == 200).count();
        let errors = event_count().div_ceil(ERROR_EACH) + CRITICAL.len();
        eventually("the storm to settle", async || {
            let counts = self.delivery_counts("").await;
            // There may be more deliveries: those of the service's own events.
            let delivered = usize::try_from(number(&counts["deliveredCount"])).expect("a count");
            (delivered >= reachable * errors).then_some(())
        })
        .await;
    }

    async fn delivery_counts(&self, filter: &str) -> Value {
        let path =
            format!("/v1/notification/deliveries?filter={filter}&withCounts=true&pageSize=1");
        self.rest.get(&path).await.ok()["counts"].clone()
    }

    /// Opens a screen by its digit.
    fn go(&mut self, key: &str, shown: &[&str]) -> String {
        self.console.press(key);
        self.console.shows(shown)
    }

    fn filter(&mut self, text: &str, shown: &[&str]) -> String {
        self.console.press("/\x15");
        self.console.press(text);
        self.console.press("\r");
        self.console.shows(shown)
    }

    /// Waits until the screen shows the same number as the service, or the age of its number.
    async fn agrees(&self, what: &str, number: impl AsyncFn() -> i64, around: (&str, &str)) {
        let mut last = String::new();
        let found = eventually_within(2 * PATIENCE, what, async || {
            let before = number().await;
            let screen = self.console.screen();
            let wanted = format!("{}{}{}", around.0, grouped(before), around.1);
            last = format!("{what}: no `{wanted}` in\n{screen}");
            let is_old = screen.contains(" s old ") || screen.contains(" min old ");
            (is_old || screen.contains(&wanted) && number().await == before).then_some(())
        });
        // The timeout is long: if counting is slow, the console counts less often.
        assert!(
            tokio::time::timeout(PATIENCE, found).await.is_ok(),
            "{last}"
        );
    }
}

fn console(world: &World) -> Terminal {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key").display().to_string();
    let arguments = ["--connect", &address, "--key-file", &key];
    let console = Terminal::of_size((200, 50), world.folder(), &arguments, &[]);
    console.shows(&["● connected"]);
    console
}

/// Returns the event with a number. Three events are critical, one in [`ERROR_EACH`] is an error,
/// and the others are warnings or informational.
fn event(number: usize) -> Value {
    let severity = match number {
        _ if CRITICAL.contains(&number) => "SEVERITY_CRITICAL",
        _ if number.is_multiple_of(ERROR_EACH) => "SEVERITY_ERROR",
        _ if number.is_multiple_of(3) => "SEVERITY_WARNING",
        _ => "SEVERITY_INFO",
    };
    let host = if number % 14 < 3 { 0 } else { number % HOSTS };
    let name = ["disk-full", "load-high", "link-down", "swap"][number % 4];
    let summary = format!("{name} was reported, number {number}");
    let mut event = samples::event(name, &format!("db-{host}"), severity, &summary);
    event["dimensions"]["part"] = json!(number.to_string());
    event
}

fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn number(value: &Value) -> i64 {
    let text = value.as_str().and_then(|it| it.parse().ok());
    value.as_i64().or(text).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_agrees_with_the_service_in_a_storm() {
    let mut storm = Storm::begin().await;
    overview_and_tabs_match_the_service(&mut storm).await;
    list_totals_and_counts_match_the_service(&mut storm).await;
    filters_reject_unknown_fields_and_accept_column_names(&mut storm);
    explain_matches_the_delivery_and_no_due_time_is_past(&mut storm).await;
    typed_silence_is_shown_as_parsed_and_can_be_undone(&mut storm).await;
    successful_test_sends_waiting_messages_and_resets_health(&mut storm).await;
    storm.console.press("q");
    assert!(storm.console.ended().success());
    assert_eq!(storm.console.remaining_modes(), Vec::<String>::new());
}

async fn overview_and_tabs_match_the_service(storm: &mut Storm) {
    storm.go("1", &["Open ", "Undelivered or late", "Noisiest"]);
    let overview = async || storm.rest.get("/v1/overview").await.ok();
    let open = async || {
        let overview = overview().await;
        let counts = overview["openBySeverity"].as_object().cloned();
        counts.unwrap_or_default().values().map(number).sum::<i64>()
    };
    storm.agrees("open events", open, ("Open  ", " ")).await;
    let waiting = async || {
        let found = storm.rest.get("/v1/statistics").await.ok();
        number(&found["deliveries"]["waitingCount"])
    };
    storm.agrees("waiting", waiting, ("", ", oldest")).await;
    let screen = storm.console.screen();
    assert!(!screen.contains("all destinations respond"), "{screen}");
    assert!(!screen.contains("nothing is open"), "{screen}");
    // The tabs show rounded numbers, that is, the first digits of the service's numbers.
    let failing = overview().await;
    let failing = failing["destinations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let failing = failing
        .iter()
        .filter(|it| it["health"]["state"] == "FAILING")
        .count();
    // Each is named, or those that do not fit are counted.
    let named = screen.matches("  failing since").count();
    assert!(named == failing || screen.contains(" more"), "{screen}");
    let failing = format!("✗{failing}");
    storm.console.shows(&[&failing]);
    let group = json!({"query": {"filter": ""}, "field": "host", "limit": 5});
    let groups = storm.rest.post("/v1/events:group", &group).await.ok();
    let worst = &groups["groups"][0];
    assert_eq!(worst["value"], "db-0", "{groups}");
    let count = async || number(&worst["count"]);
    storm.agrees("the noisiest host", count, ("", " ▇")).await;
}

async fn list_totals_and_counts_match_the_service(storm: &mut Storm) {
    storm.go("2", &["db-0"]);
    let count = async || {
        let query = json!({"query": {"statuses": ["STATUS_OPEN", "STATUS_SUPPRESSED"]}});
        number(&storm.rest.post("/v1/events:count", &query).await.ok()["count"])
    };
    storm
        .agrees("the total of events", count, ("1/", " "))
        .await;
    storm.console.press("b");
    storm.console.shows(&["Count events by"]);
    storm.console.press("h");
    storm
        .agrees("the events of all hosts", count, ("", " events in "))
        .await;
    storm.go("6", &["Deliveries", "[all"]);
    for (tab, field) in [
        ("waiting", "waitingCount"),
        ("delivered", "deliveredCount"),
        ("dead", "deadCount"),
    ] {
        let count = async || number(&storm.delivery_counts("").await[field]);
        storm.agrees(tab, count, (&format!("{tab} "), "")).await;
    }
    let screen = storm.console.screen();
    let names = DESTINATIONS
        .iter()
        .map(|(name, _)| &name[..name.len().min(16)]);
    assert!(names.clone().any(|name| screen.contains(name)), "{screen}");
    for (key, of) in [("4", 13), ("5", 13), ("3", 1)] {
        storm.go(key, &[&format!("1/{of}")]);
    }
}

fn filters_reject_unknown_fields_and_accept_column_names(storm: &mut Storm) {
    for key in ["3", "4", "5", "0"] {
        storm.go(key, &[]);
        let screen = storm.filter("nosuch=1", &["no field `nosuch` here"]);
        assert!(!screen.contains("no match"), "{screen}");
        storm.console.press("/\x15\r");
    }
    for key in ["2", "6"] {
        storm.go(key, &[]);
        // In a storm, the message is about the newest 20,000 events.
        storm.filter("nosuch=1", &["has a field `nosuch`"]);
        storm.console.press("/\x15\r");
    }
    storm.go("4", &["/13"]);
    storm.filter("health=failing", &["/8  ·  /health=failing"]);
    storm.filter("health=healthy", &["/5  ·  /health=healthy"]);
    storm.filter("type=webhook name=slow*", &["1/1  ·  /", "slow-ticketing"]);
    storm.console.press("/\x15\r");
    storm.go("5", &["/13"]);
    storm.filter("enabled=no", &["no match `enabled=no`"]);
    storm.console.press("/\x15\r");
}

async fn explain_matches_the_delivery_and_no_due_time_is_past(storm: &mut Storm) {
    storm.go("4", &["/13"]);
    storm.filter("name=legacy-pager", &["1/1  ·  /"]);
    storm.console.press("p");
    storm.console.shows(&["Pause"]);
    storm.console.press("y");
    storm.console.shows(&["legacy-pager paused"]);
    storm.go("6", &["[all"]);
    storm.filter(
        "destination=legacy-pager",
        &["▶ ", "  ·  /destination=legacy-pager", "paused by admin"],
    );
    let path = "/v1/notification/deliveries?filter=destination=legacy-pager&pageSize=200";
    let found = storm.rest.get(path).await.ok();
    // Skip the deliveries of the service's own events.
    let mut all = found["deliveries"].as_array().expect("deliveries").iter();
    let delivery = all
        .find(|it| it["dimensions"]["part"].is_string() && it["waitReason"] != "")
        .expect("one that waits");
    let reason = delivery["waitReason"]
        .as_str()
        .expect("a reason")
        .to_owned();
    storm.console.press("\r");
    storm.console.shows(&[&reason]);
    storm.go("2", &["live"]);
    let part = delivery["dimensions"]["part"].as_str().expect("a part");
    storm.filter(&format!("part={part}"), &["1/1  ·  /"]);
    storm.console.press("x");
    storm.console.shows(&[&reason]);
    storm.go("6", &["[all", "legacy-pager"]);
    let screen = storm.filter(
        "destination=slow-ticketing",
        &["[all", "/destination=slow-ticketing", "▶ "],
    );
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let now = now.strftime("%H:%M:%S").to_string();
    let heading = screen
        .lines()
        .find(|line| line.contains("Next try"))
        .expect("a heading");
    let at = heading.find("Next try").expect("a column");
    let at = heading[..at].chars().count();
    for line in screen
        .lines()
        .filter(|line| line.contains("slow-ticketing"))
    {
        let cell: String = line.chars().skip(at).take(8).collect();
        let is_time = cell.contains(':');
        // Just before midnight, a due time may be on the next day.
        assert!(
            !is_time || cell >= now || now.as_str() > "23:50",
            "{now}\n{line}"
        );
    }
    storm.console.press("/\x15\r");
}

async fn typed_silence_is_shown_as_parsed_and_can_be_undone(storm: &mut Storm) {
    storm.go("2", &["live"]);
    storm.filter("host=db-7", &["/host=db-7", "▶ ", "swap was reported"]);
    storm.console.press("z");
    storm
        .console
        .shows(&["this event", "all of db-7", "all matches"]);
    storm.console.press("h");
    storm.console.shows(&["all of db-7", "open events now"]);
    storm.console.press("o");
    storm.console.press("soon\r");
    storm
        .console
        .shows(&["`soon` is not a time; expected 2h, +30m, 08:00"]);
    for (typed, understood) in [
        ("+90m", "in 1h30m"),
        ("tomorrow 9:00", "09:00"),
        ("2h", "in 2h"),
    ] {
        storm.console.press("\x15");
        storm.console.press(typed);
        storm.console.shows(&[understood]);
    }
    storm.console.press("\r");
    storm
        .console
        .shows(&["silenced all of db-7 until", "U undoes it"]);
    let silences = async || {
        let found = storm.rest.get("/v1/notification/silences").await.ok();
        let all = found["silences"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|it| it["state"] == "ACTIVE").count()
    };
    assert_eq!(silences().await, 1);
    storm.console.press("U");
    storm.console.shows(&["undone"]);
    eventually("the silence to end", async || {
        (silences().await == 0).then_some(())
    })
    .await;
    storm.console.press("/\x15\r");
}

async fn successful_test_sends_waiting_messages_and_resets_health(storm: &mut Storm) {
    let filter = format!("destination={FIXED}");
    let waiting =
        async |storm: &Storm| number(&storm.delivery_counts(&filter).await["waitingCount"]);
    let before = waiting(storm).await;
    assert!(before > 0);
    storm.is_fixed.store(true, Ordering::Relaxed);
    storm.go("4", &["› Destinations"]);
    storm.filter(&format!("name={FIXED}"), &["1/1  ·  /", "failing"]);
    storm.console.press("t");
    storm
        .console
        .shows(&["200", &format!("waiting for {FIXED}")]);
    storm.console.press("s");
    storm.console.shows(&[&format!("waiting for {FIXED}")]);
    eventually("the waiting messages to be sent", async || {
        (waiting(storm).await == 0).then_some(())
    })
    .await;
    let delivered = storm.delivery_counts(&filter).await["deliveredCount"].clone();
    assert!(number(&delivered) >= before, "{delivered} of {before}");
    storm.console.press("\x1b");
    storm.console.shows(&[FIXED, "healthy"]);
    // After a resume, the health of a destination is unknown until a message is sent.
    storm.filter("name=legacy-pager", &["1/1  ·  /", "paused"]);
    storm.console.press("p");
    storm.console.shows(&["Resume legacy-pager?"]);
    storm.is_fixed.store(false, Ordering::Relaxed);
    storm.console.press("y");
    storm.console.shows(&["legacy-pager resumed"]);
    let path = "/v1/notification/destinations/legacy-pager";
    eventually("its health after it was resumed", async || {
        let found = storm.rest.get(path).await.ok();
        let health = &found["destination"]["health"];
        let is_failing = health["state"] == "FAILING";
        // A low number of attempts means that the destination has failed since it was resumed.
        (is_failing && number(&health["attemptCount"]) < 10).then_some(())
    })
    .await;
    storm.console.press("/\x15\r");
}
