//! Calendars over REST: validation, use by rules, and recurrence rules compared with an independent
//! implementation of RFC 5545.

use std::{
    fmt::Write as _,
    io::Write as _,
    process::{Command, Stdio},
};

use bellwether_tests::{
    eventually::eventually, receiver::Receiver, rest::Rest, tree, world::World,
};
use jiff::{Span, civil::DateTime};
use serde_json::{Value, json};

use crate::{foreign::python, samples};

const CALENDARS: &str = "/v1/notification/calendars";
const RULES_PATH: &str = "/v1/notification/rules";
const SILENCES: &str = "/v1/notification/silences";
const PREVIEW: &str = "/v1/notification/calendars:preview";
const RULES: usize = 250;
const DAYS: i64 = 900;

fn calendar(name: &str, window: &Value) -> Value {
    json!({"name": name, "timeZone": "Europe/Berlin", "windows": [window]})
}

fn office() -> Value {
    json!({
        "dtstart": "2027-01-04T08:00:00",
        "endTimeOfDay": "18:00",
        "rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    })
}

#[tokio::test]
async fn calendar_can_be_edited_but_not_deleted_while_in_use() {
    let mut world = World::start();
    let rest = world.rest();
    let christmas =
        json!({"dtstart": "2026-12-25T00:00:00", "duration": "P2D", "rrule": "FREQ=YEARLY"});
    rest.post(CALENDARS, &calendar("holidays", &christmas))
        .await
        .ok();
    let mut wanted = calendar("office", &office());
    wanted["exceptCalendarNames"] = json!(["holidays"]);
    let made = rest.post(CALENDARS, &wanted).await.ok();
    let made = &made["calendar"];
    assert_eq!(made["windows"][0], office());
    assert!(made["inWindow"].is_boolean() && made["nextChangeTime"].is_string());

    let path =
        format!("{CALENDARS}/office:expand?start=2029-12-24T00:00:00Z&end=2029-12-28T00:00:00Z");
    let found = rest.get(&path).await.ok();
    let starts: Vec<_> = found["spans"].as_array().unwrap().iter().collect();
    let shown: Vec<_> = starts
        .iter()
        .map(|it| it["localStart"].as_str().unwrap())
        .collect();
    assert_eq!(shown, ["2029-12-24T08:00:00", "2029-12-27T08:00:00"]);
    assert_eq!(starts[0]["startTime"], "2029-12-24T07:00:00Z");
    assert_eq!(starts[0]["endTime"], "2029-12-24T17:00:00Z");

    let night = json!({"dtstart": "2026-10-24T22:00:00", "endTimeOfDay": "07:00"});
    let path = format!("{PREVIEW}?start=2026-10-24T00:00:00Z&end=2026-10-26T00:00:00Z");
    let longer = rest.post(&path, &calendar("", &night)).await.ok();
    assert_eq!(longer["spans"][0]["longerBy"], "3600s");
    assert_eq!(longer["spans"][0]["localEnd"], "2026-10-25T07:00:00");

    let refused = rest
        .delete(&format!("{CALENDARS}/holidays?force=true"))
        .await;
    assert_eq!(refused.status, 400);
    let reported = refused.json();
    assert_eq!(reported["code"], 9);
    let text = reported.to_string();
    assert!(
        text.contains("IN_USE") && text.contains("calendar `office`"),
        "{text}"
    );
    let holidays = rest.get(&format!("{CALENDARS}/holidays")).await.ok();
    assert_eq!(
        holidays["calendar"]["usedBy"],
        json!([{"kind": "calendar", "name": "office"}])
    );

    // An excluded calendar must not have exclusions, regardless of the order of creation.
    let mut chain = calendar("holidays", &christmas);
    chain["exceptCalendarNames"] = json!(["office"]);
    let path = format!("{CALENDARS}/holidays");
    assert_eq!(rest.put(&path, &chain).await.status, 400);
    let mut chain = calendar("third", &office());
    chain["exceptCalendarNames"] = json!(["office", "nobody"]);
    let refused = rest.post(CALENDARS, &chain).await;
    let text = refused.json().to_string();
    assert!(
        text.contains("exceptCalendarNames[0]") && text.contains("exceptCalendarNames[1]"),
        "{text}"
    );

    world.kill();
    world.start_again();
    let rest = world.rest();
    let stored = rest.get(&format!("{CALENDARS}/office")).await.ok();
    assert_eq!(stored["calendar"]["etag"], made["etag"]);
    assert_eq!(stored["calendar"]["windows"], made["windows"]);
    rest.delete(&format!("{CALENDARS}/office")).await.ok();
    rest.delete(&format!("{CALENDARS}/holidays")).await.ok();
}

#[tokio::test]
async fn invalid_calendar_fields_are_reported_with_guidance() {
    let world = World::start();
    let rest = world.rest();
    let refused = rest
        .post(
            CALENDARS,
            &json!({"name": "bad", "timeZone": "Mars/Olympus", "windows": [
                {"dtstart": "2027-01-05T08:00:00", "duration": "PT1H", "rrule": "FREQ=WEEKLY;BYDAY=MO"},
                {"dtstart": "tomorrow", "duration": "PT1H", "endTimeOfDay": "09:00", "rrule": "FREQ=SECONDLY"},
                {"dtstart": "2027-01-05T08:00:00", "duration": "PT1H", "exdate": ["x"], "rdate": ["2027-01-05"]},
            ]}),
        )
        .await;
    assert_eq!(refused.status, 400);
    let text = refused.json().to_string();
    for part in [
        "timeZone",
        "windows[0].dtstart",
        "2027-01-11T08:00:00",
        "windows[1].dtstart",
        "windows[1].endTimeOfDay",
        "windows[1].rrule",
        "windows[2].exdate[0]",
        "windows[2].rdate[0]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let none = rest
        .post(CALENDARS, &json!({"name": "none", "timeZone": "UTC"}))
        .await;
    assert!(none.json().to_string().contains("1 to 50"));
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }

    fn some<'a>(&mut self, all: &[&'a str]) -> String {
        let count = 1 + self.below(3);
        let mut some: Vec<&'a str> = Vec::new();
        for _ in 0..count {
            let one = all[usize::try_from(self.below(all.len() as u64)).unwrap()];
            if !some.contains(&one) {
                some.push(one);
            }
        }
        some.join(",")
    }

    fn rule(&mut self) -> String {
        const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
        // Do not mix numbered and plain weekdays, which implementations combine differently.
        const NUMBERED: [&str; 6] = ["1MO", "-1FR", "2TU", "-2SU", "5WE", "3SA"];
        let frequency = self.below(4);
        let words = ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"];
        let mut rule = format!("FREQ={}", words[usize::try_from(frequency).unwrap()]);
        let interval = 1 + self.below(4);
        if interval > 1 {
            write!(rule, ";INTERVAL={interval}").unwrap();
        }
        let mut is_by = false;
        if self.below(3) == 0 {
            is_by = true;
            let months = self.some(&["1", "2", "3", "6", "9", "10", "12"]);
            write!(rule, ";BYMONTH={months}").unwrap();
        }
        if frequency != 1 && self.below(3) == 0 {
            is_by = true;
            let days = self.some(&["1", "13", "29", "31", "-1", "-5", "15"]);
            write!(rule, ";BYMONTHDAY={days}").unwrap();
        }
        if self.below(2) == 0 {
            is_by = true;
            let days = if frequency > 1 && self.below(2) == 0 {
                self.some(&NUMBERED)
            } else {
                self.some(&DAYS)
            };
            write!(rule, ";BYDAY={days}").unwrap();
        }
        // Exclude weekly rules: if the first week is incomplete, other implementations also count
        // the days before the start.
        if is_by && frequency != 1 && self.below(4) == 0 {
            let positions = ["1", "-1", "2", "1,-1"];
            let at = usize::try_from(self.below(4)).unwrap();
            write!(rule, ";BYSETPOS={}", positions[at]).unwrap();
        }
        if self.below(3) == 0 {
            rule.push_str(";WKST=SU");
        }
        if self.below(4) == 0 {
            write!(rule, ";COUNT={}", 1 + self.below(60)).unwrap();
        }
        rule
    }
}

/// Returns the start and the occurrences of a recurrence rule according to the service; `None` if
/// the rule has none for years.
async fn ours(rest: &Rest, rrule: &str, dtstart: DateTime) -> Option<(DateTime, Vec<String>)> {
    let mut dtstart = dtstart;
    for _ in 0..2 {
        let end = dtstart + Span::new().days(DAYS);
        let path = format!("{PREVIEW}?start={dtstart}Z&end={end}Z");
        let window = json!({"dtstart": dtstart.to_string(), "duration": "PT1M", "rrule": rrule});
        let draft = json!({"timeZone": "UTC", "windows": [window]});
        let answer = rest.post(&path, &draft).await;
        if answer.status == 200 {
            let found = answer.json();
            assert_ne!(found["stoppedEarly"], true, "{rrule}");
            let spans = found["spans"].as_array().cloned().unwrap_or_default();
            let start = |it: &Value| it["localStart"].as_str().unwrap().to_owned();
            return Some((dtstart, spans.iter().map(start).collect()));
        }
        let text = answer.json().to_string();
        let Some((_, rest)) = text.split_once("the next one is ") else {
            assert!(text.contains("no date within 10 years"), "{rrule}: {text}");
            return None;
        };
        dtstart = rest[..19].parse().unwrap();
    }
    panic!("the start suggested for {rrule} is rejected");
}

#[tokio::test]
async fn recurrence_rules_match_an_independent_library() {
    let Some(python) = python("dateutil") else {
        return;
    };
    let world = World::start();
    let rest = world.rest();
    let mut chance = Chance(27);
    let (mut questions, mut found) = (String::new(), Vec::new());
    for _ in 0..RULES {
        let rrule = chance.rule();
        let day = i64::try_from(chance.below(1_500)).unwrap();
        let dtstart = jiff::civil::datetime(2026, 1, 1, 8, 0, 0, 0) + Span::new().days(day);
        let (start, days, starts) = match ours(&rest, &rrule, dtstart).await {
            Some((start, starts)) => (start, DAYS, starts),
            None => (dtstart, 3_650, Vec::new()),
        };
        let line = json!({
            "rrule": rrule,
            "dtstart": start.to_string(),
            "start": start.to_string(),
            "end": (start + Span::new().days(days) - Span::new().seconds(1)).to_string(),
        });
        writeln!(questions, "{line}").unwrap();
        found.push((rrule, start, starts));
    }
    let mut reader = Command::new(python)
        .arg(tree::root().join("tests/e2e/calendars.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut input = reader.stdin.take().expect("standard input");
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = reader.wait_with_output().expect("python ends");
    writer.join().expect("a thread").expect("python reads all");
    assert!(output.status.success());
    let reported = String::from_utf8(output.stdout).unwrap();
    assert_eq!(reported.lines().count(), RULES);
    for (line, (rrule, start, ours)) in reported.lines().zip(found) {
        let theirs: Vec<String> = serde_json::from_str(line).unwrap();
        assert_eq!(ours, theirs, "{rrule} from {start}");
    }
}

fn year() -> i16 {
    jiff::Zoned::now().year() + 3
}

fn window_start() -> String {
    format!("{}-12-31T23:00:00Z", year() - 1)
}

/// Creates a rule that notifies only in the windows of a calendar, and a silence. Checks that
/// invalid requests are rejected.
async fn set_up(rest: &Rest, receiver: &Receiver) {
    let later = json!({"dtstart": format!("{}-01-01T00:00:00", year()), "duration": "P1D"});
    rest.post(CALENDARS, &calendar("office", &later)).await.ok();
    let trigger = samples::trigger("disk", "disk");
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let mut rule = samples::rule("page", "disk", "hook", "{{event.summary}}");
    rule["activeCalendarName"] = json!("nothing");
    rule["autoPause"] = json!("5s");
    let refused = rest.post(RULES_PATH, &rule).await;
    let text = refused.json().to_string();
    assert!(
        text.contains("activeCalendarName") && text.contains("calendar `nothing` not found"),
        "{text}"
    );
    assert!(
        text.contains("autoPause") && text.contains("30 to 3600 s"),
        "{text}"
    );
    rule["activeCalendarName"] = json!("office");
    rule["autoPause"] = json!("120s");
    let made = rest.post(RULES_PATH, &rule).await.ok();
    assert_eq!(made["rule"]["activeCalendarName"], "office");
    assert_eq!(made["rule"]["autoPause"], "120s");
    let mut silence = json!({
        "name": "nightly",
        "reason": "patches",
        "ruleNames": ["page"],
        "calendar": {"calendarName": "office"},
    });
    let made = rest.post(SILENCES, &silence).await.ok();
    let made = &made["silence"];
    assert_eq!(made["state"], "SCHEDULED");
    assert_eq!(made["nextStartTime"], window_start());
    assert!(made["span"].is_null() && made["calendar"]["endTime"].is_null());
    silence["span"] = json!({"endTime": window_start()});
    assert_eq!(rest.post(SILENCES, &silence).await.status, 400);
    let refused = rest.delete(&format!("{CALENDARS}/office")).await;
    let text = refused.json().to_string();
    assert!(text.contains("rule `page`, silence `nightly`"), "{text}");
    rest.delete(&format!("{SILENCES}/nightly")).await.ok();
}

#[tokio::test]
async fn calendar_hold_survives_a_kill_and_follows_calendar_edits() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    let event = samples::event("full", "a", "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    let waits = |found: Value| found["pending"][0]["holds"][0].clone();
    let held = waits(rest.get("/v1/notification/pending").await.ok());
    assert_eq!(
        (&held["kind"], &held["name"], &held["until"]),
        (
            &json!("HOLD_KIND_ACTIVE_TIMES"),
            &json!("office"),
            &json!(window_start())
        )
    );
    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(waits(rest.get("/v1/notification/pending").await.ok()), held);
    assert_eq!(receiver.count(), 0);
    let always =
        json!({"dtstart": "2020-01-01T00:00:00", "duration": "P1D", "rrule": "FREQ=DAILY"});
    let path = format!("{CALENDARS}/office");
    rest.put(&path, &calendar("office", &always)).await.ok();
    eventually("the message to arrive", async || {
        (receiver.count() == 1).then_some(())
    })
    .await;
    let output = bellwether_tests::process::run(world.command(&["check", "--json"]));
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{reported}");
    world.terminate();
}
