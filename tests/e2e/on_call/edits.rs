//! Edits of schedules: the past does not change, a change in the middle of a shift causes a
//! warning, and ended parts do not prevent deletions.

use bellwether_tests::{receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

use super::{NOTIFICATION, prepare};
use crate::samples;

const SCHEDULE: &str = "/v1/notification/schedules/database";

async fn schedule(rest: &Rest) -> Value {
    rest.get(SCHEDULE).await.ok()["schedule"].clone()
}

/// Returns the on-call contacts at a time according to `:oncall` and according to `:shifts`.
async fn both(rest: &Rest, time: &str) -> (Value, Value) {
    let on_call = rest.get(&format!("{SCHEDULE}:oncall?time={time}")).await;
    let at: jiff::Timestamp = time.parse().unwrap();
    let end = at.checked_add(jiff::Span::new().milliseconds(1)).unwrap();
    let path = format!("{SCHEDULE}:shifts?start={at}&end={end}");
    let shifts = rest.get(&path).await.ok();
    (
        on_call.ok()["contactNames"].clone(),
        shifts["shifts"][0]["contactNames"].clone(),
    )
}

#[tokio::test]
async fn past_shifts_use_the_revision_of_their_time() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let before = jiff::Timestamp::now().to_string();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let mut edited = schedule(&rest).await;
    edited["layers"][0]["slots"] = json!([{"contactNames": ["ben"]}]);
    rest.put(SCHEDULE, &edited).await.ok();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let after = jiff::Timestamp::now().to_string();
    let (ana, ben) = (json!(["ana"]), json!(["ben"]));
    assert_eq!(both(&rest, &before).await, (ana.clone(), ana.clone()));
    assert_eq!(both(&rest, &after).await, (ben.clone(), ben.clone()));
    let end = samples::in_seconds(60);
    let path = format!("{SCHEDULE}:shifts?start={before}&end={end}");
    let found = rest.get(&path).await.ok();
    let names = found["shifts"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["contactNames"].clone()).collect();
    assert_eq!(names, [ana, ben]);
    assert_eq!(
        found["shifts"][0]["endTime"],
        found["shifts"][1]["startTime"]
    );
    // There are no shifts before the schedule existed.
    let path = format!("{SCHEDULE}:shifts?start=2020-01-01T00:00:00Z&end=2020-02-01T00:00:00Z");
    assert_eq!(rest.get(&path).await.ok().get("shifts"), None);
}

#[tokio::test]
async fn keep_current_delays_a_change_until_the_hand_off() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let mut draft = schedule(&rest).await;
    draft["layers"][0]["slots"] = json!([{"contactNames": ["ana"]}, {"contactNames": ["ben"]}]);
    rest.put(SCHEDULE, &draft).await.ok();
    let current = schedule(&rest).await;
    let on_call = current["onCallNames"].clone();
    let hand_off = current["nextChangeTime"].clone();
    let other = if on_call == json!(["ana"]) {
        "ben"
    } else {
        "ana"
    };
    let mut draft = current.clone();
    draft["layers"][0]["slots"] = json!([{"contactNames": [other]}]);
    let preview = async |draft: &Value| {
        let path = format!("{NOTIFICATION}/schedules:preview");
        rest.post(&path, draft).await.ok()
    };
    let warned = preview(&draft).await;
    let warning = warned["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("keepCurrent") && warning.contains(other),
        "{warning}"
    );
    assert_eq!(warned["shifts"][0]["contactNames"], json!([other]));
    draft["keepCurrent"] = json!(true);
    let previewed = preview(&draft).await;
    assert_eq!(previewed.get("warnings"), None, "{previewed}");
    assert_eq!(previewed["shifts"][0]["contactNames"], on_call);
    assert_eq!(previewed["shifts"][0]["endTime"], hand_off);
    assert_eq!(previewed["shifts"][1]["contactNames"], json!([other]));
    let stored = rest.put(SCHEDULE, &draft).await.ok()["schedule"].clone();
    assert_eq!(stored["onCallNames"], on_call);
    assert_eq!(stored["nextChangeTime"], hand_off);
    assert_eq!(stored.get("keepCurrent"), None);
    assert_eq!(stored["overrides"].as_array().unwrap().len(), 1);
    // Repeating the edit makes no further change.
    draft["etag"] = stored["etag"].clone();
    let again = rest.put(SCHEDULE, &draft).await.ok()["schedule"].clone();
    assert_eq!(again["overrides"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn ended_layers_and_overrides_do_not_count_as_use() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let create = async |path: &str, body: &Value| {
        rest.post(&format!("{NOTIFICATION}/{path}"), body)
            .await
            .ok()
    };
    for name in ["cleo", "dora", "emil"] {
        create("contacts", &super::contact(name)).await;
    }
    let window =
        json!({"dtstart": "2026-01-01T00:00:00", "duration": "P1D", "rrule": "FREQ=DAILY"});
    for name in ["days", "nights"] {
        let calendar = json!({"name": name, "timeZone": "UTC", "windows": [window]});
        create("calendars", &calendar).await;
    }
    // Store an override, a layer with an end and a layer whose hand-offs end, all in the past, and
    // a layer without an end.
    let mut draft = schedule(&rest).await;
    let layer =
        |name: &str| json!({"slots": [{"contactNames": [name]}], "dtstart": "2026-01-05T09:00:00"});
    let mut ended = layer("cleo");
    ended["until"] = json!("2026-02-01T00:00:00");
    ended["calendarName"] = json!("days");
    let mut counted = layer("dora");
    counted["rrule"] = json!("FREQ=DAILY;COUNT=3");
    let mut lasting = layer("emil");
    lasting["calendarName"] = json!("nights");
    let layers = draft["layers"].as_array_mut().unwrap();
    layers.splice(0..0, [ended, counted, lasting]);
    rest.put(SCHEDULE, &draft).await.ok();
    let over = json!({"contactNames": ["ben"], "endTime": samples::in_seconds(3_600)});
    let made = create("schedules/database/overrides", &over).await;
    let id = made["override"]["id"].as_str().unwrap();
    let delete = async |path: &str| rest.delete(&format!("{NOTIFICATION}/{path}")).await.status;
    let rule = "rules/page";
    assert_eq!(delete(rule).await, 200);
    assert_eq!(delete("escalation-policies/database").await, 200);
    for (path, expected) in [
        ("contacts/ben", 400),
        ("contacts/emil", 400),
        ("calendars/nights", 400),
        ("contacts/cleo", 200),
        ("contacts/dora", 200),
        ("calendars/days", 200),
        (&*format!("schedules/database/overrides/{id}"), 200),
        ("contacts/ben", 200),
    ] {
        assert_eq!(delete(path).await, expected, "{path}");
    }
    let left = schedule(&rest).await;
    assert_eq!(left.get("overrides"), None, "{left}");
    let names = left["layers"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|it| it["slots"][0]["contactNames"].clone())
        .collect();
    assert_eq!(
        names,
        [Value::Null, Value::Null, json!(["emil"]), json!(["ana"])]
    );
    // The result can be edited again.
    rest.put(SCHEDULE, &left).await.ok();
}

#[tokio::test]
async fn bounds_and_empty_slots_are_stored_and_checked() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let layer = |from: &str, until: &str| {
        json!({
            "slots": [{"contactNames": ["ana"]}, {}],
            "dtstart": "2026-01-05T09:00:00",
            "rrule": "FREQ=DAILY",
            "from": from,
            "until": until,
        })
    };
    let draft =
        |layer: Value| json!({"name": "bounded", "timeZone": "Europe/Berlin", "layers": [layer]});
    let path = format!("{NOTIFICATION}/schedules");
    for (from, until, field) in [
        ("tomorrow", "", "layers[0].from"),
        ("", "2026-06-01", "layers[0].until"),
        ("", "2026-01-05T09:00:00", "layers[0].until"),
        (
            "2026-06-01T00:00:00",
            "2026-06-01T00:00:00",
            "layers[0].until",
        ),
        ("2026-06-01T00:00:00Z", "", "layers[0].from"),
    ] {
        let refused = rest.post(&path, &draft(layer(from, until))).await;
        assert_eq!(refused.status, 400, "{from} {until}");
        assert!(
            refused.text().contains(field),
            "{field}: {}",
            refused.text()
        );
    }
    let wanted = layer("2027-06-01T09:00:00", "2027-06-03T12:00:00");
    let made = rest.post(&path, &draft(wanted.clone())).await.ok();
    let stored = &made["schedule"]["layers"][0];
    for field in ["from", "until", "dtstart", "rrule"] {
        assert_eq!(stored[field], wanted[field], "{field}");
    }
    let found = rest
        .get(&format!(
            "{path}/bounded:shifts?start=2027-05-31T22:00:00Z&end=2027-06-03T22:00:00Z"
        ))
        .await
        .ok();
    let shifts = found["shifts"].as_array().unwrap().iter();
    let shifts: Vec<_> = shifts
        .map(|it| (it["startTime"].clone(), it["contactNames"].clone()))
        .collect();
    let at = |time: &str, names: Value| (json!(format!("2027-{time}Z")), names);
    // 2027-06-01 is the 512th day after the first hand-off, so it is ana's turn.
    let expected = [
        at("05-31T22:00:00", Value::Null),
        at("06-01T07:00:00", json!(["ana"])),
        at("06-02T07:00:00", Value::Null),
        at("06-03T07:00:00", json!(["ana"])),
        at("06-03T10:00:00", Value::Null),
    ];
    assert_eq!(shifts, expected);
}
