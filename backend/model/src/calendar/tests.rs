//! Tests of spans: on nights when clocks change, for every part of a rule, and compared with a
//! brute-force search.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::{
    domain::{Name, RecordId, calendar::WindowText},
    limits::CALENDAR_COUNT_MAX,
};

fn window(dtstart: &str, length: &str, rrule: &str) -> WindowText {
    let is_duration = length.starts_with('P');
    WindowText {
        dtstart: dtstart.into(),
        duration: if is_duration { length } else { "" }.into(),
        end_time_of_day: if is_duration { "" } else { length }.into(),
        rrule: rrule.into(),
        ..WindowText::default()
    }
}

fn calendar(zone: &str, windows: &[WindowText]) -> Calendar {
    Calendar {
        id: RecordId::from_parts(1, 1),
        name: Name::parse("c").unwrap(),
        description: String::new(),
        tags: Vec::new(),
        time_zone: zone.into(),
        windows: windows
            .iter()
            .map(|it| Window::parse(it).unwrap())
            .collect(),
        except: Vec::new(),
        revision: 1,
        create_ms: 0,
        update_ms: 0,
    }
}

fn prepared(zone: &str, windows: &[WindowText]) -> PreparedCalendar {
    PreparedCalendar::new(&calendar(zone, windows), Vec::new()).unwrap()
}

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn format_span(span: &Span) -> String {
    let at = |ms| {
        let at = Timestamp::from_millisecond(ms).unwrap();
        at.strftime("%m-%d %H:%M").to_string()
    };
    let longer = match span.longer_ms / 60_000 {
        0 => String::new(),
        minutes => format!(" {minutes:+}"),
    };
    format!("{}–{}{longer}", at(span.start_ms), at(span.end_ms))
}

fn spans(of: &PreparedCalendar, from: &str, to: &str) -> Vec<String> {
    let found = of.spans_between(ms(from), ms(to));
    assert_eq!(found.until_ms, ms(to));
    found.spans.iter().map(format_span).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn spans_follow_local_time_across_clock_changes() {
    const BERLIN: &str = "Europe/Berlin";
    let daily = "FREQ=DAILY";
    for (zone, dtstart, length, rrule, noon, expected) in [
        (
            BERLIN,
            "2026-01-01T02:30:00",
            "PT1H",
            daily,
            "2027-03-27",
            "03-28 01:30–03-28 02:30",
        ),
        (
            BERLIN,
            "2026-01-01T02:30:00",
            "PT1H",
            daily,
            "2026-10-24",
            "10-25 00:30–10-25 01:30",
        ),
        (
            BERLIN,
            "2026-01-01T22:00:00",
            "07:00",
            daily,
            "2027-03-27",
            "03-27 21:00–03-28 05:00 -60",
        ),
        (
            BERLIN,
            "2026-01-01T22:00:00",
            "07:00",
            daily,
            "2026-10-24",
            "10-24 20:00–10-25 06:00 +60",
        ),
        (
            BERLIN,
            "2026-01-01T22:00:00",
            "PT9H",
            daily,
            "2027-03-27",
            "03-27 21:00–03-28 06:00",
        ),
        (
            BERLIN,
            "2026-01-01T22:00:00",
            "PT9H",
            daily,
            "2026-10-24",
            "10-24 20:00–10-25 05:00",
        ),
        (
            BERLIN,
            "2026-10-25T00:00:00",
            "P1D",
            "",
            "2026-10-24",
            "10-24 22:00–10-25 23:00 +60",
        ),
        (
            BERLIN,
            "2026-01-01T01:00:00",
            "02:30",
            daily,
            "2026-10-24",
            "10-24 23:00–10-25 01:30 +60",
        ),
        (
            "Australia/Lord_Howe",
            "2027-01-01T01:45:00",
            "PT15M",
            daily,
            "2027-04-03",
            "04-03 14:45–04-03 15:00",
        ),
        (
            "America/Santiago",
            "2027-01-01T00:30:00",
            "PT1H",
            daily,
            "2027-09-04",
            "09-05 04:30–09-05 05:30",
        ),
        // The clock change skips both local times, but the window keeps its length.
        (
            BERLIN,
            "2026-01-01T02:15:00",
            "02:45",
            daily,
            "2027-03-27",
            "03-28 01:15–03-28 01:45",
        ),
    ] {
        let calendar = prepared(zone, &[window(dtstart, length, rrule)]);
        let noon = format!("{noon}T12:00:00Z");
        let next = Timestamp::from_millisecond(ms(&noon) + 22 * 3_600_000).unwrap();
        let found = spans(&calendar, &noon, &next.to_string());
        assert_eq!(found, [expected], "{zone} {dtstart} {length}");
    }
}

#[test]
fn spans_are_half_open_and_adjacent_spans_merge() {
    let mornings = window(
        "2027-01-04T08:00:00",
        "PT4H",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    );
    let noons = window(
        "2027-01-04T12:00:00",
        "18:00",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    );
    let office = prepared("Europe/Berlin", &[mornings, noons]);
    let found = spans(&office, "2027-01-04T12:00:00Z", "2027-01-06T00:00:00Z");
    assert_eq!(
        found,
        ["01-04 07:00–01-04 17:00", "01-05 07:00–01-05 17:00"]
    );
    for (at, in_window, changes) in [
        ("2027-01-04T06:59:59.999Z", false, "2027-01-04T07:00:00Z"),
        ("2027-01-04T07:00:00Z", true, "2027-01-04T17:00:00Z"),
        ("2027-01-04T16:59:59.999Z", true, "2027-01-04T17:00:00Z"),
        ("2027-01-08T17:00:00Z", false, "2027-01-11T07:00:00Z"),
    ] {
        let expected = CalendarStatus {
            in_window,
            changes_ms: Some(ms(changes)),
        };
        assert_eq!(office.status_at(ms(at)), expected, "{at}");
        assert_eq!(office.status_at(ms(at)), expected, "{at}, remembered");
    }
}

#[test]
fn excepted_calendars_are_subtracted() {
    let days = window("2027-01-04T08:00:00", "18:00", "FREQ=DAILY");
    let holiday = window("2027-01-06T00:00:00", "P1D", "FREQ=YEARLY");
    let lunch = window("2027-01-04T12:00:00", "13:00", "FREQ=DAILY");
    let except = [holiday, lunch].map(|it| Arc::new(prepared("UTC", &[it])));
    let calendar = PreparedCalendar::new(&calendar("UTC", &[days]), except.to_vec()).unwrap();
    let found = spans(&calendar, "2027-01-05T00:00:00Z", "2027-01-07T10:00:00Z");
    let expected = [
        "01-05 08:00–01-05 12:00",
        "01-05 13:00–01-05 18:00",
        "01-07 08:00–01-07 12:00",
    ];
    assert_eq!(found, expected);
    let standing = calendar.status_at(ms("2027-01-05T18:00:00Z"));
    assert_eq!(standing.changes_ms, Some(ms("2027-01-07T08:00:00Z")));
}

#[test]
fn exdates_and_rdates_are_applied() {
    let mut daily = window("2027-01-04T08:00:00", "PT1H", "FREQ=DAILY;COUNT=5");
    daily.exdate = vec![
        "2027-01-05".into(),
        "2027-01-06T08:00:00".into(),
        "2027-01-07T09:00:00".into(),
    ];
    daily.rdate = vec!["2027-01-05T09:30:00".into(), "2027-02-01T00:00:00".into()];
    let calendar = prepared("UTC", &[daily]);
    let found = spans(&calendar, "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
    // An excluded day counts towards `COUNT`, and also removes an `RDATE` on that day.
    let expected = [
        "01-04 08:00–01-04 09:00",
        "01-07 08:00–01-07 09:00",
        "01-08 08:00–01-08 09:00",
        "02-01 00:00–02-01 01:00",
    ];
    assert_eq!(found, expected);
}

#[test]
fn invalid_recurrence_rules_are_refused_quickly_with_reason() {
    let begun = std::time::Instant::now();
    for (rrule, field, message) in [
        ("FREQ=SECONDLY", "rrule", "DAILY, WEEKLY, MONTHLY or YEARLY"),
        (
            "FREQ=DAILY;COUNT=1000000000",
            "rrule",
            "expected 1 to 10000",
        ),
        (
            "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
            "rrule",
            "no date within 10 years",
        ),
        ("FREQ=WEEKLY;BYDAY=MO", "dtstart", "2027-01-11T08:00:00"),
        ("FREQ=WEEKLY;BYDAY=2TU", "rrule", "MONTHLY"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20280101", "rrule", "use one"),
        ("FREQ=DAILY;UNTIL=20260101", "rrule", "before `dtstart`"),
        ("FREQ=DAILY;BYHOUR=3", "rrule", "`BYHOUR`"),
        ("FREQ=DAILY;BYSETPOS=1", "rrule", "another"),
        ("FREQ=MONTHLY;BYDAY=6TU", "rrule", "sixth"),
        (
            "FREQ=YEARLY;BYDAY=1TU;BYMONTH=1;COUNT=10000",
            "rrule",
            "`COUNT`",
        ),
        ("INTERVAL=2", "rrule", "`FREQ`"),
        ("FREQ=DAILY;FREQ=DAILY", "rrule", "twice"),
    ] {
        let text = window("2027-01-05T08:00:00", "PT1H", rrule);
        let found = match Window::parse(&text) {
            Err(violations) => violations[0].clone(),
            Ok(window) => {
                let (field, message) = check_calendar(&window, &TimeZone::UTC).unwrap_err();
                (field.to_owned(), message)
            }
        };
        assert_eq!(found.0, field, "{rrule}");
        assert!(found.1.contains(message), "{rrule}: {}", found.1);
    }
    for (change, field) in [
        (window("2027-01-05T08:00:00Z", "PT1H", ""), "dtstart"),
        (window("2027-01-05", "PT1H", ""), "dtstart"),
        (window("", "PT1H", ""), "dtstart"),
        (window("2027-01-05T08:00:00", "P1M", ""), "duration"),
        (window("2027-01-05T08:00:00", "PT0S", ""), "duration"),
        (window("2027-01-05T08:00:00", "P400D", ""), "duration"),
        (window("2027-01-05T08:00:00", "", ""), "duration"),
        (window("2027-01-05T08:00:00", "25:00", ""), "endTimeOfDay"),
    ] {
        let violations = Window::parse(&change).unwrap_err();
        assert_eq!(violations[0].0, field, "{change:?}");
    }
    assert_eq!(find_zone("Mars/Olympus").err(), Some(MissingZone));
    // Without limits, expanding one of these rules would take hours.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn lookup_is_fast_for_old_and_rare_rules() {
    let ancient = window("1970-01-01T00:00:00", "PT1S", "FREQ=DAILY");
    let rare = window("2000-02-29T00:00:00", "PT1S", "FREQ=YEARLY");
    let never = window("2027-01-01T00:00:00", "PT1S", "FREQ=YEARLY;UNTIL=20280101");
    let always = window("2027-01-01T00:00:00", "P1D", "FREQ=DAILY");
    let begun = std::time::Instant::now();
    let at = ms("2031-05-06T07:08:09Z");
    let changes = [ancient, rare, never, always].map(|it| prepared("UTC", &[it]).status_at(at));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    let expected = [
        (false, Some(ms("2031-05-07T00:00:00Z"))),
        (false, Some(ms("2032-02-29T00:00:00Z"))),
        (false, None),
        (true, None),
    ];
    assert_eq!(changes.map(|it| (it.in_window, it.changes_ms)), expected);
    let many: Vec<_> = (0..50)
        .map(|_| window("1970-01-01T00:00:00", "P366D", "FREQ=DAILY"))
        .collect();
    let wide = prepared("UTC", &many);
    assert!(wide.spans_between(at, at + 400 * 24 * 3_600_000).until_ms < at);
    let expected = CalendarStatus {
        in_window: true,
        changes_ms: None,
    };
    assert_eq!(
        wide.status_at(at),
        expected,
        "an unknown time is not reported"
    );
}

/// Generates rules of every kind that start on a given day.
fn rule() -> impl Strategy<Value = String> {
    let months = prop::option::of(prop::collection::vec(1..=12_i8, 1..3));
    let month_days = prop::option::of(prop::collection::vec(
        prop_oneof![1..=31_i8, -31..=-1_i8],
        1..3,
    ));
    let weekdays = prop::option::of(prop::collection::vec((-2..=3_i8, 0..7_usize), 1..4));
    let positions = prop::option::of(prop_oneof![Just("1"), Just("-1"), Just("2,-1")]);
    let rest = (
        1..5_u16,
        0..4_usize,
        months,
        month_days,
        weekdays,
        positions,
        any::<bool>(),
    );
    rest.prop_map(
        |(interval, frequency, months, month_days, weekdays, positions, sunday)| {
            let words = ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"];
            let mut text = format!("FREQ={};INTERVAL={interval}", words[frequency]);
            let joined = |all: Vec<i8>| {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                all.join(",")
            };
            let mut is_by = false;
            if let Some(months) = months {
                is_by = true;
                write!(text, ";BYMONTH={}", joined(months)).unwrap();
            }
            if let (Some(days), true) = (month_days, frequency != 1) {
                is_by = true;
                write!(text, ";BYMONTHDAY={}", joined(days)).unwrap();
            }
            if let Some(weekdays) = weekdays {
                is_by = true;
                let names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
                let name = |(ordinal, day): &(i8, usize)| match ordinal {
                    ordinal if *ordinal != 0 && frequency > 1 => {
                        format!("{ordinal}{}", names[*day])
                    }
                    _ => names[*day].to_owned(),
                };
                let all: Vec<_> = weekdays.iter().map(name).collect();
                write!(text, ";BYDAY={}", all.join(",")).unwrap();
            }
            if let (Some(positions), true) = (positions, is_by) {
                write!(text, ";BYSETPOS={positions}").unwrap();
            }
            if sunday {
                text += ";WKST=SU";
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn expansion_does_not_depend_on_search_start(
        rrule in rule(),
        (first, ahead) in (0..800_i64, 0..3_000_i64),
    ) {
        let start = ms("2027-01-01T08:00:00Z") + first * 24 * 3_600_000;
        let dtstart = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(start).unwrap());
        let text = window(&dtstart.to_string(), "PT1H", &rrule);
        let read = Window::parse(&text).unwrap();
        let again = read.to_text();
        prop_assert_eq!(&Window::parse(&again).unwrap(), &read, "{} is {}", rrule, again.rrule);
        let starts = Starts::new(&read);
        let all_from = |from| {
            let mut all = Vec::new();
            let last = from + jiff::Span::new().days(2_000);
            let mut steps = StepBudget::new(1_000_000);
            starts.visit_days((from, last), &mut steps, &mut |day| {
                all.push(day);
                true
            });
            all
        };
        let first = dtstart.date();
        let from = first + jiff::Span::new().days(ahead.min(1_900));
        let until = first + jiff::Span::new().days(2_000);
        let whole: Vec<_> = all_from(first).into_iter().filter(|it| *it >= from).collect();
        let part: Vec<_> = all_from(from).into_iter().filter(|it| *it <= until).collect();
        prop_assert_eq!(whole, part);
    }

    #[test]
    fn status_at_a_moment_agrees_with_spans(
        rrule in rule(),
        hours in 1..60_i64,
        offsets in prop::collection::vec(0..40_000_i64, 20),
    ) {
        let text = window("2026-09-01T02:30:00", &format!("PT{hours}H"), &rrule);
        let calendar = prepared("Europe/Berlin", &[text]);
        let begin = ms("2026-09-01T00:00:00Z");
        let spans = calendar.spans_between(begin, begin + 60_000 * 60_000).spans;
        for minutes in offsets {
            let at = begin + minutes * 60_000;
            let holds = spans.iter().find(|it| it.start_ms <= at && at < it.end_ms);
            let standing = calendar.status_at(at);
            prop_assert_eq!(standing.in_window, holds.is_some());
            if let Some(span) = holds.filter(|it| it.end_ms < begin + 59_000 * 60_000) {
                prop_assert_eq!(standing.changes_ms, Some(span.end_ms));
            }
        }
    }
}

#[test]
fn maximum_count_is_expanded_in_full() {
    let rrule = format!("FREQ=DAILY;COUNT={CALENDAR_COUNT_MAX}");
    let daily = prepared("UTC", &[window("2000-01-01T00:00:00", "PT1H", &rrule)]);
    // The day after the last.
    let last = ms("2027-05-19T00:30:00Z");
    assert!(daily.status_at(last - 24 * 3_600_000).in_window);
    assert!(!daily.status_at(last).in_window);
}
