//! A service for tests with a manual clock, which can run in different modes with equal results.

use std::{
    cell::{Cell, RefCell},
    env,
    ops::{Deref, DerefMut},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bellwether_backend_engine::clock::{Clock, ManualClock};
use bellwether_backend_model::domain::{IncomingEvent, Rule};
use bellwether_backend_ops::{
    decision_context::DecisionContext, intake::Intake, review::Reviewer, silence::SilenceOperations,
};
use bellwether_backend_store::{Sealer, Store, engine::memory::MemoryEngine};
use tokio_util::sync::DropGuard;

use super::START_MS;
use crate::samples;

/// Environment variable that selects the mode for the tests of this process.
pub(crate) const LIFE: &str = "BELLWETHER_TEST_LIFE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// One process throughout.
    Steady,
    /// Two nodes on one store that take turns.
    TwoNodes,
    /// One process that is killed before every event and every pass, and loses all state in memory.
    Killed,
}

impl Life {
    fn of_tests() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "options of a test run, not configuration"
        )]
        match env::var(LIFE).as_deref() {
            Ok("two nodes") => Self::TwoNodes,
            Ok("killed") => Self::Killed,
            _ => Self::Steady,
        }
    }
}

pub(crate) struct Node {
    pub(crate) deciding: DecisionContext,
    pub(crate) intake: Intake,
    pub(crate) reviewer: Reviewer,
    pub(crate) silences: SilenceOperations,
    _guard: DropGuard,
}

impl Node {
    async fn over(store: &Store, clock: &Arc<ManualClock>) -> Self {
        let deciding = samples::deciding_at(store.clone(), clock).await;
        let (intake, guard) = samples::intake(&deciding);
        Self {
            reviewer: Reviewer::new(deciding.clone(), intake.clone()),
            silences: SilenceOperations::new(deciding.clone(), intake.clone()),
            deciding,
            intake,
            _guard: guard,
        }
    }
}

/// A service, and the operations that tests perform on it.
///
/// `T` is the part of the service that one module tests. A world dereferences to it.
pub(crate) struct World<T = ()> {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) part: T,
    life: Life,
    nodes: RefCell<Vec<Rc<Node>>>,
    turns: Cell<u32>,
}

impl<T> Deref for World<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T> DerefMut for World<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.part
    }
}

/// Returns a store and a clock, without a running service.
pub(crate) fn at_rest() -> World {
    World {
        store: Store::in_memory(),
        clock: Arc::new(ManualClock::starting_at(START_MS)),
        part: (),
        life: Life::of_tests(),
        nodes: RefCell::default(),
        turns: Cell::new(0),
    }
}

impl World {
    pub(crate) async fn under(rules: &[Rule]) -> Self {
        let engine = match Life::of_tests() {
            Life::TwoNodes => MemoryEngine::new_shared(),
            Life::Steady | Life::Killed => MemoryEngine::new(),
        };
        let store = Store::new(Arc::new(engine), Arc::new(Sealer::with_random_key()));
        for rule in rules {
            samples::save_rule(&store, rule).await;
        }
        Self::on(store).await
    }

    pub(crate) async fn on(store: Store) -> Self {
        Self::with_clock(store, Arc::new(ManualClock::starting_at(START_MS))).await
    }

    /// Returns a service that shares a clock with another one.
    pub(crate) async fn with_clock(store: Store, clock: Arc<ManualClock>) -> Self {
        let world = Self {
            store,
            clock,
            ..at_rest()
        };
        world.begin_anew().await;
        world
    }

    pub(crate) fn with<T>(self, part: T) -> World<T> {
        World {
            store: self.store,
            clock: self.clock,
            part,
            life: self.life,
            nodes: self.nodes,
            turns: self.turns,
        }
    }
}

impl<T> World<T> {
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    async fn begin_anew(&self) {
        self.nodes.borrow_mut().clear();
        let count = if self.life == Life::TwoNodes { 2 } else { 1 };
        for _ in 0..count {
            let node = Node::over(&self.store, &self.clock).await;
            self.nodes.borrow_mut().push(Rc::new(node));
        }
    }

    /// Returns the node whose turn it is.
    pub(crate) fn node(&self) -> Rc<Node> {
        let nodes = self.nodes.borrow();
        // Alternate irregularly.
        let at = self.turns.get().count_ones() as usize % nodes.len();
        Rc::clone(&nodes[at])
    }

    pub(crate) async fn turn(&self) {
        self.turns.set(self.turns.get() + 1);
        if self.life == Life::Killed {
            self.begin_anew().await;
        }
    }

    /// Kills the service and starts it again after the given time.
    pub(crate) async fn restart(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.begin_anew().await;
    }

    /// Sends an event, a millisecond after the previous one, because decisions within the same
    /// millisecond have no order.
    pub(crate) async fn event(&self, host: &str, change: impl FnOnce(&mut IncomingEvent)) {
        self.clock.advance(Duration::from_millis(1));
        let mut event = samples::event(host);
        event.timestamp_ms = self.clock.now_ms();
        change(&mut event);
        self.turn().await;
        self.node().intake.submit(vec![event], None).await.unwrap();
    }

    pub(crate) async fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.review().await;
    }

    pub(crate) async fn review(&self) {
        self.turn().await;
        assert!(self.node().reviewer.run_once().await, "a check failed");
    }
}
