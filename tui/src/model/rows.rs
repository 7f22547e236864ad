//! The filtered and sorted rows of the list on the screen.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Model,
    filter::local::{Fields, LocalFilter},
    list::{List, Rows},
    sort::Sort,
    store::Store,
};
use crate::{
    data::{EventRow, Kind, Object, Screen},
    kind::{
        self, Cell, Column, ColumnHead, FieldKind, Key, LastHour, RenderContext, destination,
        response,
    },
    route::Route,
    theme::Token,
};

pub(crate) trait Table {
    fn len(&self) -> usize;
    fn id(&self, place: usize) -> &str;
    fn cells(&self, around: &dyn RenderContext, place: usize) -> Vec<Cell>;
    fn column_heads(&self) -> Vec<&'static ColumnHead>;
    /// Returns the sortable columns; the first is the service's order.
    fn sortable_columns(&self) -> Vec<&'static ColumnHead>;
    /// Returns the fields available in the filter of the list, in lower case.
    fn fields(&self) -> Vec<String>;
    fn matching_indices(&self, filter: &LocalFilter, sort: Option<Sort>) -> Vec<usize>;
}

struct LoadedRows<'a, R: 'static> {
    store: &'a Store,
    rows: &'a [R],
    columns: &'static [Column<R>],
    id: fn(&R) -> &str,
    /// Fields available in a filter in addition to the columns, and their values.
    named: Vec<String>,
    values: fn(&R, &str) -> Vec<String>,
    /// Texts searched in addition to the visible columns.
    searched: fn(&R) -> Vec<&str>,
    is_filtered: bool,
}

struct FilteredRow<'a, 'b, R: 'static> {
    row: &'a R,
    table: &'b LoadedRows<'a, R>,
}

impl<R> Fields for FilteredRow<'_, '_, R> {
    fn values(&self, field: &str) -> Vec<String> {
        let own = (self.table.values)(self.row, field);
        if !own.is_empty() {
            return own;
        }
        let mut columns = self.table.columns.iter();
        let column = columns.find(|column| column_field_name(column.head.title) == field);
        let cell = column.map(|column| (column.cell)(&NoContext(self.table.store), self.row).text);
        cell.into_iter().collect()
    }

    fn visible_values(&self) -> Vec<String> {
        let columns = self.table.columns.iter();
        let cells = columns.map(|column| {
            (column.cell)(&NoContext(self.table.store), self.row)
                .text
                .to_lowercase()
        });
        let own = (self.table.searched)(self.row).into_iter();
        cells.chain(own.map(str::to_lowercase)).collect()
    }
}

/// Returns the name of a column in a filter: its title in lower case, letters and digits only.
fn column_field_name(title: &str) -> String {
    let letters = title.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_lowercase()
}

/// A context for searching rows, in which times have no text.
struct NoContext<'a>(&'a Store);

impl RenderContext for NoContext<'_> {
    fn format_time(&self, _: i64) -> String {
        String::new()
    }

    fn format_full_time(&self, _: i64) -> String {
        String::new()
    }

    fn format_age(&self, _: i64) -> Option<String> {
        None
    }

    fn format_since(&self, _: i64) -> String {
        String::new()
    }

    fn host_field(&self) -> &'static str {
        "host"
    }

    fn last_hour(&self, _: &str) -> LastHour {
        LastHour::default()
    }

    fn dead_letter_count(&self, _: &str) -> Option<i64> {
        None
    }

    fn is_past(&self, _: i64) -> bool {
        false
    }

    fn expand_keys(&self, sentence: &str) -> String {
        sentence.to_owned()
    }

    fn responder(&self, _: &str) -> Option<Cell> {
        None
    }

    fn is_silenced(&self, _: &EventRow) -> bool {
        false
    }

    fn response_cells(&self, response: &Object) -> [Cell; 2] {
        let now = response::responder(response);
        [Cell::new(Token::Text, now), Cell::default()]
    }

    fn host_text(&self, object: &Object) -> String {
        self.0.host(object, self.host_field())
    }

    fn find_object(&self, _: Kind, _: &str) -> Option<&Object> {
        None
    }
}

impl<R> LoadedRows<'_, R> {
    fn key(&self, title: &str) -> Option<fn(&R) -> Key> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.head.title == title)?.key
    }
}

impl<R> Table for LoadedRows<'_, R> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn id(&self, place: usize) -> &str {
        (self.id)(&self.rows[place])
    }

    fn cells(&self, around: &dyn RenderContext, place: usize) -> Vec<Cell> {
        let row = self.rows.get(place);
        let columns = row.map(|row| self.columns.iter().map(|column| (column.cell)(around, row)));
        columns.into_iter().flatten().collect()
    }

    fn column_heads(&self) -> Vec<&'static ColumnHead> {
        self.columns.iter().map(|column| &column.head).collect()
    }

    fn sortable_columns(&self) -> Vec<&'static ColumnHead> {
        let columns = self.columns.iter().filter(|column| column.key.is_some());
        let mut heads: Vec<_> = columns.map(|column| &column.head).collect();
        // The service sorts groups by count.
        let first = |head: &&ColumnHead| matches!(head.title, "Name" | "Events");
        if let Some(at) = heads.iter().position(first) {
            heads[..=at].rotate_right(1);
        }
        heads
    }

    fn fields(&self) -> Vec<String> {
        let columns = self.columns.iter();
        let columns = columns.map(|column| column_field_name(column.head.title));
        let mut fields: Vec<String> = columns.chain(self.named.iter().cloned()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    fn matching_indices(&self, filter: &LocalFilter, sort: Option<Sort>) -> Vec<usize> {
        let shown = self.rows.iter().enumerate();
        let keeps = |row| self.is_filtered || filter.matches(&FilteredRow { row, table: self });
        let shown = shown.filter(|(_, row)| keeps(row));
        let key = sort.and_then(|sort| Some((sort, self.key(sort.column)?)));
        let Some((sort, key)) = key else {
            return shown.map(|(place, _)| place).collect();
        };
        // Ties keep the service's order in either direction.
        let mut shown: Vec<_> = shown.map(|(place, row)| (key(row), place)).collect();
        if sort.descending {
            shown.sort_by(|(one, _), (other, _)| other.cmp(one));
        } else {
            shown.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        shown.into_iter().map(|(_, place)| place).collect()
    }
}

fn searchable_texts(object: &Object) -> Vec<&str> {
    let own = (kind::spec(object.kind).searched)(object);
    let texts = [object.name(), object.text("description")].into_iter();
    texts.chain(object.texts("tags")).chain(own).collect()
}

/// Returns the fields of a kind that are not columns. Each field of its form can be named by its
/// full path or by the last segment.
fn form_field_names(kind: Kind) -> Vec<String> {
    let spec = kind::spec(kind);
    let form = spec
        .fields
        .iter()
        .filter(|field| !field.path.starts_with('#'));
    let paths = form.flat_map(|field| {
        let last = field.path.rsplit('.').next().unwrap_or_default();
        [field.path.to_lowercase(), last.to_lowercase()]
    });
    let own = ["tags", "description", "name"].map(str::to_owned);
    let more = match kind {
        Kind::Pending => Some("held".to_owned()),
        Kind::Response => Some("who".to_owned()),
        _ => None,
    };
    paths.chain(own).chain(more).collect()
}

fn values(object: &Object, field: &str) -> Vec<String> {
    let spec = kind::spec(object.kind);
    if field == "held" && object.kind == Kind::Pending {
        return kind::holder_names(object);
    }
    if field == "who" && object.kind == Kind::Response {
        return response::people(object);
    }
    if field == "health" && object.kind == Kind::Destination {
        return destination::health_names(object);
    }
    let mut paths = spec.fields.iter().map(|it| it.path).chain(["tags"]);
    let is_named = |path: &&str| {
        let path = path.to_lowercase();
        path == field || path.rsplit('.').next() == Some(field)
    };
    let is_column = spec
        .columns
        .iter()
        .any(|column| column_field_name(column.head.title) == field);
    let Some(path) = paths
        .find(is_named)
        .filter(|path| !is_column || *path == "tags")
    else {
        return Vec::new();
    };
    let is_flag = spec
        .fields
        .iter()
        .any(|it| it.path == path && it.kind == FieldKind::Toggle);
    match object.value_at(path) {
        _ if is_flag => vec![if object.flag(path) { "yes" } else { "no" }.to_owned()],
        None => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            })
            .collect(),
        Some(other) => vec![other.to_string()],
    }
}

struct Window<'a>(&'a Store);

impl Table for Window<'_> {
    fn len(&self) -> usize {
        self.0.events.len()
    }

    fn id(&self, place: usize) -> &str {
        Rows::id(&self.0.events, place)
    }

    fn cells(&self, around: &dyn RenderContext, place: usize) -> Vec<Cell> {
        let cells = |row: &EventRow| -> Vec<Cell> {
            let columns = kind::EVENTS.iter();
            columns.map(|column| (column.cell)(around, row)).collect()
        };
        self.0.events.get(place).map(cells).unwrap_or_default()
    }

    fn column_heads(&self) -> Vec<&'static ColumnHead> {
        kind::EVENTS.iter().map(|column| &column.head).collect()
    }

    fn sortable_columns(&self) -> Vec<&'static ColumnHead> {
        let columns = kind::EVENTS.iter().filter(|column| column.key.is_some());
        let mut heads: Vec<_> = columns.map(|column| &column.head).collect();
        // The default order, by the time last seen, comes first.
        heads.rotate_right(1);
        heads
    }

    fn fields(&self) -> Vec<String> {
        Vec::new()
    }

    fn matching_indices(&self, _filter: &LocalFilter, _sort: Option<Sort>) -> Vec<usize> {
        (0..self.len()).collect()
    }
}

impl Store {
    pub(crate) fn table_for_route(&self, route: &Route) -> Option<Box<dyn Table + '_>> {
        Some(match route {
            Route::Screen(Screen::Events) => Box::new(Window(self)),
            Route::List(kind) => Box::new(LoadedRows {
                store: self,
                rows: self.resources(*kind).rows(),
                columns: kind::spec(*kind).columns,
                id: Object::name,
                named: form_field_names(*kind),
                values,
                searched: searchable_texts,
                is_filtered: false,
            }),
            Route::EventGroups { .. } => Box::new(LoadedRows {
                store: self,
                rows: self.loaded_groups().map_or(&[], |grouped| &grouped.rows),
                columns: kind::GROUPS,
                id: |row| &row.value,
                named: Vec::new(),
                values: |_, _| Vec::new(),
                searched: |_| Vec::new(),
                is_filtered: false,
            }),
            Route::Screen(Screen::Deliveries) => Box::new(LoadedRows {
                store: self,
                rows: self.deliveries.rows(),
                columns: kind::DELIVERIES,
                id: |row| &row.id,
                named: Vec::new(),
                values: |_, _| Vec::new(),
                searched: |_| Vec::new(),
                is_filtered: true,
            }),
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub(crate) struct RowOrder {
    source: RowSource,
    places: Arc<[usize]>,
}

#[derive(Debug, PartialEq)]
struct RowSource {
    route: Route,
    revisions: Vec<u64>,
    filter: String,
    sort: Option<Sort>,
}

impl Model {
    pub(crate) fn delivery_count(&self, tab: usize) -> Option<i64> {
        let counts = self.store.delivery_counts.value.as_ref()?;
        let known = [
            counts.waiting_count,
            counts.dead_count,
            counts.delivered_count,
            counts.shadowed_count,
        ];
        let of = |count: Option<i32>| i64::from(count.unwrap_or_default());
        let others = [
            counts.resent_count,
            counts.cancelled_count,
            counts.folded_count,
        ];
        Some(match tab.checked_sub(1) {
            None => known.into_iter().chain(others).map(of).sum(),
            Some(at) => of(*known.get(at)?),
        })
    }

    pub(crate) fn rows(&self) -> Box<dyn Rows + '_> {
        self.rows_of_list(&self.page.list)
    }

    /// Returns the rows of this screen. `list` is passed separately because it was moved out of its
    /// page.
    pub(super) fn rows_of_list(&self, list: &List) -> Box<dyn Rows + '_> {
        if self.page.route == Route::EVENTS {
            return Box::new(EventRows(self));
        }
        let source = self.source(list);
        let Some(table) = self.store.table_for_route(&source.route) else {
            return Box::new(Vec::<&str>::new());
        };
        let places = match &self.arranged {
            Some(arranged) if arranged.source == source => Arc::clone(&arranged.places),
            _ => visible_indices(self, &source),
        };
        Box::new(ArrangedRows { table, places })
    }

    /// Recomputes the rows if their inputs changed. `list` is passed separately because it was
    /// moved out of its page.
    pub(super) fn arrange_rows(&mut self, list: &List) {
        let source = self.source(list);
        if self.page.route == Route::EVENTS
            || matches!(&self.arranged, Some(arranged) if arranged.source == source)
        {
            return;
        }
        let places = visible_indices(self, &source);
        self.arranged = Some(RowOrder { source, places });
    }

    fn source(&self, list: &List) -> RowSource {
        let typed = list.typing.as_ref();
        RowSource {
            route: self.page.route.clone(),
            revisions: self.store.revisions(&self.page.route),
            filter: typed.map_or_else(|| list.filter.clone(), |field| field.text().to_owned()),
            sort: self.list_sort(list.sort),
        }
    }
}

fn visible_indices(model: &Model, source: &RowSource) -> Arc<[usize]> {
    let table = model.store.table_for_route(&source.route);
    let places = table.map(|table| {
        let filter = LocalFilter::parse_partial(&source.filter, &table.fields(), &model.clock());
        table.matching_indices(&filter, source.sort)
    });
    places.unwrap_or_default().into()
}

struct ArrangedRows<'a> {
    table: Box<dyn Table + 'a>,
    places: Arc<[usize]>,
}

impl Rows for ArrangedRows<'_> {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn row_index(&self, index: usize) -> usize {
        self.places[index]
    }

    fn id(&self, index: usize) -> &str {
        self.table.id(self.places[index])
    }
}

/// Wraps the model, because the event window in it is borrowed.
struct EventRows<'a>(&'a Model);

impl Rows for EventRows<'_> {
    fn len(&self) -> usize {
        self.0.store.events.len()
    }

    fn id(&self, index: usize) -> &str {
        Rows::id(&self.0.store.events, index)
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.0.store.events.position(id)
    }
}
