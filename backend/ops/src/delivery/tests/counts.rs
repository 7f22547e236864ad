//! Tests of counting deliveries by state. The dead ones exclude tests and deliveries that were
//! resent.

use super::*;
use crate::{
    delivery::DeliveryTally,
    domain::counter::{Subject, Tally},
};

impl World {
    async fn save_test(&self, number: i64, state: DeliveryState) {
        let id = self.save(number, "mail", "disk", state).await;
        let key = id.to_bytes().into();
        let stored = self.store.get::<Delivery>(key).await.unwrap().unwrap();
        let test = Delivery {
            test: true,
            rule: None,
            ..stored.value.clone()
        };
        let mut changes = self.store.new_changes();
        changes.update(&stored, &test);
        self.store.apply(Lane::Bulk, changes).await.unwrap();
    }

    async fn dead_now(&self) -> i64 {
        let subjects = [
            Subject::Deliveries,
            Subject::Destination(samples::id("mail")),
            Subject::Rule(samples::id("disk")),
        ];
        let counts = self.store.current_counts(&subjects).await.unwrap();
        let dead: Vec<_> = counts.iter().map(|it| it.get(Tally::Dead)).collect();
        assert!(dead.iter().all(|it| *it == dead[0]), "{dead:?}");
        dead[0]
    }

    async fn counts(&self, filter: &Filter) -> DeliveryTally {
        self.part.counts(filter).await.unwrap()
    }
}

#[tokio::test]
async fn counts_list_tests_and_resent_deliveries_separately() {
    let world = World::new();
    world.save_destination("mail").await;
    let mut dead = Vec::new();
    for number in 0..5 {
        dead.push(world.save(number, "mail", "disk", DEAD).await);
    }
    for number in 10..13 {
        let state = DeliveryState::Delivered;
        world.save(number, "mail", "disk", state).await;
    }
    for (number, state) in [(20, DEAD), (21, DEAD), (22, DeliveryState::Delivered)] {
        world.save_test(number, state).await;
    }
    assert_eq!(world.dead_now().await, 5);
    world.part.retry(dead[0]).await.unwrap();
    world.part.retry(dead[1]).await.unwrap();
    assert_eq!(world.dead_now().await, 3);

    let expected = DeliveryTally {
        waiting: 2,
        delivered: 3,
        dead: 3,
        resent: 2,
        tests: 3,
        is_complete: true,
        ..DeliveryTally::default()
    };
    assert_eq!(world.counts(&Filter::default()).await, expected);
    let by_destination = Filter {
        destination_names: vec!["mail".into()],
        ..Filter::default()
    };
    assert_eq!(world.counts(&by_destination).await, expected);
}
