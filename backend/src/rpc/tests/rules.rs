//! Tests of rules over the wire.

use super::*;

async fn update(world: &World, rule: v1::Rule) -> Result<v1::Rule, Status> {
    let request = v1::UpdateRuleRequest {
        rule: Some(rule),
        ..v1::UpdateRuleRequest::default()
    };
    let answer = world.rules().update_rule(request).await?;
    Ok(answer.into_inner().rule.unwrap())
}

async fn delete_trigger(world: &World, name: &str, force: bool) -> Result<(), Status> {
    let request = v1::DeleteTriggerRequest {
        name: name.into(),
        force,
        ..v1::DeleteTriggerRequest::default()
    };
    world.triggers().delete_trigger(request).await.map(drop)
}

async fn world() -> World {
    let world = World::start().await;
    for name in ["t1", "t2"] {
        world.create_trigger(trigger(name)).await.unwrap();
        let name = name.replace('t', "d");
        world.create_destination(destination(&name)).await.unwrap();
    }
    world
}

#[tokio::test]
async fn rule_returns_false_and_default_values() {
    let world = world().await;
    let made = world
        .create_rule(rule("r", &["t2", "t1", "t2"], &["d1"]))
        .await;
    let made = made.unwrap();
    assert_eq!(made.trigger_names, ["t2", "t1"]);
    assert_eq!(made.enabled, Some(false));
    assert_eq!(made.repeat, Some(false));
    assert_eq!(made.repeat_interval, Some(3600));
    assert_eq!(made.send_updates, Some(false));
    assert_eq!(made.recent_notification_count, Some(0));
    assert_eq!(made.last_notification_time, None);
    let mut edit = rule("r", &[], &[]);
    edit.enabled = Some(true);
    edit.repeat_interval = Some(0);
    let edited = update(&world, edit).await.unwrap();
    assert_eq!(edited.repeat_interval, Some(0));
    assert!(edited.trigger_names.is_empty() && edited.destination_names.is_empty());
    assert_eq!(world.get_rule("r").await.unwrap(), edited);
    let request = v1::DeleteRuleRequest {
        name: "r".into(),
        force: true,
        ..v1::DeleteRuleRequest::default()
    };
    world.rules().delete_rule(request).await.unwrap();
    assert_eq!(code(world.get_rule("r").await), Code::NotFound);
}

#[tokio::test]
async fn unknown_names_are_listed_with_other_violations() {
    let world = world().await;
    let mut draft = rule("", &["t1", "no", "not/a name"], &["gone", "d1"]);
    draft.message = "{{#open}}".into();
    draft.repeat_interval = Some(-1);
    let named = fields(world.create_rule(draft).await);
    let expected = [
        "name",
        "message",
        "repeatInterval",
        "triggerNames[1]",
        "triggerNames[2]",
        "destinationNames[0]",
    ];
    assert_eq!(named, expected);
    let mut long = rule("r", &[], &[]);
    long.repeat_interval = Some(31_536_001);
    assert_eq!(fields(world.create_rule(long).await), ["repeatInterval"]);
    let many = rule("r", &["t1"; 101], &[]);
    assert_eq!(fields(world.create_rule(many).await), ["triggerNames"]);
}

#[tokio::test]
async fn template_parse_error_reports_line_and_column() {
    let world = world().await;
    let mut draft = rule("r", &[], &[]);
    draft.message = "one\ntwo {{/closed}}".into();
    let status = world.create_rule(draft).await.unwrap_err();
    assert!(status.message().contains("line 2, column"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_created_during_trigger_deletion_has_no_dangling_reference() {
    let world = World::start().await;
    for round in 0..40 {
        let (name, force) = (format!("t{round}"), round % 2 == 0);
        world.create_trigger(trigger(&name)).await.unwrap();
        let rule_name = format!("r{round}");
        let (made, deleted) = tokio::join!(
            world.create_rule(rule(&rule_name, &[&name], &[])),
            delete_trigger(&world, &name, force),
        );
        let is_there = world.get_trigger(&name).await.is_ok();
        assert_eq!(is_there, deleted.is_err(), "round {round}");
        if made.is_ok() {
            let stored = world.get_rule(&rule_name).await.unwrap();
            let expected: &[&str] = if is_there { &[&name] } else { &[] };
            assert_eq!(stored.trigger_names, expected, "round {round}");
        }
    }
}

#[tokio::test]
async fn preview_renders_each_destination_without_storing() {
    let world = world().await;
    let slack = v1::Slack {
        channel: "#ops".into(),
        token: "xoxb-canary".into(),
        ..v1::Slack::default()
    };
    let slack = destination_of("chat", v1::destination_type::Type::Slack(slack));
    world.create_destination(slack).await.unwrap();
    let request = v1::PreviewRuleRequest {
        name: "draft".into(),
        trigger_names: vec!["t1".into()],
        destination_names: vec!["d1".into(), "chat".into()],
        message: "{{event.summary}} {{rule.name}} {{nonsense}}".into(),
        ..v1::PreviewRuleRequest::default()
    };
    let answer = inner(world.rules().preview_rule(request).await.unwrap());
    let names: Vec<_> = answer
        .previews
        .iter()
        .map(|p| &p.destination_name)
        .collect();
    assert_eq!(names, ["d1", "chat"]);
    assert!(answer.warnings[0].contains("nonsense"));
    for preview in &answer.previews {
        let shown = format!("{:?}", preview.rendered);
        assert!(
            shown.contains("Sample: disk") && shown.contains("draft"),
            "{shown}"
        );
        assert!(!shown.contains("canary"));
        assert!(preview.size_bytes > Some(0));
    }
    assert_eq!(code(world.get_rule("draft").await), Code::NotFound);

    let wrong = v1::PreviewRuleRequest {
        destination_names: vec!["gone".into()],
        event_id: "x".into(),
        ..v1::PreviewRuleRequest::default()
    };
    let refused = world.rules().preview_rule(wrong).await;
    assert_eq!(fields(refused), ["destinationNames[0]", "eventId"]);
}
