//! Additional data for the overview: unreachable destinations, the noisiest sources, and the
//! service's resources.

use std::cmp::Reverse;

use bellwether_language::filter::print_condition;
use bellwether_proto::v1::{
    DestinationHealth, DestinationOverview, EventGroup, GetOverviewResponse as Overview,
    NamedStatistics,
};

use super::Model;
use crate::{
    data::{
        self, ChartData, HealthState, Kind, Label, Sign, WORST_FIRST, span_ms, to_millis,
        urgency_rank,
    },
    document::{Link, format_duration},
    route::Route,
    text,
    theme::Token,
};

/// A noisy source with its link, or a heading without one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrequentSource {
    pub(crate) name: String,
    pub(crate) count: i64,
    pub(crate) or_more: bool,
    /// The total of which `count` is a share.
    pub(crate) total: i64,
    pub(crate) token: Token,
    pub(crate) link: Option<Link>,
}

const NAMES: usize = 6;
const HOSTS: usize = 40;
const RULES: usize = 6;

pub(crate) fn frequent_sources(model: &Model) -> Vec<FrequentSource> {
    let Some(counted) = &model.store.wall.value else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    let rules = frequent_rules(counted);
    if !rules.is_empty() {
        rows.push(heading_row(&format!("rules, {}", counted.back.label())));
        rows.extend(rules);
    }
    let overview = model.store.overview.value.as_ref();
    let open = overview.map_or(0, |it| it.open_by_severity.values().sum::<i32>());
    let open = i64::from(open);
    let groups = [
        ("name", "names", &counted.names, NAMES),
        ("host", "hosts", &counted.hosts, HOSTS),
    ];
    for (field, title, found, most) in groups {
        let Some(found) = found else { continue };
        let or_more = found.complete != Some(true);
        let known = found.groups.iter().filter(|group| group.value.is_some());
        let known: Vec<_> = known.take(most).collect();
        if known.is_empty() {
            continue;
        }
        rows.push(heading_row(&format!("{title}, open now")));
        rows.extend(
            known
                .iter()
                .map(|group| source_from_group(field, group, open, or_more)),
        );
    }
    rows
}

fn heading_row(title: &str) -> FrequentSource {
    FrequentSource {
        name: title.to_owned(),
        count: 0,
        or_more: false,
        total: 0,
        token: Token::Heading,
        link: None,
    }
}

fn source_from_group(field: &str, group: &EventGroup, total: i64, or_more: bool) -> FrequentSource {
    let value = group.value.clone().unwrap_or_default();
    let worst = WORST_FIRST
        .into_iter()
        .find(|severity| group.count_by_severity.contains_key(severity.as_str_name()));
    FrequentSource {
        link: Some(Link::List(Route::EVENTS, print_condition(field, &value))),
        name: value,
        count: group.count.unwrap_or_default().into(),
        or_more,
        total,
        token: worst.map_or(Token::Text, Token::from),
    }
}

fn frequent_rules(counted: &ChartData) -> Vec<FrequentSource> {
    let decided = |one: &NamedStatistics| -> i64 {
        let deliveries = one.deliveries.as_ref();
        deliveries.map_or(0, |it| it.decided.iter().copied().map(i64::from).sum())
    };
    let all = counted.statistics.rules.iter();
    let mut all: Vec<_> = all.map(|one| (decided(one), one)).collect();
    all.retain(|(count, _)| *count > 0);
    all.sort_by_key(|(count, _)| Reverse(*count));
    let total = all.iter().map(|(count, _)| count).sum();
    let rows = all
        .into_iter()
        .take(RULES)
        .map(|(count, one)| FrequentSource {
            name: one.name.clone(),
            count,
            or_more: false,
            total,
            token: Token::Info,
            link: Some(Link::object(Kind::Rule, &one.name)),
        });
    rows.collect()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnhealthyDestination {
    pub(crate) token: Token,
    pub(crate) words: String,
    pub(crate) details: String,
}

/// Returns the sort key, by which the worst destination comes first. Backlogs are compared by size
/// and age. Without a backlog, dead letters come before failed tests, and healthy destinations come
/// last.
pub(crate) fn problem_sort_key(
    one: &DestinationOverview,
    now_ms: i64,
) -> (bool, Reverse<i64>, bool, usize) {
    let waiting = i64::from(one.waiting_count.unwrap_or_default());
    let message = one.health.as_ref();
    let oldest = message.and_then(|it| to_millis(it.oldest_waiting_time.as_ref()));
    let age_ms = oldest.map_or(1, |ms| (now_ms - ms).max(1));
    let is_dead = one.dead_count.unwrap_or_default() > 0;
    let state = destination_health(one);
    let is_well = matches!(state, HealthState::Healthy | HealthState::Untried);
    let harm = Reverse(waiting.saturating_mul(age_ms));
    (is_well, harm, !is_dead, urgency_rank(state))
}

pub(crate) fn unhealthy_destinations(
    model: &Model,
    overview: &Overview,
) -> Vec<UnhealthyDestination> {
    let mut ill: Vec<_> = overview
        .destinations
        .iter()
        .filter(|one| {
            !matches!(
                destination_health(one),
                HealthState::Healthy | HealthState::Untried
            )
        })
        .collect();
    ill.sort_by_key(|one| problem_sort_key(one, model.now_ms));
    let rows = ill.into_iter().map(|one| {
        let state = destination_health(one);
        let message = one.health.clone().unwrap_or_default();
        let since =
            to_millis(message.since.as_ref()).map(|ms| format!(" since {}", model.format_time(ms)));
        let since = since.filter(|_| matches!(state, HealthState::Failing | HealthState::Paused));
        let waiting = text::group_digits(one.waiting_count.unwrap_or_default().into());
        let now = model.store.overview.received_ms;
        let oldest = to_millis(message.oldest_waiting_time.as_ref()).zip(now);
        let oldest =
            oldest.map(|(ms, now)| format!(", oldest {}", format_duration((now - ms).max(0))));
        let after = match &message.drain_time {
            _ if state == HealthState::Failing => {
                format!("  {}", text::shorten_error(&message.last_error))
            }
            Some(drain) => format!("  ~{} behind", format_duration(span_ms(drain))),
            None => String::new(),
        };
        let unreported = if one.failure_unheard {
            "  reported only to failing destinations"
        } else {
            ""
        };
        let details = format!(
            "{waiting} waiting{}{after}{unreported}",
            oldest.unwrap_or_default()
        );
        UnhealthyDestination {
            token: state.into(),
            words: format!(
                "{} {}  {}{}",
                state.symbol(),
                one.destination_name,
                state.label(),
                since.unwrap_or_default()
            ),
            details,
        }
    });
    rows.collect()
}

/// Returns the sentence about failing destinations and waiting messages; `None` if all is well.
pub(crate) fn wall_headline(model: &Model, overview: &Overview) -> Option<String> {
    let all = overview.destinations.iter();
    let troubled = |state| move |one: &&DestinationOverview| destination_health(one) == state;
    let failing = all.clone().filter(troubled(HealthState::Failing)).count();
    let paused = all.clone().filter(troubled(HealthState::Paused)).count();
    let mut parts: Vec<String> = Vec::new();
    let be = |count: usize| if count == 1 { "is" } else { "are" };
    let destinations = |count: usize| match count {
        1 => "1 destination".to_owned(),
        count => format!("{count} destinations"),
    };
    if failing > 0 {
        parts.push(format!("{} {} failing", destinations(failing), be(failing)));
    }
    if paused > 0 {
        parts.push(format!("{} {} paused", destinations(paused), be(paused)));
    }
    if parts.is_empty() {
        return None;
    }
    let waiting = all.clone().filter_map(|one| one.waiting_count).sum::<i32>();
    if waiting > 0 {
        let s = if waiting == 1 { " waits" } else { "s wait" };
        parts.push(format!("{} message{s}", text::group_digits(waiting.into())));
    }
    let oldest = all.filter_map(|one| one.health.as_ref()?.oldest_waiting_time.as_ref());
    let oldest = oldest.filter_map(|time| to_millis(Some(time))).min();
    if let Some((oldest, now)) = oldest.zip(model.store.overview.received_ms) {
        parts.push(format!(
            "the oldest for {}",
            format_duration((now - oldest).max(0))
        ));
    }
    Some(parts.join(", "))
}

/// Returns the line shown if no destination is in trouble, with the number of healthy destinations.
pub(crate) fn healthy_line(overview: &Overview) -> (Token, String) {
    let shown = &overview.destinations;
    let of = |state: HealthState| {
        shown
            .iter()
            .filter(|it| destination_health(it) == state)
            .count()
    };
    let (healthy, untried) = (of(HealthState::Healthy), of(HealthState::Untried));
    if shown.is_empty() {
        return (Token::Dim, "no destination used in 24 h".to_owned());
    }
    if untried == shown.len() {
        let words = "no destination tried yet";
        return (Token::Dim, words.to_owned());
    }
    // The overview omits destinations without traffic, so the number of stored ones is separate.
    let stored = overview.destination_count.unwrap_or_default();
    let stored = usize::try_from(stored).unwrap_or(0).max(shown.len());
    if healthy == stored {
        let words = "✓ all destinations respond in time";
        return (Token::Good, words.to_owned());
    }
    let rest = [
        (of(HealthState::Slow), "slow"),
        (of(HealthState::Behind), "behind"),
        (untried, "untried"),
        (stored - shown.len(), "unused in 24 h"),
    ];
    let first = format!("✓ {healthy} of {stored} respond in time");
    let rest = rest.into_iter().filter(|(count, _)| *count > 0);
    let rest = rest.map(|(count, what)| format!("{count} {what}"));
    let parts: Vec<String> = std::iter::once(first).chain(rest).collect();
    let words = parts.join(", ");
    (Token::Good, words)
}

pub(crate) fn destination_health(one: &DestinationOverview) -> HealthState {
    one.health
        .as_ref()
        .map(DestinationHealth::state)
        .unwrap_or_default()
}

/// Returns the class of the last failure, the backlog, or the health.
pub(crate) fn health_word(one: &DestinationOverview) -> String {
    let Some(message) = &one.health else {
        return HealthState::default().label().to_owned();
    };
    match (message.state(), &message.drain_time) {
        (HealthState::Behind, Some(drain)) => format!("~{}", format_duration(span_ms(drain))),
        (state, _) => data::health_word(state, &message.last_error).to_owned(),
    }
}

pub(crate) fn active_silences(model: &Model) -> Option<String> {
    let rows = model.store.resources(Kind::Silence).rows().iter();
    let active = rows.filter(|it| it.text("state") == "ACTIVE");
    let active: Vec<_> = active.collect();
    let first = active.first()?;
    let until = first.timestamp_ms("endsTime");
    let until = until.map_or_else(String::new, |ms| {
        format!(" until {}", model.format_time(ms))
    });
    let held: i64 = active
        .iter()
        .filter_map(|it| it.json["pendingCount"].as_i64())
        .sum();
    let more = match active.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(format!(
        "Silenced: {}{until}{more} (holds {held})",
        first.name()
    ))
}

pub(crate) fn format_bytes(count: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown to two digits")]
    let number = count as f64;
    match count {
        ..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.0} kB", number / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", number / 1e6),
        _ => format!("{:.1} GB", number / 1e9),
    }
}

pub(crate) fn service_lines(model: &Model, overview: &Overview) -> Vec<String> {
    let reason = overview.store.as_ref().map(|it| it.reason.clone());
    let mut words: Vec<_> = reason.filter(|it| !it.is_empty()).into_iter().collect();
    words.push(format!("version {}", overview.version));
    if let Some(start) = to_millis(overview.start_time.as_ref()) {
        words.push(format!("up since {}", model.format_time(start)));
    }
    if let Some(footprint) = &overview.footprint {
        let parts = [
            ("store", footprint.store_bytes, ""),
            ("disk", footprint.free_bytes, " free"),
            ("memory", footprint.memory_bytes, ""),
        ];
        let known = parts.into_iter().filter_map(|(what, count, after)| {
            Some(format!("{what} {}{after}", format_bytes(count?)))
        });
        words.extend(known);
    }
    let nodes = overview.nodes.iter().map(|node| {
        let leads = if node.leads() { " (leads)" } else { "" };
        format!("{}{leads}", node.name)
    });
    let nodes: Vec<_> = nodes.collect();
    if !nodes.is_empty() {
        words.push(format!("nodes {}", nodes.join(", ")));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_display_counts_only_attempted_destinations_as_healthy() {
        let reached = |states: &[HealthState], stored: i32| {
            let of = |state: &HealthState| DestinationOverview {
                health: Some(DestinationHealth {
                    state: (*state).into(),
                    ..DestinationHealth::default()
                }),
                ..DestinationOverview::default()
            };
            let destinations = states.iter().map(of).collect();
            let overview = Overview {
                destinations,
                destination_count: Some(stored),
                ..Overview::default()
            };
            healthy_line(&overview).1
        };
        let (tried, untried) = (HealthState::Healthy, HealthState::Untried);
        let every = "✓ all destinations respond in time";
        for (states, stored, expected) in [
            (&[][..], 0, "no destination used in 24 h"),
            (&[untried, untried], 2, "no destination tried yet"),
            (&[tried, untried], 2, "✓ 1 of 2 respond in time, 1 untried"),
            (&[tried], 3, "✓ 1 of 3 respond in time, 2 unused in 24 h"),
            (
                &[tried, HealthState::Slow],
                2,
                "✓ 1 of 2 respond in time, 1 slow",
            ),
            (&[tried, tried], 2, every),
        ] {
            assert_eq!(reached(states, stored), expected);
        }
    }
}
