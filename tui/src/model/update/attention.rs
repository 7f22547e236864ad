//! Notices to the terminal: the focus, and reads of the open events.

use super::{call, read};
use crate::{
    client::{CallResult, EventFilter, Ticket, events},
    data::{EventKey, EventOrder, Kind, Label},
    model::{Model, filter, message::Effect},
};

pub(super) fn set_focus(model: &mut Model, is_focused: bool) {
    if !model.set_away(!is_focused) {
        return;
    }
    if is_focused {
        model.effects.push(Effect::EndAlert);
    } else if model.is_connected() {
        // They show whether this person is paged.
        read::read_resources(model, &[Kind::Contact, Kind::Response]);
    }
}

/// Reads the open events again after a reconnection.
pub(super) fn on_reconnect(model: &mut Model) {
    model.attention.waiting = None;
    model.attention.checked_ms = None;
}

pub(super) fn handle_tick(model: &mut Model) {
    let due_ms = model.open_events_due_ms();
    if due_ms.is_some_and(|due_ms| due_ms <= model.now_ms) {
        let condition = format!("severity>={}", model.attention.settings.severity.label());
        let clause = filter::parse_event_filter(&condition, &model.filter_reader());
        let newest_first = EventFilter {
            clause: clause.unwrap_or_default(),
            open_only: true,
            order: EventOrder {
                by: EventKey::Start,
                ascending: false,
            },
        };
        let search = events::search_newest_opened(&newest_first);
        let ticket = call(model, search, handle_open_events);
        model.attention.waiting = Some(ticket);
        model.attention.checked_ms = Some(model.now_ms);
    }
    let alert = model.take_alert();
    model.effects.extend(alert.map(Effect::Alert));
}

fn handle_open_events(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let waiting = &mut model.attention.waiting;
    let is_awaited = waiting.take_if(|waiting| *waiting == ticket).is_some();
    if is_awaited && let Ok(page) = events::parse_page(answer) {
        model.note_open_events(page.rows);
    }
    false
}
