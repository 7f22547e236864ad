//! Durable intake, beside the raw rate of the disk and beside Alertmanager.

use std::{fs::File, io::Write, path::Path, time::Instant};

use bellwether_tests::world::World;

use crate::{
    load::{Load, Numbers, SPAN, keep_under_way, over_grpc, over_rest},
    peer::{self, Alertmanager},
    report::{Figure, Goal, Report},
};

/// Requests under way at once, for single events and for batches.
const SINGLES_IN_FLIGHT: usize = 256;
const BATCHES_IN_FLIGHT: usize = 32;
/// Events of a batch.
const BATCH: usize = 100;

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("intake") {
        return;
    }
    let (peer_singles, peer_batches) = alertmanager().await.unzip();
    let world = World::start();
    let syncs = raw_syncs(world.folder());
    report.add(Figure::new("intake: append + fdatasync", syncs, "/s"));
    for (name, value) in [
        ("single alerts", peer_singles),
        ("batches of 100", peer_batches),
    ] {
        if let Some(load) = value {
            let name = format!("intake: Alertmanager, {name}");
            report.add(Figure::new(name, load.rate, "/s"));
        }
    }
    let numbers = Numbers::default();
    singles(report, &world, &numbers, (syncs, peer_singles)).await;
    batches(report, &world, &numbers, peer_batches).await;
}

async fn singles(
    report: &mut Report,
    world: &World,
    numbers: &Numbers,
    (syncs, peer): (f64, Option<Load>),
) {
    let grpc = grpc_load(world, numbers, SINGLES_IN_FLIGHT, 1).await;
    let name = "intake: gRPC, single events, 256 in flight";
    // The goal is one of a disk that takes 5,000 syncs a second.
    let goal = Goal::Least(30_000.0 * (syncs / 5_000.0).min(1.0));
    report.add(
        Figure::new(name, grpc.rate, "/s")
            .goal(goal)
            .beside("raw syncs", Some(syncs)),
    );
    let p99_ms = grpc.p99.as_secs_f64() * 1e3;
    report.add(Figure::new(format!("{name}, p99"), p99_ms, "ms").goal(Goal::Most(15.0)));
    let rest = rest_load(world, numbers, SINGLES_IN_FLIGHT, 1).await;
    let name = "intake: REST, single events, 256 in flight";
    let peer = peer.map(|load| load.rate);
    let goal = peer.map_or(Goal::Nothing, |rate| Goal::Least(1.1 * rate));
    let figure = Figure::new(name, rest.rate, "/s").goal(goal);
    report.add(figure.beside("Alertmanager", peer));
}

async fn batches(report: &mut Report, world: &World, numbers: &Numbers, peer: Option<Load>) {
    let peer = peer.map(|load| load.rate);
    let grpc = grpc_load(world, numbers, BATCHES_IN_FLIGHT, BATCH).await;
    let figure = Figure::new(
        "intake: gRPC, batches of 100, 32 in flight",
        grpc.rate,
        "/s",
    );
    report.add(
        figure
            .goal(Goal::Least(110_000.0))
            .beside("Alertmanager", peer),
    );
    let rest = rest_load(world, numbers, BATCHES_IN_FLIGHT, BATCH).await;
    let figure = Figure::new(
        "intake: REST, batches of 100, 32 in flight",
        rest.rate,
        "/s",
    );
    report.add(
        figure
            .goal(peer.map_or(Goal::Nothing, |rate| Goal::Least(1.5 * rate)))
            .beside("Alertmanager", peer),
    );
    dialect(report, world, numbers, rest, peer).await;
}

/// Batches as Alertmanager sends them, beside the native interface of the same run, before and after:
/// the more is stored, the slower both are.
async fn dialect(
    report: &mut Report,
    world: &World,
    numbers: &Numbers,
    before: Load,
    peer: Option<f64>,
) {
    let (own, client) = (numbers.clone(), world.rest());
    let load = keep_under_way(BATCHES_IN_FLIGHT, BATCH, move || {
        peer::send_webhook(client.clone(), own.take(BATCH), BATCH)
    })
    .await;
    let after = rest_load(world, numbers, BATCHES_IN_FLIGHT, BATCH).await;
    let native = f64::midpoint(before.rate, after.rate);
    let name = "intake: Alertmanager's webhook, batches of 100, 32 in flight";
    let figure = Figure::new(name, load.rate, "/s");
    report.add(
        figure
            .goal(Goal::Least(0.8 * native))
            .beside("REST, batches of 100", Some(native))
            .beside("Alertmanager", peer),
    );
}

async fn grpc_load(world: &World, numbers: &Numbers, in_flight: usize, events: usize) -> Load {
    let (numbers, channel) = (numbers.clone(), world.grpc());
    keep_under_way(in_flight, events, move || {
        over_grpc(channel.clone(), numbers.take(events), events)
    })
    .await
}

async fn rest_load(world: &World, numbers: &Numbers, in_flight: usize, events: usize) -> Load {
    let (numbers, client) = (numbers.clone(), world.rest());
    keep_under_way(in_flight, events, move || {
        over_rest(client.clone(), numbers.take(events), events)
    })
    .await
}

/// Singles and batches.
async fn alertmanager() -> Option<(Load, Load)> {
    let mut loads = Vec::new();
    for (in_flight, alerts) in [(SINGLES_IN_FLIGHT, 1), (BATCHES_IN_FLIGHT, BATCH)] {
        // A new one each time: the more it holds, the slower it is.
        let peer = Alertmanager::start(None).await?;
        let (numbers, client) = (Numbers::default(), peer.rest());
        let load = keep_under_way(in_flight, alerts, move || {
            peer::send(client.clone(), numbers.take(alerts), alerts)
        });
        loads.push(load.await);
        drop(peer);
        tokio::time::sleep(peer::REST).await;
    }
    Some((loads[0], loads[1]))
}

/// How often a second an event's worth of bytes is appended and synced, one after the other.
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
