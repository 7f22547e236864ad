//! Searches against a plain sort of everything.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{
    domain::{EventId, RecordId, Severity, Status},
    store::Lane,
};

fn occurrence(number: u32) -> Occurrence {
    let dimensions = BTreeMap::from([("host".to_owned(), number.to_string())]);
    let at = |factor: u32, modulus: u32| i64::from(number * factor % modulus);
    let (severity, status) = (number * 7 % 5, number % 3);
    Occurrence {
        key: RecordId::from_parts(u64::from(number), 7),
        event: EventId::derive("e", &dimensions),
        number: 1,
        name: "e".into(),
        kind: "e".into(),
        dimensions,
        metadata: BTreeMap::new(),
        summary: String::new(),
        body: String::new(),
        severity: Severity::ALL[severity as usize],
        status: Status::ALL[status as usize],
        acknowledged: number.is_multiple_of(2),
        start_ms: 1_000 + at(37, 101),
        last_seen_ms: 1_200 + at(53, 89),
        close: None,
        count: 1,
        prior_count: 0,
        annotations: Vec::new(),
        history: Vec::new(),
        notified: Vec::new(),
        chain: Vec::new(),
        review_ms: i64::MAX,
        content_ms: None,
        judged: None,
    }
}

async fn stored(count: u32) -> (Store, Vec<Occurrence>) {
    let store = Store::in_memory();
    let occurrences: Vec<_> = (0..count).map(occurrence).collect();
    let mut changes = store.changes();
    for occurrence in &occurrences {
        changes.insert(occurrence);
    }
    store.apply(Lane::Bulk, changes).await.unwrap();
    (store, occurrences)
}

fn place(occurrence: &Occurrence, sort: SortField) -> (i64, i64, RecordId) {
    match sort {
        SortField::LastSeen => (0, occurrence.last_seen_ms, occurrence.key),
        SortField::StartTime => (0, occurrence.start_ms, occurrence.key),
        SortField::Severity => (
            occurrence.severity as i64,
            occurrence.last_seen_ms,
            occurrence.key,
        ),
    }
}

fn filters() -> Vec<Filter> {
    vec![
        Filter::default(),
        Filter {
            statuses: vec![Status::Open, Status::Closed],
            ..Filter::default()
        },
        Filter {
            severities: vec![Severity::Error],
            start_ms: Some(1_230),
            ..Filter::default()
        },
        Filter {
            end_ms: Some(1_050),
            start_ms: Some(1_220),
            ..Filter::default()
        },
        Filter {
            start_ms: Some(9_999),
            ..Filter::default()
        },
    ]
}

#[tokio::test]
async fn pages_in_every_order_and_direction_hold_everything_once() {
    let (store, all) = stored(300).await;
    for sort in [
        SortField::LastSeen,
        SortField::StartTime,
        SortField::Severity,
    ] {
        for (ascending, filter) in [true, false]
            .into_iter()
            .flat_map(|ascending| filters().into_iter().map(move |filter| (ascending, filter)))
        {
            let mut expected: Vec<_> = all.iter().filter(|found| filter.admits(found)).collect();
            expected.sort_by_key(|found| place(found, sort));
            if !ascending {
                expected.reverse();
            }
            let expected: Vec<_> = expected.into_iter().map(|found| found.key).collect();
            let request = SearchRequest {
                filter,
                sort,
                ascending,
                limit: 7,
                ..Default::default()
            };

            let (mut forward, mut cursors) = (Vec::new(), vec![]);
            let mut page = request.clone();
            loop {
                let found = search(&store, &page).await.unwrap();
                assert_eq!(found.total, Some(expected.len()));
                forward.extend(found.occurrences.iter().map(|found| found.key));
                cursors.push(found.start_cursor);
                if !found.has_next {
                    break;
                }
                page.cursor = found.end_cursor;
            }
            assert_eq!(forward, expected, "{sort:?}");

            if cursors.len() > 1 {
                let cursor = cursors.pop().unwrap();
                let back = SearchRequest {
                    cursor,
                    backward: true,
                    ..request
                };
                let found = search(&store, &back).await.unwrap();
                let keys: Vec<_> = found.occurrences.iter().map(|found| found.key).collect();
                let at = 7 * (cursors.len() - 1);
                assert_eq!(keys, expected[at..at + 7]);
                assert_eq!(found.has_next, cursors.len() > 1);
            }
        }
    }
}

#[tokio::test]
async fn a_cursor_is_good_only_for_its_own_query() {
    let (store, _) = stored(20).await;
    let request = SearchRequest {
        limit: 5,
        fingerprint: vec![1],
        ..Default::default()
    };
    let cursor = search(&store, &request).await.unwrap().end_cursor;
    let other = SearchRequest {
        cursor: cursor.clone(),
        fingerprint: vec![2],
        ..request.clone()
    };
    assert!(search(&store, &other).await.is_err());
    let forged = SearchRequest {
        cursor: format!("{cursor}A"),
        ..request
    };
    assert!(search(&store, &forged).await.is_err());
}

#[tokio::test]
async fn counts_agree_with_what_is_found() {
    let (store, all) = stored(300).await;
    for filter in filters() {
        let expected = all.iter().filter(|found| filter.admits(found)).count();
        assert_eq!(count(&store, &filter).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn spans_of_time_have_no_gaps_and_count_each_occurrence_once() {
    let (store, all) = stored(300).await;
    let filter = Filter {
        severities: vec![Severity::Error, Severity::Info],
        ..Filter::default()
    };
    let buckets = frequency(&store, &filter, (1_210, 1_270), 7).await.unwrap();
    assert_eq!(
        (buckets[0].start_ms, buckets[buckets.len() - 1].end_ms),
        (1_210, 1_270)
    );
    assert!(
        buckets
            .windows(2)
            .all(|pair| pair[0].end_ms == pair[1].start_ms)
    );
    for bucket in &buckets {
        let in_span = |found: &&Occurrence| {
            (bucket.start_ms..bucket.end_ms).contains(&found.last_seen_ms) && filter.admits(found)
        };
        let expected = all.iter().filter(in_span).count();
        assert_eq!(bucket.by_severity.values().sum::<usize>(), expected);
        let severities: BTreeSet<_> = bucket.by_severity.keys().collect();
        assert!(
            severities
                .iter()
                .all(|severity| filter.severities.contains(severity))
        );
    }
}
