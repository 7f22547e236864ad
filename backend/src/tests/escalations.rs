//! Simulates hours of an installation that pages contacts, with random acknowledgements, closings
//! and crashes. No step runs after an acknowledgement was confirmed, and no step is lost or early.
//! A severity above all earlier ones starts a round. A method with a delay is used on time,
//! whatever the round. Every contact notified of an event is also notified of its closing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bellwether_proto::v1::{self, destination_type::Type, escalation_target::Target};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{ground::Ground, service::Service, simulation::event_of};
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    domain::{
        Clause, Delivery, DeliveryState, IncomingEvent, Literal, Query, RecordId, Severity,
        SharedSettings, Status,
    },
    lifecycle::StateChange,
    ops::{
        contact::Contacts,
        edit::OccurrenceTarget,
        escalation_policy::EscalationPolicies,
        review::Reviewer,
        set_status::{StatusItem, set_status},
        trigger::event_type,
    },
    samples::{self, START_MS},
    sending::receiver::{Receiver, Reply},
    store::{Direction, engine::Range},
    testing::walks::walk_length,
    wire::time::duration_from_ms,
};

const MINUTE_MS: i64 = 60_000;
/// Delay before the next step.
const WAIT_MS: i64 = 5 * MINUTE_MS;
/// Delay of each person's second method, which uses the same destination as the first one.
const CALL_MS: i64 = 7 * MINUTE_MS;
const PEOPLE: [&str; 3] = ["ana", "ben", "cleo"];
const ROUNDS: usize = 2;
/// Tolerated lateness of a step, since steps run only between two advances of the clock.
const SLACK_MS: i64 = 2 * MINUTE_MS;
const HOSTS: usize = 60;

/// The expected state of a host's newest occurrence.
#[derive(Debug, Clone, Copy)]
struct HostState {
    occurrence: u32,
    is_open: bool,
    /// The highest severity so far.
    most_severe: Severity,
    /// Start of the current round; `None` while someone responds.
    paging_ms: Option<i64>,
    /// Steps of earlier rounds.
    before: usize,
    /// End of the acknowledgement, if it has one.
    until_ms: Option<i64>,
}

/// A use of a contact method that does not report a closing.
struct UsedMethod {
    occurrence: (usize, u32),
    person: String,
    method: String,
    way: String,
    create_ms: i64,
}

struct Hours {
    service: Service,
    clock: Arc<ManualClock>,
    random: StdRng,
    hosts: BTreeMap<usize, HostState>,
    /// Times of acknowledgements and closings, by host and occurrence.
    pauses: BTreeMap<(usize, u32), Vec<i64>>,
    receiver: Receiver,
    used: BTreeMap<RecordId, UsedMethod>,
}

fn event(host: usize, status: Status, severity: Severity, at_ms: i64) -> IncomingEvent {
    IncomingEvent {
        severity: Some(severity),
        dimensions: BTreeMap::from([("host".into(), format!("h{host}"))]),
        status: Some(status),
        timestamp_ms: at_ms,
        ..event_of(host)
    }
}

impl Hours {
    async fn new(ground: Ground, seed: u64) -> Self {
        let receiver = Receiver::start(|_| Reply::status(200)).await;
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let mut config = Config::new("unused");
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
        config.shared = SharedSettings {
            together_from: 0,
            ..SharedSettings::without_expiry()
        };
        let hours = Self {
            service: Service::start(ground, config, Arc::clone(&clock)).await,
            clock,
            random: StdRng::seed_from_u64(seed),
            hosts: BTreeMap::new(),
            pauses: BTreeMap::new(),
            receiver,
            used: BTreeMap::new(),
        };
        hours.set_up().await;
        hours
    }

    async fn set_up(&self) {
        let service = &self.service;
        let (store, clock) = (
            || service.store().clone(),
            || Arc::clone(&self.clock) as Arc<dyn Clock>,
        );
        for name in PEOPLE {
            let webhook = v1::Webhook {
                url: self.receiver.url(&format!("/{name}")),
                ..v1::Webhook::default()
            };
            let draft = v1::Destination {
                name: name.into(),
                r#type: Some(v1::DestinationType {
                    r#type: Some(Type::Webhook(webhook)),
                }),
                ..v1::Destination::default()
            };
            service.destinations().create(&draft, false).await.unwrap();
            let contacts = Contacts::new(store(), clock());
            contacts.create(&contact(name), false).await.unwrap();
        }
        let steps = PEOPLE.map(|name| v1::EscalationStep {
            targets: vec![v1::EscalationTarget {
                target: Some(Target::ContactName(name.into())),
            }],
            wait: Some(duration_from_ms(WAIT_MS)),
        });
        let draft = v1::EscalationPolicy {
            name: "on call".into(),
            steps: steps.into(),
            rounds: ROUNDS.try_into().unwrap(),
            ..v1::EscalationPolicy::default()
        };
        let policies = EscalationPolicies::new(store(), clock());
        policies.create(&draft, false).await.unwrap();
        let clause = Clause::Equals("name".into(), Literal::Text("load".into()));
        let query = Query { clause };
        let draft = v1::Trigger {
            name: "load".into(),
            r#type: Some(event_type(&query)),
            ..v1::Trigger::default()
        };
        service.triggers().create(&draft, false).await.unwrap();
        let draft = v1::Rule {
            name: "page".into(),
            enabled: Some(true),
            trigger_names: vec!["load".into()],
            escalation_policy_name: "on call".into(),
            send_updates: Some(true),
            ..v1::Rule::default()
        };
        service.rules().create(&draft, false).await.unwrap();
    }

    /// Stores a person's methods in reverse order and without their identities.
    async fn reorder(&mut self) {
        let (store, clock) = (self.service.store(), &self.clock);
        let contacts = Contacts::new(store.clone(), Arc::clone(clock) as Arc<dyn Clock>);
        let name = PEOPLE[self.random.random_range(0..PEOPLE.len())];
        let mut draft = contacts.get(name).await.unwrap();
        draft.etag.clear();
        draft.methods.reverse();
        for method in &mut draft.methods {
            method.id.clear();
        }
        contacts.update(&draft, false).await.unwrap();
    }

    async fn send(&mut self, host: usize, status: Status) {
        let now_ms = self.clock.now_ms();
        let severities = [Severity::Warning, Severity::Error, Severity::Critical];
        let severity = severities[self.random.random_range(0..severities.len())];
        let steps = self.steps().await;
        let events = vec![event(host, status, severity, now_ms)];
        let submitted = self.service.intake().submit(events, None).await.unwrap();
        assert!(submitted.failed.is_empty());
        let known = self.hosts.get(&host).copied();
        match (status, known) {
            (Status::Closed, Some(host_is)) => {
                let closed = HostState {
                    is_open: false,
                    paging_ms: None,
                    ..host_is
                };
                self.hosts.insert(host, closed);
                let paused = self.pauses.entry((host, host_is.occurrence)).or_default();
                paused.push(now_ms);
            }
            (_, Some(open)) if open.is_open && severity > open.most_severe => {
                let step_count = steps.get(&(host, open.occurrence)).map_or(0, Vec::len);
                let worse = HostState {
                    most_severe: severity,
                    paging_ms: Some(now_ms),
                    before: step_count,
                    until_ms: None,
                    ..open
                };
                self.hosts.insert(host, worse);
            }
            (_, Some(open)) if open.is_open => {}
            (_, known) => {
                let opened = HostState {
                    occurrence: known.map_or(0, |it| it.occurrence) + 1,
                    is_open: true,
                    most_severe: severity,
                    paging_ms: Some(now_ms),
                    before: 0,
                    until_ms: None,
                };
                self.hosts.insert(host, opened);
            }
        }
    }

    /// Acknowledges a host, with or without an end, or removes the acknowledgement.
    async fn acknowledge(&mut self, host: usize, flag: bool) {
        let for_ms = (flag && self.random.random_bool(0.3)).then_some(10 * MINUTE_MS);
        let now_ms = self.clock.now_ms();
        let change = StateChange {
            acknowledged: Some(flag),
            acknowledge_for_ms: for_ms,
            ..StateChange::default()
        };
        let item = StatusItem {
            target: OccurrenceTarget::Newest(
                event(host, Status::Open, Severity::Error, now_ms).id(),
            ),
            change,
        };
        let modules = (self.service.deciding(), self.service.intake());
        let by = samples::name("dora");
        let done = set_status(modules, &[item], &by).await;
        done.unwrap().remove(0).unwrap();
        let steps = self.steps().await;
        let known = self.hosts.get_mut(&host).unwrap();
        let step_count = steps.get(&(host, known.occurrence)).map_or(0, Vec::len);
        if flag {
            (known.paging_ms, known.until_ms) = (None, for_ms.map(|it| now_ms + it));
            known.before = step_count;
            let paused = self.pauses.entry((host, known.occurrence)).or_default();
            paused.push(now_ms);
        } else if known.paging_ms.is_none() {
            (known.paging_ms, known.until_ms) = (Some(now_ms), None);
        }
    }

    /// Returns the times of the steps, by the host and number of the occurrence.
    async fn steps(&mut self) -> BTreeMap<(usize, u32), Vec<i64>> {
        let mut steps: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for ((about, _, _), times) in self.used("page").await {
            steps.entry(about).or_default().extend(times);
        }
        steps
    }

    /// Returns the times at which methods whose variable `way` has this value were used, by
    /// occurrence, person and identity of the method.
    async fn used(&mut self, way: &str) -> BTreeMap<((usize, u32), String, String), Vec<i64>> {
        self.read_new_deliveries().await;
        let mut used: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for it in self.used.values().filter(|it| it.way == way) {
            let key = (it.occurrence, it.person.clone(), it.method.clone());
            used.entry(key).or_default().push(it.create_ms);
        }
        used
    }

    async fn read_new_deliveries(&mut self) {
        // Ids begin with the time. Others of the newest time may be new.
        let newest = self.used.last_key_value();
        let range = Range {
            start: newest.map_or_else(Vec::new, |(id, _)| id.to_bytes()[..6].to_vec()),
            end: None,
        };
        let (store, ascending) = (self.service.store(), Direction::Ascending);
        let found = store.page::<Delivery>(range, ascending, 100_000).await;
        for it in found.unwrap().into_iter().map(|it| it.value) {
            if let Some(contact) = it.content.contact.as_ref().filter(|_| !it.content.clear) {
                let used = UsedMethod {
                    occurrence: occurrence_key(&it),
                    person: contact.name.to_string(),
                    method: contact.method.clone(),
                    way: contact.variables["way"].clone(),
                    create_ms: it.create_ms,
                };
                self.used.insert(it.id, used);
            }
        }
    }

    /// Checks that each page is followed by its call, neither early nor late, unless someone
    /// responded in the meantime.
    async fn check_calls(&mut self) {
        let now_ms = self.clock.now_ms();
        let mut calls = BTreeMap::new();
        for ((about, name, method), times) in self.used("call").await {
            assert_eq!(method, format!("{name}-2"), "identities are stable");
            calls.insert((about, name), times);
        }
        let none = Vec::new();
        for ((about, name, method), pages) in self.used("page").await {
            assert_eq!(method, name, "identities are stable");
            let calls = calls.remove(&(about, name.clone())).unwrap_or_default();
            let pauses = self.pauses.get(&about).unwrap_or(&none);
            let paused = |from_ms, to_ms| pauses.iter().any(|it| (from_ms..to_ms).contains(it));
            for page in &pages {
                let latest_ms = page + CALL_MS + SLACK_MS;
                let is_due = latest_ms < now_ms && !paused(*page, latest_ms);
                let is_called = calls.iter().any(|it| (page + 1..=latest_ms).contains(it));
                assert!(
                    !is_due || is_called,
                    "{about:?} {name}: no call after {page}"
                );
            }
            for call in &calls {
                let (earliest_ms, latest_ms) = (call - CALL_MS - SLACK_MS, call - CALL_MS);
                let is_caused = pages.iter().any(|page| {
                    (earliest_ms..=latest_ms).contains(page) && !paused(page + 1, *call)
                });
                assert!(
                    is_caused,
                    "{about:?} {name}: a call at {call} after {pages:?}"
                );
            }
        }
        assert!(calls.is_empty(), "calls without pages: {calls:?}");
    }

    async fn review(&self) {
        let (deciding, intake) = (self.service.deciding(), self.service.intake());
        let reviewer = Reviewer::new(deciding.clone(), intake.clone());
        assert!(reviewer.run_once().await, "a check failed");
    }

    async fn pass(&mut self, half_hours: i64) {
        let end_ms = self.clock.now_ms() + half_hours * 30 * MINUTE_MS;
        while self.clock.now_ms() < end_ms {
            for _ in 0..self.random.random_range(0..3) {
                let host = self.random.random_range(0..HOSTS);
                let known = self.hosts.get(&host).copied();
                match known.filter(|it| it.is_open) {
                    None => self.send(host, Status::Open).await,
                    Some(_) => match self.random.random_range(0..5) {
                        0 => self.send(host, Status::Closed).await,
                        1 => self.send(host, Status::Open).await,
                        2 => self.acknowledge(host, false).await,
                        _ => self.acknowledge(host, true).await,
                    },
                }
            }
            if self.random.random_bool(0.1) {
                self.reorder().await;
            }
            if self.random.random_bool(0.05) {
                self.service.crash(&mut self.random).await;
            }
            let seconds = self.random.random_range(5..55);
            self.service.live(Duration::from_secs(seconds)).await;
            self.review().await;
            self.check_steps().await;
        }
        self.check_calls().await;
    }

    /// Checks that steps are neither early nor late, and that none run while someone responds.
    async fn check_steps(&mut self) {
        let steps = self.steps().await;
        let now_ms = self.clock.now_ms();
        for (host, known) in &mut self.hosts {
            let step_count = steps.get(&(*host, known.occurrence)).map_or(0, Vec::len);
            let ended = known.until_ms.filter(|it| *it <= now_ms);
            if let Some(until_ms) = ended.filter(|_| known.is_open && known.paging_ms.is_none()) {
                // The round begins with the first review after the end of the acknowledgement,
                // possibly this one.
                (known.paging_ms, known.until_ms) = (Some(until_ms), None);
            }
            let Some(begun_ms) = known.paging_ms else {
                if known.is_open {
                    assert_eq!(
                        step_count, known.before,
                        "h{host} is responded to: {known:?}"
                    );
                }
                continue;
            };
            let most = PEOPLE.len() * ROUNDS;
            let in_round = step_count - known.before;
            let due = |slack_ms: i64| {
                let waited_ms = now_ms - begun_ms;
                usize::try_from(waited_ms / (WAIT_MS + slack_ms)).unwrap() + 1
            };
            assert!(
                in_round <= due(0).min(most),
                "early, h{host}: {in_round} {known:?}"
            );
            assert!(
                in_round >= due(SLACK_MS).min(most),
                "late, h{host}: {in_round} {known:?}"
            );
        }
    }

    /// Checks that every message was delivered, and that every contact notified of an event was
    /// also notified of its closing.
    async fn check_end(&mut self) {
        let mut newest: BTreeMap<(usize, u32, String), Delivery> = BTreeMap::new();
        let mut closings = 0;
        let mut all = samples::all::<Delivery>(self.service.store()).await;
        all.sort_by_key(|it| it.id.to_bytes());
        for it in all {
            assert_eq!(it.state, DeliveryState::Delivered, "{it:?}");
            let contact = it.content.contact.as_ref().expect("a page");
            let ((host, number), to) = (occurrence_key(&it), contact.method.clone());
            newest.insert((host, number, to), it);
        }
        for ((host, number, to), it) in &newest {
            let known = self.hosts[host];
            let is_over = *number < known.occurrence || !known.is_open;
            let is_notified = it.content.clear && it.content.occurrence.status == Status::Closed;
            if is_over {
                assert!(
                    is_notified,
                    "{to} was not sent the closing of h{host} {number}: {it:?}"
                );
                closings += 1;
            } else {
                assert!(
                    !is_notified,
                    "{to} was sent the closing of h{host} {number}"
                );
            }
        }
        let steps = self.steps().await;
        let second = steps.values().filter(|it| it.len() > 1).count();
        assert!(
            closings > 5 && second > 5,
            "only {closings} closings, {second} escalations"
        );
    }
}

/// Returns a person who is paged immediately and called later, through the same destination.
fn contact(name: &str) -> v1::Contact {
    let method = |way: &str, after_ms| v1::ContactMethod {
        destination_name: name.into(),
        variables: [("way".to_owned(), way.to_owned())].into(),
        after: Some(duration_from_ms(after_ms)),
        ..v1::ContactMethod::default()
    };
    v1::Contact {
        name: name.into(),
        methods: vec![method("page", 0), method("call", CALL_MS)],
        ..v1::Contact::default()
    }
}

fn occurrence_key(delivery: &Delivery) -> (usize, u32) {
    let occurrence = &delivery.content.occurrence;
    let host = occurrence.dimensions["host"][1..].parse().unwrap();
    (host, occurrence.number)
}

async fn hours(ground: impl AsyncFn() -> Option<Ground>, half_hours: u64) {
    let first = walk_length("BELLWETHER_SIMULATION_SEED");
    for seed in first..first + walk_length("BELLWETHER_SIMULATIONS") {
        let Some(ground) = ground().await else { return };
        eprintln!("BELLWETHER_SIMULATION_SEED={seed}");
        let mut hours = Hours::new(ground, seed).await;
        hours.pass(half_hours.try_into().unwrap()).await;
        hours.service.live(Duration::from_secs(600)).await;
        hours.check_end().await;
    }
}

macro_rules! hours {
    ($($name:ident: $ground:expr, $half_hours:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            hours($ground, $half_hours).await;
        }
    )+};
}

hours! {
    hours_of_paging_in_memory:
        async || Some(Ground::memory()), walk_length("BELLWETHER_PAGING_HALF_HOURS");
    hours_of_paging_on_a_disk_that_loses_power:
        async || Some(Ground::disk()), walk_length("BELLWETHER_PAGING_HALF_HOURS");
    half_an_hour_of_paging_in_a_database: Ground::database, 1;
}
