//! The name of a stored resource.

use std::{fmt, sync::Arc};

/// Longest name, in characters.
pub const NAME_CHARACTERS_MAX: usize = 100;

/// A name: 1 to 100 letters, digits, `.`, `_`, `-` and inner spaces. Compared byte by byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Takes a text as a name.
    ///
    /// # Errors
    /// A sentence fragment for people when the text is not a name.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(
                "is required: 1 to 100 letters, digits, `.`, `_`, `-` or inner spaces".into(),
            );
        }
        if text.chars().count() > NAME_CHARACTERS_MAX {
            return Err(format!("is longer than {NAME_CHARACTERS_MAX} characters"));
        }
        if text.starts_with(' ') || text.ends_with(' ') {
            return Err("starts or ends with a space".into());
        }
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
        match text.chars().find(|&c| !allowed(c)) {
            Some(c) => Err(format!(
                "holds {c:?}; allowed are letters, digits, `.`, `_`, `-` and inner spaces"
            )),
            None => Ok(Self(text.into())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}
