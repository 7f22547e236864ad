//! A resource being written: fields over the JSON of the object, which is never lost.

mod bench;
mod clause;
mod input;
mod list;
mod live;

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::KeyEvent;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

pub(crate) use self::{
    bench::{Bench, FormTest, curl},
    clause::ClauseInput,
    input::Input,
    live::{Live, Made},
};
use crate::{
    client::Ticket,
    data::{Failure, Kind, Object, get, is_empty, set, when},
    editor,
    kind::{self, FieldKind, FieldSpec},
};

/// A form.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    /// The name and etag of what is edited; absent for a new one.
    pub(crate) stored: Option<(String, String)>,
    /// The object as it was; what no field shows is taken over from here.
    base: Value,
    pub(crate) specs: &'static [FieldSpec],
    /// One for each of `specs`.
    pub(crate) inputs: Vec<Input>,
    /// The focused field.
    pub(crate) focus: usize,
    pub(crate) reveal: bool,
    /// What is wrong, by path; `""` for the whole.
    pub(crate) errors: BTreeMap<String, String>,
    /// The fields that were left, of which errors are reported.
    left: BTreeSet<usize>,
    /// Whether it was to be saved or tested, so that all errors are reported.
    pub(crate) is_tried: bool,
    /// Counts the changes, so that late answers are known.
    pub(crate) version: u64,
    /// When it was changed last, and the zone: what moments are read with.
    now_ms: i64,
    zone: TimeZone,
    /// What the service produces from it.
    pub(crate) live: Live,
    /// Its tests.
    pub(crate) bench: Bench,
    /// When the service is asked to check.
    pub(crate) check_at_ms: Option<i64>,
    /// The check before it is asked whether to save it, and the keys that were pressed since.
    pub(crate) saving: Option<Ticket>,
    pub(crate) ahead: Vec<KeyEvent>,
    /// The write under way.
    pub(crate) waiting: Option<Ticket>,
    /// The check under way, and the version that it is of.
    pub(crate) checking: Option<(Ticket, u64)>,
    /// Whether the service found nothing wrong with this version.
    pub(crate) checked: bool,
}

/// Takes away what an emptied field leaves empty around it; the type of a destination stays, whatever
/// it holds.
fn prune(json: &mut Value, path: &str) {
    let mut rest = path;
    while let Some((around, _)) = rest.rsplit_once('.') {
        let is_type = around == "type"
            || around
                .strip_prefix("type.")
                .is_some_and(|it| !it.contains('.'));
        if is_type || !get(json, around).is_some_and(is_empty) {
            return;
        }
        set(json, around, None);
        rest = around;
    }
}

impl Form {
    /// A form over a stored or a new resource.
    pub(crate) fn new(kind: Kind, stored: Option<(String, String)>, base: Value) -> Self {
        let specs = kind::spec(kind).fields;
        let inputs = specs
            .iter()
            .map(|spec| Input::read(spec, get(&base, spec.path)))
            .collect();
        let mut form = Self {
            kind,
            stored,
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
            live: Live::default(),
            bench: Bench::default(),
            check_at_ms: None,
            saving: None,
            ahead: Vec::new(),
            waiting: None,
            checking: None,
            checked: false,
        };
        form.unfold_filled();
        if form.is_locked(0) {
            form.step(true);
        }
        form
    }

    /// Processes another text of the same object, as after `$EDITOR`.
    pub(crate) fn replace(&mut self, json: Value) {
        self.inputs = self
            .specs
            .iter()
            .map(|spec| Input::read(spec, get(&json, spec.path)))
            .collect();
        self.base = json;
        self.unfold_filled();
        self.version += 1;
    }

    /// What is written, as `New trigger` or `Edit rule night`.
    pub(crate) fn title(&self) -> String {
        let word = self.kind.word();
        match &self.stored {
            Some((name, _)) => format!("Edit {word} {name}"),
            None => format!("New {word}"),
        }
    }

    /// The word of the destination type that is chosen, else "".
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

    /// The word of the destination type that is chosen.
    pub(crate) fn type_word(&self) -> &'static str {
        self.chosen_type()
    }

    /// Whether a field belongs to what is chosen now.
    pub(crate) fn is_meant(&self, index: usize) -> bool {
        let only = self.specs[index].only;
        only.is_empty() || only == self.chosen_type()
    }

    /// Whether something can be put into a field, folded away or not.
    pub(crate) fn is_fillable(&self, index: usize) -> bool {
        self.is_meant(index) && self.specs[index].kind != FieldKind::Section
    }

    /// Whether a field is on the screen, and not folded away.
    pub(crate) fn is_shown(&self, index: usize) -> bool {
        let section = self.section_of(index).map(|at| &self.inputs[at]);
        self.is_meant(index) && !matches!(section, Some(Input::Section(false)))
    }

    /// The heading of the section that a field is in.
    fn section_of(&self, index: usize) -> Option<usize> {
        let is_section = |at: &usize| self.specs[*at].kind == FieldKind::Section;
        let is_field = !is_section(&index);
        let mut before = (0..index).rev();
        let found = before.find(|at| is_section(at) && self.is_meant(*at));
        found.filter(|_| is_field)
    }

    /// The fields of a section.
    fn inside(&self, section: usize) -> impl Iterator<Item = usize> + '_ {
        let fields = section + 1..self.specs.len();
        let own = fields.take_while(|at| self.specs[*at].kind != FieldKind::Section);
        own.filter(|at| self.is_meant(*at))
    }

    /// Which fields of a section hold something, by their labels.
    pub(crate) fn filled(&self, section: usize) -> Vec<&'static str> {
        let fields = self.inside(section);
        let filled = fields.filter(|at| !self.inputs[*at].is_blank());
        filled.map(|at| self.specs[at].label).collect()
    }

    /// Unfolds what holds something.
    fn unfold_filled(&mut self) {
        for at in 0..self.specs.len() {
            if matches!(self.inputs[at], Input::Section(_)) && !self.filled(at).is_empty() {
                self.inputs[at] = Input::Section(true);
            }
        }
    }

    /// Has every field on the screen that is wrong.
    fn unfold_wrong(&mut self) {
        let all = 0..self.specs.len();
        let wrong = all.filter(|at| self.errors.contains_key(self.specs[*at].path));
        for at in wrong.collect::<Vec<_>>() {
            self.unfold(at);
        }
    }

    /// Has a field on the screen.
    fn unfold(&mut self, index: usize) {
        if let Some(section) = self.section_of(index) {
            self.inputs[section] = Input::Section(true);
        }
    }

    /// Whether a field cannot be changed: names are for ever.
    pub(crate) fn is_locked(&self, index: usize) -> bool {
        self.stored.is_some() && self.specs[index].path == "name"
    }

    /// The object as it is in the form.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = self.base.clone();
        if let Some(word) = Some(self.chosen_type()).filter(|word| !word.is_empty()) {
            let kept = get(&self.base, &format!("type.{word}")).cloned();
            let kept = kept.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            set(&mut json, "type", Some(serde_json::json!({ word: kept })));
        }
        for (index, (spec, input)) in self.specs.iter().zip(&self.inputs).enumerate() {
            let is_field = spec.path != "type" && spec.kind != FieldKind::Section;
            if !self.is_meant(index) || !is_field {
                continue;
            }
            let written = input.write(spec);
            let before = get(&self.base, spec.path);
            // What was not touched stays as the service wrote it, or unset.
            let is_choice = matches!(input, Input::Choice(_));
            if is_choice || Input::read(spec, before).write(spec) != written {
                let moment = self.moment(index).and_then(Result::ok);
                let written = moment.map(|at| at.to_string().into()).or(written);
                set(&mut json, spec.path, written);
                prune(&mut json, spec.path);
            }
        }
        json
    }

    /// The object as it was when the form was opened.
    pub(crate) fn original(&self) -> &Value {
        &self.base
    }

    /// Whether anything was typed that leaving would lose.
    pub(crate) fn is_changed(&self) -> bool {
        self.version > 0
    }

    /// Reads the form; the errors it can find alone are shown beside the fields afterwards.
    pub(crate) fn draft(&mut self) -> Option<Object> {
        self.check_locally();
        if !self.errors.is_empty() {
            self.unfold_wrong();
            return None;
        }
        let draft = Object {
            kind: self.kind,
            json: self.to_json(),
        };
        match editor::check(&draft) {
            Ok(()) => Some(draft),
            Err(failure) => {
                self.take_failure(&failure);
                None
            }
        }
    }

    /// Reads moments with this time and zone from now on.
    pub(crate) fn read_moments_at(&mut self, now_ms: i64, zone: &TimeZone) {
        self.now_ms = now_ms;
        self.zone = zone.clone();
    }

    /// The moment in a field, or what is wrong with it; none where there is none.
    fn moment(&self, index: usize) -> Option<Result<Timestamp, String>> {
        let Input::Text(field) = &self.inputs[index] else {
            return None;
        };
        let is_moment = self.specs[index].kind == FieldKind::Moment && !field.text().is_empty();
        is_moment.then(|| when::moment(field.text(), self.now_ms, &self.zone))
    }

    /// The moment in a field as it was understood, to the second.
    pub(crate) fn understood(&self, index: usize) -> Option<String> {
        let at = self.moment(index)?.ok()?;
        Some(when::understood(at, self.now_ms, &self.zone))
    }

    /// Finds what is wrong without asking the service.
    pub(crate) fn check_locally(&mut self) {
        let meant = (0..self.specs.len()).filter(|index| self.is_meant(*index));
        let wrong = meant.filter_map(|index| {
            let spec = &self.specs[index];
            let moment = || self.moment(index)?.err();
            let error = self.inputs[index].error(spec).or_else(moment)?;
            Some((spec.path.to_owned(), error))
        });
        self.errors = wrong.collect();
    }

    /// What is reported about a field that is wrong: nothing until then come to it.
    pub(crate) fn error(&self, index: usize) -> Option<&str> {
        let is_typed = self.focus == index && !self.inputs[index].is_blank();
        let is_shown = self.is_tried || is_typed || self.left.contains(&index);
        let error = self.errors.get(self.specs[index].path);
        error.map(String::as_str).filter(|_| is_shown)
    }

    /// What is probably not meant in a field, though it can be saved.
    pub(crate) fn warning(&self, index: usize) -> Option<String> {
        let path = self.specs[index].path;
        let is_blank = self.inputs[index].is_blank();
        match (self.kind, path) {
            (Kind::Rule, "triggerNames") if is_blank => {
                Some("without a trigger it never notifies".to_owned())
            }
            (Kind::Rule, "destinationNames") if is_blank => {
                let mut others = self.specs.iter().zip(&self.inputs);
                let escalates = others
                    .any(|(spec, input)| spec.path == "escalationPolicyName" && !input.is_blank());
                let words = "without a destination it notifies no one";
                (!escalates).then(|| words.to_owned())
            }
            _ => self.live.warning(path),
        }
    }

    /// How many errors are reported about fields.
    pub(crate) fn error_count(&self) -> usize {
        let answer = (0..self.specs.len()).filter(|at| self.error(*at).is_some());
        answer.count() + usize::from(self.errors.contains_key(""))
    }

    /// Puts the service's errors beside the fields; what fits no field stands over all.
    pub(crate) fn take_failure(&mut self, failure: &Failure) {
        let mut placed = 0;
        for error in &failure.fields {
            if let Some(spec) = self.owner(&error.path) {
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
        self.unfold_wrong();
        let wrong = |index: &usize| self.errors.contains_key(self.specs[*index].path);
        if placed > 0
            && !wrong(&self.focus)
            && let Some(index) = (0..self.specs.len()).find(wrong)
        {
            self.focus = index;
        }
    }

    /// The field that a path of the service belongs to.
    fn owner(&self, path: &str) -> Option<&'static FieldSpec> {
        let owns = |spec: &FieldSpec| {
            path == spec.path
                || path
                    .strip_prefix(spec.path)
                    .is_some_and(|rest| rest.starts_with('.') || rest.starts_with('['))
        };
        let meant = (0..self.specs.len()).filter(|index| self.is_meant(*index));
        meant
            .map(|index| &self.specs[index])
            .filter(|spec| owns(spec))
            .max_by_key(|spec| spec.path.len())
    }

    /// Notes a change and asks for a check after a pause.
    pub(crate) fn changed(&mut self, now_ms: i64) {
        if let Input::Clause(clause) = self.input_mut() {
            clause.follow();
        }
        self.version += 1;
        self.now_ms = now_ms;
        self.checked = false;
        self.live.typed(now_ms);
        self.check_locally();
        self.check_at_ms = Some(now_ms + crate::limits::CHECK_PAUSE_MS);
    }

    /// Puts a text that was typed on one line into a field.
    ///
    /// # Errors
    /// The field cannot hold it; a sentence for people.
    pub(crate) fn fill(&mut self, index: usize, text: &str, now_ms: i64) -> Result<(), String> {
        let spec = &self.specs[index];
        if self.is_locked(index) {
            return Err(format!("{}: a name never changes", spec.label));
        }
        let typed = Input::typed(spec, text);
        self.inputs[index] = typed.map_err(|message| format!("{}: {message}", spec.label))?;
        self.unfold(index);
        self.focus = index;
        self.changed(now_ms);
        Ok(())
    }

    /// Moves the focus to the next or the previous field.
    pub(crate) fn step(&mut self, forward: bool) {
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
