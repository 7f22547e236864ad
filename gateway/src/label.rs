//! The labels of Prometheus and Alertmanager, and what they are called here.
//!
//! One table for both directions: alerts on their way in, and alerts, matchers and silences that are shown.

use std::{borrow::Cow, collections::BTreeMap};

/// The label that is the event's name.
pub(crate) const NAME: &str = "alertname";
/// The label that is the event's severity; as it was sent it is a dimension as well.
pub(crate) const SEVERITY: &str = "severity";

/// Labels that no dimension can be called like, and what they are called.
const RENAMED: [(&str, &str); 1] = [("name", "label_name")];
/// A prefix that tells a label from another one that is called like it.
const APART: &str = "label_";

/// The dimension of a label beside others.
pub(crate) fn dimension(label: &str, others: &BTreeMap<String, String>) -> String {
    let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == label);
    let mut key = renamed.map_or(label, |(_, ours)| ours).to_owned();
    while others.contains_key(&key) {
        key.insert_str(0, APART);
    }
    key
}

/// The field of the dimension of a label.
pub(crate) fn field(label: &str) -> String {
    format!("dimensions.{}", dimension(label, &BTreeMap::new()))
}

/// The label of a dimension.
pub(crate) fn of_dimension(key: &str) -> &str {
    let renamed = RENAMED.iter().find(|(_, ours)| *ours == key);
    renamed.map_or(key, |(theirs, _)| theirs)
}

/// The labels of dimensions.
pub(crate) fn of_dimensions(dimensions: BTreeMap<String, String>) -> BTreeMap<String, String> {
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

/// Whether a text is any number of [`APART`].
fn is_prefix(text: &str) -> bool {
    text.len().is_multiple_of(APART.len()) && APART.repeat(text.len() / APART.len()) == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lead_to_dimensions_and_back() {
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
                dimensions.insert(dimension(label, &dimensions), (*label).to_owned());
            }
            assert!(!dimensions.contains_key("name"), "{dimensions:?}");
            for (label, value) in of_dimensions(dimensions) {
                assert_eq!(label, value, "{labels:?}");
            }
        }
        assert_eq!(field("name"), "dimensions.label_name");
        assert_eq!(of_dimension("label_name"), "name");
        assert_eq!(of_dimension("host"), "host");
    }
}
