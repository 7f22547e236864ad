//! A store in a PostgreSQL database compared with one in a folder: the engine, and the service on
//! it.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use bellwether_proto::v1::{
    EventQuery, PageInput, SearchEventsRequest, WatchEventsRequest,
    event_query_service_client::EventQueryServiceClient,
};
use bellwether_tests::{
    engine::{Engine, Variables},
    grpc::Grpc,
    world::World,
};
use serde_json::{Value, json};

use crate::{
    delivery::rate,
    load::{Numbers, keep_in_flight, over_grpc, percentile_99},
    report::{Figure, Goal, Report, say},
    sink::{Sink, route},
};

const BATCH: usize = 100;
const IN_FLIGHT: usize = 32;
/// Number of alternating runs of folder and database; the median ratio is reported.
const TURNS: usize = 3;
const DESTINATIONS: usize = 10;
/// Number of destinations that the nodes share, a power of ten.
const MANY: usize = 100;
/// Number of sequential events observed on another node.
const SEEN: usize = 500;
/// Number of pages, of which the median is reported.
const PAGES: usize = 50;

pub(crate) async fn measure(report: &mut Report) {
    let rows: [(&str, usize, usize); 6] = [
        ("postgres engine", 0, 0),
        ("postgres service: intake", 0, 0),
        (
            "postgres service: deliveries",
            events("BELLWETHER_BENCH_DELIVERIES", 20_000),
            0,
        ),
        (
            "postgres service: owners",
            events("BELLWETHER_BENCH_DELIVERIES", 40_000),
            0,
        ),
        ("postgres service: seen", 0, 0),
        (
            "postgres service: page",
            0,
            events("BELLWETHER_BENCH_PAGE_EVENTS", 1_000_000),
        ),
    ];
    if !rows.iter().any(|(row, ..)| report.wants(row)) {
        return;
    }
    if !Engine::usable().contains(&Engine::Database) {
        return say("postgres: left out");
    }
    for (row, deliveries, held) in rows {
        if !report.wants(row) {
            continue;
        }
        match row {
            "postgres engine" => engine(report),
            "postgres service: intake" => intake(report).await,
            "postgres service: deliveries" => delivered(report, deliveries).await,
            "postgres service: owners" => shared(report, deliveries).await,
            "postgres service: seen" => measure_visibility(report).await,
            _ => page(report, held).await,
        }
    }
}

/// Returns the number of events: that of the environment variable, or else `unless`.
pub(crate) fn events(variable: &str, unless: usize) -> usize {
    let value = std::env::var_os(variable);
    let value = value.as_ref().and_then(|value| value.to_str());
    value.map_or(unless, |value| value.parse().expect("a number"))
}

pub(crate) fn world(engine: Engine) -> World {
    let mut made = None;
    engine.run_on(|| made = Some(World::start()));
    made.expect("it is available")
}

/// Starts two more nodes on the store of the first one.
fn start_nodes(first: &World) -> Vec<World> {
    let more = ["two", "three"].map(|name| {
        let named = |(variable, value): &(&'static str, String)| match *variable {
            "BELLWETHER_STORE_NODE_NAME" => (*variable, name.to_owned()),
            _ => (*variable, value.clone()),
        };
        let variables: Variables = first.variables().iter().map(named).collect();
        let key = first.admin_key();
        let prepare = |data_dir: &std::path::Path| {
            std::fs::create_dir_all(data_dir).expect("a folder");
            std::fs::write(data_dir.join("admin.key"), key).expect("a key");
        };
        World::with_variables(prepare, "", variables)
    });
    more.into()
}

/// Runs the backend's benchmark of the engine, and reports its rows.
fn engine(report: &mut Report) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut bench = Command::new(cargo);
    bench.current_dir(env!("CARGO_MANIFEST_DIR"));
    bench.arg(if cfg!(debug_assertions) {
        "test"
    } else {
        "bench"
    });
    bench.args([
        "--package",
        "bellwether-backend",
        "--bench",
        "postgres",
        "--",
        "--bench",
    ]);
    let output = bench.output().expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the rows of the engine: {said}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for row in rows {
        report.add(figure_of(&row));
    }
}

fn figure_of(row: &Value) -> Figure {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let unit = match row["unit"].as_str() {
        Some("/s") => "/s",
        Some("ms") => "ms",
        _ => "B",
    };
    let reference = row["reference"]["value"].as_f64();
    let bound = |bound: &Value| bound.as_f64().map(|bound| bound * reference.unwrap_or(1.0));
    let goal = match (bound(&row["goal"]["least"]), bound(&row["goal"]["most"])) {
        (Some(least), _) => Goal::Least(least),
        (_, Some(most)) => Goal::Most(most),
        _ => Goal::Nothing,
    };
    let value = row["value"].as_f64().expect("a number");
    let figure = Figure::new(text(&row["name"]), value, unit).goal(goal);
    match reference {
        Some(reference) => figure.beside(text(&row["reference"]["name"]), Some(reference)),
        None => figure,
    }
}

async fn intake(report: &mut Report) {
    let worlds = [world(Engine::Folder), world(Engine::Database)];
    let numbers = [Numbers::default(), Numbers::default()];
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let mut rates = Vec::new();
        for (world, numbers) in worlds.iter().zip(&numbers) {
            let (channel, numbers) = (world.grpc(), numbers.clone());
            let load = keep_in_flight(IN_FLIGHT, BATCH, move || {
                over_grpc(channel.clone(), numbers.take(BATCH), BATCH)
            });
            rates.push(load.await.rate);
        }
        turns.push((rates[0], rates[1]));
    }
    turns.sort_by(|one, other| (one.1 / one.0).total_cmp(&(other.1 / other.0)));
    let (folder, database) = turns[TURNS / 2];
    let name = "postgres service: intake, gRPC, batches of 100";
    report.add(
        Figure::new(name, database, "/s")
            .goal(Goal::Least(0.9 * folder))
            .beside("the same in a folder", Some(folder)),
    );
}

async fn delivered(report: &mut Report, events: usize) {
    let folder = drained(&[world(Engine::Folder)], DESTINATIONS, events).await;
    let one = drained(&[world(Engine::Database)], DESTINATIONS, events).await;
    report.add(
        Figure::new(
            "postgres service: deliveries to ten destinations",
            one,
            "/s",
        )
        .goal(Goal::Least(0.7 * folder))
        .beside("the same in a folder", Some(folder)),
    );
}

/// Measures deliveries of three nodes that share many destinations, compared with those of one.
async fn shared(report: &mut Report, events: usize) {
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let one = drained(&[world(Engine::Database)], MANY, events).await;
        let mut nodes = vec![world(Engine::Database)];
        nodes.extend(start_nodes(&nodes[0]));
        turns.push((one, drained(&nodes, MANY, events).await));
    }
    turns.sort_by(|one, other| (one.1 / one.0).total_cmp(&(other.1 / other.0)));
    let (one, three) = turns[TURNS / 2];
    let name =
        format!("postgres service: owners, deliveries to {MANY} destinations by three nodes");
    report.add(
        Figure::new(name, three, "/s")
            .goal(Goal::Least(1.5 * one))
            .beside("one node", Some(one)),
    );
}

/// Waits until each node owns its share of the destinations.
pub(crate) async fn divided(nodes: &[World]) {
    let least = 128 / nodes.len();
    for node in nodes {
        loop {
            let page = node.rest().get("/metrics").await.text();
            let owned = page
                .lines()
                .find_map(|it| it.strip_prefix("bellwether_slots_owned "));
            if owned.is_none_or(|it| it.parse::<usize>().is_ok_and(|it| it >= least)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// Returns the deliveries per second of events sent to all nodes concurrently.
async fn drained(nodes: &[World], destinations: usize, events: usize) -> f64 {
    let sink = Sink::start().await;
    for number in 0..destinations {
        let value = format!("{number:0digits$}", digits = digits(destinations));
        let clause = json!({"endsWith": {"field": "dimensions.host", "value": value}});
        let url = sink.url(&format!("/{number}"));
        route(&nodes[0].rest(), &format!("d{number}"), &url, &clause).await;
    }
    divided(nodes).await;
    // Start where every number has more digits than are needed to select its destination.
    let first = 10 * destinations;
    for (at, first) in (first..first + events).step_by(BATCH).enumerate() {
        over_grpc(nodes[at % nodes.len()].grpc(), first, BATCH).await;
    }
    sink.wait_for(events).await;
    let messages = sink.take();
    assert!(
        messages.len() >= events,
        "{} of {events} arrived",
        messages.len()
    );
    rate(&messages)
}

/// Returns the number of digits of `count - 1`.
fn digits(count: usize) -> usize {
    (count - 1).to_string().len()
}

/// Measures the time from the response of one node until a watch of another one has the event.
async fn measure_visibility(report: &mut Report) {
    let first = world(Engine::Database);
    let others = start_nodes(&first);
    let (one, other) = (first.grpc(), &others[0]);
    let request = WatchEventsRequest::default();
    let mut client = EventQueryServiceClient::new(other.grpc());
    let mut news = client
        .watch_events(request)
        .await
        .expect("a watch")
        .into_inner();
    let _begun = news.message().await.expect("news");
    let mut times = Vec::new();
    for number in 0..SEEN {
        over_grpc(one.clone(), number, 1).await;
        let answered = Instant::now();
        let mut is_seen = false;
        while !is_seen {
            let message = news.message().await.expect("news").expect("more");
            let host = format!("h{number}");
            is_seen = message.events.iter().any(|it| {
                let host_of = it.dimensions.get("host");
                host_of.is_some_and(|it| format!("{it:?}").contains(&format!("\"{host}\"")))
            });
        }
        times.push(answered.elapsed());
    }
    let p99_ms = percentile_99(times).as_secs_f64() * 1e3;
    let name = "postgres service: seen on another node, p99";
    report.add(Figure::new(name, p99_ms, "ms").goal(Goal::Most(50.0)));
}

async fn page(report: &mut Report, held: usize) {
    let world = world(Engine::Database);
    let numbers = Numbers::default();
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (channel, numbers) = (world.grpc(), numbers.clone());
        senders.spawn(async move {
            loop {
                let first = numbers.take(BATCH);
                if first >= held {
                    return;
                }
                over_grpc(channel.clone(), first, BATCH).await;
            }
        });
    }
    senders.join_all().await;
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..PAGES {
        let begin = Instant::now();
        read_page(world.grpc()).await;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let median_ms = times[PAGES / 2].as_secs_f64() * 1e3;
    let name = format!("postgres service: page of 100 of {held}, gRPC");
    report.add(Figure::new(name, median_ms, "ms").goal(Goal::Most(5.0)));
}

async fn read_page(channel: Grpc) {
    let page_input = PageInput {
        limit: 100,
        ..PageInput::default()
    };
    let query = EventQuery {
        page_input: Some(page_input),
        ..EventQuery::default()
    };
    let request = SearchEventsRequest { query: Some(query) };
    let mut client = EventQueryServiceClient::new(channel);
    let found = client.search_events(request).await.expect("a page");
    assert_eq!(found.into_inner().results.len(), 100);
}
