//! Simulates hours of an installation that pages people, with random acknowledgements, closings and
//! crashes: no step runs after the response to an acknowledgement, none is lost or early, and
//! everyone who was notified of an event is notified of its end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bellwether_proto::v1::{self, destination_type::Type, escalation_target::Target};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{ground::Ground, service::Service, simulation::event_of};
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    destination::receiver::{Receiver, Reply},
    domain::{
        Clause, Delivery, DeliveryState, IncomingEvent, Literal, Query, SharedSettings, Status,
    },
    lifecycle::StateChange,
    ops::{
        contact::Contacts,
        edit::OccurrenceTarget,
        escalation_policy::EscalationPolicies,
        review::Reviewer,
        samples::{self, START_MS},
        set_status::{StatusItem, set_status},
        trigger::event_type,
        wire::time::length,
    },
    testing::walks::walk_length,
};

const MINUTE_MS: i64 = 60_000;
/// Delay before the next step; the steps and rounds of the policy.
const WAIT_MS: i64 = 5 * MINUTE_MS;
const PEOPLE: [&str; 3] = ["ana", "ben", "cleo"];
const ROUNDS: usize = 2;
/// Tolerated lateness of a step: steps are evaluated between two moves of the clock.
const SLACK_MS: i64 = 2 * MINUTE_MS;
const HOSTS: usize = 60;

/// The expected state of a host's newest occurrence.
#[derive(Debug, Clone, Copy)]
struct Host {
    occurrence: u32,
    is_open: bool,
    /// Start of the current round; `None` while someone responds.
    paging_ms: Option<i64>,
    /// Steps of earlier rounds.
    before: usize,
    /// End of the acknowledgement, if it has one.
    until_ms: Option<i64>,
}

struct Hours {
    service: Service,
    clock: Arc<ManualClock>,
    random: StdRng,
    hosts: BTreeMap<usize, Host>,
    receiver: Receiver,
}

fn event(host: usize, status: Status, at_ms: i64) -> IncomingEvent {
    IncomingEvent {
        dimensions: BTreeMap::from([("host".into(), format!("h{host}"))]),
        status: Some(status),
        timestamp_ms: at_ms,
        ..event_of(host)
    }
}

impl Hours {
    async fn new(ground: Ground, seed: u64) -> Self {
        let receiver = Receiver::start(|_| Reply::status(200)).await;
        let clock = Arc::new(ManualClock::at(START_MS));
        let mut config = Config::new("unused");
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
        config.shared = SharedSettings {
            together_from: 0,
            ..SharedSettings::without_end()
        };
        let hours = Self {
            service: Service::start(ground, config, Arc::clone(&clock)).await,
            clock,
            random: StdRng::seed_from_u64(seed),
            hosts: BTreeMap::new(),
            receiver,
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
            let draft = v1::Contact {
                name: name.into(),
                methods: vec![v1::ContactMethod {
                    destination_name: name.into(),
                    ..v1::ContactMethod::default()
                }],
                ..v1::Contact::default()
            };
            let contacts = Contacts::new(store(), clock());
            contacts.create(&draft, false).await.unwrap();
        }
        let steps = PEOPLE.map(|name| v1::EscalationStep {
            targets: vec![v1::EscalationTarget {
                target: Some(Target::ContactName(name.into())),
            }],
            wait: Some(length(WAIT_MS)),
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

    async fn send(&mut self, host: usize, status: Status) {
        let now_ms = self.clock.now_ms();
        let events = vec![event(host, status, now_ms)];
        let submitted = self.service.intake().submit(events, None).await.unwrap();
        assert!(submitted.failed.is_empty());
        let known = self.hosts.get(&host).copied();
        match (status, known) {
            (Status::Closed, Some(host_is)) => {
                let closed = Host {
                    is_open: false,
                    paging_ms: None,
                    ..host_is
                };
                self.hosts.insert(host, closed);
            }
            (_, Some(open)) if open.is_open => {}
            (_, known) => {
                let opened = Host {
                    occurrence: known.map_or(0, |it| it.occurrence) + 1,
                    is_open: true,
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
            target: OccurrenceTarget::Newest(event(host, Status::Open, now_ms).id()),
            change,
        };
        let modules = (self.service.deciding(), self.service.intake());
        let by = samples::name("dora");
        let done = set_status(modules, &[item], &by).await;
        done.unwrap().remove(0).unwrap();
        let steps = self.steps().await;
        let known = self.hosts.get_mut(&host).unwrap();
        let taken = steps.get(&(host, known.occurrence)).map_or(0, Vec::len);
        if flag {
            (known.paging_ms, known.until_ms) = (None, for_ms.map(|it| now_ms + it));
            known.before = taken;
        } else if known.paging_ms.is_none() {
            (known.paging_ms, known.until_ms) = (Some(now_ms), None);
        }
    }

    /// Returns the times of the steps for each occurrence, by host and number.
    async fn steps(&self) -> BTreeMap<(usize, u32), Vec<i64>> {
        let mut steps: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for it in samples::all::<Delivery>(self.service.store()).await {
            if !it.content.clear && it.content.contact.is_some() {
                steps.entry(about(&it)).or_default().push(it.create_ms);
            }
        }
        steps
    }

    async fn look(&self) {
        let (deciding, intake) = (self.service.deciding(), self.service.intake());
        let reviewer = Reviewer::new(deciding.clone(), intake.clone());
        assert!(reviewer.pass().await, "a look failed");
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
            if self.random.random_bool(0.05) {
                self.service.crash(&mut self.random).await;
            }
            let seconds = self.random.random_range(5..55);
            self.service.live(Duration::from_secs(seconds)).await;
            self.look().await;
            self.check_steps().await;
        }
    }

    /// Checks that steps are neither early nor late, and that none run while someone responds.
    async fn check_steps(&mut self) {
        let steps = self.steps().await;
        let now_ms = self.clock.now_ms();
        for (host, known) in &mut self.hosts {
            let taken = steps.get(&(*host, known.occurrence)).map_or(0, Vec::len);
            let ended = known.until_ms.filter(|it| *it <= now_ms);
            if let Some(until_ms) = ended.filter(|_| known.is_open && known.paging_ms.is_none()) {
                // The round begins with the first evaluation after that, possibly already now.
                (known.paging_ms, known.until_ms) = (Some(until_ms), None);
            }
            let Some(begun_ms) = known.paging_ms else {
                if known.is_open {
                    assert_eq!(taken, known.before, "h{host} is responded to: {known:?}");
                }
                continue;
            };
            let most = PEOPLE.len() * ROUNDS;
            let in_round = taken - known.before;
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

    /// Checks that everything arrived, and that everyone who was notified of something was notified
    /// of its end.
    async fn check_end(&self) {
        let mut newest: BTreeMap<(usize, u32, String), Delivery> = BTreeMap::new();
        let mut closings = 0;
        let mut all = samples::all::<Delivery>(self.service.store()).await;
        all.sort_by_key(|it| it.id.to_bytes());
        for it in all {
            assert_eq!(it.state, DeliveryState::Delivered, "{it:?}");
            let ((host, number), to) = (about(&it), it.destination_name.clone());
            newest.insert((host, number, to), it);
        }
        for ((host, number, to), it) in &newest {
            let known = self.hosts[host];
            let is_over = *number < known.occurrence || !known.is_open;
            let is_told = it.content.clear && it.content.occurrence.status == Status::Closed;
            if is_over {
                assert!(
                    is_told,
                    "{to} does not know that h{host} {number} is closed: {it:?}"
                );
                closings += 1;
            } else {
                assert!(!is_told, "{to} was told that h{host} {number} is closed");
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

fn about(delivery: &Delivery) -> (usize, u32) {
    let occurrence = &delivery.content.occurrence;
    let host = occurrence.dimensions["host"][1..].parse().unwrap();
    (host, occurrence.number)
}

async fn hours(ground: impl AsyncFn() -> Option<Ground>, half_hours: i64) {
    let first = walk_length("BELLWETHER_SIMULATION_SEED");
    for seed in first..first + walk_length("BELLWETHER_SIMULATIONS") {
        let Some(ground) = ground().await else { return };
        eprintln!("BELLWETHER_SIMULATION_SEED={seed}");
        let mut hours = Hours::new(ground, seed).await;
        hours.pass(half_hours).await;
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
    two_hours_of_paging_in_memory: async || Some(Ground::memory()), 4;
    two_hours_of_paging_on_a_disk_that_loses_power: async || Some(Ground::disk()), 4;
    half_an_hour_of_paging_in_a_database: Ground::database, 1;
}
