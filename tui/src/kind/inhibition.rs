//! Inhibitions: while a cause is open, its effects are held.

use super::{
    Cell, Column, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    shared,
};
use crate::{
    data::Object,
    document::{Document, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    output: &[
        // The form shows the filters instead.
        "source",
        "target",
        "state",
        "createTime",
        "updateTime",
        "etag",
    ],
    columns: &[
        Column::new("State", 9, 0, 0, |_, it: &Object| state(it).into())
            .sort_by_key(|it| Key::Text(state(it).1.to_owned())),
        shared::NAME,
        Column::new("While open", 20, 2, 1, |_, it: &Object| {
            Cell::new(Token::Text, it.text("sourceFilter"))
        }),
        Column::new("Holds", 20, 2, 1, |_, it: &Object| {
            Cell::new(Token::Text, it.text("targetFilter"))
        }),
        Column::new("Equal", 12, 1, 2, |_, it: &Object| {
            Cell::new(Token::Dim, equal_field_names(it).join(", "))
        }),
    ],
    searched: |it| vec![it.text("sourceFilter"), it.text("targetFilter")],
    fields: &[
        NAME,
        FieldSpec::toggle("enabled", "Enabled").help("Hold notifications only while this is on."),
        FieldSpec::text("sourceFilter", "While open")
            .with_required()
            .help("Causes, such as name=host-down."),
        FieldSpec::text("targetFilter", "Holds")
            .with_required()
            .help("Effects, such as type=disk severity<critical."),
        FieldSpec::text("equal.0.source", "Equal field")
            .with_required()
            .help(
                "Field with the same value in both, such as host. A missing field never matches.",
            ),
        FieldSpec::text("equal.0.target", "Of effects")
            .help("Field name in the effects, if different, such as parent."),
        FieldSpec::length("linger", "Linger")
            .help("Time to keep holding after the cause closes. Empty: 1m."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No inhibitions yet.\n\n\
        An inhibition holds messages about effects while their cause is open, such as disks and \
        services while their host is down. ‹new› creates one.\n\n\
        For example: while open `name=host-down`, holds `name!=host-down`, equal field `host`.",
    ..edited!("Inhibition", "Inhibitions")
};

fn state(inhibition: &Object) -> (Token, &'static str) {
    match inhibition.text("state") {
        "ACTIVE" => (Token::Good, "active"),
        "PREPARING" => (Token::Warning, "preparing"),
        "DISABLED" => (Token::Dim, "disabled"),
        _ => (Token::Dim, "unknown"),
    }
}

fn equal_field_names(inhibition: &Object) -> Vec<String> {
    let all = inhibition.value_at("equal").and_then(|it| it.as_array());
    let pair = |pair: &serde_json::Value| {
        let text = |name: &str| pair[name].as_str().unwrap_or_default();
        match (text("source"), text("target")) {
            (source, target) if source == target || target.is_empty() => source.to_owned(),
            (source, target) => format!("{source} = {target}"),
        }
    };
    all.into_iter().flatten().map(pair).collect()
}

fn write_document(into: &mut Document, around: &dyn RenderContext, inhibition: &Object) {
    shared::write_head(into, inhibition);
    let (token, word) = state(inhibition);
    into.line(vec![label("state"), span(token, word)]);
    into.field("while open", Token::Text, inhibition.text("sourceFilter"));
    into.field("holds", Token::Text, inhibition.text("targetFilter"));
    into.field(
        "equal",
        Token::Text,
        &equal_field_names(inhibition).join(", "),
    );
    into.field("lingers", Token::Text, inhibition.text("linger"));
    shared::write_times(into, around, inhibition);
}
