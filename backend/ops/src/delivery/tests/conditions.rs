//! Tests of conditions on deliveries.

use super::*;

async fn find_ids(world: &World, text: &str) -> Vec<i64> {
    let (condition, _) = world.part.condition("filter", text).await.unwrap();
    world
        .list(&Filter::default().with_condition(condition), 7)
        .await
}

async fn rejection_of(world: &World, text: &str) -> String {
    match world.part.condition("filter", text).await {
        Err(Error::Invalid(violations)) => {
            assert!(violations.iter().all(|it| it.field == "filter"));
            let all = violations.into_iter().map(|it| it.description);
            all.collect::<Vec<_>>().join("; ")
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[tokio::test]
async fn filter_text_matches_across_pages() {
    let world = World::new();
    world.save_destination("mail").await;
    world.save_destination("chat").await;
    world.save_sixty().await;
    world.clock.advance(Duration::from_secs(60));
    let cases: [(&str, Passes); 20] = [
        ("", |_| true),
        ("state=dead", |it| it % 4 == 0),
        ("state=DEAD", |it| it % 4 == 0),
        ("-state=dead", |it| it % 4 != 0),
        ("state in (dead, delivered)", |_| true),
        ("state=waiting", |_| false),
        ("destination=mail", |it| it % 3 == 0),
        ("destination=Mail", |it| it % 3 == 0),
        ("destination=gone", |it| it % 3 == 2),
        ("destination=*a* rule=disk", |it| it % 3 != 2 && it % 2 == 0),
        ("rule=disk or destination=chat", |it| {
            it % 2 == 0 || it % 3 == 1
        }),
        ("rule=cpu rule=disk", |_| false),
        ("rule=disk state=dead destination=gone", |it| {
            it % 4 == 0 && it % 3 == 2
        }),
        ("error=*broke* attempts>=1", |_| true),
        ("attempts>1", |_| false),
        ("has:digest or test=true", |_| false),
        ("clear=false", |_| true),
        ("severity>=debug", |_| true),
        ("since=1m state=dead", |it| it % 4 == 0),
        ("until=1m", |_| false),
    ];
    for (text, passes) in cases {
        let wanted: Vec<i64> = (0..60).rev().filter(|it| passes(*it)).collect();
        assert_eq!(find_ids(&world, text).await, wanted, "{text}");
    }
    let from = |number: i64| {
        let moment = jiff::Timestamp::from_millisecond(samples::START_MS + number);
        format!("since={}", moment.unwrap())
    };
    assert_eq!(find_ids(&world, &from(57)).await, [59, 58, 57]);
    let event = sample::sample_occurrence(0).event;
    assert_eq!(
        find_ids(&world, &format!("event=\"{event}\"")).await.len(),
        60
    );
}

#[tokio::test]
async fn unknown_field_causes_a_hint_not_an_error() {
    let world = World::new();
    world.save_sixty().await;
    for (text, wanted) in [
        (
            "rule=disk stat=dead",
            "at character 11: none of the newest 20000 events has a field `stat`: `state`?",
        ),
        (
            "alertname=disk",
            "at character 1: none of the newest 20000 events has a field `alertname`; use `name`",
        ),
    ] {
        let (condition, hints) = world.part.condition("filter", text).await.unwrap();
        assert_eq!(hints, [wanted]);
        assert!(
            world
                .list(&Filter::default().with_condition(condition), 7)
                .await
                .is_empty()
        );
    }
    assert!(
        world
            .part
            .condition("filter", "state=dead")
            .await
            .unwrap()
            .1
            .is_empty()
    );
}

#[tokio::test]
async fn filter_errors_report_their_position() {
    let world = World::new();
    world.save_sixty().await;
    for (text, wanted) in [
        ("state=", "at character 7: a value is missing"),
        (
            "rule=disk state=ded",
            "at character 11: `ded` is not a state; expected one of waiting, pending",
        ),
        (
            "state=dead or since=2h",
            "at character 15: `since=` and `until=` compare the time",
        ),
        ("severity=loud", "at character 1: "),
        (
            "rule=disk since=1h until=2h",
            "at character 1: `since` must be earlier than `until`",
        ),
        (
            "rule=disk event=x",
            "at character 11: `x` is not an event id",
        ),
        ("digest=x", "at character 1: `x` is not a delivery id"),
        ("error~\"(\"", "at character 1: "),
    ] {
        let said = rejection_of(&world, text).await;
        assert!(said.starts_with(wanted), "{text}: {said}");
    }
    let many = "a=1 ".repeat(501);
    let said = rejection_of(&world, &many).await;
    assert!(said.contains("more than 500 conditions"), "{said}");
}
