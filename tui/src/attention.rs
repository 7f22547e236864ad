//! Notices to a terminal that is not focused: their settings and escape sequences.

use std::str::FromStr;

use bellwether_proto::cloud::Severity;

use crate::text;

const NAME: &str = "Bellwether";
/// Maximum length of a notice; notifications of desktops are short.
const LETTERS: usize = 200;

/// The escape sequence that makes a terminal show a notification on the desktop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Popup {
    Off,
    #[default]
    Osc9,
    Osc777,
    Osc99,
}

impl Popup {
    pub const ALL: [Self; 4] = [Self::Off, Self::Osc9, Self::Osc777, Self::Osc99];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Osc9 => "osc9",
            Self::Osc777 => "osc777",
            Self::Osc99 => "osc99",
        }
    }

    fn sequence(self, text: &str) -> String {
        match self {
            Self::Off => String::new(),
            Self::Osc9 => format!("\x1b]9;{NAME}: {text}\x1b\\"),
            Self::Osc777 => format!("\x1b]777;notify;{NAME};{text}\x1b\\"),
            Self::Osc99 => format!("\x1b]99;;{NAME}: {text}\x1b\\"),
        }
    }
}

/// A span of local time, in minutes after midnight; it may contain midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    start: u16,
    end: u16,
}

impl QuietHours {
    pub(crate) fn contains(self, minute: u16) -> bool {
        if self.start < self.end {
            (self.start..self.end).contains(&minute)
        } else {
            minute >= self.start || minute < self.end
        }
    }
}

impl FromStr for QuietHours {
    type Err = ();

    /// Parses a span such as `22:00-07:00`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let is_number = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
            let parsed = |it: &str| it.parse::<u16>().ok().filter(|_| is_number(it));
            let (hour, minute) = (parsed(hour)?, parsed(minute)?);
            (hour < 24 && minute < 60).then_some(hour * 60 + minute)
        };
        let (start, end) = text.split_once('-').ok_or(())?;
        match (minute(start), minute(end)) {
            (Some(start), Some(end)) if start != end => Ok(Self { start, end }),
            _ => Err(()),
        }
    }
}

/// Settings of notices.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    pub enabled: bool,
    /// Minimum severity of the events.
    pub severity: Severity,
    pub bell: bool,
    pub popup: Popup,
    /// Whether the title of the terminal shows the number of new events.
    pub title: bool,
    pub quiet: Option<QuietHours>,
    /// Whether plain mode gives notices too.
    pub plain: bool,
    /// Whether the console runs in tmux, which forwards a sequence only if it is wrapped.
    pub tmux: bool,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            enabled: true,
            severity: Severity::Critical,
            bell: true,
            popup: Popup::default(),
            title: true,
            quiet: None,
            plain: false,
            tmux: false,
        }
    }
}

impl Notices {
    /// Returns the bytes of a notice. They do not change the screen.
    pub(crate) fn signal(&self, sentence: &str) -> String {
        let clean = text::clean_text(sentence);
        let letters = clean.chars().filter(|it| !it.is_control()).take(LETTERS);
        let mut signal = self.popup.sequence(&letters.collect::<String>());
        if self.tmux && !signal.is_empty() {
            let inner = signal.replace('\x1b', "\x1b\x1b");
            signal = format!("\x1bPtmux;{inner}\x1b\\");
        }
        if self.bell {
            signal.push('\x07');
        }
        signal
    }

    pub(crate) fn title(&self, count: usize, is_ascii: bool) -> Option<String> {
        let sign = if is_ascii { '^' } else { '▲' };
        self.title.then(|| format!("{sign}{count} {NAME}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_contain_their_start_and_may_contain_midnight() {
        for (span, minute, is_quiet) in [
            ("22:00-07:00", 22 * 60, true),
            ("22:00-07:00", 6 * 60 + 59, true),
            ("22:00-07:00", 7 * 60, false),
            ("12:30 - 13:00", 12 * 60 + 30, true),
            ("12:30-13:00", 12 * 60 + 29, false),
        ] {
            let quiet: QuietHours = span.parse().unwrap();
            assert_eq!(quiet.contains(minute), is_quiet, "{span} at {minute}");
        }
        for span in [
            "",
            "22:00",
            "22-7",
            "24:00-07:00",
            "7:00-8:00",
            "+7:00-08:00",
            "08:00-08:00",
        ] {
            assert_eq!(span.parse::<QuietHours>(), Err(()), "{span}");
        }
    }

    #[test]
    fn signal_contains_no_control_characters_of_the_event() {
        for popup in Popup::ALL {
            for tmux in [false, true] {
                let notices = Notices {
                    popup,
                    tmux,
                    ..Notices::default()
                };
                let plain = notices.signal("");
                let hostile = notices.signal("a\x1b\\\x07\u{9c}\u{9b}2J\r\n\0b");
                let controls = |text: &str| text.chars().filter(|it| it.is_control()).count();
                assert_eq!(controls(&hostile), controls(&plain), "{popup:?} {tmux}");
            }
        }
    }

    #[test]
    fn signal_is_the_chosen_sequence_and_the_bell() {
        let signal = |popup, bell, tmux| {
            let settings = Notices {
                bell,
                popup,
                tmux,
                ..Notices::default()
            };
            settings.signal("disk")
        };
        for (found, expected) in [
            (signal(Popup::Off, true, true), "\x07"),
            (signal(Popup::Off, false, false), ""),
            (
                signal(Popup::Osc9, true, false),
                "\x1b]9;Bellwether: disk\x1b\\\x07",
            ),
            (
                signal(Popup::Osc777, false, false),
                "\x1b]777;notify;Bellwether;disk\x1b\\",
            ),
            (
                signal(Popup::Osc99, false, false),
                "\x1b]99;;Bellwether: disk\x1b\\",
            ),
            (
                signal(Popup::Osc9, true, true),
                "\x1bPtmux;\x1b\x1b]9;Bellwether: disk\x1b\x1b\\\x1b\\\x07",
            ),
        ] {
            assert_eq!(found, expected);
        }
        let title = |is_ascii| Notices::default().title(3, is_ascii).unwrap();
        assert_eq!(
            [title(false), title(true)],
            ["▲3 Bellwether", "^3 Bellwether"]
        );
    }
}
