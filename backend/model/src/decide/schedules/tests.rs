//! Rotations across clock changes, weekends and years.

mod walk;

use super::*;
use crate::{
    calendar::PreparedCalendar,
    domain::schedule::Slot,
    samples::{self, name, rotation},
};

fn parse_ms(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

fn layer(dtstart: &str, rrule: &str, contacts: &[&str]) -> Layer {
    let slot = |it: &&str| Slot {
        contacts: vec![name(it)],
    };
    Layer {
        name: String::new(),
        slots: contacts.iter().map(slot).collect(),
        hand_offs: rotation(dtstart, rrule),
        calendar: None,
        from: None,
        until: None,
    }
}

fn schedule(layers: Vec<Layer>) -> Schedule {
    Schedule {
        layers,
        overrides: Vec::new(),
        ..samples::schedule("primary")
    }
}

fn loaded(schedule: Schedule) -> LoadedSchedule {
    LoadedSchedule::new(schedule, &Calendars::default()).unwrap()
}

fn on_call_names(schedule: &LoadedSchedule, at: &str) -> String {
    let contacts = schedule.on_call_at(parse_ms(at)).contacts.iter();
    contacts.map(Name::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn turns_follow_local_time_over_both_clock_changes() {
    // Berlin: +1 to +2 on 28 March 2027, back on 31 October 2027, both at 01:00 UTC.
    let weekly = loaded(schedule(vec![layer(
        "2027-03-22T08:00:00",
        "FREQ=WEEKLY",
        &["ana", "ben"],
    )]));
    let daily = loaded(schedule(vec![layer(
        "2027-03-01T02:30:00",
        "FREQ=DAILY",
        &["ana", "ben"],
    )]));
    let cases = [
        (&weekly, "2027-03-22T06:59:59Z", ""),
        (&weekly, "2027-03-22T07:00:00Z", "ana"),
        (&weekly, "2027-03-29T05:59:59Z", "ana"),
        (&weekly, "2027-03-29T06:00:00Z", "ben"),
        (&weekly, "2027-11-01T06:59:59Z", "ben"),
        (&weekly, "2027-11-01T07:00:00Z", "ana"),
        // On 28 March 02:30 is skipped and becomes 03:30; on 31 October it occurs twice.
        (&daily, "2027-03-28T01:29:59Z", "ana"),
        (&daily, "2027-03-28T01:30:00Z", "ben"),
        (&daily, "2027-10-31T00:29:59Z", "ben"),
        (&daily, "2027-10-31T00:30:00Z", "ana"),
    ];
    for (schedule, at, expected) in cases {
        assert_eq!(on_call_names(schedule, at), expected, "{at}");
    }
}

#[test]
fn weekday_rotation_skips_no_contact_over_weekend() {
    let weekdays = loaded(schedule(vec![layer(
        "2027-01-04T08:00:00",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
        &["ana", "ben", "cleo"],
    )]));
    let turns = (0..21).map(|day| {
        let at_ms = parse_ms("2027-01-04T12:00:00Z") + day * DAY_MS;
        weekdays.on_call_at(at_ms).contacts[0]
            .as_str()
            .chars()
            .next()
            .unwrap()
    });
    // Friday's turn lasts through the weekend.
    assert_eq!(turns.collect::<String>(), "abcabbbcabcaaabcabccc");
}

#[test]
fn later_layers_and_newer_overrides_take_precedence() {
    let mut base = schedule(vec![
        layer("2027-01-01T00:00:00", "", &["ana"]),
        layer("2027-01-10T00:00:00", "", &["ben"]),
    ]);
    let replaced = |from: &str, to: &str, contacts: &[&str]| Override {
        contacts: contacts.iter().map(|it| name(it)).collect(),
        start_ms: parse_ms(from),
        end_ms: parse_ms(to),
        ..samples::schedule("x").overrides.remove(0)
    };
    base.overrides = vec![
        replaced("2027-01-12T00:00:00Z", "2027-01-14T00:00:00Z", &["cleo"]),
        replaced("2027-01-13T00:00:00Z", "2027-01-13T12:00:00Z", &[]),
    ];
    let base = loaded(base);
    let cases = [
        ("2026-12-31T22:00:00Z", ""),
        ("2027-01-05T00:00:00Z", "ana"),
        ("2027-01-11T00:00:00Z", "ben"),
        ("2027-01-12T00:00:00Z", "cleo"),
        ("2027-01-13T00:00:00Z", ""),
        ("2027-01-13T12:00:00Z", "cleo"),
        ("2027-01-14T00:00:00Z", "ben"),
    ];
    for (at, expected) in cases {
        assert_eq!(on_call_names(&base, at), expected, "{at}");
    }
    let gap = base.first_gap(
        parse_ms("2027-01-10T00:00:00Z"),
        parse_ms("2027-02-01T00:00:00Z"),
    );
    let gap = gap.map(|it| (it.start_ms, it.end_ms));
    let expected = (
        parse_ms("2027-01-13T00:00:00Z"),
        parse_ms("2027-01-13T12:00:00Z"),
    );
    assert_eq!(gap, Some(expected));
    let next = base.next(parse_ms("2027-01-12T06:00:00Z")).unwrap();
    assert_eq!(next.start_ms, parse_ms("2027-01-13T00:00:00Z"));
    assert_eq!(next.contacts, []);
}

#[test]
fn shifts_match_a_minute_by_minute_search() {
    let calendar = samples::calendar("office hours");
    let plain = crate::domain::Calendar {
        except: Vec::new(),
        ..calendar
    };
    assert!(PreparedCalendar::new(&plain, Vec::new()).is_ok());
    let calendars = Calendars::new(std::iter::once(&plain));
    let mut mixed = schedule(vec![
        layer(
            "2027-03-20T08:00:00",
            "FREQ=WEEKLY;BYDAY=SA,MO",
            &["ana", "ben", "cleo"],
        ),
        layer(
            "2027-03-24T20:15:00",
            "FREQ=DAILY;INTERVAL=3",
            &["dora", "emil"],
        ),
    ]);
    mixed.layers[1].calendar = Some(name("office hours"));
    let mixed = LoadedSchedule::new(mixed, &calendars).unwrap();
    let (start_ms, end_ms) = (
        parse_ms("2027-03-19T00:00:00Z"),
        parse_ms("2027-04-02T00:00:00Z"),
    );
    let found = mixed.shifts(start_ms, end_ms, usize::MAX);
    assert!(!found.stopped_early);
    let mut searched: Vec<(i64, Vec<Name>)> = Vec::new();
    for at_ms in (start_ms..end_ms).step_by(60_000) {
        let now = mixed.on_call_at(at_ms).contacts;
        if searched.last().is_none_or(|(_, last)| last != now) {
            searched.push((at_ms, now.to_vec()));
        }
    }
    let mut shifts = found.shifts;
    shifts.dedup_by(|next, last| next.contacts == last.contacts);
    let shifts: Vec<_> = shifts
        .into_iter()
        .map(|it| (it.start_ms, it.contacts))
        .collect();
    assert!(searched.len() > 5, "{searched:?}");
    assert_eq!(shifts, searched);
}

#[test]
fn layers_respect_their_bounds_and_limits() {
    let bounded = |rrule: &str, from: &str, until: &str| {
        let mut layer = layer("2027-03-20T08:00:00", rrule, &["ana", "ben"]);
        layer.from = crate::domain::calendar::parse_date_time(from).ok();
        layer.until = crate::domain::calendar::parse_date_time(until).ok();
        let base = self::layer("2020-01-01T00:00:00", "", &["cleo"]);
        loaded(schedule(vec![base, layer]))
    };
    let cases = [
        // Turns are counted from the first hand-off, whenever the layer starts.
        (
            bounded("FREQ=DAILY", "2027-03-23T12:00:00", ""),
            "2027-03-23T10:59:59Z",
            "cleo",
        ),
        (
            bounded("FREQ=DAILY", "2027-03-23T12:00:00", ""),
            "2027-03-23T11:00:00Z",
            "ben",
        ),
        (
            bounded("FREQ=DAILY", "", "2027-03-28T12:00:00"),
            "2027-03-28T09:59:59Z",
            "ana",
        ),
        (
            bounded("FREQ=DAILY", "", "2027-03-28T12:00:00"),
            "2027-03-28T10:00:00Z",
            "cleo",
        ),
        // The last turn has its full length.
        (
            bounded("FREQ=WEEKLY;COUNT=2", "", ""),
            "2027-04-03T05:59:59Z",
            "ben",
        ),
        (
            bounded("FREQ=WEEKLY;COUNT=2", "", ""),
            "2027-04-03T06:00:00Z",
            "cleo",
        ),
        (
            bounded("FREQ=WEEKLY;UNTIL=20270328", "", ""),
            "2027-04-03T05:59:59Z",
            "ben",
        ),
        (
            bounded("FREQ=WEEKLY;UNTIL=20270328", "", ""),
            "2027-04-03T06:00:00Z",
            "cleo",
        ),
        (
            bounded("FREQ=WEEKLY;UNTIL=20270327T065959Z", "", ""),
            "2027-03-27T06:59:59Z",
            "ana",
        ),
        (
            bounded("FREQ=WEEKLY;UNTIL=20270327T065959Z", "", ""),
            "2027-03-27T07:00:00Z",
            "cleo",
        ),
    ];
    for (schedule, at, expected) in cases {
        assert_eq!(
            on_call_names(&schedule, at),
            expected,
            "{at} {:?}",
            schedule.schedule.layers[1]
        );
    }
}

#[test]
fn empty_slot_falls_through_to_earlier_layers() {
    let mut upper = layer("2027-01-01T00:00:00", "FREQ=DAILY", &["ana", "ben"]);
    upper.slots[1].contacts.clear();
    let both = loaded(schedule(vec![
        layer("2020-01-01T00:00:00", "", &["cleo"]),
        upper.clone(),
    ]));
    let alone = loaded(schedule(vec![upper]));
    for (at, expected, alone_expected) in [
        ("2027-01-01T12:00:00Z", "ana", "ana"),
        ("2027-01-02T12:00:00Z", "cleo", ""),
    ] {
        assert_eq!(on_call_names(&both, at), expected, "{at}");
        assert_eq!(on_call_names(&alone, at), alone_expected, "{at}");
    }
}

#[test]
fn shift_is_computed_twenty_years_after_first_hand_off() {
    let daily = loaded(schedule(vec![layer(
        "2007-01-01T08:00:00",
        "FREQ=DAILY",
        &["ana", "ben", "cleo"],
    )]));
    // 7,305 days after the first hand-off, a multiple of three.
    let at_ms = parse_ms("2027-01-01T12:00:00Z");
    assert_eq!(daily.on_call_at(at_ms).contacts, [name("ana")]);
    assert_eq!(daily.on_call_at(at_ms - DAY_MS).contacts, [name("cleo")]);
}
