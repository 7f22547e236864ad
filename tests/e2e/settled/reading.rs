//! Reading: paging, spans, warnings, times, hints, and deadlines.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bellwether_tests::{wire::Wire, world::World};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use super::{PUT, SEARCH, event, in_seconds, send, stored, with};

const PAGES_MAX: usize = 3_000;
/// Requests that repeat events, for each page that is read.
const REPEATS_PER_PAGE: usize = 4;

const ORDERS: [(&str, &str); 6] = [
    ("lastSeen", "SORT_ORDER_DESC"),
    ("lastSeen", "SORT_ORDER_ASC"),
    ("severity", "SORT_ORDER_DESC"),
    ("severity", "SORT_ORDER_ASC"),
    ("startTime", "SORT_ORDER_DESC"),
    ("startTime", "SORT_ORDER_ASC"),
];

/// Returns the ids of the occurrences on each page of a query.
async fn walk(wire: &Wire, query: &Value, size: usize) -> Vec<Vec<String>> {
    walk_during(&Semaphore::new(0), wire, query, size).await
}

/// Like [`walk`], while other tasks repeat events: each page permits some requests, so that their
/// number does not depend on the speed of the machine.
async fn walk_during(
    permits: &Semaphore,
    wire: &Wire,
    query: &Value,
    size: usize,
) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        permits.add_permits(REPEATS_PER_PAGE);
        let page = json!({"limit": size, "cursor": cursor});
        let query = with(query, &json!({"pageInput": page}));
        let answer = wire.ok(SEARCH, &json!({"query": query})).await;
        let results = answer["results"].as_array().cloned().unwrap_or_default();
        pages.push(results.iter().map(id).collect());
        if answer["pageInfo"]["hasNext"] != true {
            return pages;
        }
        assert!(pages.len() <= PAGES_MAX, "the walk does not end: {query}");
        let end = answer["pageInfo"]["endCursor"].as_str();
        end.expect("an end cursor").clone_into(&mut cursor);
    }
}

fn sorted_by(field: &str, order: &str) -> Value {
    json!({"sortBy": [{"byField": {"field": field, "order": order}}]})
}

fn timestamp_ms(item: &Value, field: &str) -> i64 {
    let text = item["occurrences"][0][field].as_str().expect("a text");
    text.parse().expect("a number")
}

fn id(item: &Value) -> String {
    let id = item["occurrences"][0]["id"].as_str();
    id.expect("an id").to_owned()
}

async fn search_events(wire: &Wire, query: &Value) -> Vec<Value> {
    let query = with(query, &json!({"pageInput": {"limit": 1_000}}));
    let answer = wire.ok(SEARCH, &json!({"query": query})).await;
    answer["results"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn equal_sort_values_are_ordered_by_start_and_id() {
    let world = World::start();
    let stamps = [-300, -200, -100].map(in_seconds);
    let things: Vec<_> = (0..60)
        .map(|at| {
            let stamp = &stamps[at / 5 % 3];
            let over = json!({"timestamp": stamp, "severity": 3 + at % 2});
            with(&event(&format!("t{at}")), &over)
        })
        .collect();
    let wires = world.wires();
    send(&wires[0], &things).await;
    let later = json!({"timestamp": in_seconds(-50)});
    let repeated: Vec<_> = things
        .iter()
        .step_by(3)
        .map(|it| with(it, &later))
        .collect();
    send(&wires[1], &repeated).await;
    for wire in wires {
        for (field, order) in ORDERS {
            let query = sorted_by(field, order);
            let key = |item: &Value| {
                let first = match field {
                    "severity" => i64::from(item.to_string().contains("SEVERITY_ERROR")),
                    _ => timestamp_ms(item, field),
                };
                (first, timestamp_ms(item, "startTime"), id(item))
            };
            let mut expected: Vec<_> = search_events(&wire, &query).await.iter().map(key).collect();
            assert_eq!(expected.len(), 60);
            expected.sort();
            if order == "SORT_ORDER_DESC" {
                expected.reverse();
            }
            let expected: Vec<_> = expected.into_iter().map(|(_, _, id)| id).collect();
            for size in [60, 7, 1] {
                let pages = walk(&wire, &query, size).await;
                let case = format!("{}: {field} {order} by {size}", wire.name());
                assert_eq!(pages.concat(), expected, "{case}");
            }
        }
    }
}

/// Repeats events as permitted, sometimes with another severity.
async fn repeat(
    wire: Wire,
    hosts: Vec<String>,
    permits: Arc<Semaphore>,
    repeated: Arc<AtomicUsize>,
) {
    const AT_ONCE: usize = 10;
    for turn in 0.. {
        let Ok(permit) = permits.acquire().await else {
            return;
        };
        permit.forget();
        let events = (turn * AT_ONCE..).take(AT_ONCE).map(|place| {
            let severity = json!({"severity": 1 + place / 7 % 5});
            with(&event(&hosts[place % hosts.len()]), &severity)
        });
        send(&wire, &events.collect::<Vec<_>>()).await;
        repeated.fetch_add(AT_ONCE, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paging_ends_and_misses_no_event_during_updates() {
    // Page sizes. Only the first ones are used for each order, unless more are requested.
    const SIZES: [usize; 17] = [
        1_000, 599, 64, 10, 250, 900, 700, 600, 400, 300, 200, 128, 100, 50, 33, 20, 1,
    ];
    let walks = std::env::var_os("BELLWETHER_WALKS");
    let walks = walks.map_or(30, |walks| {
        let walks = walks.to_str().and_then(|walks| walks.parse().ok());
        walks.expect("a number of walks")
    });
    let world = World::start();
    let wires = world.wires();
    let hosts: Vec<_> = (0..600).map(|at| format!("w{at}")).collect();
    let events: Vec<_> = hosts.iter().map(|host| event(host)).collect();
    send(&wires[0], &events).await;
    let by_start = sorted_by("startTime", "SORT_ORDER_ASC");
    let starts: Vec<_> = search_events(&wires[1], &by_start)
        .await
        .iter()
        .map(id)
        .collect();
    let all: BTreeSet<_> = starts.iter().collect();
    assert_eq!(all.len(), hosts.len());

    let permits = Arc::new(Semaphore::new(0));
    let repeated = Arc::new(AtomicUsize::new(0));
    let mut senders = JoinSet::new();
    for (number, own) in hosts.chunks(150).enumerate() {
        let wire = wires[number % wires.len()].clone();
        let (permits, repeated) = (Arc::clone(&permits), Arc::clone(&repeated));
        senders.spawn(repeat(wire, own.to_vec(), permits, repeated));
    }
    for number in 0..walks {
        let (field, order) = ORDERS[number % ORDERS.len()];
        let size = SIZES[number / ORDERS.len() % SIZES.len()];
        let wire = &wires[(number + number / ORDERS.len()) % wires.len()];
        let before = repeated.load(Ordering::Relaxed);
        let query = sorted_by(field, order);
        let pages = walk_during(&permits, wire, &query, size).await;
        let meanwhile = repeated.load(Ordering::Relaxed) - before;
        let case = format!(
            "{}: {field} {order} by {size}, {} pages, {meanwhile} repeated meanwhile",
            wire.name(),
            pages.len()
        );
        for page in &pages {
            let on_page: BTreeSet<_> = page.iter().collect();
            assert_eq!(on_page.len(), page.len(), "{case}: twice on a page");
            assert!(page.len() <= size, "{case}");
        }
        let mut shown = pages.concat();
        let seen: BTreeSet<_> = shown.iter().collect();
        let missed = all.difference(&seen).count();
        assert_eq!(missed, 0, "{case}: missed");
        if field == "startTime" {
            if order == "SORT_ORDER_DESC" {
                shown.reverse();
            }
            assert_eq!(shown, starts, "{case}: starts never move");
        }
    }
    permits.close();
    while let Some(ended) = senders.join_next().await {
        ended.expect("a sender");
    }
    let repeated = repeated.load(Ordering::Relaxed);
    assert!(repeated > hosts.len(), "only {repeated} were repeated");
}

#[tokio::test]
async fn backward_paging_mirrors_forward_paging() {
    let world = World::start();
    let events: Vec<_> = (0..95)
        .map(|at| with(&event(&format!("b{at}")), &json!({"severity": 1 + at % 5})))
        .collect();
    send(&world.wires()[0], &events).await;
    for wire in world.wires() {
        for (field, order) in ORDERS {
            let query = sorted_by(field, order);
            let forwards = walk(&wire, &query, 10).await;
            let last = json!({"pageInput": {"limit": 1_000}});
            let answer = wire
                .ok(SEARCH, &json!({"query": with(&query, &last)}))
                .await;
            let mut cursor = answer["pageInfo"]["endCursor"].clone();
            let mut backwards = Vec::new();
            loop {
                let page = json!({"limit": 10, "cursor": cursor, "direction": "BACKWARD"});
                let query = with(&query, &json!({"pageInput": page}));
                let answer = wire.ok(SEARCH, &json!({"query": query})).await;
                let results = answer["results"].as_array().cloned().unwrap_or_default();
                let ids = results
                    .iter()
                    .rev()
                    .map(|item| item["occurrences"][0]["id"].clone());
                backwards.extend(ids);
                if answer["pageInfo"]["hasNext"] != true {
                    break;
                }
                cursor = answer["pageInfo"]["startCursor"].clone();
            }
            let mut forwards: Vec<_> = forwards.concat().into_iter().map(Value::from).collect();
            // Backward paging starts on the last page.
            forwards.pop();
            forwards.reverse();
            assert_eq!(forwards, backwards, "{}: {field} {order}", wire.name());
        }
    }
}

#[tokio::test]
async fn frequency_has_exactly_the_requested_buckets() {
    let world = World::start();
    let ages = [-86_000, -40_000, -3_000, -500, -60, -3, -2, -1, 0];
    let events = ages.iter().enumerate().map(|(at, seconds)| {
        with(
            &event(&format!("f{at}")),
            &json!({"timestamp": in_seconds(*seconds)}),
        )
    });
    let events: Vec<_> = events.collect();
    send(&world.wires()[0], &events).await;
    let end: i64 = in_seconds(1).parse().expect("a number");
    for wire in world.wires() {
        for length_ms in [
            1,
            2,
            7,
            59,
            60,
            61,
            499,
            500,
            501,
            1_000,
            3_601_000,
            86_400_000,
            86_400_001,
            2_592_000_000,
        ] {
            for count in [1, 2, 3, 7, 24, 60, 499, 500] {
                let range = json!({"start": end - length_ms, "end": end});
                let request = json!({"query": {"timeRange": range}, "bucketCount": count});
                let case = format!("{}: {count} spans of {length_ms} ms", wire.name());
                let answer = match wire
                    .call("EventQueryService/EventFrequency", &request)
                    .await
                {
                    Ok(answer) => answer,
                    Err(refusal) => {
                        assert!(length_ms < count, "{case}: {refusal:?}");
                        assert_eq!(refusal.code, tonic::Code::InvalidArgument, "{case}");
                        assert!(
                            refusal.message.contains("bucketCount"),
                            "{case}: {refusal:?}"
                        );
                        continue;
                    }
                };
                let buckets = answer["buckets"].as_array().expect("buckets");
                assert_eq!(i64::try_from(buckets.len()), Ok(count), "{case}");
                let edge = |bucket: &Value, name: &str| -> i64 {
                    let text = bucket[name].as_str().unwrap_or("0");
                    text.parse().expect("a number")
                };
                assert_eq!(edge(&buckets[0], "start"), end - length_ms, "{case}");
                assert_eq!(edge(&buckets[buckets.len() - 1], "end"), end, "{case}");
                for pair in buckets.windows(2) {
                    assert_eq!(edge(&pair[0], "end"), edge(&pair[1], "start"), "{case}");
                }
                let in_range = |event: &Value| {
                    let stamp: i64 = event["timestamp"]
                        .as_str()
                        .expect("a text")
                        .parse()
                        .expect("a number");
                    (end - length_ms..end).contains(&stamp)
                };
                let expected = events.iter().filter(|event| in_range(event)).count();
                let counts = buckets
                    .iter()
                    .filter_map(|bucket| bucket["countBySeverity"].as_object());
                let total: i64 = counts
                    .flat_map(|counts| counts.values())
                    .filter_map(Value::as_i64)
                    .sum();
                assert_eq!(Ok(total), i64::try_from(expected), "{case}");
            }
        }
    }
}

fn warnings(answer: &Value) -> String {
    let members = answer.as_object().expect("an object");
    let inside = members.values().filter_map(|value| value.get("warnings"));
    let all: Vec<_> = members.get("warnings").into_iter().chain(inside).collect();
    all.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn unknown_query_field_warns_with_a_suggestion() {
    let world = World::start();
    for wire in world.wires() {
        let known = with(
            &event("a"),
            &json!({
                "dimensions": {"host": "a", "datacenter": "x", "severitz": "y"},
                "metadataFields": {"mount": "/", "usage": {"percent": 5}},
            }),
        );
        send(&wire, &[known]).await;
        for (at, (field, nearest)) in [
            ("serverity", "severity"),
            ("sumary", "summary"),
            ("lastseen", "lastSeen"),
            ("dimensions.hots", "dimensions.host"),
            ("datacentre", "datacenter"),
            ("metadata.mout", "metadata.mount"),
            ("metadata.usage.percant", "metadata.usage.percent"),
            // Existing fields cause no warning, even if they are similar to another field.
            ("severitz", ""),
            ("dimensions.severitz", ""),
            ("dimensions.host", ""),
            ("metadata.usage.percent", ""),
            ("severity", ""),
            // Not similar to any field.
            ("zebra", "none"),
            ("dimensions.quartz", "none"),
        ]
        .into_iter()
        .enumerate()
        {
            let clause = if field == "severity" {
                json!({"equals": {"field": field, "stringVal": "error"}})
            } else {
                json!({"not": {"clause": {"equals": {"field": field, "stringVal": "1"}}}})
            };
            let name = format!("{} {at}", wire.name());
            let draft = json!({"type": {"event": {"query": {"clause": clause}}}});
            let trigger = with(&draft, &json!({"name": name}));
            for (method, request) in [
                ("TriggerService/CreateTrigger", json!({"trigger": trigger})),
                ("TriggerService/UpdateTrigger", json!({"trigger": trigger})),
                ("TriggerService/TestTrigger", draft),
                ("RuleService/PreviewRule", json!({"triggerNames": [name]})),
            ] {
                let answer = wire.ok(method, &request).await;
                let warnings = warnings(&answer);
                let case = format!("{} {method} {field}: {warnings}", wire.name());
                let hint = match nearest {
                    "" => {
                        assert!(!warnings.contains(field), "{case}");
                        continue;
                    }
                    "none" => String::new(),
                    nearest => format!(": `{nearest}`?"),
                };
                let warning = format!("no event has a field `{field}`{hint}");
                assert!(warnings.contains(&warning), "{case}");
                assert!(nearest != "none" || !warnings.contains('?'), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn returned_times_are_accepted_as_input() {
    let world = World::start();
    for wire in world.wires() {
        let host = format!("{} times", wire.name());
        let stamp = in_seconds(-60);
        send(&wire, &[with(&event(&host), &json!({"timestamp": stamp}))]).await;
        let occurrence = stored(&wire, &host).await["occurrences"][0].clone();
        let ms: i64 = stamp.parse().expect("a number");
        let whole = |ms: i64| {
            let time = jiff::Timestamp::from_millisecond(ms).expect("a time");
            time.to_string()
        };
        for (case, from, to) in [
            (
                "as answered",
                occurrence["startTime"].clone(),
                occurrence["lastSeen"].clone(),
            ),
            ("a number", json!(ms), json!(ms)),
            ("RFC 3339", json!(whole(ms)), json!(whole(ms))),
            (
                "text of milliseconds",
                json!(stamp),
                json!((ms + 1).to_string()),
            ),
        ] {
            for field in ["startTime", "lastSeen", "timestamp"] {
                let clause = json!({"and": {"clauses": [
                    {"equals": {"field": "dimensions.host", "stringVal": host}},
                    {"greaterAndEquals": {"field": field, "value": from}},
                    {"lessAndEquals": {"field": field, "value": to}},
                ]}});
                let query = json!({"query": {"clause": clause}});
                let count = wire.ok("EventQueryService/CountEvents", &query).await;
                assert_eq!(count["count"], 1, "{}: {case}, {field}", wire.name());
                let outside = json!({"and": {"clauses": [
                    {"equals": {"field": "dimensions.host", "stringVal": host}},
                    {"greaterAndEquals": {"field": field, "value": (ms + 1).to_string()}},
                ]}});
                let query = json!({"query": {"clause": outside}});
                let count = wire.ok("EventQueryService/CountEvents", &query).await;
                assert_eq!(count["count"], 0, "{}: {case}, {field}", wire.name());
            }
        }
        let equal = json!({"and": {"clauses": [
            {"equals": {"field": "dimensions.host", "stringVal": host}},
            {"equals": {"field": "startTime", "stringVal": stamp}},
        ]}});
        let count = wire
            .ok(
                "EventQueryService/CountEvents",
                &json!({"query": {"clause": equal}}),
            )
            .await;
        assert_eq!(count["count"], 1, "{}", wire.name());
    }
}

#[tokio::test]
async fn errors_suggest_similar_names_and_state_length_limits() {
    let world = World::start();
    for wire in world.wires() {
        let clause = json!({"equals": {"field": "name", "stringVal": "x"}});
        let trigger = |name: &str, over: Value| {
            let query = json!({"name": name, "type": {"event": {"query": {"clause": clause}}}});
            json!({"trigger": with(&query, &over)})
        };
        for (case, method, request, numbers) in [
            (
                "a name",
                "TriggerService/CreateTrigger",
                trigger(&"n".repeat(101), json!({})),
                ["101", "100"],
            ),
            (
                "a name of letters that take two bytes",
                "TriggerService/CreateTrigger",
                trigger(&"ä".repeat(101), json!({})),
                ["101", "100"],
            ),
            (
                "a description",
                "TriggerService/CreateTrigger",
                trigger("a", json!({"description": "d".repeat(1_234)})),
                ["1234", "1000"],
            ),
            (
                "a tag",
                "TriggerService/CreateTrigger",
                trigger("b", json!({"tags": ["t".repeat(120)]})),
                ["120", "100"],
            ),
            (
                "tags",
                "TriggerService/CreateTrigger",
                trigger(
                    "c",
                    json!({"tags": (0..23).map(|at| format!("t{at}")).collect::<Vec<_>>()}),
                ),
                ["23", "20"],
            ),
        ] {
            let refusal = wire.refused(method, &request).await;
            let message = refusal.message.replace(',', "");
            for number in numbers {
                assert!(
                    message.contains(number),
                    "{}: {case}: {message}",
                    wire.name()
                );
            }
        }
        for (case, over, numbers) in [
            (
                "a summary",
                json!({"summary": "s".repeat(1_500)}),
                ["1500", "1024"],
            ),
            (
                "an event's name",
                json!({"name": "n".repeat(300)}),
                ["300", "256"],
            ),
            (
                "dimensions",
                json!({"dimensions": (0..70).map(|at| (format!("d{at}"), json!("x"))).collect::<serde_json::Map<_, _>>()}),
                ["70", "64"],
            ),
        ] {
            let event = with(&event("long"), &over);
            let answer = wire
                .ok(PUT, &json!({"detailedResponse": true, "events": [event]}))
                .await;
            let error = answer["failedEvents"][0]["error"]
                .to_string()
                .replace(',', "");
            for number in numbers {
                assert!(error.contains(number), "{}: {case}: {error}", wire.name());
            }
        }
        for (word, hint) in [
            ("critcal", Some("critical")),
            ("eror", Some("error")),
            ("banana", None),
            ("x", None),
        ] {
            let clause = json!({"equals": {"field": "severity", "stringVal": word}});
            let trigger = json!({"name": "hint", "type": {"event": {"query": {"clause": clause}}}});
            let refusal = wire
                .refused("TriggerService/CreateTrigger", &json!({"trigger": trigger}))
                .await;
            let message = refusal.message.to_lowercase();
            let asks = message.contains("did you mean") || message.contains("nearest");
            match hint {
                Some(hint) => assert!(message.contains(hint), "{}: {word}: {message}", wire.name()),
                None => assert!(!asks, "{}: {word}: {message}", wire.name()),
            }
        }
    }
    let rest = world.rest();
    for (member, hint) in [
        ("descripton", Some("description")),
        ("zzzz", None),
        ("quux", None),
    ] {
        let body = json!({"name": "x", member: "y"});
        let answer = rest.post("/v1/notification/triggers", &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        let text = answer.text();
        match hint {
            Some(hint) => assert!(text.contains(&format!("`{hint}`")), "{text}"),
            None => assert!(!text.to_lowercase().contains("did you mean"), "{text}"),
        }
    }
}

fn milliseconds(timeout: &str) -> Option<u128> {
    let (number, unit) = timeout.split_at_checked(timeout.len().checked_sub(1)?)?;
    let number: u128 = number.parse().ok()?;
    Some(match unit {
        "H" => number * 3_600_000,
        "M" => number * 60_000,
        "S" => number * 1_000,
        "m" => number,
        "u" => number / 1_000,
        "n" => number / 1_000_000,
        _ => return None,
    })
}

#[tokio::test]
async fn gateway_forwards_its_remaining_deadline() {
    use bellwether_tests::{
        process::{self, Service},
        rest::Rest,
        upstream::Upstream,
    };
    let upstream = Upstream::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = process::command(folder.path(), ["gateway", "--rest-listen", "127.0.0.1:0"]);
    gateway
        .arg("--backend")
        .arg(format!("http://{}", upstream.address()));
    gateway.env("BELLWETHER_GATEWAY_DEADLINE", "9s");
    let gateway = Service::start(gateway, &folder.path().join("log"));
    let rest = Rest::new(gateway.address("rest"), Some("key"));

    for path in ["/v1/notification/rules", "/v1/notification/deliveries"] {
        let answer = rest.get(path).await;
        assert_eq!(answer.status, 501, "unexpected response: {}", answer.text());
    }
    let timeouts = upstream.headers("grpc-timeout");
    assert!(timeouts.len() >= 2, "{timeouts:?}");
    for timeout in timeouts {
        let left = milliseconds(&timeout).unwrap_or_else(|| panic!("no time: {timeout:?}"));
        assert!((1_000..=9_000).contains(&left), "{timeout}");
    }
}
