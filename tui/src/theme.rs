//! Colours by meaning. No important fact is conveyed by colour only.

mod colour;
mod depth;
pub(crate) mod glyphs;
mod look;
mod palette;

use crate::data::{DeliveryState, HealthState, Outcome, Severity, Status};

pub(crate) use self::look::Appearance;
pub use self::{
    colour::Colour,
    depth::{Background, Depth, has_kitty_keys},
    glyphs::{is_ascii_only, is_colourless},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// With 24-bit colour, dark, or light if the background is light; otherwise the terminal's own
    /// colours.
    Auto,
    /// The terminal's own sixteen colours.
    #[default]
    Terminal,
    Dark,
    Light,
    Contrast,
    /// Warm on blue-green.
    Dusk,
    /// No colours: bold, dim, underline and reverse instead (`NO_COLOR`).
    Mono,
}

impl Theme {
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Terminal,
        Self::Dark,
        Self::Light,
        Self::Contrast,
        Self::Dusk,
        Self::Mono,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Terminal => "terminal",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Contrast => "contrast",
            Self::Dusk => "dusk",
            Self::Mono => "mono",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Token {
    #[default]
    Text,
    Dim,
    /// Frames and lines, which convey no information.
    Border,
    Title,
    Heading,
    Link,
    Key,
    Good,
    Info,
    Warning,
    /// Held back or paused on purpose.
    Held,
    Bad,
    Critical,
    Selected,
    Bar,
    Tab,
    Mark(Colour),
    ReadOnly,
    Field,
}

impl From<Severity> for Token {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Critical,
            Severity::Error => Self::Bad,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Info,
            Severity::Debug | Severity::Default => Self::Dim,
        }
    }
}

impl From<Status> for Token {
    fn from(status: Status) -> Self {
        match status {
            Status::Open | Status::Default => Self::Text,
            Status::Suppressed => Self::Held,
            Status::Closed => Self::Dim,
        }
    }
}

impl From<HealthState> for Token {
    fn from(health: HealthState) -> Self {
        match health {
            HealthState::Healthy => Self::Good,
            HealthState::Failing => Self::Bad,
            HealthState::Paused => Self::Held,
            HealthState::Slow | HealthState::Behind => Self::Warning,
            HealthState::Untried | HealthState::Unspecified => Self::Dim,
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
            DeliveryState::Cancelled
            | DeliveryState::Folded
            | DeliveryState::Shadowed
            | DeliveryState::Unspecified => Self::Dim,
        }
    }
}

impl From<Outcome> for Token {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Delivered => Self::Good,
            Outcome::Rejected | Outcome::Unreachable | Outcome::Blocked => Self::Bad,
            Outcome::Unknown => Self::Warning,
            Outcome::Unspecified => Self::Info,
        }
    }
}
