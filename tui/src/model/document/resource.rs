//! One trigger, destination or rule: its fields and where it leads, in both directions.

use serde_json::Value;

use super::{Document, Link, label, span};
use crate::{
    data::{DestinationType, HealthState, RuleSpec},
    model::{Model, filter, page::Route, store::Loaded},
    theme::Token,
};

/// Says that a resource is not there, or not read yet.
fn absent<T>(into: &mut Document, list: &Loaded<Vec<T>>, word: &str, name: &str) {
    if list.value.is_some() {
        into.text(
            Token::Warning,
            0,
            &format!("there is no {word} called {name} any more"),
        );
    } else {
        into.missing(list.waiting.is_some(), list.failure.as_ref());
    }
}

fn head(into: &mut Document, name: &str, description: &str, tags: &[String]) {
    into.field("name", Token::Title, name);
    if !description.is_empty() {
        into.field("description", Token::Text, description);
    }
    if !tags.is_empty() {
        into.field("tags", Token::Text, &tags.join(", "));
    }
}

fn times(into: &mut Document, model: &Model, create: Option<i64>, update: Option<i64>) {
    if let Some(create) = create {
        into.field("created", Token::Text, &model.moment_in_full(create));
    }
    if let Some(update) = update.filter(|update| Some(*update) != create) {
        into.field("changed", Token::Text, &model.moment_in_full(update));
    }
}

/// The rules that use something; what nothing uses is marked.
fn used_by(into: &mut Document, model: &Model, rules: &[String]) {
    into.heading("Used by");
    if rules.is_empty() {
        into.text(Token::Warning, 0, "no rule: it causes no notification");
    }
    for name in rules {
        let state = match model.store.rule(name) {
            Some(rule) if rule.spec.enabled => span(Token::Good, "  enabled"),
            Some(_) => span(Token::Warning, "  disabled"),
            None => span(Token::Dim, ""),
        };
        let line = vec![span(Token::Dim, "rule "), span(Token::Link, name), state];
        into.linked(line, Link::Go(Route::Rule(name.clone())));
    }
}

pub(super) fn trigger(into: &mut Document, model: &Model, name: &str) {
    let Some(trigger) = model.store.trigger(name) else {
        return absent(into, &model.store.triggers, "trigger", name);
    };
    let spec = &trigger.spec;
    head(into, &spec.name, &spec.description, &spec.tags);
    into.field(
        "notifications",
        Token::Text,
        &format!("{} in 24 h", trigger.recent_count),
    );
    times(into, model, trigger.create_ms, trigger.update_ms);
    into.heading("Query");
    let query = spec.clause().map_or_else(String::new, ToString::to_string);
    into.text(Token::Text, 0, &query);
    into.blank();
    let words = model.tell("‹test_trigger› tries it on the events of the last 24 h");
    into.text(Token::Dim, 0, &words);
    used_by(into, model, &trigger.rule_names);
}

pub(super) fn destination(into: &mut Document, model: &Model, name: &str) {
    let Some(destination) = model.store.destination(name) else {
        return absent(into, &model.store.destinations, "destination", name);
    };
    let spec = &destination.spec;
    head(into, &spec.name, &spec.description, &spec.tags);
    let health = &destination.health;
    let since = health.since_ms.map_or_else(String::new, |since| {
        format!(" since {}", model.moment(since))
    });
    into.line(vec![
        label("health"),
        span(health.state.into(), health.state.word()),
        span(Token::Text, &since),
    ]);
    if !health.last_error.is_empty() {
        into.field("last error", Token::Bad, &health.last_error);
    }
    if health.state != HealthState::Healthy || destination.recent_count == 0 {
        let words =
            "‹test_destination› sends a test message and shows request, response and verdict";
        into.text(Token::Dim, 0, &model.tell(words));
    }
    into.field(
        "notifications",
        Token::Text,
        &format!("{} in 24 h", destination.recent_count),
    );
    let link = Link::List(Route::Deliveries, filter::part("destination", name));
    into.link("deliveries", "to this destination", link);
    times(into, model, destination.create_ms, destination.update_ms);
    let word = spec.kind.as_ref().map_or("unknown", DestinationType::word);
    into.heading(&format!("Type {word}"));
    if let Some(Ok(Value::Object(kind))) = spec.kind.as_ref().map(serde_json::to_value) {
        for (key, value) in kind.values().filter_map(Value::as_object).flatten() {
            into.tree(0, key, value);
        }
    }
    if let Some(Ok(Value::Object(delivery))) = spec.delivery.as_ref().map(serde_json::to_value) {
        into.heading("Delivery");
        for (key, value) in &delivery {
            into.tree(0, key, value);
        }
    }
    used_by(into, model, &destination.rule_names);
}

pub(super) fn rule(into: &mut Document, model: &Model, name: &str) {
    let Some(rule) = model.store.rule(name) else {
        return absent(into, &model.store.rules, "rule", name);
    };
    let spec = &rule.spec;
    head(into, &spec.name, &spec.description, &spec.tags);
    let (token, word) = if spec.enabled {
        (Token::Good, "enabled")
    } else {
        (Token::Warning, "disabled")
    };
    into.line(vec![label("state"), span(token, word)]);
    into.field(
        "notifications",
        Token::Text,
        &format!("{} in 24 h", rule.recent_count),
    );
    if let Some(last) = rule.last_notification_ms {
        into.field("last one", Token::Text, &model.moment_in_full(last));
    }
    let link = Link::List(Route::Deliveries, filter::part("rule", name));
    into.link("deliveries", "of this rule", link);
    let interval = spec.repeat_interval.unwrap_or(3_600);
    let repeat = if spec.repeat {
        format!("after {interval} s")
    } else {
        "no".to_owned()
    };
    into.field("repeats", Token::Text, &repeat);
    into.field(
        "sends updates",
        Token::Text,
        if spec.send_updates { "yes" } else { "no" },
    );
    times(into, model, rule.create_ms, rule.update_ms);
    joined(into, model, spec);
}

/// What the rule joins, and with which message.
fn joined(into: &mut Document, model: &Model, spec: &RuleSpec) {
    into.heading("When any of these triggers matches");
    if spec.trigger_names.is_empty() {
        let told = model.tell("none: it never notifies; ‹edit› adds one");
        into.text(Token::Warning, 0, &told);
    }
    for name in &spec.trigger_names {
        let query = model
            .store
            .trigger(name)
            .and_then(|trigger| trigger.spec.clause());
        let query = query.map_or_else(String::new, |clause| format!("  {clause}"));
        let line = vec![span(Token::Link, name), span(Token::Dim, &query)];
        into.linked(line, Link::Go(Route::Trigger(name.clone())));
    }
    into.heading("All of these destinations are notified");
    if spec.destination_names.is_empty() {
        let told = model.tell("none: it notifies nobody; ‹edit› adds one");
        into.text(Token::Warning, 0, &told);
    }
    for name in &spec.destination_names {
        let mut line = vec![span(Token::Link, name)];
        if let Some(destination) = model.store.destination(name) {
            let word = destination
                .spec
                .kind
                .as_ref()
                .map_or("", DestinationType::word);
            let health = destination.health.state;
            line.push(span(Token::Dim, &format!("  {word}  ")));
            line.push(span(health.into(), health.word()));
        }
        into.linked(line, Link::Go(Route::Destination(name.clone())));
    }
    into.heading("Message");
    if spec.message.is_empty() {
        into.text(Token::Dim, 0, "the destination's default");
    } else {
        into.text(Token::Text, 0, &spec.message);
    }
}
