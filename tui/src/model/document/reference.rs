//! The reference: the list of topics, a topic, or the results of a search.

use bellwether_proto::reference::{Block, Piece, TOPICS, Topic, parse_pieces};

use crate::{
    document::{Document, Line, Link, Span, span},
    model::Model,
    route::Route,
    text,
    theme::Token,
};

/// Minimum columns for text beside a label; in narrower pages, the text is below the label.
const BESIDE: usize = 30;

pub(super) fn write_index(into: &mut Document, model: &Model, needle: &str) {
    let needle = needle.trim().to_lowercase();
    if needle.is_empty() {
        return write_contents(into, model);
    }
    let mut found = false;
    for topic in TOPICS {
        let mut whole = Document::new(into.columns);
        write_topic(&mut whole, topic);
        let lines = whole.lines.iter().map(Line::text).enumerate();
        let remaining: Vec<_> = lines
            .filter(|(_, line)| line.to_lowercase().contains(&needle))
            .collect();
        if remaining.is_empty() {
            continue;
        }
        found = true;
        write_title(into, topic);
        for (at, line) in remaining {
            let words = format!("  {}", line.trim());
            let link = Link::Line(Route::Topic(topic.name.to_owned()), at);
            into.linked_line(vec![span(Token::Text, &words)], link);
        }
    }
    if !found {
        let words = format!("nothing in the reference contains `{needle}`");
        into.text(Token::Dim, 0, &words);
    }
}

fn write_contents(into: &mut Document, model: &Model) {
    let answer = model.expand_keys("‹open› opens a topic, ‹search› searches all of them.");
    into.text(Token::Dim, 0, &answer);
    for topic in TOPICS {
        write_title(into, topic);
        for block in topic.blocks() {
            if let Block::Heading(heading) = block {
                let words = span(Token::Text, &format!("  {heading}"));
                let link = Link::Heading(Route::Topic(topic.name.to_owned()), heading);
                into.linked_line(vec![words], link);
            }
        }
    }
}

fn write_title(into: &mut Document, topic: &Topic) {
    into.blank_line();
    let title = span(Token::Title, topic.title());
    into.linked_line(vec![title], Link::Go(Route::Topic(topic.name.to_owned())));
}

pub(super) fn write_topic_named(into: &mut Document, name: &str) {
    match Topic::find(name) {
        Some(found) => write_topic(into, found),
        None => into.text(Token::Warning, 0, &format!("unknown topic {name}")),
    }
}

fn write_topic(into: &mut Document, topic: &Topic) {
    into.line(vec![span(Token::Title, topic.title())]);
    let mut after_item = false;
    for block in topic.blocks() {
        let is_item = matches!(block, Block::Item(..));
        if !(matches!(block, Block::Heading(_)) || is_item && after_item) {
            into.blank_line();
        }
        after_item = is_item;
        match block {
            Block::Heading(title) => into.heading(&title),
            Block::Paragraph(text) => into.flow_text("", "", &text),
            Block::Item(number, text) => {
                let mark = number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
                into.flow_text(&mark, &" ".repeat(mark.len()), &text);
            }
            Block::Code(_, lines) => {
                for line in lines {
                    into.text(Token::Key, 2, &line);
                }
            }
            Block::Table(rows) => write_table(into, &rows),
        }
    }
}

fn write_table(into: &mut Document, rows: &[Vec<String>]) {
    let Some((heading, rows)) = rows.split_first() else {
        return;
    };
    let wide = |cell: &String| text::cell_width(&plain_text(cell));
    let widths: Vec<usize> = (0..heading.len())
        .map(|at| {
            let cells = rows.iter().chain([heading]).filter_map(|row| row.get(at));
            cells.map(wide).max().unwrap_or(0)
        })
        .collect();
    let last = widths.len() - 1;
    let before: usize = widths[..last].iter().map(|width| width + 2).sum();
    let fits = before + BESIDE.min(widths[last]) <= into.columns;
    if fits && (last == 1 || before + widths[last] <= into.columns) {
        let short: Vec<usize> = widths[..last].to_vec();
        into.flow_row(heading, &short, Some(Token::Title));
        for row in rows {
            into.flow_row(row, &short, None);
        }
        return;
    }
    for row in rows {
        into.flow_text("", "  ", row.first().map_or("", String::as_str));
        let cells = row.iter().zip(heading).skip(1);
        for (cell, title) in cells.filter(|(cell, _)| !cell.is_empty()) {
            let mark = format!("  {title}: ");
            into.flow_text(&mark, "    ", cell);
        }
    }
}

fn plain_text(cell: &str) -> String {
    let words = parse_pieces(cell).into_iter().map(|piece| match piece {
        Piece::Text(text) | Piece::Code(text) | Piece::Link { text, .. } => text,
    });
    words.collect()
}

struct StyledWord {
    token: Token,
    space: bool,
    text: String,
    topic: Option<String>,
}

fn split_words(running: &str) -> Vec<StyledWord> {
    let mut words = Vec::new();
    let mut space = false;
    for piece in parse_pieces(running) {
        let (token, shown, topic) = match piece {
            Piece::Text(text) => (Token::Text, text, None),
            Piece::Code(text) => (Token::Key, text, None),
            Piece::Link { text, topic } => (Token::Link, text, Some(topic.to_owned())),
        };
        for (at, part) in shown.split(' ').enumerate() {
            space |= at > 0;
            if !part.is_empty() {
                words.push(StyledWord {
                    token,
                    space,
                    text: part.to_owned(),
                    topic: topic.clone(),
                });
                space = false;
            }
        }
    }
    words
}

impl Document {
    fn flow_text(&mut self, first: &str, rest: &str, running: &str) {
        let space = self.columns;
        let mut line = Line {
            spans: vec![span(Token::Dim, first)],
            link: None,
        };
        let mut used = text::cell_width(first);
        let mut empty = true;
        for word in split_words(running) {
            let width = text::cell_width(&word.text) + usize::from(word.space && !empty);
            if used + width > space && !empty {
                let next = Line {
                    spans: vec![span(Token::Dim, rest)],
                    link: None,
                };
                self.push(std::mem::replace(&mut line, next));
                used = text::cell_width(rest);
                empty = true;
            }
            if word.space && !empty {
                line.spans.push(span(Token::Text, " "));
                used += 1;
            }
            used += text::cell_width(&word.text);
            empty = false;
            if let Some(topic) = word.topic {
                line.link.get_or_insert(Link::Go(Route::Topic(topic)));
            }
            line.spans.push(Span {
                token: word.token,
                text: word.text,
            });
        }
        self.push(line);
    }

    fn flow_row(&mut self, cells: &[String], widths: &[usize], token: Option<Token>) {
        let mut spans = Vec::new();
        let mut used = 0;
        let mut link = None;
        for (cell, width) in cells.iter().zip(widths) {
            for word in split_words(cell) {
                let shown = if word.space {
                    format!(" {}", word.text)
                } else {
                    word.text
                };
                link = link.or(word.topic.map(|topic| Link::Go(Route::Topic(topic))));
                spans.push(span(token.unwrap_or(word.token), &shown));
            }
            let pad = width.saturating_sub(text::cell_width(&plain_text(cell))) + 2;
            spans.push(span(Token::Text, &" ".repeat(pad)));
            used += width + 2;
        }
        let mut beside = Self::new(self.columns.saturating_sub(used).max(20));
        let last = cells.last().filter(|_| cells.len() > widths.len());
        beside.flow_text("", "", last.map_or("", String::as_str));
        for (at, line) in beside.lines.into_iter().enumerate() {
            let mut whole = if at == 0 {
                std::mem::take(&mut spans)
            } else {
                vec![span(Token::Text, &" ".repeat(used))]
            };
            whole.extend(line.spans.into_iter().map(|span| Span {
                token: token.unwrap_or(span.token),
                ..span
            }));
            let link = line.link.or(link.take());
            self.push(Line { spans: whole, link });
        }
    }
}

pub(crate) fn topic_for_path(path: &str) -> &'static str {
    let field = path.rsplit('.').next().unwrap_or_default();
    match field {
        "clause" => "queries",
        "message" | "subject" | "body" | "payload" => "templates",
        _ if field.ends_with("Template") => "templates",
        _ if path.starts_with("type.slack") || path.starts_with("type.msteams") => "chat",
        "signingSecret" => "webhook",
        _ if path.starts_with("type") || path.starts_with("delivery") => "destinations",
        _ => "",
    }
}
