//! Effect of a hanging destination on other destinations: two services receive the same load
//! alternately, and one of them has a destination that hangs.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use bellwether_tests::{rest::Rest, world::World};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    load::percentile_99,
    report::{Figure, Goal, Report, say},
    sink::{Sink, route},
};

/// Destinations of each service; at most one of them hangs.
const DESTINATIONS: usize = 100;
/// Events of a run, spread evenly over the destinations, and the time between two events.
const EVENTS: usize = 1_200;
const PACE: Duration = Duration::from_micros(2_500);
/// Measured runs of each service.
const TURNS: usize = 14;

pub(crate) async fn measure(report: &mut Report) {
    let mut healthy = Side::start(false).await;
    let mut beside = Side::start(true).await;
    // The first run is a warm-up, and occupies all slots of the destination that hangs.
    for turn in 0..=TURNS {
        // The services take turns in being measured first, so that drift affects both equally.
        if turn % 2 == 0 {
            healthy.turn().await;
            beside.turn().await;
        } else {
            beside.turn().await;
            healthy.turn().await;
        }
    }
    let pairs = healthy.turns.iter().zip(&beside.turns).skip(1);
    let mut ratios: Vec<f64> = pairs
        .map(|(healthy, beside)| {
            let [healthy, beside] = [healthy, beside].map(|times| percentile_99(times.clone()));
            beside.as_secs_f64() / healthy.as_secs_f64()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let [healthy, beside] = [healthy, beside].map(Side::percentile_99_ms);
    let name = "delivery: hanging one among 100, p99 of the others";
    report.add(Figure::new(name, beside, "ms").beside("all healthy", Some(healthy)));
    let name = "delivery: hanging one among 100, median ratio";
    report.add(Figure::new(name, ratios[ratios.len() / 2], "x").goal(Goal::Most(1.1)));
    let quarters = [1, 3].map(|quarter| ratios[ratios.len() * quarter / 4]);
    say(&format!(
        "  of {TURNS} pairs of turns, half between {:.2} and {:.2} x",
        quarters[0], quarters[1]
    ));
}

/// One of the two services that are compared, with its destinations.
struct Side {
    world: World,
    /// The receivers of the first destination and of the others.
    first: Sink,
    others: Sink,
    /// For each run, the times from sending an event until one of the other receivers has its
    /// message.
    turns: Vec<Vec<Duration>>,
}

impl Side {
    async fn start(first_hangs: bool) -> Self {
        let side = Self {
            world: World::start(),
            first: Sink::start().await,
            others: Sink::start().await,
            turns: Vec::new(),
        };
        for number in 0..DESTINATIONS {
            let url = match number {
                0 if first_hangs => side.first.url("/hang"),
                0 => side.first.url("/take"),
                _ => side.others.url("/take"),
            };
            let part = number.to_string();
            let clause = json!({"equals": {"field": "dimensions.part", "stringVal": part}});
            route(&side.world.rest(), &format!("d{number}"), &url, &clause).await;
        }
        side
    }

    async fn turn(&mut self) {
        let turn = self.turns.len();
        let mut sent = HashMap::new();
        let rest = self.world.rest();
        let mut calls = JoinSet::new();
        let mut due = Instant::now();
        for number in 0..EVENTS {
            tokio::time::sleep_until(due.into()).await;
            due += PACE;
            let part = number % DESTINATIONS;
            let host = format!("{turn}-{number}");
            let event = json!({"events": [{"name": "bench", "summary": format!("number {number}"),
                "dimensions": {"host": host, "part": part.to_string()}}]});
            if part != 0 {
                sent.insert(host, Instant::now());
            }
            calls.spawn(send(rest.clone(), event));
        }
        let error = calls.join_all().await.into_iter().find_map(Result::err);
        if let Some(error) = error {
            say(&format!("  an event was not taken in: {error}"));
        }
        self.others.wait_for(sent.len()).await;
        let mut times: HashMap<String, Duration> = HashMap::new();
        for message in self.others.take() {
            let body: Value = serde_json::from_slice(&message.body).unwrap_or_default();
            let host = body["event"]["dimensions"]["host"].as_str().unwrap_or("");
            if let Some(sent) = sent.get(host) {
                let time = message.at.saturating_duration_since(*sent);
                times.entry(host.to_owned()).or_insert(time);
            }
        }
        let missing = sent.len() - times.len();
        if missing > 0 {
            // The time of a missing message is that of the wait for it.
            say(&format!(
                "  {missing} of {} messages did not arrive",
                sent.len()
            ));
        }
        let late = sent.iter().filter(|(host, _)| !times.contains_key(*host));
        let late: Vec<_> = late.map(|(_, sent)| sent.elapsed()).collect();
        self.turns.push(times.into_values().chain(late).collect());
    }

    /// Returns the 99th percentile over all measured runs.
    fn percentile_99_ms(self) -> f64 {
        let times = self.turns.into_iter().skip(1).flatten().collect();
        percentile_99(times).as_secs_f64() * 1e3
    }
}

/// Sends an event; the error describes an unexpected response.
async fn send(rest: Rest, event: Value) -> Result<(), String> {
    let json = [("content-type", "application/json")];
    let path = "/v1/data-receiver/events";
    let answer = rest.try_send(Method::POST, path, &json, event.to_string());
    let answer = answer.await.map_err(|error| error.to_string())?;
    match answer.status.as_u16() {
        200 => Ok(()),
        status => Err(format!("{status} {}", answer.text())),
    }
}
