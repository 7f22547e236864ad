//! Import of inhibition rules.

use serde_json::json;

use super::{
    super::{fields::Fields, imported::ImportOutput},
    condition::{Condition, FilterOrQuery, exists_condition},
    matcher::{self, ALERT},
};
use crate::error::ImportError;

const EQUAL_MAX: usize = 8;

pub(crate) fn import_inhibitions(
    fields: &mut Fields,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    for mut rule in fields.take_objects("inhibit_rules")? {
        let names = ["source_matchers", "source_match", "source_match_re"];
        let source = matcher::read_matchers(&mut rule, names, imported)?;
        let names = ["target_matchers", "target_match", "target_match_re"];
        let target = matcher::read_matchers(&mut rule, names, imported)?;
        let wanted = rule.take_text("name")?;
        let labels = rule.take_texts("equal")?;
        let path = rule.path.clone();
        rule.finish(imported);
        let mut equal = Vec::new();
        for label in labels {
            if let Some(field) = matcher::field_for_label(&label) {
                equal.push(json!({"source": field}));
            } else {
                let why = format!(
                    "the label `{label}` is excluded from events (`senders.replica_labels`)"
                );
                imported.record_omission(&format!("{path}.equal"), &why);
            }
        }
        if equal.is_empty() || equal.len() > EQUAL_MAX {
            let why = format!("an inhibition needs 1 to {EQUAL_MAX} labels in `equal`");
            imported.record_omission(&path, &why);
            continue;
        }
        if source.is_empty() || target.is_empty() {
            let why = "an inhibition needs matchers for its source and its target";
            imported.record_omission(&path, why);
            continue;
        }
        let side = |matchers: &[matcher::Matcher]| match matcher::combined_condition(matchers, &[])
        {
            found if found.is_open_ended() => Condition::all_of([exists_condition(ALERT), found]),
            found => found,
        };
        let (Ok(source), Ok(target)) = (side(&source).to_filter(), side(&target).to_filter())
        else {
            let why = "its matchers match nothing, or are too large";
            imported.record_omission(&path, why);
            continue;
        };
        let number = path.trim_end_matches(']').rsplit('[').next();
        let fallback = || format!("inhibition-{}", number.unwrap_or_default());
        let name = imported.unique_name("inhibition", &wanted.unwrap_or_else(fallback));
        let mut body = json!({
            "name": name, "description": format!("Alertmanager: {path}"), "enabled": true,
            "equal": equal,
        });
        for (side, written) in [("source", source), ("target", target)] {
            match written {
                FilterOrQuery::Filter(text) => body[format!("{side}Filter")] = json!(text),
                FilterOrQuery::Query(query) => body[side] = query,
            }
        }
        imported.add("inhibition", body);
    }
    Ok(())
}
