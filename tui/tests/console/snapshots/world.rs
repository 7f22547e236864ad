//! The real service in this process with a fixed clock and sample data of every kind.

use std::{sync::Arc, time::Duration};

use bellwether_tui::{Now, api::Api};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::*;
use crate::{
    backend::{Clock as _, ManualClock, Real},
    proxy::{Fault, Proxy},
    service::receive,
};

/// Wednesday, 2 April 2031, 12:00 UTC.
const NOON_MS: i64 = 1_932_897_600_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    pub(super) real: Real,
    pub(super) api: Api,
    clock: Arc<ManualClock>,
    proxy: Proxy,
    chance: BTreeMap<String, String>,
    receivers: JoinSet<()>,
}

impl World {
    pub(super) async fn empty() -> Self {
        let clock = Arc::new(ManualClock::starting_at(NOON_MS));
        let real = Real::start_at(Arc::clone(&clock) as Arc<_>).await;
        let api = Api::connect(real.options(real.address)).await.unwrap();
        let proxy = Proxy::start(real.address).await;
        Self {
            real,
            api,
            clock,
            proxy,
            chance: BTreeMap::new(),
            receivers: JoinSet::new(),
        }
    }

    pub(super) async fn stocked() -> Self {
        let mut world = Self::empty().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        world.receivers.spawn(receive(listener, "no such hook"));
        world.join(&address).await;
        world.configure().await;
        for number in 0..36 {
            world.send(number).await;
        }
        world.enable().await;
        // Each event has two messages. For each of the first two events, one message waits, because
        // its destination is paused.
        for events in 1..=4 {
            world.send(35 + events).await;
            world.settle(events, (events - 1).min(2)).await;
            world.clock.advance(Duration::from_secs(1));
            world.settle(events, events.min(2)).await;
        }
        world
    }

    pub(super) fn options(&self) -> Options {
        let mut options = self.real.options(self.proxy.address);
        // With an age of minutes, small delays do not change the text.
        let now_ms = self.clock.now_ms() + 10 * 60_000;
        let start = Instant::now();
        options.now = Now::new(move || {
            let passed = start.elapsed().as_millis();
            now_ms + i64::try_from(passed).unwrap()
        });
        options
    }

    pub(super) fn cut(&self, is_cut: bool) {
        self.proxy
            .set(if is_cut { Fault::Cut } else { Fault::None });
    }

    /// Changes a rule as another client would.
    pub(super) async fn describe_rule(&mut self, name: &str, description: &str) {
        let found = self
            .call("RuleService", "GetRule", json!({"name": name}))
            .await;
        let mut rule = found["rule"].clone();
        rule["description"] = description.into();
        self.call("RuleService", "UpdateRule", json!({"rule": rule}))
            .await;
    }

    pub(super) fn without_chance(&self, drawn: &str) -> String {
        let mut drawn = drawn.to_owned();
        for (own, steady) in &self.chance {
            drawn = drawn.replace(own, steady);
        }
        let lines = drawn.lines().map(|line| {
            let steady = with_fixed_header_time(steady(line));
            let units = MEASURED.iter();
            units.fold(steady, |line, unit| without_figures(&line, unit))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    async fn call(&mut self, service: &str, method: &str, body: Value) -> Value {
        let answer = self.api.call(service, method, &body).await;
        let named = answer.map_err(|error| format!("{method} {body}: {error:?}"));
        named.unwrap()
    }

    /// Creates two triggers, and receivers that accept, reject and are paused.
    async fn join(&mut self, receivers: &str) {
        let disks = json!({"contains": {"field": "summary", "value": "disk"}});
        let full = json!({"query": {"clause": disks}});
        let errors = json!({"filter": "name=disk-full severity>=error"});
        for (name, event) in [("disk-full", full), ("errors", errors)] {
            let trigger = json!({"name": name, "type": {"event": event}});
            let body = json!({"trigger": trigger});
            self.call("TriggerService", "CreateTrigger", body).await;
        }
        for name in ["audit", "chat", "pager"] {
            let mut destination = json!({
                "name": name,
                "type": {"webhook": {"url": format!("{receivers}/{name}")}},
            });
            if name == "pager" {
                destination["delivery"] = json!({"maxAttempts": 1});
            }
            let body = json!({"destination": destination});
            self.call("DestinationService", "CreateDestination", body)
                .await;
        }
        let body = json!({"name": "chat"});
        self.call("DestinationService", "PauseDestination", body)
            .await;
    }

    async fn configure(&mut self) {
        let calendar = json!({
            "name": "nights",
            "timeZone": "Europe/Vienna",
            "windows": [{"dtstart": "2031-01-01T22:00:00", "endTimeOfDay": "06:00:00", "rrule": "FREQ=DAILY"}],
        });
        self.call(
            "CalendarService",
            "CreateCalendar",
            json!({"calendar": calendar}),
        )
        .await;
        let inhibition = json!({
            "name": "host-down",
            "enabled": true,
            "sourceFilter": "name=host-down",
            "targetFilter": "name!=host-down",
            "equal": [{"source": "host"}],
        });
        self.call(
            "InhibitionService",
            "CreateInhibition",
            json!({"inhibition": inhibition}),
        )
        .await;
        let mapping = json!({
            "name": "github",
            "event": {"name": "{{repository.name}}", "dimensions": {"branch": "{{ref}}"}},
        });
        self.call(
            "IntakeMappingService",
            "CreateIntakeMapping",
            json!({"mapping": mapping}),
        )
        .await;
        self.expect_beats().await;
        let view = json!({"name": "criticals", "filter": "severity=critical", "sort": "severity"});
        self.call("ViewService", "CreateView", json!({"view": view}))
            .await;
        let silence = json!({
            "reason": "a new rack",
            "filter": "host=lab-1",
            "span": {"endTime": "2031-04-02T14:00:00Z"},
        });
        let created = self
            .call(
                "SilenceService",
                "CreateSilence",
                json!({"silence": silence}),
            )
            .await;
        let name = created["silence"]["name"].as_str().unwrap().to_owned();
        self.chance.insert(name.clone(), "s".repeat(name.len()));
        self.call(
            "ClientService",
            "CreateClient",
            json!({"name": "prometheus", "role": "ROLE_INGEST"}),
        )
        .await;
    }

    /// Creates a heartbeat that has not been received yet.
    async fn expect_beats(&mut self) {
        let heartbeat = json!({
            "name": "nightly backup",
            "enabled": true,
            "every": "86400s",
            "filter": "name=backup-done",
            "by": ["host"],
        });
        self.call(
            "HeartbeatService",
            "CreateHeartbeat",
            json!({"heartbeat": heartbeat}),
        )
        .await;
    }

    /// Creates the rules: an immediate one, a grouped one and a delayed one.
    async fn enable(&mut self) {
        let night = json!({
            "name": "night",
            "triggerNames": ["disk-full"],
            "destinationNames": ["pager", "audit"],
            "repeatInterval": 3600,
            "sendUpdates": true,
        });
        let per_host = json!({
            "name": "per-host",
            "triggerNames": ["errors"],
            "destinationNames": ["chat"],
            "group": {"by": ["host"], "wait": "1s", "interval": "3600s"},
        });
        let slow = json!({
            "name": "slow",
            "triggerNames": ["disk-full"],
            "destinationNames": ["audit"],
            "delay": "3600s",
        });
        for mut rule in [night, per_host, slow] {
            rule["enabled"] = true.into();
            self.call("RuleService", "CreateRule", json!({"rule": rule}))
                .await;
        }
    }

    /// Sends an event about a full disk, one second after the previous one.
    async fn send(&mut self, number: usize) {
        self.clock.advance(Duration::from_secs(1));
        let severities = ["CRITICAL", "ERROR", "WARNING", "INFO"];
        let event = json!({
            "name": "disk-full",
            "summary": format!("disk {number} is full"),
            "dimensions": {"host": format!("db{}", number % 7), "disk": number.to_string()},
            "severity": format!("SEVERITY_{}", severities[number % 4]),
        });
        let events = json!({"events": [event]});
        self.api.put_events(&events).await.unwrap();
    }

    /// Waits until two messages per event have ended, `waiting` others wait, and the service has
    /// reported its own events.
    async fn settle(&mut self, events: usize, waiting: usize) {
        // The own events: about a silence and a pause, and about dead deliveries once a severe one
        // has died.
        let own = if events == 0 { 2 } else { 3 };
        let wanted = (2 * events, waiting, json!(36 + events + own));
        let end = Instant::now() + PATIENCE;
        loop {
            let body = json!({"pageSize": 100});
            let found = self.call("DeliveryService", "ListDeliveries", body).await;
            let rows = found["deliveries"].as_array().into_iter().flatten();
            let states: Vec<_> = rows.filter_map(|row| row["state"].as_str()).collect();
            let count = |wanted: &[&str]| states.iter().filter(|it| wanted.contains(it)).count();
            let (sent, held) = (count(&["DELIVERED", "DEAD"]), count(&["PENDING"]));
            let body = json!({"query": {}});
            let mut stored = self.call("EventQueryService", "CountEvents", body).await;
            let here = (sent, held, stored["count"].take());
            if here == wanted {
                return;
            }
            assert!(Instant::now() < end, "{here:?} instead of {wanted:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Units whose figures differ between runs.
pub(super) const MEASURED: [&str; 3] = [" ms", " MB", " GB free"];

/// Removes the figures before a unit, and keeps the position of the text after it.
fn without_figures(line: &str, unit: &str) -> String {
    let Some((before, after)) = line.split_once(unit) else {
        return line.to_owned();
    };
    let trimmed = before.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let mut figure = "N".to_owned();
    if trimmed.ends_with("  ") {
        figure = format!("{figure:>width$}", width = before.len() - trimmed.len());
    }
    let is_figure = trimmed.len() < before.len();
    let before = if is_figure {
        trimmed.to_owned() + &figure
    } else {
        before.to_owned()
    };
    before + unit + &without_figures(after, unit)
}

/// Replaces the time of the last response in the header, which depends on the speed of the machine.
fn with_fixed_header_time(line: String) -> String {
    const TIME: &str = "12:10:44";
    match line.find("12:1") {
        Some(at) if line[..at].contains(['●', '✗']) => {
            let rest = line.get(at + TIME.len()..).unwrap_or_default();
            format!("{}{TIME}{rest}", &line[..at])
        }
        _ => line,
    }
}

fn steady(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("01").into_iter().chain(rest.find("bw_")).min() {
        let (before, after) = rest.split_at(at);
        let is_own = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        let length = after.find(|char| !is_own(char)).unwrap_or(after.len());
        let (word, tail) = after.split_at(length);
        // The timestamp of an id is the same in every run.
        let shown = if word.starts_with("bw_") { 3 } else { 10 };
        out += before;
        out += &word[..shown.min(length)];
        out.extend(std::iter::repeat_n('x', length.saturating_sub(shown)));
        rest = tail;
    }
    out + rest
}
