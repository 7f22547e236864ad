//! The content of a draft, and its differences from the stored version, in the words of the form.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Input;
use crate::{
    data::{Kind, Object, get_value},
    document::diff_lines,
    kind::{self, FieldKind, FieldSpec},
    theme::Token,
};

const NONE: &str = "none";
const SEPARATOR: &str = " · ";

/// Describes a new resource, or the changes to a stored one: a line for each changed field, as
/// before → after. Secrets are masked.
pub(crate) fn describe_changes(before: Option<&Object>, after: &Object) -> Vec<(Token, String)> {
    let after = kind::with_masked_secrets(after);
    let before = before.map(kind::with_masked_secrets);
    let mut brief = Vec::new();
    let mut lines = Vec::new();
    for spec in kind::spec(after.kind).fields {
        if spec.kind == FieldKind::Section || spec.path == "name" {
            continue;
        }
        let [was, is] =
            [before.as_ref(), Some(&after)].map(|it| it.and_then(|it| field_words(spec, it)));
        match (was, is) {
            (was, is) if was == is => {}
            (None, Some(is)) if before.is_none() && !is.contains('\n') => {
                brief.push(format!("{} {is}", spec.label));
            }
            (was, is) => lines.extend(describe_change(spec.label, was, is)),
        }
    }
    let others = other_paths(before.as_ref(), &after);
    for path in &others {
        let [was, is] = [before.as_ref(), Some(&after)].map(|object| {
            let value = object.and_then(|it| get_value(&it.json, path));
            value.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
        });
        match (was, is) {
            (was, is) if was == is => {}
            (None, Some(is)) if before.is_none() => brief.push(format!("{path} {is}")),
            (was, is) => lines.extend(describe_change(path, was, is)),
        }
    }
    if !brief.is_empty() {
        lines.insert(0, (Token::Text, brief.join(SEPARATOR)));
    }
    if lines.is_empty() && before.is_some() {
        let words = "No changes to the stored version.";
        lines.push((Token::Dim, words.to_owned()));
    }
    lines
}

fn describe_change(label: &str, was: Option<String>, is: Option<String>) -> Vec<(Token, String)> {
    let is_long = |text: &Option<String>| text.as_ref().is_some_and(|it| it.contains('\n'));
    if is_long(&was) || is_long(&is) {
        let [was, is] = [was, is].map(Option::unwrap_or_default);
        let title = (Token::Title, label.to_owned());
        return std::iter::once(title)
            .chain(diff_lines(&was, &is, 1))
            .collect();
    }
    let [was, is] = [was, is].map(|it| it.unwrap_or_else(|| NONE.to_owned()));
    vec![(Token::Text, format!("{label}  {was} → {is}"))]
}

/// Returns the value of a field as the form shows it; `None` if it is unset or does not apply.
fn field_words(spec: &FieldSpec, object: &Object) -> Option<String> {
    if !spec.only.is_empty() && spec.only != object.type_word() {
        return None;
    }
    let value = get_value(&object.json, spec.path);
    let input = Input::read(spec, value);
    let text = match &input {
        Input::Text(field) => field.text().trim_end().to_owned(),
        Input::Toggle(on) => {
            value?;
            if *on { "yes" } else { "no" }.to_owned()
        }
        Input::Choice(at) => {
            let choice = spec
                .kind
                .choice_names()
                .get(*at)
                .copied()
                .unwrap_or_default();
            // The first choice is the default and is not shown, except for the type of a
            // destination.
            let is_shown = *at > 0 || matches!(value, Some(Value::Object(_)));
            if is_shown { choice } else { "" }.to_owned()
        }
        Input::Names(names) => names.join(", "),
        Input::Clause(_) if value.is_none() => String::new(),
        Input::Clause(clause) => clause.describe(),
        Input::Section(_) => String::new(),
    };
    Some(text).filter(|it| !it.is_empty())
}

/// Returns the paths of set values that have no field in the form.
fn other_paths(before: Option<&Object>, after: &Object) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for object in before.into_iter().chain([after]) {
        add_leaves(after.kind, &object.json, "", &mut paths);
    }
    paths
}

fn add_leaves(kind: Kind, value: &Value, path: &str, into: &mut BTreeSet<String>) {
    let fields = kind::spec(kind).fields.iter();
    // Continues below `type`, because it contains the fields of a destination's type.
    if path != "type" && fields.clone().any(|spec| spec.path == path) {
        return;
    }
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            for (name, value) in inner {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                add_leaves(kind, value, &path, into);
            }
        }
        Value::Object(_) | Value::Null => {}
        _ => {
            into.insert(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_rule(json: Value) -> Object {
        let kind = Kind::Rule;
        Object { kind, json }
    }

    fn line_texts(before: Option<&Object>, after: &Object) -> Vec<String> {
        let lines = describe_changes(before, after).into_iter();
        lines.map(|(_, line)| line).collect()
    }

    #[test]
    fn new_resource_is_described_without_defaults() {
        let new = sample_rule(json!({
            "name": "night", "enabled": true, "triggerNames": ["disk-full", "cpu"],
            "destinationNames": [], "message": "",
        }));
        assert_eq!(
            line_texts(None, &new),
            ["Enabled yes · Triggers disk-full, cpu"]
        );
    }

    #[test]
    fn changed_fields_are_shown_as_before_and_after() {
        let before = sample_rule(json!({"name": "night", "enabled": true, "delay": "300s"}));
        let after = sample_rule(json!({
            "name": "night", "enabled": false, "delay": "600s", "message": "one\ntwo",
            "newer": {"limit": 3},
        }));
        let expected = [
            "Enabled  yes → no",
            "Message",
            "+ one",
            "+ two",
            "Delay  5m → 10m",
            "newer.limit  none → 3",
        ];
        assert_eq!(line_texts(Some(&before), &after), expected);
        let same = ["No changes to the stored version."];
        assert_eq!(line_texts(Some(&after), &after), same);
    }

    #[test]
    fn typed_secrets_are_masked_in_changes() {
        let webhook = |token: &str| {
            let auth = json!({"bearer": {"token": token}});
            let json = json!({"name": "hook", "type": {"webhook": {"url": "https://x.example", "auth": auth}}});
            let kind = Kind::Destination;
            Object { kind, json }
        };
        let new = line_texts(None, &webhook("s3cret")).join("\n");
        assert!(
            new.starts_with("Type webhook · URL https://x.example"),
            "{new}"
        );
        assert!(!new.contains("s3cret"), "{new}");
        let changed = line_texts(Some(&webhook("********")), &webhook("s3cret"));
        assert_eq!(changed, ["Bearer token  ******** → ••••••••"]);
    }
}
