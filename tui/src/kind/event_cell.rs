//! The cell that identifies an event wherever it is listed: severity, name, host and summary.

use bellwether_proto::v1::Delivery;

use super::{Cell, Column, HOST, Key, RenderContext};
use crate::{
    data::{EventRow, Label, Object, Severity, Sign},
    document::{Span, span},
    text,
    theme::Token,
};

/// Minimum columns of a cell with the word of the severity rather than only its sign.
const WORDS: usize = 56;
/// Columns of a line in a dialog at the smallest usual size.
const DIALOG: usize = 66;
const NAME: usize = 20;
const HOST_CELLS: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCell {
    pub(crate) severity: Severity,
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) summary: String,
}

impl EventCell {
    /// Returns the cell of a resource about an event: a response or a pending notification.
    pub(crate) fn from_object(around: &dyn RenderContext, object: &Object) -> Self {
        Self {
            severity: severity(object),
            name: object.text("eventName").to_owned(),
            host: around.host_text(object),
            summary: summary(object),
        }
    }

    pub(crate) fn from_row(row: &EventRow, host_field: &str) -> Self {
        Self {
            severity: row.severity,
            name: row.name.to_string(),
            host: row.dimension(host_field).unwrap_or_default(),
            summary: row.summary.to_string(),
        }
    }

    /// Returns the cell of a delivery, which has no summary.
    pub(crate) fn from_delivery(delivery: &Delivery, host_field: &str) -> Self {
        let dimensions = &delivery.dimensions;
        let host = dimensions.get(host_field);
        let host = host.or_else(|| dimensions.values().next());
        Self {
            severity: delivery.severity(),
            name: delivery.event_name.clone(),
            host: host.cloned().unwrap_or_default(),
            summary: String::new(),
        }
    }

    /// Returns the cell as spans of exactly this width. The summary gets the width that the name
    /// and the host leave.
    pub(crate) fn spans(&self, cells: usize) -> Vec<Span> {
        let severity = if cells >= WORDS {
            format!("{} {:<8} ", self.severity.symbol(), self.severity.label())
        } else {
            format!("{} ", self.severity.symbol())
        };
        let [name, host, summary] = if self.summary.is_empty() {
            widths_without_summary(cells)
        } else {
            column_widths(cells)
        };
        let shown = pad_to_width(&self.name, name);
        let gap = name + 1 - text::cell_width(shown.trim_end());
        vec![
            span(self.severity.into(), &severity),
            span(Token::Link, shown.trim_end()),
            span(Token::Text, &" ".repeat(gap)),
            span(
                Token::Title,
                &format!("{} ", pad_to_width(&self.host, host)),
            ),
            span(Token::Text, &pad_to_width(&self.summary, summary)),
        ]
    }

    pub(crate) fn column_titles(cells: usize, host_field: &str) -> String {
        let [name, host, summary] = column_widths(cells);
        let severity = if cells >= WORDS { "Severity   " } else { "  " };
        let host_title = if host_field == "host" {
            HOST
        } else {
            host_field
        };
        let [name, host, summary] = [("Event", name), (host_title, host), ("Summary", summary)]
            .map(|(title, cells)| pad_to_width(title, cells));
        format!("{severity}{name} {host} {summary}")
    }

    /// Returns the name and the host; empty for a digest.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name, self.host).trim().to_owned()
    }

    /// Returns the cell as a line of a dialog.
    pub(crate) fn line(&self) -> String {
        self.text(DIALOG).trim_end().to_owned()
    }

    pub(crate) fn text(&self, cells: usize) -> String {
        let spans = self.spans(cells);
        spans.iter().map(|span| span.text.as_str()).collect()
    }
}

fn column_widths(cells: usize) -> [usize; 3] {
    let severity = if cells >= WORDS { 11 } else { 2 };
    let spare = cells.saturating_sub(severity + 2);
    let name = NAME.min(spare * 3 / 10);
    let host = HOST_CELLS.min(spare / 4);
    [name, host, spare.saturating_sub(name + host)]
}

/// Returns the widths of a name and a host that share the width.
fn widths_without_summary(cells: usize) -> [usize; 3] {
    let severity = if cells >= WORDS { 11 } else { 2 };
    let spare = cells.saturating_sub(severity + 2);
    let name = spare * 6 / 10;
    [name, spare - name, 0]
}

/// Cleans a text, and truncates or pads it to this width.
pub(crate) fn pad_to_width(words: &str, cells: usize) -> String {
    let words = text::clean_text(words);
    let shown = text::fit_to_width(&words, cells);
    let rest = cells.saturating_sub(text::cell_width(&shown));
    format!("{shown}{}", " ".repeat(rest))
}

pub(crate) fn severity(object: &Object) -> Severity {
    Severity::from_str_name(object.text("severity")).unwrap_or_default()
}

/// Returns the summary, else the name; for a digest, also the number of messages.
pub(crate) fn summary(object: &Object) -> String {
    let words = match object.text("summary") {
        "" => object.text("eventName"),
        summary => summary,
    };
    match object.number("messageCount") {
        Some(count) if count > 1 => format!("{count} messages: {words}"),
        _ => words.to_owned(),
    }
}

// The columns of lists of resources about events, in the order of the cell.
pub(super) const SEVERITY: Column<Object> =
    Column::new("Severity", 10, 0, 0, |around, it: &Object| {
        let severity = EventCell::from_object(around, it).severity;
        let mut cell = Cell::new(severity, severity.label());
        cell.sign = severity.symbol();
        cell
    })
    .sort_descending(|it| Key::Number(severity(it) as i64));

pub(super) const EVENT: Column<Object> = Column::new("Event", 12, 1, 0, |around, it: &Object| {
    Cell::new(Token::Text, EventCell::from_object(around, it).name)
})
.sort_by_key(|it| Key::Text(it.text("eventName").to_owned()));

pub(super) const EVENT_HOST: Column<Object> = Column::new(HOST, 10, 0, 0, |around, it: &Object| {
    Cell::new(Token::Text, EventCell::from_object(around, it).host)
});

pub(super) const SUMMARY: Column<Object> =
    Column::new("Summary", 14, 6, 2, |around, it: &Object| {
        Cell::new(Token::Text, EventCell::from_object(around, it).summary)
    })
    .sort_by_key(|it| Key::Text(summary(it)));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_cell_shows_the_host_at_every_width() {
        let cell = EventCell {
            severity: Severity::Critical,
            name: "disk".to_owned(),
            host: "db-3".to_owned(),
            summary: "the disk is full".to_owned(),
        };
        for cells in [30, 55, 56, 78, 140] {
            let text = cell.text(cells);
            assert_eq!(text::cell_width(&text), cells, "{text}");
            assert!(text.contains("db-3"), "{text}");
        }
        assert!(cell.text(60).starts_with("▲ critical "));
        assert!(cell.text(40).starts_with("▲ disk"));
    }
}
