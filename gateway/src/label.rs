//! Maps labels of Prometheus and Alertmanager to fields, and fields to labels.
//!
//! Received and returned alerts, matchers and silences use the same mapping.

use std::{borrow::Cow, collections::BTreeMap};

pub(crate) const NAME: &str = "alertname";
/// Label for the event's severity; the original value is a dimension as well.
pub(crate) const SEVERITY: &str = "severity";

/// Labels whose names are reserved, and the dimensions that store them.
const RENAMED: [(&str, &str); 1] = [("name", "label_name")];
/// Prefix for a label whose dimension would conflict with another dimension.
const APART: &str = "label_";

pub(crate) fn from_label(label: &str, others: &BTreeMap<String, String>) -> String {
    let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == label);
    let mut key = renamed.map_or(label, |(_, ours)| ours).to_owned();
    while others.contains_key(&key) {
        key.insert_str(0, APART);
    }
    key
}

pub(crate) fn field_from_label(label: &str) -> String {
    format!("dimensions.{}", from_label(label, &BTreeMap::new()))
}

pub(crate) fn to_label(key: &str) -> &str {
    let renamed = RENAMED.iter().find(|(_, ours)| *ours == key);
    renamed.map_or(key, |(theirs, _)| theirs)
}

pub(crate) fn to_labels(dimensions: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let longest = |ours: &str| {
        let keys = dimensions.keys();
        let keys = keys.filter(|key| key.strip_suffix(ours).is_some_and(is_prefix));
        keys.max_by_key(|key| key.len()).cloned()
    };
    let renamed: Vec<_> = RENAMED
        .iter()
        .filter_map(|(theirs, ours)| Some((*theirs, longest(ours)?)))
        .collect();
    let labels = dimensions.into_iter().map(|(key, value)| {
        let found = renamed.iter().find(|(_, ours)| *ours == key);
        let label = found.map_or(Cow::Borrowed(&*key), |(theirs, _)| Cow::Borrowed(*theirs));
        (label.into_owned(), value)
    });
    labels.collect()
}

fn is_prefix(text: &str) -> bool {
    text.len().is_multiple_of(APART.len()) && APART.repeat(text.len() / APART.len()) == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip_through_dimensions() {
        for labels in [
            &["host", "severity"][..],
            &["name"],
            &["name", "label_name"],
            &["names", "label_names"],
        ] {
            let mut dimensions = BTreeMap::new();
            let mut sorted = labels.to_vec();
            sorted.sort_unstable();
            for label in &sorted {
                dimensions.insert(from_label(label, &dimensions), (*label).to_owned());
            }
            assert!(!dimensions.contains_key("name"), "{dimensions:?}");
            for (label, value) in to_labels(dimensions) {
                assert_eq!(label, value, "{labels:?}");
            }
        }
        assert_eq!(field_from_label("name"), "dimensions.label_name");
        assert_eq!(to_label("label_name"), "name");
        assert_eq!(to_label("host"), "host");
    }
}
