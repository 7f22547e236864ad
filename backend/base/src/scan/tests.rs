//! Tests of the scan pool: time slices, shares and cancellation.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{task::JoinSet, time::timeout};

use super::*;

/// A timeout longer than any operation here.
const LONG: Duration = Duration::from_secs(20);

fn scanner(client: &str) -> Scanner {
    Scanner {
        client: client.into(),
        reads: true,
    }
}

/// Runs forever, checking for cancellation as a scan does: between events, or in the middle of an
/// event.
async fn endless(is_amid: bool, alive: Arc<AtomicUsize>) {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    alive.fetch_add(1, SeqCst);
    let _alive = Alive(alive);
    loop {
        if is_amid {
            while !effort::ComputeHost::is_caller_gone(&TaskEffort) {}
        }
        yield_if_needed().await;
    }
}

async fn wait_until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            yield_now().await;
        }
    };
    timeout(LONG, wait).await.expect("it is reached");
}

#[tokio::test]
async fn abandoned_scan_stops_between_and_within_events() {
    let scans = ScanService::start().unwrap();
    for is_amid in [false, true] {
        let alive = Arc::new(AtomicUsize::new(0));
        let client = scanner("a");
        let call = scans.run(&client, endless(is_amid, Arc::clone(&alive)));
        tokio::select! {
            _ = call => panic!("it does not end"),
            () = wait_until(|| alive.load(SeqCst) == 1) => {}
        }
        wait_until(|| alive.load(SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn greedy_client_does_not_starve_others() {
    let scans = ScanService::start().unwrap();
    let alive = Arc::new(AtomicUsize::new(0));
    let many = 2 * SCANS_WAITING_MAX;
    let greedy = scanner("greedy");
    let calls = (0..many).map(|_| scans.run(&greedy, endless(false, Arc::clone(&alive))));
    let refused = AtomicUsize::new(0);
    let flood = join_all(calls.map(|call| async {
        if let Err(Error::Exhausted { retry_after, .. }) = call.await {
            assert_eq!(retry_after, Some(crate::limits::OVERLOAD_RETRY_AFTER));
            refused.fetch_add(1, SeqCst);
        }
    }));
    let other = async {
        wait_until(|| alive.load(SeqCst) == SCANS_RUNNING_MAX / 4).await;
        let admitted = SCANS_RUNNING_MAX / 4 + SCANS_WAITING_MAX / 4;
        wait_until(|| refused.load(SeqCst) == many - admitted).await;
        let client = scanner("other");
        let done = scans.run(&client, async {
            for _ in 0..100 {
                yield_now().await;
            }
            "done"
        });
        assert_eq!(timeout(LONG, done).await.unwrap().unwrap(), "done");
    };
    tokio::select! {
        _ = flood => panic!("it does not end"),
        () = other => {}
    }
    // Wait until all waiting and running scans have ended.
    wait_until(|| alive.load(SeqCst) == 0).await;
    assert_eq!(scans.run(&scanner("greedy"), async { 1 }).await.unwrap(), 1);
}

#[tokio::test]
async fn next_slot_goes_to_the_client_with_fewest() {
    let slots = FairSlots::new(8, 16, "searches");
    let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
    let first = slots.acquire(&a).await.unwrap();
    let second = slots.acquire(&a).await.unwrap();
    let mut left = Box::pin(slots.acquire(&a));
    let mut waits = Box::pin(slots.acquire(&a));
    assert!(futures_util::poll!(&mut left).is_pending());
    assert!(futures_util::poll!(&mut waits).is_pending());
    let others = slots.acquire(&b).await.unwrap();
    drop(left);
    drop(first);
    let third = waits.await.unwrap();
    drop((second, third, others));
    let all = join_all((0..8).map(|at| {
        let client: Arc<str> = format!("{}", at / 2).into();
        let slots = &slots;
        async move { slots.acquire(&client).await.unwrap() }
    }));
    assert_eq!(timeout(LONG, all).await.unwrap().len(), 8);
}

#[tokio::test]
async fn panic_in_a_scan_propagates_to_its_caller() {
    let scans = ScanService::start().unwrap();
    let call = async move {
        scans
            .run(&scanner("a"), async { panic!("on purpose") })
            .await
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let done: Result<(), _> = call.await;
        done
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
}

#[tokio::test]
async fn steps_of_long_scans_take_turns() {
    let scans = ScanService::start().unwrap();
    let at_once = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let works = (0..2 * SCAN_STEPS_RUNNING_MAX).map(|_| {
        let (at_once, most) = (Arc::clone(&at_once), Arc::clone(&most));
        scans.start_scan(&scanner("a"), async move {
            let slot = wait_for_step().await;
            assert!(slot.is_some());
            most.fetch_max(at_once.fetch_add(1, SeqCst) + 1, SeqCst);
            yield_now().await;
            at_once.fetch_sub(1, SeqCst);
        })
    });
    for work in works.collect::<Vec<_>>() {
        work.finish().await.unwrap();
    }
    assert!(most.load(SeqCst) <= SCAN_STEPS_RUNNING_MAX / 4);
    assert!(wait_for_step().await.is_none(), "nothing is scanned here");
}
