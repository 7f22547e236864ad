//! On-call actions: acknowledgements, escalations, overrides and drills.

use bellwether_proto::v1;
use serde_json::json;

use super::{
    confirm::{show_question, write_consequence},
    execute::execute,
    navigate,
};
use crate::{
    client::{Call, StatusChange, WriteOutcome, events, message, parse_empty},
    data::{Kind, Object, when},
    document::Link,
    model::{
        Model,
        field::TextField,
        overlay::{Confirm, Consequence, Overlay, Prompt, PromptPurpose},
        write::Write,
    },
    route::Route,
    theme::Token,
};

pub(super) fn next_tab(model: &mut Model) {
    let tabs = Route::ON_CALL_TABS;
    let own = tabs.iter().position(|(_, it)| *it == model.page.route);
    let next = own.map_or(0, |at| (at + 1) % tabs.len());
    if let Some((_, route)) = tabs.into_iter().nth(next) {
        navigate::switch_tab(model, route);
    }
}

fn selected_response(model: &Model) -> Option<&Object> {
    let name = model.target_name(Kind::Response)?;
    model.store.object(Kind::Response, &name)
}

/// Acknowledges the event of a response, or all open events of its group.
pub(super) fn confirm_acknowledge(model: &mut Model) {
    let Some(found) = selected_response(model) else {
        return;
    };
    let done = format!("acknowledged {}", found.text("eventName"));
    let change = StatusChange::Acknowledged(true);
    let call = match found.text("groupId") {
        "" => events::set_status(&[found.text("occurrenceId").to_owned()], &change),
        group => events::set_group_status(group, &change),
    };
    execute(model, write_consequence(call, done));
}

pub(super) fn prompt_acknowledge_for(model: &mut Model) {
    let Some(found) = selected_response(model) else {
        return;
    };
    let (title, name) = (found.text("eventName"), found.name().to_owned());
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: format!("How long to acknowledge {title}"),
        help: "such as 30m, 2h or 1d; then it pages again",
        field: TextField::default(),
        offers: ["30m", "1h", "2h", "4h", "1d"].map(str::to_owned).to_vec(),
        then: PromptPurpose::AcknowledgeFor(name),
    }));
}

pub(super) fn confirm_escalate(model: &mut Model) {
    let Some(found) = selected_response(model) else {
        return;
    };
    let event = found.text("eventName");
    let seen = |field| i32::try_from(found.number(field)?).ok();
    let request = v1::EscalateResponseRequest {
        id: found.name().to_owned(),
        seen_round: seen("round"),
        seen_step: seen("step"),
    };
    let call = Call::from_request("ResponseService", &request).into_write(parse_empty);
    let then = write_consequence(call, format!("{event} was escalated"));
    let title = format!("Run the next step for {event}?");
    let words = "Notifies the receivers of the next step now.";
    let confirm = Confirm::new(title, "Escalate", then);
    show_question(model, confirm.line(Token::Text, words));
}

pub(super) fn confirm_run_drill(model: &mut Model) {
    let Some(name) = model.target_name(Kind::Drill) else {
        return;
    };
    let request = v1::RunDrillRequest { name: name.clone() };
    let call = Call::from_request("DrillService", &request).into_write(parse_empty);
    let then = write_consequence(call, format!("drill {name} started"));
    let confirm = Confirm::new(format!("Run drill {name} now?"), "Run", then);
    let words = "Pages the person on call, as a real event does.";
    show_question(model, confirm.line(Token::Text, words));
}

pub(super) fn prompt_override(model: &mut Model) {
    let Some(name) = model.target_name(Kind::Schedule) else {
        return;
    };
    let stretch = match model.link_at_cursor() {
        Some(Link::Shift(start_ms, end_ms)) => format_shift_range(model, start_ms, end_ms),
        _ => String::new(),
    };
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: format!("Override for {name}"),
        help: "`ana until 18:00`, `ana, ben for 2h` or `cleo from 18:00 for 8h`; - for no one",
        field: TextField::with_cursor_at_start(stretch),
        offers: model.store.names(Kind::Contact),
        then: PromptPurpose::Override(name),
    }));
}

/// Formats ` from … until …` in the operator's time zone; an override of the current shift starts
/// now.
fn format_shift_range(model: &Model, start_ms: i64, end_ms: i64) -> String {
    let typed = |ms| model.format_input_time(ms);
    if start_ms <= model.now_ms {
        return format!(" until {}", typed(end_ms));
    }
    format!(" from {} until {}", typed(start_ms), typed(end_ms))
}

/// Shows the feed address of a schedule or a contact. The service records the request, so the call
/// is a write with a confirmation.
pub(super) fn confirm_show_feed(model: &mut Model) {
    let words = "Anyone with the URL can read the shifts without a key. The audit log records who requested it.";
    let methods = ["GetScheduleFeed", "GetContactFeed"];
    confirm_feed(model, methods, "Show", words);
}

pub(super) fn revoke_feed(model: &mut Model) {
    let words = "The current URL stops working, and calendars that use it stop updating.";
    let methods = ["RotateScheduleFeed", "RotateContactFeed"];
    confirm_feed(model, methods, "Revoke", words);
}

fn confirm_feed(model: &mut Model, methods: [&'static str; 2], verb: &'static str, words: &str) {
    let named = [Kind::Schedule, Kind::Contact].map(|kind| Some((kind, model.target_name(kind)?)));
    let Some((kind, name)) = named.into_iter().flatten().next() else {
        return;
    };
    let (service, method) = match kind {
        Kind::Contact => ("ContactService", methods[1]),
        _ => ("ScheduleService", methods[0]),
    };
    // The responses for schedules and contacts have the same fields.
    let call = Call::new(service, method, json!({"name": name})).into_write(|answer| {
        let found: v1::GetScheduleFeedResponse = message(answer)?;
        Ok(WriteOutcome::Key {
            name: "the feed".to_owned(),
            key: found.url,
        })
    });
    let write = Write::new(format!("the feed URL of {name}"));
    let then = Consequence::Write(Box::new(call), Box::new(write));
    let title = format!("{verb} the feed URL of {name}?");
    let confirm = Confirm::new(title, verb, then).line(Token::Text, words);
    model.overlay = Some(Overlay::Confirm(confirm));
}

pub(super) fn parse_answer(
    model: &Model,
    purpose: &PromptPurpose,
    typed: &str,
) -> Result<Consequence, String> {
    match purpose {
        PromptPurpose::AcknowledgeFor(name) => acknowledge_for(model, name, typed),
        PromptPurpose::Override(schedule) => override_shift(model, schedule, typed),
        _ => Err("no question is open".to_owned()),
    }
}

fn acknowledge_for(model: &Model, name: &str, typed: &str) -> Result<Consequence, String> {
    let found = model.store.object(Kind::Response, name);
    let found = found.ok_or("the response has ended")?;
    let length = when::parse_duration_ms(typed);
    let length = length.ok_or_else(|| {
        format!(
            "`{typed}` is not a valid duration; expected {}",
            when::LENGTHS
        )
    })?;
    let (occurrence, group) = (found.text("occurrenceId"), found.text("groupId"));
    let call = events::acknowledge_for(occurrence, group, length / 1_000);
    let done = format!("acknowledged {} for {typed}", found.text("eventName"));
    Ok(write_consequence(call, done))
}

/// Parses an override: names, then optionally `from` a time, then `until` a time or `for` a
/// duration.
fn override_shift(model: &Model, schedule: &str, typed: &str) -> Result<Consequence, String> {
    let wrong = || {
        format!(
            "`{typed}`: expected `ana until 18:00`, `ana, ben for 2h` or `ana from 18:00 for 8h`"
        )
    };
    let moment = |text: &str| when::parse_time(text, model.now_ms, &model.zone);
    let (head, end, is_length) = match (typed.rsplit_once(" until "), typed.rsplit_once(" for ")) {
        (Some((head, end)), None) => (head, end, false),
        (None, Some((head, end))) => (head, end, true),
        _ => return Err(wrong()),
    };
    let (names, start) = match head.rsplit_once(" from ") {
        Some((names, start)) => (names, Some(moment(start)?)),
        None => (head, None),
    };
    let end = if is_length {
        let length = when::parse_duration_ms(end.trim());
        let length = length.ok_or_else(|| {
            format!(
                "`{end}` is not a valid duration; expected {}",
                when::LENGTHS
            )
        })?;
        let from_ms = start.map_or(model.now_ms, jiff::Timestamp::as_millisecond);
        jiff::Timestamp::from_millisecond(from_ms.saturating_add(length))
            .map_err(|_range| wrong())?
    } else {
        moment(end)?
    };
    let names = names.split(',').map(str::trim);
    let names: Vec<_> = names.filter(|it| !it.is_empty() && *it != "-").collect();
    let who = match names.as_slice() {
        [] => "no one".to_owned(),
        names => names.join(", "),
    };
    let mut over = json!({"contactNames": names, "endTime": end.to_string()});
    if let Some(start) = start {
        over["startTime"] = start.to_string().into();
    }
    let request = json!({"name": schedule, "override": over});
    let call = Call::new("ScheduleService", "CreateOverride", request).into_write(parse_empty);
    let start = start.map_or_else(String::new, |it| {
        format!(" from {}", model.format_time(it.as_millisecond()))
    });
    let until = model.format_time(end.as_millisecond());
    let done = format!("{who} on call for {schedule}{start} until {until}");
    Ok(write_consequence(call, done))
}
