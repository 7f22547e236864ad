//! The panels of unreachable destinations and of the noisiest sources.

use ratatui::layout::Rect;

use super::WallView;
use crate::{model::wall, text, theme::Token, view::pen::Pen};

impl WallView<'_> {
    pub(super) fn missed_rows(&self) -> u16 {
        let rows = 2 * wall::unhealthy_destinations(self.model, self.overview).len() + 4;
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    pub(super) fn draw_undelivered_or_late(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Undelivered or late");
        let mut lines: Vec<(Token, String)> = Vec::new();
        let missed = wall::unhealthy_destinations(self.model, self.overview);
        // The details of each destination are on a separate line if there is room.
        let space = usize::from(inside.height).saturating_sub(2) / 2;
        let shown = if missed.len() * 2 <= usize::from(inside.height) {
            missed.len()
        } else {
            space.max(1)
        };
        let more = missed.len().saturating_sub(shown);
        for one in missed.into_iter().take(shown) {
            lines.push((one.token, one.words));
            lines.push((Token::Dim, format!("  {}", one.details)));
        }
        if more > 0 {
            lines.push((Token::Dim, format!("+{more} more")));
        }
        if lines.is_empty() {
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
        for ((token, line), y) in lines.iter().zip(inside.top()..inside.bottom()) {
            pen.draw_text(inside.x, y, inside.width.into(), *token, line);
        }
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
