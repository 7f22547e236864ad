//! Forms: opening, filling in, validating and leaving them, and editing in `$EDITOR`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::{call, completion, confirm, line_picks, navigate, read, report};
use crate::{
    client::{CallResult, Ticket, resources},
    data::{FailureKind, Kind, Object},
    editor, keymap,
    kind::{self, FieldKind},
    limits,
    model::{
        Model, document,
        field::TextField,
        form::{Form, Input, Pane, curl_command},
        inquiry::Inquiry,
        message::Effect,
        overlay::{Confirm, Consequence, Overlay, Picker, PickerPurpose},
        page::{Content, Page},
        write::TextEdit,
    },
    route::Route,
    theme::Token,
};

/// Lines that a key scrolls a pane of the test bench.
const SCROLLED: isize = 3;

pub(super) fn open_form(model: &mut Model, mut form: Form) {
    form.live.due_ms = Some(model.now_ms);
    form.parse_times_at(model.now_ms, &model.zone);
    let mut page = Page::new(Route::Form);
    page.content = Content::Form(Box::new(form));
    navigate::push_page(model, page);
    if model.is_connected() {
        read::refresh_page(model);
    }
}

pub(super) fn open_draft(
    model: &mut Model,
    kind: Kind,
    stored: Option<(String, String)>,
    json: Value,
) {
    let mut form = Form::new(kind, stored, json);
    form.parse_times_at(model.now_ms, &model.zone);
    form.record_change(model.now_ms);
    let mut page = Page::new(Route::Form);
    page.content = Content::Form(Box::new(form));
    navigate::push_page(model, page);
}

pub(super) fn new(model: &mut Model) {
    if let Some(kind) = model.page.route.kind() {
        open_form(model, Form::new(kind, None, json!({})));
    }
}

fn stored_resource(model: &Model) -> Option<(Object, (String, String))> {
    let kind = model.page.route.kind()?;
    let object = model.store.object(kind, &model.resource_name()?)?;
    let stored = (object.name().to_owned(), object.etag().to_owned());
    Some((kind::editable_part(object), stored))
}

pub(super) fn edit_selected(model: &mut Model) {
    if let Some((Object { kind, json }, stored)) = stored_resource(model) {
        open_form(model, Form::new(kind, Some(stored), json));
    }
}

pub(super) fn duplicate_selected(model: &mut Model) {
    if let Some((mut draft, (name, _))) = stored_resource(model) {
        draft.set("name", Some(format!("{name}-copy").into()));
        // The copy is disabled, so that it notifies no one if it is stored by accident.
        draft.set("enabled", None);
        open_form(model, Form::new(draft.kind, None, draft.json));
    }
}

pub(super) fn edit_text(model: &mut Model) {
    if let Some((draft, stored)) = stored_resource(model) {
        let edit = TextEdit {
            kind: draft.kind,
            stored: Some(stored),
            text: kind::field_text(&draft),
            into_form: false,
        };
        model.effects.push(Effect::Edit(edit));
    }
}

pub(super) fn trigger_from_event(model: &mut Model) {
    let (name, dimensions): (String, Vec<(String, String)>) =
        if let Content::Event { detail, .. } = &model.page.content {
            let Some(event) = &detail.value else { return };
            (
                event.name.clone(),
                event.dimensions.clone().into_iter().collect(),
            )
        } else {
            let Some(id) = model.occurrence() else { return };
            let Some(row) = model.store.events.find(&id) else {
                return;
            };
            let pairs = row
                .entity
                .split(' ')
                .filter_map(|pair| pair.split_once('='));
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
            (row.name.to_string(), pairs.collect())
        };
    let equals =
        |field: String, value: &str| json!({"equals": {"field": field, "stringVal": value}});
    let mut clauses = vec![equals("name".to_owned(), &name)];
    clauses.extend(
        dimensions
            .iter()
            .map(|(key, value)| equals(format!("dimensions.{key}"), value)),
    );
    let clause = json!({"and": {"clauses": clauses}});
    let clause = if dimensions.is_empty() {
        equals("name".to_owned(), &name)
    } else {
        clause
    };
    let base = json!({"type": {"event": {"query": {"clause": clause}}}});
    open_form(model, Form::new(Kind::Trigger, None, base));
}

pub(super) fn handle_form_key(model: &mut Model, key: KeyEvent) {
    if let Some(form) = model.page.form_mut()
        && form.saving.is_some()
        && key.code != KeyCode::Esc
    {
        // The key is stored for the confirmation that is about to open.
        if form.ahead.len() < limits::KEYS_AHEAD {
            form.ahead.push(key);
        }
        return;
    }
    if model.continue_sequence(key) {
        return;
    }
    if key.code == KeyCode::Right && completion::complete(model) {
        return;
    }
    if key.code == KeyCode::Enter && line_picks::open_line_picker(model) {
        return;
    }
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    // When the operator types, the form is shown again.
    form.bench.is_open = false;
    if key.code == KeyCode::Enter && matches!(form.input(), Input::Names(_)) {
        open_picker(model, "");
        return;
    }
    match handle_key(form, key) {
        KeyOutcome::Changed => form.record_change(now_ms),
        KeyOutcome::Moved => {}
        KeyOutcome::Nothing => match key.code {
            KeyCode::Down | KeyCode::Enter => form.move_focus(true),
            KeyCode::Up => form.move_focus(false),
            KeyCode::Char(typed) if !has_modifier(key) => {
                handle_unexpected_text(model, &typed.to_string());
            }
            _ => {
                let key = keymap::format_keys(&[key]);
                model.show_notice(Token::Info, format!("{key} does nothing here"));
            }
        },
    }
}

fn has_modifier(key: KeyEvent) -> bool {
    let modifiers = KeyModifiers::CONTROL | KeyModifiers::ALT;
    key.modifiers.intersects(modifiers)
}

/// Opens the picker of a field that accepts no text, or shows how to change the field.
fn handle_unexpected_text(model: &mut Model, text: &str) {
    if open_picker(model, text) {
        return;
    }
    let words = match model.page.form().map(Form::input) {
        Some(Input::Toggle(_)) => "Space switches",
        _ => "Space opens or closes this part of the form",
    };
    model.show_notice(Token::Info, words);
}

enum KeyOutcome {
    Changed,
    Moved,
    Nothing,
}

fn handle_key(form: &mut Form, key: KeyEvent) -> KeyOutcome {
    let turns = matches!(
        key.code,
        KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right
    );
    let forward = key.code != KeyCode::Left;
    let choices = match form.spec().kind {
        FieldKind::Choice(_) | FieldKind::Named(_) => form.spec().kind.choice_names().len(),
        _ => 0,
    };
    let field = match form.input_mut() {
        Input::Toggle(on) if turns => {
            *on = !*on;
            return KeyOutcome::Changed;
        }
        Input::Choice(at) if turns && choices > 0 => {
            *at = if forward { *at + 1 } else { *at + choices - 1 } % choices;
            return KeyOutcome::Changed;
        }
        Input::Clause(clause) => Some(&mut clause.line),
        Input::Section(is_open) if turns || key.code == KeyCode::Enter => {
            *is_open = !*is_open;
            return KeyOutcome::Moved;
        }
        Input::Text(field) => Some(field),
        Input::Toggle(_) | Input::Choice(_) | Input::Names(_) | Input::Section(_) => None,
    };
    let Some(field) = field else {
        return KeyOutcome::Nothing;
    };
    let before = field.text().to_owned();
    if !field.press(key) {
        return KeyOutcome::Nothing;
    }
    if field.text() == before {
        KeyOutcome::Moved
    } else {
        KeyOutcome::Changed
    }
}

pub(super) fn paste_text(model: &mut Model, text: &str) {
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    let field = match form.input_mut() {
        Input::Text(field) => Some(field),
        Input::Clause(clause) => Some(&mut clause.line),
        _ => None,
    };
    match field {
        Some(field) => {
            field.insert(text);
            form.record_change(now_ms);
        }
        None => handle_unexpected_text(model, text.trim()),
    }
}

pub(super) fn fill_from_text(model: &mut Model, index: usize, text: &str) {
    let now_ms = model.now_ms;
    let filled = match model.page.form_mut() {
        Some(form) if index < form.specs.len() => form.fill(index, text, now_ms),
        _ => return,
    };
    if let Err(message) = filled {
        model.show_notice(Token::Bad, message);
    }
}

pub(super) fn move_focus(model: &mut Model, forward: bool) {
    if let Some(form) = model.page.form_mut() {
        form.move_focus(forward);
    }
}

pub(super) fn reveal_secret(model: &mut Model) {
    if let Some(form) = model.page.form_mut() {
        form.reveal = !form.reveal;
    }
}

pub(super) fn test_draft(model: &mut Model) {
    let Some(draft) = current_draft(model) else {
        return;
    };
    let event_id = model.page.form().map(|form| form.bench.event_id.clone());
    if draft.kind != Kind::Destination {
        return report::test_draft(model, &draft);
    }
    let inquiry = Inquiry::Destination {
        fields: draft.with_only_fields(&["name", "type", "delivery", "templateLanguage"]),
        event_id: event_id.unwrap_or_default(),
    };
    report::test_form(model, &inquiry);
}

pub(super) fn select_older_test(model: &mut Model) {
    if let Some(form) = model.page.form_mut() {
        form.bench.select_older();
    }
}

/// Switches to the other pane of the test bench. If the bench replaces the form, the order is
/// response, request, form.
pub(super) fn switch_pane(model: &mut Model) {
    let (now_ms, columns) = (model.now_ms, model.size.0);
    if let Some(form) = model.page.form_mut() {
        let bench = &mut form.bench;
        if columns >= limits::BENCH_COLUMNS {
            bench.pane = bench.pane.opposite();
        } else if !bench.is_open {
            bench.is_open = true;
            form.live.due_ms = Some(now_ms);
        } else if bench.pane == Pane::Response {
            bench.pane = Pane::Request;
        } else {
            bench.is_open = false;
            if bench.count() > 0 {
                bench.pane = Pane::Response;
            }
        }
    }
    preview_if_due(model);
}

pub(super) fn scroll_bench(model: &mut Model, down: bool) {
    let Some(pane) = model.page.form().map(|form| form.bench.pane) else {
        return;
    };
    let lines = if down { SCROLLED } else { -SCROLLED };
    if !model.scroll_bench(pane, lines) {
        let words = model.expand_keys("‹form_bench› shows the panes to scroll");
        model.show_notice(Token::Info, words);
    }
}

pub(super) fn show_next_part(model: &mut Model) {
    if let Some(form) = model.page.form_mut() {
        form.bench.show_next_tab();
    }
}

pub(super) fn toggle_differences(model: &mut Model) {
    if let Some(form) = model.page.form_mut() {
        form.bench.is_unfolded = !form.bench.is_unfolded;
    }
}

pub(super) fn copy_curl(model: &mut Model) {
    let request = model.page.form().and_then(Form::request);
    let Some(command) = request.and_then(curl_command) else {
        return model.show_notice(Token::Info, "no HTTP request to copy");
    };
    model.effects.push(Effect::Copy(command));
    model.show_notice(
        Token::Info,
        "copied the request as curl, with masked secrets",
    );
}

fn current_draft(model: &mut Model) -> Option<Object> {
    let (now_ms, zone) = (model.now_ms, model.zone.clone());
    let form = model.page.form_mut()?;
    form.parse_times_at(now_ms, &zone);
    form.is_tried = true;
    let draft = form.draft();
    if draft.is_none() {
        let answer = "Fix the field marked in red";
        model.show_notice(Token::Bad, answer);
    }
    draft
}

pub(super) fn as_text(model: &mut Model) {
    if let Some(form) = model.page.form() {
        model.effects.push(Effect::Edit(TextEdit::from_form(form)));
    }
}

pub(super) fn open_reference(model: &mut Model) {
    let Some(form) = model.page.form() else {
        return;
    };
    let route = match document::topic_for_path(form.spec().path) {
        "" => Route::REFERENCE,
        topic => Route::Topic(topic.to_owned()),
    };
    navigate::go_to_route(model, route);
}

/// Asks whether to save the form, after the service has validated it.
pub(super) fn save_form(model: &mut Model) {
    let Some(draft) = current_draft(model) else {
        return;
    };
    let is_up = model.is_connected();
    let Some(form) = model.page.form_mut() else {
        return;
    };
    let stored = form.stored.clone();
    let before = stored.as_ref().map(|_| Object {
        kind: form.kind,
        json: form.original_json().clone(),
    });
    let check = match draft.kind {
        _ if !is_up => None,
        Kind::Silence => Some(resources::preview_silence(&draft)),
        Kind::Schedule if stored.is_some() => Some(resources::preview_schedule(&draft)),
        _ if form.checked => None,
        _ => resources::validate(&draft, stored.is_some()),
    };
    let Some(check) = check else {
        return confirm::confirm_save(model, draft, stored.as_ref(), before.as_ref(), None);
    };
    let ticket = call(model, check, move |model, ticket, answer| {
        handle_validation(
            model,
            ticket,
            draft,
            stored.as_ref(),
            before.as_ref(),
            answer,
        )
    });
    if let Some(form) = model.page.form_mut() {
        form.saving = Some(ticket);
    }
}

/// Handles the result of the validation before saving: asks for confirmation or shows the errors.
/// Keys pressed in the meantime go to the confirmation. Returns whether a validation was pending.
fn handle_validation(
    model: &mut Model,
    ticket: Ticket,
    draft: Object,
    stored: Option<&(String, String)>,
    before: Option<&Object>,
    answer: CallResult,
) -> bool {
    let form = model.page.form_mut();
    let Some(form) = form.filter(|form| form.saving == Some(ticket)) else {
        return false;
    };
    form.saving = None;
    let ahead = std::mem::take(&mut form.ahead);
    match answer {
        Err(failure) if failure.kind == FailureKind::Invalid => {
            form.show_failure(&failure);
            model.show_notice(Token::Bad, format!("✗ {}", failure.sentence()));
        }
        // Any other error is reported when the form is saved.
        answer => {
            let kind = draft.kind;
            confirm::confirm_save(model, draft, stored, before, None);
            if let Some(Overlay::Confirm(confirm)) = &mut model.overlay {
                confirm::add_preview(confirm, kind, answer);
            }
            model.keys_ahead = ahead;
        }
    }
    true
}

/// Leaves the form, after a confirmation if it has changes.
pub(super) fn leave_form(model: &mut Model) {
    let Some(form) = model.page.form() else {
        return;
    };
    if !form.is_changed() {
        return navigate::go_back(model);
    }
    let title = format!("Leave «{}»?", form.title());
    let confirm = Confirm::new(title, "Leave", Consequence::LeaveForm)
        .line(Token::Bad, "Typed text will be lost.");
    model.overlay = Some(Overlay::Confirm(confirm));
}

/// Quits the console, after a confirmation if a form on the screen or in the history has unsaved
/// changes. A second request while the question is open quits immediately.
pub(super) fn quit_from_form(model: &mut Model) {
    model.next_context = None;
    let pages = std::iter::once(&model.page).chain(&model.back);
    let unsaved = pages
        .filter_map(Page::form)
        .filter(|form| form.is_changed());
    let titles: Vec<String> = unsaved.map(Form::title).collect();
    let is_confirming = matches!(&model.overlay, Some(Overlay::Confirm(confirm))
        if matches!(confirm.then, Consequence::Quit));
    if titles.is_empty() || is_confirming {
        model.quit = true;
        return;
    }
    let mut confirm = Confirm::new("Quit?", "Quit", Consequence::Quit);
    for title in titles {
        confirm = confirm.line(Token::Bad, format!("Text typed in «{title}» will be lost."));
    }
    let confirm = confirm.line(Token::Dim, "Ctrl-C again also quits.");
    model.overlay = Some(Overlay::Confirm(confirm));
}

pub(super) fn quit_to_context(model: &mut Model, context: String) {
    quit_from_form(model);
    model.next_context = Some(context);
}

/// Opens the picker of a field with names or choices, filtered by a text. Returns `false` for other
/// fields.
fn open_picker(model: &mut Model, needle: &str) -> bool {
    let Some(form) = model.page.form() else {
        return false;
    };
    let spec = form.spec();
    let (purpose, items, chosen) = match (&spec.kind, form.input()) {
        (FieldKind::Names(kind), Input::Names(chosen)) => {
            if model.store.resources(*kind).value.is_none() {
                model.show_notice(Token::Info, "reading…");
                return true;
            }
            let mut items = model.store.names(*kind);
            // Selected names that are no longer stored are listed as well, so that they can be
            // removed.
            let missing = chosen.iter().filter(|name| !items.contains(name));
            items.extend(missing.cloned().collect::<Vec<_>>());
            (PickerPurpose::Names, items, chosen.clone())
        }
        (kind, Input::Choice(_)) => {
            let items = kind.choice_names().into_iter().map(str::to_owned);
            (PickerPurpose::Choice, items.collect(), Vec::new())
        }
        _ => return false,
    };
    model.overlay = Some(Overlay::Picker(Picker {
        title: spec.label.to_owned(),
        items,
        chosen,
        values: None,
        purpose,
        needle: TextField::new(needle),
        cursor: 0,
    }));
    true
}

/// Applies the choice under the cursor; without a match, the picker stays open.
pub(super) fn apply_choice(model: &mut Model, pick: Picker) {
    let item = pick.matching_items().get(pick.cursor).copied();
    let Some(at) = item.and_then(|item| pick.items.iter().position(|it| it == item)) else {
        model.overlay = Some(Overlay::Picker(pick));
        return;
    };
    let now_ms = model.now_ms;
    if let Some(form) = model.page.form_mut()
        && let Input::Choice(chosen) = form.input_mut()
        && *chosen != at
    {
        *chosen = at;
        form.record_change(now_ms);
    }
}

pub(super) fn apply_pick(model: &mut Model, chosen: Vec<String>) {
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    if let Input::Names(names) = form.input_mut()
        && *names != chosen
    {
        *names = chosen;
        form.record_change(now_ms);
    }
}

/// Requests a validation once the pause after the last key is over.
pub(super) fn check_if_due(model: &mut Model) {
    let (now_ms, up) = (model.now_ms, model.is_connected());
    let Some(form) = model.page.form_mut() else {
        return;
    };
    if form.check_at_ms.is_none_or(|at| at > now_ms) {
        return;
    }
    form.check_at_ms = None;
    if !up || !form.errors.is_empty() {
        return;
    }
    let (update, version) = (form.stored.is_some(), form.version);
    let Some(draft) = form.draft() else { return };
    let Some(validate) = resources::validate(&draft, update) else {
        form.checked = true;
        return;
    };
    let ticket = call(model, validate, record_check);
    if let Some(form) = model.page.form_mut() {
        form.checking = Some((ticket, version));
    }
}

fn record_check(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let Some(form) = model.page.form_mut() else {
        return false;
    };
    if form.checking != Some((ticket, form.version)) {
        return false;
    }
    match answer {
        Ok(_) => form.checked = true,
        Err(failure) if failure.kind == FailureKind::Invalid => {
            // A validation during a pause in typing must not move the focus.
            let focus = form.focus;
            form.show_failure(&failure);
            form.focus = focus;
        }
        // Any other error is reported when the form is saved.
        Err(_) => {}
    }
    true
}

/// Requests the service's result for the form once the pause after the last key is over.
pub(super) fn preview_if_due(model: &mut Model) {
    let (now_ms, is_up) = (model.now_ms, model.is_connected());
    let is_wide = model.size.0 >= limits::FORM_SPLIT_COLUMNS;
    let has_bench = model.size.0 >= limits::BENCH_COLUMNS;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    if form.live.due_ms.is_none_or(|at| at > now_ms) {
        return;
    }
    form.live.due_ms = None;
    let is_seen = match form.kind {
        Kind::Rule => is_wide,
        Kind::Destination => has_bench || form.bench.is_open,
        _ => true,
    };
    if !is_up || !is_seen {
        return;
    }
    let Some(live) = form.live_call() else {
        form.live.made = None;
        return;
    };
    let ticket = call(model, live, |model, ticket, answer| {
        let form = model.page.form_mut();
        form.is_some_and(|form| form.record_live_response(ticket, answer))
    });
    if let Some(form) = model.page.form_mut() {
        form.live.waiting = Some(ticket);
    }
}

pub(super) fn handle_edited(model: &mut Model, edit: TextEdit, result: Result<String, String>) {
    let text = match result {
        Ok(text) => text,
        Err(message) => return model.show_notice(Token::Bad, message),
    };
    if text == edit.text {
        return model.show_notice(Token::Info, "nothing was changed in the editor");
    }
    let draft = match editor::parse_text(edit.kind, &text) {
        Ok(draft) => draft,
        Err(problems) => {
            // The editor opens again with the errors at their lines, so that no text is lost.
            let text = editor::annotate_text(&text, &problems);
            return model.effects.push(Effect::Edit(TextEdit { text, ..edit }));
        }
    };
    if edit.into_form
        && let Some(form) = model.page.form_mut()
    {
        form.replace(draft.json);
        return form.record_change(model.now_ms);
    }
    let stored = edit.stored.clone();
    let same_name = stored.as_ref().is_none_or(|(name, _)| name == draft.name());
    if !same_name {
        let problem = editor::Problem::new("name", "the name cannot be changed");
        let text = editor::annotate_text(&text, &[problem]);
        return model.effects.push(Effect::Edit(TextEdit { text, ..edit }));
    }
    let before = stored.as_ref().and_then(|(name, _)| {
        let object = model.store.object(edit.kind, name)?;
        Some(kind::editable_part(object))
    });
    let edit = TextEdit { text, ..edit };
    confirm::confirm_save(model, draft, stored.as_ref(), before.as_ref(), Some(edit));
}
