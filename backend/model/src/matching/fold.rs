//! Case-insensitive comparison of strings.

use std::borrow::Cow;

use bellwether_language::text::is_hidden;
use caseless::Caseless;
use memchr::memmem::Finder;
use unicode_normalization::UnicodeNormalization as _;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoldedText(String);

impl FoldedText {
    /// Folds a string by Unicode's full case folding.
    pub fn new(text: &str) -> Self {
        Self(fold(text).into_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn equals(&self, other: &str) -> bool {
        if other.is_ascii() {
            return self.0.eq_ignore_ascii_case(other);
        }
        self.0 == fold(other)
    }

    pub fn is_prefix_of(&self, other: &str) -> bool {
        if other.is_ascii() {
            let start = other.as_bytes().get(..self.0.len());
            return start.is_some_and(|start| start.eq_ignore_ascii_case(self.0.as_bytes()));
        }
        fold(other).starts_with(&self.0)
    }

    pub fn is_suffix_of(&self, other: &str) -> bool {
        if other.is_ascii() {
            let at = other.len().checked_sub(self.0.len());
            return at
                .is_some_and(|at| other.as_bytes()[at..].eq_ignore_ascii_case(self.0.as_bytes()));
        }
        fold(other).ends_with(&self.0)
    }

    pub fn is_contained_in(&self, other: &str) -> bool {
        fold(other).contains(&self.0)
    }
}

/// A folded string to search for in many other strings.
#[derive(Debug, Clone)]
pub struct Part {
    text: FoldedText,
    finder: Finder<'static>,
}

impl Part {
    pub fn new(text: FoldedText) -> Self {
        Self {
            finder: Finder::new(text.as_str()).into_owned(),
            text,
        }
    }

    pub fn text(&self) -> &FoldedText {
        &self.text
    }

    pub fn is_contained_in(&self, folded: &str) -> bool {
        self.finder.find(folded.as_bytes()).is_some()
    }
}

/// Folds a name, so that names that differ only in case, composition or invisible characters such
/// as joiners become equal.
pub fn fold_name(name: &str) -> String {
    let visible = name.chars().filter(|c| !is_hidden(*c));
    visible.nfd().default_case_fold().nfd().collect()
}

/// Folds a string, without a copy if it is already folded.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    Cow::Owned(text.chars().default_case_fold().collect())
}
