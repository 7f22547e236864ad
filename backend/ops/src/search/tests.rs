//! Searches compared with a plain sort of all occurrences.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use super::*;
use crate::{
    clock::ManualClock,
    domain::{Clause, EventId, Literal, Query, RecordId, Severity, Status},
    matching::compile,
    store::Lane,
    testing::walks::walk_length,
};

async fn search(store: &Store, request: &SearchRequest) -> Result<SearchPage, Error> {
    search_occurrences(store, &ManualClock::starting_at(0), request).await
}

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
        evaluation: None,
        received_ms: None,
        reopened: None,
        earlier: Vec::new(),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: None,
        reports: crate::domain::Reports::default(),
        flapping: Vec::new(),
        assignee: None,
        trace: None,
        acknowledged_until_ms: None,
        acknowledged_severity: None,
        enriched: Vec::new(),
        age_shift_ms: 0,
        informed: Vec::new(),
    }
}

async fn store_occurrences(count: u32) -> (Store, Vec<Occurrence>) {
    let store = Store::in_memory();
    let occurrences: Vec<_> = (0..count).map(occurrence).collect();
    let mut changes = store.new_changes();
    for occurrence in &occurrences {
        changes.insert(occurrence);
    }
    store.apply(Lane::Bulk, changes).await.unwrap();
    (store, occurrences)
}

fn place(occurrence: &Occurrence, sort: SortField) -> (i64, i64, String) {
    let first = match sort {
        SortField::LastSeen => occurrence.last_seen_ms,
        SortField::StartTime => 0,
        SortField::Severity => occurrence.severity as i64,
    };
    (first, occurrence.start_ms, occurrence.id().to_string())
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
async fn pages_in_any_order_contain_every_occurrence_once() {
    let (store, all) = store_occurrences(300).await;
    for sort in [
        SortField::LastSeen,
        SortField::StartTime,
        SortField::Severity,
    ] {
        for (ascending, filter) in [true, false]
            .into_iter()
            .flat_map(|ascending| filters().into_iter().map(move |filter| (ascending, filter)))
        {
            let mut expected: Vec<_> = all.iter().filter(|found| filter.matches(found)).collect();
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
async fn cursor_is_valid_only_for_its_query() {
    let (store, _) = store_occurrences(20).await;
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
async fn count_matches_the_filter() {
    let (store, all) = store_occurrences(300).await;
    for filter in filters() {
        let expected = all.iter().filter(|found| filter.matches(found)).count();
        assert_eq!(count_matches(&store, &filter).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn time_buckets_are_contiguous_and_count_each_occurrence_once() {
    let (store, all) = store_occurrences(300).await;
    let filter = Filter {
        severities: vec![Severity::Error, Severity::Info],
        ..Filter::default()
    };
    let buckets = count_by_bucket(&store, &filter, (1_210, 1_270), 7)
        .await
        .unwrap();
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
            (bucket.start_ms..bucket.end_ms).contains(&found.last_seen_ms) && filter.matches(found)
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

/// Repeats a quarter of the events until stopped, as a sender would. Each repeat is later than all
/// previous ones, and some change the severity.
async fn repeat(
    store: Store,
    quarter: Vec<RecordId>,
    now_ms: Arc<AtomicI64>,
    stop: Arc<AtomicBool>,
) {
    for (turn, key) in quarter.iter().cycle().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let stored = store
            .get::<Occurrence>(key.to_bytes().into())
            .await
            .unwrap()
            .unwrap();
        let mut next = stored.value.clone();
        next.last_seen_ms = now_ms.fetch_add(1, Ordering::Relaxed);
        next.severity = Severity::ALL[(turn / 7 + key.to_bytes()[15] as usize) % 5];
        next.count += 1;
        let mut changes = store.new_changes();
        changes.update(&stored, &next);
        store.apply(Lane::Bulk, changes).await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn paging_during_writes_ends_and_misses_no_occurrence() {
    let (store, all) = store_occurrences(600).await;
    let everything: BTreeSet<_> = all.iter().map(|occurrence| occurrence.key).collect();
    let (now_ms, stop) = (
        Arc::new(AtomicI64::new(2_000)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut senders = JoinSet::new();
    let keys: Vec<_> = everything.iter().copied().collect();
    for quarter in keys.chunks(150) {
        let (now_ms, stop) = (Arc::clone(&now_ms), Arc::clone(&stop));
        senders.spawn(repeat(store.clone(), quarter.to_vec(), now_ms, stop));
    }
    let sorts = [
        SortField::LastSeen,
        SortField::StartTime,
        SortField::Severity,
    ];
    let sizes = [
        1_000, 900, 700, 600, 599, 400, 300, 250, 200, 128, 100, 64, 50, 33, 20, 10, 1,
    ];
    for walk in 0..usize::try_from(walk_length("BELLWETHER_SEARCH_WALKS")).unwrap() {
        let request = SearchRequest {
            sort: sorts[walk % 3],
            ascending: walk / 3 % 2 == 0,
            limit: sizes[walk / 6 % sizes.len()],
            ..Default::default()
        };
        let (mut seen, mut shown) = (BTreeSet::new(), 0);
        let mut page = request.clone();
        let mut starts = Vec::new();
        loop {
            let found = search(&store, &page).await.unwrap();
            let on_page: BTreeSet<_> = found.occurrences.iter().map(|it| it.key).collect();
            assert_eq!(on_page.len(), found.occurrences.len(), "{page:?}");
            shown += on_page.len();
            starts.extend(found.occurrences.iter().map(|it| place(it, request.sort)));
            seen.extend(on_page);
            if !found.has_next {
                break;
            }
            assert!(shown < 100_000, "the search does not end: {request:?}");
            page.cursor = found.end_cursor;
        }
        assert_eq!(seen, everything, "{request:?}");
        if request.sort == SortField::StartTime {
            if !request.ascending {
                starts.reverse();
            }
            assert!(starts.is_sorted() && starts.len() == 600, "{request:?}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = senders.join_next().await {
        ended.unwrap();
    }
    assert!(
        now_ms.load(Ordering::Relaxed) > 2_600,
        "nothing was repeated meanwhile"
    );
}

#[tokio::test]
async fn occurrences_moved_during_paging_come_last() {
    let (store, all) = store_occurrences(10).await;
    let mut request = SearchRequest {
        limit: 4,
        ..Default::default()
    };
    let first = search(&store, &request).await.unwrap();
    let last_of_all = all
        .iter()
        .min_by_key(|it| place(it, SortField::LastSeen))
        .unwrap();
    let key = last_of_all.key;
    let stored = store
        .get::<Occurrence>(key.to_bytes().into())
        .await
        .unwrap()
        .unwrap();
    let mut next = stored.value.clone();
    next.last_seen_ms = 9_000;
    let mut changes = store.new_changes();
    changes.update(&stored, &next);
    store.apply(Lane::Bulk, changes).await.unwrap();
    let mut rest = Vec::new();
    request.cursor = first.end_cursor;
    loop {
        let found = search(&store, &request).await.unwrap();
        rest.extend(found.occurrences.iter().map(|it| it.key));
        if !found.has_next {
            break;
        }
        request.cursor = found.end_cursor;
    }
    assert_eq!((rest.len(), rest.last()), (6, Some(&key)));
}

#[tokio::test]
async fn time_range_is_split_into_the_requested_bucket_count() {
    let (store, _) = store_occurrences(3).await;
    for (length_ms, count) in [(10, 7), (499, 498), (86_400_001, 500), (7, 7), (1, 1)] {
        let span = (1_000, 1_000 + length_ms);
        let buckets = count_by_bucket(&store, &Filter::default(), span, count)
            .await
            .unwrap();
        assert_eq!(buckets.len(), count);
        assert!(buckets.iter().all(|it| it.end_ms > it.start_ms));
        assert_eq!((buckets[0].start_ms, buckets[count - 1].end_ms), span);
    }
    let Err(Error::Invalid(violations)) =
        count_by_bucket(&store, &Filter::default(), (5, 8), 4).await
    else {
        panic!("3 ms were spread over 4 spans");
    };
    assert_eq!(violations[0].field, "bucketCount");
}

type Named = fn(&Occurrence) -> Option<String>;

#[tokio::test]
async fn group_counts_match_plain_counts_and_report_incompleteness() {
    use crate::matching::field::Field;

    let (store, occurrences) = store_occurrences(300).await;
    let clock = ManualClock::starting_at(0);
    let filter = Filter {
        statuses: vec![Status::Open, Status::Suppressed],
        ..Filter::default()
    };
    let meant = || occurrences.iter().filter(|it| filter.matches(it));
    let fields: [(Field, Named); 5] = [
        (Field::Severity, |it| Some(it.severity.as_str().to_owned())),
        (Field::Status, |it| Some(it.status.as_str().to_owned())),
        (Field::Acknowledged, |it| Some(it.acknowledged.to_string())),
        (Field::Either("host".to_owned()), |it| {
            it.dimensions.get("host").cloned()
        }),
        (Field::Dimension("env".to_owned()), |_| None),
    ];
    for (field, named) in fields {
        let mut plain: BTreeMap<Option<String>, usize> = BTreeMap::new();
        for occurrence in meant() {
            *plain.entry(named(occurrence)).or_default() += 1;
        }
        let found = group_occurrences(&store, &clock, &filter, &field)
            .await
            .unwrap();
        let size = |group: &Group| group.by_severity.values().sum::<usize>();
        let sizes: Vec<_> = found.all.iter().map(size).collect();
        assert!(sizes.is_sorted_by(|one, other| one >= other), "{field:?}");
        let grouped = found.all.iter().map(|it| (it.value.clone(), size(it)));
        assert_eq!(grouped.collect::<BTreeMap<_, _>>(), plain, "{field:?}");
        assert_eq!((found.counted, found.is_complete), (meant().count(), true));
    }

    let (store, _) = store_occurrences(20_001).await;
    let all = Filter::default();
    let name = group_occurrences(&store, &clock, &all, &Field::Name)
        .await
        .unwrap();
    assert_eq!((name.counted, name.is_complete), (20_001, true));
    let hurried = Hurried::default();
    let name = group_occurrences(&store, &hurried, &all, &Field::Name)
        .await
        .unwrap();
    assert!(
        name.counted < 20_001 && !name.is_complete,
        "{}",
        name.counted
    );
    let severity = group_occurrences(&store, &hurried, &all, &Field::Severity)
        .await
        .unwrap();
    assert_eq!((severity.counted, severity.is_complete), (20_001, true));
}

/// A clock that advances one second per read.
#[derive(Debug, Default)]
struct Hurried(AtomicI64);

#[async_trait::async_trait]
impl Clock for Hurried {
    fn now_ms(&self) -> i64 {
        0
    }

    fn elapsed(&self) -> Duration {
        let reads = self.0.fetch_add(1, Ordering::Relaxed);
        Duration::from_secs(reads.try_into().unwrap())
    }

    async fn wait_until(&self, _at_ms: i64) {}
}

#[tokio::test]
async fn page_is_filled_unless_the_time_limit_is_reached() {
    let store = Store::in_memory();
    let numbers: Vec<u32> = (0..21_001).collect();
    for some in numbers.chunks(1_000) {
        let mut changes = store.new_changes();
        for number in some {
            let mut occurrence = occurrence(*number);
            occurrence.last_seen_ms = i64::from(*number);
            let key = if *number == 0 { "pod" } else { "pods" };
            occurrence.dimensions.insert(key.into(), "p-1".into());
            changes.insert(&occurrence);
        }
        store.apply(Lane::Bulk, changes).await.unwrap();
    }
    let clause = Clause::Equals("pod".into(), Literal::Text("p-1".into()));
    let request = SearchRequest {
        filter: Filter {
            query: Some(compile(&Query { clause }).unwrap()),
            ..Filter::default()
        },
        limit: 10,
        ..SearchRequest::default()
    };
    let found = search(&store, &request).await.unwrap();
    assert_eq!((found.occurrences.len(), found.has_next), (1, false));
    let hurried = search_occurrences(&store, &Hurried::default(), &request)
        .await
        .unwrap();
    assert!(hurried.occurrences.is_empty() && hurried.has_next);
    let mut next = SearchRequest {
        cursor: hurried.end_cursor,
        ..request
    };
    loop {
        let page = search_occurrences(&store, &Hurried::default(), &next)
            .await
            .unwrap();
        assert!(
            !page.has_next || page.end_cursor != next.cursor,
            "the search makes progress"
        );
        if !page.occurrences.is_empty() {
            break;
        }
        assert!(page.has_next, "it is found before the end");
        next.cursor = page.end_cursor;
    }
}
