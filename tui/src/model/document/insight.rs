//! The noise report.

use bellwether_language::filter;
use bellwether_proto::v1::{GetNoiseResponse, NoiseBy, NoiseRow};

use crate::{
    data::{Kind, to_millis},
    document::{Document, Link, span},
    keymap::Action,
    model::Model,
    route::Route,
    text,
    theme::Token,
};

const NAME: usize = 24;
const COLUMNS: [&str; 6] = ["sent", "acked", "soon", "unacted", "night", "skipped"];

pub(super) fn grouping_label(by: NoiseBy) -> &'static str {
    match by {
        NoiseBy::Unspecified | NoiseBy::Rule => "rule",
        NoiseBy::Trigger => "trigger",
        NoiseBy::Destination => "destination",
        NoiseBy::EventName => "event name",
        NoiseBy::Contact => "contact",
    }
}

pub(super) fn write_noise(into: &mut Document, model: &Model, rows: NoiseBy) {
    let answer = format!(
        "Notifications by {}; ‹noise_by› changes the grouping. Soon: closed by the sender within \
         5 min. Unacted: closed without any action.",
        grouping_label(rows)
    );
    into.text(Token::Dim, 0, &model.expand_keys(&answer));
}

pub(super) fn write_noise_table(into: &mut Document, model: &Model, found: &GetNoiseResponse) {
    let moment = |at| to_millis(at).map_or_else(String::new, |ms| model.format_full_time(ms));
    let start = moment(found.start_time.as_ref());
    // The end of the last day may be in the future.
    let end = to_millis(found.end_time.as_ref()).filter(|end| *end <= model.now_ms);
    let end = end.map_or_else(|| "now".to_owned(), |ms| model.format_full_time(ms));
    into.field("counted", Token::Text, &format!("{start} to {end}"));
    into.blank_line();
    if found.rows.is_empty() {
        return into.text(Token::Good, 0, "no notifications");
    }
    let head: Vec<_> = COLUMNS.iter().map(|it| format!("{it:>8}")).collect();
    let head = format!("{}{}", pad_name(grouping_label(found.by())), head.concat());
    into.line(vec![span(Token::Dim, &head)]);
    for row in &found.rows {
        let name = if row.name.is_empty() {
            "(deleted)"
        } else {
            &row.name
        };
        let column = pad_name(name);
        let (name, blank) = column.split_at(column.trim_end().len());
        let line = vec![
            span(Token::Link, name),
            span(Token::Text, blank),
            span(Token::Text, &format_numbers(row)),
        ];
        match row_link(found.by(), &row.name) {
            Some(link) => into.linked_line(line, link),
            None => into.line(line),
        }
        let events = row.events.iter().take(3).map(|it| {
            let count = it.notification_count.unwrap_or_default();
            format!("{} {}", text::group_digits(count.into()), it.name)
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
    into.blank_line();
    let hint = "Enter edits a resource. `bellwether diff -f FILE --impact 7d` replays the last 7 \
                days with a change.";
    into.text(Token::Dim, 0, hint);
}

fn pad_name(name: &str) -> String {
    let name = text::fit_to_width(name, NAME);
    let missing = NAME.saturating_sub(text::cell_width(&name));
    format!("{name}{}", " ".repeat(missing))
}

fn format_numbers(row: &NoiseRow) -> String {
    let count = |number: Option<i32>| text::group_digits(number.unwrap_or_default().into());
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

/// Returns the link of a row. It leads to the form of the resource, where the noise can be reduced,
/// or to the events with this name.
fn row_link(by: NoiseBy, name: &str) -> Option<Link> {
    let kind = match by {
        _ if name.is_empty() => return None,
        NoiseBy::EventName => {
            return Some(Link::List(
                Route::EVENTS,
                filter::print_condition("name", name),
            ));
        }
        NoiseBy::Unspecified | NoiseBy::Rule => Kind::Rule,
        NoiseBy::Trigger => Kind::Trigger,
        NoiseBy::Destination => Kind::Destination,
        NoiseBy::Contact => Kind::Contact,
    };
    let route = Route::Object(kind, name.to_owned());
    Some(Link::Act(route, Action::Edit))
}
