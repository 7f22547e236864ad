//! Triggers: named queries on events.

use super::{
    Cell, Column, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    shared,
};
use crate::{
    data::{Kind, Object},
    document::Document,
    theme::Token,
};

pub(crate) const CLAUSE: &str = "type.event.query.clause";

pub(super) const SPEC: KindSpec = KindSpec {
    columns: &[
        shared::NAME,
        Column::new("Query", 24, 3, 0, |_, it: &Object| Cell::new(Token::Dim, query_text(it))),
        Column::new("Rules", 12, 1, 2, |_, it: &Object| {
            shared::names_cell(it, "ruleNames", "no rule")
        })
        .sort_descending(|it| Key::Number(i64::try_from(it.texts("ruleNames").len()).unwrap_or(i64::MAX))),
        shared::recent_column(1),
    ],
    fields: &[
        NAME,
        FieldSpec::clause(CLAUSE, "Query").with_required()
            .help("Events that match, such as severity>=error host=db-*. ‹form_test› tests it on stored events."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No triggers yet.\n\n\
        A trigger selects the events that matter, such as `severity >= error`.\n\
        ‹new› creates one; ‹trigger_from_event› on an event creates one from it.\n\n\
        For example: name `databases`, query `severity>=error host=db-*`.",
    beside: &[Kind::Rule],
    ..edited!("Trigger", "Triggers")
};

pub(super) fn query_text(trigger: &Object) -> String {
    shared::condition_text(trigger, CLAUSE)
}

fn write_document(into: &mut Document, around: &dyn RenderContext, trigger: &Object) {
    shared::write_head(into, trigger);
    shared::write_notifications(into, trigger);
    shared::write_times(into, around, trigger);
    into.heading("Query");
    into.text(Token::Text, 0, &query_text(trigger));
    into.blank_line();
    let words = around.expand_keys("‹test_trigger› tests it on the events of the last 24 h");
    into.text(Token::Dim, 0, &words);
    shared::write_users(into, around, trigger);
}
