//! Tests of triggers over the wire.

use bellwether_proto::v1::{clause::Kind, trigger_type::Type};
use prost_types::Struct;

use super::*;
use crate::domain::{Occurrence, RecordId};

async fn update(world: &World, trigger: v1::Trigger) -> Result<v1::Trigger, Status> {
    let request = v1::UpdateTriggerRequest {
        trigger: Some(trigger),
        ..v1::UpdateTriggerRequest::default()
    };
    let answer = world.triggers().update_trigger(request).await?;
    Ok(answer.into_inner().trigger.unwrap())
}

async fn delete(world: &World, name: &str, etag: &str, force: bool) -> Result<(), Status> {
    let request = v1::DeleteTriggerRequest {
        name: name.into(),
        force,
        etag: etag.into(),
    };
    world.triggers().delete_trigger(request).await.map(drop)
}

#[tokio::test]
async fn trigger_is_created_read_updated_and_deleted() {
    let world = World::start().await;
    let mut draft = trigger("disk-full");
    draft.description = "Disks that run full".into();
    draft.tags = vec!["b".into(), "a".into()];
    let made = world.create_trigger(draft.clone()).await.unwrap();
    assert_eq!(made.tags, ["b", "a"]);
    assert_eq!(made.recent_notification_count, Some(0));
    assert!(made.create_time.is_some() && made.update_time.is_some());
    assert_eq!(world.get_trigger("disk-full").await.unwrap(), made);

    // Omitted fields are cleared; output-only fields are ignored.
    let mut edit = trigger("disk-full");
    edit.r#type = Some(event_type(Some(contains("summary", "tape"))));
    edit.rule_names = vec!["not-mine".into()];
    edit.recent_notification_count = Some(7);
    edit.create_time = None;
    let edited = update(&world, edit.clone()).await.unwrap();
    assert_eq!(edited.r#type, edit.r#type);
    assert_eq!(edited.description, "");
    assert!(edited.tags.is_empty() && edited.rule_names.is_empty());
    assert_eq!(edited.recent_notification_count, Some(0));
    assert_eq!(edited.create_time, made.create_time);
    assert_ne!(edited.etag, made.etag);

    delete(&world, "disk-full", "", false).await.unwrap();
    assert_eq!(code(world.get_trigger("disk-full").await), Code::NotFound);
    assert_eq!(code(update(&world, draft).await), Code::NotFound);
    assert_eq!(
        code(delete(&world, "disk-full", "", true).await),
        Code::NotFound
    );
}

#[tokio::test]
async fn names_are_validated_and_unique() {
    let world = World::start().await;
    let longest = "x".repeat(100);
    for name in ["a", "Datenträger 1", "a.b_c-d", "磁盘", longest.as_str()] {
        let made = world.create_trigger(trigger(name)).await.unwrap();
        assert_eq!(made.name, name);
        let again = world.create_trigger(trigger(name)).await;
        assert_eq!(code(again), Code::AlreadyExists);
    }
    let too_long = "x".repeat(101);
    for name in ["", " a", "a ", "a/b", "a\n", "a?", too_long.as_str()] {
        let refused = world.create_trigger(trigger(name)).await;
        assert_eq!(fields(refused), ["name"], "{name:?}");
    }
}

#[tokio::test]
async fn every_invalid_field_is_listed() {
    let world = World::start().await;
    let severity = v1::GreaterAndEquals {
        field: "severity".into(),
        value: Some("terrible".into()),
    };
    let clauses = vec![
        v1::Clause { kind: None },
        clause(Kind::GreaterAndEquals(severity)),
        clause(Kind::Or(v1::Or { clauses: vec![] })),
        contains("", "disk"),
    ];
    let mut draft = trigger("a/b");
    draft.description = "x".repeat(1_001);
    draft.tags = vec!["ok".into(), String::new(), "x".repeat(101)];
    draft.r#type = Some(event_type(Some(clause(Kind::And(v1::And { clauses })))));
    let named = fields(world.create_trigger(draft).await);
    for field in ["name", "description", "tags[1]", "tags[2]"] {
        assert!(
            named.iter().any(|named| named == field),
            "{field}: {named:?}"
        );
    }
    for at in 0..4 {
        let path = format!("type.event.query.clause.and.clauses[{at}]");
        let is_named = named.iter().any(|named| named.starts_with(&path));
        assert!(is_named, "{path}: {named:?}");
    }
    let empty = world.create_trigger(v1::Trigger::default()).await;
    assert_eq!(fields(empty), ["type", "name"]);
    let mut many = trigger("a");
    many.tags = vec!["t".into(); 21];
    assert_eq!(fields(world.create_trigger(many).await), ["tags"]);
}

#[tokio::test]
async fn unsupported_trigger_types_are_refused_by_name() {
    let world = World::start().await;
    let cases = [
        (Type::MetricThreshold(Struct::default()), "metricThreshold"),
        (Type::Anomaly(Struct::default()), "anomaly"),
    ];
    for (kind, word) in cases {
        let mut draft = trigger("a");
        draft.r#type = Some(v1::TriggerType { r#type: Some(kind) });
        let status = world.create_trigger(draft).await.unwrap_err();
        let sentence =
            format!("this service ingests events; trigger type `{word}` is not supported");
        assert!(status.message().contains(&sentence), "{status:?}");
        assert_eq!(fields::<()>(Err(status)), [format!("type.{word}")]);
    }
}

#[tokio::test]
async fn change_with_a_stale_etag_is_aborted() {
    let world = World::start().await;
    let first = world.create_trigger(trigger("a")).await.unwrap();
    let mut edit = trigger("a");
    edit.etag.clone_from(&first.etag);
    let second = update(&world, edit.clone()).await.unwrap();
    edit.description = "late".into();
    assert_eq!(code(update(&world, edit).await), Code::Aborted);
    assert_eq!(
        code(delete(&world, "a", &first.etag, true).await),
        Code::Aborted
    );
    assert_eq!(world.get_trigger("a").await.unwrap(), second);
    // The etag of a deleted trigger is not valid for a new one of the same name.
    delete(&world, "a", &second.etag, false).await.unwrap();
    world.create_trigger(trigger("a")).await.unwrap();
    assert_eq!(
        code(delete(&world, "a", &first.etag, false).await),
        Code::Aborted
    );
}

#[tokio::test]
async fn validate_only_checks_without_changing() {
    let world = World::start().await;
    let tried = v1::CreateTriggerRequest {
        trigger: Some(trigger("a")),
        validate_only: true,
        ..v1::CreateTriggerRequest::default()
    };
    let answer = inner(
        world
            .triggers()
            .create_trigger(tried.clone())
            .await
            .unwrap(),
    );
    assert_eq!(answer.trigger.unwrap().name, "a");
    assert_eq!(code(world.get_trigger("a").await), Code::NotFound);
    let made = world.create_trigger(trigger("a")).await.unwrap();
    let again = world.triggers().create_trigger(tried).await;
    assert_eq!(code(again), Code::AlreadyExists);
    let mut edit = trigger("a");
    edit.description = "tried".into();
    let tried = v1::UpdateTriggerRequest {
        trigger: Some(edit),
        validate_only: true,
        ..v1::UpdateTriggerRequest::default()
    };
    let answer = inner(world.triggers().update_trigger(tried).await.unwrap());
    assert_eq!(answer.trigger.unwrap().description, "tried");
    assert_eq!(world.get_trigger("a").await.unwrap(), made);
}

#[tokio::test]
async fn trigger_in_use_is_deleted_only_by_force() {
    let world = World::start().await;
    for name in ["used", "other"] {
        world.create_trigger(trigger(name)).await.unwrap();
    }
    world.create_rule(rule("r1", &["used"], &[])).await.unwrap();
    let before = world.create_rule(rule("r2", &["other", "used"], &[])).await;
    world
        .create_rule(rule("r3", &["other"], &[]))
        .await
        .unwrap();
    assert_eq!(
        world.get_trigger("used").await.unwrap().rule_names,
        ["r1", "r2"]
    );

    let status = delete(&world, "used", "", false).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("`r1`, `r2`"), "{status:?}");
    assert!(!status.message().contains("r3"));

    delete(&world, "used", "", true).await.unwrap();
    let after = world.get_rule("r2").await.unwrap();
    assert_eq!(after.trigger_names, ["other"]);
    assert_ne!(after.etag, before.unwrap().etag);
    assert!(world.get_rule("r1").await.unwrap().trigger_names.is_empty());
}

#[tokio::test]
async fn draft_is_tested_against_stored_events_and_trigger() {
    let world = World::start().await;
    world.create_trigger(trigger("saved")).await.unwrap();
    let occurrence = Occurrence {
        summary: "disk is full".into(),
        ..samples::occurrence()
    };
    let mut changes = world.store.new_changes();
    changes.insert(&occurrence);
    world
        .store
        .apply(crate::store::Lane::Bulk, changes)
        .await
        .unwrap();

    let test = async |name: &str, text: &str| {
        let request = v1::TestTriggerRequest {
            name: name.into(),
            r#type: Some(event_type(Some(contains("summary", text)))),
            time_range: Some(v1::TimeRange {
                start: Some(0),
                end: None,
            }),
            ..v1::TestTriggerRequest::default()
        };
        inner(world.triggers().test_trigger(request).await.unwrap())
    };
    let hit = test("saved", "full").await;
    assert_eq!(
        (hit.matched, hit.matched_by_saved, hit.scanned),
        (Some(1), Some(1), Some(1))
    );
    assert_eq!(
        hit.occurrences[0].occurrences[0].id,
        occurrence.id().to_string()
    );
    let miss = test("unsaved", "tape").await;
    assert_eq!((miss.matched, miss.matched_by_saved), (Some(0), None));

    let wrong = v1::TestTriggerRequest::default();
    assert_eq!(fields(world.triggers().test_trigger(wrong).await), ["type"]);
}

/// Stores occurrences at intervals of `step_ms` up to now; every second one is about a disk.
async fn store_occurrences(world: &World, count: u32, step_ms: i64) {
    let mut changes = world.store.new_changes();
    for number in 0..count {
        let at_ms = samples::START_MS - i64::from(number) * step_ms;
        let summary = ["the disk is full", "the cpu is hot"][number as usize % 2];
        changes.insert(&Occurrence {
            key: RecordId::from_parts(1, u128::from(number)),
            number: number + 1,
            summary: summary.into(),
            start_ms: at_ms,
            last_seen_ms: at_ms,
            ..samples::occurrence()
        });
    }
    let lane = crate::store::Lane::Bulk;
    world.store.apply(lane, changes).await.unwrap();
}

fn trial(start: Option<i64>, end: Option<i64>) -> v1::TestTriggerRequest {
    v1::TestTriggerRequest {
        r#type: Some(event_type(Some(contains("summary", "disk")))),
        time_range: Some(v1::TimeRange { start, end }),
        ..v1::TestTriggerRequest::default()
    }
}

#[tokio::test]
async fn trigger_test_scans_only_its_time_range() {
    const HOUR_MS: i64 = 3_600_000;
    let world = World::start().await;
    store_occurrences(&world, 100, HOUR_MS).await;
    let now = samples::START_MS;
    let cases = [
        ("the last 24 h", None, None, 25),
        ("up to a moment", None, Some(now - 48 * HOUR_MS), 51),
        ("from a moment", Some(now - 2 * HOUR_MS), None, 3),
        (
            "a span",
            Some(now - 4 * HOUR_MS),
            Some(now - 2 * HOUR_MS),
            2,
        ),
        (
            "an empty span",
            Some(now - HOUR_MS / 2),
            Some(now - HOUR_MS / 2),
            0,
        ),
        ("the future", Some(now + 1), None, 0),
        ("before 1970", None, Some(-1), 0),
        ("everything", Some(i64::MIN), Some(i64::MAX), 100),
    ];
    for (case, start, end, scanned) in cases {
        let answer = world.triggers().test_trigger(trial(start, end)).await;
        let test = inner(answer.unwrap());
        assert_eq!(test.scanned, Some(scanned), "{case}");
        assert!(!test.stopped_early, "{case}");
        assert!(test.matched.unwrap() * 2 - scanned <= 1, "{case}");
        let span = test.time_range.unwrap();
        if start.is_some() || end.is_some() {
            assert_eq!((span.start, span.end), (start, end), "{case}");
        }
    }
    let backwards = world.triggers().test_trigger(trial(Some(2), Some(1))).await;
    assert_eq!(fields(backwards), ["timeRange"]);
    let backwards = world
        .triggers()
        .test_trigger_with_progress(trial(Some(2), Some(1)))
        .await;
    assert_eq!(backwards.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn long_test_reports_progress_and_ends_with_result() {
    let world = World::start().await;
    store_occurrences(&world, 5_000, 1_000).await;
    let answer = world
        .triggers()
        .test_trigger_with_progress(trial(Some(0), None))
        .await;
    let mut replies = inner(answer.unwrap());
    let first = replies.message().await.unwrap().unwrap();
    assert_eq!((first.scanned, first.reached_time), (Some(0), None));
    let mut last = first;
    let mut reached_ms = i64::MAX;
    while let Some(next) = replies.message().await.unwrap() {
        assert!(last.result.is_none(), "the result comes last");
        assert!(next.scanned >= last.scanned);
        assert!(next.reached_time.unwrap() <= reached_ms);
        reached_ms = next.reached_time.unwrap();
        last = next;
    }
    let result = last.result.unwrap();
    assert_eq!((result.scanned, result.matched), (Some(5_000), Some(2_500)));
    assert_eq!(result.occurrences.len(), 100);
    let unary = world.triggers().test_trigger(trial(Some(0), None)).await;
    assert_eq!(inner(unary.unwrap()), result);
}
