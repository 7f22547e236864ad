//! Violations of a request, field by field.

use crate::json::limits;

/// A violation of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field with JSON names, such as `events[3].severity`; empty for the whole body.
    pub field: String,
    /// The description; completes a sentence that begins with the field's name.
    pub description: String,
}

/// The violations of a request, up to [`limits::VIOLATIONS`].
///
/// A reader adds a violation without a path, and enclosing readers prepend segments. Valid requests
/// therefore need no paths.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Violations {
    list: Vec<Violation>,
    unlisted: usize,
}

impl Violations {
    /// Adds a violation of the value that is being read.
    pub fn add(&mut self, description: impl Into<String>) {
        self.add_at(String::new(), description);
    }

    /// Adds a violation of a field.
    pub fn add_at(&mut self, field: impl Into<String>, description: impl Into<String>) {
        if self.list.len() < limits::VIOLATIONS {
            let description = description.into();
            self.list.push(Violation {
                field: field.into(),
                description,
            });
        } else {
            self.unlisted += 1;
        }
    }

    /// Appends all violations of another reader.
    pub fn append(&mut self, other: Self) {
        self.unlisted += other.unlisted;
        for violation in other.list {
            self.add_at(violation.field, violation.description);
        }
    }

    /// Returns the current number of violations, so that later ones can be prefixed.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Prefixes all violations since `mark` with a field or key.
    pub fn prefix_since(&mut self, mark: usize, segment: &str) {
        for violation in &mut self.list[mark..] {
            let dot = if violation.field.is_empty() || violation.field.starts_with('[') {
                ""
            } else {
                "."
            };
            violation.field = format!("{segment}{dot}{}", violation.field);
        }
    }

    /// Prefixes all violations since `mark` with a list index.
    pub fn prefix_index_since(&mut self, mark: usize, index: usize) {
        if mark < self.list.len() {
            self.prefix_since(mark, &format!("[{index}]"));
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the violations in the order of the request.
    pub fn as_slice(&self) -> &[Violation] {
        &self.list
    }

    /// Converts into the list of violations.
    pub fn into_vec(self) -> Vec<Violation> {
        self.list
    }

    /// Removes and returns all violations since `mark`.
    #[must_use]
    pub fn split_off(&mut self, mark: usize) -> Self {
        Self {
            list: self.list.split_off(mark),
            unlisted: 0,
        }
    }

    /// Returns a sentence with the first violation and the number of others.
    pub fn to_sentence(&self) -> String {
        let Some(first) = self.list.first() else {
            return String::new();
        };
        let between = match &first.field {
            field if field.is_empty() => "",
            _ if first.description.starts_with("expected ") => ": ",
            _ => " ",
        };
        let sentence = format!("{}{between}{}", first.field, first.description);
        match self.list.len() - 1 + self.unlisted {
            0 => sentence,
            1 => format!("{sentence} (and 1 more problem)"),
            more => format!("{sentence} (and {more} more problems)"),
        }
    }
}

/// Quotes a client's text for a message, truncated and without control characters.
pub fn quote_for_message(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().min(limits::QUOTED_CHARS) + 2);
    quoted.push('`');
    let mut chars = text.chars();
    for char in chars.by_ref().take(limits::QUOTED_CHARS) {
        quoted.push(if char.is_control() { '\u{fffd}' } else { char });
    }
    if chars.next().is_some() {
        quoted.push_str("...");
    }
    quoted.push('`');
    quoted
}

/// Minimum similarity for a suggestion, from 0 to 3.
const LIKENESS_MIN: f64 = 1.2;

/// Returns the known name most similar to an unknown one; `None` if none is similar enough.
pub fn nearest_name<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let start: String = unknown.chars().take(limits::QUOTED_CHARS).collect();
    let start = start.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        // A text that is contained in a name is similar to it: `error` suggests `SEVERITY_ERROR`.
        let part = if !start.is_empty() && name.contains(&start) {
            1.0
        } else {
            0.0
        };
        strsim::normalized_damerau_levenshtein(&start, &name)
            + strsim::jaro_winkler(&start, &name)
            + part
    };
    known
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|best| best.1)
}
