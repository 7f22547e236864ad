//! Tests of setting status, acknowledgement and assignee.

use super::*;
use crate::{
    client::{ClientDraft, Clients},
    domain::{Delivery, EventId, Field, IncomingEvent, Rule, Severity},
    samples::{self, DISK_TRIGGER, event, name, rule},
};

fn item(
    target: OccurrenceTarget,
    status: Option<Status>,
    acknowledged: Option<bool>,
) -> StatusItem {
    StatusItem {
        target,
        change: StateChange {
            status,
            acknowledged,
            ..StateChange::default()
        },
    }
}

/// Returns a store with a rule that sends updates.
async fn paging() -> Store {
    let store = Store::in_memory();
    let with_updates = Rule {
        send_updates: true,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    };
    samples::save_rule(&store, &with_updates).await;
    store
}

#[tokio::test]
async fn items_apply_in_order_and_unknown_ones_fail_separately() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let known = OccurrenceTarget::Newest(event("a").id());
    let unknown = OccurrenceTarget::Newest(EventId::from_bytes([9; 20]));
    let first = OccurrenceTarget::Exactly(OccurrenceId {
        event: event("a").id(),
        number: 1,
    });
    let items = [
        item(known, Some(Status::Closed), None),
        item(unknown, Some(Status::Closed), None),
        item(first, Some(Status::Suppressed), Some(true)),
    ];
    let answers = set_status((&deciding, &intake), &items, &name("ann"))
        .await
        .unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(matches!(answers[1], Err(Error::NotFound(_))));

    let occurrence = samples::all::<Occurrence>(&store).await.remove(0);
    assert_eq!(occurrence.status, Status::Suppressed);
    assert!(occurrence.acknowledged && occurrence.close.is_none());
    let by_ann = occurrence
        .history
        .iter()
        .filter(|it| it.author == Some(name("ann")));
    let words: Vec<_> = by_ann.map(|it| it.to.as_str()).collect();
    assert_eq!(words, ["closed", "true", "suppressed"]);
}

#[tokio::test]
async fn assignment_to_a_client_notifies_no_one() {
    let store = paging().await;
    let (deciding, _) = samples::deciding(store.clone()).await;
    let clients = Clients::new(store.clone(), deciding.clock.clone());
    let role = crate::domain::Role::Operator;
    let draft = ClientDraft::new("ben", role);
    let made = clients.create(&draft);
    made.await.unwrap();
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let newest = OccurrenceTarget::Newest(event("a").id());
    let assigned = |assignment| StatusItem {
        target: newest,
        change: StateChange {
            assignment,
            ..StateChange::default()
        },
    };
    let ben = || Assignment::Client(name("ben"));
    let items = [
        assigned(ben()),
        assigned(Assignment::Client(name("carl"))),
        assigned(ben()),
    ];
    let ann = name("ann");
    let set = set_status((&deciding, &intake), &items, &ann);
    let answers = set.await.unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok());
    let refused = answers[1].as_ref().unwrap_err().to_string();
    assert!(refused.contains("client `carl` not found"), "{refused}");
    let stored = || async { samples::all::<Occurrence>(&store).await.remove(0) };
    assert_eq!(stored().await.assignee, Some(name("ben")));
    // New events do not change the assignee.
    intake.submit(vec![event("a")], None).await.unwrap();
    assert_eq!(stored().await.assignee, Some(name("ben")));
    let items = [assigned(Assignment::Unassigned), assigned(ben())];
    let set = set_status((&deciding, &intake), &items, &ann);
    assert!(set.await.unwrap().iter().all(Result::is_ok));
    let after = stored().await;
    let entries = after
        .history
        .iter()
        .filter(|it| it.field == Field::Assignee);
    let entries: Vec<_> = entries.map(|it| (&*it.from, &*it.to)).collect();
    assert_eq!(entries, [("", "ben"), ("ben", ""), ("", "ben")]);
    let deliveries = samples::all::<Delivery>(&store).await;
    assert_eq!(deliveries.len(), 1, "the opening event");
    // The closing message contains the assignee, and the next occurrence has none.
    let items = [item(newest, Some(Status::Closed), None)];
    let set = set_status((&deciding, &intake), &items, &ann);
    assert!(set.await.unwrap()[0].is_ok());
    let deliveries = samples::all::<Delivery>(&store).await;
    let closing = deliveries.iter().find(|it| it.content.clear).unwrap();
    assert_eq!(closing.content.occurrence.assignee, Some(name("ben")));
    intake.submit(vec![event("a")], None).await.unwrap();
    let all = samples::all::<Occurrence>(&store).await;
    let newest = all.iter().max_by_key(|it| it.number).unwrap();
    assert_eq!((newest.number, &newest.assignee), (2, &None));
}

#[tokio::test]
async fn status_change_notifies_in_the_same_commit() {
    let store = paging().await;
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let before = store.engine().log_head().await.unwrap();
    let newest = OccurrenceTarget::Newest(event("a").id());
    let items = [
        item(newest, None, Some(true)),
        item(newest, Some(Status::Closed), None),
    ];
    set_status((&deciding, &intake), &items, &name("ann"))
        .await
        .unwrap();
    assert_eq!(
        store.engine().log_head().await.unwrap().steps_since(before),
        1
    );
    let deliveries = samples::all::<Delivery>(&store).await;
    let clears: Vec<_> = deliveries.iter().map(|it| it.content.clear).collect();
    assert_eq!(
        clears.iter().filter(|clear| **clear).count(),
        2,
        "{clears:?}"
    );
    assert_eq!(deliveries[0].content.occurrence.severity, Severity::Error);

    set_status((&deciding, &intake), &items, &name("ann"))
        .await
        .unwrap();
    let head = store.engine().log_head().await.unwrap();
    assert_eq!(
        head.steps_since(before),
        1,
        "a change without effect makes no commit"
    );
}

#[tokio::test]
async fn acknowledgement_repeated_after_a_reopening_changes_nothing() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let newest = OccurrenceTarget::Newest(event("a").id());
    let acknowledge = item(newest, None, Some(true));
    let set = async |items: &[StatusItem]| {
        let done = set_status((&deciding, &intake), items, &name("ann")).await;
        assert!(done.unwrap().iter().all(Result::is_ok));
    };
    set(&[
        acknowledge.clone(),
        item(newest, Some(Status::Closed), None),
        item(newest, Some(Status::Open), None),
    ])
    .await;
    let rule = rule("page", &[DISK_TRIGGER], &["hook"]);
    samples::save_rule(&store, &rule).await;
    set(&[acknowledge]).await;
    assert!(samples::all::<Delivery>(&store).await.is_empty());
    set(&[item(newest, None, Some(false))]).await;
    assert_eq!(samples::all::<Delivery>(&store).await.len(), 1);
}

#[tokio::test]
async fn loop_guard_stop_on_operator_change_is_reported() {
    let store = Store::in_memory();
    samples::save_rule(&store, &rule("loop", &[DISK_TRIGGER], &["event"])).await;
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let made = IncomingEvent {
        status: Some(Status::Suppressed),
        ..event("a")
    };
    let chain = vec![samples::id("loop")];
    intake.submit_internal(made, chain.clone()).await.unwrap();
    let items = [item(
        OccurrenceTarget::Newest(event("a").id()),
        Some(Status::Open),
        None,
    )];
    let set = set_status((&deciding, &intake), &items, &name("ann")).await;
    assert!(set.unwrap().remove(0).is_ok());
    let said = samples::said(&store, "loop-guard").await;
    assert_eq!(said.dimensions["rule"], "loop");
    assert_eq!((said.count, said.chain), (1, chain));
    assert!(samples::all::<Delivery>(&store).await.is_empty());
}

#[tokio::test]
async fn event_has_one_open_occurrence_at_a_time() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let close = IncomingEvent {
        status: Some(Status::Closed),
        ..event("a")
    };
    let sent = vec![event("a"), close.clone(), event("a"), close, event("a")];
    intake.submit(sent, None).await.unwrap();
    let set = async |number, status| {
        let id = OccurrenceId {
            event: event("a").id(),
            number,
        };
        let items = [item(OccurrenceTarget::Exactly(id), Some(status), None)];
        let answers = set_status((&deciding, &intake), &items, &name("ann")).await;
        answers.unwrap().remove(0)
    };
    let shown = async || {
        let mut all = samples::all::<Occurrence>(&store).await;
        all.sort_by_key(|it| it.number);
        let counts = all.iter().map(|it| (it.status, it.count));
        counts.collect::<Vec<_>>()
    };
    for (number, status) in [(1, Status::Open), (2, Status::Suppressed)] {
        let refused = set(number, status).await.unwrap_err();
        assert!(matches!(refused, Error::FailedPrecondition(_)), "{refused}");
    }
    set(3, Status::Closed).await.unwrap();
    set(1, Status::Open).await.unwrap();
    for number in [2, 3] {
        let refused = set(number, Status::Open).await.unwrap_err();
        assert!(refused.to_string().contains(":1` is open"), "{refused}");
    }
    intake.submit(vec![event("a")], None).await.unwrap();
    let (open, closed) = (Status::Open, Status::Closed);
    assert_eq!(shown().await, [(open, 3), (closed, 2), (closed, 1)]);
    let newest = samples::all::<Occurrence>(&store).await.into_iter();
    let newest = newest.max_by_key(|it| it.number).unwrap();
    assert_eq!(newest.prior_count + newest.count, 6, "each event counts");

    set(1, Status::Closed).await.unwrap();
    intake.submit(vec![event("a")], None).await.unwrap();
    let after = [(closed, 3), (closed, 2), (closed, 1), (open, 1)];
    assert_eq!(shown().await, after, "the next one follows the newest");
}
