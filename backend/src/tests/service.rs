//! The service without its network interface: real operations, a real store, a real dispatcher.

use std::{sync::Arc, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    delivery::{Dispatcher, DispatcherStatus, recovery::recover},
    message::Links,
    ops::{
        decision_context::DecisionContext, delivery::Deliveries, destination::Destinations,
        intake::Intake, notify_open::OpenNotifier, rule::Rules, ruleset::Ruleset,
        settings::store_initial, trigger::Triggers,
    },
    send::{EgressGuard, Sender},
    store::{Direction, Index, Range, Store},
    tests::ground::Ground,
};

/// Timeout for the dispatcher to become idle.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service that can crash and be restarted.
pub(super) struct Service {
    pub(super) ground: Ground,
    config: Config,
    pub(super) clock: Arc<ManualClock>,
    life: Option<Life>,
    lives: u64,
}

/// The state in memory.
struct Life {
    deciding: DecisionContext,
    intake: Intake,
    status: watch::Receiver<DispatcherStatus>,
    tasks: JoinSet<()>,
}

impl Service {
    pub(super) async fn start(ground: Ground, config: Config, clock: Arc<ManualClock>) -> Self {
        let mut service = Self {
            ground,
            config,
            clock,
            life: None,
            lives: 0,
        };
        service.live_again().await;
        service
    }

    pub(super) async fn live_again(&mut self) {
        let store = self.ground.open().await;
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        recover(&store, clock.as_ref()).await.unwrap();
        store_initial(&store, clock.as_ref(), &self.config)
            .await
            .unwrap();
        let deciding = DecisionContext {
            beats: Arc::default(),
            ruleset: Arc::new(Ruleset::load(store.clone()).await.unwrap()),
            clock: Arc::clone(&clock),
            store: store.clone(),
        };
        let (intake, workers) = Intake::new(deciding.clone());
        let guard = Arc::new(EgressGuard::new(&self.config.egress, Vec::new()));
        let sink = Arc::new(intake.clone());
        let sender = Sender::new(
            &self.config,
            deciding.ruleset.settings(),
            guard,
            Arc::clone(&clock),
            Links::default(),
            Some(sink),
        );
        self.lives += 1;
        let random = StdRng::seed_from_u64(self.lives);
        let delivery = self.config.delivery.clone();
        let dispatcher = Dispatcher::new(store, clock, sender, delivery, random);
        let status = dispatcher.status();
        let mut tasks = JoinSet::new();
        tasks.spawn(workers.run(CancellationToken::new()));
        tasks.spawn(dispatcher.run(CancellationToken::new()));
        self.life = Some(Life {
            deciding,
            intake,
            status,
            tasks,
        });
    }

    /// Kills all processes during a power failure of the disk, and starts them again.
    pub(super) async fn crash(&mut self, random: &mut StdRng) {
        self.ground.fail_power_after(random.random_range(0..40));
        for _ in 0..random.random_range(0..200) {
            tokio::task::yield_now().await;
        }
        self.ground.fail_power_after(0);
        self.stop().await;
        self.ground.restore_power(random);
        self.live_again().await;
    }

    /// Stops all processes until the next start.
    pub(super) async fn stop(&mut self) {
        let mut life = self.life.take().expect("it is alive");
        life.tasks.shutdown().await;
    }

    fn life(&self) -> &Life {
        self.life.as_ref().expect("it is alive")
    }

    pub(super) fn deciding(&self) -> &DecisionContext {
        &self.life().deciding
    }

    pub(super) fn store(&self) -> &Store {
        &self.deciding().store
    }

    pub(super) fn intake(&self) -> &Intake {
        &self.life().intake
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    pub(super) fn opens(&self) -> OpenNotifier {
        OpenNotifier::new(self.deciding().clone(), self.intake().clone())
    }

    pub(super) fn rules(&self) -> Rules {
        Rules::new(self.store().clone(), self.clock())
    }

    pub(super) fn triggers(&self) -> Triggers {
        Triggers::new(self.store().clone(), self.clock())
    }

    pub(super) fn destinations(&self) -> Destinations {
        let guard = EgressGuard::new(&self.config.egress, Vec::new());
        Destinations::new(self.store().clone(), self.clock()).with_guard(Arc::new(guard))
    }

    pub(super) fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.store().clone(), self.clock())
    }

    pub(super) async fn waits(&self) -> bool {
        let index = Index::DeliveryByDue;
        let engine = self.store().engine();
        let first = engine.entries(index, Range::with_prefix(&[]), Direction::Ascending, 1);
        !first.await.unwrap().is_empty()
    }

    /// Waits until no work is due. Returns the time at which the next work is due.
    pub(super) async fn settled(&mut self) -> i64 {
        let head = self.store().engine().log_head().await.unwrap();
        let clock = Arc::clone(&self.clock);
        let life = self.life.as_mut().expect("it is alive");
        let settled = life.status.wait_for(|status| {
            let is_idle = status.in_flight == 0 && status.log_position >= head;
            status.wakes_ms > clock.now_ms() && (is_idle || status.is_waiting_for_store)
        });
        let settled = tokio::time::timeout(PATIENCE, settled).await;
        settled.expect("settles in time").unwrap().wakes_ms
    }

    /// Advances the clock from one wake-up to the next for a while.
    pub(super) async fn live(&mut self, time: Duration) {
        let end_ms = self.clock.now_ms() + i64::try_from(time.as_millis()).unwrap();
        loop {
            let next_ms = self.settled().await.min(end_ms);
            let left_ms = u64::try_from(next_ms - self.clock.now_ms()).unwrap();
            self.clock.advance(Duration::from_millis(left_ms));
            if next_ms == end_ms {
                return;
            }
        }
    }
}
