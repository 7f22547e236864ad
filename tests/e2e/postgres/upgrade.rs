//! A rolling upgrade under load: nodes of an earlier version are replaced one by one, with the
//! migration of the schema in between, and no accepted event is lost.
//!
//! `BELLWETHER_TEST_EARLIER_BINARY` names the program of the earlier version. Without it, all nodes
//! have the same version, and the migration makes no changes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use bellwether_tests::{eventually::eventually, process, receiver::Receiver, world::World};
use tokio::{sync::watch, task::JoinSet};

use super::{
    ANSWERED, Database, SendOutcomes, assert_refused, each_has_one_delivery, init_with,
    none_is_lost, send, serve_of, store, wait_answered,
};
use crate::{crash::notified_hosts, journey};

const NAMES: [&str; 3] = ["one", "two", "three"];

fn earlier() -> PathBuf {
    let named = std::env::var_os("BELLWETHER_TEST_EARLIER_BINARY");
    named.map_or_else(|| process::binary().to_owned(), PathBuf::from)
}

fn layout(database: &Database) -> String {
    let text = "SELECT version FROM bellwether.layout";
    let shown = tokio::task::block_in_place(|| database.server.execute(text));
    shown.trim().to_owned()
}

/// Senders for one node, which stop together with the node.
struct Load(watch::Sender<bool>, JoinSet<()>);

impl Load {
    fn on(world: &World, round: &str, reported: &Arc<Mutex<SendOutcomes>>) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self(stop, send(&world.rest(), round, reported, &stopped))
    }

    async fn end(self) {
        self.0.send_replace(true);
        self.1.join_all().await;
    }
}

/// Starts nodes of the earlier version, on a store that this version created.
fn of_earlier(binary: &Path, database: &Database) -> Vec<World> {
    let mut worlds: Vec<World> = Vec::new();
    for name in NAMES {
        let key = worlds.first().map(|it| it.data_dir().join("admin.key"));
        let prepare = |data_dir: &Path| match key {
            None => init_with(binary, data_dir),
            Some(key) => {
                fs::create_dir_all(data_dir).unwrap();
                fs::copy(key, data_dir.join("admin.key")).unwrap();
            }
        };
        worlds.push(World::with_binary(
            binary,
            prepare,
            &database.settings_of(name),
        ));
    }
    worlds
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_upgrade_under_load_loses_no_event() {
    let Some(database) = Database::start() else {
        return;
    };
    let earlier = earlier();
    let mut worlds = of_earlier(&earlier, &database);
    let receiver = Receiver::start().await;
    journey::set_up(&worlds[0].rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    let mut loads = Vec::new();
    for (world, name) in worlds.iter().zip(NAMES) {
        loads.push(Load::on(world, &format!("earlier-{name}"), &reported));
    }
    wait_answered(&reported, ANSWERED).await;

    let (data_dir, from) = (worlds[0].data_dir(), layout(&database));
    let migrate = || process::run(store(&data_dir, &["migrate", "--force"]));
    let migrated = tokio::task::block_in_place(migrate);
    let said = String::from_utf8_lossy(&migrated.stderr).into_owned();
    assert!(migrated.status.success(), "{said}");
    let to = layout(&database);
    eprintln!("from layout {from} to {to}");
    // Running nodes of the earlier version continue or stop. New ones cannot start.
    let before = reported.lock().unwrap().answered.len();
    let has_stopped = eventually("the nodes to continue or to stop", async || {
        let more = reported.lock().unwrap().answered.len() - before;
        let live = tokio::task::block_in_place(|| worlds.iter_mut().any(|it| !it.has_ended()));
        (more >= ANSWERED || !live).then_some(!live)
    })
    .await;
    if has_stopped {
        let log = worlds[0].service().log();
        eprintln!(
            "the nodes of the earlier version stopped: {}",
            log.lines().last().unwrap()
        );
    }
    if from != to {
        assert_refused(serve_of(&earlier, &data_dir), "a later version made");
    }
    for (at, name) in NAMES.into_iter().enumerate() {
        assert!(worlds[at].terminate().success() || has_stopped);
        loads.remove(0).end().await;
        worlds[at].start_again();
        let round = format!("upgraded-{name}");
        loads.push(Load::on(&worlds[at], &round, &reported));
        wait_answered(&reported, ANSWERED).await;
    }
    for load in loads {
        load.end().await;
    }

    let unknown = reported.lock().unwrap().unknown.len();
    let stored = none_is_lost(&worlds[1].rest(), &reported).await;
    eventually("notifications of every stored event", async || {
        stored.is_subset(&notified_hosts(&receiver)).then_some(())
    })
    .await;
    each_has_one_delivery(&receiver, &stored, unknown);
    for world in &mut worlds {
        assert!(world.terminate().success());
    }
}
