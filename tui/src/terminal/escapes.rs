//! Reassembles escape sequences that arrive in parts, so that no part is treated as a key.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::time::Instant;

use crate::limits;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Nothing,
    Escape,
    /// `ESC O`.
    Function,
    /// A control sequence: `ESC [` and the parameters so far.
    Control(String),
    /// A paste that arrives in parts, and the possible beginning of its terminator.
    Paste {
        text: String,
        end: String,
    },
}

/// Delays Esc and the following keys until a sequence is complete.
#[derive(Debug)]
pub(super) struct EscapeParser {
    delay: Duration,
    stage: Stage,
    until: Option<Instant>,
}

/// Terminator of a paste, after Esc.
const PASTE_END: &str = "[201~";

impl EscapeParser {
    /// Creates a parser that waits this long for the next part of a sequence. If the time is zero,
    /// Esc is a key immediately.
    pub(super) fn new(delay: Duration) -> Self {
        Self {
            delay,
            stage: Stage::Nothing,
            until: None,
        }
    }

    /// Returns the time at which to call [`Self::flush_overdue`] if nothing is received before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Returns the pending event after the deadline: Esc becomes a key, an incomplete sequence is
    /// dropped.
    pub(super) fn flush_overdue(&mut self, now: Instant) -> Option<Event> {
        self.until.take_if(|until| *until <= now)?;
        match std::mem::take(&mut self.stage) {
            Stage::Escape => Some(Event::Key(KeyCode::Esc.into())),
            Stage::Paste { text, .. } => Some(Event::Paste(text)),
            Stage::Nothing | Stage::Function | Stage::Control(_) => None,
        }
    }

    pub(super) fn handle(&mut self, event: Event, now: Instant) -> Vec<Event> {
        let late = self.flush_overdue(now);
        let handled = match &event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.handle_key(*key),
            _ if matches!(self.stage, Stage::Paste { .. }) => Vec::new(),
            _ => self.handle_other(event),
        };
        self.until = match self.stage {
            Stage::Nothing => None,
            // A paste over a slow connection may pause; the rest of it must not be treated as keys.
            Stage::Paste { .. } => Some(now + self.delay.max(limits::PASTE_PAUSE)),
            _ => Some(now + self.delay),
        };
        late.into_iter().chain(handled).collect()
    }

    /// Handles an event other than a key, which ends an incomplete sequence.
    fn handle_other(&mut self, event: Event) -> Vec<Event> {
        match std::mem::take(&mut self.stage) {
            Stage::Escape => vec![Event::Key(KeyCode::Esc.into()), event],
            _ => vec![event],
        }
    }

    fn handle_key(&mut self, key: KeyEvent) -> Vec<Event> {
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let typed = match key.code {
            KeyCode::Char(char) if plain => Some(char),
            _ => None,
        };
        let is_escape = key.code == KeyCode::Esc && key.modifiers.is_empty();
        match std::mem::take(&mut self.stage) {
            Stage::Nothing if is_escape && !self.delay.is_zero() => {
                self.stage = Stage::Escape;
                Vec::new()
            }
            Stage::Nothing => vec![Event::Key(key)],
            Stage::Escape => self.handle_after_escape(key, typed),
            Stage::Function => typed.and_then(function_key).into_iter().collect(),
            Stage::Control(text) => match typed {
                Some(char) => self.handle_control(text, char),
                None => self.handle_key(key),
            },
            Stage::Paste { text, end } => self.handle_paste(text, end, key, typed),
        }
    }

    fn handle_after_escape(&mut self, key: KeyEvent, typed: Option<char>) -> Vec<Event> {
        match typed {
            Some('[') => self.stage = Stage::Control(String::new()),
            Some('O') => self.stage = Stage::Function,
            // `ESC ]` starts an OSC response and `ESC \` is the string terminator; elsewhere, they
            // are Alt keys.
            Some(char @ (']' | '\\')) => {
                let key = KeyEvent::new(KeyCode::Char(char), KeyModifiers::ALT);
                return vec![Event::Key(key)];
            }
            _ => {
                let mut keys = vec![Event::Key(KeyCode::Esc.into())];
                keys.extend(self.handle_key(key));
                return keys;
            }
        }
        Vec::new()
    }

    fn handle_control(&mut self, mut text: String, char: char) -> Vec<Event> {
        match char {
            '\u{20}'..='\u{3f}' if text.len() < limits::ESCAPE_BYTES => {
                text.push(char);
                self.stage = Stage::Control(text);
                Vec::new()
            }
            '~' if text == "200" => {
                self.stage = Stage::Paste {
                    text: String::new(),
                    end: String::new(),
                };
                Vec::new()
            }
            last => control_sequence_event(&text, last).into_iter().collect(),
        }
    }

    fn handle_paste(
        &mut self,
        mut text: String,
        mut end: String,
        key: KeyEvent,
        typed: Option<char>,
    ) -> Vec<Event> {
        match (key.code, typed) {
            (KeyCode::Esc, _) => "\x1b".clone_into(&mut end),
            (_, Some(char)) if !end.is_empty() => {
                end.push(char);
                if end[1..] == *PASTE_END {
                    return vec![Event::Paste(text)];
                }
                if !PASTE_END.starts_with(&end[1..]) {
                    text += &std::mem::take(&mut end)[1..];
                }
            }
            (_, Some(char)) => text.push(char),
            (KeyCode::Enter, _) => text.push('\n'),
            (KeyCode::Tab, _) => text.push('\t'),
            _ => {}
        }
        // Truncates a text that is longer than any field.
        if text.len() > limits::FIELD_BYTES {
            text.pop();
        }
        self.stage = Stage::Paste { text, end };
        Vec::new()
    }
}

fn function_key(char: char) -> Option<Event> {
    let code = match char {
        'P'..='S' => KeyCode::F(u8::try_from(u32::from(char) - u32::from('O')).ok()?),
        'M' => KeyCode::Enter,
        other => cursor_key(other)?,
    };
    Some(Event::Key(code.into()))
}

fn cursor_key(char: char) -> Option<KeyCode> {
    Some(match char {
        'A' => KeyCode::Up,
        'B' => KeyCode::Down,
        'C' => KeyCode::Right,
        'D' => KeyCode::Left,
        'H' => KeyCode::Home,
        'F' => KeyCode::End,
        _ => return None,
    })
}

/// Returns the key for the parameters and final character after `ESC [`; `None` if unknown.
fn control_sequence_event(parameters: &str, last: char) -> Option<Event> {
    match (parameters, last) {
        ("", 'I') => return Some(Event::FocusGained),
        ("", 'O') => return Some(Event::FocusLost),
        _ => {}
    }
    let mut numbers = parameters.split(';').map(|part| {
        let number = part.split(':').next().unwrap_or_default();
        number.parse::<u32>()
    });
    let first = numbers.next().and_then(Result::ok);
    let modifiers = key_modifiers(numbers.next().and_then(Result::ok).unwrap_or(1));
    let code = match (last, first) {
        ('Z', _) => KeyCode::BackTab,
        ('P'..='S', _) => KeyCode::F(u8::try_from(u32::from(last) - u32::from('O')).ok()?),
        ('~', Some(number)) => numbered_key(number)?,
        ('u', Some(number)) => match number {
            27 => KeyCode::Esc,
            13 => KeyCode::Enter,
            9 => KeyCode::Tab,
            127 => KeyCode::Backspace,
            number => KeyCode::Char(char::from_u32(number)?),
        },
        (last, _) => cursor_key(last)?,
    };
    Some(Event::Key(KeyEvent::new(code, modifiers)))
}

fn numbered_key(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(u8::try_from(number - 10).ok()?),
        17..=21 => KeyCode::F(u8::try_from(number - 11).ok()?),
        23..=24 => KeyCode::F(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

/// Decodes modifiers: one more than the sum of shift, alt and control.
fn key_modifiers(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
    ] {
        modifiers.set(modifier, bits & bit != 0);
    }
    modifiers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::parse;

    const DELAY: Duration = Duration::from_millis(40);

    /// Returns the events for keys that arrive with this delay between them, including the pending
    /// event.
    fn handled_events(keys: &str, apart: Duration) -> Vec<Event> {
        let mut escapes = EscapeParser::new(DELAY);
        let mut now = Instant::now();
        let mut all = Vec::new();
        for key in parse(keys).unwrap() {
            all.extend(escapes.handle(Event::Key(key), now));
            now += apart;
        }
        all.extend(escapes.flush_overdue(now + limits::PASTE_PAUSE));
        all
    }

    fn char_events(text: &str) -> Vec<Event> {
        parse(text).unwrap().into_iter().map(Event::Key).collect()
    }

    fn single_key_event(code: KeyCode, modifiers: KeyModifiers) -> Vec<Event> {
        vec![Event::Key(KeyEvent::new(code, modifiers))]
    }

    #[test]
    fn split_escape_sequence_is_one_key() {
        let none = KeyModifiers::NONE;
        for (pieces, code, modifiers) in [
            ("<Esc>[A", KeyCode::Up, none),
            ("<Esc>OB", KeyCode::Down, none),
            ("<Esc>OP", KeyCode::F(1), none),
            ("<Esc>[1;5D", KeyCode::Left, KeyModifiers::CONTROL),
            ("<Esc>[3~", KeyCode::Delete, none),
            ("<Esc>[24~", KeyCode::F(12), none),
            ("<Esc>[Z", KeyCode::BackTab, none),
            ("<Esc>[27u", KeyCode::Esc, none),
            ("<Esc>[115;5u", KeyCode::Char('s'), KeyModifiers::CONTROL),
        ] {
            let found = handled_events(pieces, Duration::from_millis(20));
            assert_eq!(found, single_key_event(code, modifiers), "{pieces}");
        }
    }

    #[test]
    fn unknown_escape_sequences_are_ignored() {
        for pieces in [
            "<Esc>[<lt>0;3;1M",
            "<Esc>[1I",
            "<Esc>[12",
            "<Esc>O",
            "<Esc>[",
        ] {
            let found = handled_events(pieces, Duration::from_millis(20));
            assert_eq!(found, Vec::new(), "{pieces}");
        }
        let endless = format!("<Esc>[{}q", "1;".repeat(500));
        let found = handled_events(&endless, Duration::ZERO);
        assert!(found.len() <= 1_000, "{}", found.len());
    }

    #[test]
    fn split_report_of_the_focus_is_no_key() {
        for (pieces, event) in [
            ("<Esc>[I", Event::FocusGained),
            ("<Esc>[O", Event::FocusLost),
        ] {
            let found = handled_events(pieces, Duration::from_millis(20));
            assert_eq!(found, [event], "{pieces}");
        }
    }

    #[test]
    fn lone_esc_is_a_key_after_the_delay() {
        let after = Duration::from_millis(50);
        for (pieces, found) in [
            ("<Esc>", "<Esc>"),
            ("<Esc>[", "<Esc>["),
            ("<Esc>OA", "<Esc>OA"),
        ] {
            assert_eq!(
                handled_events(pieces, after),
                char_events(found),
                "{pieces}"
            );
        }
        let soon = Duration::from_millis(5);
        assert_eq!(handled_events("<Esc>jx", soon), char_events("<Esc>jx"));
        assert_eq!(
            handled_events("<Esc><Esc>", soon),
            char_events("<Esc><Esc>")
        );
        assert_eq!(handled_events("<Esc>]1", soon), char_events("<A-]>1"));
        let mut none = EscapeParser::new(Duration::ZERO);
        let esc = char_events("<Esc>").remove(0);
        assert_eq!(none.handle(esc.clone(), Instant::now()), [esc]);
    }

    #[test]
    fn split_paste_never_runs_as_keys() {
        let soon = Duration::from_millis(5);
        let pasted = |text: &str| vec![Event::Paste(text.to_owned())];
        let found = handled_events("<Esc>[200~dy<Enter>q<Esc>[201~", soon);
        assert_eq!(found, pasted("dy\nq"));
        let mut escapes = EscapeParser::new(DELAY);
        let mut now = Instant::now();
        let mut found = Vec::new();
        for key in char_events("<Esc>[200~dd<Esc>[201~") {
            found.extend(escapes.handle(key.clone(), now));
            let is_text = matches!(&key, Event::Key(key) if key.code == KeyCode::Char('d'));
            now += if is_text { 10 * DELAY } else { soon };
            found.extend(escapes.flush_overdue(now));
        }
        assert_eq!(found, pasted("dd"));
        // The terminator of the paste is lost.
        assert_eq!(handled_events("<Esc>[200~dy", soon), pasted("dy"));
        assert_eq!(
            handled_events("<Esc>[200~a<Esc>[2Jb", soon),
            pasted("a[2Jb")
        );
    }
}
