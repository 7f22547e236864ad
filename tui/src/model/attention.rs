//! Events that opened, and pages of the signed-in person, while the terminal is not focused.

use std::{collections::HashSet, mem};

use jiff::Timestamp;
use serde_json::Value;

use super::Model;
use crate::{
    attention::Notices,
    client::Ticket,
    data::{EventRow, HoldReason, Kind, Label, Object, Status},
    limits,
};

#[derive(Debug, Default)]
pub(crate) struct Attention {
    pub(crate) settings: Notices,
    is_away: bool,
    /// Ids of the open events when they were last read; `None` until the first read.
    open: Option<HashSet<String>>,
    /// Ids of the messages that paged the person; `None` until they are known.
    pages: Option<HashSet<String>>,
    /// Ids of the occurrences announced since the terminal lost focus.
    announced: HashSet<String>,
    /// The first sentence not yet announced, and the number of further ones.
    queued: Option<(String, usize)>,
    pub(crate) waiting: Option<Ticket>,
    pub(crate) checked_ms: Option<i64>,
    notified_ms: i64,
}

/// A notice to the terminal: its bytes and the new title, if the title is enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alert {
    pub(crate) signal: String,
    pub(crate) title: Option<String>,
}

struct PageMessage {
    delivery_id: String,
    occurrence_id: String,
    sentence: String,
}

impl Model {
    /// Begins or ends the watch for notices; returns whether it changed.
    pub(crate) fn set_away(&mut self, is_away: bool) -> bool {
        if self.attention.is_away == is_away || !self.attention.settings.enabled {
            return false;
        }
        *self.attention = Attention {
            settings: mem::take(&mut self.attention.settings),
            is_away,
            ..Attention::default()
        };
        if is_away {
            self.note_pages();
        }
        true
    }

    /// Returns the time of the next notice or read of the open events.
    pub(crate) fn attention_due_ms(&self) -> Option<i64> {
        let queued = self.attention.queued.is_some();
        let notice = queued.then(|| self.attention.notified_ms + limits::NOTICE_MS);
        notice.into_iter().chain(self.open_events_due_ms()).min()
    }

    /// Returns the time at which the open events are read again: after a change, and once more when
    /// responses certainly contain the change.
    pub(crate) fn open_events_due_ms(&self) -> Option<i64> {
        let Attention {
            is_away,
            waiting,
            checked_ms,
            open,
            ..
        } = &*self.attention;
        if !is_away || waiting.is_some() || !self.is_connected() {
            return None;
        }
        let Some(checked) = *checked_ms else {
            return Some(self.now_ms);
        };
        let changed = self.store.changed_ms.unwrap_or(i64::MIN);
        if open.is_none() || changed >= checked {
            return Some(checked.saturating_add(limits::NOTICE_MS));
        }
        let settled = changed.saturating_add(limits::SETTLED_MS);
        (checked < settled).then_some(settled)
    }

    /// Announces the events that opened since the previous read.
    pub(crate) fn note_open_events(&mut self, rows: Vec<EventRow>) {
        let ids: HashSet<String> = rows.iter().map(|row| row.id.to_string()).collect();
        let Some(known) = &mut self.attention.open else {
            self.attention.open = Some(ids);
            return;
        };
        let is_new = |row: &EventRow| !known.contains(&*row.id);
        let fresh: Vec<EventRow> = rows.into_iter().filter(is_new).collect();
        if known.len() > limits::NOTICED_EVENTS {
            known.clear();
        }
        known.extend(ids);
        for row in fresh {
            let is_held = matches!(row.held, HoldReason::Silence | HoldReason::Inhibition);
            if row.status == Status::Open && !row.acknowledged && !is_held {
                let place = row.dimension(&self.host_field);
                let place = place.unwrap_or_else(|| row.entity.to_string());
                let severity = row.severity.label();
                let sentence = format!("{severity}: {} on {place}: {}", row.name, row.summary);
                self.announce(row.id.to_string(), sentence);
            }
        }
    }

    /// Announces new messages to the person.
    pub(crate) fn note_pages(&mut self) {
        let pages = self.attention.is_away.then(|| self.own_pages()).flatten();
        let Some(pages) = pages else { return };
        let Some(known) = &mut self.attention.pages else {
            let ids = pages.into_iter().map(|page| page.delivery_id);
            self.attention.pages = Some(ids.collect());
            return;
        };
        let is_new = |page: &PageMessage| known.insert(page.delivery_id.clone());
        let fresh: Vec<PageMessage> = pages.into_iter().filter(is_new).collect();
        for page in fresh {
            self.announce(page.occurrence_id, page.sentence);
        }
    }

    /// Returns the newest messages that page the person; `None` until contacts and responses are
    /// read.
    fn own_pages(&self) -> Option<Vec<PageMessage>> {
        let caller = &self.caller.as_ref()?.name;
        let is_own = |it: &&Object| {
            let subject = it.text("subject");
            it.text("clientName") == caller
                || !subject.is_empty() && caller.strip_prefix("oidc:") == Some(subject)
        };
        let contacts = self.store.resources(Kind::Contact).value.as_ref()?;
        let own: HashSet<&str> = contacts.iter().filter(is_own).map(Object::name).collect();
        let responses = self.store.resources(Kind::Response).value.as_ref()?;
        let mut pages = Vec::new();
        for response in responses.iter().filter(|it| it.text("state") == "ACTIVE") {
            let notified = response.value_at("notified").and_then(Value::as_array);
            for receiver in notified.into_iter().flatten() {
                let text = |field: &str| receiver[field].as_str().unwrap_or_default();
                if own.contains(text("contactName")) {
                    let name = response.text("eventName");
                    pages.push(PageMessage {
                        delivery_id: text("deliveryId").to_owned(),
                        occurrence_id: response.text("occurrenceId").to_owned(),
                        sentence: format!("you are paged: {name}: {}", response.text("summary")),
                    });
                }
            }
        }
        Some(pages)
    }

    fn announce(&mut self, occurrence_id: String, sentence: String) {
        if self.is_quiet_now() {
            return;
        }
        if self.attention.announced.len() < limits::NOTICED_EVENTS {
            self.attention.announced.insert(occurrence_id);
        }
        match &mut self.attention.queued {
            Some((_, more)) => *more += 1,
            None => self.attention.queued = Some((sentence, 0)),
        }
    }

    fn is_quiet_now(&self) -> bool {
        let now = Timestamp::from_millisecond(self.now_ms).ok();
        let minute = now.and_then(|now| {
            let local = now.to_zoned(self.zone.clone());
            u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).ok()
        });
        let quiet = self.attention.settings.quiet.zip(minute);
        quiet.is_some_and(|(quiet, minute)| quiet.contains(minute))
    }

    /// Returns one notice for all queued sentences, if it is due.
    pub(crate) fn take_alert(&mut self) -> Option<Alert> {
        let due_ms = self.attention.notified_ms + limits::NOTICE_MS;
        let queued = &mut self.attention.queued;
        let (first, more) = queued.take_if(|_| due_ms <= self.now_ms)?;
        self.attention.notified_ms = self.now_ms;
        let sentence = match more {
            0 => first,
            more => format!("{} new, first {first}", more + 1),
        };
        let settings = &self.attention.settings;
        let count = self.attention.announced.len();
        Some(Alert {
            signal: settings.signal(&sentence),
            title: settings.title(count, self.is_ascii),
        })
    }
}
