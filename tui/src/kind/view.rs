//! Views: shared settings of the list of events.

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    shared,
};
use crate::{
    data::{Object, Role},
    document::{Document, Link},
    options::View,
    route::Route,
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    role: Role::Operator,
    columns: &[
        shared::NAME,
        Column::new("Filter", 24, 3, 0, |_, it: &Object| {
            Cell::new(Token::Text, it.text("filter"))
        }),
        Column::new("Counted by", 12, 1, 1, |_, it: &Object| {
            Cell::new(Token::Text, it.text("groupBy"))
        })
        .sort_by_key(|it| Key::Text(it.text("groupBy").to_owned())),
        Column::new("Sorted by", 11, 0, 2, |_, it: &Object| {
            Cell::new(Token::Dim, format_sort(it))
        }),
        Column::new("Closed", 6, 0, 3, |_, it: &Object| {
            let with = it.flag("includesClosed");
            Cell::new(Token::Dim, if with { "with" } else { "" })
        }),
    ],
    searched: |it| vec![it.text("filter"), it.text("groupBy")],
    fields: &[
        NAME,
        FieldSpec::text("filter", "Filter")
            .help("Events to show, such as host=db-* since=2h. Ages are relative to opening the view. Empty: all."),
        FieldSpec::new("sort", "Sorted by", FieldKind::Choice(View::SORTS))
            .help("Sort order. Left and Right choose."),
        FieldSpec::toggle("ascending", "Ascending")
            .help("Oldest or least severe first."),
        FieldSpec::toggle("includesClosed", "Closed too")
            .help("Also show closed events."),
        FieldSpec::text("groupBy", "Counted by")
            .help("Field to count events by, such as host. Empty: list the events."),
        FieldSpec::words("columns", "Columns")
            .help("Column titles, separated by commas, such as Seen, Severity, Summary. Empty: all."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No views yet.\n\nA view is a saved list of events: a filter, an order, columns, or \
        counts.\n\
        In Events (‹go_events›) ‹save_view› saves the list as it is, ‹choose_view› and \
        ‹next_view› switch to \
        another. For example: name `night`, filter `severity>=error acked=no since=8h`.",
    ..edited!("View", "Views")
};

fn format_sort(view: &Object) -> String {
    let arrow = if view.flag("ascending") { '↑' } else { '↓' };
    format!("{}{arrow}", view.text("sort"))
}

fn write_document(into: &mut Document, around: &dyn RenderContext, view: &Object) {
    shared::write_head(into, view);
    let filter = view.text("filter");
    let shown = if filter.is_empty() {
        "all events"
    } else {
        filter
    };
    let link = match view.text("groupBy") {
        "" => Link::List(Route::EVENTS, filter.to_owned()),
        field => Link::Go(Route::EventGroups {
            field: field.to_owned(),
            filter: filter.to_owned(),
        }),
    };
    into.link("filter", shown, link);
    if !view.text("groupBy").is_empty() {
        into.field("counted by", Token::Text, view.text("groupBy"));
    }
    into.field("sorted by", Token::Text, &format_sort(view));
    if view.flag("includesClosed") {
        into.field("closed", Token::Text, "also shown");
    }
    let columns: Vec<&str> = view.texts("columns").collect();
    if !columns.is_empty() {
        into.field("columns", Token::Text, &columns.join(", "));
    }
    shared::write_times(into, around, view);
}
