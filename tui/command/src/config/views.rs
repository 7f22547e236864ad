//! The sections `[views.NAME]`: the user's views of events.

use std::path::Path;

use bellwether_tui::View;
use toml::{Table, Value};

use super::ConfigError;

pub(super) const SECTION: &str = "views";
const MOST: usize = 50;

pub(super) fn parse_views(table: Option<Value>, path: &Path) -> Result<Vec<View>, ConfigError> {
    let refuse = |key: &str, message: &str| {
        let path = path.display();
        ConfigError(format!("{key} (in {path}): {message}"))
    };
    let views = match table {
        None => return Ok(Vec::new()),
        Some(Value::Table(views)) => views,
        Some(_) => return Err(refuse(SECTION, "expected sections such as [views.night]")),
    };
    if views.len() > MOST {
        return Err(refuse(SECTION, &format!("more than {MOST}")));
    }
    let read = views.into_iter().map(|(name, value)| {
        let own = format!("{SECTION}.{name}");
        match value {
            Value::Table(table) => parse_view(name, table)
                .map_err(|(key, message)| refuse(&format!("{own}.{key}"), message)),
            _ => Err(refuse(&own, "expected a section with `filter`")),
        }
    });
    read.collect()
}

/// Parses a view. An error includes the invalid key.
fn parse_view(name: String, table: Table) -> Result<View, (String, &'static str)> {
    let mut view = View {
        name,
        ..View::default()
    };
    for (key, value) in table {
        let message = match (key.as_str(), value) {
            ("filter", Value::String(text)) => {
                view.filter = text;
                continue;
            }
            ("sort", Value::String(text)) if View::SORTS.contains(&text.as_str()) => {
                view.sort = text;
                continue;
            }
            ("group_by", Value::String(text)) => {
                view.group_by = text;
                continue;
            }
            ("ascending", Value::Boolean(flag)) => {
                view.ascending = flag;
                continue;
            }
            ("includes_closed", Value::Boolean(flag)) => {
                view.includes_closed = flag;
                continue;
            }
            ("columns", Value::Array(titles)) if titles.iter().all(Value::is_str) => {
                let titles = titles.iter().filter_map(Value::as_str);
                view.columns = titles.map(str::to_owned).collect();
                continue;
            }
            ("sort", _) => "expected \"lastSeen\", \"startTime\" or \"severity\"",
            ("filter" | "group_by", _) => "expected a string",
            ("ascending" | "includes_closed", _) => "expected true or false",
            ("columns", _) => "expected a list of column titles, such as [\"Seen\", \"Summary\"]",
            _ => {
                "unknown setting; expected one of filter, sort, ascending, includes_closed, \
                 group_by, columns"
            }
        };
        return Err((key, message));
    }
    Ok(view)
}
