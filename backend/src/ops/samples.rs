//! Values that tests of operations start from.

pub(crate) mod world;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    clock::{Clock, ManualClock},
    domain::{
        Clause, DeliverySettings, Destination, DestinationKind, IncomingEvent, Literal, Name,
        Occurrence, Query, RecordId, Rule, Secret, Severity, SharedSettings, TemplateLanguage,
        Trigger,
        destination::{EventTemplates, Webhook, WebhookMethod},
    },
    ops::{
        deciding::Deciding,
        intake::Intake,
        occurrence::{Arrival, Received, receive},
        ruleset::Ruleset,
        settings,
    },
    store::{
        Direction, Lane, Record, Sealer, Store,
        engine::{Action, Change, Expect, Range, memory::MemoryEngine},
    },
};

/// A trigger that [`save_rule`] stores: severity error or worse.
pub(crate) const DISK_TRIGGER: &str = "disk";

/// When tests begin, in milliseconds since 1970.
pub(crate) const START_MS: i64 = 1_800_000_000_000;

/// A clock that stands at [`START_MS`], and by which six seconds pass with every look.
#[derive(Debug, Default)]
pub(crate) struct HurriedClock(AtomicU64);

#[async_trait]
impl Clock for HurriedClock {
    fn now_ms(&self) -> i64 {
        START_MS
    }

    fn passed(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(6, Ordering::Relaxed))
    }

    async fn wait_until(&self, _at_ms: i64) {}
}

/// What decisions need, on a store, with a clock that stands at [`START_MS`].
pub(crate) async fn deciding(store: Store) -> (Deciding, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START_MS));
    (deciding_at(store, &clock).await, clock)
}

/// The same with a clock that there is.
pub(crate) async fn deciding_at(store: Store, clock: &Arc<ManualClock>) -> Deciding {
    let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
    Deciding {
        ruleset: Arc::new(Ruleset::load(store.clone()).await.unwrap()),
        store,
        clock,
    }
}

/// An intake that works until the guard is dropped.
pub(crate) fn intake(deciding: &Deciding) -> (Intake, DropGuard) {
    let (intake, workers) = Intake::new(deciding.clone());
    let shutdown = CancellationToken::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime of a test ends with the test"
    )]
    tokio::spawn(workers.run(shutdown.clone()));
    (intake, shutdown.drop_guard())
}

/// What the service says of that kind, once it is on disk.
pub(crate) async fn said(store: &Store, kind: &str) -> Occurrence {
    for _ in 0..1_000 {
        let mut all = all::<Occurrence>(store).await.into_iter();
        if let Some(said) = all.find(|it| it.kind == kind) {
            return said;
        }
        tokio::task::yield_now().await;
    }
    panic!("the service reported no event of type {kind}")
}

/// Makes a record one that no one can read.
pub(crate) async fn damage<T: Record>(store: &Store, key: Vec<u8>) {
    let stored = store.get::<T>(key.clone()).await.unwrap();
    let expect = Expect::Version(stored.expect("a record").version);
    let change = Change::new(T::KIND, &key, expect, Action::Put(b"\x01damaged".into()));
    let applied = store.engine().apply(Lane::Admin, vec![change].into());
    applied.await.unwrap();
}

/// All records of a kind, by key.
pub(crate) async fn all<T: Record>(store: &Store) -> Vec<T> {
    let range = Range::under(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 100_000).await;
    page.unwrap().into_iter().map(|it| it.value).collect()
}

/// An empty store.
pub(crate) fn store() -> Store {
    let engine = Arc::new(MemoryEngine::new());
    Store::new(engine, Arc::new(Sealer::ephemeral()))
}

/// A name.
pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// An identity built from a text, the same every time.
pub(crate) fn id(text: &str) -> RecordId {
    let random = text
        .bytes()
        .fold(7_u128, |sum, byte| sum * 31 + u128::from(byte));
    RecordId::from_parts(1, random % (1 << 80))
}

/// An event of severity error about one host.
pub(crate) fn event(host: &str) -> IncomingEvent {
    IncomingEvent {
        name: "disk-full".into(),
        kind: "disk".into(),
        dimensions: BTreeMap::from([("host".into(), host.into())]),
        metadata: BTreeMap::new(),
        summary: "the disk is full".into(),
        body: String::new(),
        severity: Some(Severity::Error),
        status: None,
        acknowledged: None,
        timestamp_ms: START_MS,
        expire_ms: None,
        report: crate::domain::Report::default(),
    }
}

/// What [`event`] opens.
pub(crate) fn occurrence() -> Occurrence {
    let event = event("a");
    let arrival = Arrival {
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: START_MS,
    };
    match receive(None, &arrival, &SharedSettings::default(), id("occurrence")) {
        Received::Opened(opened) => *opened,
        Received::Repeated(_) | Received::Counted => unreachable!("nothing was there before"),
    }
}

/// A trigger: `disk` (severity error or worse), `nothing`, or else everything.
pub(crate) fn trigger(of: &str) -> Trigger {
    let severity = |word: &str| Literal::Text(word.into());
    let clause = match of {
        DISK_TRIGGER => Clause::GreaterAndEquals("severity".into(), severity("error")),
        "nothing" => Clause::Equals("name".into(), Literal::Text("nothing is called so".into())),
        "closed" => Clause::Equals("status".into(), Literal::Text("closed".into())),
        _ => Clause::GreaterAndEquals("severity".into(), severity("debug")),
    };
    Trigger {
        id: id(of),
        name: name(of),
        description: String::new(),
        tags: Vec::new(),
        query: Query { clause },
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

/// An enabled rule without repeats and updates.
pub(crate) fn rule(of: &str, triggers: &[&str], destinations: &[&str]) -> Rule {
    Rule {
        id: id(of),
        name: name(of),
        description: String::new(),
        tags: Vec::new(),
        enabled: true,
        trigger_names: triggers.iter().map(|it| name(it)).collect(),
        destination_names: destinations.iter().map(|it| name(it)).collect(),
        message: String::new(),
        template_language: TemplateLanguage::default(),
        repeat: false,
        repeat_interval_seconds: 3600,
        send_updates: false,
        delay_ms: 0,
        auto_pause_ms: 0,
        active_calendar: None,
        group: None,
        flapping: None,
        shadow: false,
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

/// A destination; one whose name starts with `event` makes events, any other is a webhook.
pub(crate) fn destination(of: &str) -> Destination {
    let kind = if of.starts_with("event") {
        DestinationKind::Event(EventTemplates {
            name_template: "made".into(),
            type_template: "made".into(),
            summary_template: "made".into(),
            severity: Severity::Error,
        })
    } else {
        DestinationKind::Webhook(Webhook {
            secret_url: Secret::default(),
            auth: None,
            on_clear: None,
            values: BTreeMap::new(),
            expect: None,
            compress: false,
            url: "https://example.org/".into(),
            method: WebhookMethod::Post,
            headers: Vec::new(),
            payload: String::new(),
            signing_secret: Secret::default(),
        })
    };
    Destination {
        id: id(of),
        name: name(of),
        description: String::new(),
        tags: Vec::new(),
        kind,
        template_language: TemplateLanguage::default(),
        delivery: DeliverySettings::default(),
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

/// Stores settings, where none are stored.
pub(crate) async fn save_settings(store: &Store, values: SharedSettings) {
    let mut changes = store.changes();
    changes.insert(&settings::first(values, 0).unwrap());
    store.apply(Lane::Admin, changes).await.unwrap();
}

/// Stores a rule, with its triggers and destinations where they are missing.
pub(crate) async fn save_rule(store: &Store, rule: &Rule) {
    let mut changes = store.changes();
    for name in &rule.trigger_names {
        let found = store.get::<Trigger>(name.as_str().into()).await.unwrap();
        if found.is_none() {
            changes.insert(&trigger(name.as_str()));
        }
    }
    for name in &rule.destination_names {
        let found = store
            .get::<Destination>(name.as_str().into())
            .await
            .unwrap();
        if found.is_none() {
            changes.insert(&destination(name.as_str()));
        }
    }
    match store.get::<Rule>(rule.name.as_str().into()).await.unwrap() {
        Some(old) => changes.update(&old, rule),
        None => changes.insert(rule),
    }
    store.apply(Lane::Admin, changes).await.unwrap();
}
