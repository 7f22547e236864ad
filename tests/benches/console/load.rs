//! Events that arrive continuously.

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

/// Events per second.
pub(crate) const PACE: f64 = 5_000.0;
/// Events per request, and the interval between requests.
const BATCH: u32 = 50;
const EVERY: Duration = Duration::from_millis(10);
/// Time between the start of the load and the first key.
const AHEAD: Duration = Duration::from_millis(300);

/// A sender of new events at [`PACE`], which stops when it is dropped.
pub(crate) struct Load {
    accepted: Arc<AtomicU32>,
    start: Instant,
    _sender: JoinSet<()>,
}

impl Load {
    /// Starts sending to the service of `world`.
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

    /// Returns the events per second that the service has accepted so far.
    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.accepted.load(Ordering::Relaxed)) / self.start.elapsed().as_secs_f64()
    }
}
