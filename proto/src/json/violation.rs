//! What is wrong with a request, field by field.

use crate::json::limits;

/// One violated field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field's path in JSON spelling, such as `events[3].severity`; empty for the whole body.
    pub field: String,
    /// What is wrong with it; continues after the field's name.
    pub description: String,
}

/// Every violated field of a request, up to [`limits::VIOLATIONS`].
///
/// Readers note a violation without a path and put the segments in front on their way out, so
/// that a request without any pays nothing for paths.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Violations {
    list: Vec<Violation>,
    unlisted: usize,
}

impl Violations {
    /// Notes a violation of the value that is being read.
    pub fn add(&mut self, description: impl Into<String>) {
        self.add_at(String::new(), description);
    }

    /// Notes a violation of a field.
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

    /// Takes over all of another reader's violations.
    pub fn append(&mut self, other: Self) {
        self.unlisted += other.unlisted;
        for violation in other.list {
            self.add_at(violation.field, violation.description);
        }
    }

    /// How many are listed so far; what is added later can be put below a segment.
    pub fn mark(&self) -> usize {
        self.list.len()
    }

    /// Puts everything noted since `mark` below a field or key.
    pub fn below(&mut self, mark: usize, segment: &str) {
        for violation in &mut self.list[mark..] {
            let dot = if violation.field.is_empty() || violation.field.starts_with('[') {
                ""
            } else {
                "."
            };
            violation.field = format!("{segment}{dot}{}", violation.field);
        }
    }

    /// Puts everything noted since `mark` below the element of a list.
    pub fn below_index(&mut self, mark: usize, index: usize) {
        if mark < self.list.len() {
            self.below(mark, &format!("[{index}]"));
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The listed ones, in the order of the request.
    pub fn list(&self) -> &[Violation] {
        &self.list
    }

    /// The listed ones, given away.
    pub fn into_list(self) -> Vec<Violation> {
        self.list
    }

    /// Takes out everything noted since `mark`.
    #[must_use]
    pub fn split_off(&mut self, mark: usize) -> Self {
        Self {
            list: self.list.split_off(mark),
            unlisted: 0,
        }
    }

    /// A sentence that names the first one and shows how many more there are.
    pub fn sentence(&self) -> String {
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

/// A client's own text, shortened and without control characters, for use in a message.
pub fn quoted(text: &str) -> String {
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

/// How like two names have to be for a hint to help, from 0 to 3.
const LIKENESS_MIN: f64 = 1.2;

/// The known name that is most like an unknown one; none when none is like it.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let start: String = unknown.chars().take(limits::QUOTED_CHARS).collect();
    let start = start.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        // `error` means `SEVERITY_ERROR`, however many letters are missing.
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
