//! What occurrences can be sorted by.

/// What occurrences can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortField {
    /// The newest time a sender gave.
    #[default]
    LastSeen,
    /// When it was opened.
    StartTime,
    /// How bad it is.
    Severity,
}

impl SortField {
    /// All of them, the usual one first.
    pub const ALL: [Self; 3] = [Self::LastSeen, Self::StartTime, Self::Severity];

    /// The name of the field.
    pub fn word(self) -> &'static str {
        match self {
            Self::LastSeen => "lastSeen",
            Self::StartTime => "startTime",
            Self::Severity => "severity",
        }
    }

    /// The one of that name; the usual one for no name.
    ///
    /// # Errors
    /// A sentence fragment for people.
    pub fn from_word(word: &str) -> Result<Self, String> {
        let found = Self::ALL
            .into_iter()
            .find(|it| word.is_empty() || it.word() == word);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::word).join(", ");
            format!("{word:?} is not one of {known}")
        })
    }
}
