//! Tests of escalation with contacts, schedules and policies, on a service with a manual clock.

use std::time::Duration;

use bellwether_language::filter;
use bellwether_proto::v1::{escalation_target::Target, response::State};

use super::*;
use crate::{
    clock::Clock,
    contact::Contacts,
    domain::{
        Delivery, DeliveryState, Destination, EqualFields, EscalationPolicy, Health, HealthState,
        Inhibition, Query, Rule,
    },
    escalation_policy::EscalationPolicies,
    samples::{self, name, rule, world::World},
    schedule::Schedules,
    store::Store,
    testing::walks::walk_length,
    wire::time::duration_from_ms,
};

const MINUTE: u64 = 60;

/// A service in which `ana`, `ben` and `cleo` each have one destination, and the rule `page` uses
/// the policy `db`.
async fn world(steps: &[&[Target]], change: impl FnOnce(&mut v1::EscalationPolicy)) -> World {
    world_on(World::under(&[]).await, steps, change).await
}

async fn world_on(
    world: World,
    steps: &[&[Target]],
    change: impl FnOnce(&mut v1::EscalationPolicy),
) -> World {
    let paging = Rule {
        send_updates: true,
        ..rule("page", &[samples::DISK_TRIGGER], &["chat"])
    };
    samples::save_rule(&world.store, &paging).await;
    for called in ["ana", "ben", "cleo"] {
        world.contact(called, &[(called, 0)]).await;
    }
    let mut policy = policy(steps);
    change(&mut policy);
    let all = EscalationPolicies::new(world.store.clone(), world.clock());
    all.create(&policy, false).await.unwrap();
    let paging = Rule {
        escalation_policy: Some(name("db")),
        ..paging
    };
    samples::save_rule(&world.store, &paging).await;
    world.restart(0).await;
    world
}

/// A policy whose steps are five minutes apart.
fn policy(steps: &[&[Target]]) -> v1::EscalationPolicy {
    let target = |it: &Target| v1::EscalationTarget {
        target: Some(it.clone()),
    };
    let step = |targets: &&[Target]| v1::EscalationStep {
        targets: targets.iter().map(target).collect(),
        wait: None,
    };
    v1::EscalationPolicy {
        name: "db".into(),
        steps: steps.iter().map(step).collect(),
        ..v1::EscalationPolicy::default()
    }
}

fn contact(called: &str) -> Target {
    Target::ContactName(called.into())
}

fn schedule(called: &str) -> Target {
    Target::ScheduleName(called.into())
}

async fn save_destination(store: &Store, called: &str) {
    if store
        .get::<Destination>(called.into())
        .await
        .unwrap()
        .is_none()
    {
        let mut changes = store.new_changes();
        changes.insert(&samples::destination(called));
        store.apply(Lane::Admin, changes).await.unwrap();
    }
}

impl World {
    fn responses(&self) -> Responses {
        let node = self.node();
        let deliveries = Deliveries::new(self.store.clone(), self.clock());
        Responses::new(node.deciding.clone(), node.intake.clone(), deliveries)
    }

    /// Stores a contact with destinations, each with its delay in seconds.
    async fn contact(&self, called: &str, methods: &[(&str, u64)]) {
        for (destination, _) in methods {
            save_destination(&self.store, destination).await;
        }
        let method = |(destination, after): &(&str, u64)| v1::ContactMethod {
            destination_name: (*destination).into(),
            variables: [("phone".to_owned(), format!("+{called}"))].into(),
            after: Some(duration_from_ms(i64::try_from(*after).unwrap() * 1_000)),
            ..v1::ContactMethod::default()
        };
        let draft = v1::Contact {
            name: called.into(),
            methods: methods.iter().map(method).collect(),
            ..v1::Contact::default()
        };
        let all = Contacts::new(self.store.clone(), self.clock());
        all.create_or_update(&draft, false).await.unwrap();
    }

    /// Stores a schedule in UTC whose contacts take turns from the given time on.
    async fn schedule(&self, called: &str, (dtstart, rrule): (&str, &str), contacts: &[&str]) {
        let slot = |it: &&str| v1::ScheduleSlot {
            contact_names: vec![(*it).into()],
        };
        let draft = v1::Schedule {
            name: called.into(),
            time_zone: "UTC".into(),
            layers: vec![v1::ScheduleLayer {
                slots: contacts.iter().map(slot).collect(),
                dtstart: dtstart.into(),
                rrule: rrule.into(),
                ..v1::ScheduleLayer::default()
            }],
            ..v1::Schedule::default()
        };
        let all = Schedules::new(self.store.clone(), self.clock());
        all.create_or_update(&draft, false).await.unwrap();
    }

    async fn edit_policy(&self, change: impl FnOnce(&mut v1::EscalationPolicy)) {
        let all = EscalationPolicies::new(self.store.clone(), self.clock());
        let mut draft = all.get("db").await.unwrap();
        change(&mut draft);
        all.update(&draft, false).await.unwrap();
    }

    async fn change(&self, change: StateChange) {
        self.turn().await;
        let event = samples::event("db-1");
        let item = StatusItem {
            target: OccurrenceTarget::Newest(event.id()),
            change,
        };
        let node = self.node();
        let by = name("dora");
        let answers = set_status((&node.deciding, &node.intake), &[item], &by).await;
        answers.unwrap().remove(0).unwrap();
    }

    async fn acknowledge(&self, for_minutes: Option<i64>) {
        self.change(StateChange {
            acknowledged: Some(true),
            acknowledge_for_ms: for_minutes.map(|it| it * 60_000),
            ..StateChange::default()
        })
        .await;
    }

    async fn end(&self) {
        self.event("db-1", |it| it.status = Some(Status::Closed))
            .await;
    }

    async fn silence_all(&self, minutes: i64) {
        self.silence_some("patch", None, minutes).await;
    }

    async fn silence_some(&self, called: &str, text: Option<&str>, minutes: i64) {
        let query = text.map(|text| Query {
            clause: filter::parse(text, None).unwrap().clause,
        });
        let draft = crate::silence::SilenceDraft {
            name: called.into(),
            description: String::new(),
            tags: Vec::new(),
            reason: "kernel update".into(),
            query,
            rule_names: vec!["page".into()],
            destination_names: Vec::new(),
            annotations: std::collections::BTreeMap::new(),
            calendar: String::new(),
            start_ms: None,
            end_ms: Some(self.clock.now_ms() + minutes * 60_000),
            expire_when_idle_ms: None,
            warn_before_ms: None,
            from_event: None,
            editor: name("dora"),
            etag: String::new(),
            violations: Vec::new(),
        };
        let silences = &self.node().silences;
        silences.create(draft, false, true).await.unwrap();
        self.review().await;
    }

    /// Advances the clock minute by minute, with a review after each.
    async fn minutes(&self, count: u64) {
        for _ in 0..count {
            self.wait(MINUTE).await;
        }
    }

    /// Returns the destinations notified about `db-1`, oldest first, with a `-` prefix for `clear`.
    async fn notified(&self) -> Vec<String> {
        let mut all = samples::all::<Delivery>(&self.store).await;
        all.retain(|it| it.content.occurrence.dimensions.get("host") == Some(&"db-1".to_owned()));
        all.sort_by_key(|it| it.id.to_bytes());
        let shown = |it: Delivery| {
            let sign = if it.content.clear { "-" } else { "" };
            format!("{sign}{}", it.destination_name)
        };
        all.into_iter().map(shown).collect()
    }

    async fn response(&self) -> v1::Response {
        let filter = ResponseFilter {
            states: ResponseState::ALL.into(),
            ..ResponseFilter::default()
        };
        let (mut all, _) = self
            .responses()
            .list(&filter, &PageRequest::default())
            .await
            .unwrap();
        all.retain(|it| it.rule_name == "page");
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    async fn state(&self) -> State {
        self.response().await.state()
    }

    /// Marks all deliveries to a destination as dead.
    async fn kill_deliveries(&self, destination: &str) {
        let all = samples::all::<Delivery>(&self.store).await;
        let mut changes = self.store.new_changes();
        for it in all.iter().filter(|it| it.destination_name == destination) {
            let key = it.id.to_bytes().into();
            let stored = self.store.get::<Delivery>(key).await.unwrap().unwrap();
            let dead = Delivery {
                state: DeliveryState::Dead,
                end_ms: Some(self.clock.now_ms()),
                ..stored.value.clone()
            };
            changes.update(&stored, &dead);
        }
        self.store.apply(Lane::Admin, changes).await.unwrap();
    }
}

#[tokio::test]
async fn steps_run_in_order_for_all_rounds() {
    let steps = [&[contact("ana")][..], &[contact("ben"), contact("cleo")]];
    let world = world(&steps, |it| {
        it.rounds = 2;
        it.fallback_destination_name = "chat".into();
    })
    .await;
    world.event("db-1", |_| {}).await;
    // The first step runs in the commit of the event.
    assert_eq!(world.notified().await, ["chat", "ana"]);
    world.minutes(4).await;
    assert_eq!(world.notified().await, ["chat", "ana"]);
    world.minutes(1).await;
    assert_eq!(world.notified().await[2..], ["ben", "cleo"]);
    let response = world.response().await;
    assert_eq!((response.round, response.step), (1, 2));
    world.minutes(5).await;
    assert_eq!(world.notified().await[4..], ["ana"]);
    world.minutes(10).await;
    assert_eq!(world.notified().await[5..], ["ben", "cleo", "chat"]);
    assert!(world.response().await.unanswered);
    let said = samples::said(&world.store, "escalation").await;
    assert_eq!(said.name, "no one responded");
    assert_eq!(said.severity, crate::domain::Severity::Critical);
    world.minutes(60).await;
    assert_eq!(world.notified().await.len(), 8);
    world.acknowledge(None).await;
    assert_eq!(world.state().await, State::Acknowledged);
    assert!(!world.response().await.unanswered);
}

#[tokio::test]
async fn acknowledgement_stops_further_steps() {
    // A second before the second step is due, at that time, and a second later.
    for seconds in [299, 300, 301] {
        let steps = [&[contact("ana")][..], &[contact("ben")]];
        let world = world(&steps, |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.clock.advance(Duration::from_secs(seconds));
        world.acknowledge(None).await;
        world.minutes(20).await;
        let notified = world.notified().await;
        let ben = notified.iter().filter(|it| *it == "ben").count();
        assert_eq!(ben, 0, "{seconds}: {notified:?}");
        assert_eq!(world.state().await, State::Acknowledged);
        world.end().await;
        assert_eq!(world.state().await, State::Ended);
    }
}

#[tokio::test]
async fn concurrent_acknowledgement_and_step_are_serialized() {
    for _ in 0..walk_length("BELLWETHER_RACES") {
        let steps = [&[contact("ana")][..], &[contact("ben")], &[contact("cleo")]];
        let world = world(&steps, |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.clock.advance(Duration::from_secs(300));
        world.turn().await;
        let node = world.node();
        let change = StateChange {
            acknowledged: Some(true),
            ..StateChange::default()
        };
        let event = samples::event("db-1");
        let items = [StatusItem {
            target: OccurrenceTarget::Newest(event.id()),
            change,
        }];
        let by = name("dora");
        let acknowledged = set_status((&node.deciding, &node.intake), &items, &by);
        let (reviewed, answers) = tokio::join!(node.reviewer.run_once(), acknowledged);
        assert!(reviewed);
        answers.unwrap().remove(0).unwrap();
        let then = world.notified().await;
        world.minutes(15).await;
        assert_eq!(world.notified().await, then);
        assert!(!then.contains(&"cleo".to_owned()));
    }
}

#[tokio::test]
async fn expired_acknowledgement_starts_a_round_with_current_on_call() {
    // The clock starts on 15 January 2027 at 08:00.
    let world = world(&[&[contact("cleo")]], |_| {}).await;
    let turns = ("2027-01-15T08:00:00", "FREQ=DAILY");
    world.schedule("nights", turns, &["ana", "ben"]).await;
    world
        .edit_policy(|it| it.steps = policy(&[&[schedule("nights")]]).steps)
        .await;
    world.event("db-1", |_| {}).await;
    assert_eq!(world.notified().await, ["chat", "ana"]);
    world.acknowledge(Some(24 * 60)).await;
    assert_eq!(world.state().await, State::Acknowledged);
    let until = world.response().await.acknowledged_until_time;
    assert!(until.is_some());
    world.wait(24 * 3_600 - 1).await;
    assert_eq!(world.state().await, State::Acknowledged);
    world.wait(2).await;
    assert_eq!(world.state().await, State::Active);
    let notified = world.notified().await;
    assert_eq!(notified.last().map(String::as_str), Some("ben"));
    assert_eq!(world.response().await.round, 2);
    let event = samples::event("db-1");
    let newest = crate::find::newest_occurrence(&world.store, event.id()).await;
    let newest = newest.unwrap().unwrap();
    assert!(!newest.acknowledged);
    let last = newest.history.last().unwrap();
    assert_eq!(
        (last.field, &*last.to, &last.author),
        (Field::Acknowledged, "false", &None)
    );
}

#[tokio::test]
async fn policy_limits_the_acknowledgement_duration() {
    let world = world(&[&[contact("ana")]], |it| {
        it.ack_timeout = Some(duration_from_ms(1_800_000));
    })
    .await;
    world.event("db-1", |_| {}).await;
    world.acknowledge(None).await;
    world.minutes(29).await;
    assert_eq!(world.state().await, State::Acknowledged);
    world.minutes(2).await;
    assert_eq!(world.state().await, State::Active);
    let pages = world.notified().await;
    assert_eq!(
        pages.iter().filter(|it| *it == "ana").count(),
        2,
        "{pages:?}"
    );
}

#[tokio::test]
async fn step_without_receivers_makes_the_next_step_due() {
    let world = world(&[&[contact("cleo")]], |_| {}).await;
    let later = ("2027-02-01T08:00:00", "");
    world.schedule("nights", later, &["ana"]).await;
    let steps = [&[schedule("nights")][..], &[contact("ben")]];
    world
        .edit_policy(|it| it.steps = policy(&steps).steps)
        .await;
    world.event("db-1", |_| {}).await;
    assert_eq!(world.notified().await, ["chat", "ben"]);
}

#[tokio::test]
async fn contact_is_notified_once_per_round() {
    let both = [contact("ana"), contact("ben")];
    let steps = [
        &[contact("ana")][..],
        &both,
        &[contact("ana")],
        &[contact("cleo")],
    ];
    let world = world(&steps, |it| it.rounds = 2).await;
    world.event("db-1", |_| {}).await;
    world.minutes(5).await;
    assert_eq!(world.notified().await, ["chat", "ana", "ben"]);
    // The third step has no receivers that have not been notified in this round.
    world.minutes(5).await;
    assert_eq!(world.notified().await[3..], ["cleo"]);
    world.minutes(5).await;
    assert_eq!(world.notified().await[4..], ["ana"]);
}

#[tokio::test]
async fn on_call_is_resolved_when_the_step_runs() {
    let world = world(&[&[contact("cleo")]], |_| {}).await;
    // The hand-off is four minutes after the first step.
    let turns = ("2027-01-15T07:04:00", "FREQ=DAILY");
    world.schedule("nights", turns, &["ben", "ana"]).await;
    let steps = [&[contact("cleo")][..], &[schedule("nights")]];
    world
        .edit_policy(|it| it.steps = policy(&steps).steps)
        .await;
    let all = Schedules::new(world.store.clone(), world.clock());
    let until_ms = world.clock.now_ms() + 4 * 60_000;
    let covers = v1::ScheduleOverride {
        contact_names: vec!["ana".into()],
        end_time: Some(timestamp(until_ms)),
        ..v1::ScheduleOverride::default()
    };
    all.create_override("nights", &covers).await.unwrap();
    let on_call = all.on_call("nights", None).await.unwrap();
    assert_eq!(
        (on_call.contacts, &*on_call.source),
        (vec!["ana".to_owned()], "override")
    );
    world.event("db-1", |_| {}).await;
    // The override ends while the step waits.
    world.minutes(6).await;
    assert_eq!(world.notified().await, ["chat", "cleo", "ben"]);
    let past = all.on_call("nights", Some(until_ms - 1)).await.unwrap();
    assert_eq!(past.contacts, ["ana"]);
}

#[tokio::test]
async fn policy_edit_applies_from_the_next_round() {
    let steps = [&[contact("ana")][..], &[contact("ben")]];
    let world = world(&steps, |it| it.rounds = 2).await;
    world.event("db-1", |_| {}).await;
    world
        .edit_policy(|it| it.steps = policy(&[&[contact("cleo")]]).steps)
        .await;
    world.minutes(5).await;
    assert_eq!(world.notified().await, ["chat", "ana", "ben"]);
    world.minutes(5).await;
    assert_eq!(world.notified().await[3..], ["cleo"]);
}

#[tokio::test]
async fn undelivered_method_triggers_the_next_method() {
    let steps = [&[contact("ana")][..], &[contact("ben")]];
    let world = world(&steps, |_| {}).await;
    world.contact("ana", &[("push", 0), ("call", 180)]).await;
    world.event("db-1", |_| {}).await;
    assert_eq!(world.notified().await, ["chat", "push"]);
    world.kill_deliveries("push").await;
    world.wait(3).await;
    assert_eq!(world.notified().await[2..], ["call"]);
    // If no delivery succeeds, the next step is due.
    world.kill_deliveries("call").await;
    world.wait(10).await;
    assert_eq!(world.notified().await[3..], ["ben"]);
}

#[tokio::test]
async fn contact_methods_run_until_acknowledged() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world
        .contact("ana", &[("push", 0), ("call", 120), ("mail", 240)])
        .await;
    world.event("db-1", |_| {}).await;
    world.minutes(2).await;
    assert_eq!(world.notified().await, ["chat", "push", "call"]);
    world.acknowledge(None).await;
    world.minutes(10).await;
    assert!(!world.notified().await.contains(&"mail".to_owned()));
}

#[tokio::test]
async fn paused_destinations_advance_to_next_step_and_fallback() {
    let steps = [&[contact("ana")][..], &[contact("ben")]];
    let world = world(&steps, |it| it.fallback_destination_name = "chat".into()).await;
    let mut changes = world.store.new_changes();
    for called in ["ana", "ben"] {
        let found = world.store.get::<Destination>(called.into()).await.unwrap();
        changes.insert(&Health {
            state: HealthState::Paused,
            ..Health::new_unattempted(found.unwrap().value.id, 0)
        });
    }
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.event("db-1", |_| {}).await;
    world.wait(3).await;
    world.wait(3).await;
    world.wait(3).await;
    assert_eq!(world.notified().await, ["chat", "ana", "ben", "chat"]);
    assert_eq!(
        samples::said(&world.store, "escalation").await.name,
        "no one responded"
    );
}

#[tokio::test]
async fn only_one_of_the_held_steps_runs_after_a_silence() {
    let steps = [&[contact("ana")][..], &[contact("ben")], &[contact("cleo")]];
    let world = world(&steps, |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.minutes(1).await;
    world.silence_all(20).await;
    world.minutes(15).await;
    assert_eq!(world.state().await, State::Held);
    assert_eq!(world.notified().await, ["chat", "ana"]);
    world.minutes(7).await;
    assert_eq!(world.state().await, State::Active);
    assert_eq!(world.notified().await, ["chat", "ana", "ben"]);
    world.minutes(5).await;
    assert_eq!(world.notified().await[3..], ["cleo"]);
}

#[tokio::test]
async fn closing_reaches_everyone_notified() {
    let direct = [Target::DestinationName("wall".into())];
    let world = world(&[&[contact("ana")]], |_| {}).await;
    save_destination(&world.store, "wall").await;
    let steps = [&[contact("ana")][..], &[contact("ben")], &direct];
    world
        .edit_policy(|it| it.steps = policy(&steps).steps)
        .await;
    world.event("db-1", |_| {}).await;
    world.minutes(10).await;
    world.end().await;
    let mut closings = world.notified().await.split_off(4);
    closings.sort_unstable();
    assert_eq!(closings, ["-ana", "-ben", "-chat", "-wall"]);
    let all = samples::all::<Delivery>(&world.store).await;
    let ana = all.iter().filter(|it| it.destination_name == "ana");
    for delivery in ana {
        let contact = delivery.content.contact.as_ref().unwrap();
        assert_eq!(contact.variables["phone"], "+ana");
    }
    world.minutes(30).await;
    assert_eq!(world.notified().await.len(), 8);
}

#[tokio::test]
async fn manual_escalation_runs_the_next_step() {
    let steps = [&[contact("ana")][..], &[contact("ben")]];
    let world = world(&steps, |_| {}).await;
    world.event("db-1", |_| {}).await;
    let id = world.response().await.id;
    let seen = Some((1, 1));
    let escalated = world.responses().escalate(&id, seen).await.unwrap();
    assert_eq!(escalated.step, 2);
    // A second call for the same step fails, so that no contact is skipped.
    let late = world.responses().escalate(&id, seen).await.unwrap_err();
    assert!(matches!(late, Error::Aborted(_)), "{late}");
    assert_eq!(world.notified().await, ["chat", "ana", "ben"]);
    world.acknowledge(None).await;
    let refused = world.responses().escalate(&id, None).await.unwrap_err();
    assert!(matches!(refused, Error::FailedPrecondition(_)), "{refused}");
    let unknown = world
        .responses()
        .escalate("nothing", None)
        .await
        .unwrap_err();
    assert!(matches!(unknown, Error::NotFound(_)), "{unknown}");
}

#[tokio::test]
async fn contact_link_acknowledges_as_the_contact() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    let response = world.response().await;
    let link = (&*response.occurrence_id, &*response.id, "ana");
    let (seen, others) = world.responses().acknowledge(link, false).await.unwrap();
    assert!(!seen.acknowledged);
    assert_eq!(others, 0);
    let (done, _) = world.responses().acknowledge(link, true).await.unwrap();
    assert_eq!(acknowledging_user(&done), Some(&name("contact:ana")));
    assert_eq!(world.response().await.acknowledged_by, "contact:ana");
    // An acknowledgement by the client of a contact counts as one by the contact.
    world
        .change(StateChange {
            acknowledged: Some(false),
            ..StateChange::default()
        })
        .await;
    let all = Contacts::new(world.store.clone(), world.clock());
    let mut ben = all.get("ben").await.unwrap();
    ben.client_name = "dora".into();
    all.update(&ben, false).await.unwrap();
    world.acknowledge(None).await;
    assert_eq!(world.response().await.acknowledged_by, "contact:ben");
    world.end().await;
    let over = world.responses().acknowledge(link, true).await.unwrap_err();
    assert!(matches!(over, Error::FailedPrecondition(_)), "{over}");
}

#[tokio::test]
async fn contacts_of_an_ended_response_get_the_closing() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    let rule = async |policy: Option<&str>| {
        let found = world.store.get::<Rule>("page".into()).await.unwrap();
        let edited = Rule {
            escalation_policy: policy.map(name),
            repeat: true,
            repeat_interval_seconds: 0,
            revision: 7,
            ..found.unwrap().value
        };
        samples::save_rule(&world.store, &edited).await;
        world.event("db-1", |_| {}).await;
    };
    rule(None).await;
    assert_eq!(world.state().await, State::Ended);
    world
        .edit_policy(|it| it.steps = policy(&[&[contact("ben")]]).steps)
        .await;
    rule(Some("db")).await;
    world.event("db-1", |_| {}).await;
    assert_eq!(world.state().await, State::Active);
    world.end().await;
    let mut closings = world.notified().await;
    closings.retain(|it| it.starts_with('-'));
    closings.sort_unstable();
    assert_eq!(closings, ["-ana", "-ben", "-chat"]);
}

#[tokio::test]
async fn schedule_edit_does_not_change_the_ruleset_edition() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    let edition = async || {
        let node = world.node();
        node.deciding.ruleset.refresh().await.unwrap().edition()
    };
    let before = edition().await;
    let turns = ("2027-01-15T08:00:00", "FREQ=DAILY");
    world.schedule("nights", turns, &["ana", "ben"]).await;
    assert_eq!(edition().await, before);
    let node = world.node();
    let snapshot = node.deciding.ruleset.refresh().await.unwrap();
    assert!(
        snapshot
            .responders()
            .schedules
            .contains_key(&name("nights"))
    );
}

mod cancelled;
mod current;
mod groups;
mod methods;
mod no_response;
mod noise;
mod own_events;
mod severity;
mod statements;

async fn edit(world: &World, change: impl FnOnce(&mut Rule)) {
    let stored = world.store.get::<Rule>("page".into()).await;
    let mut next = stored.unwrap().unwrap().value;
    next.revision += 1;
    change(&mut next);
    samples::save_rule(&world.store, &next).await;
    world.review().await;
}

#[tokio::test]
async fn response_resumes_when_rule_and_policy_are_restored() {
    type Edit = fn(&mut Rule);
    let edits: [(Edit, Edit); 2] = [
        (|it| it.enabled = false, |it| it.enabled = true),
        (
            |it| it.escalation_policy = None,
            |it| it.escalation_policy = Some(name("db")),
        ),
    ];
    for (stop, restore) in edits {
        let world = world(
            &[&[contact("ana")], &[contact("ben")], &[contact("cleo")]],
            |_| {},
        )
        .await;
        world.event("db-1", |_| {}).await;
        world.review().await;
        world.minutes(1).await;
        edit(&world, stop).await;
        assert_eq!(world.state().await, State::Ended);
        world.minutes(30).await;
        assert_eq!(
            world.notified().await,
            ["chat", "ana"],
            "nothing is sent meanwhile"
        );
        edit(&world, restore).await;
        assert_eq!(world.state().await, State::Active);
        // Only one of the missed steps runs.
        assert_eq!(world.notified().await, ["chat", "ana", "ben"]);
        world.minutes(5).await;
        assert_eq!(world.notified().await, ["chat", "ana", "ben", "cleo"]);
    }
}

#[tokio::test]
async fn stopped_response_does_not_resume_if_acknowledged_or_closed() {
    for is_closed in [false, true] {
        let world = world(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.review().await;
        edit(&world, |it| it.enabled = false).await;
        if is_closed {
            world
                .event("db-1", |it| it.status = Some(Status::Closed))
                .await;
        } else {
            world.acknowledge(None).await;
        }
        edit(&world, |it| it.enabled = true).await;
        world.minutes(30).await;
        let notified = world.notified().await;
        assert!(!notified.contains(&"ben".to_owned()), "{notified:?}");
        let expected = if is_closed {
            State::Ended
        } else {
            State::Acknowledged
        };
        assert_eq!(world.state().await, expected);
    }
}

#[tokio::test]
async fn response_resumes_when_its_policy_is_recreated() {
    let world = world(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.review().await;
    let stored = world.store.get::<EscalationPolicy>("db".into()).await;
    let stored = stored.unwrap().unwrap();
    let mut changes = world.store.new_changes();
    changes.delete(&stored);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.minutes(10).await;
    assert_eq!(world.notified().await, ["chat", "ana"]);
    let mut changes = world.store.new_changes();
    changes.insert(&stored.value);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.review().await;
    assert_eq!(world.notified().await, ["chat", "ana", "ben"]);
}

#[tokio::test]
async fn response_resumes_when_its_inhibition_ends() {
    let world = world(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
    let query = |text: &str| Query {
        clause: filter::parse(text, None).unwrap().clause,
    };
    let inhibition = Inhibition {
        source: query("name=host-down"),
        target: query("name=disk-full"),
        equal: vec![EqualFields {
            source: "host".into(),
            target: "host".into(),
        }],
        linger_ms: 0,
        ..crate::testing::samples::inhibition("dead host")
    };
    let mut changes = world.store.new_changes();
    changes.insert(&inhibition);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.event("db-1", |_| {}).await;
    world.review().await;
    let cause = async |status| {
        world
            .event("db-1", |it| {
                it.name = "host-down".into();
                it.status = Some(status);
            })
            .await;
    };
    let paged = async || {
        let mut all = samples::all::<Delivery>(&world.store).await;
        all.retain(|it| it.content.occurrence.name == "disk-full" && !it.content.clear);
        all.sort_by_key(|it| it.id);
        let names = all.into_iter().map(|it| it.destination_name);
        names.collect::<Vec<_>>()
    };
    cause(Status::Open).await;
    world.minutes(7).await;
    assert_eq!(paged().await, ["chat", "ana"], "the step is held");
    world.wait(17).await;
    cause(Status::Closed).await;
    world.review().await;
    assert_eq!(paged().await, ["chat", "ana", "ben"], "at once");
}

#[tokio::test]
async fn apply_counts_the_responses_it_stops() {
    use v1::config_document::Resource;

    use crate::config::{Action, Configuration, Document};
    let world = world(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
    for host in ["db-1", "db-2", "db-3"] {
        world.event(host, |_| {}).await;
    }
    world.review().await;
    let configuration = Configuration::new(world.store.clone(), world.clock(), Arc::default());
    for (is_enabled, policy, stopped) in [
        (true, "db", 0),
        (false, "db", 3),
        (true, "", 3),
        (false, "", 3),
    ] {
        let draft = v1::Rule {
            name: "page".into(),
            trigger_names: vec![samples::DISK_TRIGGER.into()],
            destination_names: vec!["chat".into()],
            escalation_policy_name: policy.into(),
            enabled: Some(is_enabled),
            send_updates: Some(true),
            ..v1::Rule::default()
        };
        let document = Document {
            definition: Resource::Rule(draft),
            must_be_new: false,
        };
        let role = crate::domain::Role::Editor;
        let changes = configuration.apply(&[document], ("", role), true).await;
        let changes = changes.unwrap();
        assert!(!matches!(changes[0].action, Action::Created(_)));
        assert_eq!(
            changes[0].stopped_responses, stopped,
            "{is_enabled} {policy}"
        );
    }
}
