//! Draws a destination form with its test bench: response and request in one frame.

use bellwether_proto::v1::RequestTranscript;
use ratatui::layout::Rect;

use super::{form, pen::Pen};
use crate::{
    document::Line,
    limits,
    model::{
        Model,
        bench::{BenchLayout, PaneLayout},
        document,
        form::{Form, FormTest, Pane, RequestTab},
    },
    text,
    theme::Token,
};

pub(super) fn draw(model: &Model, form: &Form, pen: &mut Pen<'_>, area: Rect) {
    let Some(layout) = model.bench_layout((area.width, area.height)) else {
        return form::draw(model, form, pen, area);
    };
    if layout.form_columns > 0 {
        let left = Rect {
            width: layout.form_columns,
            ..area
        };
        form::draw(model, form, pen, left);
    }
    let frame = Rect {
        x: area.x + layout.form_columns,
        width: area.width - layout.form_columns,
        ..area
    };
    pen.panel(frame, "");
    let has_both = layout.panes.len() > 1;
    for (index, pane) in layout.panes.iter().enumerate() {
        let y = frame.y + pane.row - 1;
        if index > 0 {
            let line = format!("├{}┤", "─".repeat(usize::from(frame.width) - 2));
            pen.draw_text(frame.x, y, usize::from(frame.width), Token::Dim, &line);
        }
        let is_active = !has_both || form.bench.pane == pane.pane;
        let head = Rect {
            y,
            height: 1,
            ..frame
        };
        draw_head(form, pane.pane, is_active, pen, head);
        let inside = Rect {
            x: frame.x + 2,
            y: y + 1,
            width: frame.width.saturating_sub(4),
            height: pane.rows,
        };
        draw_lines(pane, pen, inside);
    }
    let keys = format_bench_keys(model, form, &layout, usize::from(frame.width) - 4);
    if !keys.is_empty() {
        let x = frame.x + 1;
        let words = format!(" {keys} ");
        pen.draw_text(
            x,
            frame.bottom() - 1,
            usize::from(frame.width) - 2,
            Token::Dim,
            &words,
        );
    }
}

fn draw_head(form: &Form, pane: Pane, is_active: bool, pen: &mut Pen<'_>, area: Rect) {
    let right = pane_title_details(form, pane);
    let reserved: usize = right.iter().map(|(_, it)| text::cell_width(it) + 1).sum();
    let space = usize::from(area.width).saturating_sub(reserved + 5);
    let name = match pane {
        Pane::Response => " Response ",
        Pane::Request => " Request ",
    };
    let token = if is_active { Token::Title } else { Token::Text };
    let x = pen.draw_text(area.x + 1, area.y, space, token, name);
    let space = space.saturating_sub(text::cell_width(name) + 1);
    let (token, said) = match pane {
        Pane::Response => {
            let test = form
                .bench
                .tests()
                .0
                .filter(|_| form.bench.waiting.is_none());
            let token = match test.map(FormTest::was_delivered) {
                Some(true) => Token::Good,
                Some(false) => Token::Bad,
                None => Token::Info,
            };
            (token, document::format_verdict(form))
        }
        Pane::Request => {
            let target = form
                .request()
                .map(|it| format_target(it, space.saturating_sub(1)));
            (Token::Text, target.unwrap_or_default())
        }
    };
    if !said.is_empty() {
        let said = format!(" {} ", text::fit_to_width(&said, space.saturating_sub(1)));
        pen.draw_text(x, area.y, space + 1, token, &said);
    }
    if reserved > 0 {
        let cells = u16::try_from(reserved + 2).unwrap_or(area.width);
        let mut x = area.right().saturating_sub(cells);
        let gap = " ".repeat(reserved + 1);
        pen.draw_text(x, area.y, reserved + 1, Token::Dim, &gap);
        for (token, word) in right {
            x = pen.draw_text(x + 1, area.y, reserved, token, &word);
        }
    }
}

/// Returns the words at the right of a pane's title: the number of the test, or the parts of the
/// request.
fn pane_title_details(form: &Form, pane: Pane) -> Vec<(Token, String)> {
    let bench = &form.bench;
    match pane {
        Pane::Response if bench.count() < 2 => Vec::new(),
        Pane::Response => {
            let number = format!("test {} of {}", bench.current_number(), bench.total);
            vec![(Token::Text, number)]
        }
        Pane::Request => { RequestTab::ALL.into_iter() }
            .map(|tab| match tab.title() {
                title if tab == bench.tab => (Token::Title, format!("[{title}]")),
                title => (Token::Dim, title.to_owned()),
            })
            .collect(),
    }
}

/// Formats method and URL; of a long URL, the host and the end of the path.
fn format_target(request: &RequestTranscript, cells: usize) -> String {
    let RequestTranscript { method, url, .. } = request;
    let whole = format!("{method} {url}");
    if text::cell_width(&whole) <= cells {
        return whole;
    }
    let place = url
        .split_once("://")
        .map_or(url.as_str(), |(_, place)| place);
    let space = cells.saturating_sub(text::cell_width(method) + 1);
    let chars: Vec<char> = place.chars().collect();
    if chars.len() <= space || space < 8 {
        return format!("{method} {place}");
    }
    let end = space / 3;
    let start = chars[..space - end - 1].iter().collect::<String>();
    let end = chars[chars.len() - end..].iter().collect::<String>();
    format!("{method} {start}…{end}")
}

fn draw_lines(pane: &PaneLayout, pen: &mut Pen<'_>, area: Rect) {
    let lines = pane.document.lines.iter().skip(pane.top);
    for (Line { spans, .. }, y) in lines.zip(area.top()..area.bottom()) {
        let mut x = area.x;
        for span in spans {
            let space = usize::from(area.right().saturating_sub(x));
            x = pen.draw_text(x, y, space, span.token, &span.text);
        }
    }
    let mut words = Vec::new();
    if pane.top > 0 {
        words.push(format!("↑ {}", pane.top));
    }
    if pane.lines_below() > 0 {
        words.push(format!("↓ {} more", pane.lines_below()));
    }
    if !words.is_empty() && area.height > 0 {
        let words = format!(" {} ", words.join(" · "));
        let cells = text::cell_width(&words);
        let x = area
            .right()
            .saturating_sub(u16::try_from(cells).unwrap_or(area.width));
        pen.draw_text(x, area.bottom() - 1, cells, Token::Info, &words);
    }
}

/// Returns the keys of the bench that have an effect now, as far as they fit.
fn format_bench_keys(model: &Model, form: &Form, layout: &BenchLayout, cells: usize) -> String {
    let overflows = |pane: &PaneLayout| pane.top > 0 || pane.lines_below() > 0;
    let [up, down] = ["‹form_scroll_up›", "‹form_scroll_down›"].map(|it| model.expand_keys(it));
    let scroll = match (up.strip_suffix("Up"), down.strip_suffix("Down")) {
        (Some(one), Some(other)) if one == other && !model.is_ascii => format!("{one}↑↓ scroll"),
        _ => format!("{up} {down} scroll"),
    };
    let mut words = Vec::new();
    if layout.panes.iter().any(overflows) {
        words.push(scroll);
    }
    let other = match form.bench.pane.opposite() {
        _ if model.size.0 < limits::BENCH_COLUMNS && form.bench.pane == Pane::Request => "form",
        Pane::Response => "response",
        Pane::Request => "request",
    };
    let switch = format!("‹form_bench› {other}");
    let has_both = layout.panes.len() > 1;
    if !has_both {
        words.push(switch.clone());
    }
    if form.bench.count() > 1 {
        words.push("‹form_flip› previous test".to_owned());
    }
    let event = if form.bench.event_id.is_empty() {
        "‹form_event› sample event"
    } else {
        "‹form_event› stored event"
    };
    words.push(event.to_owned());
    let next = form.bench.tab.next().title();
    words.push(format!("‹form_part› {next}"));
    if form.bench.has_differences() {
        words.push("‹form_differences› differences".to_owned());
    }
    if has_both {
        words.push(switch);
    }
    let mut line = String::new();
    for word in words {
        let word = model.expand_keys(&word);
        let gap = if line.is_empty() { "" } else { " · " };
        if text::cell_width(&line) + text::cell_width(gap) + text::cell_width(&word) > cells {
            break;
        }
        line = line + gap + &word;
    }
    line
}
