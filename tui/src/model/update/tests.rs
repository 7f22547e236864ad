//! Properties of `update`: no key sequence causes a panic, or a write without a confirmation.

mod answers;
mod copying;
mod counted;
mod ordered;
mod partly;
mod selection;
mod views;
mod written;

use jiff::tz::TimeZone;
use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend};

use bellwether_proto::{json::wire_from_json, v1};
use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    client::{CallResult, LinkState, Note, ServerUpdate, StatusChange, events},
    data::{
        Caller, EventKey, EventRow, Failure, FailureKind, Kind, Object, Role, Severity, Status,
    },
    keymap, kind,
    model::{Connection, overlay::Overlay, tabs},
    options::View,
    route::Route,
    view,
};
use answers::{answer, found, listing, object, occurrence, row};

fn model(role: Role) -> Model {
    let mut model = Model::new("http://here".to_owned(), false, TimeZone::UTC);
    model.now_ms = 1_700_000_000_000;
    let caller = Caller {
        name: "ops".to_owned(),
        role,
    };
    handle_server_update(&mut model, ServerUpdate::Link(LinkState::Up(caller)));
    model
}

fn handle_server_update(model: &mut Model, server_update: ServerUpdate) {
    let effects = update(model, Msg::Server(server_update));
    reply(model, effects);
    adjust_cursors(model);
}

/// Presses keys and responds to every call immediately. Returns the writes sent.
fn press(model: &mut Model, keys: &str) -> Vec<Call> {
    let mut writes = Vec::new();
    for key in keymap::parse(keys).unwrap() {
        let effects = update(model, Msg::Key(key));
        writes.extend(reply(model, effects));
        adjust_cursors(model);
    }
    writes
}

fn reply(model: &mut Model, effects: Vec<Effect>) -> Vec<Call> {
    let mut writes = Vec::new();
    for effect in effects {
        match effect {
            Effect::Send(Command::Call(ticket, call)) => {
                let found = answer(&call);
                if call.is_write() {
                    writes.push(call);
                }
                let more = update(model, Msg::Server(ServerUpdate::CallResult(ticket, found)));
                writes.extend(reply(model, more));
            }
            Effect::Edit(edit) => {
                let result = Ok(edit.text.clone() + " ");
                let more = update(model, Msg::Edited(edit, result));
                assert!(more.iter().all(|effect| !matches!(effect, Effect::Send(_))));
            }
            _ => {}
        }
    }
    writes
}

#[test]
fn write_is_sent_only_after_confirmation() {
    let cases = [
        ("2c", "<Esc>", 0),
        ("2c", "y", 1),
        ("2*c", "<Tab><Enter>", 1),
        ("3d", "d", 0),
        ("3d", "y", 1),
        ("4d", "n", 0),
        ("5e<C-s>", "y", 1),
        ("5e<C-s>", "s<C-s><Enter>", 0),
        ("7nname<C-s>", "y", 1),
        ("2<A-a>", "<Esc>", 0),
        ("2<A-c>", "<Enter>", 0),
        ("2<A-a>", "y", 1),
        ("2<A-s>", "<Tab><Enter>", 1),
        ("2<A-n>note<Enter>", "y", 1),
    ];
    for (start, end, count) in cases {
        let mut model = model(Role::Admin);
        assert!(
            press(&mut model, start).is_empty(),
            "{start} wrote before it was confirmed"
        );
        assert!(
            matches!(model.overlay, Some(Overlay::Confirm(_) | Overlay::Bulk(_))),
            "{start} did not ask for confirmation"
        );
        assert_eq!(press(&mut model, end).len(), count, "{start}{end}");
    }
}

fn is_reversible(call: &Call) -> bool {
    match call.method {
        "SetStatus" => {
            let mut items = call.body["statuses"].as_array().into_iter().flatten();
            items.all(|item| item["status"] != "STATUS_CLOSED")
        }
        "Annotate" | "UpdateRule" => true,
        _ => false,
    }
}

#[test]
fn reversible_actions_run_without_confirmation_and_can_be_undone() {
    let set = |ids: &[&str], change| {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        events::set_status(&ids, &change)
    };
    let acknowledged = StatusChange::Acknowledged;
    let status = StatusChange::Status;
    let assigned = |name: &str| StatusChange::Assigned(name.to_owned());
    let cases = [
        (
            "2a",
            set(&["e4:1"], acknowledged(true)),
            set(&["e4:1"], acknowledged(false)),
        ),
        (
            "2s",
            set(&["e4:1"], status(Status::Suppressed)),
            set(&["e4:1"], status(Status::Open)),
        ),
        (
            "2i",
            set(&["e4:1"], assigned("ops")),
            set(&["e4:1"], assigned("")),
        ),
        (
            "2@ben<Enter>",
            set(&["e4:1"], assigned("ben")),
            set(&["e4:1"], assigned("")),
        ),
        (
            "2@o<Tab><Enter>",
            set(&["e4:1"], assigned("ops")),
            set(&["e4:1"], assigned("")),
        ),
        (
            "2<Space><Space>s",
            set(&["e3:1", "e4:1"], status(Status::Suppressed)),
            set(&["e3:1", "e4:1"], status(Status::Open)),
        ),
    ];
    for (keys, done, undone) in cases {
        let mut model = model(Role::Admin);
        assert_eq!(press(&mut model, keys), [done], "{keys}");
        let message = model.notice.clone().unwrap().text;
        assert!(message.contains("U undoes it"), "{message}");
        press(&mut model, "jk");
        assert_eq!(model.notice.clone().unwrap().text, message);
        assert_eq!(press(&mut model, "U"), [undone], "{keys}U");
        assert_eq!(press(&mut model, "U"), [], "{keys}UU");

        press(&mut model, keys);
        model.now_ms += limits::TOAST_MS;
        update(&mut model, Msg::Tick);
        assert_eq!(model.notice, None);
        assert_eq!(
            press(&mut model, "U").len(),
            1,
            "a change that is no longer displayed is undone as well"
        );
        press(&mut model, keys);
        model.now_ms += limits::UNDO_MS;
        assert_eq!(press(&mut model, "U"), [], "old changes are not undone");
    }
}

fn methods(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.method).collect()
}

#[test]
fn undo_removes_a_note_and_restores_a_rule() {
    let mut model = model(Role::Admin);
    let written = press(&mut model, "2wnote<Enter>");
    assert_eq!(methods(&written), ["Annotate"]);
    let notes = vec![Note {
        occurrence_id: "e4:1".to_owned(),
        id: "n".to_owned(),
    }];
    assert_eq!(press(&mut model, "U"), [events::remove_notes(notes)]);

    let enabled = |writes: &[Call]| match writes {
        [call] if call.method == "UpdateRule" => Some(call.body["rule"]["enabled"] == true),
        _ => None,
    };
    assert_eq!(enabled(&press(&mut model, "5o")), Some(true));
    // Another client has already disabled the rule.
    assert_eq!(press(&mut model, "U"), []);
    press(&mut model, "o");
    let mut rule = object(Kind::Rule);
    rule.set("enabled", Some(true.into()));
    model
        .store
        .resources_mut(Kind::Rule)
        .record(Ok(vec![rule]), 0);
    assert_eq!(enabled(&press(&mut model, "U")), Some(false));
}

#[test]
fn first_enter_on_the_overview_opens_its_first_link() {
    for size in [(80, 24), (60, 15), (120, 40)] {
        let mut model = model(Role::Admin);
        model.size = size;
        let now_ms = model.now_ms;
        let overview = v1::GetOverviewResponse::default();
        model.store.overview.record(Ok(overview), now_ms);
        adjust_cursors(&mut model);
        press(&mut model, "<Enter>");
        assert_ne!(model.page.route, Route::OVERVIEW, "{size:?}");
    }
}

#[test]
fn explanation_is_reloaded_when_a_shown_end_has_passed() {
    let mut model = model(Role::Admin);
    press(&mut model, "2x");
    let reason = v1::DecisionReason {
        until: Some(6_000),
        ..v1::DecisionReason::default()
    };
    let rule = v1::RuleExplanation {
        reason_detail: Some(reason),
        ..v1::RuleExplanation::default()
    };
    let explained = v1::ExplainEventResponse {
        rules: vec![rule],
        time: 1_000,
        ..v1::ExplainEventResponse::default()
    };
    let now_ms = model.now_ms;
    let Content::Event { explanation, .. } = &mut model.page.content else {
        panic!("no event");
    };
    explanation.record(Ok(explained), now_ms);
    let explains = |model: &mut Model| {
        let effects = update(model, Msg::Tick);
        let is_it = |effect: &Effect| matches!(effect, Effect::Send(Command::Call(_, call)) if call.method == "ExplainEvent");
        effects.iter().any(is_it)
    };
    assert_eq!(model.next_shown_end_ms(), Some(now_ms + 5_000));
    model.now_ms += 4_999;
    assert!(!explains(&mut model));
    model.now_ms += 1;
    assert!(explains(&mut model));
    // It is requested once.
    assert!(!explains(&mut model));
}

#[test]
fn key_without_an_action_is_reported() {
    let mut model = model(Role::Admin);
    press(&mut model, "5");
    press(&mut model, "X");
    let notice = model.notice.clone().unwrap().text;
    assert!(notice.contains("X does nothing here"), "{notice}");
}

#[test]
fn change_of_a_row_that_was_just_selected_is_refused() {
    let mut model = model(Role::Admin);
    press(&mut model, "2");
    let left = model.selected_id().unwrap();
    let removed = ServerUpdate::Watched {
        generation: model.store.events.generation,
        rows: Vec::new(),
        left: vec![left.clone()],
        token: "token".to_owned(),
        gap: false,
    };
    model.store.events.joined = true;
    handle_server_update(&mut model, removed);
    let next = model.selected_id().unwrap();
    assert_ne!(next, left);
    assert_eq!(press(&mut model, "a"), []);
    let notice = model.notice.clone().unwrap().text;
    assert!(notice.contains("the selected row just changed"), "{notice}");
    model.now_ms += limits::SEEN_MS;
    let change = StatusChange::Acknowledged(true);
    assert_eq!(
        press(&mut model, "a"),
        [events::set_status(&[next], &change)]
    );
}

#[test]
fn breadcrumbs_do_not_depend_on_the_navigation_path() {
    let ways = [
        ("5p", "3<Enter>5<Enter>p", "Rules"),
        ("4t", "5<Enter>4<Enter>t", "Destinations"),
        ("4e", "2<Enter>4<Enter>e", "Destinations"),
        ("1O", "4O", "Deliveries"),
        ("8h", "8h", "On call"),
    ];
    for (one, other, screen) in ways {
        for keys in [one, other] {
            let mut model = model(Role::Admin);
            press(&mut model, keys);
            let crumbs = view::breadcrumbs(&model);
            assert_eq!(
                crumbs.first().map(String::as_str),
                Some(screen),
                "{keys}: {crumbs:?}"
            );
            assert!(crumbs.len() > 1, "{keys}: {crumbs:?}");
        }
    }
}

#[test]
fn plain_mode_confirms_reversible_actions() {
    for keys in ["2a", "2s", "5o", "2wnote<Enter>"] {
        let mut model = model(Role::Admin);
        model.is_plain = true;
        assert_eq!(press(&mut model, keys), [], "{keys}");
        assert_eq!(press(&mut model, "y").len(), 1, "{keys}y");
    }
}

#[test]
fn read_only_role_never_gets_a_confirmation() {
    for keys in ["2a", "2c", "3d", "4n", "5o", "7d"] {
        let mut model = model(Role::Viewer);
        assert!(press(&mut model, keys).is_empty());
        assert!(model.overlay.is_none(), "{keys}");
        assert!(
            model
                .notice
                .as_ref()
                .unwrap()
                .text
                .contains("requires the role"),
            "{keys}"
        );
    }
}

#[test]
fn late_response_for_a_closed_page_is_ignored() {
    let mut model = model(Role::Admin);
    press(&mut model, "4");
    let effects = update(&mut model, Msg::Key(keymap::parse("t").unwrap()[0]));
    let Some(Effect::Send(Command::Call(ticket, _))) = effects.first() else {
        panic!("no test was requested");
    };
    let gone = update(&mut model, Msg::Key(keymap::parse("<Esc>").unwrap()[0]));
    assert!(gone.contains(&Effect::Send(Command::Abandon(*ticket))));
    let late = ServerUpdate::CallResult(*ticket, Ok(Vec::new()));
    assert!(update(&mut model, Msg::Server(late)).is_empty());
    assert_eq!(model.page.route, Route::List(Kind::Destination));
}

#[test]
fn lost_connection_keeps_data_and_wakes_every_second() {
    let mut model = model(Role::Admin);
    press(&mut model, "3");
    let failure = Failure::new(FailureKind::Unreachable, "refused");
    let down = LinkState::Down {
        failure,
        retry_in_ms: 4_000,
    };
    handle_server_update(&mut model, ServerUpdate::Link(down));
    assert!(matches!(model.link, Connection::Down { .. }));
    assert_eq!(model.store.resources(Kind::Trigger).rows().len(), 1);
    let wait = model.wake_at_ms().unwrap() - model.now_ms;
    assert!((1..=1_000).contains(&wait), "{wait}");
}

#[test]
fn reconnect_clears_errors_of_the_previous_connection() {
    let mut model = model(Role::Admin);
    press(&mut model, "2");
    let refusal = || Failure::new(FailureKind::Denied, "requires the role operator");
    let rejected = ServerUpdate::WatchRejected {
        generation: model.store.events.generation,
        failure: refusal(),
    };
    handle_server_update(&mut model, rejected);
    let now_ms = model.now_ms;
    let rules = model.store.resources_mut(Kind::Rule);
    rules.record(Err(refusal()), now_ms);
    let caller = model.caller.clone().unwrap();
    handle_server_update(&mut model, ServerUpdate::Link(LinkState::Up(caller)));
    assert_eq!(model.store.events.stream_failure, None);
    assert_eq!(model.store.failure(&Route::List(Kind::Rule)), None);
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    terminal.draw(|frame| view::draw(&model, frame)).unwrap();
    let screen = terminal.backend().to_string();
    assert!(
        screen.contains("live") && !screen.contains("not live"),
        "{screen}"
    );
}

#[test]
fn idle_event_list_wakes_only_for_counts() {
    let mut model = model(Role::Admin);
    press(&mut model, "2");
    let wait = model.wake_at_ms().map(|at| at - model.now_ms);
    assert_eq!(wait, Some(limits::TABS_MS));
}

/// Responds with older rows to the request for events among the effects. Returns the next effects.
fn older(model: &mut Model, effects: &[Effect], newest: i64, next: &str) -> Vec<Effect> {
    let ticket = effects.iter().find_map(|effect| match effect {
        Effect::Send(Command::Call(ticket, call)) => {
            (call.method == "SearchEvents").then_some(*ticket)
        }
        _ => None,
    });
    let page = found((newest - 4..=newest).map(occurrence).collect(), next);
    let answer = Ok(page.encode_to_vec());
    let server_update = ServerUpdate::CallResult(ticket.expect("more rows are requested"), answer);
    let effects = update(model, Msg::Server(server_update));
    adjust_cursors(model);
    effects
}

#[test]
fn jump_to_end_reads_pages_until_a_key_press() {
    for (key, pages) in [("", 2), ("k", 1)] {
        let mut model = model(Role::Admin);
        press(&mut model, "2");
        model.store.events.next = "more".to_owned();
        let effects = update(&mut model, Msg::Key(keymap::parse("G").unwrap()[0]));
        press(&mut model, key);
        let mut effects = older(&mut model, &effects, -1, "still more");
        if pages == 2 {
            effects = older(&mut model, &effects, -6, "");
        }
        assert_eq!(effects, [], "{key}");
        assert_eq!(model.store.events.len(), 5 + 5 * pages);
        let is_at_end = model.page.list.index + 1 == model.store.events.len();
        assert_eq!(is_at_end, key.is_empty(), "{key}");
    }
}

#[test]
fn notice_never_covers_the_cursor() {
    let mut model = model(Role::Admin);
    model.size = (60, 8);
    press(&mut model, "2G");
    let last = model.page.list.index;
    assert_eq!(last + 1, model.store.events.len());
    let shown = |model: &Model| {
        let mut terminal = Terminal::new(TestBackend::new(60, 8)).unwrap();
        terminal.draw(|frame| view::draw(model, frame)).unwrap();
        terminal.backend().to_string()
    };
    assert!(shown(&model).contains('▶'));
    model.show_notice(
        Token::Text,
        "a sentence of more than sixty columns, which takes two lines of them",
    );
    adjust_cursors(&mut model);
    let screen = shown(&model);
    assert!(
        screen.contains('▶') && screen.contains("a sentence"),
        "{screen}"
    );
    assert_eq!(model.page.list.index, last);
}

#[test]
fn rule_rows_map_to_their_index_when_filtered_and_sorted() {
    let rule = |number: i32| Object {
        kind: Kind::Rule,
        json: json!({
            "name": format!("r{number}"),
            "description": if number % 2 == 0 { "even" } else { "odd" },
            "recentNotificationCount": number,
        }),
    };
    let mut model = model(Role::Admin);
    press(&mut model, "5");
    for count in [4, 6] {
        let rules: Vec<_> = (0..count).map(rule).collect();
        model.store.resources_mut(Kind::Rule).record(Ok(rules), 0);
        adjust_cursors(&mut model);
        assert_eq!(model.rows().len(), usize::try_from(count).unwrap());
    }
    let ids = |model: &Model| -> Vec<String> {
        let rows = model.rows();
        (0..rows.len())
            .map(|index| rows.id(index).to_owned())
            .collect()
    };
    press(&mut model, "/even<Enter>");
    assert_eq!(ids(&model), ["r0", "r2", "r4"]);
    press(&mut model, ":sort 24 h<Enter>");
    assert_eq!(ids(&model), ["r4", "r2", "r0"]);
    press(&mut model, "gg");
    assert_eq!(model.selected_id().as_deref(), Some("r4"));
    press(&mut model, "<Esc>");
    assert_eq!(ids(&model), ["r5", "r4", "r3", "r2", "r1", "r0"]);
    assert_eq!(model.selected_id().as_deref(), Some("r4"));
    let rows = model.rows();
    let places: Vec<usize> = (0..rows.len()).map(|index| rows.row_index(index)).collect();
    assert_eq!(places, [5, 4, 3, 2, 1, 0]);
}

#[test]
fn store_lists_resource_names_for_forms() {
    let model = model(Role::Admin);
    assert_eq!(model.store.names(Kind::Destination), ["d"]);
}

#[test]
fn ctrl_c_confirms_unsaved_input_and_a_second_quits() {
    let mut model = model(Role::Admin);
    press(&mut model, "4n");
    assert!(model.page.form().is_some());
    press(&mut model, "x<C-c>");
    assert!(!model.quit);
    press(&mut model, "<Esc>");
    assert!(model.overlay.is_none() && model.page.form().is_some() && !model.quit);
    press(&mut model, "<C-c>q<C-c><C-c>");
    assert!(model.quit);
}

#[test]
fn quitting_asks_for_confirmation_if_a_covered_form_is_unsaved() {
    let mut model = model(Role::Admin);
    press(&mut model, "3nx<Tab>name=x<C-t>");
    assert_eq!(model.page.route, Route::Report);
    press(&mut model, "q");
    assert!(matches!(model.overlay, Some(Overlay::Confirm(_))) && !model.quit);
    press(&mut model, "y");
    assert!(model.quit);
}

#[test]
fn partial_key_sequence_times_out_or_is_cancelled_by_esc() {
    let top = keymap::KeySetting {
        place: None,
        action: "go_rules".to_owned(),
        keys: vec!["ctrl-x r".to_owned()],
        at: "here".to_owned(),
    };
    let mut model = model(Role::Admin);
    model.keymap = std::sync::Arc::new(keymap::Keymap::new(&[top]).unwrap());
    press(&mut model, "<C-x>");
    assert_eq!(model.page.route, Route::OVERVIEW);
    assert_eq!(
        model
            .wake_at_ms()
            .map(|at| at - model.now_ms <= limits::SEQUENCE_MS),
        Some(true)
    );
    press(&mut model, "r");
    assert_eq!(model.page.route, Route::List(Kind::Rule));

    press(&mut model, "1<C-x><Esc>r<C-x>");
    model.now_ms += limits::SEQUENCE_MS;
    update(&mut model, Msg::Tick);
    assert!(model.touched && model.begun.is_empty());
    press(&mut model, "r<C-x>x");
    assert_eq!(model.page.route, Route::OVERVIEW);
    assert!(
        model
            .notice
            .as_ref()
            .unwrap()
            .text
            .contains("^X x does nothing here")
    );
}

const KEYS: &str = "jkgGlhaAcsuUwNxTpoyne EDdtvr123456789*/?:[]RqY<Enter><Esc><Tab><S-Tab><Up><Down>\
                    <Left><Right><PageUp><PageDown><C-s><C-t><C-e><C-l><C-n><C-x><C-r><C-u><C-c><Space>y\
                    <A-a><A-c><A-s><A-n>";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_keys_cause_no_unconfirmed_write_and_no_panic(
        presses in prop::collection::vec(any::<prop::sample::Index>(), 1..80),
        size in prop::sample::select(vec![(1_u16, 1_u16), (20, 5), (60, 15), (80, 24)]),
        lost in prop::option::of(0_usize..80),
    ) {
        let keys = keymap::parse(KEYS).unwrap();
        let mut model = model(Role::Admin);
        update(&mut model, Msg::Resize(size.0, size.1));
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        for (at, press) in presses.iter().enumerate() {
            if lost == Some(at) {
                let failure = Failure::new(FailureKind::Unreachable, "refused");
                let down = LinkState::Down { failure, retry_in_ms: 200 };
                handle_server_update(&mut model, ServerUpdate::Link(down));
            }
            // The dialog that creates a silence shows the counts, so it is a confirmation too.
            let is_confirming = matches!(
                model.overlay,
                Some(
                    Overlay::Confirm(_)
                        | Overlay::Bulk(_)
                        | Overlay::Clash(_)
                        | Overlay::Silence(_)
                )
            );
            let key = *press.get(&keys);
            let effects = update(&mut model, Msg::Key(key));
            let writes = reply(&mut model, effects);
            let is_quiet = writes.iter().all(is_reversible);
            prop_assert!(
                writes.is_empty() || ((is_confirming || is_quiet) && model.is_connected()),
                "{writes:?}"
            );
            adjust_cursors(&mut model);
            terminal.draw(|frame| view::draw(&model, frame)).unwrap();
        }
    }
}
