//! Recent filters of each screen, newest last.

use super::{Model, field::TextField, matching::Matching};
use crate::{limits, route::Route};

#[derive(Clone, Debug)]
pub(crate) struct HistoryPosition {
    steps: usize,
    typed: String,
}

impl Model {
    pub(crate) fn remember_filter(&mut self, route: &Route, filter: &str) {
        let filter = filter.trim();
        if filter.is_empty() {
            return;
        }
        let known = self.filters.entry(route.screen_name()).or_default();
        known.retain(|other| other != filter);
        known.push(filter.to_owned());
        if known.len() > limits::OLDER_FILTERS {
            known.remove(0);
        }
    }

    /// Recalls the next older or newer filter, and finally the text typed.
    pub(crate) fn recall_filter(&mut self, older: bool) {
        let known = self.filters.get(self.page.route.screen_name());
        let known = known.map(Vec::as_slice).unwrap_or_default();
        let list = &mut self.page.list;
        let Some(field) = &list.typing else { return };
        let recalled = list.recalled.take().unwrap_or_else(|| HistoryPosition {
            steps: 0,
            typed: field.text().to_owned(),
        });
        // Skips the active filter, which is already in the line.
        let others: Vec<&String> = known.iter().filter(|it| **it != recalled.typed).collect();
        let steps = if older {
            (recalled.steps + 1).min(others.len())
        } else {
            recalled.steps.saturating_sub(1)
        };
        let text = match steps {
            0 => recalled.typed.clone(),
            steps => others[others.len() - steps].clone(),
        };
        list.typing = Some(TextField::new(text));
        list.matching = Matching::after_typing(self.now_ms);
        list.recalled = Some(HistoryPosition { steps, ..recalled });
    }
}
