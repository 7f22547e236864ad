//! Edits of silences, rules and triggers while notifications are held, and changes by operators.

use super::*;

#[tokio::test]
async fn pending_notification_is_skipped_when_its_trigger_no_longer_matches() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    let key = DISK_TRIGGER.as_bytes().to_vec();
    let stored = world.store.get::<Trigger>(key).await.unwrap().unwrap();
    let edited = Trigger {
        query: samples::trigger("nothing").query,
        revision: 2,
        ..stored.value.clone()
    };
    let mut changes = world.store.new_changes();
    changes.update(&stored, &edited);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.wait(1).await;
    assert!(world.occurrence("a").await.pending.is_empty());
    let why = world.explained("a").await.skipped_reason.unwrap();
    assert!(why.starts_with("no longer matched"), "{why}");
    world.wait(7_200).await;
    assert!(world.sent().await.is_empty());
}

#[tokio::test]
async fn disabled_rule_skips_pending_notifications_until_its_next_match() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    let disabled = Rule {
        enabled: false,
        revision: 2,
        ..page()
    };
    samples::save_rule(&world.store, &disabled).await;
    world.wait(1).await;
    let why = world.explained("a").await.skipped_reason.unwrap();
    assert!(why.starts_with("the rule was disabled"), "{why}");
    samples::save_rule(&world.store, &page()).await;
    world.wait(7_200).await;
    assert!(world.sent().await.is_empty());
    world.event("a", |_| {}).await;
    assert_eq!(world.sent().await, [about("a", false)]);
}

#[tokio::test]
async fn silence_for_some_rules_follows_their_edits() {
    let other = rule("other", &["everything"], &["mail"]);
    let world = World::under(&[page(), other]).await;
    for (called, query) in [("quiet", ""), ("hosts", "host=a or host=z")] {
        let mut draft = world.draft(called, query, 60);
        draft.rule_names = vec!["page".into()];
        world.create(draft).await;
    }
    world.wait(1).await;
    world.event("a", |_| {}).await;
    world.event("b", severity(Severity::Info)).await;
    let names: Vec<_> = samples::all::<Delivery>(&world.store).await;
    assert!(names.iter().all(|it| it.content.rule.name == "other"));
    let view = world.view("quiet").await;
    assert_eq!(
        (view.covered, view.pending),
        (1, 1),
        "`page` does not match b"
    );
    let rules = crate::rule::Rules::new(world.store.clone(), world.clock.clone());
    rules.delete("page", "", false).await.unwrap();
    world.wait(1).await;
    for called in ["quiet", "hosts"] {
        let view = world.view(called).await;
        let state = view.state;
        assert_eq!(
            state,
            SilenceState::Expired,
            "{called}: it was only for this rule"
        );
    }
    let why = world.explained("a").await;
    assert!(world.occurrence("a").await.pending.is_empty(), "{why:?}");
}

#[tokio::test]
async fn operator_releases_a_pending_notification() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    let deciding = (&world.node().deciding, &world.node().intake);
    let target = OccurrenceTarget::Newest(world.occurrence("a").await.event);
    let none = pending::release_pending(deciding, "other", target).await;
    assert!(matches!(none, Err(Error::NotFound(_))));
    let sent = pending::release_pending(deciding, "page", target)
        .await
        .unwrap();
    assert_eq!(sent.len(), 1);
    assert_eq!(world.sent().await, [about("a", false)]);
    let again = pending::release_pending(deciding, "page", target).await;
    assert!(matches!(again, Err(Error::NotFound(_))));
    let steps = world.explained("a").await.hold_changes;
    assert!(crate::explain::describe(&steps[1]).starts_with("sent by an operator"));
    world.wait(7_200).await;
    assert_eq!(world.sent().await.len(), 1);
}

#[tokio::test]
async fn too_broad_silence_is_refused_until_confirmed() {
    let world = World::under(&[page()]).await;
    for at in 0..20 {
        world.event(&format!("h{at}"), |_| {}).await;
    }
    for (text, counts) in [
        (
            "name=disk-full",
            "covers 20 of 20 open events, more than half",
        ),
        (
            "-host=x",
            "also matches events without any fields; it covers 20 of 20",
        ),
    ] {
        let draft = world.draft("quiet", text, 60);
        let refused = world
            .node()
            .silences
            .create(draft.clone(), false, false)
            .await;
        let Err(Error::Refused { reason, message }) = refused else {
            panic!("{text} is too broad")
        };
        assert_eq!(reason, Reason::SilenceTooBroad);
        assert!(message.contains(counts), "{message}");
        let preview = world.node().silences.preview(draft).await.unwrap();
        assert_eq!((preview.covered_count, preview.open_count), (20, 20));
        assert!(preview.too_broad.is_some());
    }
    assert!(samples::all::<Silence>(&world.store).await.is_empty());
    let preview = world
        .node()
        .silences
        .preview(world.draft("", "host=h3", 60))
        .await
        .unwrap();
    let count = preview.messages.message_count;
    assert_eq!((preview.covered_count, count), (1, Some(1)));
    assert_eq!(preview.messages.by_rule[0].rule_name, "page");
    assert!(preview.too_broad.is_none());
    let draft = world.draft("quiet", "name=disk-full", 60);
    world
        .node()
        .silences
        .create(draft, false, true)
        .await
        .unwrap();
}

#[tokio::test]
async fn started_and_ended_silences_restrict_edits() {
    let world = World::under(&[]).await;
    world.silence("quiet", "host=a", 60).await;
    world.wait(60).await;
    let ana = name("Ana");
    let field = |outcome: Result<SilenceView, Error>| match outcome {
        Err(Error::Invalid(violations)) => violations[0].field.clone(),
        other => panic!("{other:?}"),
    };
    let mut draft = world.draft("quiet", "host=a", 60);
    draft.start_ms = Some(START_MS + 1);
    assert_eq!(
        field(world.node().silences.update(draft, false, false).await),
        "span.startTime"
    );
    let draft = world.draft("other", "host=a", 31 * 24 * 60);
    assert_eq!(
        field(world.node().silences.create(draft, false, false).await),
        "span.endTime"
    );
    let draft = world.draft("other", "", 60);
    assert_eq!(
        field(world.node().silences.create(draft, false, false).await),
        "query"
    );
    let back = Extension::To(START_MS);
    assert_eq!(
        field(world.node().silences.extend("quiet", back, &ana).await),
        "endTime"
    );
    let extended = world
        .node()
        .silences
        .extend("quiet", Extension::By(MINUTE_MS), &ana)
        .await;
    assert_eq!(extended.unwrap().silence.end_ms, START_MS + 61 * MINUTE_MS);
    world
        .node()
        .silences
        .comment("quiet", "half of it", &ana)
        .await
        .unwrap();
    let draft = world.draft("quiet", "host=a", -1);
    let ended = world.update(draft).await;
    assert_eq!(ended.state, SilenceState::Expired);
    assert_eq!(ended.silence.comments.len(), 1);
    for outcome in [
        world.node().silences.expire("quiet", &ana).await,
        world
            .node()
            .silences
            .extend("quiet", Extension::By(1), &ana)
            .await,
        world
            .node()
            .silences
            .update(world.draft("quiet", "host=a", 9), false, false)
            .await,
    ] {
        let reason = Reason::SilenceExpired;
        assert!(matches!(outcome, Err(Error::Refused { reason: it, .. }) if it == reason));
    }
    // An ended silence is deleted after the retention time, as a closed occurrence is.
    world.wait(31 * 24 * 3_600).await;
    lifecycle::delete_expired(&world.node().deciding)
        .await
        .unwrap();
    assert!(samples::all::<Silence>(&world.store).await.is_empty());
}

#[tokio::test]
async fn edit_reevaluates_two_thousand_pending_notifications() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "name=disk-full", 60).await;
    for part in 0..20 {
        let hosts = (0..100).map(|at| samples::event(&format!("h{part}-{at}")));
        world
            .node()
            .intake
            .submit(hosts.collect(), None)
            .await
            .unwrap();
    }
    let filter = pending::Filter::default();
    let page = crate::page::PageRequest {
        size: 300,
        token: String::new(),
    };
    let (first, token) = pending::list_pending(&world.node().deciding, &filter, &page)
        .await
        .unwrap();
    assert_eq!((first.len(), token.is_empty()), (300, false));
    let draft = world.draft("quiet", "host=h3-7", 60);
    world.update(draft).await;
    world.review().await;
    assert_eq!(world.sent().await.len(), 1_999);
    let (left, token) = pending::list_pending(&world.node().deciding, &filter, &page)
        .await
        .unwrap();
    assert_eq!((left.len(), token.is_empty()), (1, true));
    let pending::HeldMessage::Decision { destinations, .. } = &left[0] else {
        panic!("{left:?}");
    };
    assert_eq!(*destinations, [name("hook")]);
}

#[tokio::test]
async fn notify_open_waits_under_a_silence_and_keeps_pending_notifications() {
    use crate::notify_open::{OpenNotifier, StoredDefinition};
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    let late = rule("late", &[DISK_TRIGGER], &["mail"]);
    samples::save_rule(&world.store, &late).await;
    let opens = OpenNotifier::new(world.node().deciding.clone(), world.node().intake.clone());
    assert_eq!(
        opens
            .notify_all(&StoredDefinition::Rule(late))
            .await
            .unwrap(),
        0
    );
    let waits = world.occurrence("a").await.pending;
    let names: Vec<_> = waits.iter().map(|it| it.rule_name.as_str()).collect();
    assert_eq!(names, ["late", "page"]);
    world.wait(3_600).await;
    assert_eq!(world.sent().await.len(), 2);
}

#[tokio::test]
async fn covered_count_is_current_after_every_edit() {
    let world = World::under(&[page()]).await;
    for host in ["a", "b", "c"] {
        world.event(host, |_| {}).await;
    }
    let silences = &world.node().silences;
    let draft = |text: &str| world.draft("quiet", text, 60);
    let tried = silences.create(draft("host=a"), true, true).await.unwrap();
    assert_eq!(tried.covered, 1, "it is a dry run");
    assert_eq!(world.create(draft("host=a or host=b")).await.covered, 2);
    assert_eq!(world.view("quiet").await.covered, 2);
    let page = crate::page::PageRequest::default();
    let listed = silences
        .list(&SilenceFilter::default(), &page)
        .await
        .unwrap();
    assert_eq!(listed.items[0].covered, 2);
    // The count is correct after every edit, before and after the review.
    for (text, covered) in [("host=c", 1), ("host=z", 0), ("has:host", 3)] {
        let draft = world.draft("quiet", text, 60);
        let edited = silences.update(draft, false, true).await.unwrap();
        assert_eq!(edited.covered, covered, "{text}");
        assert_eq!(world.view("quiet").await.covered, covered, "{text}");
        world.review().await;
        assert_eq!(world.view("quiet").await.covered, covered, "{text}");
    }
    let extended = silences
        .extend("quiet", Extension::By(60_000), &name("Ana"))
        .await;
    assert_eq!(extended.unwrap().covered, 3);
    let ended = silences.expire("quiet", &name("Ana")).await.unwrap();
    assert_eq!(ended.covered, 0, "it no longer holds anything");
    let mut later = world.draft("later", "host=a", 60);
    later.start_ms = Some(START_MS + 10 * MINUTE_MS);
    later.end_ms = Some(START_MS + 20 * MINUTE_MS);
    assert_eq!(world.create(later).await.covered, 0, "it has not begun");
}
