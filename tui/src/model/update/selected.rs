//! The targets of actions: the selected, marked or shown resource, occurrence or rows.

use bellwether_proto::v1;

use crate::{
    data::{Named, occurrence},
    limits,
    model::{
        Model,
        page::{Content, Page},
    },
    route::Route,
};

impl Model {
    pub(crate) fn resource_name(&self) -> Option<String> {
        match &self.page.route {
            Route::Object(_, name) => Some(name.clone()),
            route if route.is_list() => self.selected(),
            _ => None,
        }
    }

    pub(crate) fn occurrence(&self) -> Option<String> {
        match (&self.page.route, &self.page.content) {
            (Route::Events, _) => self.selected(),
            (Route::Event(id), _) if id.contains(':') => Some(id.clone()),
            (Route::Event(_), Content::Event { detail, .. }) => {
                let event = detail.value.as_ref()?;
                occurrence(event).map(|it| it.id.clone())
            }
            _ => None,
        }
    }

    pub(crate) fn shown_occurrence(&self) -> Option<&v1::Occurrence> {
        match &self.page.content {
            Content::Event { detail, .. } => occurrence(detail.value.as_ref()?),
            _ => None,
        }
    }

    /// Returns the marked rows, else the selected or shown occurrence or row.
    pub(crate) fn targets(&self) -> Vec<String> {
        let marks = &self.page.list.marks;
        if !marks.is_empty() {
            return marks.iter().take(limits::BULK_ITEMS).cloned().collect();
        }
        let one = match self.page.route {
            Route::Events | Route::Event(_) => self.occurrence(),
            _ => self.selected(),
        };
        one.into_iter().collect()
    }

    pub(crate) fn describe_some(&self, ids: &[String]) -> Vec<String> {
        let first = ids.iter().take(5).map(|id| self.describe(id));
        let more = ids.len().saturating_sub(5);
        let rest = (more > 0).then(|| format!("and {more} more"));
        first.chain(rest).collect()
    }

    fn describe(&self, id: &str) -> String {
        if let Some(row) = self.store.events.find(id) {
            return format!("{}  {}  {}", row.severity.label(), row.summary, row.entity);
        }
        match &self.page {
            Page {
                content: Content::Event { detail, .. },
                ..
            } => detail.value.as_ref().map_or_else(
                || id.to_owned(),
                |event| {
                    let message =
                        |it: &v1::Occurrence| format!("{}  {}", it.severity().label(), it.summary);
                    occurrence(event).map_or_else(|| id.to_owned(), message)
                },
            ),
            _ => id.to_owned(),
        }
    }
}
