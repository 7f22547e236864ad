//! Lookup of keys in the list of actions, single or within a sequence.

use crossterm::event::{KeyCode, KeyEvent};

use crate::{
    keymap::{self, Action, KeyLookup, Requirement},
    limits,
    model::Model,
    route::Route,
    theme::Token,
};

const JUST_CHANGED: &str = "the selected row just changed; press the key again";

impl Model {
    /// Looks up a key after those of an incomplete sequence. Returns whether it has a meaning.
    pub(super) fn continue_sequence(&mut self, key: KeyEvent) -> bool {
        let mut keys = std::mem::take(&mut self.begun);
        self.begun_until_ms = None;
        if key.code == KeyCode::Esc && !keys.is_empty() {
            return true;
        }
        keys.push(keymap::normalize(key));
        let places = self.page.route.key_places();
        let mut meaning = self.keymap.look_up(&keys, &places);
        if matches!(meaning, KeyLookup::Nothing) {
            keys.pop();
            keys.push(keymap::normalize(keymap::to_latin_position(key)));
            meaning = self.keymap.look_up(&keys, &places);
        }
        match meaning {
            KeyLookup::Act(entry) => {
                let is_on_row = matches!(entry.need, Requirement::Write(_)) && !entry.lines.all;
                let is_on_events = self.page.route == Route::EVENTS;
                let is_unread = self.page.list.is_unread(self.now_ms);
                if entry.action != Action::Follow {
                    self.page.list.follows = false;
                }
                if is_on_events && is_on_row && is_unread && self.page.list.marks.is_empty() {
                    self.show_notice(Token::Warning, JUST_CHANGED);
                } else {
                    self.follow.push_back(entry.action);
                }
            }
            KeyLookup::Run(_) if self.page.list.is_unread(self.now_ms) => {
                self.show_notice(Token::Warning, JUST_CHANGED);
            }
            KeyLookup::Run(at) => self.custom_command = Some(at),
            KeyLookup::Wait => {
                self.begun = keys;
                self.begun_until_ms = Some(self.now_ms.saturating_add(limits::SEQUENCE_MS));
            }
            KeyLookup::Nothing if keys.len() > 1 => {
                let keys = keymap::format_keys(&keys);
                self.show_notice(Token::Info, format!("{keys} does nothing here"));
            }
            KeyLookup::Nothing => return false,
        }
        true
    }

    pub(super) fn cancel_sequence(&mut self) -> bool {
        self.begun_until_ms = None;
        !std::mem::take(&mut self.begun).is_empty()
    }
}
