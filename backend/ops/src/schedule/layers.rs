//! Validation of the layers of a draft.

use bellwether_backend_model::calendar;
use bellwether_proto::v1;
use jiff::civil::DateTime;

use crate::{
    domain::{
        Calendar, Contact, Name,
        calendar::{Window, WindowText, parse_date_time},
        schedule::{Layer, Slot},
    },
    error::Error,
    limits::{LAYER_NAME_CHARACTERS_MAX, SCHEDULE_CONTACTS_MAX, SCHEDULE_SLOTS_MAX},
    refers::ReferenceChecker,
};

pub(super) struct LayerChecker<'a, 'b> {
    pub(super) path: String,
    pub(super) refers: &'a mut ReferenceChecker<'b>,
}

impl LayerChecker<'_, '_> {
    fn add_violation(&mut self, field: &str, message: impl Into<String>) {
        self.refers
            .violations
            .add(format!("{}.{field}", self.path), message);
    }

    /// Checks a layer of a draft; returns `None` if it is invalid.
    pub(super) async fn check_layer(
        &mut self,
        draft: &v1::ScheduleLayer,
        zone: Option<&jiff::tz::TimeZone>,
    ) -> Result<Option<Layer>, Error> {
        let characters = draft.name.chars().count();
        if characters > LAYER_NAME_CHARACTERS_MAX {
            let most = LAYER_NAME_CHARACTERS_MAX;
            self.add_violation(
                "name",
                format!("has {characters} characters; the limit is {most}"),
            );
        }
        let hand_offs = self.check_hand_offs(draft, zone);
        let (from, until) = self.check_bounds(draft);
        let path = format!("{}.calendarName", self.path);
        let calendar = self
            .refers
            .resolve_optional::<Calendar>(&path, &draft.calendar_name);
        let calendar = calendar.await?;
        let count = draft.slots.len();
        if !(1..=SCHEDULE_SLOTS_MAX).contains(&count) {
            let message = format!("has {count} slots; expected 1 to {SCHEDULE_SLOTS_MAX}");
            self.add_violation("slots", message);
            return Ok(None);
        }
        let mut slots = Vec::with_capacity(count);
        for (at, slot) in draft.slots.iter().enumerate() {
            let path = format!("{}.slots[{at}].contactNames", self.path);
            let contacts = contacts(self.refers, &path, &slot.contact_names).await?;
            slots.push(Slot { contacts });
        }
        Ok(hand_offs.map(|hand_offs| Layer {
            name: draft.name.clone(),
            slots,
            hand_offs,
            calendar: calendar.map(|it| it.value.name),
            from,
            until,
        }))
    }

    fn check_bounds(&mut self, draft: &v1::ScheduleLayer) -> (Option<DateTime>, Option<DateTime>) {
        let mut read = |field: &str, text: &str| {
            if text.is_empty() {
                return None;
            }
            let read = parse_date_time(text);
            read.map_err(|message| self.add_violation(field, message))
                .ok()
        };
        let from = read("from", &draft.from);
        let until = read("until", &draft.until);
        let first = from.max(parse_date_time(&draft.dtstart).ok());
        if let Some((first, until)) = first.zip(until)
            && until <= first
        {
            self.add_violation("until", "must be after `from` and `dtstart`");
        }
        (from, until)
    }

    fn check_hand_offs(
        &mut self,
        draft: &v1::ScheduleLayer,
        zone: Option<&jiff::tz::TimeZone>,
    ) -> Option<Window> {
        let text = WindowText {
            dtstart: draft.dtstart.clone(),
            duration: "P1D".into(),
            rrule: draft.rrule.clone(),
            ..WindowText::default()
        };
        match Window::parse(&text) {
            Ok(window) => {
                let zone = zone.cloned().unwrap_or(jiff::tz::TimeZone::UTC);
                let checked = calendar::check_calendar(&window, &zone);
                let checked =
                    checked.map_err(|(field, message)| self.add_violation(field, message));
                checked.ok().map(|()| window)
            }
            Err(found) => {
                for (field, message) in found {
                    self.add_violation(&field, message);
                }
                None
            }
        }
    }
}

pub(super) async fn contacts(
    refers: &mut ReferenceChecker<'_>,
    path: &str,
    names: &[String],
) -> Result<Vec<Name>, Error> {
    let count = names.len();
    if count > SCHEDULE_CONTACTS_MAX {
        let message = format!("has {count} names; the limit is {SCHEDULE_CONTACTS_MAX}");
        refers.violations.add(path, message);
        return Ok(Vec::new());
    }
    let found = refers.resolve_all::<Contact>(path, names).await?;
    Ok(found.into_iter().map(|it| it.value.name).collect())
}
