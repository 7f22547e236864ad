//! Layout of a destination form and the panes of its test bench.

use super::{
    Model, document,
    form::{Form, Pane},
};
use crate::{document::Document, limits};

/// Minimum rows for both panes, one above the other.
const BOTH_ROWS: u16 = 14;
/// Rows and columns of the frame around a pane.
const BORDERS: u16 = 2;
const MARGINS: u16 = 4;

#[derive(Debug)]
pub(crate) struct BenchLayout {
    /// The columns of the form on the left; 0 if the bench replaces it.
    pub(crate) form_columns: u16,
    /// Top pane first.
    pub(crate) panes: Vec<PaneLayout>,
}

#[derive(Debug)]
pub(crate) struct PaneLayout {
    pub(crate) pane: Pane,
    pub(crate) document: Document,
    /// First shown line.
    pub(crate) top: usize,
    /// First row of the content, counted from the frame's top, and the number of rows.
    pub(crate) row: u16,
    pub(crate) rows: u16,
}

impl PaneLayout {
    fn new(model: &Model, form: &Form, pane: Pane, columns: u16) -> Self {
        Self {
            pane,
            document: document::bench_pane(model, form, pane, usize::from(columns)),
            top: 0,
            row: 1,
            rows: 0,
        }
    }

    fn wanted_rows(&self) -> u16 {
        u16::try_from(self.document.lines.len()).unwrap_or(u16::MAX)
    }

    fn max_scroll(&self) -> usize {
        self.document.lines.len().saturating_sub(self.rows.into())
    }

    pub(crate) fn lines_below(&self) -> usize {
        self.max_scroll().saturating_sub(self.top)
    }
}

impl Model {
    /// Returns the layout of the bench in a page of this size; `None` if only the form is shown.
    pub(crate) fn bench_layout(&self, (columns, rows): (u16, u16)) -> Option<BenchLayout> {
        let form = self.page.form().filter(|form| form.has_bench())?;
        let is_beside = columns >= limits::BENCH_COLUMNS;
        if !is_beside && !form.bench.is_open {
            return None;
        }
        let form_columns = if is_beside { columns / 2 } else { 0 };
        let inside = (columns - form_columns).saturating_sub(MARGINS);
        let pane = |pane| PaneLayout::new(self, form, pane, inside);
        let mut panes = if columns >= limits::BOTH_PANES_COLUMNS && rows >= BOTH_ROWS {
            let (mut above, mut below) = (pane(Pane::Response), pane(Pane::Request));
            // The panes share one border.
            let inner = rows - BORDERS - 1;
            let least = inner / 3;
            let most = match form.bench.pane {
                Pane::Response => inner - below.wanted_rows().min(least),
                Pane::Request => least.max(inner.saturating_sub(below.wanted_rows())),
            };
            above.rows = above.wanted_rows().clamp(1, most);
            below.row = above.row + above.rows + 1;
            below.rows = inner - above.rows;
            vec![above, below]
        } else {
            let mut only = pane(form.bench.pane);
            only.rows = rows.saturating_sub(BORDERS);
            vec![only]
        };
        for pane in &mut panes {
            pane.top = form.bench.scroll_top(pane.pane).min(pane.max_scroll());
        }
        Some(BenchLayout {
            form_columns,
            panes,
        })
    }

    /// Scrolls a pane of the bench by this many lines; returns `false` if the pane is not shown.
    pub(crate) fn scroll_bench(&mut self, pane: Pane, lines: isize) -> bool {
        let layout = self.bench_layout(self.page_size());
        let panes = layout.map(|it| it.panes).unwrap_or_default();
        let Some(shown) = panes.into_iter().find(|it| it.pane == pane) else {
            return false;
        };
        let top = shown
            .top
            .saturating_add_signed(lines)
            .min(shown.max_scroll());
        if let Some(form) = self.page.form_mut() {
            form.bench.set_scroll(pane, top);
        }
        true
    }

    pub(crate) fn bench_pane_at(&self, column: u16, row: u16) -> Option<Pane> {
        let layout = self.bench_layout(self.page_size())?;
        let row = row.checked_sub(self.head_height())?;
        let is_over = |pane: &&PaneLayout| (pane.row..pane.row + pane.rows).contains(&row);
        let panes = layout.panes.iter();
        let pane = panes
            .filter(|_| column >= layout.form_columns)
            .find(is_over);
        pane.map(|it| it.pane)
    }

    fn page_size(&self) -> (u16, u16) {
        let (columns, rows) = self.size;
        (columns, rows.saturating_sub(self.head_height() + 1))
    }
}
