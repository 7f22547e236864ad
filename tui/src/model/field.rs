//! A text field: a cursor between graphemes, readline's keys, and a size limit.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::limits;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextField {
    text: String,
    /// Byte offset at a grapheme boundary.
    cursor: usize,
    pub(crate) lines: bool,
    /// Whether all text is selected; typing replaces it.
    is_selected: bool,
}

impl TextField {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            cursor: text.len(),
            text,
            lines: false,
            is_selected: false,
        }
    }

    pub(crate) fn with_cursor_at_start(text: impl Into<String>) -> Self {
        Self {
            cursor: 0,
            ..Self::new(text)
        }
    }

    pub(crate) fn with_selected_text(text: impl Into<String>) -> Self {
        let field = Self::new(text);
        Self {
            is_selected: !field.text.is_empty(),
            ..field
        }
    }

    pub(crate) fn is_selected(&self) -> bool {
        self.is_selected
    }

    pub(crate) fn with_lines(mut self) -> Self {
        self.lines = true;
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn split_at_cursor(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Returns a copy in which each line is masked after the given number of bytes.
    pub(crate) fn to_masked(&self, visible_bytes: impl Fn(&str) -> usize) -> Self {
        let (mut text, mut cursor, mut start) = (String::new(), 0, 0);
        for line in self.text.split_inclusive('\n') {
            let visible = visible_bytes(line.trim_end_matches('\n'));
            for (at, char) in line.char_indices() {
                let is_shown = at < visible || char == '\n';
                text.push(if is_shown { char } else { '•' });
                if start + at < self.cursor {
                    cursor = text.len();
                }
            }
            start += line.len();
        }
        Self {
            text,
            cursor,
            ..self.clone()
        }
    }

    /// Inserts text at the cursor. Newlines become spaces in a single-line field, and text beyond
    /// the size limit is dropped.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = if self.lines {
            text
        } else {
            text.trim_end_matches('\n').replace('\n', " ")
        };
        if std::mem::take(&mut self.is_selected) {
            self.remove(0, self.text.len());
        }
        for grapheme in text.graphemes(true) {
            if self.text.len() + grapheme.len() > limits::FIELD_BYTES {
                return;
            }
            self.text.insert_str(self.cursor, grapheme);
            self.cursor += grapheme.len();
        }
    }

    /// Handles a key; returns `false` if the key has no meaning in a text field.
    pub(crate) fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let types = matches!(key.code, KeyCode::Char(_)) && !control && !alt;
        let was_selected = !types && std::mem::take(&mut self.is_selected);
        if was_selected && matches!(key.code, KeyCode::Backspace | KeyCode::Delete) {
            self.remove(0, self.text.len());
            return true;
        }
        match key.code {
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('b') if alt => self.cursor = self.word_left(),
            KeyCode::Char('f') if alt => self.cursor = self.word_right(),
            KeyCode::Char('u') if control => self.remove(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.remove(self.cursor, self.line_end()),
            KeyCode::Char('w') if control => self.remove(self.word_left(), self.cursor),
            KeyCode::Char('h') if control => self.remove(self.previous_boundary(), self.cursor),
            KeyCode::Backspace if alt => self.remove(self.word_left(), self.cursor),
            KeyCode::Char(char) if !control && !alt => self.insert(char.encode_utf8(&mut [0; 4])),
            KeyCode::Enter if self.lines => self.insert("\n"),
            KeyCode::Backspace => self.remove(self.previous_boundary(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.next_boundary()),
            KeyCode::Left if control || alt => self.cursor = self.word_left(),
            KeyCode::Right if control || alt => self.cursor = self.word_right(),
            KeyCode::Left => self.cursor = self.previous_boundary(),
            KeyCode::Right => self.cursor = self.next_boundary(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up if self.lines => return self.move_vertically(false),
            KeyCode::Down if self.lines => return self.move_vertically(true),
            _ => return false,
        }
        true
    }

    pub(crate) fn unselect(&mut self) {
        self.is_selected = false;
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn previous_boundary(&self) -> usize {
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        cursor
            .prev_boundary(&self.text, 0)
            .ok()
            .flatten()
            .unwrap_or(0)
    }

    fn next_boundary(&self) -> usize {
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        cursor
            .next_boundary(&self.text, 0)
            .ok()
            .flatten()
            .unwrap_or(self.text.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..]
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_left(&self) -> usize {
        let mut words = self.text[..self.cursor].unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_right(&self) -> usize {
        let mut words = self.text[self.cursor..].unicode_word_indices();
        words
            .next()
            .map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    /// Moves up or down a line in the same column; returns `false` if there is no such line.
    fn move_vertically(&mut self, down: bool) -> bool {
        let start = self.line_start();
        let column = self.text[start..self.cursor].graphemes(true).count();
        let line = if down {
            let end = self.line_end();
            if end == self.text.len() {
                return false;
            }
            end + 1
        } else {
            if start == 0 {
                return false;
            }
            self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1)
        };
        let rest = self.text[line..].split('\n').next().unwrap_or_default();
        self.cursor = line
            + rest
                .graphemes(true)
                .take(column)
                .map(str::len)
                .sum::<usize>();
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keymap::parse;

    fn type_keys(start: &str, keys: &str) -> String {
        let mut field = TextField::new(start).with_lines();
        for key in parse(keys).unwrap() {
            field.press(key);
        }
        let (before, after) = field.split_at_cursor();
        format!("{before}|{after}")
    }

    #[test]
    fn editing_keys_work_as_in_a_shell() {
        let cases = [
            ("abc", "<Left><Backspace>", "a|c"),
            ("one two", "<C-w>", "one |"),
            ("one two", "<C-a>x", "x|one two"),
            ("one\ntwo", "<C-u>", "one\n|"),
            ("one\ntwo", "<Up>", "one|\ntwo"),
            ("one\ntwo", "<Up><Home><Down>", "one\n|two"),
            ("über👩\u{200d}🚒", "<Backspace>", "über|"),
            ("ab", "<Home><Delete>", "|b"),
            ("ab", "<Home><C-k>", "|"),
        ];
        for (start, keys, end) in cases {
            assert_eq!(type_keys(start, keys), end, "{start:?} {keys}");
        }
    }

    #[test]
    fn typing_replaces_selected_text() {
        for (keys, text) in [
            ("x", "x"),
            ("<Backspace>", ""),
            ("<Delete>x", "x"),
            ("<Left>x", "holxd"),
            ("<End>er", "holder"),
        ] {
            let mut field = TextField::with_selected_text("hold");
            for key in parse(keys).unwrap() {
                field.press(key);
            }
            assert_eq!(field.text(), text, "{keys}");
        }
    }

    #[test]
    fn masked_copy_keeps_lines_and_cursor() {
        let mut field = TextField::new("a: x\nb: üy").with_lines();
        field.press(parse("<Left>").unwrap()[0]);
        let masked = field.to_masked(|line| line.find(':').map_or(line.len(), |at| at + 1));
        assert_eq!(masked.split_at_cursor(), ("a:••\nb:••", "•"));
    }

    #[test]
    fn paste_into_a_single_line_field_stays_on_one_line() {
        let mut field = TextField::default();
        field.insert("a\r\nb\n");
        assert_eq!(field.text(), "a b");
    }

    proptest! {
        #[test]
        fn cursor_stays_on_a_char_boundary(
            start in any::<String>(),
            keys in prop::collection::vec(0_usize..14, 0..60)
        ) {
            let all = parse("a<Left><Right><Up><Down><Home><End><Backspace><Delete><C-w><C-k><C-u>é<Enter>")
                .unwrap();
            let mut field = TextField::new(start).with_lines();
            for key in keys {
                field.press(all[key]);
                prop_assert!(field.text.is_char_boundary(field.cursor));
            }
        }
    }
}
