//! Random walks of two nodes on one store whose clock is stepped by minutes, hours and days, with
//! restarts and changes of the leader: every wait for a duration lasts exactly that long.
//!
//! `BELLWETHER_CLOCK_WALK` sets the number of steps per walk, `BELLWETHER_CLOCK_WALKS` the number
//! of walks, and `BELLWETHER_SIMULATION_SEED` the seed of the first. `BELLWETHER_CLOCK_LIFE`
//! skips the stores before the one that a failure names.

mod setup;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_util::sync::DropGuard;

use self::setup::{fixed, heartbeat, policy, rules, silence};
use crate::{
    clock::{Clock, ManualClock},
    domain::{Delivery, IncomingEvent, Occurrence, SharedSettings, Status},
    lifecycle::StateChange,
    ops::{
        clock_watch::ClockWatch,
        decision_context::DecisionContext,
        edit::OccurrenceTarget,
        heartbeat::{Expectations, HeartbeatWatch, Signal},
        intake::Intake,
        review::Reviewer,
        ruleset::Ruleset,
        set_status::{StatusItem, set_status},
    },
    samples::{self, START_MS, name},
    store::{Kind, Lane, LogPosition, Record, Sealer, Store, engine::memory::MemoryEngine},
    testing::walks::walk_length,
};

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Steps before a walk continues in a new store, since decisions are never deleted.
const LIFE: u64 = 1_000;
/// Seconds between two reviews of due work by the leader.
const LOOK: u64 = 5;
/// Maximum time, in seconds, for which the other node does not read the log. A node that reads
/// nothing for a minute counts as cut off from the store.
const UNNOTICED_MAX: u64 = 30;
/// Maximum time between two reviews of held notifications.
const SLACK_MS: i64 = 3 * MINUTE_MS;
const HOSTS: usize = 6;
const PEOPLE: [&str; 3] = ["ana", "ben", "cleo"];
/// Delays of the rules and of the heartbeat.
const STEP_MS: i64 = 5 * MINUTE_MS;
const DELAY_MS: i64 = 10 * MINUTE_MS;
const REPEAT_MS: i64 = 30 * MINUTE_MS;
const GROUP_WAIT_MS: i64 = 2 * MINUTE_MS;
const GROUP_INTERVAL_MS: i64 = 20 * MINUTE_MS;
const ACKNOWLEDGED_MS: i64 = 15 * MINUTE_MS;
const AGE_MS: i64 = 40 * MINUTE_MS;
const SILENT_MS: i64 = 70 * SECOND_MS;
/// Tolerance for service time, which differs between nodes and is partly lost in a restart.
const SERVICE_SLACK_MS: i64 = 6 * SECOND_MS;

/// The expected state of a host's newest occurrence. All times are elapsed times.
#[derive(Debug, Clone, Copy)]
struct HostState {
    number: u32,
    is_open: bool,
    opened_ms: i64,
    news_ms: i64,
    /// Start of the current round; `None` while someone responds.
    paging_ms: Option<i64>,
    /// Steps of this round.
    steps: usize,
    acknowledged_until_ms: Option<i64>,
    was_acknowledged: bool,
    delayed: usize,
    repeated_ms: Option<i64>,
    repeats: usize,
    grouped: usize,
    /// Time of the last message of the host's group, which outlives an occurrence.
    group_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Beats {
    last_ms: i64,
    /// Time with an active leader since `last_ms`, and the number of restarts and leader changes.
    watched_ms: i64,
    restarts: i64,
    is_late: bool,
    /// The newest alarm.
    number: u32,
}

struct Node {
    watch: Arc<ClockWatch>,
    deciding: DecisionContext,
    intake: Intake,
    reviewer: Reviewer,
    heartbeats: HeartbeatWatch,
    _working: DropGuard,
}

struct Walk {
    engine: Arc<MemoryEngine>,
    sealer: Arc<Sealer>,
    clock: Arc<ManualClock>,
    nodes: Vec<Node>,
    leader: usize,
    /// Seconds since the other node last followed the leader.
    unnoticed: u64,
    random: StdRng,
    hosts: BTreeMap<usize, HostState>,
    beats: Beats,
    position: LogPosition,
    seen: HashSet<Vec<u8>>,
    /// Time until which the fixed records wait, in milliseconds of elapsed time.
    fixed_ms: i64,
    counts: BTreeMap<&'static str, usize>,
}

impl Node {
    async fn start(
        engine: &Arc<MemoryEngine>,
        sealer: &Arc<Sealer>,
        clock: &Arc<ManualClock>,
    ) -> Self {
        let store = Store::new(Arc::clone(engine) as _, Arc::clone(sealer));
        let below = Arc::clone(clock) as Arc<dyn Clock>;
        let watch = Arc::new(ClockWatch::open(store.clone(), below).await.unwrap());
        let deciding = DecisionContext {
            beats: Arc::default(),
            ruleset: Arc::new(Ruleset::load(store.clone()).await.unwrap()),
            clock: watch.clock(),
            store,
        };
        let (intake, working) = samples::intake(&deciding);
        Self {
            reviewer: Reviewer::new(deciding.clone(), intake.clone()),
            heartbeats: HeartbeatWatch::new(deciding.clone(), intake.clone()),
            watch,
            deciding,
            intake,
            _working: working,
        }
    }

    async fn apply(&self) {
        self.watch.apply(&self.deciding.store).await.unwrap();
    }
}

impl Walk {
    async fn new(random: StdRng) -> Self {
        let engine = Arc::new(MemoryEngine::new_shared());
        let sealer = Arc::new(Sealer::with_random_key());
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let store = Store::new(Arc::clone(&engine) as _, Arc::clone(&sealer));
        let settings = SharedSettings {
            error_age_max: Duration::from_millis(AGE_MS.unsigned_abs()),
            together_from: 0,
            ..SharedSettings::without_expiry()
        };
        samples::save_settings(&store, settings).await;
        let fixed_ms = 20 * HOUR_MS;
        let (delivery, budget, health, receipt) = fixed(START_MS + fixed_ms);
        let mut changes = store.new_changes();
        for called in PEOPLE {
            changes.insert(&samples::destination(called));
        }
        changes.insert(&policy());
        changes.insert(&heartbeat());
        changes.insert(&silence());
        changes.insert(&delivery);
        changes.insert(&budget);
        changes.insert(&health);
        changes.insert(&receipt);
        store.apply(Lane::Admin, changes).await.unwrap();
        for rule in rules() {
            samples::save_rule(&store, &rule).await;
        }
        let mut nodes = Vec::new();
        for _ in 0..2 {
            nodes.push(Node::start(&engine, &sealer, &clock).await);
        }
        nodes[0].apply().await;
        Self {
            engine,
            sealer,
            clock,
            nodes,
            leader: 0,
            unnoticed: 0,
            random,
            hosts: BTreeMap::new(),
            beats: Beats {
                last_ms: 0,
                watched_ms: 0,
                restarts: 0,
                is_late: false,
                number: 0,
            },
            position: *store.engine().log_signal().borrow(),
            seen: HashSet::new(),
            fixed_ms,
            counts: BTreeMap::new(),
        }
    }

    fn passed_ms(&self) -> i64 {
        i64::try_from(self.clock.elapsed().as_millis()).unwrap()
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..45 => {
                let seconds = self.random.random_range(1..60);
                self.live(seconds).await;
            }
            45..65 => self.send().await,
            65..70 => self.acknowledge().await,
            70..92 => self.beat().await,
            92..95 => self.set_clock().await,
            95..98 => self.restart().await,
            _ => {
                self.leader = 1 - self.leader;
                self.unnoticed = 0;
                let node = &mut self.nodes[self.leader];
                let modules = (node.deciding.clone(), node.intake.clone());
                node.heartbeats = HeartbeatWatch::new(modules.0, modules.1);
                self.beats.restarts += 1;
                self.count("leaders");
            }
        }
        self.check_fixed().await;
    }

    fn any_node(&mut self) -> &Node {
        let at = self.random.random_range(0..self.nodes.len());
        &self.nodes[at]
    }

    async fn set_clock(&mut self) {
        // Two clock steps in a row are recorded as one step, whose size may exceed the maximum that
        // waits are corrected for.
        let store = &self.nodes[self.leader].deciding.store;
        let (_, recorded) = store.clock_fact().await.unwrap().unwrap();
        if recorded.offset_ms != self.clock.offset_ms() {
            return;
        }
        let lengths = [MINUTE_MS, HOUR_MS, 24 * HOUR_MS];
        let length_ms = lengths[self.random.random_range(0..lengths.len())];
        let by_ms = if self.random.random_bool(0.5) {
            length_ms
        } else {
            -length_ms
        };
        self.clock.step(by_ms);
        self.count("clock changes");
    }

    /// Kills a node and starts it again after some seconds, in which the clock may be stepped.
    async fn restart(&mut self) {
        let at = self.random.random_range(0..self.nodes.len());
        let seconds = self.random.random_range(0..20);
        self.clock.advance(Duration::from_secs(seconds));
        if self.random.random_bool(0.3) {
            self.set_clock().await;
        }
        self.nodes[at] = Node::start(&self.engine, &self.sealer, &self.clock).await;
        if at == self.leader {
            self.notice(seconds).await;
        } else {
            self.unnoticed = 0;
        }
        self.beats.restarts += 1;
        self.count("restarts");
    }

    /// Lets the other node read the leader's records after a random time.
    async fn notice(&mut self, seconds: u64) {
        self.unnoticed += seconds;
        if self.random.random_bool(0.5) || self.unnoticed > UNNOTICED_MAX {
            let other = &self.nodes[1 - self.leader].watch;
            other.apply_recorded().await.unwrap();
            self.unnoticed = 0;
        }
    }

    /// Advances the time, with a review of due work by the leader every [`LOOK`] seconds.
    async fn live(&mut self, seconds: u64) {
        let mut left = seconds;
        while left > 0 {
            let part = left.min(LOOK);
            left -= part;
            self.clock.advance(Duration::from_secs(part));
            self.beats.watched_ms += i64::try_from(part).unwrap() * SECOND_MS;
            self.nodes[self.leader].apply().await;
            self.notice(part).await;
            self.nodes[self.leader].heartbeats.run_once().await.unwrap();
        }
        assert!(
            self.nodes[self.leader].reviewer.run_once().await,
            "a check failed"
        );
        self.observe().await;
        self.check_late();
    }

    async fn send(&mut self) {
        let number = self.random.random_range(0..HOSTS);
        let known = self.hosts.get(&number).copied().filter(|it| it.is_open);
        let status = if known.is_some() && self.random.random_bool(0.1) {
            Status::Closed
        } else {
            Status::Open
        };
        let passed_ms = self.passed_ms();
        let node = self.any_node();
        let event = IncomingEvent {
            status: Some(status),
            timestamp_ms: node.deciding.clock.now_ms(),
            ..samples::event(&format!("h{number}"))
        };
        let submitted = node.intake.submit(vec![event], None).await.unwrap();
        assert!(submitted.failed.is_empty());
        match known {
            Some(_) if status == Status::Closed => {
                let host = self.hosts.get_mut(&number).unwrap();
                (host.is_open, host.paging_ms) = (false, None);
            }
            Some(_) => self.hosts.get_mut(&number).unwrap().news_ms = passed_ms,
            None => {
                let before = self.hosts.get(&number).copied();
                let opened = HostState {
                    number: before.map_or(0, |it| it.number) + 1,
                    is_open: true,
                    opened_ms: passed_ms,
                    news_ms: passed_ms,
                    paging_ms: Some(passed_ms),
                    steps: 0,
                    acknowledged_until_ms: None,
                    was_acknowledged: false,
                    delayed: 0,
                    repeated_ms: None,
                    repeats: 0,
                    grouped: 0,
                    group_ms: before.and_then(|it| it.group_ms),
                };
                self.hosts.insert(number, opened);
            }
        }
        self.observe().await;
        // A due repeat is sent with the event.
        let host = self.hosts[&number];
        if host.is_open && !host.was_acknowledged {
            let last_ms = host
                .repeated_ms
                .expect("the first message is sent immediately");
            assert!(
                passed_ms - last_ms <= REPEAT_MS,
                "no repeat for h{number}: {host:?}"
            );
        }
    }

    /// Acknowledges an open host for a while, or removes the acknowledgement.
    async fn acknowledge(&mut self) {
        let number = self.random.random_range(0..HOSTS);
        let Some(host) = self.hosts.get(&number).copied().filter(|it| it.is_open) else {
            return;
        };
        let flag = host.paging_ms.is_some();
        let change = StateChange {
            acknowledged: Some(flag),
            acknowledge_for_ms: flag.then_some(ACKNOWLEDGED_MS),
            ..StateChange::default()
        };
        let item = StatusItem {
            target: OccurrenceTarget::Newest(samples::event(&format!("h{number}")).id()),
            change,
        };
        let passed_ms = self.passed_ms();
        let (node, by, items) = (self.any_node(), name("dora"), [item]);
        let done = set_status((&node.deciding, &node.intake), &items, &by);
        done.await.unwrap().remove(0).unwrap();
        let host = self.hosts.get_mut(&number).unwrap();
        host.was_acknowledged = true;
        if flag {
            host.paging_ms = None;
            host.acknowledged_until_ms = Some(passed_ms + ACKNOWLEDGED_MS);
        } else {
            host.begin(passed_ms);
        }
        self.observe().await;
    }

    async fn beat(&mut self) {
        let passed_ms = self.passed_ms();
        let node = self.any_node();
        let all = Expectations::new(node.deciding.clone(), node.intake.clone());
        all.record_beat("backup", &BTreeMap::new(), Signal::Beat)
            .await
            .unwrap();
        self.beats = Beats {
            last_ms: passed_ms,
            watched_ms: 0,
            restarts: 0,
            ..self.beats
        };
    }

    /// Compares the decisions since the last call with the expected state.
    async fn observe(&mut self) {
        let store = self.nodes[self.leader].deciding.store.clone();
        let steps = store.engine().log_after(self.position, usize::MAX).await;
        let steps = steps.unwrap().expect("the log contains them");
        let Some(last) = steps.last() else { return };
        self.position = last.position;
        let (mut deliveries, mut occurrences) = (Vec::new(), Vec::new());
        for (kind, key) in steps.into_iter().flat_map(|it| it.changed) {
            match kind {
                Kind::Delivery if self.seen.insert(key.clone()) => deliveries.push(key),
                Kind::Occurrence => occurrences.push(key),
                _ => {}
            }
        }
        // The current occurrence is read, which may have been closed since the page.
        for key in deliveries {
            let found = store.get::<Delivery>(key).await.unwrap().unwrap();
            self.delivered(&found.value);
        }
        for key in occurrences {
            let found = store.get::<Occurrence>(key).await.unwrap().unwrap();
            self.changed(&found.value);
        }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        let passed_ms = self.passed_ms();
        let occurrence = &delivery.content.occurrence;
        let Some(number) = host_of(occurrence) else {
            return;
        };
        let host = self.hosts.get_mut(&number).unwrap();
        let to = delivery.destination_name.as_str();
        let about = format!("{to} of h{number} at {passed_ms}: {host:?}");
        assert!(!delivery.content.clear, "{about}");
        assert_eq!(occurrence.number, host.number, "{about}");
        assert_eq!(occurrence.status, Status::Open, "{about}");
        let waited_ms = passed_ms - host.opened_ms;
        let what = match to {
            "delayed" => {
                host.delayed += 1;
                assert!(
                    host.is_open && host.delayed == 1 && waited_ms >= DELAY_MS,
                    "{about}"
                );
                "delayed"
            }
            "repeated" => {
                let last_ms = host.repeated_ms.replace(passed_ms);
                let is_due = last_ms.is_none_or(|it| passed_ms - it >= REPEAT_MS);
                assert!(is_due, "{about}");
                host.repeats += 1;
                if host.repeats > 1 { "repeats" } else { "first" }
            }
            "grouped" => {
                host.grouped += 1;
                let next_ms = host.group_ms.map(|it| it + GROUP_INTERVAL_MS);
                let first_ms = host.opened_ms + GROUP_WAIT_MS;
                let earliest_ms = next_ms.map_or(first_ms, |it| it.min(first_ms));
                assert!(host.grouped == 1 && passed_ms >= earliest_ms, "{about}");
                host.group_ms = Some(passed_ms);
                "grouped"
            }
            _ => {
                host.end_acknowledgement(passed_ms);
                let begun_ms = host
                    .paging_ms
                    .unwrap_or_else(|| panic!("a page was sent despite a response: {about}"));
                let earliest_ms = begun_ms + STEP_MS * i64::try_from(host.steps).unwrap();
                assert!(passed_ms >= earliest_ms, "{about}");
                assert_eq!(PEOPLE[host.steps], to, "{about}");
                host.steps += 1;
                "pages"
            }
        };
        self.count(what);
    }

    fn changed(&mut self, occurrence: &Occurrence) {
        let passed_ms = self.passed_ms();
        let is_open = occurrence.status == Status::Open;
        let is_alarm = occurrence.dimensions.contains_key("heartbeat");
        if is_alarm && occurrence.number >= self.beats.number {
            if is_open && !self.beats.is_late {
                let silent_ms = passed_ms - self.beats.last_ms;
                assert!(
                    silent_ms >= SILENT_MS - SERVICE_SLACK_MS,
                    "false alarm: {silent_ms}"
                );
                self.count("alarms");
            }
            (self.beats.is_late, self.beats.number) = (is_open, occurrence.number);
        }
        let Some(number) = host_of(occurrence) else {
            return;
        };
        let host = self.hosts.get_mut(&number).unwrap();
        if !is_open && host.is_open && occurrence.number == host.number {
            let about = format!("h{number} closed at {passed_ms}: {host:?}");
            assert!(passed_ms - host.news_ms >= AGE_MS, "{about}");
            (host.is_open, host.paging_ms) = (false, None);
            self.count("aged");
        }
    }

    fn check_late(&mut self) {
        let passed_ms = self.passed_ms();
        for (number, host) in self.hosts.iter_mut().filter(|(_, host)| host.is_open) {
            host.end_acknowledgement(passed_ms);
            let about = format!("late at {passed_ms}, h{number}: {host:?}");
            let waited_ms = passed_ms - host.opened_ms;
            assert!(
                host.delayed == 1 || waited_ms <= DELAY_MS + SLACK_MS,
                "delay {about}"
            );
            let group_ms = GROUP_WAIT_MS.max(GROUP_INTERVAL_MS) + SLACK_MS;
            assert!(host.grouped == 1 || waited_ms <= group_ms, "group {about}");
            assert!(passed_ms - host.news_ms <= AGE_MS + SLACK_MS, "age {about}");
            if let Some(begun_ms) = host.paging_ms {
                let due = (passed_ms - begun_ms - SLACK_MS).div_euclid(STEP_MS + SLACK_MS) + 1;
                let due = usize::try_from(due).unwrap_or_default().min(PEOPLE.len());
                assert!(host.steps >= due, "page {about}");
            }
        }
        let beats = self.beats;
        // Each restart or new leader starts from the stored state, which extends two waits by the
        // tolerance.
        let most_ms = SILENT_MS + 20 * SECOND_MS + 2 * SERVICE_SLACK_MS * (1 + beats.restarts);
        assert!(
            beats.is_late || beats.watched_ms <= most_ms,
            "no alarm: {beats:?}"
        );
    }

    /// Checks that the fixed records have the correct remaining time on each node, and that times
    /// chosen by users are unchanged.
    async fn check_fixed(&self) {
        let left_ms = self.fixed_ms - self.passed_ms();
        let (delivery, budget, health, receipt) = fixed(0);
        for node in &self.nodes {
            let (store, now_ms) = (&node.deciding.store, node.deciding.clock.now_ms());
            let until_ms = [
                read(store, &delivery).await.state.due_ms(),
                Some(read(store, &budget).await.until_ms),
                read(store, &health).await.requested_until_ms,
                Some(read(store, &receipt).await.create_ms),
            ];
            assert_eq!(until_ms, [Some(now_ms + left_ms); 4]);
            assert_eq!(read(store, &silence()).await.end_ms, silence().end_ms);
        }
    }
}

/// Returns the host of an occurrence; `None` for the service's own events.
fn host_of(occurrence: &Occurrence) -> Option<usize> {
    let host = occurrence.dimensions.get("host")?;
    let is_sent = occurrence.name == samples::event(host).name;
    host[1..].parse().ok().filter(|_| is_sent)
}

async fn read<T: Record>(store: &Store, like: &T) -> T {
    store.get::<T>(like.key()).await.unwrap().unwrap().value
}

impl HostState {
    fn begin(&mut self, passed_ms: i64) {
        (self.paging_ms, self.steps) = (Some(passed_ms), 0);
        self.acknowledged_until_ms = None;
    }

    /// Begins a round if the acknowledgement has ended.
    fn end_acknowledgement(&mut self, passed_ms: i64) {
        if let Some(until_ms) = self.acknowledged_until_ms.filter(|it| *it <= passed_ms) {
            self.begin(until_ms);
        }
    }
}

/// Prints the position at which a walk failed.
struct LifeNote {
    seed: u64,
    life: u64,
}

impl Drop for LifeNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, life {}", self.seed, self.life);
        }
    }
}

#[tokio::test]
async fn waits_are_independent_of_clock_steps() {
    let first = walk_length("BELLWETHER_SIMULATION_SEED");
    for seed in first..first + walk_length("BELLWETHER_CLOCK_WALKS") {
        eprintln!("BELLWETHER_SIMULATION_SEED={seed}");
        let mut counts = BTreeMap::<_, usize>::new();
        let steps = walk_length("BELLWETHER_CLOCK_WALK");
        for life in walk_length("BELLWETHER_CLOCK_LIFE")..steps.div_ceil(LIFE) {
            let _at = LifeNote { seed, life };
            let mut walk = Walk::new(StdRng::seed_from_u64(seed << 32 | life)).await;
            for _ in 0..LIFE.min(steps - life * LIFE) {
                walk.step().await;
            }
            for (what, count) in walk.counts {
                *counts.entry(what).or_default() += count;
            }
        }
        eprintln!("{steps} steps: {counts:?}");
        let kinds = [
            "aged",
            "alarms",
            "delayed",
            "grouped",
            "leaders",
            "pages",
            "repeats",
            "restarts",
            "clock changes",
        ];
        for kind in kinds {
            // Ageing is rare, so a short walk does not always include it.
            let is_met = counts.get(kind).is_some_and(|it| *it > 0);
            assert!(
                is_met || kind == "aged" && steps <= 1_000,
                "no {kind}: {counts:?}"
            );
        }
    }
}
