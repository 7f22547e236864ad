//! Tests of arbitrary graphs of causes: every held occurrence is reachable from one that is not
//! held, and every connected component contains one that is not held.

use proptest::prelude::*;

use super::*;
use crate::{
    domain::{Clause, Literal, Query},
    samples,
};

/// Returns the inhibition for an edge of a graph.
fn inhibition(number: u64, from: usize, to: usize) -> Arc<LoadedInhibition> {
    let named = |at: usize| Query {
        clause: Clause::Equals("name".into(), Literal::Text(format!("n{at}"))),
    };
    let inhibition = Inhibition {
        id: samples::id(number),
        source: named(from),
        target: named(to),
        equal: vec![EqualFields {
            source: "site".into(),
            target: "site".into(),
        }],
        ..samples::inhibition(&format!("arrow {number}"))
    };
    Arc::new(LoadedInhibition::new(inhibition).unwrap())
}

/// A graph whose edges lead from causes to effects, and the order in which its events open.
struct Graph {
    inhibitions: Inhibitions,
    events: Vec<Occurrence>,
    causes: Causes,
}

impl Graph {
    fn new(count: usize, arrows: &[(usize, usize)], order: &[usize]) -> Self {
        let loaded = (0..).zip(arrows);
        let loaded = loaded.map(|(number, (from, to))| inhibition(number, *from, *to));
        let inhibitions = Inhibitions::new(loaded.collect());
        let causes = Causes::default();
        let mut events = Vec::new();
        for (at, opened) in order.iter().enumerate().take(count) {
            let mut event = samples::occurrence(u32::try_from(at).unwrap());
            event.key = samples::id(1_000 + at as u64);
            event.name = format!("n{at}");
            event.status = Status::Open;
            event.start_ms = i64::try_from(*opened).unwrap();
            event.dimensions.insert("site".into(), "One".into());
            event.causes = inhibitions.cause_marks(&event, false, 0);
            causes.record_decided(&event);
            events.push(event);
        }
        Self {
            inhibitions,
            events,
            causes,
        }
    }

    fn free(&self) -> Vec<usize> {
        let is_free = |event: &Occurrence| {
            let is_marked = |it: &Inhibition| it.counted_revision == it.revision;
            let held_by = self.inhibitions.holds(event, &self.causes, is_marked, 1);
            held_by.is_empty()
        };
        let all = self.events.iter().enumerate();
        all.filter(|(_, it)| is_free(it))
            .map(|(at, _)| at)
            .collect()
    }
}

#[test]
fn oldest_event_of_a_cycle_is_not_inhibited() {
    for (count, arrows, order, free) in [
        (2, vec![], vec![0, 1], vec![0, 1]),
        (3, vec![(0, 1), (1, 2)], vec![2, 1, 0], vec![0]),
        (2, vec![(0, 1), (1, 0)], vec![1, 0], vec![1]),
        (2, vec![(0, 1), (1, 0)], vec![0, 0], vec![0]),
        (3, vec![(0, 1), (1, 2), (2, 0)], vec![5, 4, 6], vec![1]),
        // A cycle that causes a further event, and a cycle with an outside cause.
        (3, vec![(0, 1), (1, 0), (1, 2)], vec![1, 2, 0], vec![0]),
        (3, vec![(0, 1), (1, 0), (2, 0)], vec![1, 2, 3], vec![2]),
    ] {
        let graph = Graph::new(count, &arrows, &order);
        assert_eq!(graph.free(), free, "{arrows:?} {order:?}");
    }
}

#[test]
fn only_the_oldest_event_of_long_chains_is_not_inhibited() {
    for count in [
        INHIBITION_CHAIN_MAX,
        INHIBITION_CHAIN_MAX + 1,
        INHIBITION_CHAIN_MAX + 3,
        INHIBITION_CAUSES_MAX - 1,
        INHIBITION_CAUSES_MAX,
        INHIBITION_CAUSES_MAX + 1,
    ] {
        let chain: Vec<_> = (1..count).map(|at| (at - 1, at)).collect();
        let ring = [&chain[..], &[(count - 1, 0)]].concat();
        let order: Vec<_> = (0..count).collect();
        let from = |first: usize| {
            let opened = (0..count).map(|at| (at + count - first) % count);
            opened.collect::<Vec<_>>()
        };
        assert_eq!(Graph::new(count, &chain, &order).free(), [0], "{count}");
        assert_eq!(Graph::new(count, &ring, &from(0)).free(), [0], "{count}");
        assert_eq!(Graph::new(count, &ring, &from(5)).free(), [5], "{count}");
    }
}

#[test]
fn missing_field_never_matches_and_case_is_ignored() {
    let mut graph = Graph::new(2, &[(0, 1)], &[0, 1]);
    graph.events[1]
        .dimensions
        .insert("site".into(), "oNE".into());
    assert_eq!(graph.free(), [0]);
    graph.events[1]
        .dimensions
        .insert("site".into(), "two".into());
    assert_eq!(graph.free(), [0, 1]);
    graph.events[1].dimensions.remove("site");
    assert_eq!(graph.free(), [0, 1]);
}

/// Returns the connected components, ignoring the direction of edges.
fn parts(count: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let mut part: Vec<usize> = (0..count).collect();
    for _ in 0..count {
        for (from, to) in arrows {
            let least = part[*from].min(part[*to]);
            part[*from] = least;
            part[*to] = least;
        }
    }
    part
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_connected_component_has_an_uninhibited_event(
        arrows in prop::collection::vec((0..50_usize, 0..50_usize), 0..80),
        order in Just((0..50).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let arrows: Vec<_> = arrows.into_iter().filter(|(from, to)| from != to).collect();
        let graph = Graph::new(50, &arrows, &order);
        let (free, part) = (graph.free(), parts(50, &arrows));
        for at in 0..50 {
            let somebody = free.iter().any(|it| part[*it] == part[at]);
            prop_assert!(somebody, "nobody in the part of {at} is free");
        }
        // A held event is reachable from one that is not.
        let mut reached: BTreeSet<usize> = free.iter().copied().collect();
        loop {
            let next: Vec<_> = arrows
                .iter()
                .filter(|(from, to)| reached.contains(from) && !reached.contains(to))
                .map(|(_, to)| *to)
                .collect();
            if next.is_empty() {
                break;
            }
            reached.extend(next);
        }
        prop_assert_eq!(reached.len(), 50);
    }
}
