//! The receivers of the latest step with the state of their messages, and those of the next step.

use super::*;

/// Returns the name of each receiver: its contact, or the destination without one.
fn names(receivers: &[v1::ResponseReceiver]) -> Vec<String> {
    let name = |it: &v1::ResponseReceiver| match it.contact_name.as_str() {
        "" => it.destination_name.clone(),
        contact => contact.to_owned(),
    };
    receivers.iter().map(name).collect()
}

#[tokio::test]
async fn current_receivers_are_those_of_the_latest_step() {
    let steps = [&[contact("ana"), contact("ben")][..], &[contact("cleo")]];
    let world = world(&steps, |_| {}).await;
    world.event("db-1", |_| {}).await;
    let response = world.response().await;
    assert_eq!(names(&response.current), ["ana", "ben"]);
    assert_eq!(names(&response.next), ["cleo"]);
    assert_eq!(response.next[0].time, response.next_step_time);
    assert!(!response.unanswered_next);
    assert_eq!(response.dimensions["host"], "db-1");
    world.minutes(5).await;
    let response = world.response().await;
    assert_eq!(names(&response.current), ["cleo"]);
    assert_eq!(response.notified.len(), 3);
}

#[tokio::test]
async fn current_receivers_show_the_failure_of_a_page() {
    let both = [contact("ana"), contact("ben")];
    let world = world(&[&both[..], &[contact("cleo")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.kill_deliveries("ana").await;
    let response = world.response().await;
    let state = |called: &str| {
        let mut current = response.current.iter();
        let found = current.find(|it| it.contact_name == called).unwrap();
        (found.delivery_state(), found.next_attempt_time.is_some())
    };
    assert_eq!(state("ana"), (v1::delivery::State::Dead, false));
    assert_eq!(state("ben"), (v1::delivery::State::Pending, true));
}

#[tokio::test]
async fn next_receivers_are_on_call_when_the_step_runs() {
    // The clock starts on 15 January 2027 at 08:00.
    let world = world(&[&[contact("cleo")]], |_| {}).await;
    let turns = ("2027-01-14T08:03:00", "FREQ=DAILY");
    world.schedule("nights", turns, &["ana", "ben"]).await;
    let steps = [&[contact("cleo")][..], &[schedule("nights")]];
    world
        .edit_policy(|it| it.steps = policy(&steps).steps)
        .await;
    world.event("db-1", |_| {}).await;
    // Ana is on call now, and Ben when the step runs.
    let response = world.response().await;
    assert_eq!(names(&response.next), ["ben"]);
    assert_eq!(response.next[0].schedule_name, "nights");
    world.minutes(5).await;
    assert_eq!(names(&world.response().await.current), ["ben"]);
}

#[tokio::test]
async fn fallback_is_the_next_receiver_after_all_rounds() {
    for fallback in ["chat", ""] {
        let world = world(&[&[contact("ana")]], |it| {
            it.fallback_destination_name = fallback.into();
        })
        .await;
        world.event("db-1", |_| {}).await;
        let response = world.response().await;
        assert_eq!(names(&response.next).concat(), fallback);
        assert!(response.unanswered_next);
        world.minutes(5).await;
        let response = world.response().await;
        assert!(response.next.is_empty() && !response.unanswered_next);
        let current = if fallback.is_empty() { "ana" } else { fallback };
        assert_eq!(names(&response.current), [current]);
    }
}

#[tokio::test]
async fn acknowledged_response_has_no_next_receivers() {
    let world = world(&[&[contact("ana")][..], &[contact("ben")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    assert_eq!(names(&world.response().await.next), ["ben"]);
    world.acknowledge(None).await;
    assert!(world.response().await.next.is_empty());
}
