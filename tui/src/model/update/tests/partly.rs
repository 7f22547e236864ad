//! Tests of calls that fail partially, and of calls that report progress.

use super::answers::wire;
use super::*;
use crate::client::Progress;

fn commands_for_keys(model: &mut Model, keys: &str) -> Vec<Command> {
    let keys = keymap::parse(keys).unwrap();
    let mut sent = Vec::new();
    for key in keys {
        for effect in update(model, Msg::Key(key)) {
            if let Effect::Send(command) = effect {
                sent.push(command);
            }
        }
        adjust_cursors(model);
    }
    sent
}

fn screen(model: &Model) -> String {
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    terminal.draw(|frame| view::draw(model, frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn partial_failure_is_reported_with_the_reason() {
    let mut model = model(Role::Admin);
    press(&mut model, "2<A-s>");
    let mut left = commands_for_keys(&mut model, "y").into_iter();
    let change = left.find_map(|command| match command {
        Command::Call(ticket, call) if call.method == "SetStatus" => Some(ticket),
        _ => None,
    });
    let mut each = vec![json!({"success": true}); 5];
    each[3] = json!({"success": false, "error": "it is gone"});
    let answer = wire("SetStatus", &json!({"statusResponses": each}));
    handle_server_update(
        &mut model,
        ServerUpdate::CallResult(change.unwrap(), Ok(answer)),
    );
    let notice = model.notice.unwrap();
    assert_eq!(notice.text, "✗ 4 events suppressed; 1 failed: it is gone");
}

#[test]
fn long_trigger_test_shows_progress_and_ends_with_its_page() {
    fn started_test(sent: &[Command]) -> Option<Ticket> {
        sent.iter().find_map(|command| match command {
            Command::Call(ticket, call) if call.method.starts_with("TestTrigger") => Some(*ticket),
            _ => None,
        })
    }
    fn abandoned(sent: &[Command]) -> Option<Ticket> {
        sent.iter().find_map(|command| match command {
            Command::Abandon(ticket) => Some(*ticket),
            _ => None,
        })
    }
    let mut model = model(Role::Admin);
    press(&mut model, "3");
    let first = started_test(&commands_for_keys(&mut model, "t")).unwrap();
    let progress = Progress {
        matched: 12,
        matched_by_saved: Some(3),
        scanned: 60,
        reached_ms: Some(model.now_ms - 1_000),
        start_ms: Some(model.now_ms - 4_000),
    };
    handle_server_update(&mut model, ServerUpdate::Progress(first, progress));
    let shown = screen(&model);
    assert!(shown.contains("12 of 60 so far"), "{shown}");
    assert!(shown.contains("25 %"), "{shown}");
    // A longer test cancels the previous one, and so does leaving the page.
    let longer = commands_for_keys(&mut model, "+");
    assert_eq!(abandoned(&longer), Some(first));
    let second = started_test(&longer).unwrap();
    assert_eq!(
        abandoned(&commands_for_keys(&mut model, "<Esc>")),
        Some(second)
    );
}
