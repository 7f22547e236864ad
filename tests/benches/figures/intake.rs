//! Durable intake, compared with the raw rate of the disk and with Alertmanager.

use std::{fs::File, io::Write, path::Path, time::Instant};

use bellwether_tests::world::World;
use serde_json::json;

use crate::{
    load::{Load, Numbers, SPAN, accounted, keep_in_flight, over_grpc, over_rest},
    peer::{self, Alertmanager},
    report::{Figure, Goal, Report},
};

/// Concurrent requests with single events, and with batches.
const SINGLES_IN_FLIGHT: usize = 256;
const BATCHES_IN_FLIGHT: usize = 32;
/// Events per batch.
const BATCH: usize = 100;
/// Number of alternating runs of this service and Alertmanager. The figures are those of the run
/// with the median ratio, because other load on the machine changes within seconds.
const TURNS: usize = 3;

pub(crate) async fn measure(report: &mut Report) {
    if report.wants("intake: enriched") {
        enriched(report).await;
    }
    if !report.wants("intake") {
        return;
    }
    let world = World::start();
    let syncs = raw_syncs(world.folder());
    report.add(Figure::new("intake: append + fdatasync", syncs, "/s"));
    let numbers = Numbers::default();
    singles(report, &world, &numbers, syncs).await;
    batches(report, &world, &numbers, syncs).await;
}

/// The consecutive loads of one run.
#[derive(Clone, Copy)]
struct Turn {
    /// `None` if Alertmanager is not installed.
    peer: Option<Load>,
    grpc: Load,
    rest: Load,
}

async fn turns(world: &World, numbers: &Numbers, in_flight: usize, events: usize) -> Vec<Turn> {
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push(Turn {
            peer: alertmanager(in_flight, events).await,
            grpc: grpc_load(world, numbers, in_flight, events).await,
            rest: rest_load(world, numbers, in_flight, events).await,
        });
    }
    turns
}

/// Returns the run in which the ratio of a load to that of Alertmanager is the median.
fn middle(turns: &[Turn], load: fn(&Turn) -> Load) -> Turn {
    let ratio = |turn: &Turn| load(turn).rate / turn.peer.map_or(1.0, |it| it.rate);
    let mut turns = turns.to_vec();
    turns.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    turns[turns.len() / 2]
}

/// Scales a goal for a disk with 5,000 syncs per second to one with `syncs`.
fn on_disk(goal: f64, syncs: f64) -> Goal {
    Goal::Least(goal * (syncs / 5_000.0).min(1.0))
}

async fn singles(report: &mut Report, world: &World, numbers: &Numbers, syncs: f64) {
    let turns = turns(world, numbers, SINGLES_IN_FLIGHT, 1).await;
    let Turn { grpc, .. } = middle(&turns, |it| it.grpc);
    let name = "intake: gRPC, single events, 256 in flight";
    report.add(
        Figure::new(name, grpc.rate, "/s")
            .goal(on_disk(30_000.0, syncs))
            .beside("raw syncs", Some(syncs)),
    );
    let p99_ms = grpc.p99.as_secs_f64() * 1e3;
    report.add(Figure::new(format!("{name}, p99"), p99_ms, "ms").goal(Goal::Most(15.0)));
    // With all these requests in flight, each waits for others. Half of them show the share of that
    // wait.
    let half = grpc_load(world, numbers, SINGLES_IN_FLIGHT / 2, 1).await;
    let name = "intake: gRPC, single events, 128 in flight";
    report.add(Figure::new(name, half.rate, "/s").goal(on_disk(30_000.0, syncs)));
    let p99_ms = half.p99.as_secs_f64() * 1e3;
    report.add(Figure::new(format!("{name}, p99"), p99_ms, "ms").goal(Goal::Most(15.0)));
    beside_peer(report, &turns, "single events, 256 in flight", (1.2, 0.8));
}

async fn batches(report: &mut Report, world: &World, numbers: &Numbers, syncs: f64) {
    let turns = turns(world, numbers, BATCHES_IN_FLIGHT, BATCH).await;
    let Turn { grpc, peer, .. } = middle(&turns, |it| it.grpc);
    let name = "intake: gRPC, batches of 100, 32 in flight";
    let figure = Figure::new(name, grpc.rate, "/s").goal(on_disk(110_000.0, syncs));
    report.add(figure.beside("Alertmanager", peer.map(|it| it.rate)));
    beside_peer(report, &turns, "batches of 100, 32 in flight", (1.5, 0.6));
    dialect(report, world, numbers).await;
}

/// Reports a load over REST relative to Alertmanager in the same run. The goals are at least
/// `least` times Alertmanager's events per second, and at most `most` times its CPU time per event.
fn beside_peer(report: &mut Report, turns: &[Turn], load: &str, (least, most): (f64, f64)) {
    processor_time(report, turns, load, most);
    let Turn { rest, peer, .. } = middle(turns, |it| it.rest);
    let peer = peer.map(|it| it.rate);
    if let Some(peer) = peer {
        let name = format!("intake: Alertmanager, {load}");
        report.add(Figure::new(name, peer, "/s"));
    }
    let figure = Figure::new(format!("intake: REST, {load}"), rest.rate, "/s");
    let goal = peer.map_or(Goal::Nothing, |rate| Goal::Least(least * rate));
    report.add(figure.goal(goal).beside("Alertmanager", peer));
}

/// Reports the CPU time per event, of the run with the median ratio. Unlike rates, it does
/// not depend on other load on the machine.
fn processor_time(report: &mut Report, turns: &[Turn], load: &str, most: f64) {
    for (over, of) in [
        ("REST", (|it| it.rest) as fn(&Turn) -> Load),
        ("gRPC", |it| it.grpc),
    ] {
        let mut turns = turns.to_vec();
        let ratio = |it: &Turn| of(it).cpu_us / it.peer.map_or(1.0, |it| it.cpu_us);
        turns.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let middle = turns[turns.len() / 2];
        let peer = middle.peer.map(|it| it.cpu_us);
        let goal = peer.filter(|_| over == "REST");
        let goal = goal.map_or(Goal::Nothing, |it| Goal::Most(most * it));
        let figure = Figure::new(
            format!("intake: {over}, {load}, each"),
            of(&middle).cpu_us,
            "us CPU",
        );
        report.add(figure.goal(goal).beside("Alertmanager", peer));
    }
}

/// Measures batches as Alertmanager sends them, each time between two loads over the native API,
/// because intake gets slower as the number of stored events grows.
async fn dialect(report: &mut Report, world: &World, numbers: &Numbers) {
    let mut turns = Vec::new();
    let mut before = rest_load(world, numbers, BATCHES_IN_FLIGHT, BATCH).await;
    for _ in 0..TURNS {
        let (own, client) = (numbers.clone(), world.rest());
        let load = keep_in_flight(BATCHES_IN_FLIGHT, BATCH, move || {
            peer::send_webhook(client.clone(), own.take(BATCH), BATCH)
        })
        .await;
        let after = rest_load(world, numbers, BATCHES_IN_FLIGHT, BATCH).await;
        turns.push((load.rate, f64::midpoint(before.rate, after.rate)));
        before = after;
    }
    turns.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let (rate, native) = turns[TURNS / 2];
    let name = "intake: Alertmanager's webhook, batches of 100, 32 in flight";
    report.add(
        Figure::new(name, rate, "/s")
            .goal(Goal::Least(0.8 * native))
            .beside("REST, batches of 100", Some(native)),
    );
}

/// Measures intake with an enrichment table of 10,000 rows that sets three fields in every event,
/// each time between two loads without it.
async fn enriched(report: &mut Report) {
    let (world, numbers) = (World::start(), Numbers::from(1_000_000));
    let rest = world.rest();
    // Each prefix matches, after the lookup of the whole host.
    let rows = (0..10_000).map(|at| format!("h{at}*,team-{at},rack-{at},https://wiki/{at}\n"));
    let csv = format!("host,team,parent,runbook\n{}", rows.collect::<String>());
    let mut table = json!({"name": "hosts", "matchFields": ["host"], "csv": csv});
    let tables = "/v1/intake/enrichment-tables";
    rest.post(tables, &table).await.ok();
    let mut turns = Vec::new();
    let mut before = grpc_load(&world, &numbers, BATCHES_IN_FLIGHT, BATCH).await;
    for _ in 0..TURNS {
        let mut enriched = before;
        for is_enabled in [true, false] {
            table["enabled"] = json!(is_enabled);
            rest.put(&format!("{tables}/hosts"), &table).await.ok();
            let load = grpc_load(&world, &numbers, BATCHES_IN_FLIGHT, BATCH).await;
            if is_enabled {
                enriched = load;
            } else {
                turns.push((before, enriched, load));
                before = load;
            }
        }
    }
    for (unit, goal, of) in [
        ("/s", 0.97, (|it| it.rate) as fn(&Load) -> f64),
        ("us CPU", 1.1, |it| it.cpu_us),
    ] {
        let pairs = turns
            .iter()
            .map(|(before, enriched, after)| (of(enriched), f64::midpoint(of(before), of(after))));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
        let (enriched, plain) = pairs[TURNS / 2];
        let name = "intake: gRPC, batches of 100, enriched from 10,000 rows";
        let goal = match unit {
            "/s" => Goal::Least(goal * plain),
            _ => Goal::Most(goal * plain),
        };
        let figure = Figure::new(name, enriched, unit).goal(goal);
        report.add(figure.beside("without a table", Some(plain)));
    }
}

async fn grpc_load(world: &World, numbers: &Numbers, in_flight: usize, events: usize) -> Load {
    let (numbers, channel) = (numbers.clone(), world.grpc());
    let load = keep_in_flight(in_flight, events, move || {
        over_grpc(channel.clone(), numbers.take(events), events)
    });
    accounted(world.service().id(), load).await
}

async fn rest_load(world: &World, numbers: &Numbers, in_flight: usize, events: usize) -> Load {
    let (numbers, client) = (numbers.clone(), world.rest());
    let load = keep_in_flight(in_flight, events, move || {
        over_rest(client.clone(), numbers.take(events), events)
    });
    accounted(world.service().id(), load).await
}

/// Measures a newly started Alertmanager, which gets slower as it holds more alerts.
async fn alertmanager(in_flight: usize, alerts: usize) -> Option<Load> {
    let peer = Alertmanager::start(None).await?;
    let (numbers, client) = (Numbers::default(), peer.rest());
    let load = keep_in_flight(in_flight, alerts, move || {
        peer::send(client.clone(), numbers.take(alerts), alerts)
    });
    let load = accounted(peer.id(), load).await;
    drop(peer);
    tokio::time::sleep(peer::REST).await;
    Some(load)
}

/// Returns the number of consecutive appends, each of the size of an event and synced, per second.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn raw_syncs(folder: &Path) -> f64 {
    let mut file = File::create(folder.join("raw")).expect("a file");
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < SPAN {
        file.write_all(&[7; 256]).expect("an append");
        file.sync_data().expect("a sync");
        count += 1;
    }
    count as f64 / start.elapsed().as_secs_f64()
}
