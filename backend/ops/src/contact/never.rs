//! Warns of contact methods that can never be used.

use crate::{
    clock::to_millis,
    decide::{Calendars, LoadedCalendar},
    domain::{Calendar, Contact},
    error::Error,
    limits::CONTACT_CALENDAR_AHEAD,
    store::Store,
};

/// Returns a warning for each method that can never be used, because its calendar has no window for
/// it.
pub(super) async fn never_usable_warnings(
    contact: &Contact,
    store: &Store,
    now_ms: i64,
) -> Result<Vec<String>, Error> {
    let mut names: Vec<_> = contact.calendars().cloned().collect();
    let mut calendars: Vec<Calendar> = Vec::new();
    while let Some(name) = names.pop() {
        if calendars.iter().any(|it| it.name == name) {
            continue;
        }
        if let Some(found) = store.get::<Calendar>(name.as_str().into()).await? {
            names.extend(found.value.except.iter().cloned());
            calendars.push(found.value);
        }
    }
    let calendars = Calendars::new(calendars.iter());
    let mut warnings = Vec::new();
    for (at, method) in contact.methods.iter().enumerate() {
        let Some(name) = &method.calendar else {
            continue;
        };
        let calendar = calendars.get(name);
        if calendar.is_some_and(|it| !is_ever_usable(it, method.after_ms, now_ms)) {
            let id = &method.id;
            let why = if method.after_ms == 0 {
                "has no window in the next 400 days"
            } else {
                "has no window that can be reached `after` a page in the next 400 days"
            };
            warnings.push(format!(
                "methods[{at}]: `{id}` is never used: the calendar `{name}` {why}"
            ));
        }
    }
    Ok(warnings)
}

/// Whether there is a time at which the contact can be paged and the method can be used after the
/// delay.
fn is_ever_usable(calendar: &LoadedCalendar, after_ms: i64, now_ms: i64) -> bool {
    let end_ms = now_ms.saturating_add(to_millis(CONTACT_CALENDAR_AHEAD));
    let found = calendar.spans_between(now_ms, end_ms);
    let is_known = found.until_ms >= end_ms;
    let mut paged = found.spans.iter();
    let is_usable = paged.any(|page| {
        let (first_ms, last_ms) = (
            page.start_ms.max(now_ms).saturating_add(after_ms),
            page.end_ms.saturating_add(after_ms),
        );
        // Spans are sorted and do not overlap.
        let at = found.spans.partition_point(|it| it.end_ms <= first_ms);
        let used = found.spans.get(at);
        used.is_some_and(|it| it.start_ms < last_ms)
    });
    is_usable || !is_known
}
