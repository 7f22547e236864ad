//! The styles of a theme on a terminal.

use ratatui::style::{Color, Modifier, Style};

use super::{
    Background, Depth, Theme, Token,
    palette::{self, Palette},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appearance {
    theme: Theme,
    depth: Depth,
    is_light: bool,
}

impl Appearance {
    /// Resolves a theme. `Auto` becomes `Dark` with 24-bit colour, or `Light` if the background is
    /// light; otherwise the terminal's own colours, which are readable on any background. With
    /// sixteen colours, only themes made for them are used.
    pub(crate) fn new(theme: Theme, depth: Depth, background: Option<Background>) -> Self {
        let theme = match (theme, depth, background) {
            (Theme::Auto, Depth::Full, Some(Background::Light)) => Theme::Light,
            (Theme::Auto, Depth::Full, _) => Theme::Dark,
            (Theme::Auto, ..) => Theme::Terminal,
            (other, ..) => other,
        };
        let wide = matches!(theme, Theme::Dark | Theme::Light | Theme::Dusk);
        let theme = if wide && depth == Depth::Sixteen {
            Theme::Terminal
        } else {
            theme
        };
        let is_light = theme == Theme::Terminal && background == Some(Background::Light);
        Self {
            theme,
            depth,
            is_light,
        }
    }

    pub(crate) fn is_mono(self) -> bool {
        self.theme == Theme::Mono
    }

    pub(crate) fn base(self) -> Style {
        match self.palette() {
            Some(colours) => Style::new()
                .fg(colours.text.at_depth(self.depth))
                .bg(colours.ground.at_depth(self.depth)),
            None if self.theme == Theme::Contrast => Style::new().fg(Color::White).bg(Color::Black),
            None => Style::new(),
        }
    }

    pub(crate) fn style(self, token: Token) -> Style {
        match (self.palette(), self.theme) {
            (Some(colours), _) => self.themed_style(colours, token),
            (None, Theme::Mono) => mono_style(token),
            (None, Theme::Contrast) => contrast_style(token),
            // Yellow is not readable on white.
            (None, _) if self.is_light && token == Token::Warning => {
                Style::new().fg(Color::Magenta)
            }
            (None, _) if self.is_light && token == Token::Held => {
                Style::new().add_modifier(Modifier::BOLD)
            }
            (None, _) => terminal_style(token),
        }
    }

    fn palette(self) -> Option<&'static Palette> {
        match (self.theme, self.depth) {
            (_, Depth::Sixteen) | (Theme::Auto | Theme::Terminal | Theme::Mono, _) => None,
            (Theme::Dark, _) => Some(&palette::DARK),
            (Theme::Light, _) => Some(&palette::LIGHT),
            (Theme::Contrast, _) => Some(&palette::CONTRAST),
            (Theme::Dusk, _) => Some(&palette::DUSK),
        }
    }

    fn themed_style(self, colours: &Palette, token: Token) -> Style {
        let style = Style::new();
        let fg = |paint: palette::Paint| style.fg(paint.at_depth(self.depth));
        let on = |paint: palette::Paint| style.bg(paint.at_depth(self.depth));
        match token {
            Token::Text => fg(colours.text),
            Token::Dim => fg(colours.dim),
            Token::Border => fg(colours.border),
            Token::Title => fg(colours.text).add_modifier(Modifier::BOLD),
            Token::Heading => fg(colours.dim).add_modifier(Modifier::BOLD),
            Token::Link => fg(colours.accent).add_modifier(Modifier::UNDERLINED),
            Token::Key => fg(colours.accent),
            Token::Good => fg(colours.good),
            Token::Info => fg(colours.info),
            Token::Warning => fg(colours.warning),
            Token::Held => fg(colours.held),
            Token::Bad => fg(colours.bad),
            Token::Critical => fg(colours.critical).add_modifier(Modifier::BOLD),
            Token::Selected if self.theme == Theme::Contrast => {
                fg(colours.bar_text).bg(colours.bar.at_depth(self.depth))
            }
            Token::Selected => on(colours.selected).add_modifier(Modifier::BOLD),
            Token::Bar => fg(colours.bar_text).bg(colours.bar.at_depth(self.depth)),
            Token::Tab => fg(colours.accent)
                .bg(colours.selected.at_depth(self.depth))
                .add_modifier(Modifier::BOLD),
            Token::Mark(colour) => colour.background_style(self.depth),
            Token::ReadOnly => fg(colours.ground)
                .bg(colours.warning.at_depth(self.depth))
                .add_modifier(Modifier::BOLD),
            Token::Field => fg(colours.text).bg(colours.field.at_depth(self.depth)),
        }
    }
}

fn terminal_style(token: Token) -> Style {
    let style = Style::new();
    match token {
        Token::Text => style,
        Token::Dim => style.add_modifier(Modifier::DIM),
        Token::Border => style.fg(Color::DarkGray),
        Token::Title => style.add_modifier(Modifier::BOLD),
        Token::Heading => style.add_modifier(Modifier::BOLD | Modifier::DIM),
        Token::Link => style.fg(Color::Cyan).add_modifier(Modifier::UNDERLINED),
        Token::Key => style.fg(Color::Cyan),
        Token::Good => style.fg(Color::Green),
        Token::Info => style.fg(Color::Blue),
        Token::Warning => style.fg(Color::Yellow),
        Token::Held => style.fg(Color::Yellow).add_modifier(Modifier::BOLD),
        Token::Bad => style.fg(Color::Red),
        Token::Critical => style.fg(Color::Magenta).add_modifier(Modifier::BOLD),
        Token::Selected => style.add_modifier(Modifier::REVERSED),
        Token::Bar => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Token::Tab => style
            .fg(Color::Cyan)
            .add_modifier(Modifier::BOLD | Modifier::REVERSED),
        Token::Mark(colour) => colour.inverse_style(),
        Token::ReadOnly => style
            .fg(Color::Black)
            .bg(Color::Yellow)
            .add_modifier(Modifier::BOLD),
        Token::Field => style.add_modifier(Modifier::UNDERLINED),
    }
}

fn contrast_style(token: Token) -> Style {
    let style = Style::new();
    let bold = |color| style.fg(color).add_modifier(Modifier::BOLD);
    match token {
        Token::Text | Token::Dim | Token::Border => style.fg(Color::White),
        Token::Title => bold(Color::White),
        Token::Heading => bold(Color::Gray),
        Token::Link => bold(Color::LightCyan).add_modifier(Modifier::UNDERLINED),
        Token::Key | Token::Info => style.fg(Color::LightCyan),
        Token::Good => style.fg(Color::LightGreen),
        Token::Warning => style.fg(Color::LightYellow),
        Token::Held => bold(Color::LightYellow),
        Token::Bad => style.fg(Color::LightRed),
        Token::Critical => bold(Color::LightMagenta),
        Token::Selected | Token::Bar | Token::Tab => style.fg(Color::Black).bg(Color::White),
        Token::Mark(colour) => colour.inverse_style(),
        Token::ReadOnly => style.fg(Color::Black).bg(Color::LightYellow),
        Token::Field => style.fg(Color::White).add_modifier(Modifier::UNDERLINED),
    }
}

fn mono_style(token: Token) -> Style {
    let style = Style::new();
    match token {
        Token::Text | Token::Good | Token::Info => style,
        Token::Dim | Token::Border => style.add_modifier(Modifier::DIM),
        Token::Title | Token::Heading | Token::Key | Token::Warning | Token::Held => {
            style.add_modifier(Modifier::BOLD)
        }
        Token::Link | Token::Field => style.add_modifier(Modifier::UNDERLINED),
        Token::Bad | Token::ReadOnly | Token::Mark(_) => style.add_modifier(Modifier::BOLD),
        Token::Critical => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Token::Selected | Token::Bar | Token::Tab => style.add_modifier(Modifier::REVERSED),
    }
}

#[cfg(test)]
mod tests;
