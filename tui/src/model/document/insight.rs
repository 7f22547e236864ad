//! The noise report and its suggestions.

use bellwether_proto::{
    filter, json,
    v1::{GetNoiseResponse, GetSuggestionsResponse, NoiseBy, NoiseRow, Suggestion, SuggestionKind},
};
use serde_json::Value;

use crate::{
    data::{Kind, Object, millis},
    document::{Document, Link, span},
    kind,
    model::Model,
    route::Route,
    text,
    theme::Token,
};

const NAME: usize = 24;
const COLUMNS: [&str; 6] = ["sent", "acked", "soon", "unacted", "night", "skipped"];

/// Returns the subject of the rows.
pub(super) fn by(by: NoiseBy) -> &'static str {
    match by {
        NoiseBy::Unspecified | NoiseBy::Rule => "rule",
        NoiseBy::Trigger => "trigger",
        NoiseBy::Destination => "destination",
        NoiseBy::EventName => "event name",
        NoiseBy::Contact => "contact",
    }
}

pub(super) fn about_noise(into: &mut Document, model: &Model, rows: NoiseBy) {
    let answer = format!(
        "Notifications by {}; ‹noise_by› counts by another. Soon: closed by the sender within 5 min. \
         Unacted: closed without any action.",
        by(rows)
    );
    into.text(Token::Dim, 0, &model.tell(&answer));
}

pub(super) fn noise(into: &mut Document, model: &Model, found: &GetNoiseResponse) {
    let moment = |at| millis(at).map_or_else(String::new, |ms| model.moment_in_full(ms));
    let (start, end) = (
        moment(found.start_time.as_ref()),
        moment(found.end_time.as_ref()),
    );
    into.field("counted", Token::Text, &format!("{start} to {end}"));
    into.blank();
    if found.rows.is_empty() {
        return into.text(Token::Good, 0, "no notifications");
    }
    let head: Vec<_> = COLUMNS.iter().map(|it| format!("{it:>8}")).collect();
    let head = format!("{}{}", padded(by(found.by())), head.concat());
    into.line(vec![span(Token::Dim, &head)]);
    for row in &found.rows {
        let name = if row.name.is_empty() {
            "(deleted)"
        } else {
            &row.name
        };
        let line = vec![
            span(Token::Link, &padded(name)),
            span(Token::Text, &numbers(row)),
        ];
        match route(found.by(), &row.name) {
            Some(link) => into.linked(line, link),
            None => into.line(line),
        }
        let events = row.events.iter().take(3).map(|it| {
            let count = it.notification_count.unwrap_or_default();
            format!("{} {}", text::grouped(count.into()), it.name)
        });
        let events: Vec<_> = events.collect();
        if !events.is_empty() {
            into.text(Token::Dim, 2, &events.join(" · "));
        }
    }
    let left_out = found.left_out_count.unwrap_or_default();
    if left_out > 0 {
        into.text(Token::Warning, 0, &format!("{left_out} more rows"));
    }
}

fn padded(name: &str) -> String {
    let name = text::fit(name, NAME);
    let missing = NAME.saturating_sub(text::width(&name));
    format!("{name}{}", " ".repeat(missing))
}

fn numbers(row: &NoiseRow) -> String {
    let count = |number: Option<i32>| text::grouped(number.unwrap_or_default().into());
    let share = row.acknowledged_share;
    let share = share.map_or_else(|| "-".to_owned(), |it| format!("{:.0} %", it * 100.0));
    let skipped = row
        .skipped_count
        .map_or_else(|| "-".to_owned(), |it| count(Some(it)));
    let cells = [
        count(row.notification_count),
        share,
        count(row.closed_soon_count),
        count(row.never_acted_on_count),
        count(row.night_count),
        skipped,
    ];
    let cells: Vec<_> = cells.iter().map(|it| format!("{it:>8}")).collect();
    cells.concat()
}

fn route(by: NoiseBy, name: &str) -> Option<Link> {
    let kind = match by {
        _ if name.is_empty() => return None,
        NoiseBy::EventName => {
            return Some(Link::List(Route::Events, filter::part("name", name)));
        }
        NoiseBy::Unspecified | NoiseBy::Rule => Kind::Rule,
        NoiseBy::Trigger => Kind::Trigger,
        NoiseBy::Destination => Kind::Destination,
        NoiseBy::Contact => Kind::Contact,
    };
    Some(Link::Go(Route::Object(kind, name.to_owned())))
}

pub(super) fn about_suggestions(into: &mut Document) {
    let answer = "Changes that would have sent less in the last 7 days, by a replay. Nothing is changed \
                  until you save a draft.";
    into.text(Token::Dim, 0, answer);
}

pub(super) fn suggestions(into: &mut Document, found: &GetSuggestionsResponse) {
    if found.suggestions.is_empty() {
        into.text(Token::Good, 0, "no suggestions");
    }
    for suggestion in &found.suggestions {
        into.heading(&format!("{}: {}", what(suggestion.kind()), suggestion.name));
        into.text(Token::Text, 0, &suggestion.evidence);
        into.text(Token::Good, 0, &suggestion.effect);
        if let Some(draft) = draft(suggestion) {
            let line = vec![span(Token::Link, "open the draft")];
            into.linked(line, Link::Draft(Box::new(draft)));
        } else {
            let link = Link::Go(Route::Object(Kind::Silence, suggestion.name.clone()));
            into.link("silence", &suggestion.name, link);
        }
    }
    if found.stopped_early {
        into.blank();
        let answer = "stopped early: not every change was replayed";
        into.text(Token::Warning, 0, answer);
    }
}

fn what(kind: SuggestionKind) -> &'static str {
    match kind {
        SuggestionKind::Unspecified => "Change",
        SuggestionKind::Delay => "Delay of rule",
        SuggestionKind::Group => "Group of rule",
        SuggestionKind::Inhibition => "New inhibition",
        SuggestionKind::UnusedRule => "Dry run of rule",
        SuggestionKind::IdleSilence => "End of silence",
    }
}

/// Returns the changed resource of a suggestion.
fn draft(suggestion: &Suggestion) -> Option<Object> {
    let wire = json::to_json(suggestion.draft.as_ref()?).ok()?;
    let mut read: Value = serde_json::from_slice(&wire).ok()?;
    let kinds = Kind::ALL.iter();
    let kind = *kinds.clone().find(|it| read.get(it.word()).is_some())?;
    kind::spec(kind).update?;
    let json = read[kind.word()].take();
    Some(Object { kind, json })
}
