//! Confirmations of changes, and their effects. Changes that can be undone and that notify no one
//! of a closing require no confirmation.

use bellwether_proto::v1;

use super::execute::{execute, undo_last};
use crate::{
    client::{Call, CallResult, StatusChange, deliveries, events, message, parse_empty, resources},
    data::{Kind, Label, Object, Status, Transition},
    kind,
    model::{
        Model,
        bulk::pluralize,
        form::describe_changes,
        overlay::{Confirm, Consequence, Overlay},
        page::Content,
        silencing::SilenceScope,
        undo::{UndoAction, pause_call},
        write::{TextEdit, Write},
    },
    route::Route,
    text,
    theme::Token,
};

pub(super) fn show_question(model: &mut Model, confirm: Confirm) {
    model.overlay = Some(Overlay::Confirm(confirm));
}

pub(super) fn write_consequence(call: Call, done: impl Into<String>) -> Consequence {
    Consequence::Write(Box::new(call), Box::new(Write::new(done)))
}

fn run_or_confirm(
    model: &mut Model,
    mut then: Consequence,
    back: UndoAction,
    question: impl FnOnce(&Model, Consequence) -> Confirm,
) {
    if model.is_plain {
        let confirm = question(model, then);
        return show_question(model, confirm);
    }
    if let Consequence::Write(_, write) = &mut then {
        write.back = Some(back).filter(|back| !back.is_empty());
        write.at_once = true;
    }
    execute(model, then);
}

pub(super) fn confirm_undo(model: &mut Model) {
    let Some((what, back)) = model.last_change() else {
        return model.show_notice(Token::Info, "nothing to undo");
    };
    let lines = back.question_lines(model);
    if lines.is_empty() {
        return undo_last(model, true);
    }
    let mut confirm = Confirm::new(format!("Undo: {what}?"), "Undo", Consequence::Undo);
    for (token, line) in lines {
        confirm = confirm.line(token, line);
    }
    show_question(model, confirm);
}

pub(super) fn confirm_delete(model: &mut Model) {
    let name = model.resource_name().unwrap_or_default();
    let kind = model.page.route.kind();
    let Some((kind, object)) = kind.and_then(|kind| Some((kind, model.store.object(kind, &name)?)))
    else {
        return;
    };
    let users: Vec<String> = object.texts("ruleNames").map(str::to_owned).collect();
    let word = kind.singular();
    let force = !users.is_empty();
    let call = resources::delete(kind, &name, object.etag(), force);
    let then = write_consequence(call, format!("{word} {name} deleted"));
    let mut confirm = Confirm::new(format!("Delete {word} {name}?"), "Delete", then);
    if users.is_empty() {
        let words = match kind {
            Kind::Rule => "Its pending messages are still delivered.",
            Kind::Calendar => "Only unused calendars can be deleted.",
            Kind::Contact | Kind::Schedule | Kind::Policy => "Only possible if nothing uses it.",
            Kind::Mapping => "Requests to it will be rejected.",
            Kind::Heartbeat => "Beats are no longer expected, and its open events are closed.",
            Kind::Enrichment => "Open events lose its values when they are sent again.",
            Kind::Drill => "No further runs start, and its open events are closed.",
            Kind::Inhibition => "Held notifications are evaluated immediately.",
            Kind::Silence => "It ends; held notifications are evaluated immediately.",
            _ => "Not used by any rule.",
        };
        confirm = confirm.line(Token::Text, words);
    } else {
        let rules = match users.len() {
            1 => "its only rule".to_owned(),
            count => format!("its {count} rules"),
        };
        let words = format!("It is removed from {rules}:");
        confirm = confirm.line(Token::Bad, words);
        for rule in &users {
            confirm = confirm.line(
                Token::Text,
                format!("  {}", describe_remaining(model, kind, rule)),
            );
        }
    }
    let waiting = match object.number("health.waitingCount") {
        Some(1) => "Its waiting message is cancelled.".to_owned(),
        Some(count @ 2..) => {
            let count = text::group_digits(count);
            format!("Its {count} waiting messages are cancelled.")
        }
        _ => String::new(),
    };
    if !waiting.is_empty() {
        confirm = confirm.line(Token::Text, waiting);
    }
    show_question(model, confirm.line(Token::Dim, "This cannot be undone."));
}

fn describe_remaining(model: &Model, kind: Kind, rule: &str) -> String {
    let Some(stored) = model.store.object(Kind::Rule, rule) else {
        return rule.to_owned();
    };
    let word = kind.singular();
    let left = stored.texts(&format!("{word}Names")).len();
    match left {
        0 | 1 => format!("{rule}, left without a {word}"),
        2 => format!("{rule}, with 1 {word} left"),
        _ => format!("{rule}, with {} {word}s left", left - 1),
    }
}

pub(super) fn confirm_toggle(model: &mut Model) {
    let name = model.resource_name();
    let Some(rule) = name.and_then(|name| model.store.object(Kind::Rule, &name)) else {
        return;
    };
    let on = !rule.flag("enabled");
    let mut draft = kind::editable_part(rule);
    draft.set("enabled", Some(on.into()));
    let name = draft.name().to_owned();
    let (verb, done) = if on {
        ("Enable", "enabled")
    } else {
        ("Disable", "disabled")
    };
    let call = resources::update(&draft, rule.etag());
    let then = write_consequence(call, format!("rule {name} {done}"));
    let back = UndoAction::Enable {
        rule: name.clone(),
        on: !on,
    };
    let question = |_: &Model, then| {
        let names: Vec<&str> = draft.texts("destinationNames").collect();
        let receivers = if names.is_empty() {
            "no destination".to_owned()
        } else {
            names.join(", ")
        };
        let does = if on { "notifies" } else { "does not notify" };
        let words = format!("From now on it {does} {receivers}.");
        Confirm::new(format!("{verb} rule {name}?"), verb, then).line(Token::Text, words)
    };
    run_or_confirm(model, then, back, question);
}

pub(super) fn confirm_pause(model: &mut Model) {
    let name = model.resource_name();
    let Some(found) = name.and_then(|name| model.store.object(Kind::Destination, &name)) else {
        return;
    };
    let name = found.name().to_owned();
    let was = model.is_paused(&name);
    let (verb, done) = if was {
        ("Resume", "resumed")
    } else {
        ("Pause", "paused")
    };
    let mut write = Write::new(format!("{name} {done}"));
    let destination = name.clone();
    write.back = Some(UndoAction::Paused { destination, was });
    let then = Consequence::Write(Box::new(pause_call(&name, !was)), Box::new(write));
    let words = model.pause_words(&name, was);
    let confirm = Confirm::new(format!("{verb} {name}?"), verb, then);
    show_question(model, confirm.line(Token::Text, words));
}

pub(super) fn confirm_send_waiting(model: &mut Model) {
    let Some((name, count)) = model.tested_backlog() else {
        return model.show_notice(Token::Info, "no deliveries are waiting for it");
    };
    // Needs no confirmation: the page with this key shows the number and the destination.
    let done = format!(
        "sending the {} waiting for {name}",
        pluralize(count, "delivery")
    );
    execute(model, write_consequence(pause_call(&name, false), done));
}

pub(super) fn confirm_release(model: &mut Model) {
    let name = model.resource_name();
    let Some(found) = name.and_then(|name| model.store.object(Kind::Pending, &name)) else {
        return;
    };
    let names: Vec<&str> = found.texts("destinationNames").collect();
    let words = format!("Notifies {} now.", names.join(", "));
    if let Some(id) = Some(found.text("deliveryId")).filter(|id| !id.is_empty()) {
        let call = deliveries::change_delivery(Transition::SendAgain, id.to_owned());
        let then = write_consequence(call, "being sent");
        let confirm = Confirm::new("Send the messages over the budget?", "Send", then);
        return show_question(model, confirm.line(Token::Text, words));
    }
    let rule = found.text("ruleName").to_owned();
    let request = v1::ReleasePendingRequest {
        rule_name: rule.clone(),
        event_id: found.text("eventId").to_owned(),
        occurrence_id: found.text("occurrenceId").to_owned(),
    };
    let call = Call::from_request("PendingService", &request).into_write(parse_empty);
    let then = write_consequence(call, format!("{rule} notifies now"));
    let title = format!("Send the held notifications of rule {rule}?");
    let confirm = Confirm::new(title, "Send", then).line(Token::Text, words);
    show_question(model, confirm.line(Token::Dim, "This ends its holds."));
}

pub(super) fn confirm_group_change(model: &mut Model, change: &StatusChange) {
    let name = model.resource_name();
    let Some(found) = name.and_then(|name| model.store.object(Kind::Group, &name)) else {
        return;
    };
    let (verb, done) = match change {
        StatusChange::Acknowledged(_) => ("Acknowledge", "acknowledged"),
        StatusChange::Status(Status::Suppressed) => ("Suppress", "suppressed"),
        StatusChange::Status(_) => ("Close", "closed"),
        StatusChange::Assigned(_) => ("Assign", "assigned"),
    };
    let open = found.number("openCount").unwrap_or_default();
    let rule = found.text("ruleName");
    let title = format!("{verb} the {open} open events in this group of rule {rule}?");
    let call = events::set_group_status(found.name(), change);
    let done = format!("{done} the {open} open events in a group of rule {rule}");
    let then = write_consequence(call, done);
    let words = "Includes members that join meanwhile; 1,000 per commit.";
    show_question(
        model,
        Confirm::new(title, verb, then).line(Token::Text, words),
    );
}

pub(super) fn confirm_silence(model: &mut Model, scope: &SilenceScope, until: &str, call: Call) {
    let what = &scope.what;
    let then = write_consequence(call, format!("silenced {what} {until}"));
    if !scope.is_too_broad() && !model.is_plain {
        return execute(model, then);
    }
    let mut confirm = Confirm::new(format!("Silence {what} {until}?"), "Silence", then);
    for (token, line) in scope.lines() {
        confirm = confirm.line(token, line);
    }
    let after = "At the end, held notifications are sent with the state at that time; closings are sent \
                 immediately.";
    show_question(model, confirm.line(Token::Dim, after));
}

pub(super) fn add_preview(confirm: &mut Confirm, kind: Kind, answer: CallResult) {
    match kind {
        Kind::Silence => {
            if let Ok(found) = message(answer) {
                add_coverage(confirm, found);
            }
        }
        Kind::Schedule => {
            let found = message::<v1::PreviewScheduleResponse>(answer);
            let warnings = found.map(|it| it.warnings).unwrap_or_default().into_iter();
            let lines = warnings.map(|it| (Token::Warning, format!("It {it}.")));
            confirm.lines.splice(0..0, lines);
        }
        _ => {}
    }
}

/// Adds the scope of a silence to the confirmation; for a broad silence, Yes also sets
/// `allowBroad`.
fn add_coverage(confirm: &mut Confirm, found: v1::PreviewSilenceResponse) {
    let scope = SilenceScope::from_form(found);
    let mut lines = scope.lines();
    if scope.is_too_broad() {
        let words = "It is broad: Yes silences all these events.".to_owned();
        lines.push((Token::Warning, words));
        if let Consequence::Write(call, _) = &mut confirm.then {
            call.body["allowBroad"] = true.into();
        }
    }
    confirm.lines.splice(0..0, lines);
}

pub(super) fn confirm_revoke(model: &mut Model) {
    let Some(name) = model.selected_id() else {
        return;
    };
    let own = model
        .caller
        .as_ref()
        .is_some_and(|caller| caller.name == name);
    let call = resources::delete(Kind::Client, &name, "", false);
    let then = write_consequence(call, format!("revoked the key of {name}"));
    let mut confirm = Confirm::new(format!("Revoke the key of {name}?"), "Revoke", then).line(
        Token::Text,
        "It stops working immediately, even on open connections.",
    );
    if own {
        confirm = confirm.line(Token::Bad, "This is the key of this console.");
    }
    show_question(model, confirm.line(Token::Dim, "This cannot be undone."));
}

pub(super) fn confirm_acknowledge(model: &mut Model, flag: bool) {
    let (verb, done) = if flag {
        ("Acknowledge", "acknowledged")
    } else {
        ("Unacknowledge", "removed the acknowledgement of")
    };
    let change = StatusChange::Acknowledged(flag);
    confirm_status_change(model, &change, (verb, done, ""));
}

pub(super) fn toggle_own_assignment(model: &mut Model) {
    let Some(caller) = &model.caller else { return };
    let own = caller.name.clone();
    let ids = model.selected_targets();
    let is_mine = |id: &String| {
        model
            .occurrence_status(id)
            .is_some_and(|it| it.assignee == own)
    };
    let assignee = if ids.iter().all(is_mine) {
        String::new()
    } else {
        own
    };
    confirm_assign(model, assignee);
}

/// Assigns the events to a client; an empty name unassigns them.
pub(super) fn confirm_assign(model: &mut Model, assignee: String) {
    let done = if assignee.is_empty() {
        "unassigned".to_owned()
    } else {
        format!("assigned to {assignee}:")
    };
    let words = "This sends no notifications.";
    let change = StatusChange::Assigned(assignee);
    confirm_status_change(model, &change, ("Assign", &done, words));
}

pub(super) fn confirm_status(model: &mut Model, status: Status) {
    let (verb, done, words) = match status {
        Status::Closed => (
            "Close",
            "closed",
            "The sender's next report reopens it; suppress it instead.",
        ),
        Status::Suppressed => (
            "Suppress",
            "suppressed",
            "A suppressed occurrence sends no notifications.",
        ),
        Status::Open | Status::Default => ("Open", "reopened", "Rules may notify again."),
    };
    let change = StatusChange::Status(status);
    confirm_status_change(model, &change, (verb, done, words));
}

/// Changes the marked occurrences, else the selected or shown one.
fn confirm_status_change(
    model: &mut Model,
    change: &StatusChange,
    (verb, done, words): (&'static str, &str, &str),
) {
    let ids = model.selected_targets();
    let title = match ids.as_slice() {
        [] => return,
        [_] => format!("{verb} this occurrence?"),
        many => format!("{verb} these {} occurrences?", many.len()),
    };
    let done = format!("{done} {}", model.name_events(&ids));
    let back = UndoAction::from_change(model, &ids, change);
    // After other changes, an undo would again notify receivers, of a closing or of a new opening.
    let is_quiet = match change {
        StatusChange::Acknowledged(_) | StatusChange::Assigned(_) => true,
        StatusChange::Status(Status::Closed) => false,
        StatusChange::Status(_) => model.are_all_open(&ids),
    };
    let then = write_consequence(events::set_status(&ids, change), done);
    let question = |model: &Model, then| {
        let mut confirm = Confirm::new(title, verb, then);
        for line in model.describe_worst_events(&ids) {
            confirm = confirm.line(Token::Text, line);
        }
        if !words.is_empty() {
            confirm = confirm.line(Token::Dim, words);
        }
        confirm
    };
    if is_quiet {
        run_or_confirm(model, then, back, question);
    } else {
        let confirm = question(model, then);
        show_question(model, confirm);
    }
}

pub(super) fn confirm_delivery_change(model: &mut Model, transition: Transition) {
    let id = match &model.page.route {
        Route::Delivery(id) => Some(id.clone()),
        _ => model.selected_targets().pop(),
    };
    let Some(id) = id else { return };
    let row = model
        .store
        .deliveries
        .rows()
        .iter()
        .find(|row| row.id == id);
    let line = row.map(|row| format!("{} to {}", row.state().label(), row.destination_name));
    let to = row.map_or_else(String::new, |row| format!(" to {}", row.destination_name));
    let (verb, title, done, words) = match transition {
        Transition::SendAgain => (
            "Send",
            "Resend this delivery?",
            "resent",
            "An ended delivery is sent as a new one; a waiting one is retried now.",
        ),
        Transition::Cancel => (
            "Cancel it",
            "Cancel this delivery?",
            "cancelled",
            "It will not be attempted again.",
        ),
    };
    let then = write_consequence(
        deliveries::change_delivery(transition, id),
        format!("{done}{to}"),
    );
    let mut confirm = Confirm::new(title, verb, then);
    if let Some(line) = line {
        confirm = confirm.line(Token::Text, line);
    }
    show_question(model, confirm.line(Token::Dim, words));
}

pub(super) fn confirm_note(model: &mut Model, ids: &[String], text: &str) {
    let done = format!("note added to {}", model.name_events(ids));
    let then = write_consequence(events::write_notes(ids, text), done);
    // The response contains the ids for the undo.
    let back = UndoAction::Notes(Vec::new());
    let question = |model: &Model, then| {
        let title = match ids.len() {
            1 => "Add this note?".to_owned(),
            count => format!("Add this note to {count} occurrences?"),
        };
        let mut confirm = Confirm::new(title, "Add", then);
        for line in model.describe_worst_events(ids) {
            confirm = confirm.line(Token::Dim, line);
        }
        confirm.line(Token::Text, text)
    };
    run_or_confirm(model, then, back, question);
}

pub(super) fn store_write(
    model: &Model,
    draft: Object,
    stored: Option<&(String, String)>,
    text: Option<TextEdit>,
) -> Consequence {
    let (word, name) = (draft.kind.singular(), draft.name().to_owned());
    let (call, done) = match stored {
        Some((_, etag)) => (resources::update(&draft, etag), "changed"),
        None => (resources::create(&draft), "created"),
    };
    let mut write = Box::new(Write::new(format!("{word} {name} {done}")));
    write.closes_form = matches!(model.page.content, Content::Form(_));
    write.text = text;
    let before = stored.and_then(|_| model.store.object(draft.kind, &name));
    write.back = before.map(|before| UndoAction::Edited(Box::new(kind::editable_part(before))));
    write.then = Some(Route::Object(draft.kind, name));
    write.draft = Some(Box::new(draft));
    write.replaces = stored.is_some();
    Consequence::Write(Box::new(call), write)
}

pub(super) fn confirm_save(
    model: &mut Model,
    draft: Object,
    stored: Option<&(String, String)>,
    before: Option<&Object>,
    text: Option<TextEdit>,
) {
    let verb = if stored.is_some() { "Change" } else { "Create" };
    let title = format!("{verb} {} {}?", draft.kind.singular(), draft.name());
    let lines = describe_changes(before, &draft);
    let is_client = draft.kind == Kind::Client;
    let mut confirm = Confirm::new(title, verb, store_write(model, draft, stored, text));
    if is_client {
        let words = "Its key is shown only once.";
        confirm = confirm.line(Token::Text, words);
    }
    confirm.lines.extend(lines);
    show_question(model, confirm);
}

pub(super) fn confirm_restore(model: &mut Model, version: Object) {
    let now = model.store.object(version.kind, version.name());
    let stored = now.map(|now| (now.name().to_owned(), now.etag().to_owned()));
    let lines = describe_changes(now.map(kind::editable_part).as_ref(), &version);
    let (word, name) = (version.kind.singular(), version.name().to_owned());
    let then = store_write(model, version, stored.as_ref(), None);
    let mut confirm = Confirm::new(
        format!("Restore this version of {word} {name}?"),
        "Restore",
        then,
    );
    confirm.lines.extend(lines);
    let words = "Secrets keep their current values.";
    show_question(model, confirm.line(Token::Dim, words));
}
