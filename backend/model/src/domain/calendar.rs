//! Calendars: named spans of local time.

mod recurrence;
mod window;

use crate::domain::{Name, RecordId};

pub use recurrence::{Frequency, OrdinalsOf, Recurrence, Until, WeekdayRule};
pub use window::{Excluded, Length, Window, WindowText, date_time};

/// Names spans of local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// Distinguishes it from an earlier calendar of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// The zone of its local times, by its IANA name.
    pub time_zone: String,
    /// Its windows, in the author's order; never empty.
    pub windows: Vec<Window>,
    /// The calendars whose windows are taken out, which take nothing out themselves.
    pub except: Vec<Name>,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}
