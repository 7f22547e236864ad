//! The panels of unreachable destinations and of the noisiest sources.

use ratatui::layout::Rect;

use super::WallView;
use crate::{
    model::wall::{self, UnhealthyDestination},
    text,
    theme::Token,
    view::pen::Pen,
};

impl WallView<'_> {
    /// Returns the rows of the panel of this width with all of its text, at most `most`.
    pub(super) fn missed_rows(&self, width: u16, most: u16) -> u16 {
        let rows = self.missed_lines(usize::from(width.saturating_sub(4)), usize::MAX);
        to_panel_rows(rows.len(), most)
    }

    pub(super) fn noisiest_rows(&self, most: u16) -> u16 {
        to_panel_rows(wall::frequent_sources(self.model).len(), most)
    }

    pub(super) fn draw_undelivered_or_late(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Undelivered or late");
        let lines = self.missed_lines(inside.width.into(), inside.height.into());
        for ((token, line), y) in lines.iter().zip(inside.top()..inside.bottom()) {
            pen.draw_text(inside.x, y, inside.width.into(), *token, line);
        }
    }

    /// Returns the lines of the panel: wrapped if they fit, else the worst destinations, each with
    /// one line of details.
    fn missed_lines(&self, width: usize, height: usize) -> Vec<(Token, String)> {
        let missed = wall::unhealthy_destinations(self.model, self.overview);
        let tail = self.missed_tail(missed.is_empty());
        let lines = |one: &UnhealthyDestination| {
            let details = format!("  {}", one.details);
            [(one.token, one.words.clone()), (Token::Dim, details)]
        };
        let all = missed.iter().flat_map(lines).chain(tail.clone());
        let wrapped = all.flat_map(|(token, line)| {
            let words = line.trim_start();
            let indent = &line[..line.len() - words.len()];
            let parts = text::wrap_text(words, width.saturating_sub(indent.len()));
            let parts = parts.iter().map(|part| (token, format!("{indent}{part}")));
            parts.collect::<Vec<_>>()
        });
        let wrapped: Vec<_> = wrapped.collect();
        if wrapped.len() <= height {
            return wrapped;
        }
        let fitting = height.saturating_sub(2) / 2;
        let shown = if missed.len() * 2 <= height {
            missed.len()
        } else {
            fitting.max(1)
        };
        let more = missed.len().saturating_sub(shown);
        let more = (more > 0).then(|| (Token::Dim, format!("+{more} more")));
        let shown = missed.iter().take(shown).flat_map(lines);
        shown.chain(more).chain(tail).collect()
    }

    fn missed_tail(&self, is_healthy: bool) -> Vec<(Token, String)> {
        let mut lines = Vec::new();
        if is_healthy {
            lines.push(wall::healthy_line(self.overview));
        }
        let dead: i32 = self
            .overview
            .destinations
            .iter()
            .filter_map(|one| one.dead_count)
            .sum();
        if dead > 0 {
            let words = format!("✗ {} dead in 24 h", text::group_digits(dead.into()));
            lines.push((Token::Bad, words));
        }
        if let Some(quiet) = wall::active_silences(self.model) {
            lines.push((Token::Held, format!("☾ {quiet}")));
        }
        lines
    }

    pub(super) fn draw_noisiest(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Noisiest");
        let rows = wall::frequent_sources(self.model);
        if rows.is_empty() {
            if self.counted.is_none() {
                return self.draw_not_counted(pen, inside);
            }
            let words = "nothing is open and no one was notified";
            pen.draw_text(inside.x, inside.y, inside.width.into(), Token::Dim, words);
            return;
        }
        let marked = rows.iter().position(|row| {
            let link = row.link.as_ref();
            link.is_some_and(|link| self.is_at_cursor(link))
        });
        let height = usize::from(inside.height);
        let top = marked.map_or(0, |at| (at + 1).saturating_sub(height));
        let bar = inside.width / 5;
        for (row, y) in rows.iter().skip(top).zip(inside.top()..inside.bottom()) {
            if row.link.is_none() && y + 1 == inside.bottom() {
                // A heading without rows.
                break;
            }
            let count = match (row.link.is_some(), row.or_more) {
                (false, _) => String::new(),
                (true, true) => format!("{}+", text::group_digits(row.count)),
                (true, false) => text::group_digits(row.count),
            };
            let cells = u16::try_from(count.len()).unwrap_or(0);
            let end = inside.right().saturating_sub(bar + 1);
            let space = usize::from(end.saturating_sub(inside.x + cells + 1));
            let token = if row.link.is_some() {
                Token::Text
            } else {
                row.token
            };
            pen.draw_text(inside.x, y, space, token, &row.name);
            pen.draw_text(
                end.saturating_sub(cells),
                y,
                cells.into(),
                Token::Text,
                &count,
            );
            #[expect(clippy::cast_precision_loss, reason = "a share of few cells")]
            let share = row.count as f64 / row.total.max(1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the number of cells"
            )]
            let filled = (share * f64::from(bar)).ceil().clamp(0.0, f64::from(bar)) as usize;
            pen.draw_text(end + 1, y, bar.into(), row.token, &"▇".repeat(filled));
            if row
                .link
                .as_ref()
                .is_some_and(|link| self.is_at_cursor(link))
            {
                pen.row(inside, y, Token::Selected);
            }
        }
    }
}

/// Returns the rows of a panel with these lines, at least one and at most `most` rows.
fn to_panel_rows(lines: usize, most: u16) -> u16 {
    let rows = u16::try_from(lines.max(1) + 2).unwrap_or(u16::MAX);
    rows.min(most.max(3))
}
