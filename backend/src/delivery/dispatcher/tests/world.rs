//! A test environment with a store, a clock, a dispatcher, and receivers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bellwether_proto::v1::WaitCode;
use rand::{SeedableRng, rngs::StdRng};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock as _,
    delivery::{Dispatcher, DispatcherStatus},
    domain::{
        Attempt, Delivery, DeliverySettings, Destination, DestinationKind, EventId, Health,
        RecordId, Severity, destination::Webhook,
    },
    message::sample,
    ops::{
        clock_watch::ClockWatch,
        delivery::{Deliveries, QueueHolds, WaitReason},
        destination::Tester,
    },
    samples::{self, world},
    sending::{
        SenderParts,
        receiver::{ReceivedRequest, Receiver, Reply},
    },
    store::{ClockFact, Direction, Lane, engine::Range},
};

pub(super) use crate::samples::START_MS;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);

pub(super) type World = world::World<Dispatching>;

/// A dispatcher that can be stopped and started.
pub(crate) struct Dispatching {
    pub(super) sending: SenderParts,
    /// Applies clock steps; `None` before the first start.
    watch: Option<Arc<ClockWatch>>,
    made: u64,
    holds: QueueHolds,
    pub(super) running: Option<Running>,
}

pub(crate) struct Running {
    pub(super) status: watch::Receiver<DispatcherStatus>,
    shutdown: CancellationToken,
    task: JoinSet<()>,
}

impl World {
    pub(super) fn new() -> Self {
        let world = world::at_rest();
        let part = Dispatching {
            sending: SenderParts::at(Arc::clone(&world.clock)),
            watch: None,
            made: 0,
            holds: QueueHolds::default(),
            running: None,
        };
        world.with(part)
    }

    pub(super) fn tester(&self) -> Tester {
        samples::tester(&self.store, &self.sending)
    }

    pub(super) fn start(&mut self) {
        let dispatcher = Dispatcher::new(
            self.store.clone(),
            self.watch().clock(),
            self.sending.sender(),
            self.sending.config.delivery.clone(),
            StdRng::seed_from_u64(7),
        )
        .with_holds(self.holds.clone());
        let status = dispatcher.status();
        let shutdown = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(dispatcher.run(shutdown.clone()));
        self.running = Some(Running {
            status,
            shutdown,
            task,
        });
    }

    /// Starts the dispatcher with one message to a new destination, and waits until the attempt is
    /// in flight.
    pub(super) async fn start_with_one(
        &mut self,
        receiver: &Receiver,
        settings: DeliverySettings,
    ) -> RecordId {
        let destination = self.destination("hook", receiver.url("/"), settings).await;
        let [id] = self.notify(&destination, 1).await.try_into().unwrap();
        self.start();
        let mut status = self.running.as_ref().unwrap().status.clone();
        let in_flight = status.wait_for(|status| status.in_flight == 1);
        in_flight.await.unwrap();
        id
    }

    /// Ends the dispatcher as a crash would.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    pub(super) async fn stop(&mut self) {
        let mut running = self.running.take().unwrap();
        running.shutdown.cancel();
        running.task.join_next().await.unwrap().unwrap();
    }

    /// Waits until no work is due. Returns the time at which the next work is due.
    pub(super) async fn settled(&mut self) -> i64 {
        let head = self.store.engine().log_head().await.unwrap();
        let clock = Arc::clone(&self.clock);
        let running = self.running.as_mut().unwrap();
        let settled = running.status.wait_for(|status| {
            status.in_flight == 0 && status.wakes_ms > clock.now_ms() && status.log_position >= head
        });
        let settled = tokio::time::timeout(MINUTE, settled).await;
        settled.expect("settles within a minute").unwrap().wakes_ms
    }

    /// Advances the clock from one wake-up to the next for a while.
    pub(super) async fn live(&mut self, time: Duration) {
        let end_ms = self.clock.now_ms() + i64::try_from(time.as_millis()).unwrap();
        loop {
            let next_ms = self.settled().await.min(end_ms);
            let left_ms = u64::try_from(next_ms - self.clock.now_ms()).unwrap();
            self.clock.advance(Duration::from_millis(left_ms));
            if next_ms == end_ms {
                self.settled().await;
                return;
            }
        }
    }

    pub(super) fn watch(&mut self) -> Arc<ClockWatch> {
        let (store, clock) = (self.store.clone(), self.clock());
        let watch = self
            .watch
            .get_or_insert_with(|| Arc::new(ClockWatch::new(store, clock, &ClockFact::default())));
        Arc::clone(watch)
    }

    /// Restarts the machine with a clock that is off by `by_ms`.
    pub(super) async fn reboot(&mut self, by_ms: i64) {
        self.clock.reboot();
        self.clock.step(by_ms);
        let watch = ClockWatch::open(self.store.clone(), self.clock()).await;
        self.watch = Some(Arc::new(watch.unwrap()));
    }

    /// Steps the clock by `by_ms`, and waits until the dispatcher has noticed the step.
    pub(super) async fn set_clock(&mut self, by_ms: i64) {
        self.clock.step(by_ms);
        self.watch().apply(&self.store).await.unwrap();
        // The dispatcher reads this change only after it has noticed the step.
        let mut changes = self.store.new_changes();
        changes.insert(&samples::trigger(&format!("set {}", self.clock.now_ms())));
        self.store.apply(Lane::Admin, changes).await.unwrap();
        self.settled().await;
    }

    pub(super) fn id(&mut self) -> RecordId {
        self.made += 1;
        RecordId::from_parts(self.clock.now_ms().try_into().unwrap(), self.made.into())
    }

    pub(super) async fn destination(
        &mut self,
        name: &str,
        url: String,
        delivery: DeliverySettings,
    ) -> Destination {
        let now_ms = self.clock.now_ms();
        let destination = Destination {
            id: self.id(),
            kind: DestinationKind::Webhook(Webhook {
                url,
                ..Webhook::default()
            }),
            delivery,
            create_ms: now_ms,
            update_ms: now_ms,
            ..samples::destination(name)
        };
        let mut changes = self.store.new_changes();
        changes.insert(&destination);
        self.store.apply(Lane::Admin, changes).await.unwrap();
        destination
    }

    pub(super) async fn edit(&self, name: &str, edit: impl FnOnce(&mut Destination)) {
        let stored = self
            .store
            .get::<Destination>(name.into())
            .await
            .unwrap()
            .unwrap();
        let mut edited = stored.value.clone();
        edited.update_ms = self.clock.now_ms();
        edited.revision += 1;
        edit(&mut edited);
        let mut changes = self.store.new_changes();
        changes.update(&stored, &edited);
        self.store.apply(Lane::Admin, changes).await.unwrap();
    }

    pub(super) async fn delete(&self, name: &str) {
        let stored = self
            .store
            .get::<Destination>(name.into())
            .await
            .unwrap()
            .unwrap();
        let mut changes = self.store.new_changes();
        changes.delete(&stored);
        self.store.apply(Lane::Admin, changes).await.unwrap();
    }

    /// Decides several notifications of low severity in one commit. They are tried only on
    /// schedule.
    pub(super) async fn notify(
        &mut self,
        destination: &Destination,
        count: usize,
    ) -> Vec<RecordId> {
        let now_ms = self.clock.now_ms();
        let mut content = sample::sample_content(
            sample::sample_occurrence(now_ms),
            destination.kind.clone(),
            String::new(),
        );
        content.occurrence.severity = Severity::Warning;
        let ids: Vec<_> = (0..count).map(|_| self.id()).collect();
        let mut changes = self.store.new_changes();
        for &id in &ids {
            changes.insert(&Delivery {
                event: Some(content.occurrence.event),
                ..Delivery::new(
                    id,
                    (destination.id, destination.name.to_string()),
                    content.clone(),
                    now_ms,
                )
            });
        }
        self.store.apply(Lane::Bulk, changes).await.unwrap();
        ids
    }

    /// Decides a notification about a separate event of this severity.
    pub(super) async fn notify_of(
        &mut self,
        destination: &Destination,
        severity: Severity,
    ) -> RecordId {
        let (id, now_ms) = (self.id(), self.clock.now_ms());
        let kind = destination.kind.clone();
        let mut content =
            sample::sample_content(sample::sample_occurrence(now_ms), kind, String::new());
        content.occurrence.severity = severity;
        content.occurrence.key = id;
        content.occurrence.event = EventId::derive(&id.to_string(), &BTreeMap::new());
        let delivery = Delivery {
            event: Some(content.occurrence.event),
            ..Delivery::new(
                id,
                (destination.id, destination.name.to_string()),
                content,
                now_ms,
            )
        };
        let mut changes = self.store.new_changes();
        changes.insert(&delivery);
        self.store.apply(Lane::Bulk, changes).await.unwrap();
        id
    }

    pub(super) async fn delivery(&self, id: RecordId) -> Delivery {
        let key = id.to_bytes().into();
        self.store
            .get::<Delivery>(key)
            .await
            .unwrap()
            .unwrap()
            .value
    }

    /// Returns the reason for which a delivery waits, and the end of the wait in seconds since the
    /// start.
    pub(super) async fn waiting(&self, id: RecordId) -> (String, Option<i64>) {
        let deliveries = Deliveries::new(self.store.clone(), self.clock());
        let deliveries = deliveries.with_holds(self.holds.clone());
        let delivery = self.delivery(id).await;
        let waiting = deliveries.wait_reason(&delivery).await.unwrap();
        let WaitReason {
            code,
            reason,
            next_ms,
            ..
        } = waiting;
        assert_eq!(code == WaitCode::Unspecified, reason.is_empty(), "{reason}");
        (reason, next_ms.map(|next_ms| (next_ms - START_MS) / 1000))
    }

    pub(super) async fn attempts(&self, id: RecordId) -> Vec<Attempt> {
        let range = Range::with_prefix(&id.to_bytes());
        let attempts = self
            .store
            .page(range, Direction::Ascending, 100)
            .await
            .unwrap();
        attempts.into_iter().map(|attempt| attempt.value).collect()
    }

    pub(super) async fn all(&self) -> Vec<Delivery> {
        samples::all(&self.store).await
    }

    pub(super) async fn health(&self, destination: &Destination) -> Option<Health> {
        let key = destination.id.to_bytes().into();
        self.store
            .get::<Health>(key)
            .await
            .unwrap()
            .map(|health| health.value)
    }
}

/// Starts a receiver with a switchable reply.
pub(super) async fn switch(first: Reply) -> (Receiver, Arc<Mutex<Reply>>) {
    let reply = Arc::new(Mutex::new(first));
    let current = Arc::clone(&reply);
    let receiver =
        Receiver::start(move |_: &ReceivedRequest| current.lock().unwrap().clone()).await;
    (receiver, reply)
}

pub(super) fn set(reply: &Mutex<Reply>, status: u16) {
    *reply.lock().unwrap() = Reply::status(status);
}
