//! Invariants of every store at rest.

use std::collections::{BTreeMap, HashSet};

use crate::{
    delivery::decide::is_interrupted,
    domain::{Attempt, Delivery, DeliveryState, Occurrence},
    limits::CUT_OFFS_MAX,
    samples::all,
    store::{Store, verify},
};

/// Reads all records, and fails on the first inconsistency.
pub(super) async fn check(store: &Store, attempts_max: usize) {
    let findings = verify(store, &|_| {}).await;
    assert_eq!(findings.descriptions, Vec::<String>::new());
    assert!(findings.is_complete);
    let occurrences: Vec<Occurrence> = all(store).await;
    let events: HashSet<_> = occurrences.iter().map(Occurrence::id).collect();
    let mut attempts: BTreeMap<_, Vec<Attempt>> = BTreeMap::new();
    for attempt in all::<Attempt>(store).await {
        attempts.entry(attempt.delivery).or_default().push(attempt);
    }
    for delivery in all::<Delivery>(store).await {
        let attempts = attempts.remove(&delivery.id).unwrap_or_default();
        check_delivery(&delivery, &attempts, attempts_max);
        let occurrence = delivery.content.occurrence.id();
        assert!(
            delivery.test || events.contains(&occurrence),
            "delivery {} is about {occurrence}, which does not exist",
            delivery.id
        );
    }
}

fn check_delivery(delivery: &Delivery, attempts: &[Attempt], attempts_max: usize) {
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
    let begun: Vec<_> = (1..=delivery.attempts).collect();
    assert_eq!(numbers, begun, "{delivery:?}");
    let cut_off = attempts.iter().filter(|it| is_interrupted(it)).count();
    let reduced = usize::from(delivery.is_reduced);
    let counted = numbers.len() - cut_off - delivery.deferrals as usize;
    assert!(
        counted <= attempts_max.saturating_add(reduced),
        "{delivery:?}"
    );
    assert!(cut_off <= CUT_OFFS_MAX as usize, "{delivery:?}");
    let waits = delivery.state.due_ms().is_some();
    assert_ne!(waits, delivery.end_ms.is_some(), "{delivery:?}");
    let is_leased = matches!(delivery.state, DeliveryState::Leased { .. });
    let in_flight = attempts.iter().filter(|it| it.outcome.is_none());
    let latest = in_flight.map(|attempt| attempt.number);
    let expected = is_leased.then_some(delivery.attempts);
    assert_eq!(
        latest.collect::<Vec<_>>(),
        Vec::from_iter(expected),
        "{delivery:?}"
    );
}
