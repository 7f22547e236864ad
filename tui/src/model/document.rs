//! Pages that are read: lines of text with links, made anew from the state for each frame.

mod event;
mod explain;
mod obligation;
mod overview;
mod reference;
mod report;
mod resource;
mod transcript;

pub(crate) use reference::topic_of;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Model,
    page::{Content, Page, Route, Tab},
    store::Loaded,
};
use crate::{data::Failure, keymap::Action, limits, text, theme::Token};

/// A piece of a line with one meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) token: Token,
    pub(crate) text: String,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
    pub(crate) link: Option<Link>,
}

/// Where a line leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    Go(Route),
    /// A list, filtered.
    List(Route, String),
    /// A line of a document.
    Line(Route, usize),
    /// A heading of a document.
    Heading(Route, String),
    /// To a screen, and there an action.
    Act(Route, Action),
}

/// The lines of a page.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) lines: Vec<Line>,
    columns: usize,
}

/// Columns of the labels of fields.
const LABEL: usize = 16;

impl Document {
    fn new(columns: usize) -> Self {
        Self {
            lines: Vec::new(),
            columns: columns.max(20),
        }
    }

    fn push(&mut self, line: Line) {
        if self.lines.len() < limits::DOCUMENT_LINES {
            self.lines.push(line);
        }
    }

    fn blank(&mut self) {
        self.push(Line::default());
    }

    /// A heading with a blank line before it.
    fn heading(&mut self, title: &str) {
        if self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.blank();
        }
        self.push(Line {
            spans: vec![span(Token::Heading, title)],
            link: None,
        });
    }

    fn line(&mut self, spans: Vec<Span>) {
        self.push(Line { spans, link: None });
    }

    fn linked(&mut self, spans: Vec<Span>, link: Link) {
        self.push(Line {
            spans,
            link: Some(link),
        });
    }

    /// A label and its value, which is wrapped beside it.
    fn field(&mut self, label: &str, token: Token, value: &str) {
        let room = self.columns.saturating_sub(LABEL + 3);
        for (index, part) in text::wrap(value, room).into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.line(vec![self::label(label), span(token, &part)]);
        }
    }

    /// A label and a value that leads somewhere.
    fn link(&mut self, label: &str, value: &str, link: Link) {
        self.linked(vec![self::label(label), span(Token::Link, value)], link);
    }

    /// Text over the whole width, indented.
    fn text(&mut self, token: Token, indent: usize, body: &str) {
        for part in text::wrap(body, self.columns.saturating_sub(indent + 2)) {
            self.line(vec![
                span(Token::Text, &" ".repeat(indent)),
                span(token, &part),
            ]);
        }
    }

    /// A JSON value as a tree.
    fn tree(&mut self, indent: usize, key: &str, value: &Value) {
        let pad = " ".repeat(indent);
        let name = span(Token::Dim, &format!("{pad}{key}"));
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                self.line(vec![name]);
                for (key, value) in fields {
                    self.tree(indent + 2, key, value);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(vec![name]);
                for (index, value) in items.iter().enumerate() {
                    self.tree(indent + 2, &format!("[{index}]"), value);
                }
            }
            Value::String(value) => {
                let room = self.columns.saturating_sub(indent + key.len() + 4).max(10);
                for (index, part) in text::wrap(value, room).into_iter().enumerate() {
                    let shown = if index == 0 {
                        format!("{key}: ")
                    } else {
                        " ".repeat(key.len() + 2)
                    };
                    let shown = span(Token::Dim, &format!("{pad}{shown}"));
                    self.line(vec![shown, span(Token::Text, &part)]);
                }
            }
            other => {
                let shown = span(Token::Dim, &format!("{pad}{key}: "));
                self.line(vec![shown, span(Token::Text, &other.to_string())]);
            }
        }
    }

    /// What stands in place of something not read yet, or what went wrong with reading it.
    fn missing(&mut self, waiting: bool, failure: Option<&Failure>) {
        match failure {
            Some(failure) => self.failure(failure),
            None if waiting => self.text(Token::Dim, 0, "reading…"),
            None => self.text(Token::Dim, 0, "not read yet"),
        }
    }

    /// A failure in full.
    fn failure(&mut self, failure: &Failure) {
        self.text(Token::Bad, 0, &format!("✗ {}", failure.headline()));
        self.text(Token::Text, 2, &failure.message);
        for field in &failure.fields {
            self.text(
                Token::Text,
                2,
                &format!("{}: {}", field.path, field.message),
            );
        }
    }
}

fn span(token: Token, text: &str) -> Span {
    Span {
        token,
        text: text.to_owned(),
    }
}

fn label(label: &str) -> Span {
    span(Token::Dim, &format!("{label:<LABEL$} "))
}

/// The lines of the page on the screen.
pub(crate) fn current(model: &Model) -> Document {
    of(model, &model.page)
}

fn of(model: &Model, page: &Page) -> Document {
    let mut document = Document::new(model.columns().saturating_sub(2));
    let into = &mut document;
    match (&page.route, &page.content) {
        (Route::Overview, _) => overview::write(into, model),
        (Route::Trigger(name), _) => resource::trigger(into, model, name),
        (Route::Destination(name), _) => resource::destination(into, model, name),
        (Route::Rule(name), _) => resource::rule(into, model, name),
        (
            Route::Event(_),
            Content::Event {
                detail,
                explanation,
                tab,
            },
        ) => match tab {
            Tab::Explain => match &explanation.value {
                Some(value) => explain::write(into, model, value),
                None => {
                    into.missing(explanation.waiting.is_some(), explanation.failure.as_ref());
                }
            },
            _ => loaded(into, detail, |into, value| {
                event::write(into, model, value, *tab);
            }),
        },
        (Route::Delivery(_), Content::Delivery(delivery)) => {
            loaded(into, delivery, |into, value| {
                transcript::delivery(into, model, value);
            });
        }
        (Route::Report, Content::Report(report)) => report::write(into, model, report),
        (Route::Reference, _) => reference::index(into, model, &page.list.filter),
        (Route::Topic(name), _) => reference::of(into, name),
        _ => {}
    }
    document
}

fn loaded<T>(into: &mut Document, value: &Loaded<T>, write: impl FnOnce(&mut Document, &T)) {
    if let (Some(_), Some(failure)) = (&value.value, &value.failure) {
        let told = format!("could not be read afresh: {}", failure.sentence());
        into.text(Token::Warning, 0, &told);
        into.blank();
    }
    match &value.value {
        Some(value) => write(into, value),
        None => into.missing(value.waiting.is_some(), value.failure.as_ref()),
    }
}

impl Model {
    /// A moment in the operator's time zone: the time today, the date with it on other days.
    pub(crate) fn moment(&self, ms: i64) -> String {
        let zoned = |ms| {
            Timestamp::from_millisecond(ms)
                .ok()
                .map(|at| at.to_zoned(self.zone.clone()))
        };
        let Some(at) = zoned(ms) else {
            return "?".to_owned();
        };
        let today = zoned(self.now_ms).is_some_and(|now| now.date() == at.date());
        at.strftime(if today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" })
            .to_string()
    }

    /// A moment in full, with how long ago it was.
    fn moment_in_full(&self, ms: i64) -> String {
        let at = Timestamp::from_millisecond(ms)
            .ok()
            .map(|at| at.to_zoned(self.zone.clone()));
        at.map_or_else(
            || "?".to_owned(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        )
    }
}

/// A span of time for people: `132 ms`, `4.2 s`, `3 min`, `2 h`, `5 d`.
pub(crate) fn duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        10_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_short() {
        let cases = [
            (132, "132 ms"),
            (4_250, "4.2 s"),
            (65_000, "65 s"),
            (180_000, "3 min"),
            (7_300_000, "2 h"),
            (432_000_000, "5 d"),
        ];
        for (ms, shown) in cases {
            assert_eq!(duration(ms), shown);
        }
    }
}
