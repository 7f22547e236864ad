//! Colours by meaning. Every meaning that matters also shows without colour.

use ratatui::style::{Color, Modifier, Style};

use crate::data::{DeliveryState, HealthState, Outcome, Severity, Status};

/// The looks a console can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// The terminal's own sixteen colours.
    #[default]
    Terminal,
    /// No colour at all: bold, dim, underline and reverse carry the meaning (`NO_COLOR`).
    Mono,
}

/// What a piece of text means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Token {
    #[default]
    Text,
    Dim,
    Title,
    Heading,
    Link,
    Key,
    Good,
    Info,
    Warning,
    Bad,
    Critical,
    Selected,
    Bar,
    Field,
}

impl Theme {
    /// How text of this meaning is drawn.
    pub(crate) fn style(self, token: Token) -> Style {
        match self {
            Self::Terminal => terminal(token),
            Self::Mono => mono(token),
        }
    }
}

fn terminal(token: Token) -> Style {
    let style = Style::new();
    match token {
        Token::Text => style,
        Token::Dim => style.add_modifier(Modifier::DIM),
        Token::Title => style.add_modifier(Modifier::BOLD),
        Token::Heading => style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
        Token::Link => style.fg(Color::Cyan).add_modifier(Modifier::UNDERLINED),
        Token::Key => style.fg(Color::Cyan),
        Token::Good => style.fg(Color::Green),
        Token::Info => style.fg(Color::Blue),
        Token::Warning => style.fg(Color::Yellow),
        Token::Bad => style.fg(Color::Red),
        Token::Critical => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        Token::Selected => style.add_modifier(Modifier::REVERSED),
        Token::Bar => style.fg(Color::Black).bg(Color::Cyan),
        Token::Field => style.add_modifier(Modifier::UNDERLINED),
    }
}

fn mono(token: Token) -> Style {
    let style = Style::new();
    match token {
        Token::Text | Token::Good | Token::Info => style,
        Token::Dim => style.add_modifier(Modifier::DIM),
        Token::Title | Token::Heading | Token::Key | Token::Warning => {
            style.add_modifier(Modifier::BOLD)
        }
        Token::Link | Token::Field => style.add_modifier(Modifier::UNDERLINED),
        Token::Bad => style.add_modifier(Modifier::BOLD),
        Token::Critical => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Token::Selected | Token::Bar => style.add_modifier(Modifier::REVERSED),
    }
}

impl From<Severity> for Token {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Critical,
            Severity::Error => Self::Bad,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Info,
            Severity::Debug | Severity::Unknown => Self::Dim,
        }
    }
}

impl From<Status> for Token {
    fn from(status: Status) -> Self {
        match status {
            Status::Open | Status::Unknown => Self::Text,
            Status::Suppressed => Self::Warning,
            Status::Closed => Self::Dim,
        }
    }
}

impl From<HealthState> for Token {
    fn from(health: HealthState) -> Self {
        match health {
            HealthState::Healthy => Self::Good,
            HealthState::Failing => Self::Bad,
            HealthState::Paused => Self::Warning,
            HealthState::Unknown => Self::Dim,
        }
    }
}

impl From<DeliveryState> for Token {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Delivered => Self::Good,
            DeliveryState::Dead => Self::Bad,
            DeliveryState::Retry => Self::Warning,
            DeliveryState::Pending | DeliveryState::Leased => Self::Info,
            DeliveryState::Cancelled | DeliveryState::Unknown => Self::Dim,
        }
    }
}

impl From<Outcome> for Token {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Delivered => Self::Good,
            Outcome::Rejected | Outcome::Unreachable | Outcome::Blocked => Self::Bad,
            Outcome::Unknown => Self::Warning,
            Outcome::UnderWay => Self::Info,
        }
    }
}
