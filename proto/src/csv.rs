//! A list of an answer as CSV, RFC 4180: one row for each entry, one column for each of its fields.

use serde_json::Value;

use crate::json::plan::{Kind, MessageId, Plan};

/// What a spreadsheet takes a cell for that begins so: a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The entries of a list, in the JSON form of an answer, as a table with the fields' JSON names above. Lists
/// and objects in a cell stay JSON. None where the message has no such list.
pub fn table(plan: &Plan, message: MessageId, list: &str, answer: &Value) -> Option<String> {
    let Kind::Message(row) = plan.field(message, list)?.kind else {
        return None;
    };
    let columns: Vec<&str> = plan.messages[row]
        .fields
        .iter()
        .map(|field| &*field.json_name)
        .collect();
    let mut text = line(columns.iter().map(|name| quoted(name)));
    for entry in answer[list].as_array().into_iter().flatten() {
        text += &line(columns.iter().map(|name| cell(&entry[*name])));
    }
    Some(text)
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<_> = cells.collect();
    cells.join(",") + "\r\n"
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(FORMULA) => quoted(&format!("'{text}")),
        Value::String(text) => quoted(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => quoted(&value.to_string()),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::plan;

    #[test]
    fn cells_are_quoted_and_no_cell_is_a_formula() {
        let message = plan().by_name["bellwether.v1.GetNoiseResponse"];
        let rows = json!({"rows": [
            {"name": "a, \"b\"", "notificationCount": 3, "events": [{"name": "x"}]},
            {"name": "=1+1", "acknowledgedShare": 0.5},
        ]});
        let text = table(plan(), message, "rows", &rows).unwrap();
        let lines: Vec<_> = text.split_terminator("\r\n").collect();
        assert!(lines[0].starts_with("name,notificationCount,"), "{text}");
        assert!(lines[1].starts_with(r#""a, ""b""",3,"#), "{text}");
        assert!(lines[1].ends_with(r#","[{""name"":""x""}]""#), "{text}");
        assert!(lines[2].starts_with("'=1+1,,"), "{text}");
        assert_eq!(lines.len(), 3);
        assert_eq!(table(plan(), message, "by", &rows), None);
    }
}
