//! What uses a calendar.

use crate::{
    domain::Name,
    error::Error,
    limits::PAGE_SIZE_MAX,
    store::{Direction, Index, Store, engine::Range, record::bytes::Key},
};

/// Users that a message names; a longer list helps no one.
const NAMED_MAX: usize = 10;

/// What uses a calendar, each by name; the first [`PAGE_SIZE_MAX`] of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalendarUsers {
    /// Rules that notify inside its windows.
    pub rules: Vec<Name>,
    /// Silences that are in force inside its windows.
    pub silences: Vec<Name>,
    /// Calendars that take its windows out.
    pub calendars: Vec<Name>,
}

impl CalendarUsers {
    /// All of them, each after the word for its kind.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Name)> {
        let rules = self.rules.iter().map(|it| ("rule", it));
        let silences = self.silences.iter().map(|it| ("silence", it));
        let calendars = self.calendars.iter().map(|it| ("calendar", it));
        rules.chain(silences).chain(calendars)
    }

    /// All of them for people; none when there is none.
    pub fn describe(&self) -> Option<String> {
        let named = self.all().take(NAMED_MAX);
        let named: Vec<_> = named
            .map(|(word, name)| format!("{word} `{name}`"))
            .collect();
        let count = self.all().count();
        let more = match count - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (count > 0).then(|| format!("{}{more}", named.join(", ")))
    }

    /// Bytes that they have on the wire.
    pub(super) fn bytes(&self) -> usize {
        /// Beside each name: the word for its kind, numbers of fields and lengths.
        const AROUND: usize = 16;
        self.all().map(|(_, it)| it.as_str().len() + AROUND).sum()
    }
}

/// What uses the calendar of a name.
///
/// # Errors
/// Those of the store.
pub(super) async fn calendar_users(store: &Store, calendar: &Name) -> Result<CalendarUsers, Error> {
    let names = async |index| {
        let range = Range::under(&Key::new().name(calendar.as_str()).build());
        let engine = store.engine();
        let found = engine.entries(index, range, Direction::Ascending, PAGE_SIZE_MAX);
        let name = |(_, user): (_, Vec<u8>)| Name::parse(std::str::from_utf8(&user).ok()?).ok();
        Ok::<_, Error>(found.await?.into_iter().filter_map(name).collect())
    };
    Ok(CalendarUsers {
        rules: names(Index::RuleByCalendar).await?,
        silences: names(Index::SilenceByCalendar).await?,
        calendars: names(Index::CalendarByException).await?,
    })
}
