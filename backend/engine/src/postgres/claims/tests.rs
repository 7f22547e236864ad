//! Tests of claiming, keeping and handing over slots.

use std::collections::HashMap;

use super::*;
use crate::clock::ManualClock;

fn shares(living: &[LiveNode]) -> HashMap<NodeId, usize> {
    let mut shares = HashMap::new();
    for slot in 0..LEAD {
        if let Some(owner) = choose_owner(slot, living) {
            *shares.entry(owner).or_default() += 1;
        }
    }
    shares
}

fn living(ids: &[u8]) -> Vec<LiveNode> {
    let node = |id: &u8| LiveNode {
        id: [*id; 16],
        owns: true,
        is_prompt: true,
    };
    ids.iter().map(node).collect()
}

fn held_by(node: impl Fn(i16) -> u8) -> Vec<HeldSlot> {
    let held = |slot| HeldSlot {
        slot,
        epoch: 3,
        node: [node(slot); 16],
    };
    (0..=LEAD).map(held).collect()
}

fn claims() -> (Claims, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::starting_at(0));
    (Claims::new([2; 16], Arc::clone(&clock) as _), clock)
}

#[test]
fn losing_a_node_moves_only_its_slots() {
    let three = living(&[1, 2, 3]);
    let shares = shares(&three);
    assert_eq!(shares.len(), 3);
    assert!(shares.values().all(|count| (55..=115).contains(count)));
    let two = living(&[1, 3]);
    for slot in 0..LEAD {
        let (before, after) = (choose_owner(slot, &three), choose_owner(slot, &two));
        assert!(before == after || before == Some([2; 16]));
    }
    assert_eq!(choose_owner(7, &[]), None);
}

#[test]
fn slots_are_claimed_from_dead_nodes_and_awaited_from_live_nodes() {
    let nodes = living(&[1, 2]);
    // The dead node owned all slots, and was the leader.
    let division = SlotAssignment::compute([1; 16], true, &nodes, &held_by(|_| 9));
    let share = shares(&nodes)[&[1; 16]];
    assert_eq!(division.orphaned.len(), share + 1, "and the lead");
    assert_eq!((division.mine.len(), division.awaited), (0, 0));
    // The other node owns them.
    let division = SlotAssignment::compute([1; 16], true, &nodes, &held_by(|_| 2));
    assert_eq!((division.orphaned.len(), division.awaited), (0, share));
    let other = SlotAssignment::compute([2; 16], true, &nodes, &held_by(|_| 2));
    assert_eq!((other.mine.len(), other.leaves.len()), (257, share));
    assert!(other.leaves.values().all(|to| *to == [1; 16]));
    // Leadership stays with its owner, and only a candidate acquires it.
    let orphaned = SlotAssignment::compute([1; 16], false, &nodes, &held_by(|_| 9)).orphaned;
    assert!(orphaned.iter().all(|(slot, _)| *slot != LEAD));
}

#[test]
fn non_owning_node_releases_slots_unless_no_other_can_own() {
    let mut nodes = living(&[1, 2]);
    nodes[0].owns = false;
    let division = SlotAssignment::compute([1; 16], false, &nodes, &held_by(|_| 1));
    assert_eq!(division.leaves.len(), SLOTS);
    nodes[1].owns = false;
    let division = SlotAssignment::compute([1; 16], false, &nodes, &held_by(|_| 1));
    assert_eq!(division.leaves.len(), 0);
}

#[test]
fn slots_are_handed_over_in_batches_once_vacated() {
    let (claims, _clock) = claims();
    let nodes = living(&[1, 2]);
    let division = SlotAssignment::compute([2; 16], true, &nodes, &held_by(|_| 2));
    assert_eq!(claims.request_leave(&division), []);
    claims.publish(&division);
    let leaving = claims.watch_ownership().borrow().slots_to_leave();
    assert_eq!(leaving.len(), LEAVING_MAX);
    let (slot, number) = leaving[0];
    assert!(!claims.vacate(slot, number + 1_000), "it was not requested");
    assert!(claims.vacate(slot, number));
    assert!(!claims.vacate(slot, number), "it has already left");
    assert_eq!(claims.request_leave(&division), [(slot, [1; 16])]);

    // The other node leaves before the handover, so the slot must be reported as vacated again.
    let alone = SlotAssignment::compute([2; 16], true, &living(&[2]), &held_by(|_| 2));
    assert_eq!(claims.request_leave(&alone), []);
    claims.publish(&alone);
    assert_eq!(claims.watch_ownership().borrow().slots_to_leave(), []);
    assert_eq!(claims.request_leave(&division), []);
    assert!(!claims.vacate(slot, number));
    assert_eq!(claims.request_leave(&division), []);
}

#[test]
fn failing_node_releases_slots_and_pauses_with_backoff() {
    let (claims, clock) = claims();
    claims.set_writer([7; 16]);
    claims.set_owns_slots(true);
    let division = SlotAssignment::compute([2; 16], true, &living(&[1, 2]), &held_by(|_| 2));
    claims.publish(&division);
    assert!(claims.is_leader() && claims.is_owner());
    for round in 0..3 {
        assert_eq!(claims.active_writer(), Some([7; 16]));
        assert!(claims.pause_ownership(true));
        assert!(!claims.pause_ownership(true), "it already does");
        assert!(!claims.is_leader());
        claims.publish(&division);
        assert!(!claims.is_leader(), "it gave up leadership");
        assert_eq!(
            claims.request_leave(&division).len(),
            division.leaves.len().min(LEAVING_MAX)
        );
        let lasts = STORE_REST_TIME_MIN * 2_u32.pow(round);
        clock.advance(lasts.mul_f64(0.99));
        assert_eq!(claims.active_writer(), None);
        clock.advance(lasts.mul_f64(0.02));
    }
}

#[test]
fn node_pauses_ownership_only_while_another_node_owns_slots() {
    let (claims, clock) = claims();
    claims.set_writer([7; 16]);
    claims.set_owns_slots(true);
    assert!(
        !claims.resume_ownership_if_needed(&living(&[1])),
        "it does not pause ownership"
    );
    assert!(claims.pause_ownership(true));
    assert!(!claims.resume_ownership_if_needed(&living(&[1])));
    assert_eq!(claims.active_writer(), None);
    let mut nodes = living(&[1, 2]);
    for node in &mut nodes {
        node.owns = false;
    }
    assert!(claims.resume_ownership_if_needed(&nodes));
    assert_eq!(claims.active_writer(), Some([7; 16]));
    // The next pause is longer, although this one was cut short.
    assert!(claims.pause_ownership(true));
    clock.advance(STORE_REST_TIME_MIN.mul_f64(1.5));
    assert_eq!(claims.active_writer(), None);
    // A node that shuts down does not resume ownership.
    claims.set_owns_slots(false);
    assert!(!claims.resume_ownership_if_needed(&nodes));
}

#[test]
fn node_is_certain_of_ownership_while_its_claims_are_recent() {
    let (claims, clock) = claims();
    let half = STORE_NODE_TIME_MAX / 2;
    claims.record_progress(clock.elapsed());
    assert!(!claims.is_ownership_certain());
    claims.record_alive(clock.elapsed());
    assert!(claims.is_ownership_certain());
    for renew in [Claims::record_progress, Claims::record_alive] {
        clock.advance(half);
        renew(&claims, clock.elapsed());
        clock.advance(half);
        assert!(!claims.is_ownership_certain());
        claims.record_progress(clock.elapsed());
        claims.record_alive(clock.elapsed());
        assert!(claims.is_ownership_certain());
    }
}
