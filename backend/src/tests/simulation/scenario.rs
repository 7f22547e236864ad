//! The random actions of the hour, applied to the service and to the model.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bellwether_proto::v1::{self, destination_type::Type};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    SITES,
    model::{self, Model, Trigger},
    outside::{Mood, Outside},
};
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    domain::{
        Budget, Clause, Delivery, EqualFields, IncomingEvent, Inhibition, Literal, Query, Severity,
        SharedSettings, SilenceState, Status,
    },
    lifecycle::StateChange,
    ops::{
        edit::OccurrenceTarget,
        notify_open::StoredDefinition,
        page::PageRequest,
        pending::review::PendingReview,
        resource::Filter,
        set_status::{StatusItem, set_status},
        silence::{SilenceDraft, SilenceFilter, SilenceOperations},
        trigger::event_type,
    },
    samples::{self, START_MS},
    store::Lane,
    testing::walks::walk_length,
    tests::{ground::Ground, service::Service},
    wire::time,
};

const MINUTE_MS: i64 = 60_000;
/// Number of rules with good destinations. Each misbehaving destination has one further rule.
const GOOD_RULES: usize = 45;
const GOOD_SITES: usize = 40;
const GOOD: usize = 15;
/// The misbehaving destinations, in the order of their numbers.
const BAD: [Mood; 5] = [
    Mood::Refuses,
    Mood::Hangs,
    Mood::ReturnsGone,
    Mood::Busy,
    Mood::Flaps,
];
const REFUSES: usize = GOOD;
const GONE: usize = GOOD + 2;
/// Number of destinations with a budget, which come first.
pub(super) const BUDGETED: usize = 4;
pub(super) const BUDGET: Budget = Budget {
    messages: 5,
    per: Duration::from_secs(300),
    critical_share: 20,
};
/// Delay before each attempt.
const SCHEDULE_SECONDS: [u64; 5] = [0, 5, 60, 120, 300];
const OCCURRENCES: usize = 2_000;
/// Events per step of the full walk.
const FULL_EVENTS: usize = 30;

/// An installation, its environment, and the expected results.
pub(super) struct Scenario {
    pub(super) service: Service,
    pub(super) outside: Outside,
    pub(super) model: Model,
    pub(super) moods: Vec<Mood>,
    pub(super) schedule: Vec<Duration>,
    /// Number of cancelled deliveries to the destination that responds with 410.
    pub(super) cancelled: usize,
    random: StdRng,
    clock: Arc<ManualClock>,
    hosts: usize,
    silences: usize,
    events_per_step: usize,
    /// Whether notifications released together are gathered into one group; the model counts them
    /// one by one.
    pub(super) gathers: bool,
    /// Rules that were edited, or whose triggers were edited.
    pub(super) edited: BTreeSet<usize>,
}

impl Scenario {
    pub(super) async fn new(ground: Ground, seed: u64, together_from: usize) -> Self {
        let mut moods = vec![Mood::Good; GOOD];
        moods.extend(BAD);
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let outside = Outside::start(moods.clone(), Arc::clone(&clock)).await;
        let schedule = SCHEDULE_SECONDS.map(Duration::from_secs).to_vec();
        let mut config = Config::new("unused");
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
        // This timeout is the only real time, and only for the receiver that hangs. The others have
        // a timeout that is not exceeded even on a busy machine.
        config.delivery.timeout = Duration::from_millis(200);
        config.delivery.schedule.clone_from(&schedule);
        config.shared = SharedSettings {
            together_from: together_from.try_into().unwrap(),
            ..SharedSettings::without_expiry()
        };
        let mut scenario = Self {
            service: Service::start(ground, config, Arc::clone(&clock)).await,
            outside,
            model: Model::default(),
            moods,
            schedule,
            cancelled: 0,
            random: StdRng::seed_from_u64(seed),
            clock,
            hosts: 0,
            silences: 0,
            events_per_step: walk_length("BELLWETHER_SIMULATED_EVENTS")
                .try_into()
                .unwrap(),
            gathers: together_from > 0,
            edited: BTreeSet::new(),
        };
        scenario.set_up().await;
        scenario
    }

    async fn set_up(&mut self) {
        let mut changes = self.service.store().new_changes();
        changes.insert(&inhibition());
        let store = self.service.store();
        store.apply(Lane::Admin, changes).await.unwrap();
        for number in 0..self.moods.len() {
            let draft = self.destination_draft(number);
            let destinations = self.service.destinations();
            destinations.create(&draft, false).await.unwrap();
        }
        for number in 0..GOOD_RULES + BAD.len() {
            let bad = number.checked_sub(GOOD_RULES);
            let trigger = match bad {
                Some(bad) => Trigger {
                    site: GOOD_SITES + bad,
                    level: Severity::Critical,
                    closed: false,
                },
                None => Trigger {
                    site: self.random.random_range(0..GOOD_SITES),
                    level: self.level(),
                    closed: self.random.random_bool(0.1),
                },
            };
            self.model.triggers.push(trigger);
            let draft = trigger_draft(number, trigger);
            let triggers = self.service.triggers();
            triggers.create(&draft, false).await.unwrap();
            let rule = match bad {
                Some(bad) => model::Rule {
                    enabled: true,
                    triggers: vec![number],
                    destinations: BTreeSet::from([GOOD + bad]),
                    repeat_ms: None,
                    updates: true,
                },
                None => self.some_rule(number),
            };
            let draft = self.rule_draft(number, &rule);
            self.service.rules().create(&draft, false).await.unwrap();
            self.model.rules.insert(number, rule);
        }
    }

    fn level(&mut self) -> Severity {
        Severity::ALL[self.random.random_range(2..Severity::ALL.len())]
    }

    fn some_rule(&mut self, number: usize) -> model::Rule {
        let random = &mut self.random;
        let mut triggers = vec![number];
        if number > 0 && random.random_bool(0.2) {
            triggers.push(random.random_range(0..number));
        }
        let destinations = (0..random.random_range(1..=2)).map(|_| random.random_range(0..GOOD));
        let destinations = destinations.collect();
        let interval = [0, 60_000, 600_000][random.random_range(0..3)];
        model::Rule {
            enabled: random.random_bool(0.9),
            triggers,
            destinations,
            repeat_ms: random.random_bool(0.4).then_some(interval),
            updates: random.random_bool(0.4),
        }
    }

    fn destination_draft(&self, number: usize) -> v1::Destination {
        let is_hanging = self.moods[number] == Mood::Hangs;
        let webhook = v1::Webhook {
            url: self.outside.receiver.url(&format!("/{number}")),
            ..v1::Webhook::default()
        };
        v1::Destination {
            name: format!("d{number}"),
            r#type: Some(v1::DestinationType {
                r#type: Some(Type::Webhook(webhook)),
            }),
            delivery: Some(v1::DeliverySettings {
                max_attempts: if is_hanging { 2 } else { 0 },
                timeout: (!is_hanging).then(|| time::duration(Duration::from_secs(30))),
                budget: (number < BUDGETED).then(|| v1::MessageBudget {
                    messages: BUDGET.messages.try_into().unwrap(),
                    per: Some(time::duration(BUDGET.per)),
                    critical_share: Some(BUDGET.critical_share.try_into().unwrap()),
                }),
                ..v1::DeliverySettings::default()
            }),
            ..v1::Destination::default()
        }
    }

    fn rule_draft(&self, number: usize, rule: &model::Rule) -> v1::Rule {
        let named = |letter: char, number: &usize| format!("{letter}{number}");
        let triggers = rule.triggers.iter().map(|it| named('t', it));
        let destinations = rule.destinations.iter().map(|it| named('d', it));
        v1::Rule {
            name: format!("r{number}"),
            enabled: Some(rule.enabled),
            trigger_names: triggers.collect(),
            destination_names: destinations.collect(),
            message: "{{event.summary}} is {{event.severity}}".into(),
            repeat: Some(rule.repeat_ms.is_some()),
            repeat_interval: rule.repeat_ms.map(|it| it / 1000),
            send_updates: Some(rule.updates),
            shadow: Some(is_shadow(number)),
            group: (self.gathers && groups(number)).then(|| v1::Grouping {
                by: vec!["severity".into()],
                interval: Some(time::duration_from_ms(MINUTE_MS)),
                ..v1::Grouping::default()
            }),
            ..v1::Rule::default()
        }
    }

    pub(super) async fn pass_an_hour(&mut self) {
        let mut timed: BTreeMap<i64, &str> =
            BTreeMap::from([(39, "cancel"), (40, "mend"), (50, "delete")]);
        for _ in 0..3 {
            timed.insert(self.random.random_range(1..39), "crash");
        }
        loop {
            let passed_ms = self.clock.now_ms() - START_MS;
            if passed_ms >= 60 * MINUTE_MS {
                break;
            }
            self.events().await;
            if self.random.random_bool(0.5) {
                self.operate().await;
            }
            if self.random.random_bool(0.2) {
                self.edit().await;
                self.review().await;
            }
            if self.random.random_bool(0.5) {
                let site = self.random.random_range(0..GOOD_SITES);
                self.silence_or_end(site).await;
            }
            if self.random.random_bool(0.4) {
                let site = self.random.random_range(0..GOOD_SITES);
                self.break_or_mend(site).await;
            }
            while let Some(first) = timed.first_entry()
                && *first.key() * MINUTE_MS <= passed_ms
            {
                match first.remove() {
                    "cancel" => self.cancel().await,
                    "mend" => self.mend().await,
                    "delete" => self.delete().await,
                    _ => self.service.crash(&mut self.random).await,
                }
            }
            let seconds = self.random.random_range(5..55);
            self.service.live(Duration::from_secs(seconds)).await;
            if self.gathers {
                self.review().await;
                self.service.live(Duration::ZERO).await;
            }
        }
    }

    /// Scales a minimum of the full walk to the length of this one.
    pub(super) fn scale_minimum(&self, of_full: usize) -> usize {
        of_full * self.events_per_step / FULL_EVENTS
    }

    /// Ends the silences, and advances the time until no notification waits.
    pub(super) async fn end(&mut self) {
        for site in self.model.silenced.clone() {
            self.silence_or_end(site).await;
        }
        for site in self.model.out.clone() {
            self.break_or_mend(site).await;
        }
        let rounds = if self.gathers { 3 } else { 0 };
        for _ in 0..rounds {
            self.service.live(Duration::from_secs(3600)).await;
            self.review().await;
        }
        let mut hours = 0;
        while self.service.waits().await {
            hours += 1;
            assert!(hours <= 240, "the simulation makes no progress");
            self.service.live(Duration::from_secs(3600)).await;
        }
    }

    /// Begins or ends a silence for a site.
    async fn silence_or_end(&mut self, site: usize) {
        let deciding = self.service.deciding().clone();
        let silences = SilenceOperations::new(deciding, self.service.intake().clone());
        let ends = self.model.silenced.remove(&site);
        if ends {
            let named = Filter::default();
            let filter = SilenceFilter {
                states: vec![SilenceState::Active],
                named,
                event: None,
            };
            let page = PageRequest {
                size: 1_000,
                token: String::new(),
            };
            let active = silences.list(&filter, &page).await.unwrap().items;
            let mut active = active.into_iter().map(|it| it.silence);
            let of_site = active.find(|it| it.reason == format!("s{site}")).unwrap();
            let operator = samples::name("operator");
            let expired = silences.expire(of_site.name.as_str(), &operator).await;
            drop(expired.unwrap());
        } else {
            self.model.silenced.insert(site);
            self.silences += 1;
            let draft = self.silence_draft(site);
            drop(silences.create(draft, false, true).await.unwrap());
        }
        self.review().await;
    }

    /// Begins or ends an outage that inhibits all other events of a site.
    async fn break_or_mend(&mut self, site: usize) {
        let is_mended = self.model.out.remove(&site);
        if !is_mended {
            self.model.out.insert(site);
        }
        let status = if is_mended {
            Status::Closed
        } else {
            Status::Open
        };
        let mut event = event_of(site);
        event.name = OUTAGE.into();
        event.dimensions = BTreeMap::from([("site".into(), format!("s{site}"))]);
        // No trigger matches it.
        event.severity = Some(Severity::Debug);
        event.status = Some(status);
        event.timestamp_ms = self.clock.now_ms();
        let intake = self.service.intake();
        let submitted = intake.submit(vec![event], None).await.unwrap();
        assert!(submitted.failed.is_empty());
        self.review().await;
    }

    fn silence_draft(&self, site: usize) -> SilenceDraft {
        let text = Literal::Text(format!("s{site}"));
        SilenceDraft {
            destination_names: Vec::new(),
            annotations: BTreeMap::new(),
            calendar: String::new(),
            name: format!("q{}", self.silences),
            description: String::new(),
            tags: Vec::new(),
            reason: format!("s{site}"),
            query: Some(Query {
                clause: Clause::Equals("dimensions.site".into(), text),
            }),
            rule_names: Vec::new(),
            start_ms: None,
            end_ms: Some(self.clock.now_ms() + 600 * MINUTE_MS),
            expire_when_idle_ms: None,
            warn_before_ms: None,
            from_event: None,
            editor: samples::name("operator"),
            etag: String::new(),
            violations: Vec::new(),
        }
    }

    /// Evaluates held notifications, as the service does when holds are due.
    async fn review(&mut self) {
        let deciding = self.service.deciding().clone();
        let review = PendingReview::new(deciding, self.service.intake().clone());
        review.run_once().await.unwrap();
        self.model.review(self.clock.now_ms());
    }

    /// Sends some events about known and new hosts.
    async fn events(&mut self) {
        let now_ms = self.clock.now_ms();
        let count = self.random.random_range(1..=self.events_per_step * 2);
        let mut events = Vec::new();
        for _ in 0..count {
            let is_new = self.hosts == 0
                || (self.hosts < self.scale_minimum(OCCURRENCES) && self.random.random_bool(0.75));
            let host = if is_new {
                self.hosts += 1;
                self.hosts - 1
            } else {
                self.random.random_range(0..self.hosts)
            };
            let random = &mut self.random;
            let is_late = !is_new && random.random_bool(0.1);
            let late_ms = random.random_range(1..10 * MINUTE_MS);
            let is_ahead = random.random_bool(0.05);
            let has_severity = random.random_bool(0.9);
            let severity = Severity::ALL[random.random_range(0..Severity::ALL.len())];
            let status = match random.random_range(0..20) {
                0..=2 => Some(Status::Closed),
                3 => Some(Status::Suppressed),
                4..=6 => Some(Status::Open),
                _ => None,
            };
            let event = model::Event {
                host,
                severity: has_severity.then_some(severity),
                status,
                acknowledged: random.random_bool(0.05).then(|| random.random()),
                timestamp_ms: match (is_late, is_ahead) {
                    (true, _) => now_ms - late_ms,
                    (_, true) => now_ms + 5 * late_ms,
                    _ => now_ms,
                },
            };
            self.model.event(event, now_ms);
            events.push(incoming(&event));
        }
        let submitted = self.service.intake().submit(events, None).await.unwrap();
        assert!(submitted.failed.is_empty());
    }

    /// Sets the status or acknowledged flag of some occurrence.
    async fn operate(&mut self) {
        let host = self.random.random_range(0..self.hosts);
        let status = Status::ALL[self.random.random_range(0..Status::ALL.len())];
        let (status, acknowledged) = match self.random.random_range(0..3) {
            0 => (None, Some(self.random.random())),
            _ => (Some(status), None),
        };
        let now_ms = self.clock.now_ms();
        self.model.set(host, status, acknowledged, now_ms);
        let item = StatusItem {
            target: OccurrenceTarget::Newest(event_of(host).id()),
            change: StateChange {
                status,
                acknowledged,
                ..StateChange::default()
            },
        };
        let author = samples::name("operator");
        let modules = (self.service.deciding(), self.service.intake());
        let set = set_status(modules, &[item], &author).await;
        set.unwrap().remove(0).unwrap();
    }

    /// Edits a rule or its trigger, or deletes a rule.
    async fn edit(&mut self) {
        let number = self.random.random_range(0..GOOD_RULES);
        let Some(mut rule) = self.model.rules.get(&number).cloned() else {
            return;
        };
        let rules = self.model.rules.iter();
        let of_trigger = rules.filter(|(_, rule)| rule.triggers.contains(&number));
        self.edited.extend(of_trigger.map(|(number, _)| *number));
        self.edited.insert(number);
        match self.random.random_range(0..12) {
            0 => {
                self.model.rules.remove(&number);
                // A shadow rule only records messages, so no closing is outstanding.
                if !is_shadow(number) {
                    self.model.deleted.insert(number, rule);
                }
                let name = format!("r{number}");
                return self.service.rules().delete(&name, "", false).await.unwrap();
            }
            1 | 2 => {
                let level = self.level();
                self.model.triggers[number].level = level;
                let draft = trigger_draft(number, self.model.triggers[number]);
                let triggers = self.service.triggers();
                drop(triggers.update(&draft, false).await.unwrap());
                return;
            }
            3..=5 => rule.enabled = !rule.enabled,
            6 | 7 => rule.updates = !rule.updates,
            8 | 9 => rule.repeat_ms = Some([0, 60_000][self.random.random_range(0..2)]),
            _ => rule.destinations = BTreeSet::from([self.random.random_range(0..GOOD)]),
        }
        let draft = self.rule_draft(number, &rule);
        let updated = self.service.rules().update(&draft, false).await.unwrap();
        self.model.rules.insert(number, rule);
        if self.random.random_bool(0.3) {
            let stores = StoredDefinition::Rule(updated.resource);
            let opens = self.service.opens();
            let counted = opens.count_affected(stores.clone()).await.unwrap();
            assert_eq!(opens.notify_all(&stores).await.unwrap(), counted);
            self.model.notify_open(number, self.clock.now_ms());
        }
    }

    /// Cancels the first delivery that waits for the destination that responds with 410.
    async fn cancel(&mut self) {
        let all = samples::all::<Delivery>(self.service.store()).await;
        let name = format!("d{GONE}");
        let mut waiting = all
            .iter()
            .filter(|it| it.destination_name == name && it.end_ms.is_none());
        if let Some(first) = waiting.next() {
            let deliveries = self.service.deliveries();
            deliveries.cancel(first.id).await.unwrap();
            self.cancelled += 1;
        }
    }

    /// Fixes the destination that responded with 410, and saves it.
    async fn mend(&mut self) {
        self.outside.mended.store(true, Ordering::Relaxed);
        let draft = self.destination_draft(GONE);
        let destinations = self.service.destinations();
        destinations.update(&draft, false).await.unwrap();
    }

    /// Deletes the destination that rejects all messages, after removing it from its rules.
    async fn delete(&mut self) {
        let destinations = self.service.destinations();
        let name = format!("d{REFUSES}");
        destinations.delete(&name, "", true).await.unwrap();
        self.model.gone.insert(REFUSES);
        for rule in self.model.rules.values_mut() {
            rule.destinations.remove(&REFUSES);
        }
    }
}

/// The name of an event that inhibits all other events of its site.
pub(super) const OUTAGE: &str = "outage";

/// Returns the inhibition of all events of a site during its outage.
pub(super) fn inhibition() -> Inhibition {
    let named = |name: &str| Query {
        clause: Clause::Equals("name".into(), Literal::Text(name.into())),
    };
    let site = "dimensions.site".to_owned();
    Inhibition {
        source: named(OUTAGE),
        target: named("load"),
        equal: vec![EqualFields {
            source: site.clone(),
            target: site,
        }],
        linger_ms: 0,
        ..crate::testing::samples::inhibition("outages")
    }
}

/// Whether a rule groups events, including those released from a hold.
pub(super) fn groups(rule: usize) -> bool {
    rule < GOOD_RULES && rule % 9 == 7
}

pub(super) fn is_shadow(rule: usize) -> bool {
    rule < GOOD_RULES && rule % 9 == 4
}

/// Returns the common part of all events about a host.
pub(in crate::tests) fn event_of(host: usize) -> IncomingEvent {
    IncomingEvent {
        name: "load".into(),
        kind: "load".into(),
        dimensions: BTreeMap::from([
            ("host".into(), format!("h{host}")),
            ("site".into(), format!("s{}", model::site_of(host))),
        ]),
        metadata: BTreeMap::new(),
        summary: format!("load of h{host}"),
        body: String::new(),
        severity: None,
        status: None,
        acknowledged: None,
        timestamp_ms: START_MS,
        expire_ms: None,
        report: crate::domain::Report::default(),
    }
}

pub(super) fn incoming(event: &model::Event) -> IncomingEvent {
    IncomingEvent {
        severity: event.severity,
        status: event.status,
        acknowledged: event.acknowledged,
        timestamp_ms: event.timestamp_ms,
        ..event_of(event.host)
    }
}

pub(super) fn trigger_query(trigger: Trigger) -> Query {
    let text = |text: &str| Literal::Text(text.into());
    let site = text(&format!("s{}", trigger.site));
    let level = text(trigger.level.as_str());
    let mut clauses = vec![
        Clause::Equals("dimensions.site".into(), site),
        Clause::GreaterAndEquals("severity".into(), level),
    ];
    if trigger.closed {
        clauses.push(Clause::Equals("status".into(), text("closed")));
    }
    Query {
        clause: Clause::And(clauses),
    }
}

fn trigger_draft(number: usize, trigger: Trigger) -> v1::Trigger {
    let query = trigger_query(trigger);
    v1::Trigger {
        name: format!("t{number}"),
        r#type: Some(event_type(&query)),
        ..v1::Trigger::default()
    }
}

const _: () = assert!(GOOD_SITES + BAD.len() == SITES);
