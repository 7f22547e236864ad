//! Escalation policies: the contacts to notify next if there is no response.

use super::{
    Cell, Column, FieldKind, FieldSpec, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    line_format::LineFormat,
    shared,
};
use crate::{
    data::{Kind, Object, when},
    document::{Document, Link},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    output: &["usedByRuleNames", "createTime", "updateTime", "etag"],
    columns: &[
        shared::NAME,
        Column::new("Steps", 40, 3, 1, |_, it: &Object| {
            Cell::new(Token::Text, step_lines(it).join("; "))
        }),
        Column::new("Rounds", 6, 0, 2, |_, it: &Object| {
            Cell::number(it.number("rounds").unwrap_or_default())
        })
        .right_align(),
        Column::new("Rules", 14, 1, 2, |_, it: &Object| {
            shared::names_cell(it, "usedByRuleNames", "no rule")
        }),
    ],
    searched: |it| it.texts("usedByRuleNames").collect(),
    fields: &[
        NAME,
        FieldSpec::new("steps", "Steps", FieldKind::LineFormat(LineFormat::Steps)).with_required()
            .help("One step per line: `schedule nights, contact cleo wait 5m`. A bare name is a destination."),
        FieldSpec::new("rounds", "Rounds", FieldKind::Number(1, 10))
            .help("Number of rounds through the steps. Empty: 1."),
        FieldSpec::length("ackTimeout", "Ack timeout")
            .help("Time after which an acknowledgement expires, such as 1h. Empty: never."),
        FieldSpec::text("fallbackDestinationName", "Fallback")
            .help("Destination notified after the last round."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No escalation policies yet.\n\nAn escalation policy defines who is notified first, and next if no one \
        acknowledges.\nA rule refers to it. ‹new› creates one.",
    ..edited!("EscalationPolicy", "EscalationPolicies")
};

fn step_lines(policy: &Object) -> Vec<String> {
    let lines = LineFormat::Steps.format(policy.value_at("steps"));
    lines.lines().map(str::to_owned).collect()
}

fn write_document(into: &mut Document, around: &dyn RenderContext, policy: &Object) {
    shared::write_head(into, policy);
    for (at, step) in (1..).zip(step_lines(policy)) {
        into.field(&format!("step {at}"), Token::Text, &step);
    }
    let rounds = policy.number("rounds").unwrap_or(1);
    into.field("rounds", Token::Text, &rounds.to_string());
    let timeout = policy.text("ackTimeout").strip_suffix('s');
    if let Some(seconds) = timeout.and_then(|it| it.parse::<i64>().ok()) {
        let length = when::format_duration(seconds.saturating_mul(1_000));
        into.field("ack counts", Token::Text, &length);
    }
    let fallback = policy.text("fallbackDestinationName");
    if !fallback.is_empty() {
        let go = Link::object(Kind::Destination, fallback);
        into.link("fallback", fallback, go);
    }
    for rule in policy.texts("usedByRuleNames") {
        let go = Link::object(Kind::Rule, rule);
        into.link("rule", rule, go);
    }
    shared::write_times(into, around, policy);
}
