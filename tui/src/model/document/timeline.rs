//! An occurrence on a time axis, with its events.

use bellwether_proto::v1::{ExplainEventResponse, Occurrence};

use crate::{
    document::{Document, Span, format_duration, label, span},
    model::Model,
    text,
    theme::Token,
};

const COLUMNS: (usize, usize) = (20, 120);
const NARROW: usize = 70;

struct Mark {
    at_ms: i64,
    sign: &'static str,
    token: Token,
    words: &'static str,
}

const fn new_mark(at_ms: i64, sign: &'static str, token: Token, words: &'static str) -> Mark {
    Mark {
        at_ms,
        sign,
        token,
        words,
    }
}

pub(super) fn write(
    into: &mut Document,
    model: &Model,
    occurrence: &Occurrence,
    explanation: Option<&ExplainEventResponse>,
) {
    let marks = timeline_marks(occurrence, explanation);
    let width = into.columns;
    let (start, end) = (
        occurrence.start_time,
        occurrence.close_time.unwrap_or(model.now_ms),
    );
    let last = marks.iter().map(|mark| mark.at_ms).max().unwrap_or(end);
    let end = end.max(last).max(start.saturating_add(1));
    // In a narrow pane, there is no margin beside the axis.
    let margin = || {
        if width < NARROW {
            span(Token::Text, "")
        } else {
            label("")
        }
    };
    let space = width.saturating_sub(text::cell_width(&margin().text) + 2);
    let columns = space.clamp(COLUMNS.0, COLUMNS.1);
    let place = |ms: i64| {
        let share = i128::from(ms.clamp(start, end) - start) * (columns - 1) as i128;
        usize::try_from(share / i128::from(end - start)).unwrap_or(0)
    };
    into.heading("Timeline");
    let lasts = place(occurrence.close_time.unwrap_or(model.now_ms));
    let tail = if occurrence.close_time.is_some() {
        "┤"
    } else {
        "▶"
    };
    into.line(vec![
        margin(),
        span(
            occurrence.severity().into(),
            &format!("├{}{tail}", "━".repeat(lasts.saturating_sub(1))),
        ),
    ]);
    // Of several marks in one column, the last is drawn.
    let mut drawn: Vec<Option<&Mark>> = vec![None; columns];
    for mark in &marks {
        drawn[place(mark.at_ms)] = Some(mark);
    }
    let mut signs: Vec<Span> = vec![margin()];
    let mut blank = 0;
    for mark in drawn {
        let Some(mark) = mark else {
            blank += 1;
            continue;
        };
        if blank > 0 {
            signs.push(span(Token::Text, &" ".repeat(blank)));
        }
        blank = 0;
        signs.push(span(mark.token, mark.sign));
    }
    if signs.len() > 1 {
        into.line(signs);
    }
    let (from, to) = (model.format_time(start), model.format_time(end));
    let lasted = format_duration(end - start);
    let gap = columns.saturating_sub(from.len() + to.len() + lasted.len() + 2) / 2;
    let pad = " ".repeat(gap.max(1));
    into.line(vec![
        margin(),
        span(Token::Dim, &format!("{from}{pad} {lasted} {pad}{to}")),
    ]);
    write_legend(into, &marks, margin());
    write_sightings(into, model, occurrence, margin());
}

fn write_legend(into: &mut Document, marks: &[Mark], margin: Span) {
    let mut message: Vec<Span> = vec![margin];
    let mut known: Vec<&str> = Vec::new();
    for mark in marks {
        if !known.contains(&mark.words) {
            known.push(mark.words);
            message.push(span(mark.token, mark.sign));
            message.push(span(Token::Dim, &format!(" {}  ", mark.words)));
        }
    }
    if message.len() > 1 {
        into.line(message);
    }
}

/// Writes the number of sightings and the time of the last one. The service does not store the
/// times of the others.
fn write_sightings(into: &mut Document, model: &Model, occurrence: &Occurrence, margin: Span) {
    let count = occurrence.count.unwrap_or_default();
    if count > 1 {
        let last = model.format_time(occurrence.last_seen);
        let words = format!("seen {} times, last {last}", text::group_digits(count));
        let why = "; times of the others are not stored";
        into.line(vec![
            margin,
            span(Token::Text, &words),
            span(Token::Dim, why),
        ]);
    }
}

fn timeline_marks(
    occurrence: &Occurrence,
    explanation: Option<&ExplainEventResponse>,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    for entry in &occurrence.history {
        let at = entry.time;
        match (&entry.field[..], &entry.to[..]) {
            ("acknowledged", "true") => marks.push(new_mark(at, "✓", Token::Good, "acknowledged")),
            ("acknowledged", _) => marks.push(new_mark(at, "○", Token::Dim, "unacknowledged")),
            ("assignee", "") => marks.push(new_mark(at, "@", Token::Dim, "unassigned")),
            ("assignee", _) => marks.push(new_mark(at, "@", Token::Info, "assigned")),
            ("severity", _) => marks.push(new_mark(at, "◆", Token::Warning, "severity changed")),
            ("status", _) if entry.from.is_empty() => {}
            ("status", _) => marks.push(new_mark(at, "■", Token::Info, "status changed")),
            _ => {}
        }
    }
    let notes = occurrence.annotations.iter();
    marks.extend(notes.map(|note| new_mark(note.update_time, "✎", Token::Key, "note")));
    let rules = explanation.iter().flat_map(|it| &it.rules);
    for rule in rules {
        let decided = rule.notifications.iter();
        marks.extend(decided.map(|it| new_mark(it.time, "→", Token::Info, "decided to notify")));
        for delivery in &rule.deliveries {
            match (&delivery.state[..], delivery.end_time) {
                ("DELIVERED", Some(at)) => marks.push(new_mark(at, "●", Token::Good, "delivered")),
                ("DEAD", Some(at)) => marks.push(new_mark(at, "✗", Token::Bad, "failed for good")),
                _ => {}
            }
        }
    }
    if let Some(at) = occurrence.close_time {
        marks.push(new_mark(at, "◼", Token::Dim, "closed"));
    }
    marks.sort_by_key(|mark| mark.at_ms);
    marks
}
