//! Random walks of decisions: reopenings, silences on single events, many causes, concurrent edits,
//! disabled and enabled rules, several destinations, and receivers that reject. The decisions are
//! exactly those of the model; a rule that groups is checked against the invariants of every group.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    model::{self, Model, Sent, Trigger, site_of},
    scenario::{OUTAGE, event_of, incoming, inhibition, trigger_query},
};
use crate::{
    clock::Clock as _,
    domain::{
        Clause, Delivery, DeliveryState, EventId, Group, Grouping, IncomingEvent, Literal,
        Occurrence, Query, RecordId, Rule, Severity, SharedSettings, Status,
    },
    lifecycle::StateChange,
    ops::{
        delivery::sequencing,
        edit::OccurrenceTarget,
        set_status::{StatusItem, set_status},
        silence::SilenceDraft,
    },
    samples::{self, name, world::World},
    store::{Direction, Index, Lane, Record, Store, Stored, engine::Range},
    testing::walks::walk_length,
};

const SITES: usize = 3;
const HOSTS_PER_SITE: usize = 4;
/// Number of causes in a site, each of which inhibits all other events of the site.
const CAUSES: usize = 20;
const RULES: usize = 4;
const DESTINATIONS: usize = 3;
/// The rule that groups, which is not part of the model.
const GROUPING: &str = "gathering";
/// Steps between two comparisons of the decisions.
const COMPARED_EVERY: u64 = 50;

struct Walk {
    world: World,
    model: Model,
    random: StdRng,
    causes: BTreeSet<(usize, usize)>,
    silences: BTreeMap<usize, String>,
    named: usize,
    /// The messages that arrived, by rule, destination and thread: the position of each, and
    /// whether it was a closing.
    arrived: HashMap<Thread, Vec<(Place, bool)>>,
}

type Thread = (Option<RecordId>, RecordId, RecordId);
type Place = (RecordId, RecordId);

fn rule_of(number: usize, of: &model::Rule, revision: u64) -> Rule {
    let triggers: Vec<_> = of.triggers.iter().map(|it| format!("t{it}")).collect();
    let triggers: Vec<_> = triggers.iter().map(String::as_str).collect();
    let destinations: Vec<_> = of.destinations.iter().map(|it| format!("d{it}")).collect();
    let destinations: Vec<_> = destinations.iter().map(String::as_str).collect();
    Rule {
        enabled: of.enabled,
        repeat: of.repeat_ms.is_some(),
        repeat_interval_seconds: of
            .repeat_ms
            .map_or(60, |it| (it / 1000).try_into().unwrap()),
        send_updates: of.updates,
        revision,
        ..samples::rule(&format!("r{number}"), &triggers, &destinations)
    }
}

impl Walk {
    async fn begin(seed: u64) -> Self {
        let store = Store::in_memory();
        let settings = SharedSettings {
            together_from: 0,
            ..SharedSettings::without_expiry()
        };
        samples::save_settings(&store, settings).await;
        let mut changes = store.new_changes();
        changes.insert(&inhibition());
        store.apply(Lane::Admin, changes).await.unwrap();
        let mut walk = Self {
            world: World::on(store).await,
            model: Model::default(),
            random: StdRng::seed_from_u64(seed),
            causes: BTreeSet::new(),
            silences: BTreeMap::new(),
            named: 0,
            arrived: HashMap::new(),
        };
        for number in 0..RULES {
            walk.model.triggers.push(Trigger {
                site: number % SITES,
                level: Severity::Error,
                closed: false,
            });
            walk.save_trigger(number, 1).await;
            let rule = model::Rule {
                enabled: true,
                triggers: vec![number],
                destinations: BTreeSet::from([number % DESTINATIONS, (number + 1) % DESTINATIONS]),
                repeat_ms: (number == 0).then_some(60_000),
                updates: number != 2,
            };
            samples::save_rule(&walk.world.store, &rule_of(number, &rule, 1)).await;
            walk.model.rules.insert(number, rule);
        }
        let gathering = Rule {
            send_updates: true,
            group: Some(Grouping {
                by: vec!["dimensions.site".into()],
                wait_ms: 30_000,
                interval_ms: 60_000,
            }),
            ..samples::rule(GROUPING, &["t0", "t1", "t2"], &["d0", "d1"])
        };
        samples::save_rule(&walk.world.store, &gathering).await;
        walk.review().await;
        walk
    }

    fn now_ms(&self) -> i64 {
        self.world.clock.now_ms()
    }

    fn store(&self) -> &Store {
        &self.world.store
    }

    async fn save_trigger(&self, number: usize, revision: u64) {
        let trigger = crate::domain::Trigger {
            query: trigger_query(self.model.triggers[number]),
            revision,
            ..samples::trigger(&format!("t{number}"))
        };
        let mut changes = self.store().new_changes();
        let key = trigger.name.as_str().into();
        match self.store().get(key).await.unwrap() {
            Some(stored) => changes.update(&stored, &trigger),
            None => changes.insert(&trigger),
        }
        self.store().apply(Lane::Admin, changes).await.unwrap();
    }

    fn host(&mut self) -> usize {
        let site = self.random.random_range(0..SITES);
        site + super::SITES * self.random.random_range(0..HOSTS_PER_SITE)
    }

    async fn submit(&self, event: IncomingEvent) {
        let node = self.world.node();
        let submitted = node.intake.submit(vec![event], None).await.unwrap();
        assert!(submitted.failed.is_empty());
    }

    async fn review(&mut self) {
        self.world.review().await;
        self.model.review(self.now_ms());
    }

    async fn step(&mut self) {
        self.world
            .clock
            .advance(std::time::Duration::from_millis(1));
        self.world.turn().await;
        match self.random.random_range(0..100) {
            0..40 => self.event().await,
            40..55 => self.operate().await,
            55..65 => self.silence_or_end().await,
            65..78 => self.break_or_mend().await,
            78..86 => self.edit().await,
            _ => {
                let seconds = self.random.random_range(1..90);
                self.world
                    .clock
                    .advance(std::time::Duration::from_secs(seconds));
                self.review().await;
            }
        }
        if self.random.random_bool(0.5) {
            self.deliver(0.3).await;
        }
    }

    async fn event(&mut self) {
        let (host, now_ms) = (self.host(), self.now_ms());
        let severities = [Severity::Info, Severity::Error, Severity::Critical];
        let event = model::Event {
            host,
            severity: self
                .random
                .random_bool(0.7)
                .then(|| severities[self.random.random_range(0..3)]),
            status: match self.random.random_range(0..20) {
                0..=3 => Some(Status::Closed),
                4 => Some(Status::Suppressed),
                5..=8 => Some(Status::Open),
                _ => None,
            },
            acknowledged: self.random.random_bool(0.05).then(|| self.random.random()),
            timestamp_ms: now_ms,
        };
        self.model.event(event, now_ms);
        self.submit(incoming(&event)).await;
    }

    /// Sets the status or acknowledged flag of a random occurrence, which may reopen it.
    async fn operate(&mut self) {
        let host = self.host();
        if !self.model.lines.contains_key(&host) {
            return;
        }
        let status = Status::ALL[self.random.random_range(0..Status::ALL.len())];
        let (status, acknowledged) = match self.random.random_range(0..3) {
            0 => (None, Some(self.random.random())),
            _ => (Some(status), None),
        };
        let now_ms = self.now_ms();
        self.model.set(host, status, acknowledged, now_ms);
        let item = StatusItem {
            target: OccurrenceTarget::Newest(event_of(host).id()),
            change: StateChange {
                status,
                acknowledged,
                ..StateChange::default()
            },
        };
        let node = self.world.node();
        let (items, by) = ([item], name("operator"));
        let set = set_status((&node.deciding, &node.intake), &items, &by);
        set.await.unwrap().remove(0).unwrap();
    }

    /// Begins or ends a silence for a single event.
    async fn silence_or_end(&mut self) {
        let silenced = self.silences.keys().next().copied();
        let ends = self.random.random_bool(0.5);
        let host = match silenced.filter(|_| ends) {
            Some(host) => host,
            None => self.host(),
        };
        let node = self.world.node();
        if let Some(called) = self.silences.remove(&host) {
            self.model.silenced_hosts.remove(&host);
            let ended = node.silences.expire(&called, &name("operator")).await;
            drop(ended.unwrap());
        } else {
            self.named += 1;
            let called = format!("q{}", self.named);
            let text = Literal::Text(format!("h{host}"));
            let draft = SilenceDraft {
                destination_names: Vec::new(),
                annotations: BTreeMap::new(),
                calendar: String::new(),
                name: called.clone(),
                description: String::new(),
                tags: Vec::new(),
                reason: "work".into(),
                query: Some(Query {
                    clause: Clause::Equals("dimensions.host".into(), text),
                }),
                rule_names: Vec::new(),
                start_ms: None,
                end_ms: Some(self.now_ms() + 600 * 3_600_000),
                expire_when_idle_ms: None,
                warn_before_ms: None,
                from_event: None,
                editor: name("operator"),
                etag: String::new(),
                violations: Vec::new(),
            };
            drop(node.silences.create(draft, false, true).await.unwrap());
            self.silences.insert(host, called);
            self.model.silenced_hosts.insert(host);
        }
        self.review().await;
    }

    /// Begins some causes in a site, or ends most of the open ones, sometimes all.
    async fn break_or_mend(&mut self) {
        let site = self.random.random_range(0..SITES);
        let open = self.causes.iter().filter(|it| it.0 == site);
        let mut changed: Vec<_> = open.copied().collect();
        if changed.is_empty() {
            let count = self.random.random_range(1..=CAUSES);
            changed.extend((0..count).map(|cause| (site, cause)));
        } else if self.random.random_bool(0.4) {
            changed.pop();
        }
        for cause in changed {
            self.change_cause(cause).await;
        }
    }

    async fn change_cause(&mut self, (site, cause): (usize, usize)) {
        let ends = self.causes.remove(&(site, cause));
        if !ends {
            self.causes.insert((site, cause));
        }
        let dimensions = [
            ("site".to_owned(), format!("s{site}")),
            ("cause".to_owned(), format!("c{cause}")),
        ];
        let status = if ends { Status::Closed } else { Status::Open };
        self.submit(IncomingEvent {
            name: OUTAGE.into(),
            dimensions: dimensions.into(),
            // No trigger matches it.
            severity: Some(Severity::Debug),
            status: Some(status),
            timestamp_ms: self.now_ms(),
            ..event_of(site)
        })
        .await;
        if self.causes.iter().any(|it| it.0 == site) {
            self.model.out.insert(site);
        } else {
            self.model.out.remove(&site);
        }
        self.review().await;
    }

    async fn edit(&mut self) {
        let number = self.random.random_range(0..RULES);
        self.named += 1;
        let revision = 1 + self.named as u64;
        let mut rule = self.model.rules[&number].clone();
        match self.random.random_range(0..8) {
            0..=3 => rule.enabled = !rule.enabled,
            4 => rule.updates = !rule.updates,
            5 | 6 => {
                let count = self.random.random_range(1..=2);
                let destinations = (0..count).map(|_| self.random.random_range(0..DESTINATIONS));
                rule.destinations = destinations.collect();
            }
            _ => {
                let levels = [Severity::Error, Severity::Critical];
                self.model.triggers[number].level = levels[self.random.random_range(0..2)];
                self.save_trigger(number, revision).await;
            }
        }
        samples::save_rule(self.store(), &rule_of(number, &rule, revision)).await;
        self.model.rules.insert(number, rule);
        self.review().await;
    }

    /// Attempts due deliveries, a fraction of which is rejected. As in the dispatcher, a delivery
    /// waits for an earlier message of its thread to end.
    async fn deliver(&mut self, refused: f64) -> bool {
        let (index, now_ms) = (Index::DeliveryByDue, self.now_ms());
        let due = self.store().page_by_index::<Delivery>(
            index,
            Range::with_prefix(&[]),
            Direction::Ascending,
            100_000,
        );
        let due = due.await.unwrap();
        let is_any = !due.is_empty();
        for (_, read) in due {
            let stored = self.store().get::<Delivery>(read.value.key()).await;
            let stored: Stored<Delivery> = stored.unwrap().unwrap();
            let before = sequencing::find_predecessors(self.store(), &stored.value).await;
            let mut changes = self.store().new_changes();
            let mut next = stored.value.clone();
            if let Some(earlier) = before.unwrap().earlier {
                next.behind = Some(earlier.value.id);
                changes.touch_record(&earlier);
            } else if self.random.random_bool(refused) {
                next.attempts += 1;
                next.state = DeliveryState::Retry { due_ms: now_ms };
            } else {
                next.state = DeliveryState::Delivered;
                next.end_ms = Some(now_ms);
                self.arrive(&next);
            }
            changes.update(&stored, &next);
            self.store().apply(Lane::Bulk, changes).await.unwrap();
        }
        is_any
    }

    fn arrive(&mut self, delivery: &Delivery) {
        let thread = (delivery.rule, delivery.destination, delivery.thread_id());
        let place = delivery.thread_position();
        let known = self.arrived.entry(thread).or_default();
        let is_overtaken = known.iter().any(|(it, closes)| *closes && *it > place);
        assert!(!is_overtaken, "a closing arrived before an earlier message");
        known.push((place, delivery.is_closing()));
    }

    /// Checks that exactly the messages of the model were decided, each as often.
    async fn compare(&self, at: &str) {
        let hosts: HashMap<EventId, usize> = (0..SITES * super::SITES * HOSTS_PER_SITE)
            .map(|host| (event_of(host).id(), host))
            .collect();
        let number = |text: &str| text[1..].parse::<usize>().unwrap();
        let mut decided: BTreeMap<Sent, usize> = BTreeMap::new();
        for delivery in samples::all::<Delivery>(self.store()).await {
            let content = &delivery.content;
            if content.rule.name == GROUPING {
                continue;
            }
            let of = (
                number(&content.rule.name),
                number(&delivery.destination_name),
                hosts[&content.occurrence.event],
                content.occurrence.number as usize,
                content.clear,
            );
            *decided.entry(of).or_default() += 1;
        }
        let all: BTreeSet<_> = decided.keys().chain(self.model.sent.keys()).collect();
        for of in all {
            let (is, expected) = (decided.get(of), self.model.sent.get(of));
            assert_eq!(is, expected, "{at}: {of:?}");
        }
    }

    /// Ends every hold and every event, and delivers the remaining messages.
    async fn end(&mut self) {
        for (site, cause) in self.causes.clone() {
            self.change_cause((site, cause)).await;
        }
        for host in self.silences.keys().copied().collect::<Vec<_>>() {
            let called = self.silences.remove(&host).unwrap();
            self.model.silenced_hosts.remove(&host);
            let node = self.world.node();
            drop(
                node.silences
                    .expire(&called, &name("operator"))
                    .await
                    .unwrap(),
            );
        }
        self.review().await;
        let hosts: Vec<_> = self.model.lines.keys().copied().collect();
        for host in hosts {
            let event = model::Event {
                host,
                severity: None,
                status: Some(Status::Closed),
                acknowledged: None,
                timestamp_ms: self.now_ms(),
            };
            self.model.event(event, event.timestamp_ms);
            self.submit(incoming(&event)).await;
        }
        for _ in 0..4 {
            self.world
                .clock
                .advance(std::time::Duration::from_secs(120));
            self.review().await;
        }
        while self.deliver(0.3).await {}
    }

    /// Checks that no notification waits, every group has ended, and every receiver of a group was
    /// notified.
    async fn check(&self) {
        let all = samples::all::<Occurrence>(self.store()).await;
        assert!(all.iter().all(|it| it.pending.is_empty()));
        let mut groups: BTreeMap<RecordId, Vec<Delivery>> = BTreeMap::new();
        for delivery in samples::all::<Delivery>(self.store()).await {
            assert_eq!(delivery.state, DeliveryState::Delivered, "{delivery:?}");
            if let Some(group) = &delivery.content.group {
                groups.entry(group.id).or_default().push(delivery);
            }
        }
        for group in samples::all::<Group>(self.store()).await {
            assert!(group.end_ms.is_some(), "{group:?}");
            let messages = groups.remove(&group.id).unwrap();
            for (destination, called) in &group.destinations {
                let mut to_it = messages.iter().filter(|it| it.destination == *destination);
                let is_over = |it: &&Delivery| it.is_closing();
                assert!(!is_over(&to_it.clone().next().unwrap()));
                let last = to_it.clone().max_by_key(|it| it.thread_position()).unwrap();
                assert!(
                    last.is_closing(),
                    "{called} was not sent the closing of {group:?}"
                );
                assert_eq!(to_it.by_ref().filter(is_over).count(), 1, "{group:?}");
            }
        }
        assert!(groups.is_empty());
    }
}

#[tokio::test]
async fn decisions_of_random_walks_agree_with_the_model() {
    let first = walk_length("BELLWETHER_TEST_SEED");
    for seed in first..first + walk_length("BELLWETHER_DECISION_WALKS") {
        let mut walk = Walk::begin(seed).await;
        for step in 1..=walk_length("BELLWETHER_DECISION_STEPS") {
            walk.step().await;
            if step % COMPARED_EVERY == 0 {
                walk.compare(&format!("seed {seed}, step {step}")).await;
            }
        }
        walk.end().await;
        walk.compare(&format!("seed {seed}, at the end")).await;
        walk.check().await;
        let (sites, known) = (walk.model.lines.keys().copied(), &walk.model.sent);
        assert_eq!(sites.map(site_of).collect::<BTreeSet<_>>().len(), SITES);
        assert!(known.len() > 20, "only {} messages", known.len());
    }
}
