//! Calendars: named spans of local time.

mod recurrence;
mod window;

use crate::domain::{Name, RecordId};

pub use recurrence::{Frequency, OrdinalPeriod, Recurrence, Until, WeekdayRule};
pub use window::{ExcludedStarts, Length, Window, WindowText, parse_date_time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub time_zone: String,
    /// The windows, in the author's order; never empty.
    pub windows: Vec<Window>,
    /// The calendars whose windows are excluded; the excluded calendars must not exclude calendars
    /// themselves.
    pub except: Vec<Name>,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}
