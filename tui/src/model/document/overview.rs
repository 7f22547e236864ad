//! The overview: what is red, what is under way, and on a new service what to do first.

use super::{Document, Link, Span, duration, label, span};
use crate::{
    data::{DestinationTraffic, HealthState, Overview},
    keymap::Action,
    model::{Model, filter, page::Route, steps::Step},
    theme::Token,
};

pub(super) fn write(into: &mut Document, model: &Model) {
    let Some(overview) = &model.store.overview.value else {
        let waiting = model.store.overview.waiting.is_some() || !model.is_up();
        into.missing(waiting, model.store.overview.failure.as_ref());
        return;
    };
    first_steps(into, model);
    open(into, overview);
    rate(into, overview);
    deliveries(into, model, overview);
    service(into, model, overview);
}

fn first_steps(into: &mut Document, model: &Model) {
    let Some(steps) = model.first_steps() else {
        return;
    };
    into.heading("First steps");
    let next = steps.iter().position(|(_, done)| !done);
    for (index, (step, done)) in steps.into_iter().enumerate() {
        let words = model.tell(step.words());
        if done {
            into.line(vec![span(Token::Good, "✓ "), span(Token::Dim, &words)]);
            continue;
        }
        let link = match step {
            Step::Destination => Link::Act(Route::Destinations, Action::New),
            Step::Event => Link::Go(Route::Events),
            Step::Trigger if steps[1].1 => Link::Go(Route::Events),
            Step::Trigger => Link::Act(Route::Triggers, Action::New),
            Step::Rule => Link::Act(Route::Rules, Action::New),
            Step::Enable => Link::Go(Route::Rules),
        };
        let mark = if next == Some(index) {
            span(Token::Key, "→ ")
        } else {
            span(Token::Text, "· ")
        };
        into.linked(vec![mark, span(Token::Link, &words)], link);
    }
}

fn open(into: &mut Document, overview: &Overview) {
    into.heading("Open events");
    let most = overview
        .open_by_severity
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    let room = into.columns.saturating_sub(30).clamp(4, 60);
    for (severity, count) in &overview.open_by_severity {
        let token = if *count == 0 {
            Token::Dim
        } else {
            Token::from(*severity)
        };
        let filled = usize::try_from(*count).unwrap_or(0) * room;
        let cells = filled.div_ceil(usize::try_from(most).unwrap_or(1));
        let line = vec![
            span(
                token,
                &format!("{:<LABEL$} ", severity.word(), LABEL = super::LABEL),
            ),
            span(token, &format!("{count:>7}  ")),
            span(token, &"█".repeat(cells)),
        ];
        let link = Link::List(Route::Events, filter::part("severity", severity.word()));
        into.linked(line, link);
    }
    if overview.acknowledged_count > 0 {
        let count = overview.acknowledged_count.to_string();
        let link = Link::List(Route::Events, "acknowledged=true".to_owned());
        into.link("acknowledged", &count, link);
    }
}

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn rate(into: &mut Document, overview: &Overview) {
    into.heading("Events per minute, last hour");
    let minutes = &overview.events_per_minute;
    let most = minutes.iter().copied().max().unwrap_or(0);
    let room = into.columns.saturating_sub(super::LABEL + 3);
    let shown = &minutes[minutes.len().saturating_sub(room)..];
    if most == 0 {
        into.line(vec![span(Token::Dim, "none")]);
        return;
    }
    let bar = |count: &i32| {
        let step = i64::from(*count) * 7 / i64::from(most);
        if *count == 0 {
            ' '
        } else {
            STEPS[usize::try_from(step).unwrap_or(0).min(7)]
        }
    };
    let line: String = shown.iter().map(bar).collect();
    let now = minutes.last().copied().unwrap_or(0);
    let words = format!("now {now}, peak {most}");
    into.line(vec![label(&words), span(Token::Info, &line)]);
}

fn deliveries(into: &mut Document, model: &Model, overview: &Overview) {
    into.heading("Deliveries, last 24 h");
    if overview.destinations.is_empty() {
        into.line(vec![span(Token::Dim, "none")]);
    }
    let mut traffic: Vec<&DestinationTraffic> = overview.destinations.iter().collect();
    traffic.sort_by_key(|one| (one.health.state, std::cmp::Reverse(one.dead)));
    for one in traffic {
        let token = Token::from(one.health.state);
        let mark = match one.health.state {
            HealthState::Failing => "✗",
            HealthState::Paused => "‖",
            HealthState::Healthy => "✓",
            HealthState::Unknown => "·",
        };
        let count = |count: i32, word: &str, token: Token| {
            let token = if count == 0 { Token::Dim } else { token };
            span(token, &format!("{count:>6} {word}"))
        };
        let name = crate::text::fit(&one.name, 24);
        let pad = " ".repeat(25_usize.saturating_sub(crate::text::width(&name)));
        let line: Vec<Span> = vec![
            span(token, &format!("{mark} ")),
            span(Token::Link, &name),
            span(Token::Text, &pad),
            span(token, &format!("{:<8}", one.health.state.word())),
            count(one.delivered, "delivered", Token::Good),
            count(one.waiting, "waiting", Token::Info),
            count(one.dead, "dead", Token::Bad),
        ];
        into.linked(line, Link::Go(Route::Destination(one.name.clone())));
    }
    if let Some(oldest) = overview.oldest_undelivered_ms {
        let age = duration(model.store.overview.received_ms.unwrap_or(oldest) - oldest);
        let words = format!("{} ({age} before this was read)", model.moment(oldest));
        into.link("oldest waiting", &words, Link::Go(Route::Deliveries));
    }
}

fn service(into: &mut Document, model: &Model, overview: &Overview) {
    into.heading("Service");
    into.field("address", Token::Text, &model.service);
    into.field("version", Token::Text, &overview.version);
    if let Some(start) = overview.start_ms {
        into.field("running since", Token::Text, &model.moment_in_full(start));
    }
    into.link(
        "triggers",
        &overview.trigger_count.to_string(),
        Link::Go(Route::Triggers),
    );
    into.link(
        "destinations",
        &overview.destination_count.to_string(),
        Link::Go(Route::Destinations),
    );
    let rules = format!(
        "{}, {} enabled",
        overview.rule_count, overview.enabled_rule_count
    );
    into.link("rules", &rules, Link::Go(Route::Rules));
}
