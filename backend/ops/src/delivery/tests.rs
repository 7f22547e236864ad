//! Tests of listing, retrying and cancelling, with a store in memory.

mod bulk;
mod conditions;
mod counts;
mod obligations;
mod waiting;

use std::{sync::Arc, time::Duration};

use super::{Deliveries, Filter};
use crate::{
    clock::Clock as _,
    domain::{Delivery, DeliveryState, Destination, DestinationKind, RecordId, destination::Email},
    error::Error,
    message::sample,
    page::PageRequest,
    samples::{self, world},
    store::{Lane, Store},
};

type World = world::World<Deliveries>;

fn kind(subject: &str) -> DestinationKind {
    DestinationKind::Email(Email {
        to: "ops@example.com".into(),
        subject: subject.into(),
        ..Email::default()
    })
}

impl World {
    fn new() -> Self {
        let world = world::at_rest();
        let deliveries = Deliveries::new(world.store.clone(), world.clock());
        world.with(deliveries)
    }

    async fn save_destination(&self, name: &str) {
        let destination = Destination {
            kind: kind("current"),
            ..samples::destination(name)
        };
        let mut changes = self.store.new_changes();
        changes.insert(&destination);
        self.store.apply(Lane::Admin, changes).await.unwrap();
    }

    /// Stores a delivery that was decided `number` milliseconds after the start.
    async fn save(
        &self,
        number: i64,
        destination: &str,
        rule: &str,
        state: DeliveryState,
    ) -> RecordId {
        let create_ms = samples::START_MS + number;
        let occurrence = sample::sample_occurrence(create_ms);
        let mut content = sample::sample_content(occurrence, kind("old"), String::new());
        content.rule.name = rule.into();
        let delivery = Delivery {
            rule: Some(samples::id(rule)),
            event: Some(content.occurrence.event),
            state,
            attempts: 1,
            last_error: "it broke".into(),
            ..Delivery::new(
                RecordId::from_parts(create_ms.unsigned_abs(), 7),
                (samples::id(destination), destination.into()),
                content,
                create_ms,
            )
        };
        let mut changes = self.store.new_changes();
        changes.insert(&delivery);
        self.store.apply(Lane::Bulk, changes).await.unwrap();
        delivery.id
    }

    /// Stores sixty deliveries whose fields vary with their number.
    async fn save_sixty(&self) {
        for number in 0..60 {
            let destination = match number % 3 {
                0 => "mail",
                1 => "chat",
                _ => "gone",
            };
            let rule = if number % 2 == 0 { "disk" } else { "cpu" };
            let state = if number % 4 == 0 {
                DEAD
            } else {
                DeliveryState::Delivered
            };
            self.save(number, destination, rule, state).await;
        }
    }

    async fn list(&self, filter: &Filter, size: i32) -> Vec<i64> {
        let mut numbers = Vec::new();
        let mut token = String::new();
        loop {
            let request = PageRequest { size, token };
            let (page, next) = self.part.list(filter, &request).await.unwrap();
            assert!(page.len() <= usize::try_from(size).unwrap());
            numbers.extend(
                page.iter()
                    .map(|delivery| delivery.create_ms - samples::START_MS),
            );
            if next.is_empty() {
                return numbers;
            }
            token = next;
        }
    }
}

const DEAD: DeliveryState = DeliveryState::Dead;

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

type Passes = fn(i64) -> bool;

#[tokio::test]
async fn list_is_newest_first_and_filtered_across_pages() {
    let world = World::new();
    world.save_destination("mail").await;
    world.save_destination("chat").await;
    world.save_sixty().await;
    let filter = Filter::default;
    let cases: [(Filter, Passes); 8] = [
        (filter(), |_| true),
        (
            Filter {
                states: vec![DEAD.number()],
                ..filter()
            },
            |n| n % 4 == 0,
        ),
        (
            Filter {
                states: vec![DEAD.number(), DeliveryState::Delivered.number()],
                ..filter()
            },
            |_| true,
        ),
        (
            Filter {
                destination_names: texts(&["mail", "chat"]),
                ..filter()
            },
            |n| n % 3 < 2,
        ),
        (
            Filter {
                destination_names: texts(&["gone"]),
                ..filter()
            },
            |n| n % 3 == 2,
        ),
        (
            Filter {
                rule_names: texts(&["cpu"]),
                destination_names: texts(&["chat"]),
                ..filter()
            },
            |n| n % 2 == 1 && n % 3 == 1,
        ),
        (
            Filter {
                start_ms: Some(samples::START_MS + 10),
                end_ms: Some(samples::START_MS + 20),
                ..filter()
            },
            |n| (10..20).contains(&n),
        ),
        (
            Filter {
                destination_names: texts(&["nobody"]),
                ..filter()
            },
            |_| false,
        ),
    ];
    for (filter, passes) in cases {
        let expected: Vec<i64> = (0..60).rev().filter(|number| passes(*number)).collect();
        for size in [1, 7, 50, 1000] {
            assert_eq!(
                world.list(&filter, size).await,
                expected,
                "{filter:?} by {size}"
            );
        }
    }
}

#[tokio::test]
async fn page_token_of_other_filters_is_refused() {
    let world = World::new();
    for number in 0..3 {
        world.save(number, "mail", "disk", DEAD).await;
    }
    let mut request = PageRequest {
        size: 1,
        token: String::new(),
    };
    let (_, token) = world.part.list(&Filter::default(), &request).await.unwrap();
    request.token = token;
    let other = Filter {
        states: vec![DEAD.number()],
        ..Filter::default()
    };
    let refused = world.part.list(&other, &request).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn retry_of_ended_delivery_creates_one_with_current_templates() {
    let world = World::new();
    world.save_destination("mail").await;
    let old = world.save(0, "mail", "disk", DEAD).await;
    world.clock.advance(Duration::from_secs(60));
    let new = world.part.retry(old).await.unwrap();
    assert_ne!(new.id, old);
    assert_eq!(new.retry_of, Some(old));
    assert_eq!((new.attempts, new.last_error.as_str()), (0, ""));
    let due_ms = samples::START_MS + 60_000;
    assert_eq!(new.state, DeliveryState::Pending { due_ms });
    assert_eq!(new.content.destination_kind, kind("current"));
    assert_eq!(world.part.get(new.id).await.unwrap().0, new);
    assert_eq!(world.part.get(old).await.unwrap().0.state, DEAD);
}

#[tokio::test]
async fn retry_makes_a_waiting_delivery_due_now() {
    let world = World::new();
    let due_ms = samples::START_MS + 3_600_000;
    let id = world
        .save(0, "mail", "disk", DeliveryState::Retry { due_ms })
        .await;
    let hastened = world.part.retry(id).await.unwrap();
    assert_eq!(hastened.id, id);
    let now_ms = samples::START_MS;
    assert_eq!(hastened.state, DeliveryState::Retry { due_ms: now_ms });
}

#[tokio::test]
async fn retry_and_cancel_report_disallowed_states() {
    let world = World::new();
    let until_ms = samples::START_MS + 1;
    let leased = world
        .save(0, "mail", "disk", DeliveryState::Leased { until_ms })
        .await;
    let orphan = world.save(1, "gone", "disk", DEAD).await;
    let cases = [
        (world.part.retry(leased).await, "in progress"),
        (world.part.retry(orphan).await, "`gone` no longer exists"),
        (world.part.cancel(orphan).await, "it is dead"),
        (world.part.retry(samples::id("none")).await, "not found"),
    ];
    for (result, text) in cases {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let cancelled = world.part.cancel(leased).await.unwrap();
    assert_eq!(cancelled.state, DeliveryState::Cancelled);
    assert_eq!(cancelled.end_ms, Some(samples::START_MS));
}
