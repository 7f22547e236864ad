//! Definitions of resource kinds, and the columns of lists.

use std::borrow::Cow;

use serde_json::Value;

use super::FieldSpec;
use crate::{
    data::{EventRow, Kind, Object, Role},
    document::Document,
    text,
    theme::Token,
};

pub(crate) struct KindSpec {
    pub(crate) service: &'static str,
    pub(crate) list: &'static str,
    /// `None` if only the service creates and deletes resources of the kind.
    pub(crate) create: Option<&'static str>,
    pub(crate) update: Option<&'static str>,
    pub(crate) delete: Option<&'static str>,
    /// The method that returns more details than the list, by id.
    pub(crate) detail: Option<&'static str>,
    /// Derives a name, if the API has no names for the kind.
    pub(crate) naming: Option<fn(&Value) -> String>,
    pub(crate) message: &'static str,
    /// Whether requests contain the resource in a field named after the kind, as opposed to its
    /// fields directly.
    pub(crate) nested: bool,
    pub(crate) output: &'static [&'static str],
    pub(crate) role: Role,
    pub(crate) columns: &'static [Column<Object>],
    /// Fields searched by a filter of the list, in addition to name, description and tags.
    pub(crate) searched: fn(&Object) -> Vec<&str>,
    pub(crate) fields: &'static [FieldSpec],
    pub(crate) document: Option<fn(&mut Document, &dyn RenderContext, &Object)>,
    pub(crate) empty: &'static str,
    pub(crate) beside: &'static [Kind],
}

/// Returns the definition of a kind that editors create, change and delete, by the name of its
/// message and its plural. It has no columns, fields or page.
macro_rules! edited {
    ($message:literal, $plural:literal) => {
        $crate::kind::KindSpec {
            service: concat!($message, "Service"),
            list: concat!("List", $plural),
            create: Some(concat!("Create", $message)),
            update: Some(concat!("Update", $message)),
            delete: Some(concat!("Delete", $message)),
            detail: None,
            naming: None,
            message: $message,
            nested: true,
            output: $crate::kind::shared::OUTPUT,
            role: $crate::data::Role::Editor,
            columns: &[],
            searched: |_| Vec::new(),
            fields: &[],
            document: None,
            empty: "",
            beside: &[],
        }
    };
}
pub(super) use edited;

pub(crate) const HOST: &str = "Host";

pub(crate) trait RenderContext {
    /// Formats a time: the time of day for today, with the date for other days.
    fn format_time(&self, ms: i64) -> String;
    fn format_full_time(&self, ms: i64) -> String;
    fn format_age(&self, ms: i64) -> Option<String>;
    fn format_since(&self, ms: i64) -> String;
    fn host_field(&self) -> &str;
    fn last_hour(&self, destination: &str) -> LastHour;
    /// Returns the dead letters of a destination in the last 24 h, if read.
    fn dead_letter_count(&self, destination: &str) -> Option<i64>;
    fn is_past(&self, ms: i64) -> bool;
    /// Formats the time of the next step; a step in the past is due.
    fn format_due(&self, ms: i64) -> String {
        if self.is_past(ms) {
            return "due now".to_owned();
        }
        self.format_full_time(ms)
    }
    fn expand_keys(&self, sentence: &str) -> String;
    /// Returns the contact that responds to an occurrence; `None` if the occurrence pages no one.
    fn responder(&self, occurrence: &str) -> Option<Cell>;
    /// Whether an active silence covers an event; `false` if unknown.
    fn is_silenced(&self, row: &EventRow) -> bool;
    fn response_cells(&self, response: &Object) -> [Cell; 2];
    /// Returns the host of the event that a resource is about; empty if unknown.
    fn host_text(&self, object: &Object) -> String;
    fn find_object(&self, kind: Kind, name: &str) -> Option<&Object>;
}

/// The deliveries to a destination in the last hour, drawn as bars.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastHour {
    pub(crate) delivered: String,
    pub(crate) failed: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnHead {
    pub(crate) title: &'static str,
    pub(crate) width: usize,
    /// Weight of the column when the remaining width is distributed.
    pub(crate) grows: usize,
    /// Columns with the highest rank are omitted first; a column with rank 0 is never omitted.
    pub(crate) rank: u8,
    pub(crate) right: bool,
    pub(crate) falls: bool,
    pub(crate) presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    Filled,
    DeliverySelection,
}

pub(crate) struct Column<R: 'static> {
    pub(crate) head: ColumnHead,
    pub(crate) cell: fn(&dyn RenderContext, &R) -> Cell,
    /// The sort key of a row; `None` if the column is not sortable.
    pub(crate) key: Option<fn(&R) -> Key>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) token: Token,
    /// Drawn before the text; omitted in plain mode.
    pub(crate) sign: &'static str,
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Text(String),
    Number(i64),
    Both(i64, String),
}

impl<R> Column<R> {
    pub(super) const fn new(
        title: &'static str,
        width: usize,
        grows: usize,
        rank: u8,
        cell: fn(&dyn RenderContext, &R) -> Cell,
    ) -> Self {
        let head = ColumnHead {
            title,
            width,
            grows,
            rank,
            right: false,
            falls: false,
            presence: Presence::Always,
        };
        let key = None;
        Self { head, cell, key }
    }

    pub(super) const fn hide_if_empty(self) -> Self {
        let head = ColumnHead {
            presence: Presence::Filled,
            ..self.head
        };
        Self { head, ..self }
    }

    pub(super) const fn hide_by_default(self) -> Self {
        let head = ColumnHead {
            presence: Presence::DeliverySelection,
            ..self.head
        };
        Self { head, ..self }
    }

    pub(super) const fn sort_by_key(self, key: fn(&R) -> Key) -> Self {
        let key = Some(key);
        Self { key, ..self }
    }

    pub(super) const fn sort_descending(self, key: fn(&R) -> Key) -> Self {
        let head = ColumnHead {
            falls: true,
            ..self.head
        };
        let key = Some(key);
        Self { head, key, ..self }
    }

    pub(super) const fn right_align(self) -> Self {
        let head = ColumnHead {
            right: true,
            ..self.head
        };
        Self { head, ..self }
    }
}

impl From<(Token, &'static str)> for Cell {
    fn from((token, word): (Token, &'static str)) -> Self {
        Self::new(token, word)
    }
}

impl Cell {
    pub(crate) fn new(token: impl Into<Token>, text: impl Into<String>) -> Self {
        Self {
            token: token.into(),
            sign: "",
            text: text.into(),
        }
    }

    pub(crate) fn text_with_symbol(&self) -> Cow<'_, str> {
        match self.sign {
            "" => Cow::Borrowed(&self.text),
            sign => Cow::Owned(format!("{sign} {}", self.text)),
        }
    }

    pub(crate) fn width(&self) -> usize {
        text::cell_width(&text::clean_text(&self.text_with_symbol()))
    }

    pub(super) fn number(number: i64) -> Self {
        Self::new(Token::Text, text::group_digits(number))
    }

    pub(super) fn time(around: &dyn RenderContext, ms: Option<i64>) -> Self {
        let moment = ms.map_or_else(String::new, |ms| around.format_time(ms));
        Self::new(Token::Dim, moment)
    }

    /// Formats an optional time in eight cells: the time of day for today, the date for other days,
    /// or the age.
    pub(super) fn short_time(around: &dyn RenderContext, ms: Option<i64>) -> Self {
        if let Some(age) = ms.and_then(|ms| around.format_age(ms)) {
            return Self::new(Token::Dim, age);
        }
        let mut cell = Self::time(around, ms);
        if let Some((date, _)) = cell.text.split_once(' ') {
            cell.text = date.get(2..).unwrap_or_default().to_owned();
        }
        cell
    }
}
