//! Tests that the default bindings have no conflicts, and that invalid settings are reported.

use super::*;
use crate::data::{Kind, Screen};

fn setting(place: Option<&str>, action: &str, keys: &[&str]) -> KeySetting {
    KeySetting {
        place: place.map(str::to_owned),
        action: action.to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        at: format!("line of {action}"),
    }
}

fn problems(settings: &[KeySetting]) -> String {
    let Err(problems) = Keymap::new(settings) else {
        return String::new();
    };
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn action(keymap: &Keymap, keys: &str, place: ActionPlace) -> Option<Action> {
    let keys: Vec<_> = parse(keys).unwrap().into_iter().map(normalize).collect();
    match keymap.look_up(&keys, &place.enclosing_places()) {
        KeyLookup::Act(entry) => Some(entry.action),
        KeyLookup::Run(_) | KeyLookup::Wait | KeyLookup::Nothing => None,
    }
}

#[test]
fn default_keys_are_unambiguous_on_every_screen() {
    let keymap = Keymap::default();
    for places in ActionPlace::screen_places() {
        let mut seen: Vec<(&[crossterm::event::KeyEvent], &str)> = Vec::new();
        for entry in available_entries(&places) {
            for keys in keymap.keys_for(entry, &places) {
                let clash = seen
                    .iter()
                    .find(|(other, _)| other.starts_with(keys) || keys.starts_with(other));
                assert_eq!(
                    clash,
                    None,
                    "{} of {} in {places:?}",
                    format_keys(keys),
                    entry.name
                );
                seen.push((keys, entry.name));
            }
        }
    }
}

#[test]
fn default_keys_round_trip_through_configuration() {
    let keymap = Keymap::default();
    for entry in ACTIONS.iter() {
        let place = entry.places[0];
        let own: Vec<_> = keymap
            .keys_for(entry, &[place])
            .map(<[_]>::to_vec)
            .collect();
        let written: Vec<_> = own
            .iter()
            .map(|keys| setting::notation::write_keys(keys))
            .collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let name = entry.action.name();
        let again = Keymap::new(&[setting(None, &name, &written)]).unwrap();
        let again: Vec<_> = again.keys_for(entry, &[place]).map(<[_]>::to_vec).collect();
        assert_eq!(own, again, "{name}");
    }
}

#[test]
fn configured_keys_and_sequences_replace_the_defaults() {
    let settings = [
        setting(None, "top", &["g z", "ctrl-x s", "<"]),
        setting(None, "copy", &[]),
        setting(Some("events"), "close_event", &["ctrl-x c"]),
    ];
    let keymap = Keymap::new(&settings).unwrap();
    for keys in ["gz", "<C-x>s", "<lt>"] {
        assert_eq!(
            action(&keymap, keys, ActionPlace::Screen(Screen::Events)),
            Some(Action::Top)
        );
    }
    assert_eq!(
        action(&keymap, "g", ActionPlace::Screen(Screen::Events)),
        None
    );
    assert_eq!(
        action(&keymap, "y", ActionPlace::Screen(Screen::Events)),
        None
    );
    assert_eq!(
        action(&keymap, "<C-x>c", ActionPlace::Screen(Screen::Events)),
        Some(Action::CloseEvent)
    );
    assert_eq!(
        action(&keymap, "c", ActionPlace::Screen(Screen::Events)),
        None
    );
    assert_eq!(
        action(&keymap, "c", ActionPlace::Event),
        Some(Action::CloseEvent)
    );
}

#[test]
fn h_opens_handover_on_the_on_call_screen_else_goes_back() {
    let default = Keymap::default();
    let on_call = |keymap: &Keymap, keys| action(keymap, keys, ActionPlace::Screen(Screen::OnCall));
    assert_eq!(on_call(&default, "h"), Some(Action::Handover));
    assert_eq!(on_call(&default, "<Left>"), Some(Action::Back));
    assert_eq!(
        action(&default, "h", ActionPlace::Screen(Screen::Events)),
        Some(Action::Back)
    );
    let rebound = Keymap::new(&[setting(None, "back", &["b"])]);
    let problems = rebound.unwrap_err();
    assert!(problems[0].to_string().contains("group_by"), "{problems:?}");
    let rebound = Keymap::new(&[setting(None, "back", &["\\"])]).unwrap();
    assert_eq!(on_call(&rebound, "\\"), Some(Action::Back));
    assert_eq!(on_call(&rebound, "<Left>"), None);
    let same = Keymap::new(&[setting(None, "back", &["h", "esc"])]).unwrap();
    assert_eq!(on_call(&same, "h"), Some(Action::Handover));
}

#[test]
fn global_action_can_be_rebound_in_one_place() {
    let settings = [setting(Some("clients"), "copy", &["B"])];
    let keymap = Keymap::new(&settings).unwrap();
    assert_eq!(
        action(&keymap, "B", ActionPlace::Many(Kind::Client)),
        Some(Action::Copy)
    );
    assert_eq!(action(&keymap, "y", ActionPlace::Many(Kind::Client)), None);
    assert_eq!(
        action(&keymap, "y", ActionPlace::Many(Kind::Rule)),
        Some(Action::Copy)
    );
}

#[test]
fn invalid_keys_are_reported_with_a_suggestion() {
    let cases = [
        (setting(None, "quti", &["x"]), "the nearest is `quit`"),
        (
            setting(Some("evnts"), "copy", &["x"]),
            "the nearest is `events`",
        ),
        (setting(Some("rules"), "pause", &["x"]), "only in events"),
        (
            setting(None, "copy", &["hyper-x"]),
            "`hyper-x` is not a key",
        ),
        (setting(None, "copy", &[""]), "expected a key"),
        (setting(None, "copy", &["a b c d e"]), "more than 4 keys"),
        (setting(None, "copy", &["g esc"]), "cancels a key sequence"),
        (setting(None, "copy", &["ctrl-i"]), "send `ctrl-i` as `tab`"),
        (setting(None, "copy", &["q"]), "`q` is also `quit`"),
        (
            setting(None, "copy", &["g c"]),
            "`g c` is also `go_clients`",
        ),
        (setting(None, "copy", &["j c"]), "because `j` is `down`"),
        (setting(None, "copy", &["ctrl-c"]), "always quits"),
        (setting(None, "form_save", &["s"]), "is used for typing"),
        (setting(None, "quit", &[]), "needs a key"),
        (setting(None, "help", &["?"]), "none is bound in form"),
    ];
    for (setting, says) in cases {
        let message = problems(std::slice::from_ref(&setting));
        let at = format!("line of {}: keys.", setting.action);
        assert!(message.starts_with(&at), "{message}");
        assert!(message.contains(says), "{setting:?}: {message}");
    }
}

#[test]
fn all_key_problems_are_reported_once() {
    let settings = [
        setting(None, "nonsense", &["x"]),
        setting(None, "copy", &["ctrl-nothing"]),
        setting(None, "forward", &["W"]),
        setting(None, "retry_now", &["W"]),
    ];
    let message = problems(&settings);
    assert_eq!(message.lines().count(), 3, "{message}");
    assert!(
        message.contains("`W` is also `forward` (line of forward)"),
        "{message}"
    );
}

#[test]
fn documented_key_table_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/console/keys.md");
    let truth = Keymap::default().reference_text();
    if std::env::var_os("BELLWETHER_UPDATE_KEYS").is_some() {
        std::fs::write(path, &truth).unwrap();
    }
    let message = std::fs::read_to_string(path).unwrap();
    assert!(
        message == truth,
        "{path} is out of date with the list of actions; `just keys` rewrites it"
    );
}

#[test]
fn key_table_shows_configured_keys() {
    let settings = [
        setting(None, "top", &["g z"]),
        setting(Some("events"), "mark", &["m"]),
    ];
    let message = Keymap::new(&settings).unwrap().reference_text();
    assert!(
        message.contains("| `g z` | Go to the top | `top` |"),
        "{message}"
    );
    assert!(
        message.contains("| `space` `m` (events) | Mark"),
        "{message}"
    );
}
