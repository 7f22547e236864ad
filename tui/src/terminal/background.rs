//! Queries the terminal's background, and filters the response out of the input.

use std::io::{self, Write};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use crate::{limits, theme::Background};

/// A query sent once, after the first frame. Nothing waits for the response, which may arrive
/// between keys at any time, or never. No part of it is treated as a key.
#[derive(Debug, Default)]
pub(super) struct BackgroundQuery {
    state: QueryState,
    held: Vec<Event>,
    text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueryState {
    #[default]
    NotSent,
    Sent,
    Answered,
}

#[derive(Debug, PartialEq)]
pub(super) enum HandledInput {
    Event(Event),
    /// The buffered events, which turned out not to be a response.
    Events(Vec<Event>),
    Background(Background),
    Nothing,
}

/// Start of a response, after `ESC ]`.
const START: &str = "11;rgb";

impl BackgroundQuery {
    pub(super) fn can_send_query(&self) -> bool {
        self.state == QueryState::NotSent
    }

    pub(super) fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.state = QueryState::Sent;
        out.write_all(b"\x1b]11;?\x1b\\")?;
        out.flush()
    }

    /// Handles an event. The terminal's response arrives decoded as keys: Alt-], its characters,
    /// and Alt-\ or Ctrl-G.
    pub(super) fn handle(&mut self, event: Event) -> HandledInput {
        let Event::Key(key) = &event else {
            return HandledInput::Event(event);
        };
        if self.state != QueryState::Sent {
            return HandledInput::Event(event);
        }
        if self.held.is_empty() {
            if is(key, ']', KeyModifiers::ALT) {
                self.held.push(event);
                return HandledInput::Nothing;
            }
            return HandledInput::Event(event);
        }
        let escaped =
            matches!(self.held.last(), Some(Event::Key(last)) if last.code == KeyCode::Esc);
        let end = is(key, '\\', KeyModifiers::ALT)
            || is(key, 'g', KeyModifiers::CONTROL)
            || (escaped && is(key, '\\', KeyModifiers::NONE));
        if end {
            return self.parse_response(event);
        }
        let goes_on = match key.code {
            // Waits for the second byte: the two bytes of the terminator may arrive separately.
            KeyCode::Esc => !escaped && self.text.len() > START.len(),
            KeyCode::Char(char) if key.modifiers.is_empty() && !escaped => {
                self.text.push(char);
                is_partial_response(&self.text)
            }
            _ => false,
        };
        if goes_on {
            self.held.push(event);
            HandledInput::Nothing
        } else {
            self.flush_event(event)
        }
    }

    fn parse_response(&mut self, event: Event) -> HandledInput {
        if self.text.len() <= START.len() {
            return self.flush_event(event);
        }
        self.state = QueryState::Answered;
        self.held.clear();
        let colour = self.text.strip_prefix("11;").unwrap_or_default();
        Background::from_response(colour).map_or(HandledInput::Nothing, HandledInput::Background)
    }

    fn flush_event(&mut self, event: Event) -> HandledInput {
        self.text.clear();
        if self.held.is_empty() {
            return HandledInput::Event(event);
        }
        let mut events = std::mem::take(&mut self.held);
        events.push(event);
        HandledInput::Events(events)
    }
}

fn is(key: &KeyEvent, char: char, modifiers: KeyModifiers) -> bool {
    key.code == KeyCode::Char(char) && key.modifiers == modifiers
}

fn is_partial_response(text: &str) -> bool {
    let colour = text
        .strip_prefix(START)
        .map(|colour| colour.strip_prefix('a').unwrap_or(colour));
    match colour {
        None => START.starts_with(text),
        Some(colour) => {
            colour.len() <= limits::COLOUR_BYTES
                && colour
                    .chars()
                    .all(|char| char.is_ascii_hexdigit() || matches!(char, ':' | '/'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::parse;

    /// Returns the number of remaining keys, and the background found.
    fn handle_all(question: &mut BackgroundQuery, keys: &str) -> (usize, Option<Background>) {
        let mut left = 0;
        let mut background = None;
        for key in parse(keys).unwrap() {
            match question.handle(Event::Key(key)) {
                HandledInput::Event(_) => left += 1,
                HandledInput::Events(events) => left += events.len(),
                HandledInput::Background(message) => background = Some(message),
                HandledInput::Nothing => {}
            }
        }
        (left, background)
    }

    fn sent_query() -> BackgroundQuery {
        let mut question = BackgroundQuery::default();
        question.send(&mut Vec::new()).unwrap();
        question
    }

    #[test]
    fn background_response_is_filtered_from_key_input() {
        let light = Some(Background::Light);
        for (keys, left, background) in [
            ("jj<A-]>11;rgb:fdfd/f6f6/e3e3<A-\\>k", 3, light),
            ("<A-]>11;rgb:00/00/00<C-g>", 0, Some(Background::Dark)),
            ("<A-]>11;rgb:ff/ff/ff<Esc>\\q", 1, light),
            ("<A-]>11;rgb:nonsense", 16, None),
            ("<A-]>12q", 4, None),
            ("<A-]><A-]>", 2, None),
            ("<A-]>11;rgb:/<A-\\>q", 1, None),
        ] {
            assert_eq!(
                handle_all(&mut sent_query(), keys),
                (left, background),
                "{keys}"
            );
        }
    }

    #[test]
    fn unrequested_response_is_passed_on_as_keys() {
        let keys = "<A-]>11;rgb:00/00/00<C-g>";
        assert_eq!(handle_all(&mut BackgroundQuery::default(), keys).0, 17);
        let mut question = sent_query();
        handle_all(&mut question, keys);
        assert_eq!(handle_all(&mut question, keys).0, 17);
    }

    #[test]
    fn overlong_response_is_passed_on_as_keys() {
        let keys = format!("<A-]>11;rgb:{}", "0".repeat(100));
        assert_eq!(handle_all(&mut sent_query(), &keys).0, 108);
    }
}
