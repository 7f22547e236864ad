//! Tests of cells: services without shared state, each with the events of some tenants. A router
//! selects the cell by the tenant dimension. It stands for the senders, and is not part of the
//! product.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bellwether_proto::v1::{
    self, config_document::Resource as DefinitionVersion, destination_type::Type,
};

use super::{ground::Ground, invariants, service::Service};
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    domain::{
        Clause, CloseReason, Group, HoldKind, IncomingEvent, Literal, Occurrence, Query, Role,
        Severity, SharedSettings, Status,
    },
    ops::{
        config::{Configuration, Document},
        review::Reviewer,
        trigger::event_type,
    },
    samples::{self, START_MS},
    send::EgressGuard,
    sending::receiver::{Receiver, Reply},
    wire::time::duration_from_ms,
};

const CELLS: usize = 3;
const TENANTS: usize = 9;
/// Rate limit of one destination in each cell.
const PER_MINUTE: i32 = 6;
const MINUTE: Duration = Duration::from_secs(60);
const AGE: Duration = Duration::from_secs(10 * 60);

struct Cells {
    services: Vec<Service>,
    /// The cell that is unreachable.
    lost: Option<usize>,
    routes: BTreeMap<String, usize>,
    sent: BTreeMap<String, usize>,
    clock: Arc<ManualClock>,
    receiver: Receiver,
}

fn tenant(number: usize) -> String {
    format!("t{number}")
}

fn query_named(name: &str) -> Query {
    Query {
        clause: Clause::Equals("name".into(), Literal::Text(name.into())),
    }
}

fn documents(receiver: &Receiver) -> Vec<Document> {
    let mut all = Vec::new();
    for (name, most) in [("load", 0), ("burst", PER_MINUTE)] {
        all.push(DefinitionVersion::Trigger(v1::Trigger {
            name: name.into(),
            r#type: Some(event_type(&query_named(name))),
            ..v1::Trigger::default()
        }));
        let webhook = v1::Webhook {
            url: receiver.url(&format!("/{name}")),
            ..v1::Webhook::default()
        };
        all.push(DefinitionVersion::Destination(v1::Destination {
            name: name.into(),
            r#type: Some(v1::DestinationType {
                r#type: Some(Type::Webhook(webhook)),
            }),
            delivery: Some(v1::DeliverySettings {
                max_per_minute: most,
                ..v1::DeliverySettings::default()
            }),
            ..v1::Destination::default()
        }));
        all.push(DefinitionVersion::Rule(v1::Rule {
            name: name.into(),
            enabled: Some(true),
            trigger_names: vec![name.into()],
            destination_names: vec![name.into()],
            message: "{{event.summary}}".into(),
            send_updates: Some(name == "load"),
            group: (name == "load").then(|| v1::Grouping {
                by: vec!["site".into()],
                wait: Some(duration_from_ms(10_000)),
                ..v1::Grouping::default()
            }),
            ..v1::Rule::default()
        }));
    }
    all.push(DefinitionVersion::Inhibition(v1::Inhibition {
        name: "outages".into(),
        enabled: Some(true),
        source_filter: "name=outage".into(),
        target_filter: "name=load".into(),
        equal: vec![v1::EqualFields {
            source: "site".into(),
            ..v1::EqualFields::default()
        }],
        ..v1::Inhibition::default()
    }));
    let document = |definition| Document {
        definition,
        must_be_new: true,
    };
    all.into_iter().map(document).collect()
}

impl Cells {
    async fn start() -> Self {
        let receiver = Receiver::start(|_| Reply::status(200)).await;
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let mut config = Config::new("unused");
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
        config.shared = SharedSettings {
            error_age_max: AGE,
            together_from: 0,
            ..SharedSettings::without_expiry()
        };
        let mut services = Vec::new();
        for _ in 0..CELLS {
            let ground = Ground::memory();
            let service = Service::start(ground, config.clone(), Arc::clone(&clock)).await;
            let guard = Arc::new(EgressGuard::new(&config.egress, Vec::new()));
            let all = Configuration::new(service.store().clone(), clock.clone(), guard);
            let documents = documents(&receiver);
            let made = all.apply(&documents, ("", Role::Editor), false).await;
            assert_eq!(made.unwrap().len(), documents.len());
            services.push(service);
        }
        let mut cells = Self {
            services,
            lost: None,
            routes: (0..TENANTS).map(|it| (tenant(it), it % CELLS)).collect(),
            sent: BTreeMap::new(),
            clock,
            receiver,
        };
        cells.live(Duration::ZERO).await;
        cells
    }

    fn event(&self, name: &str, of: usize, site: &str, number: usize) -> IncomingEvent {
        let dimensions = [
            ("tenant", tenant(of)),
            ("site", site.into()),
            ("host", format!("h{number}")),
        ];
        IncomingEvent {
            name: name.into(),
            dimensions: dimensions.map(|(key, value)| (key.into(), value)).into(),
            severity: Some(Severity::Error),
            timestamp_ms: self.clock.now_ms(),
            ..super::simulation::event_of(0)
        }
    }

    /// Sends each event to the cell of its tenant. Returns the rejected ones.
    async fn send(&mut self, events: Vec<IncomingEvent>) -> Vec<IncomingEvent> {
        let mut unsent = Vec::new();
        for event in events {
            let cell = self.routes[&event.dimensions["tenant"]];
            if self.lost == Some(cell) {
                unsent.push(event);
                continue;
            }
            self.sent.insert(event.id().to_string(), cell);
            let intake = self.services[cell].intake();
            let done = intake.submit(vec![event], None).await.unwrap();
            assert!(done.failed.is_empty());
        }
        unsent
    }

    /// Advances the time in all cells, and lets the running cells do the work that is due.
    async fn live(&mut self, time: Duration) {
        let end_ms = self.clock.now_ms() + i64::try_from(time.as_millis()).unwrap();
        loop {
            let mut next_ms = end_ms;
            for (cell, service) in self.services.iter_mut().enumerate() {
                if self.lost != Some(cell) {
                    let (deciding, intake) = (service.deciding().clone(), service.intake().clone());
                    assert!(Reviewer::new(deciding, intake).run_once().await);
                    next_ms = next_ms.min(service.settled().await);
                }
            }
            let left_ms = u64::try_from(next_ms - self.clock.now_ms()).unwrap();
            // Holds are evaluated every second.
            let step = Duration::from_millis(left_ms).min(Duration::from_secs(1));
            if step.is_zero() && next_ms == end_ms {
                return;
            }
            self.clock.advance(step);
        }
    }

    async fn occurrences(&self, cell: usize) -> Vec<Occurrence> {
        samples::all(self.services[cell].store()).await
    }

    fn came(&self, path: &str) -> usize {
        let received = self.receiver.received_requests();
        received.iter().filter(|it| it.path == path).count()
    }

    /// Checks that each event is only in the cell that it was sent to.
    async fn check(&self) {
        let mut found = BTreeMap::new();
        for cell in 0..CELLS {
            invariants::check(self.services[cell].store(), usize::MAX).await;
            let events: BTreeSet<_> = self
                .occurrences(cell)
                .await
                .iter()
                .map(|it| it.event)
                .collect();
            for event in events {
                assert_eq!(found.insert(event.to_string(), cell), None, "in two cells");
            }
        }
        assert_eq!(found, self.sent);
    }
}

#[tokio::test]
async fn groups_and_inhibitions_are_per_cell_and_limits_add_up() {
    let mut cells = Box::pin(Cells::start()).await;
    // All cells use the same site name, but each cell has a separate group.
    let events = (0..TENANTS)
        .map(|of| cells.event("load", of, "all", 0))
        .collect();
    assert!(cells.send(events).await.is_empty());
    cells.live(MINUTE).await;
    for service in &cells.services {
        let groups: Vec<Group> = samples::all(service.store()).await;
        let members: Vec<_> = groups.iter().map(|it| it.member_count as usize).collect();
        assert_eq!(members, [TENANTS / CELLS]);
    }
    assert_eq!(cells.came("/load"), CELLS);

    // A cause in the first cell inhibits effects there and nowhere else.
    let outage = cells.event("outage", 0, "x", 0);
    cells.send(vec![outage]).await;
    cells.live(Duration::ZERO).await;
    let events = (0..TENANTS)
        .map(|of| cells.event("load", of, "x", 1))
        .collect();
    cells.send(events).await;
    cells.live(MINUTE).await;
    for cell in 0..CELLS {
        let all = cells.occurrences(cell).await;
        let held = all.iter().flat_map(|it| &it.pending);
        let held = held.filter(|it| it.held_by.iter().any(|by| by.kind == HoldKind::Inhibition));
        let expected = if cell == 0 { TENANTS / CELLS } else { 0 };
        assert_eq!(held.count(), expected, "cell {cell}");
    }
    assert_eq!(cells.came("/load"), 2 * CELLS - 1);

    // Each cell sends up to its own limit, so that together they exceed the limit of one.
    let count = 4 * CELLS * usize::try_from(PER_MINUTE).unwrap();
    let events = (0..count)
        .map(|it| cells.event("burst", it % TENANTS, "b", it))
        .collect();
    cells.send(events).await;
    cells.live(Duration::from_secs(59)).await;
    let came = cells.came("/burst");
    assert_eq!(came, CELLS * usize::try_from(PER_MINUTE).unwrap());
    cells.live(5 * MINUTE).await;
    assert_eq!(cells.came("/burst"), count);
    cells.check().await;
}

#[tokio::test]
async fn cell_loss_stops_only_its_tenants() {
    let mut cells = Box::pin(Cells::start()).await;
    cells.services[1].stop().await;
    cells.lost = Some(1);
    let events = (0..TENANTS)
        .map(|of| cells.event("burst", of, "a", 0))
        .collect();
    let unsent = cells.send(events).await;
    let tenants: Vec<_> = unsent.iter().map(|it| &*it.dimensions["tenant"]).collect();
    assert_eq!(tenants, ["t1", "t4", "t7"]);
    cells.live(MINUTE).await;
    assert_eq!(cells.came("/burst"), TENANTS - unsent.len());
    cells.services[1].live_again().await;
    cells.lost = None;
    assert!(cells.send(unsent).await.is_empty());
    cells.live(MINUTE).await;
    assert_eq!(cells.came("/burst"), TENANTS);
    cells.check().await;

    // Open events stay in the old cell. Later events go to the tenant's new cell.
    let opened = cells.event("load", 0, "m", 7);
    cells.send(vec![opened.clone()]).await;
    cells.live(MINUTE).await;
    cells.routes.insert(tenant(0), 2);
    let closed = IncomingEvent {
        status: Some(Status::Closed),
        timestamp_ms: cells.clock.now_ms(),
        ..opened.clone()
    };
    cells.sent.insert(opened.id().to_string(), 0);
    cells.services[2]
        .intake()
        .submit(vec![closed], None)
        .await
        .unwrap();
    let of_event = |all: Vec<Occurrence>| {
        let found = all.into_iter().find(|it| it.event == opened.id());
        found.map(|it| it.close.map(|close| close.reason))
    };
    assert_eq!(of_event(cells.occurrences(0).await), Some(None));
    let next = cells.event("load", 0, "m", 8);
    cells.send(vec![next]).await;
    cells.live(MINUTE).await;
    assert_eq!(cells.came("/load"), 2);
    // The old cell sends the closing message when it closes the event because of its age.
    cells.live(9 * MINUTE).await;
    assert_eq!(
        of_event(cells.occurrences(0).await),
        Some(Some(CloseReason::Aged))
    );
    let clear = cells.receiver.received_requests();
    let clear = clear
        .iter()
        .filter(|it| it.path == "/load" && it.json()["clear"] == true);
    let about: Vec<_> = clear
        .map(|it| it.json()["event"]["dimensions"]["host"].clone())
        .collect();
    assert_eq!(about, ["h7"]);
}
