//! Tests of single bit flips in a store with every kind of record: each read returns correct data
//! or an error.

use std::{collections::BTreeSet, sync::Arc};

use rand::{SeedableRng, rngs::StdRng};

use super::ground::Ground;
use crate::{
    clock::ManualClock,
    domain::{
        AnyResource, Calendar, Delivery, DeliveryState, Destination, Heartbeat, Occurrence,
        any_resource::each_resource,
    },
    error::Error,
    ops::{delivery::Deliveries, destination::Destinations, find, rule::Rules},
    samples::all,
    store::{
        Changes, Direction, EngineError, Index, Kind, Lane, LogPosition, Range, Store, verify,
    },
    testing::{audit, samples, walks::walk_length},
};

/// Number of occurrences and number of deliveries.
const RECORDS: u32 = 40;

fn add_heartbeats(changes: &mut Changes) {
    changes.insert(&samples::heartbeat("backup"));
    changes.insert(&Heartbeat {
        id: samples::id(75),
        ..samples::window_heartbeat("reports")
    });
    changes.insert(&samples::expectation());
}

fn add_on_call(changes: &mut Changes) {
    changes.insert(&samples::contact("ana"));
    changes.insert(&samples::schedule("nights"));
    changes.insert(&samples::policy("database"));
    changes.insert(&samples::paging_rule());
    changes.insert(&Occurrence {
        key: samples::id(9_009),
        number: 9_009,
        ..samples::escalated()
    });
}

/// Returns a disk with records of every kind, in many commits.
async fn filled_disk() -> Ground {
    let ground = Ground::disk();
    let store = ground.open().await;
    let mut changes = store.new_changes();
    changes.insert(&samples::trigger("disk"));
    changes.insert(&samples::trigger("load"));
    for destination in samples::destinations() {
        changes.insert(&destination);
    }
    changes.insert(&samples::reaching_webhook());
    changes.insert(&samples::client("root"));
    changes.insert(&samples::receipt());
    changes.insert(&audit::audit_entry());
    changes.insert(&samples::silence("quiet"));
    for called in ["holidays", "office"] {
        changes.insert(&Calendar {
            except: Vec::new(),
            ..samples::calendar(called)
        });
    }
    changes.insert(&samples::inhibition("dead host"));
    changes.insert(&samples::mapping("statuspage"));
    for resource in samples::plain_resources() {
        insert_resource(&mut changes, &resource);
    }
    changes.insert(&samples::settings());
    add_heartbeats(&mut changes);
    add_on_call(&mut changes);
    changes.insert(&Occurrence {
        key: samples::id(9_001),
        number: 9_001,
        ..samples::cause()
    });
    changes.insert(&samples::timed_rule());
    changes.insert(&samples::grouping_rule());
    changes.insert(&samples::group());
    changes.insert(&samples::open_group());
    changes.insert(&samples::group_delivery());
    changes.insert(&Occurrence {
        key: samples::id(9_002),
        number: 9_002,
        ..samples::grouped_occurrence()
    });
    changes.insert(&samples::nightly_silence());
    changes.insert(&samples::calendar("nights"));
    changes.insert(&Occurrence {
        key: samples::id(9_000),
        number: 9_000,
        ..samples::held_occurrence()
    });
    for revision in samples::revisions() {
        changes.insert(&revision);
    }
    changes.insert(&samples::health());
    changes.insert(&samples::budget_window());
    changes.insert(&samples::own_event());
    changes.insert(&samples::folded_delivery());
    changes.insert(&samples::digest_delivery());
    store.apply(Lane::Admin, changes).await.unwrap();
    let mut changes = store.new_changes();
    let mut rule = samples::rule("tell");
    let destinations = all::<Destination>(&store).await;
    rule.trigger_names = vec![samples::name("disk")];
    rule.destination_names = vec![destinations[0].name.clone()];
    changes.insert(&rule);
    store.apply(Lane::Admin, changes).await.unwrap();
    keep_occurrences(&store).await;
    ground
}

macro_rules! insert_resources {
    ($($number:literal $word:ident $kind:ident($type:ident) $more:tt)+) => {
        fn insert_resource(changes: &mut Changes, resource: &AnyResource) {
            match resource {
                $(AnyResource::$kind(it) => changes.insert(it),)+
            }
        }
    };
}
each_resource!(insert_resources);

async fn keep_occurrences(store: &Store) {
    for number in 1..=RECORDS {
        let mut changes = store.new_changes();
        changes.insert(&Occurrence {
            key: samples::id(1_000 + u64::from(number)),
            ..samples::occurrence(number)
        });
        let state = match number % 3 {
            0 => DeliveryState::Pending { due_ms: 5 },
            1 => DeliveryState::Delivered,
            _ => DeliveryState::Dead,
        };
        changes.insert(&Delivery {
            in_thread: true,
            ..samples::delivery(u64::from(number), state)
        });
        changes.insert(&samples::attempt(u64::from(number), 1));
        store.apply(Lane::Bulk, changes).await.unwrap();
    }
}

/// Returns the result of each query.
async fn read_responses(store: &Store) -> Vec<Result<String, String>> {
    let mut answers = Vec::new();
    let engine = store.engine();
    let whole = || Range::with_prefix(&[]);
    let comparable =
        |answer: Result<String, EngineError>| answer.map_err(|error| error.to_string());
    for kind in Kind::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            let page = engine.read_page(kind, whole(), direction, 1_000).await;
            answers.push(comparable(page.map(|rows| format!("{kind:?} {rows:?}"))));
        }
    }
    for index in Index::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            let entries = engine.entries(index, whole(), direction, 1_000).await;
            answers.push(comparable(entries.map(|it| format!("{index:?} {it:?}"))));
        }
        let count = engine.count(index, whole(), 1_000).await;
        answers.push(comparable(count.map(|count| format!("{index:?} {count}"))));
    }
    let log = engine.log_after(LogPosition::START, 10_000).await;
    answers.push(comparable(log.map(|log| format!("{log:?}"))));
    answers.extend(operations(store).await);
    answers
}

/// Returns the results of operations on single records.
async fn operations(store: &Store) -> Vec<Result<String, String>> {
    let clock = || Arc::new(ManualClock::starting_at(samples::occurrence(1).start_ms)) as _;
    let deliveries = Deliveries::new(store.clone(), clock());
    let mut answers = Vec::new();
    for number in 1..=RECORDS {
        let event = samples::occurrence(number).event;
        let newest = find::newest_occurrence(store, event).await;
        answers.push(match newest {
            Ok(newest) => Ok(format!("{newest:?}")),
            Err(error) => Err(error.to_string()),
        });
        let id = samples::delivery(number.into(), DeliveryState::Dead).id;
        answers.push(match deliveries.get(id).await {
            Ok(found) => Ok(format!("{found:?}")),
            Err(error) => Err(unless_wrong(error)),
        });
    }
    let rule = Rules::new(store.clone(), clock()).get("tell").await;
    answers.push(rule.map(|it| format!("{it:?}")).map_err(unless_wrong));
    for destination in samples::destinations() {
        let destinations = Destinations::new(store.clone(), clock());
        let found = destinations.get(destination.name.as_str()).await;
        answers.push(found.map(|it| format!("{it:?}")).map_err(unless_wrong));
    }
    answers
}

/// Panics unless the error reports damage: "not found", for example, is a wrong result.
fn unless_wrong(error: Error) -> String {
    match error {
        Error::Internal(_) | Error::Unavailable(_) => error.to_string(),
        other => panic!("a flipped bit changed a result: {other}"),
    }
}

#[tokio::test]
async fn flipped_bits_never_produce_wrong_results() {
    let ground = filled_disk().await;
    let Ground::Disk(disk, sealer) = &ground else {
        unreachable!("it was created on a disk");
    };
    let store = ground.open().await;
    let findings = verify(&store, &|_| {}).await;
    let kinds: BTreeSet<_> = findings.records.keys().copied().collect();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Meta) {
        assert!(
            kinds.contains(kind.as_str()),
            "no {} is read",
            kind.as_str()
        );
    }
    for index in Index::ALL {
        let entries =
            store
                .engine()
                .entries(index, Range::with_prefix(&[]), Direction::Ascending, 1);
        assert!(!entries.await.unwrap().is_empty(), "{index:?} is empty");
    }
    let right = read_responses(&store).await;
    assert!(right.iter().all(Result::is_ok));
    drop(store);

    let (mut noticed, mut opened) = (0, 0);
    for seed in 0..walk_length("BELLWETHER_FLIPS") {
        let flipped = disk.with_flipped_bit(&mut StdRng::seed_from_u64(seed));
        if seed % 2 == 1 {
            flipped.forget_checksums();
        }
        let Ok(store) = Ground::Disk(flipped, Arc::clone(sealer)).try_open() else {
            noticed += 1;
            continue;
        };
        opened += 1;
        let mut is_noticed = false;
        for (answer, right) in read_responses(&store).await.into_iter().zip(&right) {
            match answer {
                Ok(answer) => assert_eq!(Ok(answer), *right, "flip {seed}"),
                Err(_) => is_noticed = true,
            }
        }
        noticed += u64::from(is_noticed);
    }
    assert!(noticed > 0, "no flip hit data in use");
    assert!(opened > 0, "no flipped store was read");
}
