//! Capabilities of a terminal, from environment variables and its responses.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The terminal's own sixteen colours.
    #[default]
    Sixteen,
    /// 256 colours, of which most are the same everywhere.
    Many,
    /// 24-bit colours.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

/// Terminals with 24-bit colour that may not report it in `COLORTERM`, for example over ssh.
const FULL_TERMS: [&str; 6] = [
    "alacritty",
    "contour",
    "foot",
    "ghostty",
    "kitty",
    "wezterm",
];

/// Values of `TERM` for terminals with kitty's keyboard protocol. Within tmux and screen, `TERM`
/// has another value.
const KITTY_TERMS: [&str; 5] = ["alacritty", "foot", "ghostty", "kitty", "wezterm"];

/// Whether a terminal supports kitty's keyboard protocol, by `TERM` and the presence of other
/// variables.
#[must_use]
pub fn has_kitty_keys(term: Option<&str>, has: &dyn Fn(&str) -> bool) -> bool {
    let term = term.unwrap_or_default();
    let is_between = has("TMUX") || has("STY");
    let named = KITTY_TERMS.iter().any(|name| term.contains(name));
    !is_between && (named || has("KITTY_WINDOW_ID"))
}

impl Depth {
    #[must_use]
    pub fn from_environment(colorterm: Option<&str>, term: Option<&str>) -> Self {
        let colorterm = colorterm.unwrap_or_default();
        let term = term.unwrap_or_default();
        let full = FULL_TERMS.iter().any(|name| term.contains(name));
        if matches!(colorterm, "truecolor" | "24bit") || term.ends_with("-direct") || full {
            Self::Full
        } else if term.contains("256color") {
            Self::Many
        } else {
            Self::Sixteen
        }
    }
}

impl Background {
    /// Determines the background from `COLORFGBG`: indices among the sixteen colours such as
    /// `15;0`, the background last.
    #[must_use]
    pub fn from_environment(colorfgbg: &str) -> Option<Self> {
        match colorfgbg.rsplit(';').next()?.parse().ok()? {
            0_u8..=6 | 8 => Some(Self::Dark),
            7 | 9..=15 => Some(Self::Light),
            _ => None,
        }
    }

    /// Determines the background from the terminal's response, such as `rgb:1c1c/1c1c/1c1c`: one to
    /// four hexadecimal digits for each of red, green and blue.
    pub(crate) fn from_response(color: &str) -> Option<Self> {
        let parts = color
            .strip_prefix("rgb:")
            .or_else(|| color.strip_prefix("rgba:"))?;
        let share = |part: &str| {
            let value = u32::from_str_radix(part, 16).ok()?;
            let most = match part.len() {
                1 => 0xf,
                2 => 0xff,
                3 => 0xfff,
                4 => 0xffff,
                _ => return None,
            };
            Some(f64::from(value) / f64::from(most))
        };
        let shares: Vec<f64> = parts.split('/').take(3).filter_map(share).collect();
        let [red, green, blue] = shares[..] else {
            return None;
        };
        // Perceived lightness, with a threshold of one half.
        let lightness = 0.299 * red + 0.587 * green + 0.114 * blue;
        Some(if lightness > 0.5 {
            Self::Light
        } else {
            Self::Dark
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_depth_follows_the_environment() {
        let cases = [
            (Some("truecolor"), Some("xterm"), Depth::Full),
            (Some("24bit"), None, Depth::Full),
            (None, Some("xterm-kitty"), Depth::Full),
            (None, Some("xterm-direct"), Depth::Full),
            (None, Some("tmux-256color"), Depth::Many),
            (Some(""), Some("linux"), Depth::Sixteen),
            (None, None, Depth::Sixteen),
        ];
        for (colorterm, term, depth) in cases {
            assert_eq!(
                Depth::from_environment(colorterm, term),
                depth,
                "{colorterm:?} {term:?}"
            );
        }
    }

    #[test]
    fn background_is_dark_light_or_unknown() {
        use Background::{Dark, Light};
        let variables = [
            ("15;0", Some(Dark)),
            ("0;15", Some(Light)),
            ("0;default;7", Some(Light)),
            ("7;8", Some(Dark)),
            ("0;default", None),
            ("", None),
            ("0;99", None),
        ];
        for (message, background) in variables {
            assert_eq!(
                Background::from_environment(message),
                background,
                "{message}"
            );
        }
        let answers = [
            ("rgb:0000/0000/0000", Some(Dark)),
            ("rgb:fdfd/f6f6/e3e3", Some(Light)),
            ("rgb:ff/ff/ff", Some(Light)),
            ("rgba:1c1c/1c1c/1c1c/ffff", Some(Dark)),
            ("rgb:0000/0000", None),
            ("rgb:00000/0/0", None),
            ("#ffffff", None),
            ("rgb:gg/00/00", None),
        ];
        for (answer, background) in answers {
            assert_eq!(Background::from_response(answer), background, "{answer}");
        }
    }
}
