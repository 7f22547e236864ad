//! Draws the screens as tabs in the head.

use ratatui::{
    layout::Rect,
    style::{Style, Stylize},
    text::Line,
    widgets,
};

use super::pen::Pen;
use crate::{
    model::{Model, tabs},
    theme::Token,
};

/// Draws them where there is room; says whether there is.
pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) -> bool {
    let (start, tabs) = tabs::shown(model);
    let cells: usize = tabs.iter().map(tabs::Tab::cells).sum();
    let (Ok(start), Ok(width)) = (u16::try_from(start), u16::try_from(cells)) else {
        return false;
    };
    if tabs.is_empty() {
        return false;
    }
    let titles = tabs.iter().map(|tab| {
        let mut spans = vec![pen.span(Token::Bar, &tab.title)];
        if let Some(words) = &tab.badge {
            spans.push(pen.span(Token::Bar, " "));
            spans.push(pen.span(Token::Bar, words).bold());
        }
        Line::from(spans)
    });
    let own = &model.page.route;
    let own = own.above().unwrap_or_else(|| own.clone());
    let chosen = tabs.iter().position(|tab| tab.route == own);
    let line = widgets::Tabs::new(titles.collect::<Vec<_>>())
        .style(pen.style(Token::Bar))
        .select(chosen)
        .highlight_style(Style::new().reversed().bold())
        .divider("")
        .padding(" ", " ");
    let area = Rect {
        x: area.x + start,
        width,
        height: 1,
        ..area
    };
    pen.widget(line, area);
    true
}
