//! Labels of a thread, for receivers that distinguish alerts by all their labels.

use std::collections::BTreeMap;

use crate::domain::{Content, hold::SharedValue};

const NAME: &str = "alertname";
const THREAD: &str = "thread";

/// Returns the labels, which are the same in every message of a thread regardless of changes of its
/// events.
pub(super) fn labels(content: &Content, thread_id: String) -> BTreeMap<String, String> {
    let occurrence = &content.occurrence;
    let mut labels = BTreeMap::from([(THREAD.to_owned(), thread_id)]);
    let (name, pairs): (&str, Vec<(&str, &str)>) = match (&content.digest, &content.group) {
        (Some(_), _) => ("digest", Vec::new()),
        (None, Some(group)) => {
            let shared = group.by.iter().filter_map(shared_label).collect();
            (&content.rule.name, shared)
        }
        (None, None) => {
            let dimensions = occurrence.dimensions.iter();
            let dimensions = dimensions.map(|(key, value)| (&**key, &**value)).collect();
            (&occurrence.name, dimensions)
        }
    };
    labels.insert(NAME.to_owned(), name.to_owned());
    for (key, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        let mut label = to_label_name(key);
        while labels.contains_key(&label) {
            label.push('_');
        }
        labels.insert(label, value.to_owned());
    }
    labels
}

fn shared_label((field, value): &SharedValue) -> Option<(&str, &str)> {
    let inside = field.strip_prefix("dimensions.");
    let inside = inside.or_else(|| field.strip_prefix("metadata."));
    Some((inside.unwrap_or(field), value.as_deref()?))
}

/// Converts a name to a valid Prometheus label name: ASCII letters, digits and `_`, not starting
/// with a digit.
fn to_label_name(key: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let label: String = key.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if label.starts_with(|c: char| c.is_ascii_digit()) || label.is_empty() {
        return format!("_{label}");
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_contain_only_characters_prometheus_accepts() {
        for (key, expected) in [
            ("host", "host"),
            ("k8s.pod-name", "k8s_pod_name"),
            ("1st", "_1st"),
            ("größe", "gr__e"),
            ("", "_"),
        ] {
            assert_eq!(to_label_name(key), expected, "{key}");
        }
    }
}
