//! The languages that templates are written in.

/// A language of templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TemplateLanguage {
    /// Mustache.
    #[default]
    Mustache,
    /// Jinja.
    Jinja,
}

impl TemplateLanguage {
    /// Its number on the wire and in the store; the default is not stated.
    pub fn number(self) -> i32 {
        match self {
            Self::Mustache => 0,
            Self::Jinja => 2,
        }
    }

    /// The language of a number on the wire or in the store.
    pub fn of_number(number: i32) -> Option<Self> {
        match number {
            0 | 1 => Some(Self::Mustache),
            2 => Some(Self::Jinja),
            _ => None,
        }
    }
}
