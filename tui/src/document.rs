//! Pages: text in lines, with links.

mod difference;
mod json;

use serde_json::Value;

pub use self::difference::unified_diff;
pub(crate) use self::{difference::diff_lines, json::pretty_body};
use bellwether_language::filter;
pub(crate) use bellwether_language::text::format_duration;

use crate::{
    data::{Failure, Kind, Object},
    keymap::Action,
    limits,
    route::Route,
    text,
    theme::Token,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) token: Token,
    pub(crate) text: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
    pub(crate) link: Option<Link>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    Go(Route),
    List(Route, String),
    Line(Route, usize),
    Heading(Route, String),
    Act(Route, Action),
    /// Opens the prompt to override a shift. The numbers are its start and end, in milliseconds
    /// since 1970.
    Shift(i64, i64),
    Restore(Box<Object>),
}

impl Link {
    pub(crate) fn object(kind: Kind, name: impl Into<String>) -> Self {
        Self::Go(Route::Object(kind, name.into()))
    }

    pub(crate) fn event(id: impl Into<String>) -> Self {
        Self::Go(Route::Event(id.into()))
    }

    pub(crate) fn delivery(id: impl Into<String>) -> Self {
        Self::Go(Route::Delivery(id.into()))
    }

    pub(crate) fn severity(word: &str) -> Self {
        Self::List(Route::EVENTS, filter::print_condition("severity", word))
    }

    pub(crate) fn deliveries(field: &str, value: &str) -> Self {
        Self::List(Route::DELIVERIES, filter::print_condition(field, value))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) lines: Vec<Line>,
    pub(crate) columns: usize,
}

pub(crate) const LABEL: usize = 16;

impl Document {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            lines: Vec::new(),
            columns: columns.max(20),
        }
    }

    pub(crate) fn push(&mut self, line: Line) {
        if self.lines.len() < limits::DOCUMENT_LINES {
            self.lines.push(line);
        }
    }

    pub(crate) fn blank_line(&mut self) {
        self.push(Line::default());
    }

    pub(crate) fn heading(&mut self, title: &str) {
        if self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.blank_line();
        }
        self.push(Line {
            spans: vec![span(Token::Heading, title)],
            link: None,
        });
    }

    pub(crate) fn line(&mut self, spans: Vec<Span>) {
        self.push(Line { spans, link: None });
    }

    pub(crate) fn linked_line(&mut self, spans: Vec<Span>, link: Link) {
        self.push(Line {
            spans,
            link: Some(link),
        });
    }

    pub(crate) fn field(&mut self, label: &str, token: Token, value: &str) {
        let space = self.columns.saturating_sub(LABEL + 3);
        for (index, part) in text::wrap_text(value, space).into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.line(vec![self::label(label), span(token, &part)]);
        }
    }

    pub(crate) fn link(&mut self, label: &str, value: &str, link: Link) {
        self.linked_line(vec![self::label(label), span(Token::Link, value)], link);
    }

    pub(crate) fn text(&mut self, token: Token, indent: usize, body: &str) {
        for part in text::wrap_text(body, self.columns.saturating_sub(indent + 2)) {
            self.line(vec![
                span(Token::Text, &" ".repeat(indent)),
                span(token, &part),
            ]);
        }
    }

    pub(crate) fn tree(&mut self, indent: usize, key: &str, value: &Value) {
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
                let space = self.columns.saturating_sub(indent + key.len() + 4).max(10);
                for (index, part) in text::wrap_text(value, space).into_iter().enumerate() {
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

    /// Wraps the lines that are wider than the document at spaces, indented like the values of
    /// fields.
    pub(crate) fn wrap_lines(self) -> Self {
        let columns = self.columns;
        let mut wrapped = Self::new(columns);
        for line in self.lines {
            let cells: usize = line.spans.iter().map(|it| text::cell_width(&it.text)).sum();
            if cells <= columns {
                wrapped.push(line);
                continue;
            }
            let first = line
                .spans
                .first()
                .map_or(0, |it| text::cell_width(&it.text));
            let indent = if first == LABEL + 1 { first } else { 4 };
            let mut spans: Vec<Span> = Vec::new();
            let mut used = 0;
            for part in line.spans {
                for word in part.text.split_inclusive(' ') {
                    if used + text::cell_width(word.trim_end()) > columns && used > indent {
                        wrapped.push(Line { spans, link: None });
                        spans = vec![span(Token::Text, &" ".repeat(indent))];
                        used = indent;
                    }
                    used += text::cell_width(word);
                    spans.push(span(part.token, word));
                }
            }
            let link = line.link;
            wrapped.push(Line { spans, link });
        }
        wrapped
    }

    pub(crate) fn loading_or_failure(&mut self, waiting: bool, failure: Option<&Failure>) {
        match failure {
            Some(failure) => self.failure(failure),
            None if waiting => self.text(Token::Dim, 0, "reading…"),
            None => self.text(Token::Dim, 0, "not read yet"),
        }
    }

    pub(crate) fn failure(&mut self, failure: &Failure) {
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

pub(crate) fn span(token: Token, text: &str) -> Span {
    Span {
        token,
        text: text.to_owned(),
    }
}

pub(crate) fn label(label: &str) -> Span {
    span(Token::Dim, &format!("{label:<LABEL$} "))
}

impl Line {
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
