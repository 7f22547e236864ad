//! Tests that all text is readable on every background, and no information is conveyed by colour
//! only.

use super::*;
use crate::theme::Colour;

const MEANINGS: [Token; 12] = [
    Token::Text,
    Token::Dim,
    Token::Title,
    Token::Heading,
    Token::Link,
    Token::Key,
    Token::Good,
    Token::Info,
    Token::Warning,
    Token::Held,
    Token::Bad,
    Token::Critical,
];
const PAINTED: [Theme; 4] = [Theme::Dark, Theme::Light, Theme::Contrast, Theme::Dusk];

/// Returns red, green and blue of a colour; for indexed ones, the values of most terminals.
fn rgb(color: Color) -> [f64; 3] {
    let parts = match color {
        Color::Rgb(red, green, blue) => [red, green, blue],
        Color::Indexed(index @ 16..=231) => {
            let step = |at: u8| if at == 0 { 0 } else { 55 + at * 40 };
            let cell = index - 16;
            [step(cell / 36), step(cell / 6 % 6), step(cell % 6)]
        }
        Color::Indexed(index @ 232..) => [8 + (index - 232) * 10; 3],
        other => panic!("{other:?} is the terminal's own"),
    };
    parts.map(|part| f64::from(part) / 255.0)
}

/// Returns the contrast ratio of two colours by WCAG 2, from 1 to 21.
fn contrast_of(one: Color, other: Color) -> f64 {
    let luminance = |color| {
        let [red, green, blue] = rgb(color).map(|part| {
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn text_has_sufficient_contrast_on_every_background() {
    for (theme, depth) in PAINTED
        .into_iter()
        .flat_map(|theme| [(theme, Depth::Full), (theme, Depth::Many)])
    {
        let look = Appearance::new(theme, depth, None);
        let least = if theme == Theme::Contrast { 7.0 } else { 4.5 };
        let grounds = [Style::new(), look.style(Token::Selected)];
        for token in MEANINGS {
            for ground in grounds {
                let drawn = look.base().patch(look.style(token)).patch(ground);
                let ratio = contrast_of(drawn.fg.unwrap(), drawn.bg.unwrap());
                assert!(
                    ratio >= least,
                    "{theme:?} {depth:?} {token:?} {ground:?}: {ratio:.2}"
                );
            }
        }
        for colour in Colour::ALL {
            let drawn = look.base().patch(look.style(Token::Mark(colour)));
            let ratio = contrast_of(drawn.fg.unwrap(), drawn.bg.unwrap());
            assert!(ratio >= 4.5, "{theme:?} {depth:?} {colour:?}: {ratio:.2}");
        }
        for token in [Token::Bar, Token::Tab, Token::ReadOnly, Token::Field] {
            let drawn = look.base().patch(look.style(token));
            let ratio = contrast_of(drawn.fg.unwrap(), drawn.bg.unwrap());
            assert!(ratio >= least, "{theme:?} {depth:?} {token:?}: {ratio:.2}");
        }
    }
}

#[test]
fn selection_focus_and_errors_are_visible_without_colour() {
    for theme in Theme::ALL {
        for depth in [Depth::Sixteen, Depth::Many, Depth::Full] {
            let look = Appearance::new(theme, depth, None);
            for token in [Token::Selected, Token::Field, Token::Critical] {
                assert_ne!(
                    look.style(token),
                    look.style(Token::Text),
                    "{theme:?} {token:?}"
                );
            }
        }
    }
    let mono = Appearance::new(Theme::Mono, Depth::Full, None);
    for token in MEANINGS
        .into_iter()
        .chain([Token::Selected, Token::Bar, Token::Field])
    {
        let style = mono.style(token);
        assert_eq!((style.fg, style.bg), (None, None), "{token:?}");
    }
    assert!(
        mono.style(Token::Selected)
            .add_modifier
            .contains(Modifier::REVERSED)
    );
    assert!(
        mono.style(Token::Field)
            .add_modifier
            .contains(Modifier::UNDERLINED)
    );
    assert!(mono.style(Token::Bad).add_modifier.contains(Modifier::BOLD));
}

#[test]
fn styles_use_only_colours_the_terminal_supports() {
    for theme in Theme::ALL {
        for token in MEANINGS {
            for background in [None, Some(Background::Dark), Some(Background::Light)] {
                let few = Appearance::new(theme, Depth::Sixteen, background);
                let style = few.base().patch(few.style(token));
                for color in [style.fg, style.bg].into_iter().flatten() {
                    assert!(
                        !matches!(color, Color::Rgb(..) | Color::Indexed(_)),
                        "{theme:?}"
                    );
                }
                let many = Appearance::new(theme, Depth::Many, background);
                assert!(
                    !matches!(many.style(token).fg, Some(Color::Rgb(..))),
                    "{theme:?}"
                );
            }
        }
    }
}

#[test]
fn auto_theme_follows_depth_and_background() {
    let auto = |depth, background| Appearance::new(Theme::Auto, depth, background);
    let look = |theme, depth| Appearance::new(theme, depth, None);
    let (full, many) = (Depth::Full, Depth::Many);
    assert_eq!(auto(full, None), look(Theme::Dark, full));
    assert_eq!(auto(full, Some(Background::Dark)), look(Theme::Dark, full));
    assert_eq!(
        auto(full, Some(Background::Light)),
        look(Theme::Light, full)
    );
    for background in [None, Some(Background::Dark), Some(Background::Light)] {
        let terminal = Appearance::new(Theme::Terminal, many, background);
        assert_eq!(auto(many, background), terminal);
        let few = auto(Depth::Sixteen, background);
        let is_yellow = |token| few.style(token).fg == Some(Color::Yellow);
        let is_light = background == Some(Background::Light);
        for token in [Token::Warning, Token::Held] {
            assert_eq!(is_yellow(token), !is_light, "{background:?}");
        }
    }
}
