//! Template languages.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TemplateLanguage {
    #[default]
    Mustache,
    Jinja,
}

impl TemplateLanguage {
    /// Returns the number on the wire and in the store.
    pub fn number(self) -> i32 {
        match self {
            Self::Mustache => 0,
            Self::Jinja => 2,
        }
    }

    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 | 1 => Some(Self::Mustache),
            2 => Some(Self::Jinja),
            _ => None,
        }
    }
}
