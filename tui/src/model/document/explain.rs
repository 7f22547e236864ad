//! Explanation of why rules did or did not notify about an event: the decision, its outcome, and
//! the decision as of now.

use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{
        ClauseExplanation, DecisionBasis as JudgementBasis, DecisionReason, Definition,
        ExplainEventResponse, ExplainedAttempt, ExplainedDelivery, ExplainedNotification, Gate,
        NotificationOutcome as Fate, RuleExplanation, RuleJudgement, TriggerExplanation,
    },
};
use serde_json::Value;

use crate::{
    data::{Kind, Label, Outcome, outcome_mark, value_to_json},
    document::{Document, Link, Span, span},
    model::Model,
    text,
    theme::Token,
};

pub(super) fn write(
    into: &mut Document,
    model: &Model,
    explanation: &ExplainEventResponse,
    is_unfolded: bool,
) {
    if explanation.rules.is_empty() {
        let message = "No one was notified: no rules exist. ‹go_rules› ‹new› creates one.";
        into.text(Token::Warning, 0, &model.expand_keys(message));
        return;
    }
    let (matched, missed): (Vec<_>, Vec<_>) =
        explanation.rules.iter().partition(|rule| is_matching(rule));
    write_summary(into, model, &matched);
    for rule in &matched {
        draw_diagram(into, model, rule);
    }
    if !matched.is_empty() {
        into.heading("Why");
    }
    for (index, rule) in matched.iter().enumerate() {
        if index > 0 {
            into.blank_line();
        }
        explain_rule(into, model, rule);
    }
    if missed.is_empty() {
        return;
    }
    let count = missed.len();
    let title = match (count, is_unfolded) {
        (1, false) => "1 rule did not match; ‹unfold› shows its conditions".to_owned(),
        (_, false) => format!("{count} rules did not match; ‹unfold› shows their conditions"),
        (_, true) => "Did not match; ‹unfold› collapses them".to_owned(),
    };
    into.heading(&model.expand_keys(&title));
    for (index, rule) in missed.iter().enumerate() {
        if is_unfolded {
            if index > 0 {
                into.blank_line();
            }
            explain_rule(into, model, rule);
        } else {
            write_folded(into, rule);
        }
    }
}

/// Draws the path of the event through each matching rule; if no rule matches, the reason.
pub(super) fn draw_diagrams(
    into: &mut Document,
    model: &Model,
    explanation: &ExplainEventResponse,
) {
    let matched: Vec<_> = explanation
        .rules
        .iter()
        .filter(|it| is_matching(it))
        .collect();
    into.heading("Notifications");
    if matched.is_empty() {
        let words = "No one was notified: no rule's trigger matches.";
        into.text(Token::Dim, 0, words);
    }
    for rule in matched {
        draw_diagram(into, model, rule);
    }
}

fn is_matching(rule: &RuleExplanation) -> bool {
    let any = |triggers: &[TriggerExplanation]| triggers.iter().any(|it| it.matched == Some(true));
    rule.notified == Some(true)
        || !rule.deliveries.is_empty()
        || !rule.holds.is_empty()
        || any(&rule.triggers)
        || rule.others.iter().any(|other| any(&other.triggers))
}

fn fate_mark(fate: Fate) -> (Token, &'static str) {
    let token = match fate {
        Fate::Sent => Token::Good,
        Fate::NotSent => Token::Bad,
        Fate::Recorded => Token::Dim,
        Fate::Waiting | Fate::Unknown | Fate::Unspecified => Token::Warning,
    };
    (token, outcome_mark(fate))
}

fn rule_fate(rule: &RuleExplanation) -> Fate {
    let reason = rule.reason_detail.as_ref();
    reason.map_or(Fate::Unknown, DecisionReason::outcome)
}

fn write_summary(into: &mut Document, model: &Model, matched: &[&RuleExplanation]) {
    let deliveries = || matched.iter().flat_map(|rule| &rule.deliveries);
    let named = |fate: Fate| -> Vec<&str> {
        let of_fate = deliveries().filter(|it| it.outcome() == fate);
        let mut names: Vec<_> = of_fate.map(|it| &*it.destination_name).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let message = named(Fate::Sent);
    if !message.is_empty() {
        let first = deliveries().filter(|it| it.outcome() == Fate::Sent);
        let first = first.filter_map(ended_at_ms).min();
        let at = first.map_or_else(String::new, |ms| {
            format!(", first at {}", model.format_time(ms))
        });
        let words = format!("✓ Delivered to {}{at}.", message.join(", "));
        into.text(Token::Good, 0, &words);
    }
    for name in named(Fate::Waiting) {
        let mut own = deliveries().filter(|it| it.destination_name == name);
        let Some(one) = own.find(|it| it.outcome() == Fate::Waiting) else {
            continue;
        };
        into.text(
            Token::Warning,
            0,
            &format!("◐ {}.", describe_waiting(model, one)),
        );
    }
    let dead = named(Fate::NotSent);
    if !dead.is_empty() {
        let words = format!("✗ Will not be delivered: {}.", dead.join(", "));
        into.text(Token::Bad, 0, &words);
    }
    let recorded = named(Fate::Recorded);
    if !recorded.is_empty() {
        let words = format!("○ Only recorded (dry run): {}.", recorded.join(", "));
        into.text(Token::Dim, 0, &words);
    }
    let held = matched.iter().filter(|rule| !rule.holds.is_empty());
    for rule in held {
        let words = format!("◐ {}  {}", rule.rule_name, rule.reason);
        into.text(Token::Warning, 0, &words);
    }
    if deliveries().next().is_none() {
        let words = match matched {
            [] => "No one was notified: no rule's trigger matches.".to_owned(),
            [rule] if !rule.holds.is_empty() => "No one has been notified yet.".to_owned(),
            [rule] => format!("No one was notified. {}.", rule.reason),
            rules => format!(
                "No one was notified; {} rules match, see below.",
                rules.len()
            ),
        };
        into.text(Token::Warning, 0, &words);
    }
}

/// Returns the name of the destination, or of the contact and its destination.
pub(super) fn receiver(contact: &str, destination: &str) -> String {
    match contact {
        "" => destination.to_owned(),
        contact => format!("{contact} by {destination}"),
    }
}

fn ended_at_ms(delivery: &ExplainedDelivery) -> Option<i64> {
    let digest = delivery.digest.as_ref();
    digest.map_or(delivery.end_time, |it| it.end_time)
}

fn next_attempt(delivery: &ExplainedDelivery) -> Option<i64> {
    let digest = delivery.digest.as_ref();
    digest.map_or(delivery.next_attempt_time, |it| it.next_attempt_time)
}

fn format_next_attempt(model: &Model, delivery: &ExplainedDelivery) -> String {
    let next = match next_attempt(delivery) {
        Some(ms) if ms > model.now_ms => Some(format!("next attempt {}", model.format_time(ms))),
        Some(_) => Some("next attempt as soon as possible".to_owned()),
        None if delivery.wait_reason.is_empty() => Some("an attempt is in progress".to_owned()),
        None => None,
    };
    let reason = Some(delivery.wait_reason.clone()).filter(|it| !it.is_empty());
    let parts: Vec<_> = reason.into_iter().chain(next).collect();
    parts.join(", ")
}

/// Describes a waiting delivery: `hook: decided 21:50, not delivered yet: returned 401, next
/// attempt 21:58`.
fn describe_waiting(model: &Model, delivery: &ExplainedDelivery) -> String {
    let decided = model.format_time(delivery.create_time);
    let name = receiver(&delivery.contact_name, &delivery.destination_name);
    // The reason for the wait may already contain the error.
    let why = match &delivery.last_error[..] {
        error if error.is_empty() || delivery.wait_reason.contains(error) => String::new(),
        error => format!(": {error}"),
    };
    let next = format_next_attempt(model, delivery);
    let digest = delivery.digest.as_ref();
    let with = digest.map_or_else(String::new, |it| {
        format!(", in a digest of {} messages", it.message_count)
    });
    format!("{name}: decided {decided}, not delivered yet{with}{why}, {next}")
}

fn draw_diagram(into: &mut Document, model: &Model, rule: &RuleExplanation) {
    into.blank_line();
    let trigger = rule.triggers.iter().find(|it| it.matched == Some(true));
    let (token, mark) = fate_mark(rule_fate(rule));
    let mut head = vec![span(Token::Text, "  event ")];
    if let Some(trigger) = trigger {
        head.push(span(Token::Good, "──▶ "));
        head.push(span(Token::Good, "✓ "));
        head.push(span(Token::Dim, "trigger "));
        head.push(span(Token::Link, &trigger.trigger_name));
        head.push(span(Token::Text, " "));
    }
    head.push(span(token, "──▶ "));
    head.push(span(token, &format!("{mark} ")));
    head.push(span(Token::Dim, "rule "));
    head.push(span(Token::Link, &rule.rule_name));
    let go = Link::object(Kind::Rule, &rule.rule_name);
    if rule.deliveries.is_empty() {
        head.push(span(token, &format!("  {}", describe_fate(model, rule))));
        return into.linked_line(head, go);
    }
    let before: usize = head.iter().map(|it| text::cell_width(&it.text)).sum();
    let wide = rule
        .deliveries
        .iter()
        .map(|it| text::cell_width(&it.destination_name) + 40)
        .max();
    let fits = before + wide.unwrap_or(0) <= into.columns;
    let pad = if fits { before } else { 6 };
    let mut head = Some(head);
    if !fits && let Some(head) = head.take() {
        into.linked_line(head, go);
    }
    let last = rule.deliveries.len() - 1;
    for (index, delivery) in rule.deliveries.iter().enumerate() {
        let fate = delivery.outcome();
        let (token, mark) = fate_mark(fate);
        let mut line = head
            .take()
            .unwrap_or_else(|| vec![span(Token::Text, &" ".repeat(pad))]);
        let arm = match (index, last) {
            (0, 0) if fits => " ──▶ ",
            (0, _) if fits => " ─┬▶ ",
            (at, last) if at == last => "  └▶ ",
            _ => "  ├▶ ",
        };
        line.push(span(token, arm));
        line.push(span(token, &format!("{mark} ")));
        line.push(span(
            Token::Link,
            &receiver(&delivery.contact_name, &delivery.destination_name),
        ));
        let at = |ms: Option<i64>| {
            ms.map_or_else(String::new, |ms| format!(" {}", model.format_time(ms)))
        };
        let words = match fate {
            Fate::Sent if delivery.digest.is_some() => {
                format!("  delivered in a digest{}", at(ended_at_ms(delivery)))
            }
            Fate::Sent => format!("  delivered{}", at(ended_at_ms(delivery))),
            Fate::Recorded => "  only recorded".to_owned(),
            Fate::NotSent | Fate::Unknown | Fate::Unspecified => format!(
                "  {}{}",
                delivery.state.to_lowercase(),
                at(delivery.end_time)
            ),
            Fate::Waiting => format!("  waiting, {}", format_next_attempt(model, delivery)),
        };
        line.push(span(token, &words));
        into.linked_line(line, Link::delivery(&delivery.id));
    }
}

fn describe_fate(model: &Model, rule: &RuleExplanation) -> String {
    let until = rule.reason_detail.as_ref().and_then(|it| it.until);
    let until = until.filter(|ms| *ms > model.now_ms);
    let is_due = rule
        .reason_detail
        .as_ref()
        .is_some_and(|it| it.due || it.until.is_some());
    match (rule_fate(rule), until) {
        (Fate::Waiting, Some(ms)) => format!("waits until {}", model.format_time(ms)),
        (Fate::Waiting, None) if is_due => "due now".to_owned(),
        (Fate::Waiting, None) => "waits".to_owned(),
        (Fate::Recorded, _) => "only recorded".to_owned(),
        (Fate::Sent, _) => "its deliveries are no longer stored".to_owned(),
        (Fate::NotSent, _) => "nothing is sent".to_owned(),
        (Fate::Unknown | Fate::Unspecified, _) => "unknown".to_owned(),
    }
}

fn write_folded(into: &mut Document, rule: &RuleExplanation) {
    let (_, mark) = fate_mark(rule_fate(rule));
    let mut line = vec![
        span(Token::Dim, &format!("{mark} ")),
        span(Token::Link, &rule.rule_name),
    ];
    let failed = rule
        .triggers
        .iter()
        .find_map(|it| Some((it, first_false(it.clause.as_ref()?)?)));
    let why = match failed {
        Some((trigger, clause)) => {
            format!("  {}: {}", trigger.trigger_name, format_comparison(clause))
        }
        None => format!("  {}", rule.reason),
    };
    line.push(span(Token::Dim, &why));
    if rule.deleted == Some(true) {
        return into.line(line);
    }
    into.linked_line(line, Link::object(Kind::Rule, &rule.rule_name));
}

fn first_false(clause: &ClauseExplanation) -> Option<&ClauseExplanation> {
    if clause.result == Some(true) || clause.unknown {
        return None;
    }
    if clause.clauses.is_empty() {
        return Some(clause).filter(|it| !it.field.is_empty());
    }
    clause.clauses.iter().find_map(first_false)
}

fn verdict_mark(good: Option<bool>) -> (Token, &'static str) {
    match good {
        Some(true) => (Token::Good, "✓"),
        Some(false) => (Token::Bad, "✗"),
        None => (Token::Warning, "?"),
    }
}

fn explain_rule(into: &mut Document, model: &Model, rule: &RuleExplanation) {
    let main = RuleJudgement {
        basis: rule.basis,
        time: rule.decision_time.unwrap_or_default(),
        notifies: rule.notified,
        reason: rule.reason.clone(),
        definition: rule.definition,
        triggers: rule.triggers.clone(),
        gates: rule.gates.clone(),
        reason_detail: rule.reason_detail.clone(),
    };
    let fate = rule_fate(rule);
    let (token, mark) = fate_mark(fate);
    let message = match fate {
        Fate::NotSent if rule.notified != Some(true) => "did not notify",
        Fate::Waiting if rule.deliveries.is_empty() => "held",
        Fate::Recorded => "recorded only, no one notified",
        Fate::Unknown | Fate::Unspecified => "unknown whether it notified",
        _ => "decided to notify",
    };
    let mut line = vec![
        span(token, &format!("{mark} ")),
        span(Token::Link, &rule.rule_name),
        span(
            Token::Text,
            &format!("  {message}{}", describe_decision(model, &main)),
        ),
    ];
    if rule.deleted == Some(true) {
        let at = rule
            .deleted_time
            .map(|ms| format!(" {}", model.format_time(ms)));
        let gone = format!("  rule deleted{}", at.unwrap_or_default());
        line.push(span(Token::Warning, &gone));
        into.line(line);
    } else {
        into.linked_line(line, Link::object(Kind::Rule, &rule.rule_name));
    }
    into.text(Token::Text, 2, &main.reason);
    write_judgement(into, model, &main);
    for sent in &rule.notifications {
        write_notification(into, model, rule, sent);
    }
    let listed = |id: &String| {
        rule.notifications
            .iter()
            .any(|it| it.delivery_ids.contains(id))
    };
    for delivery in rule.deliveries.iter().filter(|it| !listed(&it.id)) {
        write_delivery(into, model, delivery);
    }
    for other in rule.others.iter().filter(|it| it.reason != main.reason) {
        write_other_judgement(into, model, &main, other);
    }
}

fn describe_decision(model: &Model, judgement: &RuleJudgement) -> String {
    let at = model.format_time(judgement.time);
    match judgement.basis() {
        JudgementBasis::Notification => format!(" {at}"),
        JudgementBasis::Last => format!(" when last evaluated, {at}"),
        JudgementBasis::Earlier => format!(" when evaluated {at}"),
        JudgementBasis::Now | JudgementBasis::Unspecified => " (if evaluated now)".to_owned(),
    }
}

fn write_judgement(into: &mut Document, model: &Model, judgement: &RuleJudgement) {
    let since = describe_change(model, judgement.definition.as_ref());
    if !since.is_empty() {
        into.text(Token::Warning, 2, &format!("evaluated with{since}"));
    }
    for trigger in &judgement.triggers {
        explain_trigger(into, model, trigger);
    }
    let (passed, failed): (Vec<_>, Vec<_>) = judgement
        .gates
        .iter()
        .partition(|gate| gate.passed == Some(true));
    let fate = judgement
        .reason_detail
        .as_ref()
        .map(DecisionReason::outcome);
    for condition in failed {
        explain_condition(into, condition, fate == Some(Fate::Waiting));
    }
    if !passed.is_empty() {
        let names: Vec<_> = passed.iter().map(|gate| &gate.name[..]).collect();
        into.line(vec![
            span(Token::Good, "  ✓ "),
            span(Token::Dim, "passed  "),
            span(Token::Text, &names.join(", ")),
        ]);
    }
}

fn describe_change(model: &Model, definition: Option<&Definition>) -> String {
    let Some((definition, until)) = definition.and_then(|it| Some((it, it.until?))) else {
        return String::new();
    };
    let what = if definition.deleted {
        "deleted"
    } else {
        "edited"
    };
    let at = model.format_time(until);
    format!(" revision {}, {what} {at}", definition.revision)
}

fn explain_trigger(into: &mut Document, model: &Model, trigger: &TriggerExplanation) {
    let matched = (!trigger.unknown).then(|| trigger.matched == Some(true));
    let (token, mark) = verdict_mark(matched);
    let message = match (matched, &trigger.clause) {
        (Some(true), _) => "matches",
        (Some(false), Some(_)) => "does not match",
        (Some(false), None) => "did not exist",
        (None, _) => "unknown",
    };
    let gone = trigger
        .definition
        .as_ref()
        .is_some_and(|it| it.deleted && it.until.is_some());
    let line = vec![
        span(token, &format!("  {mark} ")),
        span(Token::Dim, "trigger "),
        span(Token::Link, &trigger.trigger_name),
        span(Token::Text, &format!("  {message}")),
        span(
            Token::Warning,
            &describe_change(model, trigger.definition.as_ref()),
        ),
    ];
    if gone {
        into.line(line);
    } else {
        into.linked_line(line, Link::object(Kind::Trigger, &trigger.trigger_name));
    }
    if let Some(clause) = &trigger.clause {
        explain_clause(into, clause, 6);
    }
}

/// Writes a condition that was not met. If the notification waits, the condition can still be met.
fn explain_condition(into: &mut Document, condition: &Gate, is_waiting: bool) {
    let (token, mark) = if is_waiting {
        fate_mark(Fate::Waiting)
    } else {
        verdict_mark(Some(false))
    };
    into.line(vec![
        span(token, &format!("  {mark} ")),
        span(Token::Dim, "condition "),
        span(
            Token::Text,
            &format!("{}: {}", condition.name, condition.detail),
        ),
    ]);
}

fn write_notification(
    into: &mut Document,
    model: &Model,
    rule: &RuleExplanation,
    sent: &ExplainedNotification,
) {
    let what = if sent.clear == Some(true) {
        "decided an update"
    } else {
        "decided"
    };
    let mut line = vec![
        span(Token::Info, "  → "),
        span(
            Token::Text,
            &format!("{what} {}", model.format_time(sent.time)),
        ),
    ];
    if !sent.trigger_name.is_empty() {
        let by = format!("  by trigger {}", sent.trigger_name);
        line.push(span(Token::Dim, &by));
    }
    into.line(line);
    if sent.delivery_ids.is_empty() {
        into.text(Token::Dim, 4, "its deliveries are no longer stored");
    }
    let ours = |it: &&ExplainedDelivery| sent.delivery_ids.contains(&it.id);
    for delivery in rule.deliveries.iter().filter(ours) {
        write_delivery(into, model, delivery);
    }
}

fn write_delivery(into: &mut Document, model: &Model, delivery: &ExplainedDelivery) {
    let (token, mark) = fate_mark(delivery.outcome());
    let waits = delivery.outcome() == Fate::Waiting;
    let next = waits.then(|| format!(", {}", format_next_attempt(model, delivery)));
    into.linked_line(
        vec![
            span(token, &format!("    {mark} ")),
            span(Token::Dim, "delivery to "),
            span(
                Token::Link,
                &receiver(&delivery.contact_name, &delivery.destination_name),
            ),
            span(Token::Text, &format!("  {}", delivery.state.to_lowercase())),
            span(Token::Dim, &next.unwrap_or_default()),
        ],
        Link::delivery(&delivery.id),
    );
    for attempt in &delivery.attempts {
        let (at, message) = (model.format_time(attempt.start_time), outcome(attempt));
        into.text(Token::Dim, 6, &format!("{at} {message}"));
    }
}

fn outcome(attempt: &ExplainedAttempt) -> String {
    let word = match attempt.outcome() {
        Outcome::Unreachable => "not reached",
        Outcome::Unknown => "outcome unknown",
        other => other.label(),
    };
    match attempt.explanation.as_str() {
        "" => word.to_owned(),
        explanation => format!("{word}: {explanation}"),
    }
}

fn write_other_judgement(
    into: &mut Document,
    model: &Model,
    main: &RuleJudgement,
    other: &RuleJudgement,
) {
    let fate = other.reason_detail.as_ref();
    let (token, mark) = fate_mark(fate.map_or(Fate::Unknown, DecisionReason::outcome));
    let title = match other.basis() {
        JudgementBasis::Now => "now: ".to_owned(),
        _ => format!("last evaluated {}: ", model.format_time(other.time)),
    };
    let head: Vec<Span> = vec![
        span(token, &format!("  {mark} ")),
        span(Token::Heading, &title),
    ];
    into.line(head);
    into.text(Token::Text, 6, &other.reason);
    for trigger in &other.triggers {
        let same = main.triggers.iter().any(|it| {
            it.trigger_name == trigger.trigger_name
                && it.clause == trigger.clause
                && it.matched == trigger.matched
        });
        if !same {
            explain_trigger(into, model, trigger);
        }
    }
}

fn comparison_text(kind: &str) -> &str {
    match kind {
        "equals" => "=",
        "greaterAndEquals" => ">=",
        "lessAndEquals" => "<=",
        "startsWith" => "starts with",
        "endsWith" => "ends with",
        other => other,
    }
}

/// Returns a compared value, with the word of a severity or status instead of its wire name.
fn display_value(compared: &prost_types::Value) -> Value {
    let value = value_to_json(compared);
    let name = value.as_str().unwrap_or_default();
    let severity = Severity::from_str_name(name).map(Label::label);
    let status = || Status::from_str_name(name).map(Label::label);
    severity.or_else(status).map_or(value, Value::from)
}

fn format_comparison(clause: &ClauseExplanation) -> String {
    let expected = clause.expected.as_ref().map_or(Value::Null, display_value);
    let compared = || {
        format!(
            "{} {} {}",
            clause.field,
            comparison_text(&clause.r#type),
            expected
        )
    };
    match clause.actual.as_ref().map(display_value) {
        _ if clause.field.is_empty() => clause.r#type.clone(),
        _ if clause.unknown => format!("{}; the value is unknown", compared()),
        Some(actual) => format!("{}; it is {actual}", compared()),
        None => format!("{}; it has no value", compared()),
    }
}

fn explain_clause(into: &mut Document, clause: &ClauseExplanation, indent: usize) {
    let result = (!clause.unknown).then(|| clause.result == Some(true));
    let (token, mark) = verdict_mark(result);
    let pad = " ".repeat(indent.min(40));
    into.line(vec![
        span(token, &format!("{pad}{mark} ")),
        span(Token::Text, &format_comparison(clause)),
    ]);
    for inner in &clause.clauses {
        explain_clause(into, inner, indent + 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_and_statuses_are_shown_by_name() {
        for (name, word) in [
            ("SEVERITY_ERROR", "error"),
            ("STATUS_CLOSED", "closed"),
            ("error", "error"),
            ("SEVERITY_LOW", "SEVERITY_LOW"),
        ] {
            let kind = Some(prost_types::value::Kind::StringValue(name.to_owned()));
            assert_eq!(display_value(&prost_types::Value { kind }), word, "{name}");
        }
    }
}
