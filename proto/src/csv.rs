//! The list of a response as CSV (RFC 4180): one row per entry, one column per field.

use serde_json::Value;

use crate::json::plan::{Kind, MessageId, Plan};
use bellwether_language::text::is_hidden;

/// Characters that start a formula in a spreadsheet. In some languages, full-width characters do as
/// well.
const FORMULA: [char; 12] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    '\u{2212}',
];

/// Renders a list of a response, given as JSON, as a table. The header contains the JSON names of
/// the fields. Lists and objects within a cell remain JSON. `None` if the message has no such list.
pub fn render_table(plan: &Plan, message: MessageId, list: &str, answer: &Value) -> Option<String> {
    let Kind::Message(row) = plan.field(message, list)?.kind else {
        return None;
    };
    let columns: Vec<&str> = plan.messages[row]
        .fields
        .iter()
        .map(|field| &*field.json_name)
        .collect();
    let mut text = csv_line(columns.iter().map(|name| quote_cell(name)));
    for entry in answer[list].as_array().into_iter().flatten() {
        text += &csv_line(columns.iter().map(|name| format_cell(&entry[*name])));
    }
    Some(text)
}

fn csv_line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<_> = cells.collect();
    cells.join(",") + "\r\n"
}

fn format_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if is_formula(text) => quote_cell(&format!("'{text}")),
        Value::String(text) => quote_cell(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => quote_cell(&value.to_string()),
    }
}

/// Whether a spreadsheet could interpret a text as a formula, even after leading invisible
/// characters.
fn is_formula(text: &str) -> bool {
    let is_skipped = |c: char| !FORMULA.contains(&c) && (is_hidden(c) || c.is_whitespace());
    text.trim_start_matches(is_skipped).starts_with(FORMULA)
}

fn quote_cell(text: &str) -> String {
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
    use crate::json::shared_plan;

    #[test]
    fn formulas_of_any_width_are_escaped() {
        let formulas = [
            "=1+1",
            "+1",
            "-1",
            "@a",
            "\t=1",
            "\n=1",
            "\u{ff1d}1\u{ff0b}1",
            "\u{ff0b}1",
            "\u{ff0d}1",
            "\u{ff20}a",
            "\u{2212}1",
            " =1",
            "\u{3000}\u{ff1d}1",
            "\u{200b}=1",
            "\u{feff}=1",
        ];
        for text in formulas {
            let shown = format_cell(&Value::from(text));
            assert!(shown.trim_start_matches('"').starts_with('\''), "{text:?}");
        }
        for text in ["1+1", "a=b", "", " a", "\u{ff11}"] {
            assert_eq!(format_cell(&Value::from(text)), text);
        }
    }

    #[test]
    fn table_quotes_cells_and_escapes_formulas() {
        let message = shared_plan().by_name["bellwether.v1.GetNoiseResponse"];
        let rows = json!({"rows": [
            {"name": "a, \"b\"", "notificationCount": 3, "events": [{"name": "x"}]},
            {"name": "=1+1", "acknowledgedShare": 0.5},
        ]});
        let text = render_table(shared_plan(), message, "rows", &rows).unwrap();
        let lines: Vec<_> = text.split_terminator("\r\n").collect();
        assert!(lines[0].starts_with("name,notificationCount,"), "{text}");
        assert!(lines[1].starts_with(r#""a, ""b""",3,"#), "{text}");
        assert!(lines[1].ends_with(r#","[{""name"":""x""}]""#), "{text}");
        assert!(lines[2].starts_with("'=1+1,,"), "{text}");
        assert_eq!(lines.len(), 3);
        assert_eq!(render_table(shared_plan(), message, "by", &rows), None);
    }
}
