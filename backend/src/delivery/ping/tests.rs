//! Tests of pings and their failures, which must not contain the URL.

use tokio::sync::watch;

use super::*;
use crate::{
    config::Config,
    message::Links,
    samples,
    secret::Secret,
    send::EgressGuard,
    sending::receiver::{Receiver, Reply},
    store::{
        Sealer,
        engine::{FreeSpace, memory::MemoryEngine},
    },
};

fn pings(url: &str, allowed: bool) -> (PingTask, Arc<MemoryEngine>) {
    let mut config = Config::new("unused");
    if allowed {
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
    }
    let clock: Arc<dyn Clock> = Arc::new(crate::clock::ManualClock::starting_at(samples::START_MS));
    let guard = Arc::new(EgressGuard::new(&config.egress, Vec::new()));
    let settings = watch::Sender::default().subscribe();
    let links = Links::default();
    let sender = Sender::new(&config, settings, guard, Arc::clone(&clock), links, None);
    let engine = Arc::new(MemoryEngine::new());
    let store = Store::new(
        Arc::clone(&engine) as _,
        Arc::new(Sealer::with_random_key()),
    );
    let ping = PingConfig {
        url: Secret::new(url),
        every: Duration::from_secs(60),
    };
    (PingTask::new(store, clock, sender, ping), engine)
}

#[tokio::test]
async fn pings_are_sent_only_while_events_are_accepted() {
    let receiver = Receiver::start(|_| Reply::status(204)).await;
    let (mut pings, engine) = pings(&receiver.url("/canary"), true);
    pings.ping_once().await;
    assert_eq!((pings.failure.as_ref(), receiver.count()), (None, 1));
    assert_eq!(receiver.received_requests()[0].path, "/canary");
    let space = |free_bytes| {
        Some(FreeSpace {
            free_bytes,
            floor_bytes: 10,
        })
    };
    engine.set_free_space(space(9));
    pings.ping_once().await;
    let full = PingFailure::Unhealthy("the disk is full");
    assert_eq!((pings.failure.as_ref(), receiver.count()), (Some(&full), 1));
    engine.set_free_space(space(10));
    pings.ping_once().await;
    assert_eq!((pings.failure.as_ref(), receiver.count()), (None, 2));
}

#[tokio::test]
async fn ping_failures_do_not_reveal_the_url() {
    let receiver = Receiver::start(|_| Reply::status(404)).await;
    let url = receiver.url("/canary");
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/canary", listener.local_addr().unwrap())
    };
    for (url, allowed, failure) in [
        (&url, true, PingFailure::Status(404)),
        (&url, false, PingFailure::Blocked),
        (&closed, true, PingFailure::Unreachable),
    ] {
        let (mut pings, _) = pings(url, allowed);
        pings.ping_once().await;
        let found = pings.failure.clone().unwrap();
        assert_eq!(found, failure);
        let shown = format!("{found} {:?}", pings.config);
        assert!(!shown.contains("canary"), "{shown}");
    }
}
