//! Forms: fields for editing the JSON of a resource. All other parts of the resource are preserved.

mod bench;
mod clause;
mod input;
mod list;
mod live;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::KeyEvent;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

pub(crate) use self::{
    bench::{Bench, Comparison, FormTest, Pane, RequestTab, curl_command},
    clause::ClauseInput,
    input::Input,
    live::{LivePreview, LivePreviewState},
    words::describe_changes,
};
use crate::{
    client::Ticket,
    data::{Failure, Kind, Object, get_value, is_empty_value, set_value, when},
    editor,
    kind::{self, FieldKind, FieldSpec},
};

#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    /// Name and etag of the edited resource; `None` for a new one.
    pub(crate) stored: Option<(String, String)>,
    /// The object as opened.
    original: Value,
    /// The object that the fields change. Everything in it that has no field is preserved.
    base: Value,
    pub(crate) specs: &'static [FieldSpec],
    /// One input for each of `specs`.
    pub(crate) inputs: Vec<Input>,
    pub(crate) focus: usize,
    pub(crate) reveal: bool,
    /// Errors by path; `""` for the whole form.
    pub(crate) errors: BTreeMap<String, String>,
    /// Fields that had the focus before, whose errors are shown.
    left: BTreeSet<usize>,
    /// Whether the operator tried to save or test the form, so that all errors are shown.
    pub(crate) is_tried: bool,
    /// Number of changes, by which outdated responses are recognized.
    pub(crate) version: u64,
    /// Time of the last change and the time zone, for parsing times.
    now_ms: i64,
    zone: TimeZone,
    pub(crate) live: LivePreviewState,
    pub(crate) bench: Bench,
    pub(crate) check_at_ms: Option<i64>,
    /// The validation after which the confirmation to save opens, and the keys pressed since it
    /// began.
    pub(crate) saving: Option<Ticket>,
    pub(crate) ahead: Vec<KeyEvent>,
    pub(crate) waiting: Option<Ticket>,
    pub(crate) checking: Option<(Ticket, u64)>,
    pub(crate) checked: bool,
}

/// Removes objects left empty by a cleared field, except for the type of a destination.
fn remove_empty(json: &mut Value, path: &str) {
    let mut rest = path;
    while let Some((around, _)) = rest.rsplit_once('.') {
        let is_type = around == "type"
            || around
                .strip_prefix("type.")
                .is_some_and(|it| !it.contains('.'));
        if is_type || !get_value(json, around).is_some_and(is_empty_value) {
            return;
        }
        set_value(json, around, None);
        rest = around;
    }
}

impl Form {
    pub(crate) fn new(kind: Kind, stored: Option<(String, String)>, base: Value) -> Self {
        let specs = kind::spec(kind).fields;
        let inputs = specs
            .iter()
            .map(|spec| Input::read(spec, get_value(&base, spec.path)))
            .collect();
        let mut form = Self {
            kind,
            stored,
            original: base.clone(),
            base,
            specs,
            inputs,
            focus: 0,
            reveal: false,
            errors: BTreeMap::new(),
            left: BTreeSet::new(),
            is_tried: false,
            version: 0,
            now_ms: 0,
            zone: TimeZone::UTC,
            live: LivePreviewState::default(),
            bench: Bench::default(),
            check_at_ms: None,
            saving: None,
            ahead: Vec::new(),
            waiting: None,
            checking: None,
            checked: false,
        };
        form.expand_filled_sections();
        if form.is_locked(0) {
            form.move_focus(true);
        }
        form
    }

    pub(crate) fn replace(&mut self, json: Value) {
        self.inputs = self
            .specs
            .iter()
            .map(|spec| Input::read(spec, get_value(&json, spec.path)))
            .collect();
        self.base = json;
        self.expand_filled_sections();
        self.version += 1;
    }

    pub(crate) fn title(&self) -> String {
        let word = self.kind.singular();
        match &self.stored {
            Some((name, _)) => format!("Edit {word} {name}"),
            None => format!("New {word}"),
        }
    }

    fn chosen_type(&self) -> &'static str {
        let chosen = self
            .specs
            .iter()
            .zip(&self.inputs)
            .find(|(spec, _)| spec.path == "type");
        match chosen {
            Some((
                FieldSpec {
                    kind: FieldKind::Choice(words),
                    ..
                },
                Input::Choice(at),
            )) => words.get(*at).copied().unwrap_or_default(),
            _ => "",
        }
    }

    pub(crate) fn type_word(&self) -> &'static str {
        self.chosen_type()
    }

    pub(crate) fn is_applicable(&self, index: usize) -> bool {
        let only = self.specs[index].only;
        only.is_empty() || only == self.chosen_type()
    }

    /// Whether a field can be filled in, even if it is collapsed.
    pub(crate) fn is_fillable(&self, index: usize) -> bool {
        self.is_applicable(index) && self.specs[index].kind != FieldKind::Section
    }

    pub(crate) fn is_shown(&self, index: usize) -> bool {
        let section = self.section_index(index).map(|at| &self.inputs[at]);
        self.is_applicable(index) && !matches!(section, Some(Input::Section(false)))
    }

    fn section_index(&self, index: usize) -> Option<usize> {
        let is_section = |at: &usize| self.specs[*at].kind == FieldKind::Section;
        let is_field = !is_section(&index);
        let mut before = (0..index).rev();
        let found = before.find(|at| is_section(at) && self.is_applicable(*at));
        found.filter(|_| is_field)
    }

    pub(crate) fn is_in_section(&self, index: usize) -> bool {
        self.section_index(index).is_some()
    }

    fn section_fields(&self, section: usize) -> impl Iterator<Item = usize> + '_ {
        let fields = section + 1..self.specs.len();
        let own = fields.take_while(|at| self.specs[*at].kind != FieldKind::Section);
        own.filter(|at| self.is_applicable(*at))
    }

    pub(crate) fn filled_labels(&self, section: usize) -> Vec<&'static str> {
        let fields = self.section_fields(section);
        let filled = fields.filter(|at| !self.inputs[*at].is_blank());
        filled.map(|at| self.specs[at].label).collect()
    }

    fn expand_filled_sections(&mut self) {
        for at in 0..self.specs.len() {
            if matches!(self.inputs[at], Input::Section(_)) && !self.filled_labels(at).is_empty() {
                self.inputs[at] = Input::Section(true);
            }
        }
    }

    fn expand_invalid_sections(&mut self) {
        let all = 0..self.specs.len();
        let wrong = all.filter(|at| self.errors.contains_key(self.specs[*at].path));
        for at in wrong.collect::<Vec<_>>() {
            self.expand_section(at);
        }
    }

    fn expand_section(&mut self, index: usize) {
        if let Some(section) = self.section_index(index) {
            self.inputs[section] = Input::Section(true);
        }
    }

    /// Whether a field is read-only. The name of a stored resource cannot change.
    pub(crate) fn is_locked(&self, index: usize) -> bool {
        self.stored.is_some() && self.specs[index].path == "name"
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut json = self.base.clone();
        if let Some(word) = Some(self.chosen_type()).filter(|word| !word.is_empty()) {
            let stored = get_value(&self.base, &format!("type.{word}")).cloned();
            let stored = stored.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            set_value(&mut json, "type", Some(serde_json::json!({ word: stored })));
        }
        for (index, (spec, input)) in self.specs.iter().zip(&self.inputs).enumerate() {
            let is_field = spec.path != "type" && spec.kind != FieldKind::Section;
            if !self.is_applicable(index) || !is_field {
                continue;
            }
            let written = input.write(spec);
            let before = get_value(&self.base, spec.path);
            // A field that was not changed keeps the value that the service wrote, or stays unset.
            let is_choice = matches!(input, Input::Choice(_));
            if is_choice || Input::read(spec, before).write(spec) != written {
                let moment = self.parsed_time(index).and_then(Result::ok);
                let written = moment.map(|at| at.to_string().into()).or(written);
                set_value(&mut json, spec.path, written);
                remove_empty(&mut json, spec.path);
            }
        }
        json
    }

    pub(crate) fn original_json(&self) -> &Value {
        &self.original
    }

    pub(crate) fn base_json(&self) -> &Value {
        &self.base
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.version > 0
    }

    /// Validates the form locally and returns the draft; If there are errors, shows them and
    /// returns `None`.
    pub(crate) fn draft(&mut self) -> Option<Object> {
        self.check_locally();
        if !self.errors.is_empty() {
            self.expand_invalid_sections();
            return None;
        }
        let draft = Object {
            kind: self.kind,
            json: self.to_json(),
        };
        match editor::check_editor(&draft) {
            Ok(()) => Some(draft),
            Err(failure) => {
                self.show_failure(&failure);
                None
            }
        }
    }

    pub(crate) fn parse_times_at(&mut self, now_ms: i64, zone: &TimeZone) {
        self.now_ms = now_ms;
        self.zone = zone.clone();
    }

    /// Parses the value of a time field. `None` if the field is empty or of another kind.
    fn parsed_time(&self, index: usize) -> Option<Result<Timestamp, String>> {
        let Input::Text(field) = &self.inputs[index] else {
            return None;
        };
        let is_moment = self.specs[index].kind == FieldKind::Time && !field.text().is_empty();
        is_moment.then(|| when::parse_time(field.text(), self.now_ms, &self.zone))
    }

    pub(crate) fn parsed_time_text(&self, index: usize) -> Option<String> {
        let at = self.parsed_time(index)?.ok()?;
        Some(when::format_parsed(at, self.now_ms, &self.zone))
    }

    pub(crate) fn check_locally(&mut self) {
        let meant = (0..self.specs.len()).filter(|index| self.is_applicable(*index));
        let wrong = meant.filter_map(|index| {
            let spec = &self.specs[index];
            let moment = || self.parsed_time(index)?.err();
            let error = self.inputs[index].error(spec).or_else(moment)?;
            Some((spec.path.to_owned(), error))
        });
        self.errors = wrong.collect();
    }

    /// Returns the error shown for a field; the errors of fields that have not been visited are
    /// hidden.
    pub(crate) fn error(&self, index: usize) -> Option<&str> {
        let is_typed = self.focus == index && !self.inputs[index].is_blank();
        let is_shown = self.is_tried || is_typed || self.left.contains(&index);
        let error = self.errors.get(self.specs[index].path);
        error.map(String::as_str).filter(|_| is_shown)
    }

    pub(crate) fn field_warning(&self, index: usize) -> Option<String> {
        let path = self.specs[index].path;
        let is_blank = self.inputs[index].is_blank();
        match (self.kind, path) {
            (Kind::Rule, "triggerNames") if is_blank => {
                Some("without a trigger, it never notifies".to_owned())
            }
            (Kind::Rule, "destinationNames") if is_blank => {
                let mut others = self.specs.iter().zip(&self.inputs);
                let escalates = others
                    .any(|(spec, input)| spec.path == "escalationPolicyName" && !input.is_blank());
                let words = "without a destination, it notifies no one";
                (!escalates).then(|| words.to_owned())
            }
            _ => self.live.warning_for(path),
        }
    }

    pub(crate) fn error_count(&self) -> usize {
        let answer = (0..self.specs.len()).filter(|at| self.error(*at).is_some());
        answer.count() + usize::from(self.errors.contains_key(""))
    }

    /// Assigns the service's errors to fields; errors without a field are shown above the form.
    pub(crate) fn show_failure(&mut self, failure: &Failure) {
        let mut placed = 0;
        for error in &failure.fields {
            if let Some(spec) = self.spec_for_path(&error.path) {
                placed += 1;
                let message = if spec.path == error.path {
                    error.message.clone()
                } else {
                    let rest = error.path[spec.path.len()..].trim_start_matches('.');
                    format!("{rest}: {}", error.message)
                };
                self.errors.insert(spec.path.to_owned(), message);
            }
        }
        if placed < failure.fields.len() || failure.fields.is_empty() {
            self.errors.insert(String::new(), failure.sentence());
        }
        self.expand_invalid_sections();
        let wrong = |index: &usize| self.errors.contains_key(self.specs[*index].path);
        if placed > 0
            && !wrong(&self.focus)
            && let Some(index) = (0..self.specs.len()).find(wrong)
        {
            self.focus = index;
        }
    }

    /// Returns the label of the field that a path belongs to, or the path.
    pub(crate) fn label_for_path<'a>(&self, path: &'a str) -> &'a str {
        self.spec_for_path(path).map_or(path, |spec| spec.label)
    }

    fn spec_for_path(&self, path: &str) -> Option<&'static FieldSpec> {
        let owns = |spec: &FieldSpec| {
            path == spec.path
                || path
                    .strip_prefix(spec.path)
                    .is_some_and(|rest| rest.starts_with('.') || rest.starts_with('['))
        };
        let meant = (0..self.specs.len()).filter(|index| self.is_applicable(*index));
        meant
            .map(|index| &self.specs[index])
            .filter(|spec| owns(spec))
            .max_by_key(|spec| spec.path.len())
    }

    /// Records a change and schedules a validation.
    pub(crate) fn record_change(&mut self, now_ms: i64) {
        if let Input::Clause(clause) = self.input_mut() {
            clause.parse_text();
        }
        self.version += 1;
        self.now_ms = now_ms;
        self.checked = false;
        self.live.schedule_preview(now_ms);
        self.check_locally();
        self.check_at_ms = Some(now_ms + crate::limits::CHECK_PAUSE_MS);
    }

    /// Sets a field from one line of text.
    pub(crate) fn fill(&mut self, index: usize, text: &str, now_ms: i64) -> Result<(), String> {
        let spec = &self.specs[index];
        if self.is_locked(index) {
            return Err(format!("{}: the name cannot be changed", spec.label));
        }
        let typed = Input::parse_line(spec, text);
        self.inputs[index] = typed.map_err(|message| format!("{}: {message}", spec.label))?;
        self.expand_section(index);
        self.focus = index;
        self.record_change(now_ms);
        Ok(())
    }

    pub(crate) fn move_focus(&mut self, forward: bool) {
        let free = |index: &usize| self.is_shown(*index) && !self.is_locked(*index);
        let next = if forward {
            (self.focus + 1..self.specs.len()).find(free)
        } else {
            (0..self.focus).rev().find(free)
        };
        if let Some(index) = next {
            self.left.insert(self.focus);
            self.focus = index;
        }
    }

    pub(crate) fn input(&self) -> &Input {
        &self.inputs[self.focus]
    }

    pub(crate) fn input_mut(&mut self) -> &mut Input {
        &mut self.inputs[self.focus]
    }

    pub(crate) fn spec(&self) -> &'static FieldSpec {
        &self.specs[self.focus]
    }
}

#[cfg(test)]
mod tests;
