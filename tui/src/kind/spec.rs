//! What a kind of resource is built from, and the columns of every list.

use serde_json::Value;

use super::FieldSpec;
use crate::{
    data::{Kind, Object, Role},
    document::Document,
    text,
    theme::Token,
};

/// A kind of resource: how the service is asked for it, and how it is shown, written and found.
pub(crate) struct KindSpec {
    /// The service that has it, and the methods for it.
    pub(crate) service: &'static str,
    pub(crate) list: &'static str,
    /// Absent where the service alone makes them, and takes them away.
    pub(crate) create: Option<&'static str>,
    pub(crate) update: Option<&'static str>,
    pub(crate) delete: Option<&'static str>,
    /// The method that tells more of one of them than the list does; it is asked by its id.
    pub(crate) detail: Option<&'static str>,
    /// What is a name to the console where the service has none.
    pub(crate) naming: Option<fn(&Value) -> String>,
    /// The name of its message.
    pub(crate) message: &'static str,
    /// Whether requests hold it in a field of its word; else their own fields are its fields.
    pub(crate) nested: bool,
    /// The fields that only the service writes.
    pub(crate) output: &'static [&'static str],
    /// The role that changing it needs.
    pub(crate) role: Role,
    pub(crate) columns: &'static [Column<Object>],
    /// What a filter of the list looks in, in addition to name, description and tags.
    pub(crate) searched: fn(&Object) -> Vec<&str>,
    /// The fields of its form, in the order they are filled in.
    pub(crate) fields: &'static [FieldSpec],
    /// Writes its page, if it has one.
    pub(crate) document: Option<fn(&mut Document, &dyn Around, &Object)>,
    /// What an empty list says.
    pub(crate) empty: &'static str,
    /// Other kinds whose resources its pages show.
    pub(crate) beside: &'static [Kind],
}

/// The column with the host of an event, or the dimension that stands for it.
pub(crate) const HOST: &str = "Host";

/// What is around a row or a page.
pub(crate) trait Around {
    /// A moment: the time today, the date with it on other days.
    fn moment(&self, ms: i64) -> String;
    /// A moment in full.
    fn moment_in_full(&self, ms: i64) -> String;
    /// How long ago or ahead a moment is, where that is shown instead of the moment.
    fn age(&self, ms: i64) -> Option<String>;
    /// How long ago a moment is.
    fn since(&self, ms: i64) -> String;
    /// The dimension in the column [`HOST`].
    fn host_field(&self) -> &str;
    /// What was delivered to a destination in the last hour, as bars.
    fn last_hour(&self, destination: &str) -> String;
    /// Dead letters of a destination in the last 24 h, where that was read.
    fn dead(&self, destination: &str) -> Option<i64>;
    /// Whether a moment has come.
    fn is_past(&self, ms: i64) -> bool;
    /// A sentence with the keys in force instead of `‹action_name›`.
    fn tell(&self, sentence: &str) -> String;
    /// Who has an occurrence that people are paged for; none where no one is.
    fn responder(&self, occurrence: &str) -> Option<Cell>;
    /// A stored resource.
    fn object(&self, kind: Kind, name: &str) -> Option<&Object>;
}

/// The heading of a column, and the room that it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) title: &'static str,
    /// The least width in cells.
    pub(crate) width: usize,
    /// Its share of what is left over.
    pub(crate) grows: usize,
    /// The higher, the sooner it is left out; 0 never is.
    pub(crate) rank: u8,
    pub(crate) right: bool,
    /// Whether large values are what one looks for first.
    pub(crate) falls: bool,
    pub(crate) presence: Presence,
}

/// When a column is shown, if there is room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// Where a row on the screen has anything in it.
    Filled,
    /// Where an operator chose it.
    Chosen,
}

/// One column of a list of such rows.
pub(crate) struct Column<R: 'static> {
    pub(crate) head: Head,
    pub(crate) cell: fn(&dyn Around, &R) -> Cell,
    /// What rows are sorted by; none where no one would.
    pub(crate) key: Option<fn(&R) -> Key>,
}

/// What is in one column of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) token: Token,
    /// Drawn before the text; line mode omits it.
    pub(crate) sign: &'static str,
    pub(crate) text: String,
}

/// What a row is sorted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Text(String),
    Number(i64),
    Both(i64, String),
}

impl<R> Column<R> {
    /// A column of that least width; the higher its rank, the sooner it is left out.
    pub(super) const fn new(
        title: &'static str,
        width: usize,
        grows: usize,
        rank: u8,
        cell: fn(&dyn Around, &R) -> Cell,
    ) -> Self {
        let head = Head {
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

    /// The same, left out where no row on the screen has anything in it.
    pub(super) const fn rare(self) -> Self {
        let head = Head {
            presence: Presence::Filled,
            ..self.head
        };
        Self { head, ..self }
    }

    /// The same, shown only where an operator chose it.
    pub(super) const fn extra(self) -> Self {
        let head = Head {
            presence: Presence::Chosen,
            ..self.head
        };
        Self { head, ..self }
    }

    /// The same, sorted by this.
    pub(super) const fn by(self, key: fn(&R) -> Key) -> Self {
        let key = Some(key);
        Self { key, ..self }
    }

    /// The same, with the largest first.
    pub(super) const fn falling(self, key: fn(&R) -> Key) -> Self {
        let head = Head {
            falls: true,
            ..self.head
        };
        let key = Some(key);
        Self { head, key, ..self }
    }

    /// The same, with its figures at the right.
    pub(super) const fn figures(self) -> Self {
        let head = Head {
            right: true,
            ..self.head
        };
        Self { head, ..self }
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

    pub(super) fn figure(number: i64) -> Self {
        Self::new(Token::Text, text::grouped(number))
    }

    /// A moment, or nothing.
    pub(super) fn moment(around: &dyn Around, ms: Option<i64>) -> Self {
        let moment = ms.map_or_else(String::new, |ms| around.moment(ms));
        Self::new(Token::Dim, moment)
    }

    /// A moment in eight cells: the time today, the date on other days; or its age.
    pub(super) fn short_moment(around: &dyn Around, ms: Option<i64>) -> Self {
        if let Some(age) = ms.and_then(|ms| around.age(ms)) {
            return Self::new(Token::Dim, age);
        }
        let mut cell = Self::moment(around, ms);
        if let Some((date, _)) = cell.text.split_once(' ') {
            cell.text = date.get(2..).unwrap_or_default().to_owned();
        }
        cell
    }
}
