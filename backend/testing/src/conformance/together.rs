//! Concurrent callers.

use futures_util::future::join_all;

use super::{apply, change, change::addition, insert, is_conflict, read};
use crate::{Action, Engine, Expect, Kind, Lane, decode_numbers};

pub async fn one_of_many_concurrent_inserts_succeeds(engine: &dyn Engine) {
    for round in 0..20_u8 {
        let attempts = (0..16_u8).map(|caller| {
            let lane = if caller % 2 == 0 {
                Lane::Admin
            } else {
                Lane::Bulk
            };
            engine.apply(
                lane,
                vec![insert(Kind::Trigger, &[round], &[caller])].into(),
            )
        });
        let results = join_all(attempts).await;
        let winner = results.iter().position(Result::is_ok).unwrap();
        let (value, _) = read(engine, Kind::Trigger, &[round]).await.unwrap();
        assert_eq!(value, [u8::try_from(winner).unwrap()]);
        assert_eq!(
            results.iter().filter(|result| is_conflict(result)).count(),
            15
        );
    }
}

pub async fn concurrent_updates_are_not_lost(engine: &dyn Engine) {
    apply(engine, vec![insert(Kind::Rule, b"counter", &[0])])
        .await
        .unwrap();
    let count = async || {
        for _ in 0..8 {
            loop {
                let (value, version) = read(engine, Kind::Rule, b"counter").await.unwrap();
                let action = Action::Put(vec![value[0] + 1]);
                let set = vec![change(
                    Kind::Rule,
                    b"counter",
                    Expect::Version(version),
                    action,
                )];
                let result = apply(engine, set).await;
                if !is_conflict(&result) {
                    result.unwrap();
                    break;
                }
            }
        }
    };
    join_all((0..8).map(|_| count())).await;
    let (value, _) = read(engine, Kind::Rule, b"counter").await.unwrap();
    assert_eq!(value, [64]);
}

pub async fn concurrent_additions_neither_conflict_nor_get_lost(engine: &dyn Engine) {
    let count = async |caller: u8| {
        for turn in 0..8_u8 {
            let own = insert(Kind::Rule, &[caller, turn], b"");
            let set = vec![own, addition(b"all", &[1, i64::from(turn)])];
            apply(engine, set).await.unwrap();
        }
    };
    join_all((0..8).map(count)).await;
    let (value, _) = read(engine, Kind::Counter, b"all").await.unwrap();
    assert_eq!(decode_numbers(&value).unwrap(), [64, 8 * 28]);
}

pub async fn conflict_does_not_affect_other_sets(engine: &dyn Engine) {
    apply(engine, vec![insert(Kind::Rule, b"taken", b"")])
        .await
        .unwrap();
    let sets = (0..100_u8).map(|number| {
        let mut set = vec![insert(Kind::Rule, &[number], &[number])];
        if number % 3 == 0 {
            set.push(insert(Kind::Rule, b"taken", b""));
        }
        apply(engine, set)
    });
    for (number, result) in (0..100_u8).zip(join_all(sets).await) {
        assert_eq!(is_conflict(&result), number % 3 == 0);
        let found = read(engine, Kind::Rule, &[number]).await;
        assert_eq!(found.is_some(), number % 3 != 0);
        let version = result.ok().map(|applied| applied.version);
        assert_eq!(version, found.map(|(_, version)| version));
    }
}
