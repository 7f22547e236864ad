//! Enrichment tables: metadata that events get at ingest.

use super::{
    Cell, Column, FieldSpec, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    shared,
};
use crate::{data::Object, document::Document, text, theme::Token};

/// Number of lines of a table on its page.
const LINES_SHOWN: usize = 200;

pub(super) const SPEC: KindSpec = KindSpec {
    columns: &[
        Column::new("State", 8, 0, 0, |_, it: &Object| state(it).into()),
        shared::NAME,
        Column::new("Matches", 16, 1, 1, |_, it: &Object| {
            let fields: Vec<_> = it.texts("matchFields").collect();
            Cell::new(Token::Text, fields.join(", "))
        }),
        Column::new("Columns", 24, 2, 2, |_, it: &Object| {
            Cell::new(
                Token::Text,
                it.text("csv").lines().next().unwrap_or_default(),
            )
        }),
        Column::new("Lines", 7, 0, 3, |_, it: &Object| {
            Cell::new(Token::Dim, line_count(it))
        })
        .right_align(),
    ],
    searched: |it| it.texts("matchFields").collect(),
    fields: &[
        NAME,
        FieldSpec::toggle("enabled", "Enabled").help("Set values only while this is on."),
        FieldSpec::words("matchFields", "Match fields")
            .with_required()
            .help("Columns that select a row, such as host. The other columns are set."),
        FieldSpec::lines("csv", "Table")
            .with_required()
            .help("CSV with the names of the columns in its first row, such as host,team,parent."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No enrichment tables yet.\n\nA table adds metadata to events at ingest, such as the \
        team, the runbook or the parent of a host, so that rules and inhibitions can use them. \
        ‹new› creates one.\n\n\
        For example: match fields `host`, and the table `host,team,parent` with the row \
        `db-1,databases,rack-7`.",
    ..edited!("EnrichmentTable", "EnrichmentTables")
};

fn state(table: &Object) -> (Token, &'static str) {
    if table.flag("enabled") {
        (Token::Good, "active")
    } else {
        (Token::Dim, "disabled")
    }
}

fn line_count(table: &Object) -> String {
    let count = table.text("csv").lines().count();
    text::group_digits(i64::try_from(count).unwrap_or(i64::MAX))
}

fn write_document(into: &mut Document, around: &dyn RenderContext, table: &Object) {
    shared::write_head(into, table);
    let (token, word) = state(table);
    into.field("state", token, word);
    let fields: Vec<_> = table.texts("matchFields").collect();
    into.field("matches", Token::Text, &fields.join(", "));
    shared::write_times(into, around, table);
    into.heading("The table");
    let mut lines = table.text("csv").lines();
    for line in lines.by_ref().take(LINES_SHOWN) {
        into.text(Token::Text, 0, line);
    }
    let more = lines.count();
    if more > 0 {
        into.text(Token::Dim, 0, &format!("{more} more lines"));
    }
}
