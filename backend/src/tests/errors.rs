//! Tests of the whole service while disk operations fail: every response is correct, and the
//! service recovers automatically.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bellwether_proto::v1::{self, destination_type::Type};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{ground::Ground, invariants, service::Service};
use crate::{
    clock::ManualClock,
    config::Config,
    domain::{Delivery, DeliveryState, Occurrence, SharedSettings},
    error::Error,
    lifecycle::StateChange,
    ops::{
        edit::OccurrenceTarget,
        set_status::{StatusItem, set_status},
    },
    samples::{self, START_MS, all},
    sending::receiver::{Receiver, Reply},
    testing::walks::walk_length,
};

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Became {
    Done,
    NotDone,
    Unknown,
}

fn became<T>(result: &Result<T, Error>) -> Became {
    match result {
        Ok(_) => Became::Done,
        Err(Error::Unavailable(_) | Error::Exhausted { .. }) => Became::NotDone,
        Err(Error::Indeterminate(_)) => Became::Unknown,
        Err(other) => panic!("a failed operation returned {other:?}"),
    }
}

async fn start(receiver: &Receiver) -> Service {
    let mut config = Config::new("unused");
    config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
    config.shared = SharedSettings::without_expiry();
    let clock = Arc::new(ManualClock::starting_at(START_MS));
    let service = Service::start(Ground::disk(), config, clock).await;
    let webhook = v1::Webhook {
        url: receiver.url("/"),
        ..v1::Webhook::default()
    };
    let draft = v1::Destination {
        name: "hook".into(),
        r#type: Some(v1::DestinationType {
            r#type: Some(Type::Webhook(webhook)),
        }),
        ..v1::Destination::default()
    };
    service.destinations().create(&draft, false).await.unwrap();
    let rule = samples::rule("tell", &[samples::DISK_TRIGGER], &["hook"]);
    samples::save_rule(service.store(), &rule).await;
    service
}

async fn send(service: &Service, host: &str) -> Result<(), Error> {
    let events = vec![samples::event(host)];
    let submitted = service.intake().submit(events, None).await?;
    assert!(
        submitted.failed.is_empty(),
        "a single event is accepted or rejected"
    );
    Ok(())
}

async fn acknowledge(service: &Service, host: &str) -> Result<(), Error> {
    let item = StatusItem {
        target: OccurrenceTarget::Newest(samples::event(host).id()),
        change: StateChange {
            acknowledged: Some(true),
            ..StateChange::default()
        },
    };
    let author = samples::name("operator");
    let set = set_status((service.deciding(), service.intake()), &[item], &author).await?;
    assert!(set.iter().all(Result::is_ok));
    Ok(())
}

#[tokio::test]
async fn disk_errors_are_reported_and_the_service_continues() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let mut service = start(&receiver).await;
    let mut random = StdRng::seed_from_u64(7);
    let (mut sent, mut acknowledged) = (Vec::new(), Vec::new());
    let rounds = walk_length("BELLWETHER_DISK_ERRORS");
    // The kinds of errors depend on which requests share a commit, so more rounds may be required.
    let has_every_kind = |sent: &[(String, Became)]| {
        let kinds: BTreeSet<_> = sent.iter().map(|(_, became)| *became).collect();
        kinds.len() == 3
    };
    for round in 0..10 * rounds {
        if round >= rounds && has_every_kind(&sent) {
            break;
        }
        service.ground.fail_after(Some(random.random_range(0..40)));
        for number in 0..3 {
            let host = format!("{round}-{number}");
            let result = send(&service, &host).await;
            sent.push((host, became(&result)));
        }
        if let Some((host, Became::Done)) = sent.get(random.random_range(0..sent.len())) {
            let result = acknowledge(&service, host).await;
            acknowledged.push((host.clone(), became(&result)));
        }
        service.live(Duration::from_secs(1)).await;
    }
    service.ground.fail_after(None);
    let healed = async {
        for number in 0.. {
            let host = format!("after {number}");
            let result = send(&service, &host).await;
            sent.push((host, became(&result)));
            if result.is_ok() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let healed = tokio::time::timeout(PATIENCE, healed).await;
    healed.expect("it recovers automatically");
    while service.waits().await {
        service.live(Duration::from_secs(60)).await;
    }

    let stored: Vec<Occurrence> = all(service.store()).await;
    let host = |occurrence: &Occurrence| occurrence.dimensions["host"].clone();
    let hosts: BTreeSet<_> = stored.iter().map(host).collect();
    for (host, became) in &sent {
        match became {
            Became::Done => assert!(hosts.contains(host), "{host} is lost"),
            Became::NotDone => assert!(!hosts.contains(host), "{host} was ingested"),
            Became::Unknown => {}
        }
    }
    let flagged = stored.iter().filter(|it| it.acknowledged).map(host);
    let flagged: BTreeSet<_> = flagged.collect();
    let lost = acknowledged
        .iter()
        .filter(|(host, became)| *became == Became::Done && !flagged.contains(host));
    assert_eq!(lost.count(), 0);
    let deliveries: Vec<Delivery> = all(service.store()).await;
    let notified = deliveries.iter().map(|it| host(&it.content.occurrence));
    assert_eq!(notified.collect::<BTreeSet<_>>(), hosts, "each is notified");
    assert_eq!(deliveries.len(), stored.len(), "once");
    let is_delivered = |it: &Delivery| it.state == DeliveryState::Delivered;
    assert!(deliveries.iter().all(is_delivered));
    invariants::check(service.store(), 8).await;
    assert!(
        has_every_kind(&sent),
        "the disk failed with every kind of error"
    );
}
