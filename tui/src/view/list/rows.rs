//! The columns of each list, and the cells of a row.

use crate::{
    data::{Client, Delivery, Destination, DestinationType, EventRow, Rule, Status, Trigger},
    model::{Model, page::Route},
    theme::Token,
};

/// One column.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// The least width in cells.
    pub(super) width: usize,
    /// Its share of what is left over.
    pub(super) grows: usize,
    /// The higher, the sooner it is left out; 0 never is.
    pub(super) rank: u8,
    pub(super) right: bool,
}

const fn column(title: &'static str, width: usize, grows: usize, rank: u8) -> Column {
    Column {
        title,
        width,
        grows,
        rank,
        right: false,
    }
}

const fn number(title: &'static str, width: usize, rank: u8) -> Column {
    Column {
        title,
        width,
        grows: 0,
        rank,
        right: true,
    }
}

const EVENTS: &[Column] = &[
    column("Seen", 8, 0, 3),
    column("Severity", 8, 0, 0),
    column("A", 1, 0, 2),
    column("Status", 6, 0, 4),
    column("Summary", 20, 3, 0),
    column("What", 18, 3, 1),
    number("Count", 6, 5),
];
const TRIGGERS: &[Column] = &[
    column("Name", 16, 1, 0),
    column("Query", 24, 3, 0),
    column("Rules", 12, 1, 2),
    number("24 h", 6, 1),
];
const DESTINATIONS: &[Column] = &[
    column("Name", 16, 1, 0),
    column("Type", 10, 0, 2),
    column("Health", 8, 0, 0),
    column("Target", 16, 2, 3),
    number("24 h", 6, 1),
    column("Last error", 12, 2, 4),
];
const RULES: &[Column] = &[
    column("On", 3, 0, 0),
    column("Name", 16, 1, 0),
    column("Triggers", 12, 2, 1),
    column("→ Destinations", 14, 2, 1),
    number("24 h", 6, 3),
    column("Last notified", 16, 0, 4),
];
const DELIVERIES: &[Column] = &[
    column("Decided", 8, 0, 2),
    column("State", 9, 0, 0),
    column("Destination", 14, 1, 0),
    column("Rule", 12, 1, 1),
    number("Tries", 5, 4),
    column("Next try", 8, 0, 5),
    column("Last error", 14, 2, 3),
];
const CLIENTS: &[Column] = &[
    column("Name", 16, 2, 0),
    column("Role", 10, 0, 0),
    column("Last used", 16, 1, 0),
    column("Made", 16, 1, 1),
];

pub(super) fn columns(route: &Route) -> &'static [Column] {
    match route {
        Route::Events => EVENTS,
        Route::Triggers => TRIGGERS,
        Route::Destinations => DESTINATIONS,
        Route::Rules => RULES,
        Route::Deliveries => DELIVERIES,
        _ => CLIENTS,
    }
}

/// What stands in one column of a row.
pub(super) struct Cell {
    pub(super) token: Token,
    pub(super) text: String,
    pub(super) right: bool,
}

fn cell(token: impl Into<Token>, text: impl Into<String>) -> Cell {
    Cell {
        token: token.into(),
        text: text.into(),
        right: false,
    }
}

fn figure(number: impl Into<i64>) -> Cell {
    Cell {
        token: Token::Text,
        text: number.into().to_string(),
        right: true,
    }
}

/// The cells of the row at this place of what is held.
pub(super) fn cells(model: &Model, place: usize) -> Vec<Cell> {
    let store = &model.store;
    let found = match model.page.route {
        Route::Events => store.events.get(place).map(|row| event(model, row)),
        Route::Triggers => store.triggers.rows().get(place).map(trigger),
        Route::Destinations => store.destinations.rows().get(place).map(destination),
        Route::Rules => store.rules.rows().get(place).map(|row| rule(model, row)),
        Route::Deliveries => {
            let row = store.deliveries.rows().get(place);
            row.map(|row| delivery(model, row))
        }
        _ => store
            .clients
            .rows()
            .get(place)
            .map(|row| client(model, row)),
    };
    found.unwrap_or_default()
}

fn event(model: &Model, row: &EventRow) -> Vec<Cell> {
    let quiet = row.status == Status::Closed;
    let token = |token: Token| if quiet { Token::Dim } else { token };
    vec![
        cell(token(Token::Dim), short_moment(model, row.last_seen_ms)),
        cell(token(row.severity.into()), row.severity.word()),
        cell(Token::Good, if row.acknowledged { "✓" } else { "" }),
        cell(
            row.status,
            if row.status == Status::Suppressed {
                "muted"
            } else {
                row.status.word()
            },
        ),
        cell(token(Token::Text), &*row.summary),
        cell(token(Token::Dim), format!("{} {}", row.name, row.entity)),
        figure(row.count),
    ]
}

/// The time today, the date on other days: always eight cells.
fn short_moment(model: &Model, ms: i64) -> String {
    let moment = model.moment(ms);
    match moment.split_once(' ') {
        Some((date, _)) => date.get(2..).unwrap_or_default().to_owned(),
        None => moment,
    }
}

fn trigger(row: &Trigger) -> Vec<Cell> {
    let query = row
        .spec
        .clause()
        .map_or_else(String::new, ToString::to_string);
    let rules = if row.rule_names.is_empty() {
        cell(Token::Warning, "no rule")
    } else {
        cell(Token::Text, row.rule_names.join(", "))
    };
    vec![
        cell(Token::Text, &*row.spec.name),
        cell(Token::Dim, query),
        rules,
        figure(row.recent_count),
    ]
}

fn destination(row: &Destination) -> Vec<Cell> {
    let kind = row.spec.kind.as_ref();
    vec![
        cell(Token::Text, &*row.spec.name),
        cell(Token::Text, kind.map_or("", DestinationType::word)),
        cell(row.health.state, row.health.state.word()),
        cell(Token::Dim, kind.map_or("", |kind| kind.target())),
        figure(row.recent_count),
        cell(Token::Bad, &*row.health.last_error),
    ]
}

fn rule(model: &Model, row: &Rule) -> Vec<Cell> {
    let spec = &row.spec;
    let names = |names: &[String]| {
        if names.is_empty() {
            cell(Token::Warning, "none")
        } else {
            cell(Token::Text, names.join(", "))
        }
    };
    let last = row
        .last_notification_ms
        .map_or_else(String::new, |ms| model.moment(ms));
    vec![
        if spec.enabled {
            cell(Token::Good, "on")
        } else {
            cell(Token::Dim, "off")
        },
        cell(Token::Text, &*spec.name),
        names(&spec.trigger_names),
        names(&spec.destination_names),
        figure(row.recent_count),
        cell(Token::Dim, last),
    ]
}

fn delivery(model: &Model, row: &Delivery) -> Vec<Cell> {
    let moment = |ms: Option<i64>| ms.map_or_else(String::new, |ms| short_moment(model, ms));
    let rule = match (row.test, row.clear) {
        (true, _) => cell(Token::Dim, "(test)"),
        (false, true) => cell(Token::Text, format!("{} (update)", row.rule_name)),
        (false, false) => cell(Token::Text, &*row.rule_name),
    };
    vec![
        cell(Token::Dim, moment(row.create_ms)),
        cell(row.state, row.state.word()),
        cell(Token::Text, &*row.destination_name),
        rule,
        figure(row.attempt_count),
        cell(Token::Dim, moment(row.next_attempt_ms)),
        cell(Token::Bad, &*row.last_error),
    ]
}

fn client(model: &Model, row: &Client) -> Vec<Cell> {
    let used = row
        .last_used_ms
        .map_or_else(|| "never".to_owned(), |ms| model.moment(ms));
    let made = row
        .create_ms
        .map_or_else(String::new, |ms| model.moment(ms));
    vec![
        cell(Token::Text, &*row.name),
        cell(Token::Text, row.role.word()),
        cell(Token::Dim, used),
        cell(Token::Dim, made),
    ]
}
