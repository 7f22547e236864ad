//! Drawing of text: cleaned, clipped and styled by meaning.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::Span,
    widgets::{
        Block, BorderType, Padding, Scrollbar, ScrollbarOrientation, ScrollbarState,
        StatefulWidget, Widget,
    },
};

use crate::{
    model::field::TextField,
    text,
    theme::{Appearance, Token},
};

pub(super) struct Pen<'a> {
    buffer: &'a mut Buffer,
    look: Appearance,
    is_ascii: bool,
    cursor: Option<Position>,
    /// Position of the selected row. The terminal's cursor is placed there unless it is in a text
    /// field.
    selected: Option<Position>,
}

impl<'a> Pen<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, look: Appearance, is_ascii: bool) -> Self {
        buffer.set_style(*buffer.area(), look.base());
        Self {
            buffer,
            look,
            is_ascii,
            cursor: None,
            selected: None,
        }
    }

    pub(super) fn is_mono(&self) -> bool {
        self.look.is_mono()
    }

    /// Whether symbols and lines are replaced by ASCII.
    pub(super) fn is_ascii(&self) -> bool {
        self.is_ascii
    }

    pub(super) fn cursor(&self) -> Option<Position> {
        self.cursor.or(self.selected)
    }

    /// Places the terminal's cursor, for screen readers and magnifiers.
    pub(super) fn select(&mut self, x: u16, y: u16) {
        self.selected = Some(Position { x, y }).filter(|it| self.buffer.area().contains(*it));
    }

    /// Draws text in at most `cells`; returns the column after it.
    pub(super) fn draw_text(
        &mut self,
        x: u16,
        y: u16,
        cells: usize,
        token: Token,
        shown: &str,
    ) -> u16 {
        let style = self.look.style(token);
        self.draw_styled_text(x, y, cells, style, shown)
    }

    fn draw_styled_text(&mut self, x: u16, y: u16, cells: usize, style: Style, shown: &str) -> u16 {
        let style = Style::reset().patch(self.look.base()).patch(style);
        let area = *self.buffer.area();
        if y >= area.bottom() || x >= area.right() {
            return x;
        }
        let cells = cells.min(usize::from(area.right() - x));
        let shown = text::fit_to_width(shown, cells);
        if !text::is_single_width(&shown) {
            return self.buffer.set_stringn(x, y, shown, cells, style).0;
        }
        let first = self.buffer.index_of(x, y);
        let row = self.buffer.content[first..].iter_mut();
        let mut end = x;
        for (cell, c) in row.zip(shown.chars()) {
            cell.set_char(c).set_style(style);
            end += 1;
        }
        end
    }

    /// Draws everything below the header as dim: the data may be outdated.
    pub(super) fn fade_area(&mut self, area: Rect) {
        let dim = self.look.style(Token::Dim);
        let below = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(1),
            ..area
        };
        self.buffer.set_style(below, dim);
    }

    pub(super) fn style(&self, token: Token) -> Style {
        self.look.style(token)
    }

    pub(super) fn base_style(&self) -> Style {
        self.look.base()
    }

    /// Cleans external text and returns a span.
    pub(super) fn span(&self, token: Token, shown: &str) -> Span<'static> {
        Span::styled(text::clean_text(shown), self.style(token))
    }

    pub(super) fn widget(&mut self, widget: impl Widget, area: Rect) {
        widget.render(area.intersection(*self.buffer.area()), self.buffer);
    }

    /// Draws a bordered panel with a title; returns the inner area.
    pub(super) fn panel(&mut self, area: Rect, title: &str) -> Rect {
        let area = area.intersection(*self.buffer.area());
        let block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(self.style(Token::Border))
            .padding(Padding::horizontal(1));
        let inside = block.inner(area);
        self.widget(block, area);
        let space = usize::from(area.width.saturating_sub(4));
        if area.height > 0 && space > 2 {
            let title = format!(" {} ", text::fit_to_width(title, space - 2));
            self.draw_text(area.x + 1, area.y, space, Token::Title, &title);
        }
        inside
    }

    pub(super) fn scrollbar(&mut self, area: Rect, count: usize, top: usize) {
        let height = usize::from(area.height);
        if count <= height || height < 3 {
            return;
        }
        let mut state = ScrollbarState::new(count - height).position(top);
        // The highlight of the selected row ends before the scroll bar.
        let own = |token| {
            Style::reset()
                .patch(self.base_style())
                .patch(self.style(token))
        };
        let (track, thumb) = (own(Token::Border), own(Token::Dim));
        let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight)
            .begin_symbol(None)
            .end_symbol(None)
            .track_symbol(Some("│"))
            .track_style(track)
            .thumb_style(thumb);
        let area = area.intersection(*self.buffer.area());
        StatefulWidget::render(bar, area, self.buffer, &mut state);
    }

    pub(super) fn row(&mut self, area: Rect, y: u16, token: Token) {
        if y < area.bottom() {
            if token == Token::Selected {
                self.select(area.x, y);
            }
            let row = Rect {
                y,
                height: 1,
                ..area
            }
            .intersection(*self.buffer.area());
            let style = self.look.style(token);
            if token != Token::Selected || !style.add_modifier.contains(Modifier::REVERSED) {
                self.buffer.set_style(row, style);
                return;
            }
            // The colours are replaced, not reversed: reversed text is hard to read, and a reversed
            // bar shows the opposite.
            for position in row.positions() {
                let cell = &mut self.buffer[position];
                if !is_bar(cell.symbol()) {
                    cell.set_style(Style::reset().patch(self.look.base()).patch(style));
                }
            }
        }
    }

    pub(super) fn clear(&mut self, area: Rect) {
        let area = area.intersection(*self.buffer.area());
        for position in area.positions() {
            self.buffer[position].reset();
        }
        self.buffer.set_style(area, self.look.base());
    }

    /// Draws a bordered window with a title over a cleared area; returns the inner area.
    pub(super) fn draw_window(&mut self, area: Rect, title: &str) -> Rect {
        let area = area.intersection(*self.buffer.area());
        // A margin separates the window from the text beside it.
        let margin = u16::from(area.x > 0);
        self.clear(Rect {
            x: area.x - margin,
            width: area.width + 1 + margin,
            ..area
        });
        if area.width < 4 || area.height < 3 {
            return area;
        }
        let inner = usize::from(area.width - 2);
        let block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(
                Style::reset()
                    .patch(self.look.base())
                    .patch(self.style(Token::Border)),
            );
        self.widget(block, area);
        let top = area.top();
        let title = text::fit_to_width(title, inner.saturating_sub(4));
        self.draw_text(area.x + 2, top, inner, Token::Title, &format!(" {title} "));
        Rect {
            x: area.x + 2,
            y: top + 1,
            width: area.width - 4,
            height: area.height - 2,
        }
    }

    /// Draws a text field, scrolled so that its cursor is visible. Places the terminal's cursor if
    /// `focused`; `mask` hides the text.
    pub(super) fn field(&mut self, area: Rect, field: &TextField, focused: bool, mask: bool) {
        let (before, after) = field.split_at_cursor();
        let hide = |part: &str| {
            if mask {
                "•".repeat(part.chars().count())
            } else {
                part.to_owned()
            }
        };
        let (before, after) = (hide(before), hide(after));
        if field.lines && area.height > 1 {
            return self.wrapped_field(area, (&before, &after), focused);
        }
        let line_index = before.matches('\n').count();
        let height = usize::from(area.height.max(1));
        let top = (line_index + 1).saturating_sub(height);
        let before_line = before.rsplit('\n').next().unwrap_or_default();
        let column = text::cell_width(&text::clean_text(before_line));
        let space = usize::from(area.width.max(1));
        // Scrolls sideways by half a field, so that the text does not move with each key.
        let half = (space / 2).max(1);
        let left = if column < space || !focused {
            0
        } else {
            (column - space) / half * half + half
        };
        let whole = before + &after;
        for (offset, line) in whole.split('\n').skip(top).take(height).enumerate() {
            let y = area.y + u16::try_from(offset).unwrap_or(0);
            let shown = if focused {
                skip_cells(&text::clean_text(line), left)
            } else {
                text::fit_to_width(&text::clean_text(line), space).into_owned()
            };
            let token = match (focused, field.is_selected()) {
                (false, _) => Token::Text,
                (true, false) => Token::Field,
                (true, true) => Token::Selected,
            };
            let end = self.draw_text(area.x, y, space, token, &shown);
            if focused {
                let rest = usize::from(area.right().saturating_sub(end));
                self.draw_text(end, y, rest, Token::Field, &" ".repeat(rest));
            }
        }
        if focused {
            let x = area.x + u16::try_from(column - left).unwrap_or(0);
            let y = area.y + u16::try_from(line_index - top).unwrap_or(0);
            if area.contains(Position {
                x: x.min(area.right().saturating_sub(1)),
                y,
            }) {
                self.cursor = Some(Position {
                    x: x.min(area.right().saturating_sub(1)),
                    y,
                });
            }
        }
    }

    fn wrapped_field(&mut self, area: Rect, (before, after): (&str, &str), focused: bool) {
        let space = usize::from(area.width.max(1));
        let rows = text::split_into_rows(&format!("{before}{after}"), space);
        let above = text::split_into_rows(before, space);
        let (mut row, mut column) = (
            above.len().saturating_sub(1),
            above.last().map_or(0, |it| text::cell_width(it)),
        );
        if column >= space {
            (row, column) = (row + 1, 0);
        }
        let height = usize::from(area.height);
        let top = if focused {
            (row + 1).saturating_sub(height)
        } else {
            0
        };
        let token = if focused { Token::Field } else { Token::Text };
        for (at, y) in (top..rows.len().max(row + 1)).zip(area.top()..area.bottom()) {
            let shown = rows.get(at).map_or("", String::as_str);
            let end = self.draw_text(area.x, y, space, token, shown);
            if focused {
                let rest = usize::from(area.right().saturating_sub(end));
                self.draw_text(end, y, rest, token, &" ".repeat(rest));
            }
        }
        if focused {
            let place = |cells: usize| u16::try_from(cells).unwrap_or(0);
            let y = area.y + place(row - top);
            let x = area.x + place(column);
            self.cursor = Some(Position { x, y }).filter(|it| area.contains(*it));
        }
    }
}

fn skip_cells(shown: &str, cells: usize) -> String {
    if cells == 0 {
        return shown.to_owned();
    }
    let mut skipped = 0;
    let mut chars = shown.chars();
    while skipped < cells {
        match chars.next() {
            Some(char) => skipped += text::cell_width(char.encode_utf8(&mut [0; 4])),
            None => break,
        }
    }
    chars.collect()
}

fn is_bar(symbol: &str) -> bool {
    ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"].contains(&symbol)
}
