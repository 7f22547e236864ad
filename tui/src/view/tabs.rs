//! Draws the screens as tabs below the header.

use ratatui::{layout::Rect, style::Style, text::Line, widgets};

use super::pen::Pen;
use crate::{
    model::{Model, tabs},
    theme::Token,
};

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let tabs = tabs::visible_tabs(model);
    let own = tabs::current_route(model);
    let titles = tabs.iter().map(|tab| {
        let is_own = tab.route == own;
        let token = if is_own { Token::Tab } else { Token::Dim };
        let mut spans = vec![pen.span(token, &tab.title)];
        if let Some(words) = &tab.badge {
            let badge = match (is_own, tab.is_bad) {
                (true, _) => Token::Tab,
                (false, true) => Token::Bad,
                (false, false) => Token::Info,
            };
            spans.push(pen.span(token, " "));
            spans.push(pen.span(badge, words));
        }
        let line = Line::from(spans);
        if is_own {
            line.style(pen.style(Token::Tab))
        } else {
            line
        }
    });
    let chosen = tabs.iter().position(|tab| tab.route == own);
    let line = widgets::Tabs::new(titles.collect::<Vec<_>>())
        .style(pen.base_style())
        .select(chosen)
        .highlight_style(Style::new().patch(pen.style(Token::Tab)))
        .divider("")
        .padding(" ", tabs.first().map_or("", tabs::Tab::gap));
    pen.widget(line, area);
}
