//! Tests of operators' notes.

use std::time::Duration;

use super::*;
use crate::{
    domain::EventId,
    lifecycle::StateChange,
    samples::{self, event, name},
    set_status::{StatusItem, set_status},
    store::Store,
};

fn item(annotation: Option<&str>, text: &str) -> AnnotationItem {
    AnnotationItem {
        target: OccurrenceTarget::Newest(event("a").id()),
        annotation: annotation.map(Into::into),
        text: text.into(),
    }
}

async fn notes(deciding: &DecisionContext) -> Vec<Annotation> {
    let all = samples::all::<Occurrence>(&deciding.store).await;
    all.into_iter().flat_map(|it| it.annotations).collect()
}

#[tokio::test]
async fn annotation_is_created_updated_and_removed() {
    let (deciding, clock) = samples::deciding(Store::in_memory()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let answers = annotate(&deciding, &[item(None, "one")], &name("ann")).await;
    let written = answers.unwrap().remove(0).unwrap();
    assert_eq!(written.annotation.len(), 20);
    assert!(
        written
            .annotation
            .chars()
            .all(|it| it.is_ascii_alphanumeric())
    );

    clock.advance(Duration::from_secs(1));
    let id = Some(written.annotation.as_str());
    annotate(&deciding, &[item(id, "two")], &name("bob"))
        .await
        .unwrap();
    let note = notes(&deciding).await.remove(0);
    assert_eq!((note.text.as_str(), note.author), ("two", name("bob")));
    assert_eq!(note.update_ms - note.create_ms, 1000);

    annotate(&deciding, &[item(id, "")], &name("bob"))
        .await
        .unwrap();
    assert!(notes(&deciding).await.is_empty());
}

#[tokio::test]
async fn invalid_item_does_not_affect_the_others() {
    let (deciding, _) = samples::deciding(Store::in_memory()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let mut unknown = item(None, "text");
    unknown.target = OccurrenceTarget::Newest(EventId::from_bytes([9; 20]));
    let items = [
        item(None, "first"),
        unknown,
        item(None, ""),
        item(Some("nothing"), "text"),
        item(None, &"x".repeat(ANNOTATION_BYTES_MAX + 1)),
        item(None, "last"),
    ];
    let answers = annotate(&deciding, &items, &name("ann")).await.unwrap();
    let succeeded: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(succeeded, [true, false, false, false, false, true]);
    let texts: Vec<_> = notes(&deciding)
        .await
        .into_iter()
        .map(|it| it.text)
        .collect();
    assert_eq!(texts, ["first", "last"]);
}

#[tokio::test]
async fn annotations_per_occurrence_are_limited() {
    let (deciding, _) = samples::deciding(Store::in_memory()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let items = vec![item(None, "text"); ANNOTATIONS_MAX + 1];
    let answers = annotate(&deciding, &items, &name("ann")).await.unwrap();
    assert!(matches!(
        answers[ANNOTATIONS_MAX],
        Err(Error::FailedPrecondition(_))
    ));
    assert_eq!(notes(&deciding).await.len(), ANNOTATIONS_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_edits_of_one_event_all_succeed() {
    const CALLERS: usize = 40;
    let (deciding, _) = samples::deciding(Store::in_memory()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (deciding, intake) = (deciding.clone(), intake.clone());
        calls.spawn(async move {
            let by = name(&format!("user{caller}"));
            if caller % 2 == 0 {
                let written = annotate(&deciding, &[item(None, "seen")], &by).await;
                return written.map(|it| it.iter().all(Result::is_ok));
            }
            let change = StateChange {
                acknowledged: Some(caller % 4 == 1),
                ..StateChange::default()
            };
            let target = OccurrenceTarget::Newest(event("a").id());
            let items = [StatusItem { target, change }];
            let done = set_status((&deciding, &intake), &items, &by).await;
            done.map(|it| it.iter().all(Result::is_ok))
        });
    }
    for _ in 0..CALLERS {
        intake.submit(vec![event("a")], None).await.unwrap();
    }
    while let Some(done) = calls.join_next().await {
        assert!(done.unwrap().unwrap());
    }
    assert_eq!(notes(&deciding).await.len(), CALLERS / 2);
}
