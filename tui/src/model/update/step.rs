//! Lookup of keys in the list of actions, single or within a sequence.

use crossterm::event::{KeyCode, KeyEvent};

use crate::{
    keymap::{self, Action, KeyMeaning},
    limits,
    model::Model,
    route::Route,
    theme::Token,
};

fn is_cursor_move(action: Action) -> bool {
    use Action::{Bottom, Down, PageDown, PageUp, Top, Up};
    matches!(action, Up | Down | Top | Bottom | PageUp | PageDown)
}

impl Model {
    /// Looks up a key after those of an incomplete sequence. Returns whether it has a meaning.
    pub(super) fn step(&mut self, key: KeyEvent) -> bool {
        let mut keys = std::mem::take(&mut self.begun);
        self.begun_until_ms = None;
        if key.code == KeyCode::Esc && !keys.is_empty() {
            return true;
        }
        keys.push(keymap::normalize(key));
        let places = self.page.route.places();
        let mut meaning = self.keymap.step(&keys, &places);
        if matches!(meaning, KeyMeaning::Nothing) {
            keys.pop();
            keys.push(keymap::normalize(keymap::to_latin_position(key)));
            meaning = self.keymap.step(&keys, &places);
        }
        match meaning {
            KeyMeaning::Act(entry) => {
                if !is_cursor_move(entry.action) {
                    self.select_seen();
                }
                self.follow.push_back(entry.action);
            }
            KeyMeaning::Wait => {
                self.begun = keys;
                self.begun_until_ms = Some(self.now_ms.saturating_add(limits::SEQUENCE_MS));
            }
            KeyMeaning::Nothing if keys.len() > 1 => {
                let keys = keymap::format_keys(&keys);
                self.show_notice(Token::Info, format!("{keys} has no action here"));
            }
            KeyMeaning::Nothing => return false,
        }
        true
    }

    fn select_seen(&mut self) {
        let list = &self.page.list;
        let follows = self.page.route == Route::Events && list.sort.is_none();
        if follows && list.marks.is_empty() && !list.pinned && list.wanted.is_none() {
            self.page.list.select_seen(&self.store.events, self.now_ms);
        }
    }

    pub(super) fn cancel_sequence(&mut self) -> bool {
        self.begun_until_ms = None;
        !std::mem::take(&mut self.begun).is_empty()
    }
}
