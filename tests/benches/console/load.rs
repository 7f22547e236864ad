//! Events that arrive all the time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_tests::world::World;
use tokio::{task::JoinSet, time};

use crate::stage;

/// Events a second.
pub(crate) const PACE: f64 = 5_000.0;
/// Events of a request, and how often there is one.
const BATCH: u32 = 50;
const EVERY: Duration = Duration::from_millis(10);
/// A console is under load when it gets the first key.
const AHEAD: Duration = Duration::from_millis(300);

/// New events, sent at [`PACE`] until this is dropped.
pub(crate) struct Load {
    accepted: Arc<AtomicU32>,
    start: Instant,
    _sender: JoinSet<()>,
}

impl Load {
    /// Sends to the service of that world.
    pub(crate) fn start(world: &World) -> Self {
        let accepted = Arc::new(AtomicU32::new(0));
        let (count, channel) = (Arc::clone(&accepted), world.grpc());
        let mut sender = JoinSet::new();
        sender.spawn(async move {
            let mut calls = JoinSet::new();
            let mut due = time::interval(EVERY);
            for batch in 0_usize.. {
                due.tick().await;
                let size = BATCH as usize;
                let call = stage::send(channel.clone(), 3_000_000 + batch * size, size);
                let count = Arc::clone(&count);
                calls.spawn(async move {
                    call.await;
                    count.fetch_add(BATCH, Ordering::Relaxed);
                });
                while calls.try_join_next().is_some() {}
            }
        });
        let start = Instant::now();
        std::thread::sleep(AHEAD);
        Self {
            accepted,
            start,
            _sender: sender,
        }
    }

    /// Events a second that the service has accepted so far.
    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.accepted.load(Ordering::Relaxed)) / self.start.elapsed().as_secs_f64()
    }
}
