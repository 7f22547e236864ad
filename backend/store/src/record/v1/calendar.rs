//! Calendars.

use crate::{
    domain::{
        Calendar,
        calendar::{Window, WindowText},
    },
    record::table::{Reader, Table, Unreadable, Writer, field::message, record},
};

record! { Calendar {
    1 id, 2 name, 3 description, 4 tags, 5 time_zone, 6 windows, 7 except, 8 revision, 9 create_ms,
    10 update_ms,
} }

record! { WindowText {
    1 dtstart, 2 duration, 3 end_time_of_day, 4 rrule, 5 exdate, 6 rdate,
} }

/// Stored as text, in the syntax that users write.
impl Table for Window {
    fn write(&self, to: &mut Writer<'_>) {
        self.to_text().write(to);
    }

    fn read(from: Reader<'_>) -> Result<Option<Self>, Unreadable> {
        let text = <WindowText as Table>::read(from)?;
        Ok(text.and_then(|text| Self::parse(&text).ok()))
    }
}

message!(Window);
