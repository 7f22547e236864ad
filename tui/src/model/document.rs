//! Pages: lines of text with links, rebuilt from the state for each frame.

mod audit;
mod bench;
mod beside;
mod escalation;
mod event;
mod explain;
mod handover;
mod incident;
mod insight;
mod obligation;
mod on_call;
mod overview;
mod reference;
mod rendered;
mod report;
mod shifts;
mod timeline;
mod transcript;

pub(crate) use bench::format_verdict;
pub(crate) use overview::UNANSWERED;
pub(crate) use reference::topic_for_path;

use bellwether_proto::v1;
use jiff::{Timestamp, Zoned};

use super::{
    Model,
    form::{Form, LivePreview, Pane},
    loaded::Loaded,
    page::{Content, Page, Tab},
};
use crate::{
    data::{EventRow, Kind, Object, Screen},
    document::{Document, Line},
    kind::{self, Cell, LastHour, RenderContext, response},
    route::Route,
    text,
    theme::Token,
};

/// Bars of six minutes.
const BARS: usize = 10;

pub(crate) fn current_document(model: &Model) -> Document {
    document_for(model, &model.page)
}

pub(crate) fn selected_item(model: &Model, columns: usize) -> Option<(String, Document)> {
    let id = model.selected_id()?;
    let mut document = Document::new(columns);
    let into = &mut document;
    let title = match &model.page.route {
        Route::List(kind) => {
            kind::spec(*kind).document?;
            write_object(into, model, *kind, &id);
            // The name is in the title.
            let is_named =
                |line: &Line| line.text().strip_prefix("name").map(str::trim) == Some(&id);
            if into.lines.first().is_some_and(is_named) {
                into.lines.remove(0);
            }
            details(into, model, *kind, &id);
            let object = model.store.object(*kind, &id);
            object.map_or(id, |it| kind::displayed_name(model, it))
        }
        Route::Screen(Screen::Deliveries) => {
            let mut rows = model.store.deliveries.rows().iter();
            let row = rows.find(|row| row.id == id)?;
            let read = model.beside.decided.value.as_deref();
            let read = read.filter(|_| model.beside.is_about_row(&Route::DELIVERIES, &id));
            transcript::write_summary(into, model, row);
            if let Some(delivery) = read.and_then(<[_]>::first) {
                transcript::write_attempts(into, model, delivery);
            }
            format!("To {}", row.destination_name)
        }
        Route::Screen(Screen::Events) => {
            let row = model.store.events.find(&id)?;
            let details = Some(&model.beside);
            let details = details.filter(|it| it.is_about_row(&Route::EVENTS, &id));
            match details.and_then(|it| Some((it.event.value.as_ref()?, &it.explanation))) {
                Some((event, explanation)) => {
                    event::write_row_details(into, model, event, explanation);
                }
                None => event::write_row(into, model, row),
            }
            row.name.to_string()
        }
        _ => return None,
    };
    Some((title, document.wrap_lines()))
}

/// Writes the last decisions of a rule or destination and its message, or the shifts of a schedule,
/// once they are read.
fn details(into: &mut Document, model: &Model, kind: Kind, name: &str) {
    if model.beside.is_about_row(&model.page.route, name) {
        if model.beside.shifts.value.is_some() {
            shifts::write(into, model, &model.beside.shifts);
        }
        beside::write_decided(into, model, kind);
        beside::write_message(into, model);
    }
}

/// Returns the service's result for a form with its title; `None` if the form has none.
pub(crate) fn form_result(
    model: &Model,
    form: &Form,
    columns: usize,
) -> Option<(&'static str, Document)> {
    let mut document = Document::new(columns);
    let into = &mut document;
    let title = match form.live.made.as_ref()? {
        Ok(LivePreview::Messages(found)) => {
            report::write_previews(into, found);
            "Preview, with a sample event"
        }
        Ok(LivePreview::Shifts(found)) => {
            shifts::write_preview(into, model, found);
            "On call, next 30 days"
        }
        Ok(LivePreview::Notices(found)) => {
            escalation::write_preview(into, found);
            "Who would be paged for a critical event now"
        }
        Ok(LivePreview::Matching(_) | LivePreview::Request(_)) => return None,
        Err(failure) => {
            document.failure(failure);
            "Preview"
        }
    };
    Some((title, document))
}

pub(crate) fn bench_pane(model: &Model, form: &Form, pane: Pane, columns: usize) -> Document {
    let mut document = Document::new(columns);
    match pane {
        Pane::Request => bench::write_request(&mut document, form),
        Pane::Response => bench::write_response_pane(&mut document, model, form),
    }
    document
}

fn document_for(model: &Model, page: &Page) -> Document {
    let mut document = Document::new(model.terminal_columns().saturating_sub(2));
    let into = &mut document;
    match (&page.route, &page.content) {
        (Route::Screen(Screen::Overview), _) => overview::write(into, model),
        (Route::Screen(Screen::OnCall), _) => on_call::write(into, model),
        (Route::Object(kind, name), content) => {
            write_object(into, model, *kind, name);
            details(into, model, *kind, name);
            if let Some(found) = content.response() {
                shifts::write(into, model, found);
            }
        }
        (
            Route::Event(_),
            Content::Event {
                detail,
                explanation,
                tab,
            },
        ) => match tab {
            Tab::Explain => match &explanation.value {
                Some(value) => explain::write(into, model, value, page.is_unfolded),
                None => {
                    into.loading_or_failure(
                        explanation.waiting.is_some(),
                        explanation.failure.as_ref(),
                    );
                }
            },
            _ => write_loaded(into, detail, |into, value| {
                event::write(into, model, value, *tab, explanation);
            }),
        },
        (Route::Delivery(_), content) => {
            if let Some(delivery) = content.response::<v1::Delivery>() {
                write_loaded(into, delivery, |into, value| {
                    transcript::write_summary(into, model, value);
                    transcript::write_attempts(into, model, value);
                });
            }
        }
        (Route::Report, Content::Report(report)) => report::write(into, model, report),
        (Route::Screen(Screen::Reference), _) => {
            reference::write_index(into, model, &page.list.filter);
        }
        (Route::Topic(name), _) => reference::write_topic_named(into, name),
        _ => {}
    }
    document
}

fn write_object(into: &mut Document, model: &Model, kind: Kind, name: &str) {
    let list = model.store.resources(kind);
    match (model.store.object(kind, name), kind::spec(kind).document) {
        (Some(object), Some(write)) => write(into, model, object),
        _ if list.value.is_some() => {
            let word = kind.singular();
            let message = format!("{word} {name} no longer exists");
            into.text(Token::Warning, 0, &message);
        }
        _ => into.loading_or_failure(list.waiting.is_some(), list.failure.as_ref()),
    }
}

fn write_loaded<T>(into: &mut Document, value: &Loaded<T>, write: impl FnOnce(&mut Document, &T)) {
    if let (Some(_), Some(failure)) = (&value.value, &value.failure) {
        let message = format!("reload failed: {}", failure.sentence());
        into.text(Token::Warning, 0, &message);
        into.blank_line();
    }
    match &value.value {
        Some(value) => write(into, value),
        None => into.loading_or_failure(value.waiting.is_some(), value.failure.as_ref()),
    }
}

impl RenderContext for Model {
    fn format_time(&self, ms: i64) -> String {
        Self::format_time(self, ms)
    }

    fn format_full_time(&self, ms: i64) -> String {
        Self::format_full_time(self, ms)
    }

    fn format_age(&self, ms: i64) -> Option<String> {
        self.shows_ages.then(|| format_age(self.now_ms - ms))
    }

    fn format_since(&self, ms: i64) -> String {
        format_age(self.now_ms - ms)
    }

    fn host_field(&self) -> &str {
        &self.host_field
    }

    fn last_hour(&self, destination: &str) -> LastHour {
        let statistics = self.store.last_hour.value.as_ref();
        let destinations = statistics.map(|it| it.destinations.as_slice());
        let mut all = destinations.unwrap_or_default().iter();
        let found = all.find(|one| one.name == destination);
        let counts = found.and_then(|one| one.deliveries.as_ref());
        counts.map_or_else(LastHour::default, |it| LastHour {
            delivered: text::bar_chart(&it.delivered, BARS),
            failed: text::bar_chart(&it.failed_attempts, BARS),
        })
    }

    fn dead_letter_count(&self, destination: &str) -> Option<i64> {
        let overview = self.store.overview.value.as_ref()?;
        let mut all = overview.destinations.iter();
        let found = all.find(|one| one.destination_name == destination);
        Some(found.map_or(0, |one| one.dead_count.unwrap_or_default().into()))
    }

    fn is_past(&self, ms: i64) -> bool {
        ms <= self.now_ms
    }

    fn expand_keys(&self, sentence: &str) -> String {
        Self::expand_keys(self, sentence)
    }

    fn responder(&self, occurrence: &str) -> Option<Cell> {
        let response = self.response_for_event(occurrence)?;
        let (token, word) = response::state(response);
        let who = response::responder(response);
        let words = match word {
            "paging" | "responded" if !who.is_empty() => who,
            word => word.to_owned(),
        };
        Some(Cell::new(token, words))
    }

    fn is_silenced(&self, row: &EventRow) -> bool {
        self.store.coverage.is_silenced(&row.id)
    }

    fn response_cells(&self, response: &Object) -> [Cell; 2] {
        let (token, now) = self.describe_current_step(response);
        let next = self.describe_next_step(response);
        [Cell::new(token, now), Cell::new(Token::Text, next)]
    }

    fn host_text(&self, object: &Object) -> String {
        self.store.host(object, &self.host_field)
    }

    fn find_object(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.store.object(kind, name)
    }
}

/// Formats an age in completed minutes, hours or days: `<1m`, `3m`, `2h`, `5d`, `in 3m`.
fn format_age(ms: i64) -> String {
    let minutes = ms.unsigned_abs() / 60_000;
    let length = match minutes {
        0 => "<1m".to_owned(),
        1..120 => format!("{minutes}m"),
        120..2_880 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1_440),
    };
    if ms < 0 {
        format!("in {length}")
    } else {
        length
    }
}

impl Model {
    pub(crate) fn to_zoned(&self, ms: i64) -> Option<Zoned> {
        let at = Timestamp::from_millisecond(ms).ok()?;
        Some(at.to_zoned(self.zone.clone()))
    }

    pub(crate) fn format_input_time(&self, ms: i64) -> String {
        let at = self.to_zoned(ms);
        at.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M").to_string())
    }

    pub(crate) fn format_time(&self, ms: i64) -> String {
        let Some(at) = self.to_zoned(ms) else {
            return "?".to_owned();
        };
        let today = self
            .to_zoned(self.now_ms)
            .is_some_and(|now| now.date() == at.date());
        at.strftime(if today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" })
            .to_string()
    }

    pub(crate) fn zone_word(&self) -> String {
        let at = self.to_zoned(self.now_ms);
        at.map_or_else(String::new, |at| at.strftime("%Z").to_string())
    }

    pub(crate) fn format_full_time(&self, ms: i64) -> String {
        self.to_zoned(ms).map_or_else(
            || "?".to_owned(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        )
    }
}
