//! Tests of contact methods that wait while rounds and edits follow, and of the methods'
//! identities.

use super::*;
use crate::{domain::Severity, escalation_policy::PolicyPreview};

fn method(destination: &str, after_seconds: i64) -> v1::ContactMethod {
    v1::ContactMethod {
        destination_name: destination.into(),
        after: Some(duration_from_ms(after_seconds * 1_000)),
        ..v1::ContactMethod::default()
    }
}

impl World {
    /// Stores a contact with these methods.
    async fn methods(&self, called: &str, methods: &[v1::ContactMethod]) {
        for it in methods {
            save_destination(&self.store, &it.destination_name).await;
        }
        let draft = v1::Contact {
            name: called.into(),
            methods: methods.to_vec(),
            ..v1::Contact::default()
        };
        let all = Contacts::new(self.store.clone(), self.clock());
        all.create_or_update(&draft, false).await.unwrap();
    }

    /// Returns each notified destination, and the seconds from the event to its notification.
    async fn times(&self, until_seconds: u64) -> Vec<(String, i64)> {
        let start_ms = self.clock.now_ms();
        self.event("db-1", |_| {}).await;
        for second in 0..until_seconds {
            if second % 7 == 3 {
                self.restart(1).await;
                self.review().await;
            } else {
                self.wait(1).await;
            }
        }
        let mut all = samples::all::<Delivery>(&self.store).await;
        all.retain(|it| it.content.contact.is_some());
        all.sort_by_key(|it| it.id.to_bytes());
        let seconds = |it: &Delivery| (it.create_ms - start_ms) / 1_000;
        let times = all
            .iter()
            .map(|it| (it.destination_name.clone(), seconds(it)));
        times.collect()
    }

    async fn preview(&self) -> v1::PreviewEscalationPolicyResponse {
        let all = EscalationPolicies::new(self.store.clone(), self.clock());
        let draft = all.get("db").await.unwrap();
        let ruleset = Arc::clone(&self.node().deciding.ruleset);
        let preview = PolicyPreview::new(all, ruleset);
        preview.preview(draft, None, None).await.unwrap()
    }
}

#[tokio::test]
async fn waiting_method_is_used_on_time_across_rounds() {
    // Delay of the method in seconds, number of rounds, duration of the step in seconds, the
    // expected pages, and the expected end.
    type Case<'a> = (i64, i32, i64, &'a [(&'a str, i64)], i64);
    let cases: [Case<'_>; 6] = [
        (6, 1, 4, &[("push", 0), ("call", 6)], 6),
        (6, 2, 4, &[("push", 0), ("push", 4), ("call", 6)], 8),
        (
            6,
            3,
            4,
            &[
                ("push", 0),
                ("push", 4),
                ("call", 6),
                ("push", 8),
                ("call", 14),
            ],
            14,
        ),
        (
            4,
            2,
            4,
            &[("push", 0), ("call", 4), ("push", 4), ("call", 8)],
            8,
        ),
        (
            3,
            2,
            4,
            &[("push", 0), ("call", 3), ("push", 4), ("call", 7)],
            8,
        ),
        (30, 2, 4, &[("push", 0), ("push", 4), ("call", 30)], 30),
    ];
    for (after, rounds, wait, expected, end) in cases {
        let world = world(&[&[contact("ana")]], |it| {
            it.rounds = rounds;
            it.steps[0].wait = Some(duration_from_ms(wait * 1_000));
        })
        .await;
        world
            .methods("ana", &[method("push", 0), method("call", after)])
            .await;
        let preview = world.preview().await;
        let seconds = |it: &Option<prost_types::Duration>| it.map_or(0, |it| it.seconds);
        let shown: Vec<_> = preview
            .notices
            .iter()
            .map(|it| (&*it.destination_name, seconds(&it.after)))
            .collect();
        let case = format!("after {after}, {rounds} rounds of {wait}");
        assert_eq!(shown, expected, "preview: {case}");
        assert_eq!(seconds(&preview.ends_after), end, "preview: {case}");
        let times = world.times(u64::try_from(end).unwrap() - 1).await;
        let times: Vec<_> = times.iter().map(|(to, at)| (&**to, *at)).collect();
        let before: Vec<_> = expected.iter().copied().filter(|it| it.1 < end).collect();
        assert_eq!(times, before, "{case}");
        assert!(!world.response().await.unanswered, "too early: {case}");
        world.wait(1).await;
        assert!(world.response().await.unanswered, "too late: {case}");
        let pages = world.notified().await.len() - 1;
        assert_eq!(pages, expected.len(), "{case}");
    }
}

#[tokio::test]
async fn contact_whose_only_method_waits_counts_as_notified() {
    let steps = [&[contact("ana")][..], &[contact("ana")], &[contact("ben")]];
    let world = world(&steps, |it| {
        it.rounds = 2;
        for step in &mut it.steps {
            step.wait = Some(duration_from_ms(60_000));
        }
    })
    .await;
    world.methods("ana", &[method("call", 150)]).await;
    world.event("db-1", |_| {}).await;
    world.minutes(1).await;
    // The second step has no further receivers, so the third one runs immediately.
    assert_eq!(world.notified().await, ["chat", "ben"]);
    world.minutes(1).await;
    assert_eq!(world.response().await.round, 2);
    assert_eq!(world.response().await.step, 1);
    world.wait(30).await;
    assert_eq!(world.notified().await, ["chat", "ben", "call"]);
}

#[tokio::test]
async fn waiting_method_survives_disabling_and_enabling_its_rule() {
    let world = world(&[&[contact("ana")]], |it| {
        it.steps[0].wait = Some(duration_from_ms(0));
    })
    .await;
    world
        .methods("ana", &[method("push", 0), method("call", 120)])
        .await;
    world.event("db-1", |_| {}).await;
    world.wait(1).await;
    edit(&world, |it| it.enabled = false).await;
    world.minutes(3).await;
    assert_eq!(world.notified().await, ["chat", "push"]);
    edit(&world, |it| it.enabled = true).await;
    assert_eq!(world.notified().await, ["chat", "push", "call"]);
    assert_eq!(world.response().await.round, 1);
}

#[tokio::test]
async fn waiting_method_is_found_by_its_identity() {
    let (push, call) = (method("push", 0), method("call", 120));
    let mail = method("mail", 120);
    let renamed = v1::ContactMethod {
        id: "call".into(),
        ..method("phone", 120)
    };
    for (edited, expected) in [
        (vec![call.clone(), push.clone()], &["call"][..]),
        (vec![mail.clone(), push.clone(), call.clone()], &["call"]),
        (vec![call.clone()], &["call"]),
        (vec![push.clone(), renamed], &["phone"]),
        (vec![push.clone(), mail], &[]),
        (vec![push.clone()], &[]),
    ] {
        let world = world(&[&[contact("ana")]], |_| {}).await;
        world.methods("ana", &[push.clone(), call.clone()]).await;
        world.event("db-1", |_| {}).await;
        world.methods("ana", &edited).await;
        world.restart(1).await;
        world.minutes(3).await;
        assert_eq!(world.notified().await[2..], *expected, "{edited:?}");
    }
}

#[tokio::test]
async fn waiting_method_without_id_is_found_by_position() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world
        .methods("ana", &[method("push", 0), method("call", 120)])
        .await;
    world.event("db-1", |_| {}).await;
    let stored = samples::all::<Occurrence>(&world.store).await.remove(0);
    let stored = world
        .store
        .get::<Occurrence>(stored.key.to_bytes().into())
        .await;
    let stored = stored.unwrap().unwrap();
    let mut earlier = stored.value.clone();
    let response = earlier.notified[0].response.as_mut().unwrap();
    for queued in &mut response.queued {
        queued.method.clear();
        (queued.round, queued.step) = (0, 0);
    }
    for paged in &mut response.paged {
        paged.contact.as_mut().unwrap().method.clear();
    }
    let mut changes = world.store.new_changes();
    changes.update(&stored, &earlier);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.minutes(2).await;
    assert_eq!(world.notified().await, ["chat", "push", "call"]);
    world.end().await;
    let closings = world.notified().await.split_off(3);
    assert_eq!(closings.len(), 3, "{closings:?}");
}

#[tokio::test]
async fn methods_to_one_destination_are_separate_receivers() {
    let phone = |number: &str| v1::ContactMethod {
        variables: [("phone".to_owned(), number.to_owned())].into(),
        ..method("call", 0)
    };
    let world = world(&[&[contact("ana")]], |it| it.rounds = 2).await;
    world.methods("ana", &[phone("1"), phone("2")]).await;
    world.event("db-1", |_| {}).await;
    world.minutes(5).await;
    let response = world.response().await;
    let notified: Vec<_> = response
        .notified
        .iter()
        .map(|it| (&*it.contact_name, &*it.method_id, it.round))
        .collect();
    assert_eq!(notified, [("ana", "call", 2), ("ana", "call-2", 2)]);
    world.end().await;
    let all = samples::all::<Delivery>(&world.store).await;
    let closings = all.iter().filter(|it| it.content.clear);
    let contacts = closings.filter_map(|it| it.content.contact.as_ref());
    let mut phones: Vec<_> = contacts.map(|it| &*it.variables["phone"]).collect();
    phones.sort_unstable();
    assert_eq!(phones, ["1", "2"]);
}

#[tokio::test]
async fn contact_method_ids_survive_edits_and_are_validated() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world
        .methods("ana", &[method("push", 0), method("call", 60)])
        .await;
    let all = Contacts::new(world.store.clone(), world.clock());
    let stored = all.get("ana").await.unwrap();
    let ids = |it: &v1::Contact| {
        it.methods
            .iter()
            .map(|it| it.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&stored), ["push", "call"]);
    // An update without identities keeps the stored ones.
    let mut draft = stored.clone();
    draft.etag.clear();
    for method in &mut draft.methods {
        method.id.clear();
    }
    let put = all.create_or_update(&draft, false).await.unwrap();
    assert!(matches!(put, crate::resource::PutOutcome::Unchanged(_)));
    draft.methods.reverse();
    let saved = all.update(&draft, false).await.unwrap();
    assert_eq!(ids(&saved.view), ["call", "push"]);
    for (id, expected) in [
        ("push", "is the id of another method"),
        (" push", "methods[1].id"),
        ("a/b", "methods[1].id"),
    ] {
        draft.methods[0].id = "push".into();
        draft.methods[1].id = id.into();
        let refused = all.update(&draft, false).await.unwrap_err();
        let Error::Invalid(violations) = &refused else {
            panic!("{refused}");
        };
        let text = format!("{violations:?}");
        assert!(text.contains(expected), "{id}: {text}");
    }
}

#[tokio::test]
async fn saving_warns_of_a_method_that_is_never_used() {
    use crate::domain::{
        Calendar,
        calendar::{Window, WindowText},
    };
    let world = world(&[&[contact("ana")]], |_| {}).await;
    save_destination(&world.store, "call").await;
    // The clock starts on 15 January 2027 at 08:00.
    for (dtstart, duration, rrule, after, is_warned) in [
        ("2027-01-04T08:00:00", "PT1H", "FREQ=DAILY", 0, false),
        ("2027-01-04T08:00:00", "PT1H", "FREQ=DAILY", 3_599, false),
        ("2027-01-04T08:00:00", "PT1H", "FREQ=DAILY", 3_600, true),
        ("2027-01-04T08:00:00", "PT10M", "FREQ=DAILY", 601, true),
        ("2027-01-04T08:00:00", "PT10M", "FREQ=HOURLY", 3_600, false),
        ("2027-01-04T08:00:00", "PT1H", "FREQ=DAILY;COUNT=3", 0, true),
        ("2027-01-15T07:00:00", "PT1H", "", 0, true),
        ("2027-01-15T07:00:00", "PT2H", "", 0, false),
        ("2027-01-15T07:00:00", "PT2H", "", 3_600, true),
        ("2029-01-15T07:00:00", "PT2H", "", 0, true),
    ] {
        let text = WindowText {
            dtstart: dtstart.into(),
            duration: duration.into(),
            rrule: rrule.into(),
            ..WindowText::default()
        };
        let case = format!("{dtstart} {duration} {rrule} after {after}");
        let Ok(window) = Window::parse(&text) else {
            // Hourly recurrences are not supported by calendars.
            assert!(rrule.contains("HOURLY"), "{case}");
            continue;
        };
        let calendar = Calendar {
            name: name("hours"),
            time_zone: "UTC".into(),
            windows: vec![window],
            except: Vec::new(),
            ..crate::testing::samples::calendar("hours")
        };
        let mut changes = world.store.new_changes();
        match world.store.get::<Calendar>("hours".into()).await.unwrap() {
            Some(stored) => changes.update(&stored, &calendar),
            None => changes.insert(&calendar),
        }
        world.store.apply(Lane::Admin, changes).await.unwrap();
        let mut timed = method("call", after);
        timed.calendar_name = "hours".into();
        let draft = v1::Contact {
            name: "ana".into(),
            methods: vec![method("call", 0), timed],
            ..v1::Contact::default()
        };
        let all = Contacts::new(world.store.clone(), world.clock());
        let saved = all.update(&draft, true).await.unwrap();
        assert_eq!(
            saved.warnings.len(),
            usize::from(is_warned),
            "{case}: {:?}",
            saved.warnings
        );
        let mut warnings = saved.warnings.iter();
        assert!(
            warnings.all(|it| it.starts_with("methods[1]: `call")),
            "{case}"
        );
    }
}

#[tokio::test]
async fn new_severity_keeps_waiting_methods() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world
        .methods("ana", &[method("push", 0), method("call", 120)])
        .await;
    world.event("db-1", |_| {}).await;
    world.minutes(1).await;
    world
        .event("db-1", |it| it.severity = Some(Severity::Critical))
        .await;
    world.minutes(1).await;
    let mut pages = world.notified().await;
    pages.retain(|it| !it.starts_with('-'));
    assert_eq!(pages, ["chat", "push", "push", "call"]);
}

#[tokio::test]
async fn method_of_earlier_step_does_not_delay_next_step() {
    let steps = [&[contact("ana")][..], &[contact("ben")], &[contact("cleo")]];
    let world = world(&steps, |it| {
        for step in &mut it.steps {
            step.wait = Some(duration_from_ms(300_000));
        }
    })
    .await;
    world
        .methods("ana", &[method("push", 0), method("call", 1_800)])
        .await;
    world.event("db-1", |_| {}).await;
    world.minutes(5).await;
    assert_eq!(world.notified().await, ["chat", "push", "ben"]);
    world.kill_deliveries("ben").await;
    world.wait(15).await;
    assert_eq!(world.notified().await[3..], ["cleo"]);
}
