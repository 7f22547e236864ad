//! Draws the map: three columns and what joins them.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    model::{
        Model,
        map::{COLUMNS, Map, Node, RULES},
    },
    theme::Token,
};

/// Cells between two columns.
const JOINT: usize = 6;
const TITLES: [&str; COLUMNS] = ["Triggers", "Rules", "Destinations"];

/// Draws the titles and the visible rows.
pub(super) fn draw(model: &Model, map: &Map, pen: &mut Pen<'_>, area: Rect) {
    let widths = widths(usize::from(area.width).saturating_sub(2));
    let mut x = area.x + 1;
    for (title, width) in TITLES.into_iter().zip(widths) {
        pen.put(x, area.y, width, Token::Heading, title);
        x += cells(width + JOINT);
    }
    let list = &model.page.list;
    let body = area.top() + 1..area.bottom();
    let line = if pen.is_mono() { "-" } else { "─" };
    let rows = map.rows.iter().enumerate().skip(list.top).zip(body);
    for ((index, row), y) in rows {
        let cursor = (index == list.index).then(|| row.column(list.column));
        let mut x = area.x + 1;
        for (column, width) in widths.into_iter().enumerate() {
            let joint = row
                .joints
                .get(column)
                .map_or("", |it| it.drawn(pen.is_mono()));
            let lead = if joint.starts_with(' ') { " " } else { line };
            let mut end = x;
            if let Some(node) = &row.nodes[column] {
                let words = words(node, column);
                end = pen.put(x, y, width, node.token, &words);
                if cursor == Some(column) {
                    let width = end - x;
                    pen.row(Rect { x, width, ..area }, y, Token::Selected);
                }
            }
            // The line begins where the name ends.
            let gap = usize::from((x + cells(width)).saturating_sub(end)) + 1;
            x += cells(width + JOINT);
            if !joint.is_empty() {
                let lead = lead.repeat(gap.saturating_sub(1));
                let space = usize::from(x.saturating_sub(end));
                pen.put(end, y, space, Token::Dim, &format!(" {lead}{joint} "));
            }
        }
        if index == list.index {
            pen.put(area.x, y, 1, Token::Key, "▶");
        }
    }
}

/// The name with what is remarkable about it.
fn words(node: &Node, column: usize) -> String {
    let sign = match (column, node.note) {
        (RULES, "") => "● ",
        (RULES, "disabled") => "○ ",
        (_, "") => "",
        _ => "! ",
    };
    if node.note.is_empty() {
        format!("{sign}{}", node.name())
    } else {
        format!("{sign}{}: {}", node.name(), node.note)
    }
}

fn widths(space: usize) -> [usize; COLUMNS] {
    let rest = space.saturating_sub(JOINT * (COLUMNS - 1));
    let third = rest / COLUMNS;
    [third, third, rest - 2 * third]
}

fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
