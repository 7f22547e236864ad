//! Tests of rendering outside the runtime: slots, shares, timeouts, and dropped calls.

use std::sync::mpsc;

use tokio::sync::oneshot;

use bellwether_backend_model::effort::ComputeHost as _;

use super::*;
use crate::scan::TaskEffort;

fn renderers(places: usize) -> Renderers {
    Renderers::with_slots(Metrics::default(), places, None)
}

/// Work that runs until it is released.
async fn lasting(
    renderers: &Renderers,
    purpose: RenderPurpose,
    client: &'static str,
) -> (mpsc::Sender<()>, tokio::task::JoinHandle<bool>) {
    let (free, wait) = mpsc::channel::<()>();
    let (began, has_begun) = oneshot::channel();
    let renderers = renderers.clone();
    #[expect(clippy::disallowed_methods, reason = "the task ends in its test")]
    let task = tokio::spawn(async move {
        let work = move || {
            let _unused = began.send(());
            wait.recv().is_ok()
        };
        renderers
            .run_for_client(purpose, client, work)
            .await
            .unwrap()
    });
    has_begun.await.unwrap();
    (free, task)
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the task ends in this test")]
async fn work_of_a_dropped_call_never_starts() {
    let renderers = renderers(1);
    let (free, first) = lasting(&renderers, RenderPurpose::Preview, "a").await;
    let (left, is_left) = mpsc::channel();
    let second = renderers.clone();
    let second = tokio::spawn(async move {
        let work = move || left.send(());
        second
            .run_for_client(RenderPurpose::Preview, "b", work)
            .await
    });
    tokio::task::yield_now().await;
    second.abort();
    assert!(second.await.is_err());
    free.send(()).unwrap();
    assert!(first.await.unwrap());
    assert!(
        renderers
            .run_for_client(RenderPurpose::Preview, "a", || true)
            .await
            .unwrap()
    );
    assert!(is_left.recv().is_err(), "the work of a dropped call ran");
}

#[tokio::test]
async fn long_previews_do_not_block_deliveries_or_mappings() {
    let renderers = renderers(1);
    let (free, preview) = lasting(&renderers, RenderPurpose::Preview, "a").await;
    for purpose in [RenderPurpose::Delivery, RenderPurpose::Mapping] {
        assert!(
            renderers
                .run_for_client(purpose, "a", || true)
                .await
                .unwrap()
        );
    }
    free.send(()).unwrap();
    preview.await.unwrap();
}

#[tokio::test]
async fn client_is_limited_to_a_quarter_of_the_slots() {
    let renderers = renderers(4);
    let (free, first) = lasting(&renderers, RenderPurpose::Mapping, "a").await;
    let mut waits = Box::pin(renderers.run_for_client(RenderPurpose::Mapping, "a", || true));
    assert!(futures_util::poll!(&mut waits).is_pending());
    assert!(
        renderers
            .run_for_client(RenderPurpose::Mapping, "b", || true)
            .await
            .unwrap()
    );
    free.send(()).unwrap();
    first.await.unwrap();
    assert!(waits.await.unwrap());
}

#[tokio::test]
async fn work_ends_on_caller_drop_or_timeout() {
    let renderers = renderers(1);
    let (ended, end) = oneshot::channel();
    let (began, has_begun) = oneshot::channel();
    let work = move || {
        let _unused = began.send(());
        while !TaskEffort.is_caller_gone() {}
        let _unused = ended.send(());
    };
    let call = renderers.run_for_client(RenderPurpose::Preview, "a", work);
    tokio::select! {
        _ = call => unreachable!("it remains"),
        begun = has_begun => begun.unwrap(),
    }
    end.await.unwrap();
    // The caller keeps waiting, so that only the timeout ends the work.
    let work = || while !TaskEffort.is_caller_gone() {};
    renderers
        .run_for_client(RenderPurpose::Preview, "a", work)
        .await
        .unwrap();
    assert!(!TaskEffort.is_caller_gone(), "this thread renders nothing");
    assert_eq!(renderers.stuck_count(), 0);
}
