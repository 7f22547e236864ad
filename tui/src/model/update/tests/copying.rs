//! Tests of copying, recent filters, and matches of a search.

use super::*;

/// Presses keys, responds to every call, and returns the copied texts.
fn copied(model: &mut Model, keys: &str) -> Vec<String> {
    let mut copied = Vec::new();
    for key in keymap::parse(keys).unwrap() {
        let mut effects = update(model, Msg::Key(key));
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Copy(text) => copied.push(text),
                Effect::Send(Command::Call(ticket, call)) => {
                    let found = answer(&call);
                    effects.extend(update(
                        model,
                        Msg::Server(ServerUpdate::CallResult(ticket, found)),
                    ));
                }
                _ => {}
            }
        }
        adjust_cursors(model);
    }
    copied
}

#[test]
fn copy_menu_selects_the_format_by_key() {
    let mut model = model(Role::Admin);
    model.shell.bellwether = "bellwether --connect http://here".to_owned();
    let cases = [
        ("2Yi", "e4:1"),
        ("2Yb", "bellwether --connect http://here explain e4:1"),
        (
            "2Yc",
            "curl -H \"authorization: Bearer $BELLWETHER_KEY\" \"$BELLWETHER_REST/v1/events/e4\"",
        ),
        ("3Y<Enter>", "t"),
        ("3Y<Down><Enter>", "t  r  0"),
        ("5Yb", "bellwether --connect http://here get rule r"),
        (
            "3Yc",
            "curl -H \"authorization: Bearer $BELLWETHER_KEY\" \
             \"$BELLWETHER_REST/v1/notification/triggers/t\"",
        ),
    ];
    for (keys, wanted) in cases {
        assert_eq!(copied(&mut model, keys), [wanted], "{keys}");
        assert!(model.overlay.is_none(), "{keys}");
    }
    // The rows of a list are not complete, so the whole event is requested.
    let json: Value = serde_json::from_str(&copied(&mut model, "2Yj")[0]).unwrap();
    assert_eq!(json["occurrences"][0]["id"], "e0:1");
    let json: Value = serde_json::from_str(&copied(&mut model, "5Yj")[0]).unwrap();
    assert_eq!(json["triggerNames"][0], "t");
    assert!(copied(&mut model, "2Yz<Esc>").is_empty() && model.overlay.is_none());
}

#[test]
fn up_and_down_walk_the_filter_history() {
    let mut model = model(Role::Admin);
    press(
        &mut model,
        "2/host=a<Enter>/<C-u>severity>=error<Enter>/<C-u>host=a<Enter>",
    );
    let typed = |model: &Model| {
        model
            .page
            .list
            .typing
            .as_ref()
            .map(|it| it.text().to_owned())
    };
    for (keys, wanted) in [
        ("/", "host=a"),
        ("<Up>", "severity>=error"),
        ("<Up>", "severity>=error"),
        ("<Down>", "host=a"),
        ("<C-u>x<Up>", "host=a"),
        ("<Up>", "severity>=error"),
        ("<Down><Down>", "x"),
        ("<Down>", "x"),
    ] {
        press(&mut model, keys);
        assert_eq!(typed(&model).as_deref(), Some(wanted), "{keys}");
    }
    press(&mut model, "<Esc>6/<Up>");
    assert_eq!(typed(&model).as_deref(), Some(""));
}

#[test]
fn search_next_and_previous_wrap_around() {
    let mut model = model(Role::Admin);
    press(&mut model, "9<Tab><Enter>/template<Enter>");
    let lines = document::current_document(&model).lines;
    let holds = |at: &usize| lines[*at].text().to_lowercase().contains("template");
    let all: Vec<usize> = (0..lines.len()).filter(holds).collect();
    assert!(all.len() > 2, "{all:?}");
    let first = model.page.reading.cursor;
    let at = all.iter().position(|at| *at == first).unwrap();
    press(&mut model, "n");
    assert_eq!(model.page.reading.cursor, all[(at + 1) % all.len()]);
    press(&mut model, "N");
    assert_eq!(model.page.reading.cursor, first);
    for _ in 0..all.len() {
        press(&mut model, "N");
    }
    assert_eq!(model.page.reading.cursor, first);
}
