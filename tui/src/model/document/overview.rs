//! The overview: problems, work in progress, and on a new service the first steps.

use bellwether_proto::v1::{DestinationOverview, GetOverviewResponse as Overview};

use crate::{
    data::{Kind, Label, Sign, WORST_FIRST, to_millis, urgency_rank},
    document::{self, Document, Link, Span, format_duration, label, span},
    keymap::Action,
    kind::EventCell,
    model::{Model, setup_checklist::SetupStep, wall},
    route::Route,
    text,
    theme::Token,
};

pub(crate) const UNANSWERED: usize = 3;

pub(super) fn write(into: &mut Document, model: &Model) {
    let Some(overview) = &model.store.overview.value else {
        let waiting = model.store.overview.waiting.is_some() || !model.is_connected();
        into.loading_or_failure(waiting, model.store.overview.failure.as_ref());
        return;
    };
    let steps = model.first_steps();
    if model.is_plain && steps.is_none() {
        return write_brief(into, model, overview);
    }
    if let Some(steps) = steps {
        draw_flow(into, model, overview, &steps);
        write_first_steps(into, model, steps);
    }
    write_unanswered(into, model);
    // On an empty service, the first screen has only the next steps.
    if steps.is_none_or(|it| it.iter().any(|(_, is_done)| *is_done)) {
        write_open_events(into, overview);
        write_rate(into, overview);
        write_deliveries(into, model, overview);
        write_noisiest(into, model);
    }
    write_service(into, model, overview, steps.is_some());
}

/// Writes only what needs attention, with links to the rest.
fn write_brief(into: &mut Document, model: &Model, overview: &Overview) {
    let (token, words) = match wall::wall_headline(model, overview) {
        Some(words) => (Token::Bad, words),
        None => wall::healthy_line(overview),
    };
    into.linked_line(
        vec![span(token, &words)],
        Link::Go(Route::List(Kind::Destination)),
    );
    for one in wall::unhealthy_destinations(model, overview) {
        let words = format!("{}, {}", one.words, one.details);
        into.line(vec![span(one.token, &words)]);
    }
    if let Some(quiet) = wall::active_silences(model) {
        let link = Link::Go(Route::List(Kind::Silence));
        into.linked_line(vec![span(Token::Held, &quiet)], link);
    }
    write_unanswered(into, model);
    into.heading("Open events");
    for severity in WORST_FIRST {
        let count = overview.open_by_severity.get(severity.as_str_name());
        let count = count.copied().unwrap_or_default();
        if count > 0 {
            let words = format!("{} {}", text::group_digits(count.into()), severity.label());
            into.linked_line(
                vec![span(severity.into(), &words)],
                Link::severity(severity.label()),
            );
        }
    }
    if overview.open_by_severity.values().all(|count| *count == 0) {
        into.text(Token::Dim, 0, "none");
    }
}

/// A stage on the path from events to deliveries.
struct Stage {
    name: &'static str,
    count: i64,
    link: Link,
    steps: &'static [SetupStep],
}

fn flow_stages(model: &Model, overview: &Overview) -> [Stage; 5] {
    use SetupStep::{Delivered, Destination, Enable, Event, Rule, Trigger};
    let list = |kind| Link::Go(Route::List(kind));
    let stored = |count: Option<i32>, kind| {
        let rows = model.store.resources(kind).rows().len();
        i64::from(count.unwrap_or_default()).max(i64::try_from(rows).unwrap_or(i64::MAX))
    };
    let stage = |name, count, link, steps| Stage {
        name,
        count,
        link,
        steps,
    };
    let open = overview.open_by_severity.values().copied().map(i64::from);
    let delivered = overview.destinations.iter();
    let delivered = delivered.filter_map(|it| it.delivered_count.map(i64::from));
    let [triggers, rules, destinations] = [
        stored(overview.trigger_count, Kind::Trigger),
        stored(overview.rule_count, Kind::Rule),
        stored(overview.destination_count, Kind::Destination),
    ];
    [
        stage("events", open.sum(), Link::Go(Route::EVENTS), &[Event]),
        stage("triggers", triggers, list(Kind::Trigger), &[Trigger]),
        stage("rules", rules, list(Kind::Rule), &[Rule, Enable]),
        stage(
            "destinations",
            destinations,
            list(Kind::Destination),
            &[Destination],
        ),
        stage(
            "deliveries",
            delivered.sum(),
            Link::Go(Route::DELIVERIES),
            &[Delivered],
        ),
    ]
}

/// Draws the path from events to deliveries with the counts, and marks the next step of the setup.
fn draw_flow(
    into: &mut Document,
    model: &Model,
    overview: &Overview,
    steps: &[(SetupStep, bool); 6],
) {
    const ARROW: &str = "──▶";
    let next = steps
        .iter()
        .find(|(_, is_done)| !is_done)
        .map(|(step, _)| step);
    let [mut top, mut middle, mut bottom] = [(); 3].map(|()| Vec::new());
    for (index, stage) in flow_stages(model, overview).into_iter().enumerate() {
        let is_next = next.is_some_and(|next| stage.steps.contains(next));
        let mut own = steps.iter().filter(|(step, _)| stage.steps.contains(step));
        let token = match own.all(|(_, is_done)| *is_done) {
            _ if is_next => Token::Key,
            true => Token::Good,
            false => Token::Dim,
        };
        let words = format!("{} {}", stage.name, text::group_digits(stage.count));
        let edge = "─".repeat(text::cell_width(&words));
        if index > 0 {
            let gap = " ".repeat(text::cell_width(ARROW));
            top.push(span(Token::Text, &gap));
            middle.push(span(Token::Dim, ARROW));
            bottom.push(span(Token::Text, &gap));
        }
        top.push(span(token, &format!("╭{edge}╮")));
        middle.push(span(token, "│"));
        middle.push(span(if is_next { Token::Title } else { token }, &words));
        middle.push(span(token, "│"));
        bottom.push(span(token, &format!("╰{edge}╯")));
    }
    into.heading("From events to messages");
    let width: usize = middle.iter().map(|it| text::cell_width(&it.text)).sum();
    if width > into.columns {
        for stage in flow_stages(model, overview) {
            into.link(stage.name, &text::group_digits(stage.count), stage.link);
        }
        return;
    }
    for line in [top, middle, bottom] {
        into.line(line);
    }
}

fn write_first_steps(into: &mut Document, model: &Model, steps: [(SetupStep, bool); 6]) {
    into.heading("First steps");
    let next = steps.iter().position(|(_, done)| !done);
    for (index, (step, done)) in steps.into_iter().enumerate() {
        let words = model.expand_keys(step.description());
        if done {
            into.line(vec![span(Token::Good, "✓ "), span(Token::Dim, &words)]);
            continue;
        }
        let link = match step {
            SetupStep::Destination => Link::Act(Route::List(Kind::Destination), Action::New),
            SetupStep::Event => Link::Go(Route::EVENTS),
            SetupStep::Trigger if steps[1].1 => Link::Go(Route::EVENTS),
            SetupStep::Trigger => Link::Act(Route::List(Kind::Trigger), Action::New),
            SetupStep::Rule => Link::Act(Route::List(Kind::Rule), Action::New),
            SetupStep::Enable => Link::Go(Route::List(Kind::Rule)),
            SetupStep::Delivered => Link::Go(Route::DELIVERIES),
        };
        let is_next = next == Some(index);
        let token = if is_next { Token::Key } else { Token::Text };
        into.linked_line(vec![span(token, "· "), span(Token::Link, &words)], link);
    }
}

fn write_open_events(into: &mut Document, overview: &Overview) {
    into.heading("Open events");
    let counts = WORST_FIRST.map(|severity| {
        let count = overview.open_by_severity.get(severity.as_str_name());
        (severity, count.copied().unwrap_or_default())
    });
    let most = counts.iter().map(|(_, count)| *count).max();
    let most = most.unwrap_or(0).max(1);
    let space = into.columns.saturating_sub(42).clamp(4, 60);
    for (severity, count) in &counts {
        let token = if *count == 0 {
            Token::Dim
        } else {
            Token::from(*severity)
        };
        let opened = overview.opened_by_severity.get(severity.as_str_name());
        let opened = match opened.copied().unwrap_or_default() {
            0 => String::new(),
            number => format!("+{number} in 1 h"),
        };
        let filled = usize::try_from(*count).unwrap_or(0) * space;
        let cells = filled.div_ceil(usize::try_from(most).unwrap_or(1));
        let line = vec![
            span(
                token,
                &format!("{:<LABEL$} ", severity.label(), LABEL = document::LABEL),
            ),
            span(
                token,
                &format!("{:>9} {opened:<12} ", text::group_digits((*count).into())),
            ),
            span(token, &"█".repeat(cells)),
        ];
        let link = Link::severity(severity.label());
        into.linked_line(line, link);
    }
    if let Some(count) = overview.acknowledged_count.filter(|count| *count > 0) {
        let count = text::group_digits(count.into());
        let link = Link::List(Route::EVENTS, "acknowledged=true".to_owned());
        into.link("acknowledged", &count, link);
    }
}

fn write_unanswered(into: &mut Document, model: &Model) {
    let waiting = model.unanswered_responses();
    if model.store.unanswered == 0 {
        return;
    }
    into.heading("Awaiting a response");
    let more = model.store.unanswered.saturating_sub(UNANSWERED);
    for one in waiting.take(UNANSWERED) {
        let (token, words) = model.response_status(one);
        let cells = into
            .columns
            .saturating_sub(text::cell_width(&words) + 4)
            .max(30);
        let mut line = EventCell::from_object(model, one).spans(cells);
        line.push(span(token, &format!("  {words}")));
        let name = one.name().to_owned();
        into.linked_line(line, Link::object(Kind::Response, name));
    }
    if more > 0 {
        let count = text::group_digits(i64::try_from(more).unwrap_or(i64::MAX));
        into.link("", &format!("and {count} more"), Link::Go(Route::ON_CALL));
    }
}

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn write_rate(into: &mut Document, overview: &Overview) {
    into.heading("Events per minute, last hour");
    let minutes = &overview.events_per_minute;
    let most = minutes.iter().copied().max().unwrap_or(0);
    let space = into.columns.saturating_sub(document::LABEL + 3);
    let shown = &minutes[minutes.len().saturating_sub(space)..];
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

fn write_deliveries(into: &mut Document, model: &Model, overview: &Overview) {
    into.heading("Deliveries, last 24 h");
    if overview.destinations.is_empty() {
        into.line(vec![span(Token::Dim, "none")]);
    }
    let mut traffic: Vec<&DestinationOverview> = overview.destinations.iter().collect();
    traffic.sort_by_key(|one| {
        (
            urgency_rank(wall::destination_health(one)),
            std::cmp::Reverse(one.dead_count),
        )
    });
    for one in traffic {
        let health = wall::destination_health(one);
        let token = Token::from(health);
        let mark = health.symbol();
        let count = |count: Option<i32>, word: &str, token: Token| {
            let count = count.unwrap_or_default();
            let token = if count == 0 { Token::Dim } else { token };
            span(token, &format!("{count:>6} {word}"))
        };
        let name = text::fit_to_width(&one.destination_name, 24);
        let pad = " ".repeat(25_usize.saturating_sub(text::cell_width(&name)));
        let line: Vec<Span> = vec![
            span(token, &format!("{mark} ")),
            span(Token::Link, &name),
            span(Token::Text, &pad),
            span(token, &format!("{:<8}", health.label())),
            count(one.delivered_count, "delivered", Token::Good),
            count(one.waiting_count, "waiting", Token::Info),
            count(one.dead_count, "dead", Token::Bad),
        ];
        into.linked_line(line, Link::object(Kind::Destination, &one.destination_name));
    }
    if let Some(oldest) = to_millis(overview.oldest_undelivered_time.as_ref()) {
        let age = format_duration(model.store.overview.received_ms.unwrap_or(oldest) - oldest);
        let words = format!("{} ({age} ago)", model.format_time(oldest));
        into.link("oldest waiting", &words, Link::Go(Route::DELIVERIES));
    }
}

fn write_noisiest(into: &mut Document, model: &Model) {
    for row in wall::frequent_sources(model) {
        let Some(link) = row.link else {
            into.heading(&format!("Noisiest {}", row.name));
            continue;
        };
        let more = if row.or_more { "+" } else { "" };
        let count = format!("{:>8}{more}  ", text::group_digits(row.count));
        into.linked_line(
            vec![span(row.token, &count), span(Token::Link, &row.name)],
            link,
        );
    }
}

fn write_service(into: &mut Document, model: &Model, overview: &Overview, is_new: bool) {
    into.heading("Service");
    into.field("gRPC", Token::Text, &model.service);
    if is_new {
        into.field("version", Token::Text, &overview.version);
        return;
    }
    into.field(
        "status",
        Token::Text,
        &wall::service_lines(model, overview).join(", "),
    );
    if let Some(start) = to_millis(overview.start_time.as_ref()) {
        into.field("running since", Token::Text, &model.format_full_time(start));
    }
    into.link(
        "triggers",
        &text::group_digits(overview.trigger_count.unwrap_or_default().into()),
        Link::Go(Route::List(Kind::Trigger)),
    );
    into.link(
        "destinations",
        &text::group_digits(overview.destination_count.unwrap_or_default().into()),
        Link::Go(Route::List(Kind::Destination)),
    );
    let rules = format!(
        "{}, {} enabled",
        text::group_digits(overview.rule_count.unwrap_or_default().into()),
        text::group_digits(overview.enabled_rule_count.unwrap_or_default().into())
    );
    into.link("rules", &rules, Link::Go(Route::List(Kind::Rule)));
}
