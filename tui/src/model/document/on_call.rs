//! The current on-call contacts of each schedule, and the active responses.

use crate::{
    data::{Kind, Named, Object},
    document::{Document, Link, span},
    kind::response,
    model::{Model, store::Slot},
    route::Route,
    text,
    theme::Token,
};

const NAME: usize = 20;
const WHO: usize = 22;
const UNTIL: usize = 24;

pub(super) fn write(into: &mut Document, model: &Model) {
    into.heading("On call now");
    let schedules = model.store.resources(Kind::Schedule);
    if schedules.value.is_none() {
        into.missing(schedules.waiting().is_some(), schedules.failure());
    } else if schedules.rows().is_empty() {
        let words = "There are no schedules. ‹go_schedules› shows where to create one.";
        into.text(Token::Dim, 0, &model.expand_keys(words));
    }
    for one in schedules.rows() {
        schedule(into, model, one);
    }
    into.heading("Responses");
    let responses = model.store.resources(Kind::Response);
    if responses.value.is_none() {
        into.missing(responses.waiting().is_some(), responses.failure());
    } else if responses.rows().is_empty() {
        into.text(Token::Dim, 0, "No one is paged.");
    }
    for one in model.store.responses_by_urgency() {
        write_response(into, model, one);
    }
}

fn cell(words: &str, cells: usize) -> String {
    let words = text::clean(words);
    let shown = text::fit(&words, cells);
    format!("{shown}{} ", " ".repeat(cells - text::width(&shown)))
}

fn schedule(into: &mut Document, model: &Model, schedule: &Object) {
    let names = |field: &str| {
        let names: Vec<_> = schedule.texts(field).collect();
        match names.as_slice() {
            [] => "no one".to_owned(),
            names => names.join(", "),
        }
    };
    let is_gap = schedule.texts("onCallNames").next().is_none();
    let is_meant = schedule.flag("gapsAllowed");
    let token = match (is_gap, is_meant) {
        (true, false) => Token::Bad,
        (true, true) => Token::Dim,
        (false, _) => Token::Text,
    };
    let (until, next) = match schedule.timestamp_ms("nextChangeTime") {
        Some(ms) => (
            format!("until {}", model.format_time(ms)),
            format!("then {}", names("nextNames")),
        ),
        None => ("no change ahead".to_owned(), String::new()),
    };
    let name = schedule.name();
    into.linked_line(
        vec![
            span(Token::Link, &cell(name, NAME)),
            span(token, &cell(&names("onCallNames"), WHO)),
            span(Token::Dim, &cell(&until, UNTIL)),
            span(Token::Dim, &next),
        ],
        Link::Go(Route::Object(Kind::Schedule, name.to_owned())),
    );
}

fn write_response(into: &mut Document, model: &Model, response: &Object) {
    let severity = response::severity(response);
    let (token, words) = model.response_status(response);
    into.linked_line(
        vec![
            span(severity.into(), &cell(severity.label(), 8)),
            span(Token::Link, response::subject(response)),
        ],
        Link::Go(Route::Object(Kind::Response, response.name().to_owned())),
    );
    let (_, state) = response::state(response);
    into.line(vec![
        span(token, &format!("         {state:<11}")),
        span(Token::Text, &words),
    ]);
}
