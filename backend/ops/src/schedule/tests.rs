//! Tests of calendar feeds with a manual clock.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::*;
use crate::{
    clock::{Clock, ManualClock},
    domain::schedule::Slot,
    samples::{self, START_MS},
    store::Lane,
    testing::samples as full,
};

const DAY: Duration = Duration::from_secs(86_400);

/// Returns a schedule whose layer has had `turns` turns since long before the clock starts.
fn rotating(rrule: &str, turns: usize) -> Schedule {
    let mut schedule = Schedule {
        time_zone: "Europe/Berlin".into(),
        gaps_allowed: false,
        overrides: Vec::new(),
        create_ms: 0,
        update_ms: 0,
        ..full::schedule("nights")
    };
    let layer = &mut schedule.layers[0];
    layer.calendar = None;
    layer.hand_offs = full::rotation("2025-01-06T08:00:00", rrule);
    let contacts = ["ana", "ben", ""].into_iter().cycle().take(turns);
    layer.slots = contacts
        .map(|it| Slot {
            contacts: if it.is_empty() {
                Vec::new()
            } else {
                vec![samples::name(it)]
            },
        })
        .collect();
    schedule
}

/// Returns the events of a feed by their UID.
fn events(feed: &v1::OpenFeedResponse) -> BTreeMap<String, v1::Shift> {
    let shifts = feed.shifts.iter();
    let all: BTreeMap<_, _> = shifts
        .map(|it| (it.uid.clone(), it.shift.clone().unwrap()))
        .collect();
    assert_eq!(all.len(), feed.shifts.len(), "an id is used twice");
    all
}

#[tokio::test]
async fn feed_events_are_stable_from_day_to_day() {
    let table = [
        ("FREQ=WEEKLY", 2),
        ("FREQ=WEEKLY;INTERVAL=9", 3),
        ("FREQ=DAILY", 3),
        ("FREQ=YEARLY", 2),
        ("", 1),
    ];
    for (rrule, turns) in table {
        let (store, clock) = (
            Store::in_memory(),
            Arc::new(ManualClock::starting_at(START_MS)),
        );
        let schedule = rotating(rrule, turns);
        let mut changes = store.new_changes();
        changes.insert(&schedule);
        for name in ["ana", "ben"] {
            changes.insert(&full::contact(name));
        }
        store.apply(Lane::Admin, changes).await.unwrap();
        let schedules = Schedules::new(store, Arc::clone(&clock) as Arc<dyn Clock>);
        let mut before = BTreeMap::new();
        let mut longer = 0;
        for day in 0..40 {
            let feed = schedules
                .open_schedule_feed(schedule.clone())
                .await
                .unwrap();
            let now = events(&feed);
            assert!(!now.is_empty(), "{rrule}");
            for (uid, shift) in &now {
                let known: Option<&v1::Shift> = before.get(uid);
                if known.is_some_and(|it| it != shift) {
                    longer += 1;
                }
            }
            let unchanged = before.keys().filter(|it| now.contains_key(*it)).count();
            // At most one event per day leaves the feed because of its age.
            assert!(unchanged + 1 >= before.len(), "{rrule} on day {day}");
            before = now;
            clock.advance(DAY);
        }
        // Only a shift without a known end has its end moved, once in 30 days.
        let most = if rrule.is_empty() { 2 } else { 0 };
        assert!(longer <= most, "{rrule}: {longer}");
    }
}
