//! Tests of screens before the first response.

use bellwether_proto::v1::{DestinationHealth, DestinationOverview, GetOverviewResponse};
use jiff::tz::TimeZone;
use ratatui::{Terminal, backend::TestBackend};

use super::draw;
use crate::{
    client::{LinkState, ServerUpdate},
    data::{Caller, HealthState, Role},
    keymap, limits,
    model::{
        Model,
        message::Msg,
        update::{adjust_cursors, update},
    },
    theme::Token,
};

/// Creates a model that is connected and never gets a response.
fn unanswered(size: (u16, u16)) -> Model {
    let mut model = Model::new("http://here".to_owned(), false, TimeZone::UTC);
    model.now_ms = 1_700_000_000_000;
    model.size = size;
    let caller = Caller {
        name: "ops".to_owned(),
        role: Role::Admin,
    };
    drop(update(
        &mut model,
        Msg::Server(ServerUpdate::Link(LinkState::Up(caller))),
    ));
    adjust_cursors(&mut model);
    model
}

fn press(model: &mut Model, keys: &str) {
    for key in keymap::parse(keys).unwrap() {
        drop(update(model, Msg::Key(key)));
        adjust_cursors(model);
    }
}

fn screen(model: &Model) -> String {
    let (columns, rows) = model.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    terminal.backend().to_string()
}

/// Texts that must not be shown before a response.
const CLAIMS: [&str; 13] = [
    "✓",
    "nothing is open",
    "Nothing",
    "no messages are waiting",
    "No ",
    "no match",
    "none",
    "not loaded",
    "nothing stored yet",
    "all destinations",
    "0/0",
    "unused",
    "any more",
];

#[test]
fn loading_screen_shows_that_data_is_not_loaded_yet() {
    let screens = [
        "1",
        "2",
        "2/host=a<Enter>",
        "3",
        "4",
        "5",
        "6",
        "6/destination=a<Enter>",
        "6<Tab>",
        "7",
        "0",
        "<A-0>",
        "<A-9>",
        "<A-8>",
        "<A-7>",
        "<A-6>",
        "<A-5>",
        ":group host<Enter>",
        "O",
        "H",
    ];
    for size in [(80, 24), (120, 36), (200, 50), (60, 15)] {
        for keys in screens {
            let mut model = unanswered(size);
            press(&mut model, keys);
            let shown = screen(&model);
            let body: Vec<&str> = shown.lines().skip(3).collect();
            let body = body.join("\n");
            let is_said = ["reading…", "in progress"]
                .iter()
                .any(|it| shown.contains(it));
            assert!(is_said, "{keys} at {size:?}\n{shown}");
            for claim in CLAIMS {
                assert!(
                    !body.contains(claim),
                    "{keys} at {size:?}: {claim}\n{shown}"
                );
            }
        }
    }
}

#[test]
fn picker_is_not_shown_as_empty_while_loading() {
    for keys in ["5n<Tab><Tab><Enter>", "2V"] {
        let mut model = unanswered((120, 36));
        press(&mut model, keys);
        let shown = screen(&model);
        assert!(shown.contains("reading…"), "{keys}\n{shown}");
        assert!(!shown.contains("yet"), "{keys}\n{shown}");
    }
}

#[test]
fn overview_shows_whole_errors_if_rows_are_free() {
    let last_error =
        "the receiver returned 503 Unavailable: {\"error\": \"maintenance till noon\"}";
    let health = DestinationHealth {
        state: HealthState::Failing.into(),
        last_error: last_error.to_owned(),
        ..DestinationHealth::default()
    };
    let destination = DestinationOverview {
        destination_name: "pager".to_owned(),
        delivered_count: Some(1),
        health: Some(health),
        ..DestinationOverview::default()
    };
    let overview = GetOverviewResponse {
        destinations: vec![destination],
        enabled_rule_count: Some(1),
        ..GetOverviewResponse::default()
    };
    for size in [(100, 30), (140, 40), (200, 50)] {
        let mut model = unanswered(size);
        let now_ms = model.now_ms;
        model.store.overview.record(Ok(overview.clone()), now_ms);
        let shown = screen(&model);
        for word in ["503 Unavailable:", "maintenance", "noon"] {
            assert!(shown.contains(word), "{word} at {size:?}\n{shown}");
        }
    }
}

#[test]
fn stale_screen_is_dim_below_the_header() {
    let mut model = unanswered((120, 36));
    press(&mut model, "9");
    let dim = model.appearance().style(Token::Dim);
    let is_dim = |model: &Model| {
        let mut terminal = Terminal::new(TestBackend::new(120, 36)).unwrap();
        terminal.draw(|frame| draw(model, frame)).unwrap();
        let cells = terminal.backend().buffer().content[120..].to_vec();
        let mut drawn = cells.into_iter().filter(|it| it.symbol() != " ");
        drawn.all(|it| {
            let has_colour = dim.fg.is_none_or(|fg| it.fg == fg);
            has_colour && it.modifier.contains(dim.add_modifier)
        })
    };
    model.last_received_ms = Some(model.now_ms - limits::STALE_MS + 1);
    assert!(!is_dim(&model));
    model.last_received_ms = Some(model.now_ms - limits::STALE_MS);
    assert!(is_dim(&model));
}
