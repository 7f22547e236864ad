//! Opening, filling in, checking and leaving forms, and the way through `$EDITOR`.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Value, json};

use super::{act::report_draft, call, completion, confirm, navigate, read};
use crate::{
    client::Request,
    data::{Draft, Kind},
    editor,
    keymap::{self, Action},
    model::{
        Model, access, document,
        field::TextField,
        form::{FieldKind, Form, FormKind, Input},
        message::{Effect, Purpose, TextEdit},
        overlay::{Confirm, Consequence, Overlay, Pick},
        page::{Content, Page, Route},
    },
    theme::Token,
};

/// The kind of resource that a route shows.
fn kind_of(route: &Route) -> Option<Kind> {
    match route {
        Route::Triggers | Route::Trigger(_) => Some(Kind::Trigger),
        Route::Destinations | Route::Destination(_) => Some(Kind::Destination),
        Route::Rules | Route::Rule(_) => Some(Kind::Rule),
        _ => None,
    }
}

fn open(model: &mut Model, form: Form, effects: &mut Vec<Effect>) {
    let mut page = Page::new(Route::Form);
    page.content = Content::Form(Box::new(form));
    navigate::push(model, page);
    if model.is_up() {
        read::refresh(model, effects);
    }
}

/// Keeps something typed as a form with changes.
pub(super) fn keep(model: &mut Model, kind: Kind, stored: Option<(String, String)>, json: Value) {
    let mut form = Form::new(kind, stored, json);
    form.changed(model.now_ms);
    let mut page = Page::new(Route::Form);
    page.content = Content::Form(Box::new(form));
    navigate::push(model, page);
}

pub(super) fn new(model: &mut Model, effects: &mut Vec<Effect>) {
    let form = match kind_of(&model.page.route) {
        Some(kind) => Form::new(kind, None, json!({})),
        None => Form::client(),
    };
    open(model, form, effects);
}

/// The JSON, name and etag of the selected or shown resource.
fn stored(model: &Model) -> Option<(Kind, Value, String, String)> {
    let kind = kind_of(&model.page.route)?;
    let name = model.resource_name()?;
    let (draft, etag) = match kind {
        Kind::Trigger => {
            let row = model.store.trigger(&name)?;
            (Draft::Trigger(row.spec.clone()), row.etag.clone())
        }
        Kind::Destination => {
            let row = model.store.destination(&name)?;
            (Draft::Destination(row.spec.clone()), row.etag.clone())
        }
        Kind::Rule => {
            let row = model.store.rule(&name)?;
            (Draft::Rule(row.spec.clone()), row.etag.clone())
        }
    };
    Some((kind, draft.to_json(), name, etag))
}

pub(super) fn edit(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some((kind, json, name, etag)) = stored(model) {
        open(model, Form::new(kind, Some((name, etag)), json), effects);
    }
}

pub(super) fn duplicate(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some((kind, mut json, name, _)) = stored(model) {
        json["name"] = json!(format!("{name}-copy"));
        open(model, Form::new(kind, None, json), effects);
    }
}

pub(super) fn edit_text(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some((kind, json, name, etag)) = stored(model) {
        let text = editor::pretty(kind, &json);
        let edit = TextEdit {
            kind,
            stored: Some((name, etag)),
            text,
            into_form: false,
        };
        effects.push(Effect::Edit(edit));
    }
}

/// A trigger that matches the selected or shown event and its like.
pub(super) fn trigger_from_event(model: &mut Model, effects: &mut Vec<Effect>) {
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
    open(model, Form::new(Kind::Trigger, None, base), effects);
}

/// A key in a form.
pub(super) fn press(model: &mut Model, key: KeyEvent, effects: &mut Vec<Effect>) {
    if super::keys::step(model, key, effects) {
        return;
    }
    if key.code == KeyCode::Right && completion::complete(model) {
        return;
    }
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    match key.code {
        KeyCode::Enter if matches!(form.spec().kind, FieldKind::Names(_)) => pick(model),
        _ => match typed(form, key) {
            Typed::Changed => form.changed(now_ms),
            Typed::Moved => {}
            Typed::Nothing => match key.code {
                KeyCode::Down | KeyCode::Enter => form.step(true),
                KeyCode::Up => form.step(false),
                _ => {}
            },
        },
    }
}

/// What a key did to a field.
enum Typed {
    Changed,
    Moved,
    Nothing,
}

fn typed(form: &mut Form, key: KeyEvent) -> Typed {
    let part = form.part;
    let turns = matches!(
        key.code,
        KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right
    );
    let forward = key.code != KeyCode::Left;
    let choices = match form.spec().kind {
        FieldKind::Choice(words) => words.len(),
        _ => 0,
    };
    let field = match form.input_mut() {
        Input::Toggle(on) if turns => {
            *on = !*on;
            return Typed::Changed;
        }
        Input::Choice(at) if turns && choices > 0 => {
            *at = if forward { *at + 1 } else { *at + choices - 1 } % choices;
            return Typed::Changed;
        }
        Input::Clause(clause) => {
            if turns && clause.turn(part, forward) {
                return Typed::Changed;
            }
            clause.text_mut(part)
        }
        Input::Text(field) => Some(field),
        Input::Toggle(_) | Input::Choice(_) | Input::Names(_) => None,
    };
    let Some(field) = field else {
        return Typed::Nothing;
    };
    let before = field.text().to_owned();
    if !field.press(key) {
        return Typed::Nothing;
    }
    if field.text() == before {
        Typed::Moved
    } else {
        Typed::Changed
    }
}

pub(super) fn paste(model: &mut Model, text: &str, _effects: &mut Vec<Effect>) {
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    let part = form.part;
    let field = match form.input_mut() {
        Input::Text(field) => Some(field),
        Input::Clause(clause) => clause.text_mut(part),
        _ => None,
    };
    if let Some(field) = field {
        field.insert(text);
        form.changed(now_ms);
    }
}

/// Puts a text into a field by its number.
pub(super) fn fill(model: &mut Model, index: usize, text: &str) {
    let now_ms = model.now_ms;
    let filled = match model.page.form_mut() {
        Some(form) if index < form.specs.len() => form.fill(index, text, now_ms),
        _ => return,
    };
    if let Err(message) = filled {
        model.say(Token::Bad, message);
    }
}

/// An action of the form.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    let entry = keymap::entry(action);
    if let Err(reason) = access::refusal(model, entry) {
        return model.say(Token::Warning, format!("{}: {reason}", entry.title));
    }
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    let part = form.part;
    match action {
        Action::FormNext => form.step(true),
        Action::FormPrevious => form.step(false),
        Action::FormLeave => leave(model, effects),
        Action::FormSave => save(model),
        Action::FormTest => match form.draft() {
            Some(draft) => report_draft(model, draft, effects),
            None => model.say(
                Token::Bad,
                "something is wrong in the form; it stands in red",
            ),
        },
        Action::FormText => {
            if let FormKind::Resource(kind) = form.kind {
                effects.push(Effect::Edit(TextEdit::of_form(form, kind)));
            }
        }
        Action::FormReveal => form.reveal = !form.reveal,
        Action::FormReference => {
            let route = match document::topic_of(form.spec().path) {
                "" => Route::Reference,
                topic => Route::Topic(topic.to_owned()),
            };
            navigate::go(model, route, effects);
        }
        Action::FormClauseView | Action::FormAddClause | Action::FormRemoveClause => {
            let Some(at) = form
                .specs
                .iter()
                .position(|spec| spec.kind == FieldKind::Clause)
            else {
                return model.say(Token::Info, "only a trigger has a query");
            };
            let part = if form.focus == at {
                part
            } else {
                usize::MAX / 2
            };
            form.focus = at;
            let Input::Clause(clause) = &mut form.inputs[at] else {
                return;
            };
            let result = match action {
                Action::FormAddClause => Ok(clause.add(part)),
                Action::FormRemoveClause => Ok(clause.remove(part)),
                _ => clause.switch().map(|()| 0),
            };
            match result {
                Ok(part) => {
                    form.part = part;
                    form.changed(now_ms);
                }
                Err(message) => model.say(Token::Warning, message),
            }
        }
        _ => {}
    }
}

fn save(model: &mut Model) {
    let Some(form) = model.page.form_mut() else {
        return;
    };
    if form.kind == FormKind::Client {
        if let Some(new) = form.client_to_make() {
            confirm::client(model, new);
        }
        return;
    }
    let Some(draft) = form.draft() else {
        return model.say(
            Token::Bad,
            "something is wrong in the form; it stands in red",
        );
    };
    let stored = form.stored.clone();
    let before = if stored.is_some() {
        editor::pretty(draft.kind(), form.original())
    } else {
        String::new()
    };
    confirm::save(model, draft, stored, &before, None);
}

/// Leaves the form; asks first when something was typed.
fn leave(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(form) = model.page.form() else {
        return;
    };
    if !form.is_changed() {
        return navigate::back(model, effects);
    }
    let title = format!("Leave «{}»?", form.title());
    let confirm = Confirm::new(title, "Leave", Consequence::LeaveForm)
        .line(Token::Bad, "What was typed is lost.");
    model.overlay = Some(Overlay::Confirm(confirm));
}

/// Ends the console; asks first when a form has something that is not saved, on the screen or on
/// the way back. Asked for again while the question stands, it ends without an answer.
pub(super) fn quit(model: &mut Model) {
    let pages = std::iter::once(&model.page).chain(&model.back);
    let unsaved = pages
        .filter_map(Page::form)
        .filter(|form| form.is_changed());
    let titles: Vec<String> = unsaved.map(Form::title).collect();
    let asked = matches!(&model.overlay, Some(Overlay::Confirm(confirm))
        if matches!(confirm.then, Consequence::Quit));
    if titles.is_empty() || asked {
        model.quit = true;
        return;
    }
    let mut confirm = Confirm::new("Quit?", "Quit", Consequence::Quit);
    for title in titles {
        confirm = confirm.line(Token::Bad, format!("What was typed in «{title}» is lost."));
    }
    let confirm = confirm.line(Token::Dim, "Ctrl-C again quits as well.");
    model.overlay = Some(Overlay::Confirm(confirm));
}

/// Chooses from the stored names.
fn pick(model: &mut Model) {
    let Some(form) = model.page.form() else {
        return;
    };
    let (FieldKind::Names(kind), Input::Names(chosen)) = (&form.spec().kind, form.input()) else {
        return;
    };
    let mut items = model.store.names(*kind);
    // A name that is not stored any more can still be taken out.
    items.extend(
        chosen
            .iter()
            .filter(|name| !items.contains(name))
            .cloned()
            .collect::<Vec<_>>(),
    );
    model.overlay = Some(Overlay::Pick(Pick {
        title: form.spec().label.to_owned(),
        items,
        chosen: chosen.clone(),
        events: None,
        needle: TextField::default(),
        cursor: 0,
    }));
}

/// Takes what was picked into the focused field.
pub(super) fn picked(model: &mut Model, chosen: Vec<String>) {
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    if let Input::Names(names) = form.input_mut()
        && *names != chosen
    {
        *names = chosen;
        form.changed(now_ms);
    }
}

/// Asks the service to check the form when the pause after the last key is over.
pub(super) fn check_if_due(model: &mut Model, effects: &mut Vec<Effect>) {
    let (now_ms, up) = (model.now_ms, model.is_up());
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
    if let Some(draft) = form.draft() {
        let request = Request::Validate { draft, update };
        call(model, request, Purpose::Check { version }, effects);
    }
}

/// A text came back from the editor.
pub(super) fn edited(
    model: &mut Model,
    edit: TextEdit,
    result: Result<String, String>,
    effects: &mut Vec<Effect>,
) {
    let text = match result {
        Ok(text) => text,
        Err(message) => return model.say(Token::Bad, message),
    };
    if text == edit.text {
        return model.say(Token::Info, "nothing was changed in the editor");
    }
    match editor::read(edit.kind, &text) {
        Err(problem) => {
            // Opened again with the errors at their lines, so that nothing typed is lost.
            let text = editor::annotate(&text, &[problem]);
            effects.push(Effect::Edit(TextEdit { text, ..edit }));
        }
        Ok((json, draft)) => {
            if edit.into_form
                && let Some(form) = model.page.form_mut()
            {
                form.replace(json);
                form.changed(model.now_ms);
                return;
            }
            let stored = edit.stored.clone();
            let same_name = stored.as_ref().is_none_or(|(name, _)| name == draft.name());
            if !same_name {
                let problem = editor::Problem::new("name", "a name never changes");
                let text = editor::annotate(&text, &[problem]);
                effects.push(Effect::Edit(TextEdit { text, ..edit }));
                return;
            }
            let before = stored
                .as_ref()
                .map_or_else(String::new, |(name, _)| stored_json(model, edit.kind, name));
            let edit = TextEdit { text, ..edit };
            confirm::save(model, draft, stored, &before, Some(edit));
        }
    }
}

fn stored_json(model: &Model, kind: Kind, name: &str) -> String {
    let store = &model.store;
    let draft = match kind {
        Kind::Trigger => store
            .trigger(name)
            .map(|row| Draft::Trigger(row.spec.clone())),
        Kind::Destination => store
            .destination(name)
            .map(|row| Draft::Destination(row.spec.clone())),
        Kind::Rule => store.rule(name).map(|row| Draft::Rule(row.spec.clone())),
    };
    draft.map_or_else(String::new, |draft| draft.to_text())
}
