//! Detection of different documents that a mapping merges into one event; no I/O.

use std::collections::BTreeMap;

use bellwether_proto::cloud::Event;
use prost_types::{Value, value::Kind};

const MERGES_MAX: usize = 10;
const PLACES_MAX: usize = 3;

/// Returns a message for each event that has the id of an earlier event but was created from
/// different data. `root` is the name of the data.
pub fn find_merges(events: &[Event], root: &str) -> Vec<String> {
    let mut first = BTreeMap::new();
    let found = events.iter().enumerate().filter_map(|(at, event)| {
        let name = [&event.name, &event.r#type]
            .into_iter()
            .find(|it| !it.is_empty());
        let before = *first.entry((name, &event.dimensions)).or_insert(at);
        let mut places = Vec::new();
        collect_differences(
            event_data(&events[before]),
            event_data(event),
            root,
            &mut places,
        );
        (!places.is_empty()).then(|| {
            let places = places.join(", ");
            format!("events[{before}] and events[{at}] are the same event but differ in {places}")
        })
    });
    found.take(MERGES_MAX).collect()
}

fn event_data(event: &Event) -> Option<&Value> {
    event.metadata_fields.as_ref()?.fields.get("data")
}

fn collect_differences(
    one: Option<&Value>,
    other: Option<&Value>,
    path: &str,
    found: &mut Vec<String>,
) {
    let kind = |it: Option<&Value>| it.and_then(|it| it.kind.clone());
    if one == other || found.len() >= PLACES_MAX {
        return;
    }
    let (Some(Kind::StructValue(one)), Some(Kind::StructValue(other))) = (kind(one), kind(other))
    else {
        found.push(path.to_owned());
        return;
    };
    let mut keys: Vec<_> = one.fields.keys().chain(other.fields.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        collect_differences(one.fields.get(key), other.fields.get(key), &path, found);
    }
}

#[cfg(test)]
mod tests {
    use prost_types::Struct;

    use super::*;

    #[test]
    fn differing_documents_of_one_event_are_listed() {
        let event = |host: &str, severity: &str| {
            let value = |kind| Value { kind: Some(kind) };
            let object = |fields| value(Kind::StructValue(Struct { fields }));
            let labels = BTreeMap::from([(
                "severity".to_owned(),
                value(Kind::StringValue(severity.to_owned())),
            )]);
            let data = BTreeMap::from([("labels".to_owned(), object(labels))]);
            Event {
                name: "disk".into(),
                dimensions: [("host".to_owned(), host.to_owned())].into(),
                metadata_fields: Some(Struct {
                    fields: [("data".to_owned(), object(data))].into(),
                }),
                ..Event::default()
            }
        };
        let events = [
            event("a", "warning"),
            event("b", "critical"),
            event("a", "warning"),
            event("a", "critical"),
        ];
        let expected =
            "events[0] and events[3] are the same event but differ in item.labels.severity";
        assert_eq!(find_merges(&events, "item"), [expected]);
        let alone = ["events[0] and events[1] are the same event but differ in labels.severity"];
        assert_eq!(find_merges(&[event("a", "x"), event("a", "y")], ""), alone);
        assert!(find_merges(&events[..3], "item").is_empty());
    }
}
